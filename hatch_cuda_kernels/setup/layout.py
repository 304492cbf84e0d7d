# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Which packages hatchling would ship, told from `pyproject.toml` and the tree alone: hatchling need not be there."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..modules import ShippedPackage
from .tomlfile import sub_table

__all__ = ["Layout", "guess_layout"]

_NO_PACKAGES = frozenset(
    "bench benchmark benchmarks build dist doc docs example examples scripts test tests tools".split()
)


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The import packages of a project."""

    packages: tuple[ShippedPackage, ...]
    to_name: tuple[str, ...] = ()
    """Folders that the wheel target has to be told of, since no folder is called as the project is."""


def guess_layout(project: Mapping[str, Any], build: Mapping[str, Any], files: Sequence[str]) -> Layout:
    """The packages of a project: `project` and `build` are its tables `project` and `tool.hatch.build`."""
    wheel = sub_table(build, "targets.wheel")
    for key in ("packages", "only-include", "include"):
        named = wheel.get(key) or build.get(key)
        if isinstance(named, list) and named:
            literal = [re.split(r"[*?[!]", pattern)[0].strip("/") for pattern in named if isinstance(pattern, str)]
            folders = [posixpath.normpath(folder) for folder in literal if folder]
            return Layout(packages=_packages(folders, files, keep_path=key != "packages"))
    inits = {posixpath.dirname(label) for label in files if posixpath.basename(label) == "__init__.py"}
    name = re.sub(r"[^\w.]+", "_", str(project.get("name", "")))
    for wanted in dict.fromkeys((name, re.sub(r"[-_.]+", "_", name).lower())):
        for folder in (wanted, f"src/{wanted}"):
            if wanted and folder in inits:
                return Layout(packages=_packages([folder], files))
        inside = [folder for folder in inits if wanted and re.fullmatch(rf"[^/]+/{re.escape(wanted)}", folder)]
        if len(inside) == 1:
            return Layout(packages=_packages([inside[0].split("/")[0]], files))
    source = "src" if any(label.startswith("src/") for label in files) and "src" not in inits else ""
    tops = {folder[len(source) :].lstrip("/").split("/")[0] for folder in inits if folder.startswith(source)}
    found = [posixpath.join(source, top) for top in sorted(tops - _NO_PACKAGES) if top.isidentifier()]
    return Layout(packages=_packages(found, files), to_name=tuple(found))


def _packages(folders: Sequence[str], files: Sequence[str], *, keep_path: bool = False) -> tuple[ShippedPackage, ...]:
    """The topmost packages in folders whose last part is at the root of the wheel, or all parts with `keep_path`."""
    found: dict[str, str] = {}
    for folder in folders:
        base = "" if keep_path else posixpath.dirname(folder)
        inits = sorted(
            (
                posixpath.dirname(label)
                for label in files
                if label.startswith(f"{folder}/") and label.endswith("/__init__.py")
            ),
            key=len,
        )
        for inside in inits or [folder]:
            name = inside[len(base) :].strip("/").replace("/", ".")
            if not any(name.startswith(f"{other}.") for other in found):
                found[name] = inside
    return tuple(ShippedPackage(name=name, folder=folder) for name, folder in sorted(found.items()))
