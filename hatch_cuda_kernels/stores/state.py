# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What processes that share a cache tell each other beside its entries: locks, and how often it served."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from .files import read_regular

__all__ = ["Counts", "State"]

_MAX_STATISTICS = 1 << 16
_LINE = re.compile(r"(\S{1,2000})" + r" (\d{1,15})" * 5)


@dataclass(frozen=True)
class Counts:
    """What one layer, or the whole cache, did."""

    hits: int = 0
    misses: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    errors: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.hits + other.hits,
            self.misses + other.misses,
            self.bytes_read + other.bytes_read,
            self.bytes_written + other.bytes_written,
            self.errors + other.errors,
        )

    def __bool__(self) -> bool:
        return self != _NOTHING


_NOTHING = Counts()


class State:
    """A folder with locks and a file of counts. Its methods raise OSError."""

    def __init__(self, folder: Path, *, private: bool, make: Any) -> None:
        """`make` makes folders that are missing: what owns the cache knows with which mode."""
        self.folder = folder
        self._private = private
        self._make = make

    def lock(self, name: str) -> Any:
        """A lock among processes, not yet held."""
        import filelock

        folder = self.folder / "locks"
        self._make(folder)
        return filelock.FileLock(folder / f"{name}.lock")

    def clear_locks(self) -> None:
        """Remove the files of all locks: whoever holds one keeps it, and at worst somebody does its work again."""
        for path in (self.folder / "locks").glob("*.lock"):
            with contextlib.suppress(OSError):
                path.unlink()

    def add(self, counts: Mapping[str, Counts]) -> None:
        """Add to the totals: a few short lines in one write, so that nobody has to wait for anybody."""
        path = self.folder / "statistics"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        handle = os.open(path, flags, 0o644)
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(f"{path} is not a regular file")
            if status.st_size and not self.totals():
                raise OSError(f"{path} is no file of counts; name a folder of its own for the cache")
            if status.st_size > _MAX_STATISTICS:
                before = self.totals()
                counts = {name: before.get(name, Counts()) + counts.get(name, Counts()) for name in {*before, *counts}}
                os.ftruncate(handle, 0)
            lines = [" ".join(map(str, (quote(name), *astuple(found)))) + "\n" for name, found in counts.items()]
            os.write(handle, "".join(lines).encode())
        finally:
            os.close(handle)

    def totals(self) -> dict[str, Counts]:
        """Name -> counts of all processes so far."""
        found: dict[str, Counts] = {}
        with contextlib.suppress(FileNotFoundError):
            for line in read_regular(self.folder / "statistics", self._private).decode("ascii", "replace").splitlines():
                if match := _LINE.fullmatch(line):
                    name = unquote(match[1])
                    found[name] = found.get(name, Counts()) + Counts(*map(int, match.groups()[1:]))
        return found
