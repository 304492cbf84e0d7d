# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""How a build shows its progress: on a terminal, in a log, and when it is told to be quiet."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from projects import KERNEL, Project, make_project

from hatch_cuda_kernels.progress import Progress

CLOSING = re.compile(r"cuda-kernels: 4 images: 0 cached, 4 compiled in \d+\.\d s, \d+(\.\d)? kB, sm_80 compute_80\r?\n")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Two modules for two architectures."""
    files = {"demo/a.cu": KERNEL, "demo/b.cu": KERNEL.replace("scale", "other")}
    return make_project(tmp_path, 'archs = ["sm_80", "compute_80"]', files)


def build_in(project: Project, stderr: int, **env: str) -> None:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("HATCH_")}
    variables |= {"HATCH_CUDA_KERNELS_CACHE": str(project.cache), "TERM": "xterm", **env}
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel"]
    subprocess.run(command, cwd=project.root, env=variables, stdout=subprocess.DEVNULL, stderr=stderr, timeout=240)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals of this kind")
@pytest.mark.parametrize("failing", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_terminal(project: Project, failing: bool) -> None:
    """On a terminal one line moves, and is gone before the closing line, or the errors, are printed."""
    if failing:
        project.write({"demo/b.cu": "__global__ void broken("})
    ours, theirs = os.openpty()
    build_in(project, theirs)
    os.close(theirs)
    output = b""
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:
            break
        if not chunk:
            break
        output += chunk
    os.close(ours)
    text = output.decode()
    assert "\rcuda-kernels: [0/4] 0 s" in text
    assert "[4/4]" in text
    last = text.rpartition("\r\x1b[K")[2]
    assert "[4/4]" not in last
    if failing:
        assert last.startswith("cuda-kernels: 2 of 4 images failed:")
    else:
        assert CLOSING.search(last)


@pytest.mark.slow
def test_log(project: Project) -> None:
    """In a log each image is a line, and the last line tells the whole."""
    run = project.build()
    lines = [line for line in run.output.splitlines() if line.startswith("cuda-kernels: ")]
    assert [line.split("]")[0] for line in lines[:-1] if "[" in line][:4] == [
        f"cuda-kernels: [{done}/4" for done in range(1, 5)
    ]
    assert CLOSING.search(run.output)
    assert "\x1b" not in run.output and "\r" not in run.output
    assert run.report is not None
    for image in run.report["images"]:
        assert 0 < image["seconds"] <= image["finished"] <= run.report["seconds"]
    again = project.build()
    assert "0 compiled" in again.output
    assert again.report is not None
    assert {image["finished"] for image in again.report["images"]} == {None}


@pytest.mark.slow
def test_quiet(project: Project) -> None:
    """HATCH_QUIET leaves warnings, and twice of it nothing."""
    run = project.build(env={"HATCH_QUIET": "2"})
    assert run.status == 0
    assert "cuda-kernels:" not in run.output
    lines = project.build(env={"HATCH_QUIET": "1"}).output.splitlines()
    assert all(line.startswith("cuda-kernels: warning: ") for line in lines if line.startswith("cuda-kernels:"))


def test_long_names_stay_on_their_line() -> None:
    """A line longer than the terminal would not be drawn over whole."""
    stream = io.StringIO()
    progress = Progress("cuda-kernels", print, stream)
    progress.step(1, 2, "x" * 500)
    progress.clear()
    drawn = [part for part in stream.getvalue().split("\r") if "x" in part]
    assert drawn and all(len(part.removesuffix("\x1b[K")) < 200 for part in drawn)
    assert stream.getvalue().endswith("\r\x1b[K")
    progress.clear()


@pytest.mark.skipif(os.name == "nt", reason="the shell is posix")
@pytest.mark.slow
def test_no_standard_error(tmp_path: Path) -> None:
    """A build whose standard error is closed, as a service's may be, is a build."""
    project = make_project(tmp_path)
    command = f"exec {sys.executable} -m hatchling build -t wheel -d {tmp_path / 'out'} 2>&-"
    env = {**os.environ, "HATCH_CUDA_KERNELS_CACHE": str(project.cache)}
    done = subprocess.run(["/bin/sh", "-c", command], cwd=project.root, env=env, timeout=120, check=False)
    assert done.returncode == 0 and project.wheel().is_file()
