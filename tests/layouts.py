# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The projects under tests/projects, one for each layout, and what a wheel of each has to hold."""

from __future__ import annotations

import json
import shutil
import subprocess
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["LAYOUTS", "REQUIRED", "Layout", "copy_layout", "kernels_in"]

PROJECTS = Path(__file__).parent / "projects"


@dataclass(frozen=True)
class Layout:
    """What a project is for, the import package that loads its kernel, and package -> module -> kernels."""

    what: str
    app: str
    kernels: Mapping[str, Mapping[str, list[str]]]


def _one(package: str, module: str = "scale") -> dict[str, dict[str, list[str]]]:
    return {package: {module: ["scale"]}}


LAYOUTS = {
    "flat": Layout("package at the root", "flat_app", _one("flat_app")),
    "src_layout": Layout("`src/`, headers in `include/`", "src_app", _one("src_app", "kernels.scale")),
    "namespace": Layout("namespace package", "space.app", _one("space/app")),
    "single_module": Layout("a single `.py`, kernels beside it", "single_app", _one("single_app_kernels")),
    "several": Layout(
        "several packages in one wheel",
        "first",
        {**_one("first"), "second": {"shift": ["shift"]}},
    ),
    "outside": Layout("sources outside the package", "outside_app", _one("outside_app", "cuda.scale")),
    "rewriting": Layout("`only-include` and `sources` rewriting", "rewritten_app", _one("rewritten_app")),
    "hatch_toml": Layout("`hatch.toml`", "toml_app", _one("toml_app")),
    "vcs": Layout("version and hook of hatch-vcs", "vcs_app", _one("vcs_app")),
    "cython": Layout("hook of hatch-cython beside ours", "cython_app", _one("cython_app")),
}

REQUIRED = {"vcs": ["hatch-vcs"], "cython": ["hatch-cython", "Cython"]}
"""What a build of some layouts needs besides; isolated front ends install it."""


def copy_layout(layout: str, target: Path) -> Path:
    """A fresh checkout of a project; a git repository where its version comes from there."""
    shutil.copytree(PROJECTS / layout, target, ignore=shutil.ignore_patterns("__pycache__"))
    if layout == "vcs":
        git = ["git", "-C", str(target), "-c", "user.name=author", "-c", "user.email=author@example.org"]
        for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "all"], ["tag", "v1.0"]):
            subprocess.run([*git, *command], check=True, capture_output=True, timeout=60)
    return target


def kernels_in(wheel: Path) -> dict[str, dict[str, list[str]]]:
    """Package's folder -> module -> kernels, of every manifest in a wheel; every image that they list is there."""
    found: dict[str, dict[str, list[str]]] = {}
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            folder, separator, rest = name.partition("/_cuda_kernels/")
            if separator and rest == "manifest.json":
                modules = json.loads(archive.read(name))["modules"]
                found[folder] = {module["name"]: sorted(module["kernels"]) for module in modules}
                for module in modules:
                    for image in module["images"]:
                        assert archive.getinfo(f"{folder}{separator}{image['file']}").file_size == image["size"]
    return found
