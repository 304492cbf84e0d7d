# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Small projects that use the hook, and builds of them as their authors would run them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["KERNEL", "Project", "Run", "make_project", "manifest_of", "names_of"]

KERNEL = 'extern "C" __global__ void scale(float *x, float f) { x[threadIdx.x] *= f; }\n'

_PYPROJECT = """\
[build-system]
requires = ["hatchling", "hatch-cuda-kernels"]
build-backend = "hatchling.build"

[project]
name = "demo"
version = "1.0"
requires-python = ">=3.10"
"""


@dataclass(frozen=True)
class Run:
    """How a command ended."""

    status: int
    output: str
    report: dict[str, Any] | None = None

    @property
    def outcomes(self) -> dict[str, str]:
        """`module arch` -> compiled or cached, from the build report."""
        assert self.report is not None, self.output
        return {f"{image['module']} {image['arch']}": image["outcome"] for image in self.report["images"]}


@dataclass(frozen=True)
class Project:
    """A project on disk."""

    root: Path
    cache: Path

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Create or replace files."""
        for name, content in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def build(
        self,
        target: str = "wheel",
        *,
        out: Path | None = None,
        env: Mapping[str, str] | None = None,
        quiet: bool = False,
    ) -> Run:
        """Run hatchling on the project, with this interpreter's packages."""
        out = out or self.root.parent / "out"
        report = self.root.parent / "report.json"
        report.unlink(missing_ok=True)
        variables = {name: value for name, value in os.environ.items() if not name.startswith("HATCH_")}
        variables |= {
            "HATCH_CUDA_KERNELS_CACHE": str(self.cache),
            "HATCH_CUDA_KERNELS_REPORT": str(report),
            "HATCH_CUDA_KERNELS_JOBS": "1",
            **(env or {}),
        }
        command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out)]
        done = subprocess.run(
            command, cwd=self.root, env=variables, capture_output=True, text=True, errors="replace", timeout=240
        )
        value = json.loads(report.read_text()) if report.is_file() else None
        return Run(done.returncode, done.stdout + done.stderr, value)

    def wheel(self, out: Path | None = None) -> Path:
        """The wheel that was built."""
        (found,) = (out or self.root.parent / "out").glob("*.whl")
        return found


def make_project(
    base: Path, table: str = 'archs = ["sm_80"]', files: Mapping[str, str | bytes] | None = None, extra: str = ""
) -> Project:
    """A project `demo` below `base`: `table` is the body of the hook table, `extra` further TOML before it."""
    project = Project(base / "project", base / "cache")
    text = f"{_PYPROJECT}\n{extra}\n[tool.hatch.build.hooks.cuda-kernels]\n{table}\n"
    project.write({"pyproject.toml": text, "demo/__init__.py": "", **(files or {"demo/scale.cu": KERNEL})})
    return project


def names_of(wheel: Path) -> list[str]:
    """Paths in a wheel, `.dist-info` left out."""
    with zipfile.ZipFile(wheel) as archive:
        return sorted(name for name in archive.namelist() if ".dist-info/" not in name)


def manifest_of(wheel: Path, package: str = "demo") -> dict[str, Any]:
    """The manifest in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        value = json.loads(archive.read(f"{package}/_cuda_kernels/manifest.json"))
    assert isinstance(value, dict)
    return value
