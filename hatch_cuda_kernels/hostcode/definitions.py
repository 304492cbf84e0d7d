# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Which definition of a macro is in force where it is used, for one that a file defines anew.

So are lists written: `#define X ...`, the list of its uses, `#undef X`, `#define X ...`, and the list again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .surroundings import Macro, Surroundings, macro_of
from .tokens import DEFINE, DIRECTIVE, UNDEF, Token, directive_name

__all__ = ["Definitions"]

_Arms = tuple[tuple[int, int], ...]
"""The conditionals around a place, by their first token, each with the number of the arm."""


class _Event(NamedTuple):
    at: int
    arms: _Arms
    macro: Macro | None
    """None of an `#undef`, and of what only some compilers understand."""


class Definitions:
    """The definitions of macros along the tokens of a file."""

    def __init__(self, tokens: Sequence[Token], surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._events: dict[str, list[_Event]] = {}
        self._arms: list[tuple[int, _Arms]] = [(0, ())]
        """From which token on which conditionals are around."""
        self._doors: list[int] = []
        """Directives by which another definition could come in: includes, and pragmas that bring one back."""
        arms: _Arms = ()
        for index, token in enumerate(tokens):
            if token.kind != DIRECTIVE:
                continue
            name = directive_name(token.text)
            if name in ("if", "ifdef", "ifndef"):
                arms = (*arms, (index, 0))
            elif name in ("elif", "else", "elifdef", "elifndef") and arms:
                arms = (*arms[:-1], (arms[-1][0], arms[-1][1] + 1))
            elif name == "endif":
                arms = arms[:-1]
            elif match := DEFINE.match(token.text):
                self._events.setdefault(match[1], []).append(_Event(index, arms, macro_of(match)))
            elif match := UNDEF.match(token.text):
                self._events.setdefault(match[1], []).append(_Event(index, arms, None))
            elif name in ("include", "include_next", "import", "pragma"):
                self._doors.append(index)
            if self._arms[-1][1] != arms:
                self._arms.append((index, arms))

    def at(self, index: int, name: str) -> Sequence[Macro]:
        """The definitions that a use at a token may be of: one, where all are on the way to it; else those of all
        files, where each can be understood."""
        events = self._events.get(name, [])
        everywhere = self._surroundings.definitions.get(name, ())
        alone = self._surroundings.homes.get(name, 0) <= 1
        before = [event for event in events if event.at < index]
        if not before or (alone and len(events) < 2):
            return everywhere
        around = next(arms for start, arms in reversed(self._arms) if start <= index)
        if any(event.arms != events[0].arms for event in events) or around[: len(events[0].arms)] != events[0].arms:
            return everywhere
        if not alone and any(before[-1].at < door < index for door in self._doors):
            return everywhere
        return () if before[-1].macro is None else (before[-1].macro,)
