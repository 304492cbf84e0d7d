# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Whole builds killed at random moments, and builds on a full file system: nothing is lost, nothing wrong is left."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from jobs import SLOW, can_mount, in_mounts
from projects import KERNEL, Project, make_project

from hatch_cuda_kernels.cache import KernelCache

SHORT = bool(os.environ.get("HATCH_CUDA_KERNELS_TEST_SHORT"))


def tree_of(project: Project) -> dict[str, bytes]:
    """Every file of the project."""
    return {str(path): path.read_bytes() for path in sorted(project.root.rglob("*")) if path.is_file()}


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("count", [20 if SHORT else 200])
def test_killed_builds(tmp_path: Path, count: int) -> None:
    """W4, R5: SIGKILL at random moments of builds: no wheel or a whole one, the tree as before, a cache that verifies,
    and then the build of an untouched cache."""
    draw = random.Random(count)
    files = {f"demo/k{number}.cu": KERNEL.replace("scale", f"k{number}") for number in range(4)}
    project = make_project(tmp_path, 'archs = ["sm_80", "sm_90"]', files)
    env = {**os.environ, "HATCH_CUDA_KERNELS_CACHE": str(project.cache), "TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "tmp").mkdir()
    out = tmp_path / "killed"
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    for number in range(count):
        project.write({"demo/k0.cu": f"// {number}\n" + files["demo/k0.cu"]})
        before = tree_of(project)
        nothing = subprocess.DEVNULL
        process = subprocess.Popen(command, cwd=project.root, env=env, stdout=nothing, stderr=nothing)
        time.sleep(draw.uniform(0.1, 1.6))
        process.kill()
        process.wait()
        assert tree_of(project) == before
        for wheel in out.glob("*.whl"):  # a build that had done its work when it was killed
            with zipfile.ZipFile(wheel) as archive:
                assert archive.testzip() is None
                assert sum(name.endswith(".cubin") for name in archive.namelist()) == 8
            wheel.unlink()
    store = KernelCache.open(str(project.cache))
    assert not list(store.verify())
    assert project.build().status == 0
    assert set(project.build().outcomes.values()) == {"cached"}
    rebuilt = project.wheel().read_bytes()
    project.wheel().unlink()
    assert project.build(env={"HATCH_CUDA_KERNELS_CACHE": "0"}).status == 0
    assert project.wheel().read_bytes() == rebuilt


@pytest.mark.skipif(os.name == "nt", reason="a process group is posix")
def test_interrupted_build(tmp_path: Path) -> None:
    """Ctrl-C ends a build at once, with one line and no traceback, and what was compiled is kept."""
    project = make_project(tmp_path, 'archs = ["sm_80"]', {"demo/a.cu": KERNEL, "demo/slow.cu": SLOW})
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "out")]
    env = {**os.environ, "HATCH_CUDA_KERNELS_CACHE": str(project.cache), "HATCH_CUDA_KERNELS_JOBS": "2"}
    process = subprocess.Popen(
        command, cwd=project.root, env=env, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stderr
    seen = process.stderr.readline()
    while "[1/2]" not in seen:
        seen = process.stderr.readline()
        assert seen
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert errors.count("\n") == 1 and "interrupted" in errors
    project.write({"demo/slow.cu": KERNEL.replace("scale", "quick")})
    assert sorted(project.build().outcomes.values()) == ["cached", "compiled"]


@pytest.mark.skipif(not can_mount(), reason="mounting in a namespace is not allowed here")
@pytest.mark.slow
def test_full_disk(tmp_path: Path) -> None:
    """W4: a full file system ends the build without a wheel, the tree as before; with room it goes on."""
    project = make_project(tmp_path, 'archs = ["sm_80", "sm_90"]')
    small = tmp_path / "small"
    small.mkdir()
    before = tree_of(project)
    code = (
        "import os, subprocess, sys\n"
        "small, root = sys.argv[1:]\n"
        "env = {**os.environ, 'TMPDIR': small, 'HATCH_CUDA_KERNELS_CACHE': small + '/cache'}\n"
        "done = subprocess.run([sys.executable, '-m', 'hatchling', 'build', '-t', 'wheel', '-d', small + '/out'], "
        "cwd=root, env=env, capture_output=True, text=True)\n"
        "wheels = [name for name in os.listdir(small + '/out') if name.endswith('.whl')] "
        "if os.path.isdir(small + '/out') else []\n"
        "print(done.returncode, len(wheels), done.stderr)\n"
    )
    done = in_mounts(
        f"mount -t tmpfs -o size=16k none '{small}'", [sys.executable, "-c", code, str(small), str(project.root)]
    )
    status, wheels, *_ = done.stdout.split()
    assert status == "1", done.stdout
    assert "no room left" in done.stdout and "Traceback" not in done.stdout, done.stdout
    assert wheels == "0"
    assert tree_of(project) == before
    assert project.build().status == 0


@pytest.mark.skipif(os.name == "nt", reason="signals are posix")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
@pytest.mark.slow
def test_ended_build(tmp_path: Path, name: str) -> None:
    """A build that is told to end, or whose terminal closes, leaves nothing, however often it is told."""
    project = make_project(tmp_path, 'archs = ["sm_80"]', {"demo/a.cu": KERNEL, "demo/slow.cu": SLOW})
    (tmp_path / "tmp").mkdir()
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "out")]
    env = {**os.environ, "HATCH_CUDA_KERNELS_CACHE": str(project.cache), "HATCH_CUDA_KERNELS_JOBS": "2"}
    env["TMPDIR"] = str(tmp_path / "tmp")
    process = subprocess.Popen(command, cwd=project.root, env=env, stderr=subprocess.PIPE, text=True)
    assert process.stderr
    while "[1/2]" not in process.stderr.readline():
        assert process.poll() is None
    for _ in range(3):
        process.send_signal(getattr(signal, name))
    process.communicate(timeout=60)
    assert process.returncode == 128 + getattr(signal, name)
    assert not list((tmp_path / "tmp").iterdir()) and not list(tmp_path.glob("out/*.whl"))
