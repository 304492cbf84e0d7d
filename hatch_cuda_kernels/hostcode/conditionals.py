# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""A conditional whose question only a header of the host answers: `#if !EIGEN_VERSION_AT_LEAST(3, 4, 0)`.

Without the header that is an error. Where no arm of it has code for the device, nor a macro that anything else could
use, it makes no difference to a kernel which arm is taken, and all of it can go.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection
from typing import NamedTuple

from .declarations import Declaration, Parser
from .tokens import DEFINES_OR_UNDEFINES, DIRECTIVE, INCLUDE, directive_name

__all__ = ["Undecided", "undecided"]


_NAMED = frozenset("function class variable macro".split())
"""What can go by its name alone: nothing that asserts, enumerates or brings other names into sight."""


class Undecided(NamedTuple):
    """A conditional with all of its arms."""

    first: int
    last: int
    """Its first and its last token."""
    directives: list[int]
    """The tokens of all directives in it."""
    declarations: list[Declaration]
    macros: set[str]
    """What its arms define or undefine."""


def undecided(parser: Parser, line: int, own: Collection[str]) -> Undecided | None:
    """The conditional that asks in that line, if its arms have host code alone, and include no header of the project's
    `own`."""
    chain = _chain(parser, line)
    if chain is None:
        return None
    first, last = chain
    if parser.carries_space(first, last):
        return None
    directives = [index for index in range(first, last + 1) if parser.tokens[index].kind == DIRECTIVE]
    texts = [parser.tokens[index].text for index in directives]
    if any(posixpath.normpath(match[1] or match[2]) in own for match in map(INCLUDE.match, texts) if match):
        return None
    if any(directive_name(text) in ("pragma", "error", "warning") for text in texts):
        return None
    declarations = []
    for made in parser.declarations:
        if made.kind != "scope" and made.first < last and made.last > first:
            outer = made.parent is None and made.kind not in _NAMED
            if made.first < first or made.last > last or outer:
                return None
            declarations.append(made)
    macros = {match[1] for text in texts if (match := DEFINES_OR_UNDEFINES.match(text))}
    return Undecided(first, last, directives, declarations, macros)


def _chain(parser: Parser, line: int) -> tuple[int, int] | None:
    """The tokens from the `#if` to the `#endif` of the conditional that has a directive in a line."""
    opened: list[tuple[int, bool]] = []
    for index, token in enumerate(parser.tokens):
        name = directive_name(token.text) if token.kind == DIRECTIVE else ""
        here = bool(name) and parser.line(index) <= line <= parser.line(index) + token.text.count("\n")
        if name in ("if", "ifdef", "ifndef"):
            opened.append((index, here))
        elif name in ("elif", "elifdef", "elifndef") and opened:
            opened[-1] = (opened[-1][0], opened[-1][1] or here)
        elif name == "endif" and opened:
            first, asked = opened.pop()
            if asked:
                return first, index
    return None
