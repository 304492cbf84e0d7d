# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""A text with ranges of its tokens blanked, every line keeping its number."""

from __future__ import annotations

import re

from .brackets import Brackets
from .tokens import DIRECTIVE, KEPT_PRAGMA, directive_name

__all__ = ["Editor"]


class Editor:
    """Blanks ranges of tokens out of a text, and puts words in."""

    def __init__(self, parser: Brackets) -> None:
        self.parser = parser
        self.cuts: list[tuple[int, int, str]] = []

    def cut(self, first: int, last: int, instead: str = "") -> None:
        """Blank the tokens from `first` to `last`; `instead` takes the place of the first of them."""
        self.cuts.append((first, last, instead))

    def insert(self, before: int, word: str) -> None:
        """Put a word in front of a token; what follows on its line moves to the right."""
        self.cuts.append((before, before - 1, f"{word} "))

    def result(self) -> str:
        """The text after all changes."""
        parser = self.parser
        tokens, text = parser.tokens, parser.text
        pieces: list[str] = []
        position = 0
        for first, last, instead in sorted(self.cuts, key=lambda cut: (tokens[cut[0]].start, -cut[1])):
            start = tokens[first].start
            if start < position:
                continue
            pieces += [text[position:start], instead]
            position = start
            if last < first:
                continue
            at = start + min(len(instead), tokens[first].end - start)
            for index in range(first, last + 1):
                token = tokens[index]
                if token.kind == DIRECTIVE and first != last and self._stays(token.text):
                    pieces += [_blank(text[at : token.start]), token.text]
                    at = token.end
            position = tokens[last].end
            pieces.append(_blank(text[at:position]))
        pieces.append(text[position:])
        return "".join(pieces)

    @staticmethod
    def _stays(directive: str) -> bool:
        name = directive_name(directive)
        return name not in ("include", "include_next", "import", "pragma", "embed") or bool(
            KEPT_PRAGMA.match(directive)
        )


def _blank(text: str) -> str:
    return re.sub(r"[^\r\n\t]", " ", text)
