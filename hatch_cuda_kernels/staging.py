# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Files on their way into a wheel, which hatchling takes from a file system.

On some disks making a file takes longer than looking its content up, so that the first ones lie in memory, where there
is room; what they may take there is bounded, however large the wheel.
"""

from __future__ import annotations

import errno
import itertools
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from .errors import ToolchainError
from .machine import memory_folder
from .scratch import Scratch

__all__ = ["Staging", "room_for"]

_MOST_IN_MEMORY = 64 << 20
_LONG = 1 << 20
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)


class Staging:
    """Files in a folder that nobody else can write to, until `remove`; the later ones lie elsewhere, with a link there,
    so that what is in one folder of the wheel is in one folder here."""

    def __init__(self) -> None:
        self._folders: list[Scratch] = []
        self._disk: str | None = None
        self._memory: str | None = None
        self._room = 0
        if (folder := memory_folder()) is not None:
            with suppress(OSError):
                self._memory, self._room = self._make(folder), _MOST_IN_MEMORY

    def _make(self, parent: str | None = None) -> str:
        self._folders.append(Scratch("wheel-", parent))
        return self._folders[-1].path

    def add(self, path: str, data: bytes) -> str:
        """Write a file, and say where it is. Raises ToolchainError where there is no room for it."""
        if len(data) <= self._room and self._memory is not None:
            self._room -= len(data)
            with suppress(OSError):  # somebody else has filled it meanwhile
                return _write(f"{self._memory}/{path}", (data,))
            self._room = 0
        return self._add_on_disk(path, (data,))

    def stream(self, path: str, pieces: Iterable[bytes]) -> str:
        """The same for a file that may be too long to be held in memory."""
        pieces, begin, length = iter(pieces), [], 0
        for piece in pieces:
            begin.append(piece)
            length += len(piece)
            if length > _LONG:
                return self._add_on_disk(path, itertools.chain(begin, pieces))
        return self.add(path, b"".join(begin))

    def _add_on_disk(self, path: str, pieces: Iterable[bytes]) -> str:
        with room_for("the files of the wheel"):
            self._disk = self._disk or self._make()
            written = _write(f"{self._disk}/{path}", pieces)
            return written if self._memory is None else _link(f"{self._memory}/{path}", written)

    def remove(self) -> None:
        """Delete them all."""
        for folder in self._folders:
            folder.remove()
        self._folders, self._disk, self._memory = [], None, None


@contextmanager
def room_for(what: str) -> Iterator[None]:
    """Where temporary files cannot be written the error says what waits there, and what to do."""
    try:
        yield
    except OSError as error:
        found = "no room left" if error.errno == errno.ENOSPC else f"cannot write ({error.strerror})"
        raise ToolchainError(
            f"{found} in {tempfile.gettempdir()}, where {what} wait for it; set TMPDIR to a folder elsewhere"
        ) from None


def _write(path: str, pieces: Iterable[bytes]) -> str:
    try:
        handle = os.open(path, _FLAGS, 0o644)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        handle = os.open(path, _FLAGS, 0o644)
    try:
        for piece in pieces:
            left = memoryview(piece)
            while left:
                left = left[os.write(handle, left) :]
    finally:
        os.close(handle)
    os.chmod(path, 0o644)  # whatever the umask
    return path


def _link(path: str, target: str) -> str:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with suppress(FileNotFoundError):
        os.remove(path)
    os.symlink(target, path)
    return path
