# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Classes that only the host can have objects of, and of which device code names members: `Layer::width`.

Of such a class a shell is left: its types, constants and static functions, without what makes an object. As nothing
that is left has the class as a type, nothing can ask for its size, its layout or what it can be made of. A name that
goes with the rest of the class is not to give way to another one: nothing that is looked up in the class has it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from .calls import OPERANDS, arguments_of, taken_host_objects
from .declarations import Declaration, Parser
from .demands import demands_of, is_closed
from .names import NOT_NAMES
from .tokens import DIRECTIVE, INCLUDE, WORD
from .verdicts import Verdicts, names_host_type

__all__ = ["Part", "Shell", "own_names", "parameter_names", "parts_of"]

_KEYS = ("class", "struct", "union", "enum")
_ACCESS = ("public", "private", "protected")


@dataclass(eq=False)
class Part:
    """A member that needs no object of its class: a type, a constant, a static function that device code can call."""

    made: Declaration
    last: int
    """The last token of what stays: `enum Kind { ... } kind;` has a member besides."""
    names: frozenset[str]
    own: frozenset[str]
    """Names that mean something of its own inside of it."""
    words: frozenset[str] = frozenset()
    plain: frozenset[str] = frozenset()
    pairs: frozenset[tuple[str, str]] = frozenset()
    hosts: tuple[tuple[int, frozenset[str]], ...] = ()
    """Of a class, functions for the host that are declared, by their first tokens, with what they mention."""


@dataclass(eq=False)
class Shell:
    """What is left of a class, and what goes."""

    parts: list[Part]
    lost: frozenset[str]
    """Names of its other members."""
    closed: bool
    """Whether it has other members whose names nobody knows."""
    colon: int
    """Where its bases begin, or its body."""


def parts_of(verdicts: Verdicts, made: Declaration) -> Shell | None:
    """The members of a class, apart; None of one that has to stay whole or goes whole."""
    parser = verdicts.parser
    if verdicts.after_name(made) is None or not _is_understood(parser, made):
        return None
    parts: list[Part] = []
    lost: set[str] = set()
    closed = False
    for member in parser.members.get(made, ()):
        if (last := _last_of_part(verdicts, member)) is not None:
            names = _names(parser, member)
            parts.append(Part(member, last, frozenset(names), frozenset(own_names(parser, member))))
        elif _inherits_constructors(parser, member):
            continue
        elif not _is_friend(parser, member):
            lost.update(_names(parser, member))
            closed |= _has_unknown_names(verdicts, member)
        elif not _is_harmless_friend(parser, member, made):
            return None
    colon = next((i for i in range(made.name_at, made.body) if parser.tokens[i].text == ":"), made.body)
    return Shell(parts, frozenset(lost), closed, colon)


def _is_understood(parser: Parser, made: Declaration) -> bool:
    """Whether all that stands in a class is one of its members."""
    index, end = made.body + 1, parser.match[made.body]
    members = {member.first: member for member in parser.members.get(made, ())}
    while index < end:
        token = parser.tokens[index]
        if (member := members.get(index)) is not None:
            index = member.last
        elif token.text in _ACCESS:
            index = parser.next_of(index)
        elif (token.kind == DIRECTIVE and INCLUDE.match(token.text)) or (token.kind != DIRECTIVE and token.text != ";"):
            return False
        index += 1
    return True


def _last_of_part(verdicts: Verdicts, member: Declaration) -> int | None:
    """The last token of a member that needs no object of its class; None of another one."""
    parser, words = verdicts.parser, member.words
    if "friend" in words or member.instantiation or verdicts.of(member) in ("cut", "erase"):
        return None
    if _inherits_constructors(parser, member):
        return None
    if member.kind in ("class", "enum") and member.body >= 0:
        if (member.kind == "class" and not member.name and "typedef" not in words) or _needs_host(parser, member):
            return None
        closed = parser.attributes_end(member)
        return member.last if "typedef" in words or not _has_words(parser, closed + 1, member.last) else closed
    if names_host_type(parser, member.first, member.last):
        return None
    static = "static" in words and not (member.kind == "variable" and member.device)
    called = member.kind == "function" and (member.device or bool(words & {"constexpr", "consteval"}))
    typed = member.kind == "alias" or (member.kind == "other" and ("typedef" in words or _only_names(parser, member)))
    return member.last if typed or (static and (called or member.kind == "variable")) else None


def _needs_host(parser: Parser, made: Declaration) -> bool:
    """Whether a class has a base or a member of a type of the host."""
    return any(
        names_host_type(parser, each.first, each.body if each.body >= 0 else each.head_end)
        for each in (made, *parser.inside(made))
        if each.kind in ("class", "variable", "alias", "other")
    )


def _has_words(parser: Parser, first: int, end: int) -> bool:
    return any(token.kind == WORD for token in parser.tokens[first:end])


def _only_names(parser: Parser, member: Declaration) -> bool:
    """Whether it only declares a type: `struct Rest;`, `enum class Kind : int;`."""
    return parser.tokens[member.first].text in _KEYS


def _names(parser: Parser, member: Declaration) -> Iterator[str]:
    """The names that a member puts into its class."""
    tokens = parser.tokens
    if member.kind == "macro":
        yield from parser.surroundings.expanded(t.text for t in tokens[member.first : member.last] if t.kind == WORD)
        return
    named = parser.declared_names(member)
    yield from parser.surroundings.expanded(named)
    if member.kind == "variable":
        yield from _enclosed_names(parser, member)
    if member.kind == "enum" and member.body >= 0:
        yield from (tokens[i].text for i in range(member.body, member.last) if tokens[i - 1].text in ("{", ","))
    if member.kind == "class" and not member.name:  # what is in an anonymous union is the class's
        for inside in parser.members.get(member, ()):
            yield from _names(parser, inside)


def _enclosed_names(parser: Parser, member: Declaration) -> Iterator[str]:
    """The names of a declaration that are in parentheses: `double (x);`."""
    head = itertools.takewhile(lambda i: parser.tokens[i].text not in ("=", "{", "["), range(member.first, member.last))
    for index in head:
        enclosed = parser.is_at(index, "(") and parser.match.get(index) == index + 2 and index > member.first
        if enclosed and parser.tokens[index - 1].text not in (*OPERANDS, "alignas"):
            yield parser.tokens[index + 1].text


def own_names(parser: Parser, made: Declaration) -> Iterator[str]:
    """Names that mean something of its own inside of a class or a function: its members, its parameters."""
    yield from _names(parser, made)
    yield from parameter_names(parser, made) if made.kind == "function" else ()
    if made.kind == "class" and made.name:
        for inside in parser.members.get(made, ()):
            yield from _names(parser, inside)


def parameter_names(parser: Parser, made: Declaration) -> Iterator[str]:
    """The names of a function's parameters."""
    opened = parser.next_of(made.name_at)
    for part in arguments_of(parser, opened) if parser.is_at(opened, "(") else ():
        named = list(itertools.takewhile(lambda token: token.text not in ("=", "["), part))
        if len(named) > 1 and named[-1].kind == WORD and named[-2].text != "::" and named[-1].text not in NOT_NAMES:
            yield named[-1].text


def _has_unknown_names(verdicts: Verdicts, member: Declaration) -> bool:
    """Whether a macro may bring further names with a member."""
    around, parser = verdicts.surroundings, verdicts.parser
    end = member.body if member.body >= 0 and member.kind == "function" else member.last
    words = {token.text for token in parser.tokens[member.first : member.last] if token.kind == WORD}
    head = around.expanded(token.text for token in parser.tokens[member.first : end] if token.kind == WORD)
    brought = around.expanded(words) - words
    macros = head & around.macros.keys()
    if any(name not in around.definitions for name in macros) or any(
        "##" in macro.text for name in macros for macro in around.definitions[name]
    ):
        return True
    if member.kind == "macro":
        return not macros
    unknown = member.kind == "function" and member.name_at == member.specifiers and member.parent is not None
    named = unknown and member.name != getattr(member.parent, "name", "") and not member.name.startswith("operator")
    several = bool(brought & {";", "{"}) and member.kind != "function"
    known = member.kind in ("function", "variable", "alias", "enum", "class") or "static_assert" in member.words
    return named or several or not known or verdicts.has_unknown_specifier(member)


def _inherits_constructors(parser: Parser, member: Declaration) -> bool:
    """Whether it is `using Base::Base;`, which names nothing that is without an object."""
    texts = [token.text for token in parser.tokens[member.last - 3 : member.last]]
    return member.kind == "alias" and texts[1:2] == ["::"] and texts[0] == texts[2]


def _is_friend(parser: Parser, member: Declaration) -> bool:
    return any(token.text == "friend" for token in parser.tokens[member.first : max(member.name_at, member.first + 1)])


def _is_harmless_friend(parser: Parser, member: Declaration, made: Declaration) -> bool:
    """Whether what a class makes its friend is found by nothing: not by an argument of a type in the class either."""
    if member.kind != "function":
        return True
    if member.device or member.words & {"constexpr", "consteval"}:
        return False
    taken = is_closed(parser, made) and any(
        demand.name == made.name and not demand.path for demand in demands_of(parser, member)
    )
    return taken or bool(taken_host_objects(parser, member))
