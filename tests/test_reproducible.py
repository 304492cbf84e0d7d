# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""One tree gives one wheel, byte for byte: line info, anonymous names, `__FILE__` and toolkit headers included."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from projects import Project, make_project

TABLE = """\
archs = ["sm_80", "sm_90a", "compute_80"]
include-dirs = ["include"]
options = { lineinfo = true }
"""
FILES = {
    "demo/a.cu": (
        '#include "both.cuh"\n#include <cuda_fp16.h>\n#include <cuda/std/cstdint>\n'
        "namespace { __global__ void hidden(int *x) { *x = helper(*x); } }\n"
        "__global__ void shown(__half *x) { *x = __hadd(*x, *x); }\n"
    ),
    "demo/b.cu": (
        '#include "both.cuh"\n#include <assert.h>\n__device__ const char *where;\n'
        'extern "C" __global__ void k(int *x) { where = __FILE__; assert(*x); *x = helper(*x); }\n'
    ),
    "demo/deep/c.cu": 'extern "C" __global__ void c(int *x) { *x = 3; }\n',
    "include/both.cuh": "#pragma once\nstatic __device__ __noinline__ int helper(int v) { return v * clock(); }\n",
}


def build(project: Project, **env: str) -> bytes:
    """A cold build, without a cache; the wheel's bytes."""
    out = project.root.parent / f"out-{time.monotonic_ns()}"
    run = project.build(out=out, env={"HATCH_CUDA_KERNELS_CACHE": "0", **env})
    assert run.status == 0, run.output
    return project.wheel(out).read_bytes()


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, bytes]:
    """The tree, and the wheel that everything is compared with."""
    project = make_project(tmp_path_factory.mktemp("reference"), TABLE, FILES)
    return project, build(project)


Reference = tuple[Project, bytes]


@pytest.mark.parametrize(
    "env",
    [
        pytest.param({"PYTHONHASHSEED": "1", "HATCH_CUDA_KERNELS_JOBS": "3"}, marks=pytest.mark.slow),
        pytest.param({"PYTHONHASHSEED": "2", "TZ": "Asia/Tokyo", "LANG": "C", "LC_ALL": "C"}, marks=pytest.mark.slow),
        pytest.param({"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"}, marks=pytest.mark.slow),
    ],
    ids=["jobs", "time-zone", "locale"],
)
def test_environment(reference: Reference, env: dict[str, str]) -> None:
    """Hash seed, number of workers, time zone and locale leave no trace."""
    project, wheel = reference
    assert build(project, **env) == wheel


@pytest.mark.slow
@pytest.mark.parametrize("umask", [0o077, 0])
def test_umask(reference: Reference, umask: int) -> None:
    """The umask leaves no trace."""
    project, wheel = reference
    before = os.umask(umask)
    try:
        assert build(project) == wheel
    finally:
        os.umask(before)


@pytest.mark.slow
def test_place_order_and_time(reference: Reference, tmp_path: Path) -> None:
    """Another folder, HOME and TMPDIR, files created in another order and at another time, leave no trace."""
    project, wheel = reference
    copy = Project(tmp_path / "a much longer name (ä)" / "project", tmp_path / "cache")
    for name in sorted((p.relative_to(project.root) for p in project.root.rglob("*") if p.is_file()), reverse=True):
        target = copy.root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(project.root / name, target)
        os.utime(target, (1_000_000_000, 1_000_000_000))
    (tmp_path / "home").mkdir()
    (tmp_path / "tmp").mkdir()
    env = {"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp")}
    assert build(copy, **env) == wheel
    assert not list((tmp_path / "tmp").iterdir())


@pytest.mark.slow
def test_warm_and_cold(reference: Reference, tmp_path: Path) -> None:
    """A wheel out of the cache is the wheel out of the compiler."""
    project, wheel = reference
    for _ in range(2):
        assert build(project, HATCH_CUDA_KERNELS_CACHE=str(tmp_path / "cache")) == wheel


@pytest.mark.slow
def test_source_date_epoch(reference: Reference) -> None:
    """With SOURCE_DATE_EPOCH two builds are as equal as without."""
    project, _ = reference
    assert build(project, SOURCE_DATE_EPOCH="1700000000") == build(project, SOURCE_DATE_EPOCH="1700000000")


def _readable_by_others(path: Path) -> bool:
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in path.resolve().parents)


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder that another user can reach."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.skipif(not _readable_by_others(Path(sys.executable)), reason="this interpreter is private to its user")
def test_ordinary_user_and_read_only_tree(reference: Reference, elsewhere: Path) -> None:
    """W7: an ordinary user builds the same wheel from a tree that cannot be written."""
    project, wheel = reference
    shutil.copytree(project.root, elsewhere / "project")
    for path in (elsewhere / "project").rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    (elsewhere / "project").chmod(0o555)
    (elsewhere / "out").mkdir()
    (elsewhere / "out").chmod(0o777)
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(elsewhere / "out")],
        cwd=elsewhere / "project", user=1234, group=1234, extra_groups=[], capture_output=True, text=True, timeout=240,
        env={"HOME": "/nonexistent", "PATH": os.environ["PATH"], "HATCH_CUDA_KERNELS_CACHE": "0"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = (elsewhere / "out").glob("*.whl")
    assert built.read_bytes() == wheel
