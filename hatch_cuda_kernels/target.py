# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What a command is pointed at: a wheel, a folder, or an importable package."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from .catalog import installed_package
from .errors import ManifestError
from .manifest import DIRECTORY, MANIFEST_FILE
from .package import Files, InstalledPackage, find_files

__all__ = ["Place", "TargetError", "open_packages", "places"]

_TAIL = f"{DIRECTORY}/{MANIFEST_FILE}"


class TargetError(Exception):
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


def places(target: str) -> list[Place]:
    """All packages with a manifest in `target`. Raises TargetError, or ManifestError where there is none."""
    path = Path(target)
    if path.is_file():
        found = list(_in_wheel(path))
    elif path.is_dir():
        found = list(_in_folder(path))
    elif all(part.isidentifier() for part in target.split(".")) and os.sep not in target:
        package = installed_package(target)
        folder = find_files(package.name)
        assert folder is not None
        return list(_in_folder(folder, package.name)) if isinstance(folder, Path) else [Place(package.name, folder)]
    else:
        raise TargetError(f"{target}: no such file or folder, and no import package")
    if not found:
        raise ManifestError(f"{target} holds no {_TAIL}; was it built with the hook `cuda-kernels`?")
    return found


def open_packages(target: str) -> list[InstalledPackage]:
    """All packages of `target`, manifests read. Raises TargetError and ManifestError."""
    return [place.open() for place in places(target)]


def _in_wheel(path: Path) -> Iterator[Place]:
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError, EOFError) as error:
        raise ManifestError(f"{path} is no wheel, or a damaged one ({error})") from None
    names = archive.namelist()
    for name in names:
        if not name.startswith(tuple(_below(names))):  # ours are read, and judged, one by one
            try:
                archive.read(name)
            except (zipfile.BadZipFile, zlib.error, OSError, NotImplementedError, RuntimeError, EOFError) as error:
                raise ManifestError(f"{path} is damaged: {name} cannot be read ({error})") from None
    for folder in _below(names):
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
