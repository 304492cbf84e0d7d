# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Functions that each call has to give an object of a class which is gone: nothing that is left can have meant them.

What is left has no object of a class that it does not name. So such a function is chosen for nothing, not even where
code asks about a call without making it, unless something else turns into such an object.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from .calls import is_explicit, parameters_of
from .declarations import Declaration, Parser
from .tokens import WORD

if TYPE_CHECKING:
    from .passing import Passing

__all__ = ["Absent", "Demand", "demands_of", "is_closed", "own_parameters"]


class Demand(NamedTuple):
    """A class of which a call of a function has to give it an object."""

    name: str
    path: tuple[str, ...] = ()
    """What qualifies the name."""
    deduced: bool = False
    """Whether its template arguments are deduced from the object, so that nothing is converted to it."""
    bound: bool = False
    """Whether the object has to be there already: no constructor makes one for the call."""


def demands_of(parser: Parser, function: Declaration) -> tuple[Demand, ...]:
    """The classes that stand as the types of a function's parameters, or of references there."""
    own = own_parameters(parser, function)
    found = (_demand([token.text for token in part], own) for part in parameters_of(parser, function))
    return tuple(demand for demand in found if demand is not None and (demand.path or demand.name not in own))


def own_parameters(parser: Parser, made: Declaration) -> frozenset[str]:
    """The words in the heads of a template, its parameters among them."""
    index, found = made.first, set[str]()
    while parser.is_at(index, "template") and parser.is_at(parser.next_of(index), "<"):
        opened = parser.next_of(index)
        closed = parser.angle(opened, made.last)
        if closed is None:
            break
        found.update(token.text for token in parser.tokens[opened:closed] if token.kind == WORD)
        index = parser.next_of(closed)
    return frozenset(found)


def _demand(parameter: Sequence[str], own: Collection[str]) -> Demand | None:
    """The class of an object that a parameter has to be given; None where it need not be one, or is not told."""
    words = [text for text in parameter if text not in ("const", "volatile", "struct", "class")]
    names = list(itertools.takewhile(lambda text: _is_word(text) or text == "::", words))
    rest = words[len(names) :]
    if len(names) > 1 and names[-1] != "::" and names[-2] != "::":
        names.pop()  # the name of the parameter, of which nothing follows
        if rest:
            return None
    given: list[str] = []
    if rest[:1] == ["<"]:
        closed = _closing(rest)
        given, rest = rest[1:closed], rest[closed + 1 :]
    reference = list(itertools.takewhile(lambda text: text in ("&", "&&"), rest))
    rest = rest[len(reference) :]
    path = [text for text in names if text != "::"]
    plain = len(rest) <= 1 and all(map(_is_word, rest)) and names.count("::") in (len(path) - 1, len(path))
    if not plain or not path:
        return None
    bound = reference == ["&"] and "const" not in parameter
    return Demand(path[-1], tuple(path[:-1]), _is_deduced(given, own), bound)


def _is_word(text: str) -> bool:
    return text[:1].isalpha() or text[:1] == "_"


def _closing(texts: Sequence[str]) -> int:
    """Where the first angle bracket is closed; past all where it is not told."""
    depth = 0
    for index, text in enumerate(texts):
        depth += (text == "<") - (text == ">")
        if depth == 0 or text in ("(", "[", "{"):
            return index if depth == 0 else len(texts)
    return len(texts)


def _is_deduced(given: Sequence[str], own: Collection[str]) -> bool:
    """Whether one of the arguments of a class template is a parameter of the function template, and nothing more."""
    depth, part = 0, list[str]()
    for text in (*given, ","):
        depth += (text == "<") - (text == ">")
        if text == "," and depth == 0:
            if len(part) == 1 and part[0] in own:
                return True
            part = []
        elif text != "...":
            part.append(text)
    return False


_DECLARES_TYPES = frozenset("friend struct class union enum static_assert".split())


def is_closed(parser: Parser, made: Declaration) -> bool:
    """Whether nothing but objects of a class turns into one: it has no constructor that converts, as far as is told."""
    for member in parser.members.get(made, ()):
        texts = [token.text for token in parser.tokens[member.first : member.last]]
        if member.kind in ("macro", "other") and not _DECLARES_TYPES.issuperset(texts[:1]):
            return False
        if texts[:1] == ["using"] and "::" in texts and "=" not in texts:
            return False  # it may inherit constructors
        if member.kind == "function" and member.name == made.name and _converts(parser, member, made.name):
            return False
    return True


def _converts(parser: Parser, constructor: Declaration, name: str) -> bool:
    """Whether a constructor makes an object of something else than such an object."""
    if is_explicit(parser, constructor):
        return False
    parts = [[token.text for token in part] for part in parameters_of(parser, constructor)]
    needed = [part for part in parts if "=" not in part and "..." not in part]
    if not parts or len(needed) > 1 or parts == [["void"]]:
        return False
    demand = _demand(parts[0], ())
    own = own_parameters(parser, constructor)
    return demand is None or bool(demand.path) or demand.name != name or name in own


class Absent:
    """The classes that are gone, and of which nothing that is left has an object."""

    def __init__(self, passed: Iterable[Passing], words: Collection[str]) -> None:
        """`words` are those that what is left has, or could make."""
        self._words = words
        self._made: dict[str, list[Passing]] = {}
        """Name -> what went and declared it."""
        self._conversions: list[str] = []
        for passing in passed:
            for name in passing.name.split(", "):
                if name.startswith("operator"):
                    self._conversions.append(name)
                elif passing.kind not in ("include", "body", "definition", "macro", "instantiation", "constructor"):
                    self._made.setdefault(name, []).append(passing)

    def demanded(self, passing: Passing, *, explicit: bool, converts: bool) -> bool:
        """Whether each call of a function has to give it an object that nothing has and nothing turns into.

        `explicit` tells whether a call may be written with its template arguments; `converts`, whether anything may
        turn into such an object.
        """
        return any(
            all(
                (demand.deduced and not explicit)
                or (not converts and (demand.bound or each.closed) and not self.turns_into([demand.name]))
                for each in classes
            )
            for demand in passing.demands
            if (classes := list(self._meant(demand, passing)))
        )

    def turns_into(self, names: Iterable[str]) -> bool:
        """Whether a conversion to a class of one of these names went."""
        return any(name in text for name in names for text in self._conversions)

    def _meant(self, demand: Demand, passing: Passing) -> Iterator[Passing]:
        """What a function means by the name of a class; nothing where that is not certain, or not all of it is gone."""
        made = self._made.get(demand.name, ())
        if demand.name not in self._words and all(_is_class(each) or _is_declaration(each) for each in made):
            paths = {each.path for each in made if _is_class(each)}
            ends = {path[len(path) - len(demand.path) :] for path in paths if len(path) >= len(demand.path)}
            around = any(path == passing.path[: len(path)] for path in paths)
            if demand.path in ends if demand.path else around:
                yield from filter(_is_class, made)


def _is_class(passing: Passing) -> bool:
    return passing.kind in ("class", "class definition")


def _is_declaration(passing: Passing) -> bool:
    """Whether it declares a class that nothing mentions: `struct S;`."""
    return passing.kind == "other" and not passing.reached
