# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The tutorial, followed to the letter: its files written, its commands run in one shell, what they print compared."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_pages import DOCS, Block, blocks_of

pytestmark = [pytest.mark.isolated, pytest.mark.xdist_group("isolated"), pytest.mark.timeout(900)]

REPOSITORY = DOCS.parent
PAGE = DOCS / "tutorial/first-kernel.md"
GPU = "7. With a GPU"


def script_of(blocks: list[Block], mark: str) -> tuple[str, list[str]]:
    """A shell script that does what the blocks say, and what each part of it prints according to them.

    A part ends with a line `mark`. A block of TOML without a file's name shows what is in `pyproject.toml` then.
    """
    lines, printed = ["set -eu"], []
    for block in blocks:
        text = block.text.rstrip("\n")
        if block.file:
            lines.append(f"cat > {shlex.quote(block.file)} <<'END_OF_FILE'\n{text}\nEND_OF_FILE")
        elif block.language == "toml":
            lines += ["cat pyproject.toml", f"echo {mark}"]
            printed.append(text)
        elif block.language == "console":
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                lines += [command, f"echo {mark}"]
                printed.append(output)
    return "\n".join(lines), printed


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with this project's own wheel, as an index would have it."""
    base = tmp_path_factory.mktemp("wheels")
    ignored = shutil.ignore_patterns(".*", "__pycache__", "_build", "dist", "build", "wheelhouse")
    shutil.copytree(REPOSITORY, base / "copy", ignore=ignored)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(base / "dist"), str(base / "copy")]
    subprocess.run(command, check=True, timeout=300)
    return base / "dist"


def test_to_the_letter(tmp_path: Path, wheels: Path) -> None:
    """Every step up to the last works without a GPU, and prints what the page says; the last says what is missing."""
    blocks = list(blocks_of(PAGE))
    assert blocks[-1].heading == GPU
    script, printed = script_of([block for block in blocks if block.heading != GPU], "@@")
    last = [block for block in blocks if block.heading == GPU]
    command = " && ".join(re.findall(r"^\$ (.*)$", last[0].text, re.MULTILINE))
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("HATCH_", "PYTHON"))}
    variables |= {"PIP_FIND_LINKS": wheels.as_uri(), "HATCH_CUDA_KERNELS_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        ["bash", "-c", f"{script}\nset +e\n({command}) 2>&1"],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        timeout=800,
    )
    shown = done.stdout.split("@@\n")
    assert len(shown) == len(printed) + 1, done.stdout[-2000:] + done.stderr[-2000:]
    for output, expected in zip(shown, printed, strict=False):
        if expected:
            assert output.rstrip("\n") == expected
    if done.returncode == 0:
        assert shown[-1].strip() == last[0].text.splitlines()[-1]
    else:
        assert last[-1].text.strip() in shown[-1]
