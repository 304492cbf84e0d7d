# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Files that are no files of declarations: another one includes them inside of a body, a list or an expression.

What stands there are statements, members or values. Read as declarations of a namespace they would look like host code.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from .choices import as_nvcc_chooses
from .declarations import Parser, parsed
from .surroundings import Surroundings
from .tokens import COMPUTED, DIRECTIVE, INCLUDE

__all__ = ["Includes", "mark_fragments"]

Includes = Mapping[str, Mapping[str, Collection[str]]]
"""Label of a file -> headers as its directives spell them -> labels of the files that these may be."""

_INCLUDES = re.compile(r"(?:#|%:)\s*(?:include|include_next|import)\b")
_OF_COMPILERS = re.compile(r"__|_[A-Z]")
"""How macros begin that compilers may define."""
_BRACKET = re.compile(rb"[({\[]")
_DIRECTIVE = re.compile(rb"(?:#|%:)[ \t]*(?:include|import)")


def mark_fragments(files: Mapping[str, bytes], surroundings: Surroundings, includes: Includes) -> None:
    """Let no declarations be seen in files that some file includes in the midst of one, and in what these include.

    An include whose operand is a macro may be of any file that no other include names, if anything defines the macro.
    """
    pending: list[str] = []
    named = {label for spelled in includes.values() for labels in spelled.values() for label in labels}
    for including, data in files.items():
        bracket = _BRACKET.search(data)
        if bracket and _DIRECTIVE.search(data, bracket.end()):  # else none can be inside of one
            for spelling in _inside(parsed(data.decode("latin-1"), surroundings)):
                labels = includes.get(including, {}).get(spelling, ()) if spelling else files.keys() - named
                pending += [label for label in labels if label != including]
    found: set[str] = set()
    while pending:
        label = pending.pop()
        if label not in found:
            found.add(label)
            pending += (each for labels in includes.get(label, {}).values() for each in labels)
    for label in found & files.keys():
        text = files[label].decode("latin-1")
        for shown in (text, as_nvcc_chooses(text, surroundings.macros)):
            surroundings.fragments.add(shown)
            surroundings.parsed.pop(shown, None)


def _inside(parser: Parser) -> Iterator[str | None]:
    """Headers that a file includes between brackets other than those of a namespace; None for one that is computed."""
    scopes = {made.body for made in parser.declarations if made.kind == "scope"}
    end = -1
    for index, token in enumerate(parser.tokens):
        if token.kind == DIRECTIVE:
            if index < end and _INCLUDES.match(token.text) and not _reads_nothing(token.text, parser.surroundings):
                match = INCLUDE.match(token.text)
                yield match and (match[1] or match[2])
        elif index > end and index not in scopes and index in parser.match:
            end = parser.match[index]


def _reads_nothing(directive: str, surroundings: Surroundings) -> bool:
    """Whether what it includes is a macro that nothing defines."""
    computed = COMPUTED.fullmatch(directive)
    return computed is not None and computed[1] not in surroundings.macros and not _OF_COMPILERS.match(computed[1])
