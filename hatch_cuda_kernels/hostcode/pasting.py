# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Names that the operator `##` can make of other words: no token shows them where they are used."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property

from .surroundings import Surroundings
from .tokens import DEFINE, DIRECTIVE, NUMBER, WORD, Token, tokenize

__all__ = ["Pasting"]


class Pasting:
    """The names that the macros of some files can paste together: more than what they do paste.

    A macro that pastes a word of its own to an argument, as `name##_kernel` does, can make every name that has this
    word in this place. One that pastes arguments alone can make what consists of words that files hand to it, or to a
    macro that leads to it.
    """

    def __init__(self, files: Iterable[Sequence[Token]], surroundings: Surroundings) -> None:
        self._files, self._surroundings = list(files), surroundings
        self._patterns: dict[str, list[str]] = {}
        """Macro -> a regular expression for each row of operands that has a word of its own."""
        self._plain: set[str] = set()
        """Macros that paste arguments alone."""
        self._bodies: list[tuple[set[str], list[Token]]] = []
        """Parameters and text of each macro."""
        directives = (token.text for tokens in self._files for token in tokens if token.kind == DIRECTIVE)
        for match in filter(None, map(DEFINE.match, directives)):
            self._define(match[1], match[2] or "", match[3])

    def _define(self, name: str, parameters: str, text: str) -> None:
        body = tokenize(text)
        given = {*re.findall(r"\w+", parameters), "__VA_ARGS__", "__VA_OPT__"}
        self._bodies.append((given, body))
        for row in _rows(body):
            shown = [".*" if token.text in given else re.escape(token.text) for token in row]
            if set(shown) != {".*"}:
                self._patterns.setdefault(name, []).append("".join(shown))
            else:
                self._plain.add(name)

    def made(self, names: Iterable[str], mentioned: Iterable[str]) -> set[str]:
        """Those of `names` that macros among the words that are mentioned can make; they may be mentioned by others."""
        used = self._surroundings.expanded(mentioned)
        patterns = [pattern for macro in self._patterns.keys() & used for pattern in self._patterns[macro]]
        pattern = re.compile("|".join(patterns))
        plain = not self._plain.isdisjoint(used)
        return {
            name
            for name in names
            if (patterns and pattern.fullmatch(name)) or (plain and self._consists_of_arguments(name))
        }

    def _consists_of_arguments(self, name: str) -> bool:
        ends = {0}
        for end in range(1, len(name) + 1):
            if any(name[start:end] in self._arguments for start in ends):
                ends.add(end)
        return len(name) in ends

    @cached_property
    def _arguments(self) -> frozenset[str]:
        """Words and numbers that a macro which pastes arguments may be given, and what takes their place."""
        leading = self._surroundings.reaching(self._plain)
        found = {word for tokens in self._files for word in _handed(tokens, leading)}
        for given, body in self._bodies:  # also through a parameter that is a macro: `#define ALL(X) X(a) X(b)`
            found.update(set(_handed(body, leading | given)) - given)
        return frozenset(self._surroundings.expanded(found))


def _rows(body: Sequence[Token]) -> Iterator[list[Token]]:
    """The operands of each row of `##`."""
    row: list[Token] = []
    index = 0
    while index < len(body):
        if row and [token.text for token in body[index : index + 2]] in (["#", "#"], ["%:", "%:"]):
            index += 2
            row += body[index : index + 1]
        else:
            if len(row) > 1:
                yield row
            row = [body[index]]
        index += 1
    if len(row) > 1:
        yield row


def _handed(tokens: Sequence[Token], macros: Collection[str]) -> Iterator[str]:
    """The words between the parentheses after one of the macros."""
    depth = 0
    for before, token in itertools.pairwise(tokens):
        if depth or (token.text == "(" and before.text in macros):
            depth += (token.text == "(") - (token.text == ")")
            if token.kind in (WORD, NUMBER):
                yield token.text
