# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Texts that are written down in any order and read in theirs, without being held in memory when they are many."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence

from .staging import room_for

__all__ = ["Ledger"]

_IN_MEMORY = 1 << 20


class Ledger:
    """Rows of texts by number. Few lie in memory, more in a file that nobody else sees."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115
        self._end = 0
        self._places: dict[int, tuple[int, ...]] = {}
        """Number of a row -> where its texts begin, and where the last one ends."""

    def write(self, number: int, texts: Sequence[str]) -> None:
        """Write a row down. Raises ToolchainError where there is no room for it."""
        places = [self._end]
        with room_for("the documents of the wheel"):
            self._file.seek(self._end)
            for text in texts:
                places.append(places[-1] + self._file.write(text.encode()))
        self._end = places[-1]
        self._places[number] = tuple(places)

    def read(self, number: int, column: int) -> str:
        """One text of a row."""
        begin, end = self._places[number][column : column + 2]
        self._file.seek(begin)
        return self._file.read(end - begin).decode()

    def column(self, column: int) -> Iterator[str]:
        """That text of every row, in the order of their numbers."""
        return (self.read(number, column) for number in sorted(self._places))

    def close(self) -> None:
        """Forget them."""
        self._file.close()
