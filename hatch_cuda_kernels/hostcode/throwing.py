# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What functions throw: `i < n ? i : throw std::out_of_range("i")`.

Neither compiler takes a `throw` in device code. In a constant function of the host it ends a constant expression with
an error, which `__trap()` does as well. PyTorch's checks throw where a condition does not hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from .declarations import Parser
from .tokens import DIRECTIVE, WORD, Token

__all__ = ["without_throws"]

_TRAP = "__trap()"
_CHECK = re.compile(r"(?:STD_)?TORCH_CHECK(?:_NOT_IMPLEMENTED)?|TORCH_CHECK_(?:INDEX|TYPE|VALUE)|TORCH_INTERNAL_ASSERT")
"""Those whose first argument is a condition, in every build."""
_ENDS = frozenset(") ] } ; , :".split())


def without_throws(parser: Parser, first: int, last: int) -> Iterator[tuple[int, int, str]]:
    """The throws and checks of a function, by their first and last tokens, with what can stand in their places.

    The operand beside one in `? :` is taken up, for its type is that of both: `c ? x : (__trap(), x)`.
    """
    index = first
    while index < last:
        if parser.tokens[index].text == "throw" and parser.match.get(index + 1) != index + 2:  # no `throw()`
            end = _end(parser, index)
            yield index, end, _instead(parser, index, end)
            index = end
        elif (condition := _condition(parser, index)) is not None:
            end = parser.match[index + 1]
            yield index, end, f"if (!({condition})) {{ {_TRAP}; }}"
            index = end
        index += 1


def _condition(parser: Parser, index: int) -> str | None:
    """What a check asks for that begins at a token, where its macro is of a header that is not there."""
    token = parser.tokens[index]
    if not _CHECK.fullmatch(token.text) or token.text in parser.surroundings.macros or not parser.is_at(index + 1, "("):
        return None
    depth = 0
    last = index + 2
    while last < parser.match[index + 1] and (depth or not parser.is_at(last, ",")):
        depth += parser.is_at(last, "(") - parser.is_at(last, ")")
        last += 1
    return _on_one_line(parser.tokens[index + 2 : last])


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
    operand = parser.tokens[first : last + 1]
    return _TRAP if parser.is_at(first, "throw") else f"({_TRAP}, {_on_one_line(operand)})"


def _on_one_line(tokens: Sequence[Token]) -> str:
    """Tokens with one space where there is any between them."""
    spaces = ("" if before.end == token.start else " " for before, token in pairwise(tokens))
    return "".join(f"{space}{token.text}" for space, token in zip(("", *spaces), tokens, strict=True))


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
