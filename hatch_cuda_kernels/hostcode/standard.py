# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Types of the C++ library that are not the same with libcu++ as with the library that nvcc uses on Linux."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .tokens import code_of

__all__ = ["names_integers", "other_integers", "other_layouts"]

_LAYOUT = re.compile(
    r"(?<![\w:])(?:::\s*)?std\s*::\s*(complex|tuple|max_align_t|array\s*<[^;<>{}()]{0,200},\s*0\s*>)(?!\w)"
)
_FAST = re.compile(r"(?<![\w:])(?:(?:::\s*)?std\s*::\s*|::\s*)?(u?int_fast(?:16|32)_t)(?!\w)")
"""Eight bytes with the host's library on Linux, two and four with libcu++."""
_INTEGER = re.compile(r"\bu?int(?:64|ptr|max|_least64|_fast(?:16|32|64))_t\b")
_LONG = r"(?:(?:un)?signed\s+)?long\b(?!\s+double)"
_SPECIALISED = re.compile(rf"\btemplate\s*<\s*>[^;{{}}()<]{{0,200}}<[^;{{}}()]{{0,200}}?\b{_LONG}")
_COMPARED = re.compile(rf"\bis_same(?:_v)?\s*<[^;{{}}()]{{0,200}}?\b{_LONG}")
_OVERLOAD = re.compile(
    r"\b(\w+)\s*\(\s*(?:const\s+)?(?:(?:un)?signed\s+)?long\b(?P<twice>\s+long\b)?(?!\s+double)\s*(?:\w+\s*)?[,)]"
)


def other_layouts(data: bytes) -> Iterator[tuple[int, str]]:
    """Line and name where a text first uses each type of the library whose size, alignment or order differs."""
    text, seen = code_of(data.decode("latin-1")), set()
    for match in sorted((m for each in (_LAYOUT, _FAST) for m in each.finditer(text)), key=lambda m: m.start()):
        name = re.sub(r"\s+", " ", match[1])
        if name not in seen:
            seen.add(name)
            yield text.count("\n", 0, match.start()) + 1, name if match.re is _FAST else f"std::{name}"


def other_integers(data: bytes) -> Iterator[tuple[int, str]]:
    """Line and text where code tells `long` from `long long`: a specialisation, a comparison, overloads of both.

    `int64_t` and its like are the first with nvcc on Linux and the second with libcu++.
    """
    text = code_of(data.decode("latin-1"))
    found = {match.start(): match[0] for each in (_SPECIALISED, _COMPARED) for match in each.finditer(text)}
    takes: dict[str, dict[bool, re.Match[str]]] = {}
    for match in _OVERLOAD.finditer(text):
        takes.setdefault(match[1], {}).setdefault(match["twice"] is not None, match)
    found |= {both[False].start(): both[False][0] for both in takes.values() if len(both) == 2}
    for start, what in sorted(found.items()):
        yield text.count("\n", 0, start) + 1, " ".join(what.split())


def names_integers(data: bytes) -> bool:
    """Whether a text names one of the integer types that differ."""
    return _INTEGER.search(code_of(data.decode("latin-1"))) is not None
