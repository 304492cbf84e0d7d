# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The kernels that host code launches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from .declarations import Parser
from .tokens import WORD

__all__ = ["Launch", "before_launch", "find_launches"]


class Launch(NamedTuple):
    """A kernel as some host code launches it: `scale<float, 128>` and where."""

    line: int
    kernel: str


def find_launches(parser: Parser) -> Iterator[Launch]:
    """What stands before each `<<<`."""
    tokens = parser.tokens
    opening = {closed: opened for opened, closed in parser.match.items()}
    for index, token in enumerate(tokens):
        if token.text != "<<<" or index == 0:
            continue
        start = before_launch(parser, opening, index)
        if start is None or tokens[start].kind != WORD or tokens[start].text == "operator":
            continue
        while start > 1 and tokens[start - 1].text == "::" and tokens[start - 2].kind == WORD:
            start -= 2
        shown = parser.text[tokens[start].start : tokens[index - 1].end]
        yield Launch(parser.line(start), re.sub(r"\s+", " ", shown))


def before_launch(parser: Parser, opening: Mapping[int, int], index: int) -> int | None:
    """The token before a `<<<` and its template arguments; `opening` has the bracket that each closing one closes."""
    tokens, start = parser.tokens, index - 1
    if start >= 0 and tokens[start].text == ">":
        depth = 0
        while start > 0 and index - start < 512:
            start = opening.get(start, start)
            depth += (tokens[start].text == ">") - (tokens[start].text == "<")
            if depth == 0:
                break
            start -= 1
        start -= 1
    return start if start >= 0 else None
