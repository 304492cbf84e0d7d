# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Uses of macros that instantiate templates of classes, and do nothing else.

`#define LINE(MODE) template class Solver<Mode<MODE>::Type>;` and `FOR_ALL_MODES(LINE)`: what the second mentions are
the templates of the first. The same macro is often defined anew for each class, so that the definition counts which
stands right before the use.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .declarations import Declaration, Parser
from .tokens import DEFINE, DIRECTIVE, WORD, Token, directive_name, tokenize

__all__ = ["Instantiated", "instantiated"]


_NEAR = 512
"""Tokens before a use among which its definition is looked for."""


class Instantiated(NamedTuple):
    """What a use of a macro mentions."""

    templates: tuple[str, ...] = ()
    """The templates that it instantiates; none where it does, or may do, anything else."""
    words: frozenset[str] = frozenset()


def instantiated(parser: Parser, made: Declaration) -> Instantiated:
    """What a use of a macro instantiates, if that is all that it does."""
    tokens = parser.tokens
    inside = {token.text for token in tokens[made.first : made.last + 1] if token.kind == WORD}
    name = tokens[made.first].text
    lines = inside & parser.surroundings.macros.keys() - {name} if name in parser.surroundings.spreading else {name}
    found: list[str] = []
    words = inside - lines
    for line in sorted(lines):
        for text in _texts(parser, made.first, line):
            cut = tokenize(text)
            found += _templates(cut, parser)
            words |= {token.text for token in cut if token.kind == WORD}
    return Instantiated(tuple(found), frozenset(words)) if found and all(found) else Instantiated()


def _texts(parser: Parser, index: int, name: str) -> list[str]:
    """What a macro is defined as: all that the files have, unless a definition stands right before the use."""
    for token in reversed(parser.tokens[max(0, index - _NEAR) : index]):
        if token.kind == DIRECTIVE:
            match = DEFINE.match(token.text)
            if match and match[1] == name:
                return [match[3]]
            if match is None and directive_name(token.text) != "pragma":
                break
    return [macro.text for macro in parser.surroundings.definitions.get(name, ())] or [""]


def _templates(text: list[Token], parser: Parser) -> Iterator[str]:
    """The template of each instantiation in a text; an empty name for anything else."""
    words = [token.text for token in text]
    if not words or not parser.surroundings.spaces.isdisjoint(words) or "{" in words:
        yield ""
    start = 0
    for end, word in enumerate([*words, ";"]):
        if word == ";" and end > start:
            shown = [each for each in words[start:end] if each != "extern"]
            opened = shown.index("<") if "<" in shown else 0
            plain = shown[:1] == ["template"] and shown[1:2] in (["class"], ["struct"]) and opened > 2
            yield shown[opened - 1] if plain else ""
        start = end + 1 if word == ";" else start
