# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What of the files no kernel can reach, by names alone: declarations that nothing which stays mentions.

The roots are functions and variables with an execution or memory space, what is not understood, assertions,
using-directives and the instances that are asked for. Whatever has a name that a kept declaration mentions is kept,
wherever it is declared: overloads, specialisations and hidden twins in other scopes with it. What is left over is
mentioned nowhere. So no lookup in what is kept can have found it, and none finds another thing for its absence. Where
C++ finds a declaration without its name being there, this holds by the following (and where kernels are the only
functions among the roots, for the functions that they call as well):

- A macro mentions all words of all its definitions; `##` mentions every name that it could make (see pasting).
- A declaration in a namespace is found from inside that namespace, by the namespace's name, by a using-directive or
  alias, which mention it, or for an argument of a type that is declared there, which is inside it, too. So one whose
  namespace neither is mentioned nor has anything kept in it cannot be found, though its name is.
- A class keeps all that decides its layout and what libraries could ask of it: bases, data, types, constants, virtual
  functions, friends, and the functions that copy, move and destroy it. Bases are mentioned by their names, and so all
  that could be inherited and hide an outer name is kept. Enumerators are names of their enumeration.
- A class that is mentioned nowhere has no objects in what is kept; so neither its members nor its conversions,
  constructors or specialisations for it alone take part in anything.
- A function that a class makes its friend is one of the namespace: where anything else declares it, the class is kept
  with its name. What an `#include` in the middle of a declaration brings is not looked for: such a declaration is kept.
- Names that the language or a library looks up unasked (`begin`, `get`, `swap`) count as mentioned. A literal operator
  is mentioned by its suffix, a deduction guide by its class.
- Of a class of the host that is never named but for its members, a shell is left (see `shells`): nothing has it as a
  type, so that nothing can ask for its size. Functions of the host that take it go.
- Specialisations are mentioned by their template; those of a template that the files do not declare are roots. What
  a constraint, `sizeof` or `decltype` asks about is mentioned in it.

Functions for the host alone, members and operators among them, cannot be called by a kernel. They do not keep anything:
one whose head mentions something that goes has to go as well. That is not beyond doubt for code that asks about calls
without making them, so `uncovering` decides about each of those as about anything else that goes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from .calls import unqualified
from .names import CUSTOMIZATIONS
from .pasting import Pasting
from .shells import QUALIFIES, Left, Shells
from .surroundings import Surroundings
from .units import Reader, Unit
from .verdicts import Verdicts

__all__ = ["Reach", "find_unreached"]

_UNASKED = CUSTOMIZATIONS.keys() | {"tuple_size", "tuple_element", "main"}
"""Names that the language or CUDA's libraries look up without their being written."""
_LIBRARIES = frozenset("std cuda cub thrust nv nvcuda cooperative_groups".split())
"""Namespaces whose names libraries may mention that are not among the files."""


@dataclass(frozen=True)
class Reach:
    """What goes of one file, by the first tokens of declarations."""

    unreached: frozenset[int] = frozenset()
    """What nothing mentions."""
    dragging: frozenset[int] = frozenset()
    """Functions of the host that mention something that goes."""
    shells: Mapping[int, Left] = field(default_factory=dict)
    """Classes of the host of which only members are named, `Layer::Kind::dense`, with what is left of them."""


def find_unreached(
    files: Mapping[str, Verdicts],
    surroundings: Surroundings,
    expressions: Collection[str] = (),
    *,
    entries: bool = False,
    complained: Mapping[str, Collection[int]] | None = None,
) -> dict[str, Reach]:
    """What no kernel of the files can reach. `expressions` are the instances that are asked for; `complained`, classes
    of which the compiler says that only the host can have them, by their first tokens.

    With `entries`, functions of the device are among it that no kernel reaches, which nobody can call where the image
    is not linked to others.
    """
    members: dict[tuple[str, str], bool] = {}
    for state in files.values():
        for made in state.parser.declarations:
            if made.kind == "function" and made.parent is not None:
                member = (made.parent.name, made.name)
                members[member] = members.get(member, False) or made.device
    host = frozenset(member for member, device in members.items() if not device)
    readers = {label: Reader(label, state, host, entries=entries) for label, state in files.items()}
    if any(reader.has_split_words() for reader in readers.values()):
        return dict.fromkeys(files, Reach())
    units = [unit for reader in readers.values() for unit in reader.units()]
    closure = _Closure(units, Pasting([state.parser.tokens for state in files.values()], surroundings), surroundings)
    for reader in readers.values():
        closure.spaces.update(reader.inline_spaces())
        outside = reader.outside()
        closure.mention(outside)
        closure.plain |= outside
    closure.mention({*_UNASKED, *(word for text in expressions for word in re.findall(r"\w+", text))})
    closure.plain.update(word for text in expressions for word in re.findall(r"\w+", unqualified(text)))
    closure.run()
    pairs = {(one, other) for text in expressions for one, other in QUALIFIES.findall(text)}
    shells = Shells(closure, readers, pairs, complained or {}).find()
    unreached: dict[str, set[int]] = {label: set() for label in files}
    dragging = {label: reader.definitions for label, reader in readers.items()}
    for unit in units:
        if not unit.kept and unit.owner is None:
            unreached[unit.label].add(unit.made.first)
    for unit in shells.outside:
        dragging[unit.label].add(unit.made.first)
    for label, first in shells.dragging:
        dragging[label].add(first)
    for unit in closure.dragging({unit.made.name for unit in shells.left}):
        dragging[unit.label].add(unit.made.first)
    left: dict[str, dict[int, Left]] = {label: {} for label in files}
    for unit, each in shells.left.items():
        left[unit.label][unit.made.first] = each
    return {label: Reach(frozenset(unreached[label]), frozenset(dragging[label]), left[label]) for label in files}


class _Closure:
    """The units that are kept, found from the roots."""

    def __init__(self, units: Sequence[Unit], pasting: Pasting, surroundings: Surroundings) -> None:
        self.units, self.pasting, self.surroundings = units, pasting, surroundings
        self.mentioned: set[str] = set()
        self.plain: set[str] = set()
        """Words outside of all units that do not only qualify another word."""
        self.spaces: set[str] = set(_LIBRARIES)
        """Namespaces from which, or by whose names, something can be found."""
        self.by_name: dict[str, list[Unit]] = {}
        self.by_space: dict[str, list[Unit]] = {}
        self.by_need: dict[str, list[Unit]] = {}
        declared = Counter(name for unit in units for name in {*unit.names, *unit.friends})
        for unit in units:
            if unit.names and unit.friends:
                unit.names = [*unit.names, *(name for name in unit.friends if declared[name] > 1)]
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
        kinds = {unit.made.kind for unit in found}  # "other" is a declaration without a definition
        return "class" in kinds and name not in self.surroundings.macros and kinds <= {"class", "other"}

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

    def _try(self, unit: Unit) -> None:
        if unit.kept or not (unit.root or self._is_reached(unit)):
            return
        unit.kept = True
        self.pending += [each for name in unit.names for each in self.by_need.get(name, ())]
        if not unit.weak:
            for space in unit.path:
                self._enter(space)
            self.mention(unit.words)

    def _is_reached(self, unit: Unit) -> bool:
        named = not unit.names or not self.mentioned.isdisjoint(unit.names)
        inside = unit.owner is None and self.spaces.issuperset(unit.path)
        return named and inside and all(any(each.kept for each in self.by_name[name]) for name in unit.needs)

    def dragging(self, shells: Collection[str]) -> set[Unit]:
        """The functions of the host that would stay and mention something that goes, or take one of the `shells`."""
        staying = [u for u in self.units if u.weak and (u.kept if u.owner is None else u.owner.kept)]
        by_word: dict[str, list[Unit]] = {}
        for unit in staying:
            for word in self.surroundings.expanded(unit.words):
                by_word.setdefault(word, []).append(unit)
        found: set[Unit] = set()
        while staying:
            unit = staying.pop()
            if unit not in found and (not unit.plain.isdisjoint(shells) or self._mentions_what_goes(unit, found)):
                found.add(unit)
                staying += [each for name in unit.names for each in by_word.get(name, ())]
        return found

    def _mentions_what_goes(self, unit: Unit, gone: set[Unit]) -> bool:
        for word in self.surroundings.expanded(unit.words):
            if word in self.by_space and word not in self.spaces:
                return True
            if word not in unit.names and any(
                each in gone or (not each.kept and self.spaces.issuperset(each.path))
                for each in self.by_name.get(word, ())
            ):
                return True
        return False
