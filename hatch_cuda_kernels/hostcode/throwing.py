# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What functions throw: `i < n ? i : throw std::out_of_range("i")`.

Neither compiler takes a `throw` in device code. In a constant function of the host it ends a constant expression with
an error, which `__trap()` does as well.
"""

from __future__ import annotations

from collections.abc import Iterator

from .declarations import Parser
from .tokens import DIRECTIVE, WORD

__all__ = ["without_throws"]

_TRAP = "__trap()"
_ENDS = frozenset(") ] } ; , :".split())


def without_throws(parser: Parser, first: int, last: int) -> Iterator[tuple[int, int, str]]:
    """The throws of a function, by their first and last tokens, with what can stand in their places.

    The operand beside one in `? :` is taken up, for its type is that of both: `c ? x : (__trap(), x)`.
    """
    index = first
    while index < last:
        if parser.tokens[index].text == "throw" and parser.match.get(index + 1) != index + 2:  # no `throw()`
            end = _end(parser, index)
            yield index, end, _instead(parser, index, end)
            index = end
        index += 1


def _end(parser: Parser, index: int) -> int:
    """The last token of the expression that begins at one."""
    questions = 0
    while index + 1 < len(parser.tokens):
        index = _past(parser, index)
        following = parser.tokens[index + 1]
        if following.kind == DIRECTIVE or (following.text in _ENDS and not (questions and following.text == ":")):
            break
        questions += (following.text == "?") - (following.text == ":")
        index += 1
    return index


def _past(parser: Parser, index: int) -> int:
    """The token itself, or what closes the bracket that it opens."""
    if parser.is_at(index, "<") and parser.tokens[index - 1].kind == WORD:
        return parser.angle(index, parser.limit) or index
    return parser.match.get(index, index) if parser.tokens[index].text in ("(", "[", "{") else index


def _instead(parser: Parser, index: int, end: int) -> str:
    """What stands in the place of a throw."""
    before = parser.tokens[index - 1].text
    if before == "?" and parser.is_at(end + 1, ":"):
        first, last = end + 2, _end(parser, end + 2)
    elif before == ":" and (question := _question(parser, index - 1)) is not None:
        first, last = question + 1, index - 2
    else:
        return _TRAP
    operand = [token.text for token in parser.tokens[first : last + 1]]
    return _TRAP if operand[:1] == ["throw"] else f"({_TRAP}, {' '.join(operand)})"


def _question(parser: Parser, colon: int) -> int | None:
    """The question mark that a colon belongs to."""
    brackets = colons = 0
    for index in range(colon - 1, 0, -1):
        text = parser.tokens[index].text
        if text == "?" and brackets == colons == 0:
            return index
        if parser.tokens[index].kind == DIRECTIVE or (brackets == 0 and text in ("(", "[", "{", ";")):
            return None
        brackets += (text in (")", "]", "}")) - (text in ("(", "[", "{"))
        if brackets == 0:
            colons += (text == ":") - (text == "?")
    return None
