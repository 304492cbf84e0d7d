# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Files on their way into a wheel, which hatchling takes from a file system.

On some disks making a file takes longer than looking its content up, so that the first ones lie in memory, where there
is room; what they may take there is bounded, however large the wheel.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from .errors import ToolchainError
from .machine import memory_folder

__all__ = ["Staging"]

_MOST_IN_MEMORY = 64 << 20
_PREFIX = "hatch-cuda-kernels-wheel-"


class Staging:
    """Folders for files that nobody else can write to, until `remove`."""

    def __init__(self) -> None:
        self._disk: str | None = None
        self._memory: str | None = None
        self._room = 0
        if (folder := memory_folder()) is not None:
            with suppress(OSError):
                self._memory, self._room = tempfile.mkdtemp(prefix=_PREFIX, dir=folder), _MOST_IN_MEMORY

    def add(self, path: str, data: bytes) -> Path:
        """Write a file, and say where it is. Raises ToolchainError where there is no room for it."""
        if len(data) <= self._room and self._memory is not None:
            self._room -= len(data)
            with suppress(OSError):  # somebody else has filled it meanwhile
                return _write(Path(self._memory, path), data)
            self._room = 0
        try:
            self._disk = self._disk or tempfile.mkdtemp(prefix=_PREFIX)
            return _write(Path(self._disk, path), data)
        except OSError as error:
            what = "no room left" if error.errno == errno.ENOSPC else f"cannot write ({error.strerror})"
            raise ToolchainError(
                f"{what} in {self._disk or tempfile.gettempdir()}, where the files of the wheel wait for it; set "
                "TMPDIR to a folder elsewhere"
            ) from None

    def remove(self) -> None:
        """Delete them all."""
        for folder in (self._disk, self._memory):
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
        self._disk = self._memory = None


def _write(path: Path, data: bytes) -> Path:
    try:
        stream = path.open("wb")
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = path.open("wb")
    with stream:
        stream.write(data)
    os.chmod(path, 0o644)
    return path
