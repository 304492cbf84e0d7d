# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The front ends that authors use, run as they run them, apart from this process's settings of Python and hatch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["FRONT_ENDS", "build", "report_of", "run"]


def run(*command: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """Run a command and expect success; its output."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("HATCH_", "PYTHON"))}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**variables, **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


FRONT_ENDS: dict[str, list[str]] = {
    "pip": ["-m", "pip", "wheel", "--no-deps", "-w"],
    "build": ["-m", "build", "-o"],
    "uv": ["-m", "uv", "build", "--python", sys.executable, "-o"],
    "hatch": ["-m", "hatch", "build"],
}


def build(front_end: str, project: Path, out: Path, env: Mapping[str, str], *options: str) -> Path:
    """Build a project with a front end, from another folder where it can; the wheel."""
    command = [sys.executable, *FRONT_ENDS[front_end], str(out), *options]
    if front_end == "hatch":  # takes no project
        run(*command, cwd=project, env=env)
    else:
        run(*command, str(project), cwd=project.parent, env=env)
    (wheel,) = out.glob("*.whl")
    return wheel


def report_of(way: Mapping[str, str]) -> dict[str, Any]:
    """What the last build said of itself."""
    value = json.loads(Path(way["HATCH_CUDA_KERNELS_REPORT"]).read_text())
    assert isinstance(value, dict)
    return value
