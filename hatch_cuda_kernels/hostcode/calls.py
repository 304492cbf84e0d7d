# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""How functions of the host can be called, and where device code asks about a call that it does not make.

Device code cannot call a function of the host: nvcc refuses that. But in an operand that is not evaluated, such as that
of `sizeof` or `decltype`, it can ask what the call would give, and then the function takes part in the choice.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from .declarations import Declaration, Parser
from .names import NOT_NAMES
from .tokens import WORD, Token

__all__ = [
    "ASKS",
    "OPERANDS",
    "Signature",
    "arguments_of",
    "asked",
    "asked_signs",
    "converts_to_anything",
    "has_lists",
    "is_explicit",
    "oddly_declared",
    "parameters_of",
    "signature_of",
    "split_arguments",
    "taken_host_objects",
    "turns_into_containers",
    "unqualified",
]

_ANY = 1_000_000
_LONGEST = 512
"""Tokens between the parentheses of a call whose arguments are counted: keeps the time linear for any text."""
OPERANDS = frozenset(
    "decltype sizeof noexcept alignof __alignof __alignof__ typeid requires concept typeof __typeof __typeof__".split()
)
"""Words whose operand is not evaluated."""
ASKS = re.compile(
    r"decltype|noexcept|requires|concept|enable_if\w*|void_t|declval|invoke_result\w*|result_of\w*"
    r"|_*is_\w*(?:constructible|assignable|convertible|invocable|aggregate|trivial|swappable|destructible|pod|literal)\w*"
)
"""What lets code depend on what a class can be made of, and made to."""


_STREAM = re.compile(r"(?:basic_)?[io]{1,2}stream")


class Signature(NamedTuple):
    """How a function can be called that only the host can call."""

    least: int
    most: int
    path: tuple[str, ...]
    """The namespaces that it is declared in."""
    streams: bool = False
    """Whether it takes a stream, which nothing in device code is or becomes."""

    def takes(self, count: int | None) -> bool:
        """Whether it may be meant by a call with that many arguments; None is not known."""
        return count is None or self.least <= count <= self.most


def signature_of(parser: Parser, declaration: Declaration, path: tuple[str, ...]) -> Signature:
    """Signature of a function, by its list of parameters."""
    opened = _list_of(parser, declaration)
    if opened is None:
        return Signature(0, _ANY, path)
    least = most = 0
    streams = any(_STREAM.fullmatch(token.text) for token in parser.tokens[opened : parser.match[opened]])
    for part in arguments_of(parser, opened):
        texts = [token.text for token in part]
        if texts == ["void"]:
            continue
        if "..." in texts:
            most = _ANY
        else:
            most += 1
            least += "=" not in texts
    if not parser.surroundings.macros.keys().isdisjoint(t.text for t in parser.tokens[opened : parser.match[opened]]):
        least, most = 0, _ANY  # a default argument, or whatever else it brings
    return Signature(least, most, path, streams)


def oddly_declared(parser: Parser, made: Declaration) -> set[str]:
    """Names of functions that a declaration gives besides: by `(f)(int)`, as a second one, by a macro."""
    tokens, macros = parser.tokens, parser.surroundings.macros
    found: set[str] = set()
    if made.name in macros:
        arguments = parser.match.get(parser.next_of(made.name_at), made.name_at)
        given = {token.text for token in tokens[made.name_at : arguments] if token.kind == WORD}
        found = parser.surroundings.expanded({made.name, *given}) - NOT_NAMES - {made.name, "__VA_ARGS__"}
    end = made.body if made.body >= 0 else made.last
    index = max(made.first, made.specifiers)
    while index < end - 1:
        token, closed = tokens[index], parser.match.get(index)
        named = tokens[index + 1].kind == WORD and tokens[index + 1].text not in NOT_NAMES
        enclosed = token.text == "(" and closed == index + 2 and parser.is_at(index + 3, "(")
        if named and (enclosed or (token.text == "," and made.kind == "function" and parser.is_at(index + 2, "("))):
            found.add(tokens[index + 1].text)
        index = (index if closed is None or token.text not in ("(", "[", "{") else closed) + 1
    return found


def parameters_of(parser: Parser, declaration: Declaration) -> list[list[Token]]:
    """The parameters of a function; none where they are not told."""
    opened = _list_of(parser, declaration)
    return [] if opened is None else list(arguments_of(parser, opened))


def _list_of(parser: Parser, declaration: Declaration) -> int | None:
    """The parenthesis that opens the parameters of a function."""
    opened = parser.next_of(declaration.name_at)
    if declaration.name.startswith("operator"):
        while opened < declaration.last and (
            not parser.is_at(opened, "(") or (parser.is_at(opened + 1, ")") and parser.is_at(opened + 2, "("))
        ):
            opened += 1
    elif parser.is_at(opened, "<"):
        opened = parser.next_of(parser.angle(opened, parser.limit) or opened)
    return opened if parser.is_at(opened, "(") and opened in parser.match else None


_HOST_OBJECT = re.compile(
    r"(?:const )?(?::: )?(?:"
    r"std :: (?P<container>(?:forward_)?list|vector|deque|(?:unordered_)?(?:multi)?(?:map|set)) < .* >+"
    r"|std :: (?P<stream>(?:basic_)?[io]{1,2}stream)(?: < .* >+)?|(?:at|torch(?: :: stable)?) :: (?P<tensor>Tensor)"
    r")(?: const)?(?: &{1,2})?(?: \w+)?"
)


def taken_host_objects(parser: Parser, declaration: Declaration) -> frozenset[str]:
    """The containers, streams and tensors of the host that each call of a function has to give it, by the names of
    their types. Nothing else turns into one but what `has_lists`, `converts_to_anything` and
    `turns_into_containers` look for."""
    opened = parser.next_of(declaration.name_at)
    if not parser.is_at(opened, "(") or opened not in parser.match:
        return frozenset()
    parameters = (" ".join(token.text for token in part) for part in arguments_of(parser, opened))
    found = filter(None, map(_HOST_OBJECT.fullmatch, parameters))
    return frozenset(match[match.lastgroup or 0] for match in found)


_LIST = "initializer_list"


def has_lists(parser: Parser, asking: Collection[str]) -> bool:
    """Whether operands that are not evaluated have lists in braces: objects without the name of their class."""
    tokens = parser.tokens
    for index, end in _operands(parser, asking):
        opened = (inside for inside in range(index + 1, end) if tokens[inside].text == "{")
        listed = any(tokens[inside - 1].text not in ("requires", ")") for inside in opened)
        if listed and not parser.is_at(index + 1, "..."):
            return True
    return False


def is_explicit(parser: Parser, member: Declaration) -> bool:
    """Whether a constructor or a conversion is `explicit` without a condition: it is not asked for an argument."""
    head = range(member.first, member.name_at)
    return any(parser.is_at(at, "explicit") and not parser.is_at(at + 1, "(") for at in head)


def converts_to_anything(parser: Parser, types: Collection[str]) -> bool:
    """Whether a file has a conversion to any type. `types` are the names of template parameters."""
    tokens = parser.tokens
    for made in parser.declarations:
        if made.kind == "function" and made.name.startswith("operator") and not is_explicit(parser, made):
            named = itertools.takewhile(lambda token: token.text != "(", tokens[made.name_at : made.head_end])
            to = [token.text for token in named if token.text not in ("operator", "const", "&", "&&")]
            if to and to[0] in types and to[1:2] in ([], ["<"]):
                return True
    return False


def turns_into_containers(parser: Parser) -> bool:
    """Whether a file has what makes a container of the host without its name: a `std::initializer_list` that is no
    parameter."""
    heads: set[int] = set()
    for made in parser.declarations:
        if made.kind == "function":
            heads.update(range(made.name_at, made.head_end))
    for index, token in enumerate(parser.tokens):
        if token.text == _LIST and index not in heads:
            return True
        if token.text == "auto" and [t.text for t in parser.tokens[index + 2 : index + 4]] == ["=", "{"]:
            return True
    return False


def asked(parser: Parser, asking: Collection[str]) -> Iterator[tuple[str, int | None]]:
    """Names in operands that are not evaluated, each with the number of arguments that follow it, where it is told.

    `asking` are the macros that can bring such an operand.
    """
    around, tokens = parser.surroundings, parser.tokens
    for index, end in _operands(parser, asking):
        for inside in range(index, end):
            name = tokens[inside].text
            if tokens[inside].kind == WORD:
                yield name, _count(parser, inside) if tokens[index].text not in asking else None
                if name in around.macros:
                    yield from ((word, None) for word in around.expanded([name]))


def asked_signs(parser: Parser, asking: Collection[str]) -> Iterator[str]:
    """The signs in each operand that is not evaluated, without what stands between them, and those of macros in it."""
    around = parser.surroundings
    for index, end in _operands(parser, asking):
        inside = parser.tokens[index + 1 : end]
        yield "".join(" " if token.kind == WORD else token.text for token in inside)
        brought = around.expanded(token.text for token in inside if token.kind == WORD) & around.definitions.keys()
        for macro in (macro for name in brought for macro in around.definitions[name]):
            yield re.sub(r"[A-Za-z_]\w*", " ", macro.text)


def _operands(parser: Parser, asking: Collection[str]) -> Iterator[tuple[int, int]]:
    """The word before each operand that is not evaluated, and one past the operand."""
    end = 0
    for index, token in enumerate(parser.tokens):
        if (
            index >= end
            and token.kind == WORD
            and (token.text in OPERANDS or token.text in asking or ASKS.fullmatch(token.text))
        ):
            end = _operand_end(parser, index)
            yield index, end


def _operand_end(parser: Parser, index: int) -> int:
    """One past the operand of the word at an index."""
    following = parser.next_of(index)
    if parser.is_at(following, "<"):
        closed = parser.angle(following, parser.limit)
        return index + 1 if closed is None else closed + 1
    if parser.is_at(following, "(") and parser.tokens[index].text != "requires":
        return parser.match.get(following, following) + 1
    if parser.tokens[index].text in ("sizeof", "requires", "concept"):  # up to the end of the expression, and more
        while following < len(parser.tokens) and parser.tokens[following].text != ";":
            following = parser.next_of(parser.match.get(following, following))
        return following
    return index + 1


def _count(parser: Parser, index: int) -> int | None:
    """How many arguments follow a name; None where that is not told."""
    opened = parser.next_of(index)
    if parser.is_at(opened, "<"):
        closed = parser.angle(opened, parser.limit)
        opened = parser.next_of(closed) if closed is not None else opened
    if not parser.is_at(opened, "(") or parser.match.get(opened, len(parser.tokens)) - opened > _LONGEST:
        return None
    parts = list(arguments_of(parser, opened))
    words = {token.text for part in parts for token in part}
    return None if "..." in words or not words.isdisjoint(parser.surroundings.macros) else len(parts)


def arguments_of(parser: Parser, opened: int) -> Iterator[list[Token]]:
    """What stands between the commas of a parenthesis."""
    return split_arguments(parser, opened, parser.match.get(opened, opened + 1))


def split_arguments(parser: Parser, opened: int, closing: int) -> Iterator[list[Token]]:
    """What stands between the commas of a bracket that opens and closes at two indices."""
    start = index = opened + 1
    while index < closing:
        text = parser.tokens[index].text
        inner = parser.match.get(index) if text in ("(", "[", "{") else None
        if text == "<":
            inner = parser.angle(index, closing)
        if text == "," and inner is None:
            yield parser.tokens[start:index]
            start = index + 1
        index = (index if inner is None else inner) + 1
    if start < closing:
        yield parser.tokens[start:closing]


_QUALIFIES = re.compile(r"\b[A-Za-z_]\w*\s*(<[^<>]*>)?\s*::")


def unqualified(text: str) -> str:
    """A name expression without what only names the member after it, but with the arguments that this has."""
    return _QUALIFIES.sub(r"\1", text)
