# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What was passed over and could have hidden something else: without it, a name may now mean another thing."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from .declarations import Parser
from .passing import PassedOver, Passing
from .surroundings import Surroundings
from .tokens import DIRECTIVE, WORD

__all__ = ["uncovering"]

_HARMLESS = ("include", "body", "definition", "macro", "instantiation")
"""What declares no name that is not declared elsewhere: a body, or the definition of a member, among them."""


_ASKS = re.compile(
    r"decltype|noexcept|requires|concept|enable_if\w*|void_t|declval|is_\w*(?:constructible|aggregate|trivial\w*)(?:_v)?"
)
"""What lets code depend on whether a class has a constructor."""


@dataclass
class _Rest:
    """The names in what is left of the files."""

    used: set[str] = field(default_factory=set)
    """Words that refer to something, in code and in the macros that code uses."""
    called: set[str] = field(default_factory=set)
    """Those of them that arguments follow."""
    members: set[str] = field(default_factory=set)
    """Words after a dot or an arrow."""
    declared: set[str] = field(default_factory=set)
    """Names that are declared outside classes and functions, or could be, by a macro."""

    def add(self, parser: Parser) -> None:
        """Take in the rest of one file."""
        tokens = parser.tokens
        names = {declaration.name_at for declaration in parser.declarations}
        for declaration in parser.declarations:
            if declaration.parent is None and declaration.kind not in ("scope", "other", "macro"):
                self.declared.add(declaration.name)
            if declaration.kind in ("other", "macro", "enum"):
                words = {t.text for t in tokens[declaration.first : declaration.last + 1] if t.kind == WORD}
                self.declared |= parser.surroundings.expanded(words) if declaration.kind == "macro" else words
        for index, token in enumerate(tokens):
            if token.kind != WORD or index in names:
                continue
            if index and tokens[index - 1].text in (".", "->"):
                self.members.add(token.text)
                continue
            self.used.add(token.text)
            if index + 1 < len(tokens) and (
                tokens[index + 1].text in ("(", "<") or tokens[index + 1].kind == DIRECTIVE
            ):
                self.called.add(token.text)


def uncovering(
    files: Mapping[str, PassedOver], surroundings: Surroundings, *, linked: bool = False
) -> Iterator[tuple[str, Passing]]:
    """The pieces, with the label of their file, without which another kernel could have come out.

    A name that nothing refers to any more is harmless. So is a variable of the host that nothing else is called like:
    what still uses its name has a parameter or a local variable of that name, or does not compile. The same holds of a
    function whose name is not called. A type could have hidden another one, and a member decides what its class can do:
    where such a name is used, only nvcc knows what it meant. A constructor of a class that stays matters to what asks
    whether the class can be made. In a file that is linked to others, a declaration without its body would be
    bound to what another file calls by that name.
    """
    rest = _Rest()
    for found in files.values():
        rest.add(Parser(found.data.decode("latin-1"), surroundings))
    brought = surroundings.expanded(rest.used)
    rest.called |= brought - rest.used
    rest.used |= brought
    pasted = any("##" in found.data.decode("latin-1") for found in files.values())
    for label, found in files.items():
        for passing in found.passed:
            names = [name.rpartition("::")[2].partition("<")[0].strip() for name in passing.name.split(", ")]
            kind = "function" if passing.kind == "body" and linked else passing.kind
            if kind not in _HARMLESS and any(
                _is_taken(kind, name, rest) or (pasted and _is_pasted(name, rest.used)) for name in names
            ):
                yield label, passing


def _is_taken(kind: str, name: str, rest: _Rest) -> bool:
    if kind == "member":
        return name in rest.used or name in rest.members
    if name not in rest.used:
        return False
    if kind == "constructor":
        return any(_ASKS.fullmatch(word) for word in rest.used)
    if kind == "variable":
        return name in rest.declared
    return kind != "function" or name in rest.declared or name in rest.called


def _is_pasted(name: str, words: Collection[str]) -> bool:
    return any(name[:cut] in words and name[cut:] in words for cut in range(1, len(name)))
