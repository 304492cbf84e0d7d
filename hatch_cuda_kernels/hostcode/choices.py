# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Code that is chosen by what nvcc has from its host compiler and NVRTC has not: nothing says that it is the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .names import HOST_HEADERS
from .tokens import DEFINE, DIRECTIVE, directive_name, tokenize

__all__ = ["host_choices"]

_MACRO = re.compile(r"\b(?:__NVCC__|__GNUC__|__GNUG__|__clang__|__linux__|__unix__|__x86_64__|_MSC_VER|NAN|INFINITY)\b")
_HAS_INCLUDE = re.compile(r"__has_include\s*\(\s*<([^>\n]+)>\s*\)")


@dataclass
class _Open:
    """A conditional that is not closed yet."""

    start: int
    macro: str | None
    code: bool = False


def _chooses_by(directive: str) -> str | None:
    """What of a host compiler a directive asks for."""
    if match := _MACRO.search(directive):
        return match[0]
    asked = (match[1] for match in _HAS_INCLUDE.finditer(directive))
    return next((f"__has_include(<{header}>)" for header in asked if HOST_HEADERS.fullmatch(header)), None)


def host_choices(data: bytes) -> Iterator[tuple[int, str]]:
    """Line and question of each conditional of that kind which has code in what is left of a file, or a macro that the
    code uses."""
    text = data.decode("latin-1")
    tokens = tokenize(text)
    words = {token.text for token in tokens if token.kind != DIRECTIVE}
    stack: list[_Open] = []
    for token in tokens:
        name = directive_name(token.text) if token.kind == DIRECTIVE else None
        if name in ("if", "ifdef", "ifndef"):
            stack.append(_Open(token.start, _chooses_by(token.text)))
        elif name == "elif" and stack:
            stack[-1].macro = stack[-1].macro or _chooses_by(token.text)
        elif name == "endif" and stack:
            closed = stack.pop()
            if closed.macro is not None and closed.code:
                yield text.count("\n", 0, closed.start) + 1, closed.macro
            elif closed.code and stack:
                stack[-1].code = True
        elif stack:
            match = DEFINE.match(token.text) if name == "define" else None
            stack[-1].code |= name is None or (match is not None and match[1] in words)
