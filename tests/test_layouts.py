# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Every layout of a project, each a small real one under tests/projects: built, sent through an sdist, and used."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from fake_driver import COMPILER, environment, read_log
from layouts import LAYOUTS, REQUIRED, copy_layout, kernels_in
from support import run_python


def build(project: Path, out: Path, cache: Path) -> Path:
    """Build an sdist and a wheel from the tree with hatchling; the wheel."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("HATCH_")}
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out)]
    variables["HATCH_CUDA_KERNELS_CACHE"] = str(cache)
    done = subprocess.run(command, cwd=project, env=variables, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(out.glob("*.whl"))


LOAD = """
import importlib
report(attempt(lambda: importlib.import_module(sys.argv[1]).scale()))
"""


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layout(layout: str, tmp_path: Path, build_cache: Path, fake_library: Path) -> None:
    """The wheel has its kernels where they belong, the wheel from the sdist is the same, and the app loads them."""
    for distribution in REQUIRED.get(layout, ()):
        try:
            version(distribution)
        except PackageNotFoundError:
            pytest.skip(f"{distribution} is not installed")
    wheel = build(copy_layout(layout, tmp_path / "project"), tmp_path / "out", build_cache)
    assert kernels_in(wheel) == LAYOUTS[layout].kernels
    (sdist,) = (tmp_path / "out").glob("*.tar.gz")
    shutil.unpack_archive(sdist, tmp_path / "unpacked")
    again = build(next((tmp_path / "unpacked").iterdir()), tmp_path / "again", build_cache)
    assert contents(again) == contents(wheel)
    if shutil.which(COMPILER) is None:
        return
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    variables = environment(fake_library, log=tmp_path / "log", capabilities=("8.6",), driver="13.5")
    variables["HATCH_CUDA_KERNELS_JIT"] = "0"
    assert run_python(LOAD, variables, site, arguments=[LAYOUTS[layout].app]).value == "ok"
    loads = [entry for entry in read_log(tmp_path / "log") if entry["call"] in ("library_load", "module_load")]
    assert [entry["arch"] for entry in loads] == ["sm_80"]


def contents(wheel: Path) -> dict[str, bytes]:
    """What a wheel ships, extension modules and metadata aside."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name and not name.endswith((".so", ".c"))]
        return {name: archive.read(name) for name in names}
