# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The macros and namespaces of all files that go into a compile."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from .names import HOST, SPACES
from .tokens import DEFINE, DEFINES_OR_UNDEFINES, DIRECTIVE, WORD, Token, tokenize, without_thrown

__all__ = ["Macro", "Surroundings", "macro_of"]

_CONTINUED = re.compile(r"\\[ \t]*\r?\n")

_STACKED = re.compile(rb'p(?:ush|op)_macro\s*\(\s*\\?"(\w+)')
"""Pragmas that put a definition aside, or bring it back."""

_TYPES = re.compile(
    rb"""
    //[^\n]*|/\*.*?\*/
    |\b(?:class|struct|union|enum)\s+(?:[^;{}()=<>/]*?\s)?(?P<defined>_*[A-Z][A-Z0-9_]{2,})\s*(?:final\s*)?[:{]
    |\busing\s+(?P<named>_*[A-Z][A-Z0-9_]{2,})\s*=
    |\btypedef\b[^;{}/]*?\b(?P<typedef>_*[A-Z][A-Z0-9_]{2,})\s*;
    """,
    re.VERBOSE | re.DOTALL,
)
"""Types whose names look like those of macros."""

_OPENS_NAMESPACE = re.compile(r"[A-Z]\w*NAMESPACE_(?:BEGIN|OPEN)")
"""Macros that open the namespaces that they are given."""


def _opened(tokens: Sequence[Token], index: int) -> Iterator[str]:
    """The namespaces that are opened at that token: `namespace a::b {`, or a macro with their names."""
    following = tokens[index + 1 : index + 16]
    if tokens[index].text == "namespace":
        names = list(itertools.takewhile(lambda token: token.text not in ("{", ";", "="), following))
        at = index + 1 + len(names)
        if at < len(tokens) and tokens[at].text == "{":
            yield from (token.text for token in names if token.kind == WORD)
    elif _OPENS_NAMESPACE.fullmatch(tokens[index].text):
        yield from (t.text for t in itertools.takewhile(lambda token: token.text != ")", following) if t.kind == WORD)


def _declared(tokens: Sequence[Token], index: int) -> Iterator[str]:
    """The names that a definition of a type or an alias at that token gives, or that arguments follow."""
    head = tokens[index].text
    following = tokens[index + 1 : index + 16]
    if head in ("class", "struct", "union", "enum"):
        words = list(itertools.takewhile(lambda token: token.text not in ("{", ":", ";", "<", ">", ","), following))
        ends = tokens[index + 1 + len(words)].text if index + 1 + len(words) < len(tokens) else ""
        yield from (token.text for token in words if ends in ("{", ":", "<"))
    elif head == "using":
        words = list(itertools.takewhile(lambda token: token.text not in ("=", ";"), following))
        yield from (token.text for token in words[-1:])
    elif tokens[index].kind == WORD and index and tokens[index - 1].text not in (".", "->", "::"):
        yield from (head for token in following[:1] if token.text == "(")
    elif head == "(" and tokens[index - 1].text.endswith("_USING"):
        yield from (token.text for token in following[:1])


class Macro(NamedTuple):
    """What a macro is defined as."""

    parameters: tuple[str, ...] | None
    """None of one that is used without parentheses."""
    text: str


def macro_of(directive: re.Match[str]) -> Macro | None:
    """A definition by its directive; None for what only some compilers understand."""
    _, parameters, text = directive.groups()
    text = _CONTINUED.sub(lambda end: " " * len(end[0]), text)
    if parameters is None:
        return Macro(None, text)
    names = tuple(name.strip() for name in _CONTINUED.sub(" ", parameters).strip("()").split(","))
    names = () if names == ("",) else names
    plain = all(re.fullmatch(r"\w+", name) for name in names[:-1])
    return Macro(names, text) if plain and (not names or re.fullmatch(r"\w+|\.\.\.", names[-1])) else None


@dataclass(frozen=True)
class Surroundings:
    """The macros of a source and of all project headers that it could include."""

    macros: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Name of a macro -> words, braces and semicolons in all of its definitions."""
    namespaces: frozenset[str] = frozenset()
    """Namespaces that the files open themselves; what is in them is not taken for a library of the host."""
    declared: frozenset[str] = frozenset()
    """Names of types that the files define, and of what they call."""
    definitions: Mapping[str, tuple[Macro, ...]] = field(default_factory=dict)
    """All definitions of a macro in the files, where each can be understood."""
    homes: Mapping[str, int] = field(default_factory=dict)
    """Name of a macro -> how many files and pragmas define it or undefine it, the command line among them."""
    types: frozenset[str] = frozenset()
    """Types of the files whose names look like those of macros, `TABLE`."""
    parsed: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """Text of a file -> its declarations, once they are read (see declarations.py)."""
    fragments: set[str] = field(default_factory=set, compare=False, repr=False)
    """Texts of files that have no declarations of their own (see fragments.py)."""

    def knows(self, names: Iterable[str]) -> bool:
        """Whether the files have what a name stands for that is qualified with a namespace of theirs."""
        name = next((name for name in names if name not in self.namespaces), None)
        return name in (None, "operator") or name in self.declared or name in self.macros

    @classmethod
    def of(cls, files: Iterable[bytes], defines: Mapping[str, str | bool] | None = None) -> Surroundings:
        """Gather from the texts of files, and from macros of the command line."""
        macros: dict[str, set[str]] = {}
        definitions: dict[str, set[Macro | None]] = {}
        for name, value in (defines or {}).items():
            macros.setdefault(name, set()).update(re.findall(r"\w+|[{};]", "" if value is True else str(value)))
            definitions[name.partition("(")[0]] = {None}
        homes = Counter(definitions.keys())
        namespaces: set[str] = set()
        declared: set[str] = set()
        types: set[bytes] = set()
        for data in files:
            types.update(match[match.lastgroup] for match in _TYPES.finditer(data) if match.lastgroup)
            if b"define" not in data and b"namespace" not in data.lower():
                continue
            tokens = tokenize(data.decode("latin-1"))
            here: set[str] = set()
            for index, token in enumerate(tokens):
                namespaces.update(_opened(tokens, index))
                declared.update(_declared(tokens, index))
                if token.kind == DIRECTIVE and (match := DEFINE.match(token.text)):
                    body = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', " ", match[3], flags=re.DOTALL)
                    macros.setdefault(match[1], set()).update(re.findall(r"<<<|\w+|[{};]", without_thrown(body)))
                    definitions.setdefault(match[1], set()).add(macro_of(match))
                if token.kind == DIRECTIVE and (match := DEFINES_OR_UNDEFINES.match(token.text)):
                    here.add(match[1])
            homes.update(here)
            homes.update(match[1].decode() for match in _STACKED.finditer(data))
        understood = {name: tuple(filter(None, each)) for name, each in definitions.items()}
        return cls(
            {name: frozenset(words) for name, words in macros.items()},
            frozenset(namespaces),
            frozenset(declared),
            {name: each for name, each in understood.items() if len(each) == len(definitions[name])},
            homes,
            frozenset(name.decode() for name in types),
        )

    @cached_property
    def spaces(self) -> frozenset[str]:
        """Words that put a declaration on the device: the keywords, and macros that can stand for one."""
        return frozenset(self.reaching(SPACES))

    @cached_property
    def spreading(self) -> frozenset[str]:
        """Macros that do nothing but use another for each of a list: `#define FOR_ALL(X) X(a) X(b)`."""
        found: set[str] = set()
        while more := {
            n for n in self.definitions.keys() - found if all(self._spreads(d, found) for d in self.definitions[n])
        }:
            found |= more
        return frozenset(found)

    @cached_property
    def complete(self) -> frozenset[str]:
        """Macros after whose use another declaration begins."""
        ended = {n for n, each in self.definitions.items() if all(m.text.rstrip().endswith((";", "}")) for m in each)}
        return self.spreading | ended

    @staticmethod
    def _spreads(macro: Macro, others: Collection[str]) -> bool:
        used, depth = False, 0
        tokens = [token for token in tokenize(macro.text) if token.text != ";"]
        for token, following in itertools.zip_longest(tokens, tokens[1:]):
            depth += (token.text == "(") - (token.text == ")")
            if token.text not in "()" and depth == 0:
                if following is None or following.text != "(" or token.text not in {*(macro.parameters or ()), *others}:
                    return False
                used = True
        return used

    @cached_property
    def hosts(self) -> frozenset[str]:
        """`__host__` and macros that stand for it and for nothing of the device."""
        return frozenset(self.reaching({HOST}) - self.spaces)

    def reaching(self, goals: Collection[str]) -> set[str]:
        """`goals`, and the macros that can bring one of them."""
        users: dict[str, list[str]] = {}
        for name, words in self.macros.items():
            for word in words:
                users.setdefault(word, []).append(name)
        found = set(goals)
        pending = list(goals)
        while pending:
            for user in users.get(pending.pop(), ()):
                if user not in found:
                    found.add(user)
                    pending.append(user)
        return found

    def expanded(self, words: Iterable[str]) -> set[str]:
        """`words` with all that macros among them can bring."""
        found = set(words)
        pending = list(found)
        while pending:
            for word in self.macros.get(pending.pop(), ()):
                if word not in found:
                    found.add(word)
                    pending.append(word)
        return found
