# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Tokens with their brackets paired, for all arms of the conditionals at once."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Sequence
from functools import cached_property

from .tokens import DEAD, DIRECTIVE, SIGN, directive_name, tokenize

__all__ = ["Brackets"]


class Brackets:
    """The tokens of a file, with each bracket's partner."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.limit = len(self.tokens)
        """Index from which on nothing is understood."""
        self.match: dict[int, int] = {}
        """Index of a bracket that opens -> of the one that closes it."""
        self.continued: dict[int, tuple[int, int | None]] = {}
        """First token of an arm of a conditional that goes on inside of a bracket, which an arm above closed -> the
        token that closes it here, and the bracket; None where arms of the arm close several."""
        self.twins: list[int] = []
        """Brackets that another arm of a conditional opens as well."""
        self.patience = self.rested = 100_000 + 50 * len(self.tokens)
        """Steps left for telling template brackets from comparisons: keeps the time linear for any text."""
        self._pair()

    @cached_property
    def line_starts(self) -> list[int]:
        """Offsets of the lines."""
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    def line(self, token: int) -> int:
        """Line of a token, from 1."""
        return bisect.bisect_right(self.line_starts, self.tokens[token].start)

    def _pair(self) -> None:
        """Pair brackets. Each arm of a conditional starts from the state before it; what follows, from the first's."""
        stack: tuple[int, object] | None = None
        conditionals: list[list[tuple[int, object] | bool | None]] = []
        arms: list[tuple[int, object]] = []  # where the last arm of each begins, and the state there
        closing = {")": "(", "]": "[", "}": "{"}
        for index, token in enumerate(self.tokens):
            if token.kind == DIRECTIVE:
                name = directive_name(token.text)
                if name in ("if", "ifdef", "ifndef"):
                    conditionals.append([stack, None, bool(DEAD.match(token.text)), False])
                    arms.append((index + 1, None))
                elif name in ("else", "elif", "elifdef", "elifndef") and conditionals:
                    entry = conditionals[-1]
                    if entry[2]:
                        entry[2] = False
                    elif not entry[3]:
                        entry[1], entry[3] = stack, True
                    stack = entry[0]  # type: ignore[assignment]
                    arms[-1] = (index + 1, stack)
                elif name == "error" and conditionals:
                    conditionals[-1][2] = True  # nothing goes on after it
                elif name == "endif" and conditionals:
                    entry = conditionals.pop()
                    arms.pop()
                    if entry[3]:
                        self.twins += self._left_open(stack, entry)
                        stack = entry[1]  # type: ignore[assignment]
            elif token.kind == SIGN:
                if token.text in "([{":
                    stack = (index, stack)
                elif token.text in closing:
                    if stack is None or self.tokens[stack[0]].text != closing[token.text]:
                        self.limit = index
                        break
                    known = self.match.setdefault(stack[0], index)
                    if all(between.kind == DIRECTIVE for between in self.tokens[known + 1 : index]):
                        self.match[stack[0]] = index  # another arm closes it as well, and nothing stands between
                    elif token.text == "}":
                        start = next((first for first, state in arms if _has(state, stack[0])), None)
                        if start is not None:
                            self.continued[start] = (index, None if start in self.continued else stack[0])
                    stack = stack[1]  # type: ignore[assignment]
        while stack is not None:  # never closed: from the outermost of them on, nothing is understood
            self.limit = min(self.limit, stack[0])
            stack = stack[1]  # type: ignore[assignment]

    def _left_open(self, stack: object, entry: Sequence[object]) -> Iterator[int]:
        """The brackets that the last arm of a conditional opened, and left for what follows to close."""
        around, before = {id(entry[1])}, entry[0]
        while isinstance(before, tuple):
            around.add(id(before))
            before = before[1]
        while isinstance(stack, tuple) and id(stack) not in around:
            yield from () if stack[0] in self.match else (stack[0],)
            stack = stack[1]

    def next_of(self, index: int) -> int:
        """The next token after `index` that is no directive."""
        index += 1
        while index < len(self.tokens) and self.tokens[index].kind == DIRECTIVE:
            index += 1
        return index

    def is_at(self, index: int, text: str) -> bool:
        return 0 <= index < self.limit and self.tokens[index].text == text

    def angle(self, start: int, end: int) -> int | None:
        """The `>` that closes the `<` at `start`, if these are template brackets."""
        depth, index = 0, start
        while index < end:
            token = self.tokens[index]
            if token.kind == SIGN:
                if token.text == "<":
                    depth += 1
                elif token.text == "<<<":
                    depth += 3
                elif token.text == ">":
                    depth -= 1
                    if depth <= 0:
                        return index
                elif token.text in "([{":
                    closed = self.match.get(index)
                    if closed is None or closed >= end:
                        return None
                    index = closed
                elif token.text in ";)]}":
                    return None
            index += 1
            self.patience -= 1
            if self.patience < 0:
                return None
        return None


def _has(stack: object, bracket: int) -> bool:
    """Whether a bracket is open in a state of the pairing."""
    while isinstance(stack, tuple):
        if stack[0] == bracket:
            return True
        stack = stack[1]
    return False
