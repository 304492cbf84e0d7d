# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What of the files no kernel can reach, by names alone: declarations that nothing which stays mentions.

The roots are functions and variables with an execution or memory space, what is not understood, assertions,
using-directives and the instances that are asked for. Whatever has a name that a kept declaration mentions is kept,
wherever it is declared: overloads, specialisations and hidden twins in other scopes with it. What is left over is
mentioned nowhere. So no lookup in what is kept can have found it, and none finds another thing for its absence. Where
C++ finds a declaration without its name being there, this holds by the following:

- A macro mentions all words of all its definitions; `##` mentions every name that it could make (see pasting).
- A declaration in a namespace is found from inside that namespace, by the namespace's name, by a using-directive or
  alias, which mention it, or for an argument of a type that is declared there, which is inside it, too. So one whose
  namespace neither is mentioned nor has anything kept in it cannot be found, though its name is.
- A class keeps all that decides its layout and what libraries could ask of it: bases, data, types, constants, virtual
  functions, friends, and the functions that copy, move and destroy it. Bases are mentioned by their names, and so all
  that could be inherited and hide an outer name is kept. Enumerators are names of their enumeration.
- A class that is mentioned nowhere has no objects in what is kept; so neither its members nor its conversions,
  constructors or specialisations for it alone take part in anything.
- Names that the language or a library looks up unasked (`begin`, `get`, `swap`) count as mentioned. A literal operator
  is mentioned by its suffix, a deduction guide by its class.
- Of a class of the host that is never named but for its members, constants are left: nothing has it as a type, so that
  nothing can ask for its size, and an enumeration has no names to look up.
- Specialisations are mentioned by their template; those of a template that the files do not declare are roots. What
  a constraint, `sizeof` or `decltype` asks about is mentioned in it.

Functions for the host alone, members and operators among them, cannot be called by a kernel. They do not keep anything:
one whose head mentions something that goes has to go as well. That is not beyond doubt for code that asks about calls
without making them, so `uncovering` decides about each of those as about anything else that goes.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .calls import split_arguments, unqualified
from .declarations import Declaration
from .instantiating import instantiated
from .passing import Pass
from .pasting import Pasting
from .surroundings import Surroundings
from .tokens import NUMBER, WORD

__all__ = ["Reach", "find_unreached"]

_UNASKED = frozenset(
    """
    begin end rbegin rend size data empty get swap iter_swap iter_move tuple_size tuple_element tag_invoke main
    """.split()
)
"""Names that the language or CUDA's libraries look up by the types of arguments."""
_LIBRARIES = frozenset("std cuda cub thrust nv nvcuda cooperative_groups".split())
"""Namespaces whose names libraries may mention that are not among the files."""
_SUFFIX = re.compile(r'operator"[^"]*"\s*(\w+)')
_OF_NUMBER = re.compile(r"[A-Za-z_]\w*$")


@dataclass(frozen=True)
class Reach:
    """What goes of one file, by the first tokens of declarations."""

    unreached: frozenset[int] = frozenset()
    """What nothing mentions."""
    dragging: frozenset[int] = frozenset()
    """Functions of the host that mention something that goes."""
    shells: frozenset[int] = frozenset()
    """Classes of the host of which only constants are named: `Layer::Kind::dense`."""


@dataclass(eq=False)
class _Unit:
    """A declaration at namespace level, or a function of the host in a class."""

    label: str
    made: Declaration
    names: Collection[str]
    """Names that it can be found by; without any, it is found from where it stands."""
    path: tuple[str, ...]
    words: frozenset[str]
    """What it mentions."""
    plain: frozenset[str] = frozenset()
    """What of that does not only qualify another word."""
    root: bool = False
    weak: bool = False
    """Whether it keeps nothing that it mentions: only the host can call it."""
    owner: _Unit | None = None
    """The class that it is a member of."""
    special: bool = False
    """Whether it is a specialisation, `template <>`."""
    constants: bool = False
    """Whether it is a class of the host that is only declared, and has constants."""
    needs: Collection[str] = ()
    """Of a specialisation, classes of the files without which nothing can ask for it."""
    kept: bool = False


def find_unreached(
    passes: Mapping[str, Pass], surroundings: Surroundings, expressions: Collection[str] = ()
) -> dict[str, Reach]:
    """What no kernel of the files can reach. `expressions` are the instances that are asked for."""
    members: dict[tuple[str, str], bool] = {}
    for state in passes.values():
        for made in state.parser.declarations:
            if made.kind == "function" and made.parent is not None:
                member = (made.parent.name, made.name)
                members[member] = members.get(member, False) or made.device
    host = frozenset(member for member, device in members.items() if not device)
    readers = {label: _Reader(label, state, host) for label, state in passes.items()}
    units = [unit for reader in readers.values() for unit in reader.units()]
    closure = _Closure(units, Pasting([state.parser.tokens for state in passes.values()], surroundings), surroundings)
    for reader in readers.values():
        closure.spaces.update(reader.inline_spaces())
        closure.mention(reader.outside())
        closure.plain |= reader.outside()
    closure.mention({*_UNASKED, *(word for text in expressions for word in re.findall(r"\w+", text))})
    closure.plain.update(word for text in expressions for word in re.findall(r"\w+", unqualified(text)))
    closure.run()
    unreached: dict[str, set[int]] = {label: set() for label in passes}
    dragging = {label: reader.definitions for label, reader in readers.items()}
    for unit in units:
        if not unit.kept and unit.owner is None:
            unreached[unit.label].add(unit.made.first)
    goes = closure.dragging()
    for unit in goes:
        dragging[unit.label].add(unit.made.first)
    shells: dict[str, set[int]] = {label: set() for label in passes}
    for unit in closure.shells(goes):
        shells[unit.label].add(unit.made.first)
    return {
        label: Reach(frozenset(unreached[label]), frozenset(dragging[label]), frozenset(shells[label]))
        for label in passes
    }


class _Closure:
    """The units that are kept, found from the roots."""

    def __init__(self, units: Sequence[_Unit], pasting: Pasting, surroundings: Surroundings) -> None:
        self.units, self.pasting, self.surroundings = units, pasting, surroundings
        self.mentioned: set[str] = set()
        self.plain: set[str] = set()
        """Words outside of all units that do not only qualify another word."""
        self.spaces: set[str] = set(_LIBRARIES)
        """Namespaces from which, or by whose names, something can be found."""
        self.by_name: dict[str, list[_Unit]] = {}
        self.by_space: dict[str, list[_Unit]] = {}
        self.by_need: dict[str, list[_Unit]] = {}
        for unit in units:
            for name in unit.names:
                self.by_name.setdefault(name, []).append(unit)
            for space in unit.path:
                self.by_space.setdefault(space, []).append(unit)
        templates = {name for unit in units if not unit.special for name in unit.names}
        for unit in units:
            if unit.special and templates.isdisjoint(unit.names):
                unit.names = ()  # of a template of a library, which may ask for it itself
            unit.needs = [name for name in unit.needs if self._is_class(name)]
            for name in unit.needs:
                self.by_need.setdefault(name, []).append(unit)
        self.pending = [unit for unit in units if unit.root or not unit.names]

    def _is_class(self, name: str) -> bool:
        """Whether a name is that of classes and of nothing else in the files."""
        found = self.by_name.get(name, ())
        return bool(found) and name not in self.surroundings.macros and all(u.made.kind == "class" for u in found)

    def run(self) -> None:
        """Keep all that is reached."""
        while True:
            while self.pending:
                self._try(self.pending.pop())
            made = self.pasting.made(self.by_name.keys() - self.mentioned, self.mentioned)
            if not made:
                return
            self.mention(made)

    def mention(self, words: Collection[str]) -> None:
        """Take notice of words in what is kept."""
        for word in self.surroundings.expanded(words) - self.mentioned:
            self.mentioned.add(word)
            self.pending += self.by_name.get(word, ())
            self._enter(word)

    def _enter(self, space: str) -> None:
        if space not in self.spaces and space in self.by_space:
            self.spaces.add(space)
            self.pending += self.by_space[space]

    def _try(self, unit: _Unit) -> None:
        if unit.kept or not (unit.root or self._is_reached(unit)):
            return
        unit.kept = True
        self.pending += [each for name in unit.names for each in self.by_need.get(name, ())]
        if not unit.weak:
            for space in unit.path:
                self._enter(space)
            self.mention(unit.words)

    def _is_reached(self, unit: _Unit) -> bool:
        named = not unit.names or not self.mentioned.isdisjoint(unit.names)
        inside = unit.owner is None and self.spaces.issuperset(unit.path)
        return named and inside and all(any(each.kept for each in self.by_name[name]) for name in unit.needs)

    def shells(self, goes: Collection[_Unit]) -> list[_Unit]:
        """The classes of the host that nothing which stays names but for one of their members."""
        plain = set(self.plain)
        for unit in self.units:
            if (unit.kept if unit.owner is None else unit.owner.kept) and unit not in goes:
                plain |= unit.plain - {*unit.names}
                plain |= self.surroundings.expanded(unit.words) - unit.words
        return [
            unit
            for unit in self.units
            if unit.constants
            and unit.kept
            and plain.isdisjoint(unit.names)
            and [each for name in unit.names for each in self.by_name[name] if each.made.kind != "other"] == [unit]
        ]

    def dragging(self) -> set[_Unit]:
        """The functions of the host that would stay and mention something that goes."""
        staying = [u for u in self.units if u.weak and (u.kept if u.owner is None else u.owner.kept)]
        by_word: dict[str, list[_Unit]] = {}
        for unit in staying:
            for word in self.surroundings.expanded(unit.words):
                by_word.setdefault(word, []).append(unit)
        found: set[_Unit] = set()
        while staying:
            unit = staying.pop()
            if unit not in found and self._mentions_what_goes(unit, found):
                found.add(unit)
                staying += [each for name in unit.names for each in by_word.get(name, ())]
        return found

    def _mentions_what_goes(self, unit: _Unit, gone: set[_Unit]) -> bool:
        for word in self.surroundings.expanded(unit.words):
            if word in self.by_space and word not in self.spaces:
                return True
            if word not in unit.names and any(
                each in gone or (not each.kept and self.spaces.issuperset(each.path))
                for each in self.by_name.get(word, ())
            ):
                return True
        return False


class _Reader:
    """The units of one file. `members` are classes of all files with names of functions that they have for the host."""

    def __init__(self, label: str, state: Pass, members: Collection[tuple[str, str]]) -> None:
        self.label, self.state, self.parser, self.members = label, state, state.parser, members
        self.definitions: set[int] = set()
        """Definitions, out of their classes, of members that are host code."""
        self.parameters = {index for made in self.parser.declarations for index in self._parameters(made)}
        """Where words are parameters of the templates around them."""

    def outside(self) -> set[str]:
        """The words that stand in no declaration."""
        covered = bytearray(len(self.parser.tokens))
        for made in self.parser.declarations:
            last = made.body if made.kind == "scope" else made.last
            covered[made.first : last + 1] = b"\1" * (last + 1 - made.first)
        return {t.text for index, t in enumerate(self.parser.tokens) if t.kind == WORD and not covered[index]}

    def inline_spaces(self) -> Iterator[str]:
        """The namespaces whose names need not be mentioned."""
        tokens = self.parser.tokens
        for made in self.parser.declarations:
            words = [token.text for token in tokens[made.first : made.body]] if made.kind == "scope" else []
            yield from words if "inline" in words else ()

    def units(self) -> Iterator[_Unit]:
        """All that may go, and all that keeps something."""
        members: dict[Declaration, list[Declaration]] = {}
        tops: dict[Declaration, Declaration] = {}
        for made in self.parser.declarations:
            tops[made] = made if made.parent is None else tops[made.parent]
            members.setdefault(tops[made], []).append(made)
        for top, those in members.items():
            if top.kind == "scope":
                continue
            if self._is_definition(top):
                self.definitions.add(top.first)
            elif (end := self._end(top)) > top.first:
                yield from self._units_of(top, end, [member for member in those if top.first < member.first < end])

    def _units_of(self, top: Declaration, end: int, members: Sequence[Declaration]) -> Iterator[_Unit]:
        path = self.parser.paths[top]
        weak = dict.fromkeys(member for member in members if self._is_weak(member))
        hidden = [(member.first, member.last + 1) for member in weak]
        hidden += [(self._end(m), m.last + 1) for m in members if m not in weak and self._end(m) <= m.last]
        hidden += [(m.first, m.last + 1) for m in members if m.kind == "other" and self._is_friend(m)]
        unit = _Unit(self.label, top, self._names(top), path, *self._words(top.first, end, hidden))
        unit.root, unit.weak = self._is_root(top, end, members), self._is_weak(top)
        unit.special = self.state.is_special(top)
        unit.constants = top.kind == "class" and end < top.last and any(self.state.constants(top))
        if top.kind == "macro" and unit.names:
            unit.words = instantiated(self.parser, top).words
        unit.needs = self._needs(top) if unit.special else ()
        yield unit
        for member in weak:
            words, plain = self._words(member.first, self._end(member), ())
            yield _Unit(self.label, member, (), path, words, plain, weak=True, owner=unit)

    def _end(self, made: Declaration) -> int:
        """One past what is left of a declaration."""
        verdict = self.state.verdict(made)
        if verdict == "cut":
            after = self.state.after_name(made)
            return made.first if after is None else after
        if verdict == "type":
            return self.parser.match[made.body] + 1
        if verdict in ("go", "erase") and self.state.can_erase(made):
            return made.erasable
        return made.last + 1

    def _is_weak(self, made: Declaration) -> bool:
        guide = made.name_at == made.specifiers or self.parser.is_at(made.name_at - 1, "explicit")
        weak = made.kind == "function" and self.state.verdict(made) in ("go", "erase") and not made.is_vital
        return weak and (made.parent is not None or not guide)

    def _is_definition(self, made: Declaration) -> bool:
        """Whether it defines a member of a class of any file that is host code."""
        return (
            made.kind == "function"
            and (self.state.owner(made) or "", made.name) in self.members
            and not made.device
            and not made.instantiation
            and not made.words & {"constexpr", "consteval"}
        )

    def _is_root(self, made: Declaration, end: int, members: Sequence[Declaration]) -> bool:
        if made.kind == "function":
            return made.device or self.state.has_unknown_specifier(made)
        if made.kind in ("other", "macro"):
            return not self._names(made)
        functions = [member for member in members if member.kind == "function"]
        inside = sum(self._spaces(member.first, member.last + 1) for member in functions)
        entries = any("__global__" in self.parser.surroundings.expanded(member.words) for member in functions)
        return entries or self._spaces(made.first, end) > inside

    def _spaces(self, first: int, end: int) -> int:
        """How many words in a range put something on the device."""
        return self.parser.space_before[end] - self.parser.space_before[first]

    def _names(self, made: Declaration) -> Collection[str]:
        parser = self.parser
        if made.kind == "function" and made.name.startswith("operator"):
            suffix, owner = _SUFFIX.match(made.name), self.state.owner(made)
            return [suffix[1], f'""{suffix[1]}'] if suffix else [owner] if owner else []
        following = parser.next_of(made.first)
        if made.kind == "other":  # `struct S;`
            plain = parser.tokens[made.first].text in ("struct", "class", "union") and parser.next_of(following)
            return [parser.tokens[following].text] if plain == made.last else []
        if made.kind == "macro":
            return instantiated(parser, made).templates
        if parser.is_at(made.first, "using") and parser.is_at(following, "namespace"):
            return []
        names = parser.declared_names(made)
        if any(name.startswith("operator") for name in names):
            return []
        if made.kind == "enum":
            names += [t.text for t in parser.tokens[made.first : made.last] if t.kind == WORD]
        return names

    def _needs(self, made: Declaration) -> list[str]:
        """The names of types that a specialisation is for, as far as they stand there plainly."""
        opened = made.name_at + 1
        closed = self.parser.angle(opened, made.last) if self.parser.is_at(opened, "<") else None
        found: list[str] = []
        for part in split_arguments(self.parser, opened, opened if closed is None else closed):
            words = [token.text for token in itertools.takewhile(lambda t: t.text not in ("<", "*", "&"), part)]
            plain = [word for word in words if word not in ("const", "typename", "struct", "class", "::")]
            rest = [token.text for token in part[len(words) :]]
            if plain and (not rest or rest[0] in "*&" or rest[-1] == ">"):
                found.append(plain[-1])
        return found

    def _is_friend(self, made: Declaration) -> bool:
        """Whether it makes a class a friend, which declares nothing: `friend class S;`."""
        return self.parser.is_at(made.first, "friend") and made.last - made.first == 3

    def _parameters(self, made: Declaration) -> Iterator[int]:
        """Where a template names its parameters: a word that nothing qualifies means nothing else there."""
        parser, index = self.parser, made.first
        names: set[str] = set()
        while made.template and parser.is_at(index, "template") and parser.is_at(parser.next_of(index), "<"):
            opened = parser.next_of(index)
            closed = parser.angle(opened, made.last)
            if closed is None:
                break
            for part in split_arguments(parser, opened, closed):
                named = list(itertools.takewhile(lambda token: token.text != "=", part))
                if len(named) > 1 and named[-1].kind == WORD and named[-2].text != "::":
                    names.add(named[-1].text)
            index = parser.next_of(closed)
        for index in range(made.first, made.last) if names else ():
            if parser.tokens[index].text in names and parser.tokens[index - 1].text != "::":
                yield index

    def _words(self, first: int, end: int, hidden: Sequence[tuple[int, int]]) -> tuple[frozenset[str], frozenset[str]]:
        """The words from one token to another that can mean something at namespace level; and those of them that do not
        only qualify another one."""
        parser, tokens = self.parser, self.parser.tokens
        found: set[str] = set()
        plain: set[str] = set()
        skipped = dict(hidden)
        index = first
        while index < end:
            if skipped.get(index, index) > index:
                index = skipped[index]
                continue
            token = tokens[index]
            if token.kind == WORD and index not in self.parameters:
                qualifies = parser.is_at(index + 1, "::")
                if qualifies or tokens[index - 1].text not in (".", "->"):
                    found.add(token.text)
                    plain.update(() if qualifies else (token.text,))
            elif token.kind == NUMBER and (suffix := _OF_NUMBER.search(token.text)):
                found.add(f'""{suffix[0]}')
            index += 1
        return frozenset(found), frozenset(plain)
