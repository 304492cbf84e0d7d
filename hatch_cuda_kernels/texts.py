# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What the text of a file asks of a compile: facts of its bytes alone, found once for all jobs of a process."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .sources import SourceFile, text_problem

__all__ = ["TextFacts", "facts_of"]

_LINE = rb"(?:[ \t\f\v]|\\[ \t]*\r?\n|/\*.*?\*/)*(?:l(?:\\[ \t]*\r?\n)*ine\b|\d)"
_LINES = {start: re.compile(start + _LINE, re.DOTALL) for start in (b"#", b"%:")}
"""A `#line` directive, or something like one. Patterns that begin with one thing are found many times quicker."""
_DETOUR = re.compile(rb'["<]([^"<>\n]*[^"<>\n/]/\.\./[^"<>\n]*)[">]')
_UPWARDS = re.compile(rb"(?:\.\./+)+")
_HAS_ABSOLUTE = re.compile(rb'__has_(?:include|include_next|embed)\b[^\n"<]*["<](/[^"<>\n]+)[">]')


@dataclass(frozen=True, kw_only=True)
class TextFacts:
    """What is known of a text."""

    problem: str | None
    """Why NVRTC would misread it, or None."""
    numbers_lines: bool
    """Whether it may have a `#line` directive."""
    detours: tuple[str, ...]
    """Headers that it names by way of a folder, as in `#include "a/../b.h"`."""
    climbs: int
    """How many folders up it names a file, at most."""
    absolute: tuple[str, ...]
    """Absolute paths that it asks for by `__has_include`."""


_FACTS: dict[str, TextFacts] = {}


def facts_of(file: SourceFile) -> TextFacts:
    """The facts of a file's text."""
    if file.sha256 not in _FACTS:
        data = file.data
        detours = _DETOUR.finditer(data) if b"/../" in data else ()
        climbs = _UPWARDS.finditer(data) if b"../" in data else ()
        _FACTS[file.sha256] = TextFacts(
            problem=text_problem(data) or _encoding_problem(data),
            numbers_lines=any(start in data and pattern.search(data) for start, pattern in _LINES.items()),
            detours=tuple(dict.fromkeys(match[1].decode("utf-8", "surrogateescape") for match in detours)),
            climbs=max((match[0].count(b"../") for match in climbs), default=0),
            absolute=tuple(match[1].decode("utf-8", "surrogateescape") for match in _HAS_ABSOLUTE.finditer(data)),
        )
    return _FACTS[file.sha256]


def _encoding_problem(data: bytes) -> str | None:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return (
            f"not UTF-8 at offset {error.start}: the compiler could take what follows, a line end among it, for a "
            "part of that character; save the file as UTF-8"
        )
    return None
