# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Temporary folders: none outlives its process for long, and none of anybody else's is touched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hatch_cuda_kernels import scratch
from hatch_cuda_kernels.scratch import Scratch

MAKER = """
import sys, time
from hatch_cuda_kernels.scratch import Scratch
folder = Scratch("test-", sys.argv[1])
open(folder.path + "/file", "w").close()
print(folder.path, flush=True)
{end}
"""
LONG_AGO = time.time() - 3600


def start(parent: Path, end: str) -> tuple[subprocess.Popen[str], Path]:
    """A process that has a folder in `parent`, and the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", MAKER.format(end=end), str(parent)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    return process, Path(process.stdout.readline().strip())


@pytest.fixture(autouse=True)
def anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test looks for what was left."""
    monkeypatch.setattr(scratch, "_swept", set())


def test_removed(tmp_path: Path) -> None:
    """A folder is this user's alone, and goes with all that is in it; twice does no harm."""
    folder = Scratch("test-", str(tmp_path))
    path = Path(folder.path)
    assert path.parent == tmp_path and path.name.startswith("hatch-cuda-kernels-test-")
    assert os.name == "nt" or path.stat().st_mode & 0o777 == 0o700
    (path / "inside").mkdir()
    (path / "inside/file").touch()
    folder.remove()
    folder.remove()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("end", ["", "raise SystemExit(3)", "raise KeyError", "del folder"])
def test_process_ends(tmp_path: Path, end: str) -> None:
    """However a process ends by itself, its folder goes with it."""
    process, path = start(tmp_path, end)
    process.communicate()
    assert path.parent == tmp_path and not path.exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no children that have the same objects")
def test_child_keeps_it(tmp_path: Path) -> None:
    """A child that was forked off does not delete what its parent has, nor lets go of the lock."""
    process, path = start(
        tmp_path, "import os\nif os.fork() == 0: raise SystemExit\nos.wait()\nprint(flush=True)\ntime.sleep(60)"
    )
    assert process.stdout and process.stdout.readline()
    assert (path / "file").exists()
    process.kill()
    process.communicate()


@pytest.mark.skipif(os.name == "nt", reason="signals are posix")
def test_killed(tmp_path: Path) -> None:
    """What a killed process left goes when the next one makes a folder there, and not before it is surely dead."""
    dead, left = start(tmp_path, "time.sleep(60)")
    living, kept = start(tmp_path, "time.sleep(60)")
    dead.send_signal(signal.SIGKILL)
    dead.communicate()
    Scratch("test-", str(tmp_path)).remove()
    assert left.exists() and kept.exists()  # a folder of this minute may be about to be locked
    scratch._swept.clear()
    for path in (left, kept):
        os.utime(path, (LONG_AGO, LONG_AGO))
    Scratch("test-", str(tmp_path)).remove()
    assert not left.exists() and (kept / "file").exists()
    living.kill()
    living.communicate()


def test_others_are_left_alone(tmp_path: Path) -> None:
    """What is not made here stays, whatever its name and age: an unpacked sdist, a link, a file, an open folder."""
    sources = tmp_path / "hatch-cuda-kernels-0.1.0"
    marked = tmp_path / "hatch-cuda-kernels-open"
    for path in (sources, marked):
        path.mkdir()
        (path / "pyproject.toml").touch()
    marked.chmod(0o755)
    (marked / scratch._ALIVE).touch()
    (tmp_path / "hatch-cuda-kernels-file").touch()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(0o700)
    (elsewhere / scratch._ALIVE).touch()
    (tmp_path / "hatch-cuda-kernels-link").symlink_to(elsewhere)
    for path in (sources, marked, elsewhere):
        os.utime(path, (LONG_AGO, LONG_AGO))
    before = sorted(tmp_path.rglob("*"))
    Scratch("test-", str(tmp_path)).remove()
    assert sorted(tmp_path.rglob("*")) == before
