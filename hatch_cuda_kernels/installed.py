# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Headers that other installed packages bring: where they are, found without importing the packages.

Such a file is known by a label like `site-packages/some_library/include/x.cuh`, as if the package lay in the project.
So everything that holds for a project's own headers holds for these: only what is listed in a key is compiled, and
the fallback is shipped what a source can reach of them.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
from collections.abc import Callable, Iterable
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from .libraries import LIBRARIES, narrowed

__all__ = [
    "INSTALLED",
    "find_installed",
    "installed_labels",
    "installed_problem",
    "is_installed",
    "is_of_library",
    "libraries_of",
    "narrowed_installed",
]

INSTALLED = "site-packages"
"""First part of the labels of installed headers."""


def installed_labels(spelling: str) -> list[str]:
    """Labels of what `include-packages` names: a folder, or a library by its package alone (see libraries.py)."""
    spelling = spelling.strip("/")
    folders = LIBRARIES[spelling].folders if spelling in LIBRARIES else ("",)
    return [f"{INSTALLED}/{spelling}/{folder}".rstrip("/") for folder in folders]


def is_installed(label: str, root: Path) -> bool:
    """Whether a label is that of an installed package's file. A folder of the project by that name comes first."""
    return label.startswith(f"{INSTALLED}/") and not (root / INSTALLED).exists()


def libraries_of(labels: Iterable[str]) -> list[str]:
    """Packages of the known libraries whose include folders are among these labels."""
    found = set(labels)
    return [package for package in LIBRARIES if found.intersection(installed_labels(package))]


def is_of_library(label: str) -> bool:
    """Whether a label is that of a header of a library that is known by its headers for device code."""
    return label.startswith(tuple(f"{INSTALLED}/{package}/" for package in LIBRARIES))


def find_installed(label: str, root: Path) -> Path:
    """Where the file or folder of an installed package's label lies, or would lie if there were one."""
    top, _, inside = label.removeprefix(f"{INSTALLED}/").partition("/")
    paths = [folder / inside for folder in _folders(top, root)]
    return next((path for path in paths if path.exists()), root / label)


def narrowed_installed(label: str, root: Path) -> bytes | None:
    """What stands for an installed header that no device code can use as it is; None where it stands for itself."""
    top, _, inside = label.removeprefix(f"{INSTALLED}/").partition("/")
    library = LIBRARIES.get(top)
    if library is None:
        return None
    package = next((folder for folder in _folders(top, root) if (folder / inside).is_file()), None)
    return None if package is None else narrowed(package, library, inside)


def installed_problem(label: str, root: Path) -> str | None:
    """What is wrong with a folder that `include-packages` names, or None."""
    spelling = label.removeprefix(f"{INSTALLED}/")
    top = spelling.partition("/")[0]
    if (root / INSTALLED).exists():
        return f"{spelling}: the project has a folder {INSTALLED} of its own, which stands for installed packages here"
    if not _folders(top, root):
        return (
            f"there is no installed package {top}; install the distribution that brings it, and name that in "
            "build-system.requires, so that an isolated build has it"
        )
    if not find_installed(label, root).is_dir():
        return f"the installed package {top} has no folder {spelling.partition('/')[2]}"
    return None


def _folders(top: str, root: Path) -> tuple[Path, ...]:
    return _search(top, os.path.realpath(root), tuple(sys.path))


@functools.lru_cache(maxsize=64)
def _search(top: str, project: str, path: tuple[str, ...]) -> tuple[Path, ...]:
    """Folders of an import package. Those that lie in the project itself, which may be on the search path, are none."""
    outside = [entry for entry in path if entry and os.path.realpath(entry) != project]
    found: dict[Path, None] = {}
    finders: list[Callable[[], ModuleSpec | None]] = [
        lambda: PathFinder.find_spec(top, outside),
        lambda: importlib.util.find_spec(top),  # an editable install may have a finder of its own
    ]
    for find in finders:
        try:
            spec = find()
        except (ImportError, ValueError, AttributeError):
            continue
        for location in (spec.submodule_search_locations if spec else None) or ():
            if os.path.realpath(os.path.dirname(location)) != project and os.path.isdir(location):
                found[Path(location)] = None
    return tuple(found)
