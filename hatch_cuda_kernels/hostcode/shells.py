# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Which classes only the host has objects of, though device code names their members: `Layer::width`.

Of such a class a shell is left (see `parts`), and so of all that have one as a base or a member. Nothing that is left
has one of them as a type: each is named for one of its members, or by one of the others. So nothing can ask for its
size, its layout, or what it can be made of. Of the members, those stay that something mentions and that need no object.
A name that goes gives way to no other one: nothing names it as a member of the class, and nothing has it that looks
names up in the class: what stays of it, of classes derived from it, and what is defined out of these.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from .parts import Part, Shell, own_names
from .surroundings import Surroundings
from .units import Reader, Unit

__all__ = ["QUALIFIES", "Left", "Shells"]

QUALIFIES = re.compile(r"(\w+)\s*(?:<[^<>]*>)?\s*::\s*(?=(\w+))")
_QUALIFIES_PLAINLY = re.compile(r"\b([A-Za-z_]\w*)\s*::\s*(?=([A-Za-z_]\w*))")
_EVERYWHERE = frozenset(
    """
    std size_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t void bool char short int long float
    double signed unsigned auto const volatile static inline constexpr typename class struct enum using typedef true
    false sizeof public private protected return __device__ __host__ __forceinline__ half __half
    """.split()
)
"""Words that no base class declares anew."""


class Left(NamedTuple):
    """What is left of a class."""

    parts: Mapping[int, int]
    """First token of each member that stays -> the last."""
    based: bool
    """Whether its bases stay."""


class _Closure(Protocol):
    """What is kept of the files."""

    units: Sequence[Unit]
    surroundings: Surroundings
    mentioned: set[str]
    plain: set[str]
    by_name: dict[str, list[Unit]]

    def mention(self, words: Collection[str]) -> None: ...
    def run(self) -> None: ...


@dataclass(eq=False)
class _Class:
    """A class that may be a shell, or another name of one."""

    unit: Unit
    names: Collection[str]
    shell: Shell | None
    """None of an alias."""
    bases: frozenset[str]
    """What its bases are called, or what an alias stands for."""
    given: frozenset[str] = frozenset()
    """What of its head is named as a type: arguments of templates."""
    arguments: frozenset[str] = frozenset()
    """What its bases are given."""
    based: bool = True
    open: bool = False
    """Whether it has members, its own or inherited, whose names nobody knows."""
    staying: Sequence[Part] = ()
    lost: frozenset[str] = frozenset()


class Shells:
    """The shells among the classes that are kept, which keep in turn what they mention."""

    def __init__(
        self,
        closure: _Closure,
        readers: Mapping[str, Reader],
        pairs: Collection[tuple[str, str]],
        complained: Mapping[str, Collection[int]],
    ) -> None:
        self.closure, self.readers, self.pairs, self.complained = closure, readers, pairs, complained
        self.known: dict[Unit, _Class | None] = {}
        self.macros: dict[str, tuple[set[str], set[tuple[str, str]]]] = {}
        self.left: dict[Unit, Left] = {}
        self.outside: list[Unit] = []
        """Definitions of members that go."""
        self.dragging: list[tuple[str, int]] = []
        """Functions for the host of classes in the shells that mention members which go."""

    def find(self) -> Shells:
        """Find them all, and keep what they mention."""
        while True:
            self.left, self.outside, self.dragging = {}, [], []
            possible = self._possible()
            if self._keep(self._bases(possible)):
                continue
            found = self._settled(possible)
            shells = [each for each in found if each.shell is not None]
            if not any(each.staying for each in shells):
                return self
            for each in shells:
                parts = {part.made.first: part.last for part in each.staying}
                self.left[each.unit] = Left(parts, each.based)
            self.dragging = [(each.unit.label, first) for each in shells for first in self._dragged(each, shells)]
            self.outside = [unit for unit in self._kept() if self._defines_lost(unit, found)]
            words = {word for each in shells for part in each.staying for word in part.words}
            words |= {word for each in shells if each.based for word in each.bases}
            if not self._keep(words):
                return self

    @staticmethod
    def _dragged(each: _Class, shells: Sequence[_Class]) -> Iterator[int]:
        """The functions for the host in what stays of a class that mention what goes, of it or of one of its bases."""
        if not any(part.hosts for part in each.staying):
            return
        above = [other for other in shells if other is each or not each.bases.isdisjoint(other.names)]
        gone = each.lost.union(
            *(part.names for c in above if c.shell for part in c.shell.parts if part not in c.staying)
        )
        for part in each.staying:
            yield from (first for first, words in part.hosts if not (words - part.own).isdisjoint(gone))

    def _keep(self, words: Collection[str]) -> bool:
        """Keep what these words mention; whether that is anything new."""
        if self.closure.surroundings.expanded(words) <= self.closure.mentioned:
            return False
        self.closure.mention(words)
        self.closure.run()
        return True

    def _bases(self, possible: list[_Class]) -> set[str]:
        """What the bases of those are called that code names members of."""
        qualifying = {one for unit in self._kept() for one, _ in unit.pairs} if possible else set[str]()
        qualifying |= {one for one, _ in self.pairs}
        for macro in self.closure.mentioned & self.closure.surroundings.macros.keys() if possible else ():
            qualifying |= {one for one, _ in self._brought(macro)[1]}
        found: set[str] = set()
        before = -1
        while before < len(found):
            before = len(found)
            for each in reversed(possible):  # what is derived comes after its bases, most of the time
                if not (qualifying.isdisjoint(each.names) and found.isdisjoint(each.names)):
                    found |= each.bases
        return found

    def _kept(self) -> Iterator[Unit]:
        """What stays and is more than a declaration for the host."""
        return (unit for unit in self.closure.units if unit.kept and not unit.weak)

    def _possible(self) -> list[_Class]:
        """The classes of the host that are kept, and those that cannot do without one of them, with their aliases."""
        kept = [unit for unit in self._kept() if unit.made.kind in ("class", "alias")]
        pending = [u for u in kept if u.opaque or u.made.first in self.complained.get(u.label, ())]
        users: dict[str, list[Unit]] = {}
        for unit in kept if pending else ():
            for word in {unit.made.name, *unit.plain}:
                users.setdefault(word, []).append(unit)
        found: dict[Unit, _Class] = {}
        while pending:
            unit = pending.pop()
            each = self._read(unit)
            if unit not in found and each is not None:
                found[unit] = each
                pending += [user for name in each.names for user in users.get(name, ())]
        return list(found.values())

    def _read(self, unit: Unit) -> _Class | None:
        if unit not in self.known:
            self.known[unit] = self._class(unit)
        return self.known[unit]

    def _class(self, unit: Unit) -> _Class | None:
        made, reader = unit.made, self.readers[unit.label]
        if made.kind == "alias" and unit.names:
            bases, given = reader.named(made.first, made.last)
            return _Class(unit, unit.names, None, bases - {*unit.names}, given)
        shell = reader.shell(made) if made.kind == "class" and made.name else None
        if shell is None:
            return None
        outer, given = reader.named(made.first, shell.colon)
        bases, arguments = reader.named(shell.colon, made.body)
        return _Class(unit, [made.name], shell, bases, (outer - {made.name}) | given, arguments)

    def _settled(self, possible: list[_Class]) -> list[_Class]:
        """Those of which nothing is left that needs more than a shell."""
        found = possible
        while found:
            by_name: dict[str, list[_Class]] = {}
            for each in found:
                for name in each.names:
                    by_name.setdefault(name, []).append(each)
            self._part(found, by_name)
            needed = self._with_uses(self._needed(found, by_name), by_name)
            staying = [each for each in found if needed.isdisjoint(each.names)]
            if len(staying) == len(found):
                break
            found = staying
        return found

    @staticmethod
    def _with_uses(needed: set[str], by_name: Mapping[str, list[_Class]]) -> set[str]:
        """Names of classes, with those that they cannot do without."""
        pending = [*needed]
        while pending:
            for each in by_name[pending.pop()]:
                more = (each.unit.plain & by_name.keys()) - needed
                needed |= more
                pending += more
        return needed

    def _mentioned(self, found: list[_Class]) -> set[Part]:
        """The members that something mentions, or another of them."""
        by_name: dict[str, list[Part]] = {}
        for each in found:
            for part in each.shell.parts if each.shell is not None else ():
                for name in part.names:
                    by_name.setdefault(name, []).append(part)
        pending = [*(by_name.keys() & self.closure.mentioned)]
        words, parts = set(pending), set[Part]()
        while pending:
            for part in by_name[pending.pop()]:
                parts.add(part)
                more = (self.closure.surroundings.expanded(part.words) & by_name.keys()) - words
                words |= more
                pending += more
        return parts

    def _part(self, found: list[_Class], by_name: Mapping[str, list[_Class]]) -> None:
        """Tell which members stay of each, by what the others lose."""
        mentioned = self._mentioned(found)
        for each in found:
            parts = each.shell.parts if each.shell is not None else ()
            each.lost = each.shell.lost if each.shell is not None else frozenset()
            each.staying = [part for part in parts if part in mentioned]
            each.based = each.arguments.isdisjoint(by_name) and all(self._is_whole(w, by_name) for w in each.bases)
            each.open = each.shell is not None and (each.shell.closed or not each.based)
        changed = True
        while changed:
            changed = False
            for each in found:
                above = [base for word in each.bases for base in by_name.get(word, ())]
                lost = each.lost.union(*(base.lost for base in above))
                going = [part for part in each.staying if not self._can_stay(each, part, lost)]
                lost = lost.union(*(part.names for part in going))
                opened = each.open or any(base.open for base in above)
                changed |= lost != each.lost or opened != each.open
                each.lost, each.open = lost, opened
                each.staying = [part for part in each.staying if part not in going]

    def _is_whole(self, word: str, by_name: Mapping[str, list[_Class]]) -> bool:
        """Whether a base is a class that the files define, with all members that have not gone with a shell."""
        units = [unit for unit in self.closure.by_name.get(word, ()) if unit.made.kind != "other"]
        known = {each.unit for each in by_name.get(word, ())}
        whole = all(u in known or (u.kept and u.made.kind in ("class", "alias") and not u.opaque) for u in units)
        return word in _EVERYWHERE or (bool(units) and whole)

    def _can_stay(self, each: _Class, part: Part, lost: frozenset[str]) -> bool:
        words = self.closure.surroundings.expanded(part.words) - part.own
        if not words.isdisjoint(lost) or not part.plain.isdisjoint(each.names):
            return False
        if each.open:
            return words <= _EVERYWHERE.union(*(other.names for other in each.staying))
        return True

    def _needed(self, found: list[_Class], by_name: Mapping[str, list[_Class]]) -> set[str]:
        """Names of those of which something is left that needs the class, or a member that goes."""
        shells = {each.unit: each for each in found}
        plain, pairs = set(self.closure.plain), set(self.pairs)
        needed: set[str] = set()
        for unit in self._kept():
            if unit in shells:
                plain |= shells[unit].given
                plain |= shells[unit].arguments if shells[unit].based else set()
                pairs |= unit.pairs if unit.made.kind == "alias" else set()
                for part in shells[unit].staying:
                    plain |= part.plain
                    pairs |= part.pairs
            elif not self._defines_lost(unit, found):
                own = {*unit.names} if unit.made.instantiation else set[str]()
                plain |= unit.plain - own
                pairs |= unit.pairs
                needed.update(self._looked_up(unit, by_name))
            words = unit.words.union(*(part.words for part in shells[unit].staying)) if unit in shells else unit.words
            for macro in self.closure.surroundings.expanded(words) & self.closure.surroundings.macros.keys():
                plain |= self._brought(macro)[0]
                pairs |= self._brought(macro)[1]
            for name in {unit.made.name, *unit.names} & by_name.keys():
                if unit not in shells and not unit.made.instantiation and unit.made.kind != "other":
                    needed.add(name)  # a namesake
        needed |= plain & by_name.keys()
        left = {name for each in found for part in each.staying for name in part.names}
        needed |= {
            one
            for one, other in pairs
            if any(other in each.lost or (each.open and other not in left) for each in by_name.get(one, ()))
        }
        return needed

    def _brought(self, macro: str) -> tuple[set[str], set[tuple[str, str]]]:
        """The words that a macro brings, without those that only qualify another one, and those with that."""
        if macro not in self.macros:
            around = self.closure.surroundings
            texts = [each.text for each in around.definitions.get(macro, ())]
            pairs = {(one, other) for text in texts for one, other in _QUALIFIES_PLAINLY.findall(text)}
            known = bool(texts) and not any("##" in text for text in texts)
            words = {w for text in texts for w in re.findall(r"\w+", _QUALIFIES_PLAINLY.sub("", text))}
            self.macros[macro] = (words, pairs) if known else (set(around.macros[macro]), set())
        return self.macros[macro]

    def _looked_up(self, unit: Unit, by_name: Mapping[str, list[_Class]]) -> Iterator[str]:
        """The classes in which a definition may look a name up that goes: that of a member of theirs."""
        for name in unit.scopes & by_name.keys():
            for each in by_name[name]:
                own = (
                    set(own_names(self.readers[unit.label].parser, unit.made))
                    if unit.made.kind == "function"
                    else set()
                )
                own = own.union(*(part.own for part in each.staying if not part.names.isdisjoint(unit.scopes)))
                if not each.lost.isdisjoint(self.closure.surroundings.expanded(unit.words) - own):
                    yield name

    def _defines_lost(self, unit: Unit, found: list[_Class]) -> bool:
        """Whether it only defines a member that goes."""
        owners = [each for each in found if not unit.scopes.isdisjoint(each.names)] if unit.scopes else []
        return not unit.made.device and any(unit.made.name in each.lost for each in owners)
