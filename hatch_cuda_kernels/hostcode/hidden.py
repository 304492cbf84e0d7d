# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The conditionals that kernels of a file stand in, for an author whose file compiles to none of them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .declarations import parsed
from .mentions import is_kernel
from .surroundings import Surroundings
from .tokens import DEFINE, DIRECTIVE, Token, directive_name

__all__ = ["Condition", "conditions_of_kernels"]

_NO_MACROS = frozenset("define defined else elif elifdef elifndef if ifdef ifndef true false".split())


class Condition(NamedTuple):
    """An arm of a conditional, as it is written."""

    line: int
    text: str

    @property
    def macros(self) -> list[str]:
        """The macros that it asks for."""
        return [word for word in re.findall(r"[A-Za-z_]\w*", self.text) if word not in _NO_MACROS]


def conditions_of_kernels(data: bytes, surroundings: Surroundings) -> list[Condition]:
    """Every condition on which there is a kernel, templates aside; none where one stands outside of them all."""
    parser = parsed(data.decode("latin-1"), surroundings)
    plain = [made for made in parser.declarations if made.body >= 0 and not made.template]
    kernels = {made.first for made in plain if is_kernel(made, surroundings)}
    found: dict[Condition, None] = {}
    arms = _arms(parser.tokens)
    for index, around in enumerate(arms):
        if index in kernels:
            if not around:
                return []
            found |= {Condition(parser.line(at), " ".join(parser.tokens[at].text.split())): None for at in around}
    return list(found)


def _arms(tokens: Sequence[Token]) -> Iterator[tuple[int, ...]]:
    """For each token, the directives that begin the arms around it; include guards are none."""
    stack: list[int | None] = []
    for index, (token, following) in enumerate(itertools.zip_longest(tokens, tokens[1:])):
        name = directive_name(token.text) if token.kind == DIRECTIVE else ""
        if name in ("if", "ifdef", "ifndef"):
            defined = DEFINE.match(following.text) if following is not None and following.kind == DIRECTIVE else None
            guard = name == "ifndef" and defined is not None and token.text.split()[-1] == defined[1]
            stack.append(None if guard else index)
        elif name in ("elif", "else", "elifdef", "elifndef") and stack:
            stack[-1] = index
        elif name == "endif" and stack:
            stack.pop()
        yield tuple(at for at in stack if at is not None)
