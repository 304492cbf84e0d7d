# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The errors of a compiler's log, and whose they are: the files', or an instance's that is asked for."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

__all__ = ["NAME_MAP", "Complaint", "complaints"]

NAME_MAP = "__nv_name_map"
"""How NVRTC calls the file that holds the name expressions."""
_BEGIN = re.compile(r"^(?=[^\n()]*\(\d+\): (?:catastrophic )?(?:error|warning))", re.MULTILINE)
"""Where an error or a warning begins."""
_ERROR = re.compile(r"(?P<file>[^\n()]*)\((?P<line>\d+)\): (?:catastrophic )?error[^\n:]*: (?P<text>[^\n]*)")
_OUTERMOST = re.compile(
    r'.*\binstantiation of [^"\n]*"(?:[^"\n(]*[ *&])?(?P<name>(?:<unnamed>|[\w:])+)[^\n]*"'
    r"(?: at line (?P<line>\d+)(?: of (?P<file>[^\n]*?))?)?[ ]*$",
    re.DOTALL | re.MULTILINE,
)
"""The last instantiation that a message is about, and where that is asked for: a kernel is nowhere but by its name."""


class Complaint(NamedTuple):
    """One error."""

    file: str
    line: int
    text: str
    whole: str
    """With all that the compiler says of it."""

    @property
    def label(self) -> str:
        """The file by the name that the compiler was given, without steps back."""
        return posixpath.normpath(self.file.replace("\\", "/"))

    def is_of(self, kernels: Collection[str]) -> bool:
        """Whether it is there for what a name expression asks for alone: an instance of one of these kernels."""
        found = _OUTERMOST.match(self.whole)
        if found is None or self.file == NAME_MAP:
            return self.file == NAME_MAP
        return found["file"] == NAME_MAP or (not found["line"] and found["name"].rpartition("::")[2] in kernels)

    @property
    def asked_at(self) -> int | None:
        """The line of the name expressions that asks for it, where the compiler tells."""
        found = _OUTERMOST.match(self.whole)
        return int(found["line"]) if found is not None and found["file"] == NAME_MAP else None


def complaints(log: str) -> Iterator[Complaint]:
    """The errors of a log."""
    for message in _BEGIN.split(log):
        if error := _ERROR.match(message):
            yield Complaint(error["file"], int(error["line"]), error["text"], message)
