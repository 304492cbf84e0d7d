# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Files that are included again and again, for what a macro is defined as each time, and that have conditionals or
definitions of their own: `ops.def`.

A list without directives takes the place of its includes (see lists.py). What any other one stands for, only a
preprocessor tells: all that is between its directives, at each of its includes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from .declarations import Parser
from .dependence import Dependence, is_alike
from .fragments import Includes
from .surroundings import Surroundings
from .tokens import DEFINES_OR_UNDEFINES, DIRECTIVE, INCLUDE, WORD, Token, directive_name, tokenize

__all__ = ["Inclusion", "defined_in", "inclusions", "is_left", "runs", "without_definitions"]

_CONDITIONALS = frozenset("if ifdef ifndef elif elifdef elifndef else endif".split())
_PLACES = frozenset("__LINE__ __FILE__ __COUNTER__ __BASE_FILE__ __INCLUDE_LEVEL__ assert".split())
"""What says in which file or line it stands, or may."""


class Inclusion(NamedTuple):
    """An include of such a file."""

    start: int
    end: int
    label: str
    """The file that is included."""


def inclusions(
    parsers: Mapping[str, Parser], includes: Includes, around: Surroundings, dependence: Dependence
) -> dict[str, list[Inclusion]]:
    """By file, its includes of files that are included several times and can be told piece by piece."""
    found: dict[str, list[Inclusion]] = {}
    for label, parser in parsers.items():
        for token in parser.tokens:
            match = INCLUDE.match(token.text) if token.kind == DIRECTIVE else None
            labels = includes.get(label, {}).get(match[1] or match[2], ()) if match else ()
            for included in labels if len(labels) == 1 else ():
                found.setdefault(label, []).append(Inclusion(token.start, token.end, included))
    counts = Counter(each.label for those in found.values() for each in those)
    told = {
        label
        for label, count in counts.items()
        if count > 1 and label in parsers and _can_be_told(parsers[label], around, dependence)
    }
    return {label: kept for label, those in found.items() if (kept := [each for each in those if each.label in told])}


def _can_be_told(parser: Parser, around: Surroundings, dependence: Dependence) -> bool:
    """Whether a file has uses of macros between directives that hide nothing, and says nothing of its place."""
    words = {token.text for token in parser.tokens if token.kind == WORD}
    directives = [token.text for token in parser.tokens if token.kind == DIRECTIVE]
    brought = around.expanded(words)
    return (
        not words.isdisjoint(around.macros)
        and {directive_name(text) for text in directives} <= _CONDITIONALS | {"define", "undef"}
        and brought.isdisjoint(_PLACES)
        and not dependence.is_dependent(brought)
        and is_alike(parser.tokens, dependence)
    )


def runs(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Start and end of all that stands between the directives of a file."""
    before = None
    for token in tokens:
        if token.kind == DIRECTIVE:
            if before is not None:
                yield before
            before = None
        else:
            before = (token.start if before is None else before[0], token.end)
    if before is not None:
        yield before


def defined_in(tokens: Sequence[Token]) -> set[str]:
    """The macros that a file defines or undefines."""
    directives = (token.text for token in tokens if token.kind == DIRECTIVE)
    return {match[1] for text in directives if (match := DEFINES_OR_UNDEFINES.match(text))}


def is_left(names: Collection[str], text: str) -> bool:
    """Whether a text has one of these macros where that is not defined."""
    for token in tokenize(text):
        if token.kind == WORD and token.text in names:
            return True
        if token.kind == DIRECTIVE:
            words = set(re.findall(r"\w+", token.text))
            match = DEFINES_OR_UNDEFINES.match(token.text)
            if not words.isdisjoint(names) and not (match and match[1] in names):
                return True
    return False


def without_definitions(names: Collection[str], text: str) -> str:
    """A text without the directives that define or undefine these macros."""
    pieces: list[str] = []
    position = 0
    for token in tokenize(text):
        match = DEFINES_OR_UNDEFINES.match(token.text) if token.kind == DIRECTIVE else None
        if match and match[1] in names:
            pieces += [text[position : token.start], re.sub(r"[^\n]", " ", token.text)]
            position = token.end
    return "".join([*pieces, text[position:]])
