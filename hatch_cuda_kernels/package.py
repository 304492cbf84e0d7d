# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""A package as it is installed: its manifest, its images and the sources that it ships, every byte checked."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from .arch import release_version
from .elf import cubin_number
from .errors import IntegrityError, ManifestError
from .excerpt import find_kernel, find_module, read_outline
from .manifest import DIRECTORY, MANIFEST_FILE, SCHEMA, SOURCE_DIRECTORY, Image, Manifest, Module
from .variants import module_key

if TYPE_CHECKING:  # what only the fallback needs is imported by it: every app pays for what stands above
    from .plan import Unit
    from .sources import Scans, SourceFile

__all__ = ["Files", "InstalledPackage", "ShippedTree", "find_files", "shipped_unit", "source_folder"]


_LARGE = 16 * 1024
_T = TypeVar("_T")


class Files(Protocol):
    """A folder to read from: pathlib.Path, or what importlib.resources gives for a package in a zip file."""

    def joinpath(self, *parts: str) -> Files:
        """A file or folder inside."""

    def read_bytes(self) -> bytes:
        """Content of a file."""


def find_files(package: str) -> Files | None:
    """The folder of an import package, which is not imported where it lies in the file system; None without one."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError, AttributeError):
        return None
    except Exception as error:  # a parent package runs when one of its parts is looked up
        reason = f"{type(error).__name__}: {error}"
        raise ManifestError(f"{package} cannot be found, because importing its parent fails ({reason})") from None
    if spec is None or spec.submodule_search_locations is None:
        return None
    for location in spec.submodule_search_locations:
        folder = Path(location)
        if (folder / DIRECTORY / MANIFEST_FILE).is_file():
            return folder
    if any(Path(location).is_dir() for location in spec.submodule_search_locations):
        return None
    from importlib import resources

    files: Files = resources.files(package)
    try:
        files.joinpath(DIRECTORY).joinpath(MANIFEST_FILE).read_bytes()
    except OSError:
        return None
    return files


def source_folder(package: str) -> Path | None:
    """Where a top-level package is found, if that is in a project's tree: it hides what is installed."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError, AttributeError):
        return None
    for location in (spec and spec.submodule_search_locations) or ():
        if any((above / "pyproject.toml").is_file() for above in list(Path(location).parents)[:2]):
            return Path(location)
    return None


class InstalledPackage:
    """A package with a manifest. Raises ManifestError where that cannot be read.

    Args:
        name: Import package.
        files: Its folder.
        piecemeal: Read a large manifest where it is needed, and tell its mistakes then; see excerpt.py.
    """

    def __init__(self, name: str, files: Files, *, piecemeal: bool = False) -> None:
        self.name = name
        self.files = files.joinpath(DIRECTORY)
        outline = self._excerpt(read_outline) if piecemeal else None
        if outline is not None and outline.schema == SCHEMA and isinstance(outline.release, str):
            self.compiler, self.has_sources = release_version(outline.release), outline.fallback
        else:
            self.compiler, self.has_sources = self.manifest.cuda_version, self.manifest.fallback is not None

    @functools.cached_property
    def manifest(self) -> Manifest:
        """The whole manifest. Raises ManifestError."""
        return Manifest.from_bytes(self._read(MANIFEST_FILE), self._where)

    @property
    def _where(self) -> str:
        return f"{self.name}: {DIRECTORY}/{MANIFEST_FILE}"

    def modules_with(self, kernel: str) -> Sequence[str]:
        """Names of the modules that have a kernel, whose name is squeezed. Raises ManifestError."""
        found = self._excerpt(find_kernel, kernel)
        return self.manifest.kernels.get(kernel, ()) if found is None else found

    def module(self, name: str) -> Module | None:
        """The module of a name, in any spelling. Raises ManifestError."""
        found = self._excerpt(find_module, name)
        if found is None:
            return self._by_key.get(module_key(name))
        try:
            return Module.from_dict(found, f"modules[{name}]")
        except ManifestError as error:
            raise ManifestError(f"{self._where}: {error}") from None

    @functools.cached_property
    def _by_key(self) -> Mapping[str, Module]:
        return {module_key(module.name): module for module in self.manifest.modules}

    def _excerpt(self, find: Callable[..., _T | None], *wanted: str) -> _T | None:
        """A part of a large manifest in a file; None where only the whole will do, a small one is read at once."""
        if "manifest" in vars(self) or not isinstance(self.files, Path):
            return None
        try:
            with (self.files / MANIFEST_FILE).open("rb") as stream:
                size = os.fstat(stream.fileno()).st_size
                if size > _LARGE:
                    return find(stream, size, *wanted)
                data = stream.read()
        except OSError:
            return None
        self.manifest = Manifest.from_bytes(data, self._where)
        return None

    def _read(self, path: str) -> bytes:
        try:
            return self.files.joinpath(*path.split("/")).read_bytes()
        except Exception as error:  # a zip file's reader raises many kinds, and is not imported for their names
            reason = getattr(error, "strerror", None) or type(error).__name__
            kind = ManifestError if path == MANIFEST_FILE else IntegrityError
            raise kind(f"{self.name}: {DIRECTORY}/{path} cannot be read ({reason}); reinstall the package") from None

    def read_image(self, image: Image) -> bytes:
        """The bytes of an image. Raises IntegrityError unless they are those that were built."""
        data = self._read(image.file)
        _check(data, image.size, image.sha256, f"{self.name}: {DIRECTORY}/{image.file}")
        if not image.architecture.virtual and cubin_number(data) != image.architecture.number:
            raise IntegrityError(f"{self.name}: {DIRECTORY}/{image.file} is not for {image.architecture}; reinstall it")
        return data

    def read_source(self, path: str) -> bytes:
        """The bytes of a shipped source. Raises IntegrityError unless they are those that were built."""
        fallback = self.manifest.fallback
        assert fallback is not None
        expected = fallback.files[path]
        where = posixpath.join(SOURCE_DIRECTORY, path)
        data = self._read(where)
        _check(data, expected.size, expected.sha256, f"{self.name}: {DIRECTORY}/{where}")
        return data


def _check(data: bytes, size: int, digest: str, where: str) -> None:
    if len(data) != size:
        raise IntegrityError(f"{where} has {len(data)} bytes instead of {size}; reinstall the package")
    if hashlib.sha256(data).hexdigest() != digest:
        raise IntegrityError(f"{where} is not the file that was built (its digest differs); reinstall the package")


class ShippedTree:
    """The sources that a package ships, as a tree to compile from (see sources.Tree)."""

    def __init__(self, package: InstalledPackage, scans: Scans | None = None) -> None:
        self._package, self._scans = package, scans
        fallback = package.manifest.fallback
        self._listed = dict(fallback.files) if fallback else {}

    def open(self, label: str) -> SourceFile | None:
        """See sources.Tree. Only what the manifest lists exists. Raises IntegrityError."""
        from .sources import known_file

        return known_file(label, self._package.read_source(label), self._scans) if label in self._listed else None

    def files_below(self, label: str) -> Iterator[str]:
        """See sources.Tree."""
        prefix = "" if label in ("", ".") else f"{label}/"
        return (path for path in sorted(self._listed) if path.startswith(prefix))


def shipped_unit(package: InstalledPackage, module: Module) -> Unit:
    """The translation unit that the run-time fallback compiles for a module. Raises IntegrityError."""
    from .cache import KernelCache
    from .plan import make_unit
    from .scans import RememberedScans

    shared = [(package.name, *module.include_dirs)]
    with KernelCache.from_environment() as cache, RememberedScans(cache, shared) as scans:
        return make_unit(ShippedTree(package, scans), package.name, module)
