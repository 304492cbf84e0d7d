# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What a command is pointed at: a wheel, a folder, or an importable package."""

from __future__ import annotations

import os
import posixpath
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ..catalog import Live, installed_package, source_of
from ..errors import CudaKernelsError, ManifestError
from ..manifest import DIRECTORY, MANIFEST_FILE
from ..package import Files, InstalledPackage, find_files

__all__ = ["Place", "TargetError", "editable_install", "open_packages", "places"]

_CHUNK = 1 << 20
_MOST_BYTES = 1 << 30
"""Of one file of ours in a wheel; a few bytes of a zip file can claim any number."""
_TAIL = f"{DIRECTORY}/{MANIFEST_FILE}"


class TargetError(CudaKernelsError):
    """The target is none of what a command takes."""


class Place:
    """Where a package with a manifest lies, before the manifest is read."""

    def __init__(self, name: str, files: Files, members: list[str] | None = None) -> None:
        self.name = name
        self.files = files
        self.members = members
        """Paths of all files below `_cuda_kernels/`; None where they cannot be listed."""

    def open(self) -> InstalledPackage:
        """Read the manifest. Raises ManifestError."""
        package = InstalledPackage(self.name, self.files)
        if self.name and package.manifest.package != self.name:
            raise ManifestError(f"{self.name}: its manifest is that of {package.manifest.package}")
        package.name = package.manifest.package
        return package


def places(target: str, package: str | None = None) -> list[Place]:
    """All packages with a manifest in `target`, or the one asked for.

    An editable install is compiled, and shown as the wheel that it would give. Raises TargetError, also where the
    package asked for is not there, and ManifestError where there is no manifest.
    """
    path = Path(target)
    if path.is_file():
        found = list(_in_wheel(path))
    elif _is_package(target):
        live = editable_install(target)
        found = [_as_wheel(live)] if live else list(_installed(target))
    elif path.is_dir():
        found = list(_in_folder(path))
    else:
        raise TargetError(f"{target}: no such file or folder, and no import package")
    if not found:
        raise ManifestError(f"{target} holds no {_TAIL}; was it built with the hook `cuda-kernels`?")
    if package is not None:
        chosen = [place for place in found if place.name in ("", package)]
        if not chosen:
            names = ", ".join(place.name for place in found)
            raise TargetError(f"{target} has no package {package} with kernels; it has: {names}")
        for place in chosen:
            place.name = package
        return chosen
    return found


def open_packages(target: str, package: str | None = None) -> list[InstalledPackage]:
    """See places; with the manifests read."""
    return [place.open() for place in places(target, package)]


def editable_install(target: str) -> Live | None:
    """The editable install that `target` names, if it does."""
    if not _is_package(target):
        return None
    source = source_of(target)
    return source if isinstance(source, Live) else None


def _is_package(target: str) -> bool:
    """Whether `target` is an import name, and no folder with images: one of sources may be called as its package is."""
    if not all(part.isidentifier() for part in target.split(".")) or os.path.isfile(target):
        return False
    return not os.path.isdir(target) or next(_in_folder(Path(target)), None) is None


def _installed(target: str) -> Iterator[Place]:
    package = installed_package(target)
    folder = find_files(package.name)
    assert folder is not None
    yield from _in_folder(folder, package.name) if isinstance(folder, Path) else [Place(package.name, folder)]


class _InMemory:
    """Files of a package that lies nowhere: see package.Files."""

    def __init__(self, contents: Mapping[str, bytes], path: str = "") -> None:
        self._contents = contents
        self._path = path

    def joinpath(self, *parts: str) -> _InMemory:
        return _InMemory(self._contents, posixpath.join(self._path, *parts))

    def read_bytes(self) -> bytes:
        if self._path not in self._contents:
            raise FileNotFoundError(2, "no such file", self._path)
        return self._contents[self._path]


class _Messages:
    """A build's messages, on standard error; see account.Reporter."""

    def info(self, message: str) -> None:
        print(message, file=sys.stderr)

    def step(self, done: int, total: int, what: str) -> None:
        if what:
            print(f"[{done}/{total}] {what}", file=sys.stderr)

    def warning(self, message: str) -> None:
        print(f"warning: {message}", file=sys.stderr)


def _as_wheel(live: Live) -> Place:
    """The package of an editable install as a wheel would have it, compiled now, through the cache."""
    from ..build import build_packages

    editable, specs = live.editable, list(live.specs.values())
    where = f"the hook table of {editable.root}"
    contents: dict[str, bytes] = {}

    def put(package: str, path: str, pieces: Iterable[bytes]) -> None:
        if package == live.name:
            contents[path] = b"".join(pieces)

    build_packages(editable.config(), editable.root, specs, where=where, reporter=_Messages(), put=put).close()
    members = [posixpath.relpath(path, DIRECTORY) for path in contents]
    return Place(live.name, _InMemory(contents), members)


def _in_wheel(path: Path) -> Iterator[Place]:
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError, EOFError) as error:
        raise ManifestError(f"{path} is no wheel, or a damaged one ({error})") from None
    names = archive.namelist()
    ours = tuple(_below(names))
    for entry in archive.infolist():
        if entry.filename.startswith(ours) and entry.file_size > _MOST_BYTES:
            raise ManifestError(f"{path}: {entry.filename} claims {entry.file_size} bytes, which no such file has")
    for name in names:
        if not name.startswith(ours):  # ours are read, and judged, one by one
            try:
                with archive.open(name) as stream:
                    while stream.read(_CHUNK):
                        pass
            except (zipfile.BadZipFile, zlib.error, OSError, NotImplementedError, RuntimeError, EOFError) as error:
                raise ManifestError(f"{path} is damaged: {name} cannot be read ({error})") from None
    for folder in ours:
        package = folder[: -len(DIRECTORY) - 2]
        root: Files = zipfile.Path(archive, f"{package}/" if package else "")
        members = [name[len(folder) :] for name in names if name.startswith(folder) and not name.endswith("/")]
        yield Place(package.replace("/", "."), root, members)


def _below(names: list[str]) -> list[str]:
    return sorted(name[: -len(MANIFEST_FILE)] for name in names if f"/{name}".endswith(f"/{_TAIL}"))


def _in_folder(top: Path, named: str = "") -> Iterator[Place]:
    for folder, directories, _ in os.walk(top):
        directories.sort()
        inside = Path(folder, DIRECTORY)
        if (inside / MANIFEST_FILE).is_file():
            relative = Path(folder).relative_to(top).as_posix()
            name = named if relative == "." else relative.replace("/", ".")
            members = [
                Path(at, file).relative_to(inside).as_posix() for at, _, files in os.walk(inside) for file in files
            ]
            yield Place(name, Path(folder), sorted(members))
