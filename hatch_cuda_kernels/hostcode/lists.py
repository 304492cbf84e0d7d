# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Files that are nothing but a list of uses of macros, `OP(add, +) OP(sub, -)`, which another file includes for what it
has just defined the macro as.

A file has one text, and each include of it may stand for something else. So where one brings host code, the list itself
takes the place of the include, on that line, and its macros are then expanded like any other (see expansion.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .declarations import Parser
from .expansion import expansions
from .fragments import Includes
from .surroundings import Surroundings
from .tokens import DIRECTIVE, INCLUDE, WORD, tokenize

__all__ = ["with_lists"]

_POSITION = re.compile(r"__LINE__|__FILE__|__COUNTER__|__BASE_FILE__|__INCLUDE_LEVEL__|assert")
"""What says in which file or line it stands."""

_DIRECTIVES = re.compile(rb"^[ \t]*(?:#|%:)|\*/[ \t]*(?:#|%:)", re.MULTILINE)


def with_lists(files: Mapping[str, bytes], surroundings: Surroundings, includes: Includes) -> dict[str, bytes]:
    """The files with each list in the place of an include that brings host code."""
    lists = {label: shown for label, data in files.items() if (shown := _as_list(data, surroundings))}
    found = dict(files)
    for label, spelled in includes.items():
        named = {spelling: label for spelling, labels in spelled.items() if len(labels) == 1 for label in labels}
        if those := {spelling: lists[label] for spelling, label in named.items() if label in lists}:
            found[label] = _with(files[label], those, surroundings)
    return found


def _as_list(data: bytes, surroundings: Surroundings) -> str | None:
    """The uses of macros that a file consists of, on one line; None where there is anything else in it."""
    if _DIRECTIVES.search(data):
        return None
    tokens = tokenize(data.decode("latin-1"))
    depth = 0
    for token, following in zip(tokens, [*tokens[1:], None], strict=False):
        if depth == 0 and token.text not in "();":
            known = token.kind == WORD and token.text in surroundings.definitions
            if not known or following is None or following.text != "(":
                return None
        depth += (token.text == "(") - (token.text == ")")
    words = {token.text for token in tokens if token.kind == WORD}
    if depth or any(map(_POSITION.fullmatch, surroundings.expanded(words))):
        return None
    return " ".join(token.text for token in tokens)


def _with(data: bytes, lists: Mapping[str, str], surroundings: Surroundings) -> bytes:
    """A file with the lists put in that bring host code; `lists` are by the spelling of their includes."""
    text = data.decode("latin-1")
    pieces: list[str] = []
    spans: list[tuple[int, int, str]] = []
    """Of each list that is put in: where it begins and ends, and its include."""
    position = length = 0
    parser = Parser(text, surroundings)
    for index, token in enumerate(parser.tokens):
        match = INCLUDE.match(token.text) if token.kind == DIRECTIVE else None
        shown = lists.get(match[2] or "") if match else None
        if shown is None or any(
            made.first < index <= made.last for made in parser.declarations if made.kind != "scope"
        ):
            continue
        pieces += [text[position : token.start], shown]
        length += token.start - position
        spans.append((length, length + len(shown), token.text))
        length += len(shown)
        position = token.end
    grown = "".join([*pieces, text[position:]])
    brought = [start for start, _, _ in expansions(Parser(grown, surroundings))]
    for start, end, include in reversed(spans):
        if not any(start <= at < end for at in brought):
            grown = grown[:start] + include + grown[end:]
    return grown.encode("latin-1")
