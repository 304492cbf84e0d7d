# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Functions of the host in the replacement of a macro that brings device code, too: a kernel and what launches it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from .calls import Signature, arguments_of, signature_of
from .declarations import Declaration, Parser
from .surroundings import Surroundings
from .tokens import DEFINE, DIRECTIVE, WORD

__all__ = ["HostPart", "Uses", "host_parts", "uses_of_macros", "without"]

_CONTINUED = re.compile(r"\\[ \t]*\r?\n")
_STAYING = frozenset("constexpr consteval virtual friend operator template".split())


class HostPart(NamedTuple):
    """A function of the host in a directive that defines a macro."""

    start: int
    end: int
    """Where it stands in the directive."""
    names: tuple[str, ...]
    """What it is called where the macro is used."""
    signature: Signature


Uses = Mapping[str, Sequence[tuple[Parser, int]]]
"""Name of a macro -> the files and tokens where it is used with arguments."""


def uses_of_macros(parsers: Iterable[Parser]) -> Uses:
    """Where files use macros with arguments."""
    found: dict[str, list[tuple[Parser, int]]] = {}
    for parser in parsers:
        macros = parser.surroundings.macros
        for index, token in enumerate(parser.tokens):
            if token.kind == WORD and token.text in macros and parser.is_at(index + 1, "("):
                found.setdefault(token.text, []).append((parser, index))
    return found


def host_parts(directive: str, uses: Uses, surroundings: Surroundings) -> Iterator[HostPart]:
    """The functions of the host in a definition that brings device code, by the uses of the macro in files.

    A parameter of the macro in the head of a function may stand for anything, an execution space among them: such a
    function is left to the compiler, and so is one whose name no use tells.
    """
    match = DEFINE.match(directive)
    if match is None or not match[2] or "{" not in match[3] or match[1] not in uses:
        return
    flat = _CONTINUED.sub(lambda end: " " * len(end[0]), match[3])
    parser = Parser(flat, surroundings)
    whole = parser.limit == len(parser.tokens) and not any(token.kind == DIRECTIVE for token in parser.tokens)
    tops = [made for made in parser.declarations if made.parent is None]
    if not whole or not any(made.device and made.kind == "function" for made in tops):
        return
    parameters = [name.strip() for name in _CONTINUED.sub(" ", match[2]).strip("()").split(",")]
    for made in tops:
        name = _name(parser, made)
        head = made.words - set(name)
        known = head.isdisjoint(parameters) and head.isdisjoint(_STAYING)
        if made.kind != "function" or made.device or made.instantiation or made.body < 0 or not known:
            continue
        names = {"".join(given.get(piece, piece) for piece in name) for given in _given(match[1], parameters, uses)}
        if names:
            start, end = parser.tokens[made.first].start, parser.tokens[made.last].end
            at = match.start(3)
            yield HostPart(at + start, at + end, tuple(sorted(names)), signature_of(parser, made, ()))


def without(directive: str, parts: Sequence[HostPart]) -> str:
    """A directive with parts of it blanked; it keeps its lines and its length."""
    for part in parts:
        inside = directive[part.start : part.end]
        kept = [match[0] for match in _CONTINUED.finditer(inside)]
        blank = [" " * len(text) for text in _CONTINUED.split(inside)]
        pieces = itertools.chain.from_iterable(itertools.zip_longest(blank, kept, fillvalue=""))
        directive = directive[: part.start] + "".join(pieces) + directive[part.end :]
    return directive


def _name(parser: Parser, made: Declaration) -> list[str]:
    """The pieces of a name that `##` joins."""
    tokens, first = parser.tokens, made.name_at
    while first > 2 and tokens[first - 1].text == tokens[first - 2].text == "#":
        first -= 3
    return [token.text for token in tokens[max(first, 0) : made.name_at + 1] if token.text != "#"]


def _given(macro: str, parameters: Sequence[str], uses: Uses) -> Iterator[dict[str, str]]:
    """What the parameters of a macro stand for, for each use of it."""
    for parser, index in uses[macro]:
        given = ("".join(token.text for token in part) for part in arguments_of(parser, index + 1))
        yield dict(zip(parameters, given, strict=False))
