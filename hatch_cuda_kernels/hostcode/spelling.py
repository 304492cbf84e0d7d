# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The tokens of a text that the compiler shows, which puts tokens side by side that come from different macros."""

from __future__ import annotations

from collections.abc import Iterator

from .tokens import DEFINE, DIRECTIVE, STRING, WORD, Token, tokenize

__all__ = ["merged", "same_tokens", "spaced", "spaced_definition"]


def spaced(text: str) -> str:
    """A text with white space around every word, and after every use of a macro with arguments.

    What takes the place of a word, of a parameter or of a use is then apart from what stands around it.
    """
    pieces: list[str] = []
    position = 0
    before: Token | None = None
    for token in tokenize(text):
        joined = before is not None and before.end == token.start
        if before is not None and joined and _is_apart(before, token):
            pieces += [text[position : token.start], " "]
            position = token.start
        before = token
    return "".join([*pieces, text[position:]])


def _is_apart(before: Token, token: Token) -> bool:
    if before.kind == STRING:
        return False  # `"5"_km` is one token
    return before.kind == WORD or token.kind == WORD or before.text == ")"


def spaced_definition(directive: str) -> str:
    """The same for what a directive defines a macro as."""
    match = DEFINE.match(directive)
    return directive if match is None else directive[: match.start(3)] + spaced(directive[match.start(3) :])


def merged(apart: str | None, written: str | None) -> str | None:
    """What was told of a text with such white space, with the strings that `#` makes of it without; None where the two
    are not the same."""
    if apart is None or written is None:
        return None
    first, second = tokenize(apart), tokenize(written)
    if any(token.kind == DIRECTIVE for token in (*first, *second)) or _bare(first) != _bare(second):
        return None
    strings: Iterator[str] = (token.text for token in second if token.kind == STRING)
    pieces: list[str] = []
    position = 0
    for token in first:
        if token.kind == STRING:
            pieces += [apart[position : token.start], next(strings)]
            position = token.end
    return "".join([*pieces, apart[position:]])


def _bare(tokens: list[Token]) -> tuple[str, list[str]]:
    """All tokens that are no strings, and the strings, without white space."""
    strings = [token.text.replace(" ", "") for token in tokens if token.kind == STRING]
    return "".join(token.text for token in tokens if token.kind != STRING), strings


def same_tokens(one: str, other: str) -> bool:
    """Whether two texts differ in white space alone."""
    return [token.text for token in tokenize(one)] == [token.text for token in tokenize(other)]
