# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The declarations of a file with the names that they are found by, and those that they mention."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from .calls import oddly_declared, split_arguments
from .declarations import Declaration
from .instantiating import instantiated
from .parts import Shell, parameter_names, parts_of
from .tokens import DIRECTIVE, INCLUDE, NUMBER, WORD, is_thrown, names_member
from .verdicts import Verdicts

__all__ = ["Reader", "Unit"]

_SUFFIX = re.compile(r'operator"[^"]*"\s*(\w+)')
_SPLICE = re.compile(r"(?:\\[ \t]*\r?\n)+")
_OF_HEADS = frozenset("public private protected virtual using typedef typename template class struct union".split())
_OF_NUMBER = re.compile(r"[A-Za-z_]\w*$")


@dataclass(eq=False)
class Unit:
    """A declaration at namespace level, or a function of the host in a class."""

    label: str
    made: Declaration
    names: Collection[str]
    """Names that it can be found by; without any, it is found from where it stands."""
    friends: Collection[str]
    """Functions that it declares as friends: they are the namespace's, where anything else declares them."""
    path: tuple[str, ...]
    words: frozenset[str]
    """What it mentions."""
    plain: frozenset[str] = frozenset()
    """What of that does not only qualify another word."""
    root: bool = False
    weak: bool = False
    """Whether it keeps nothing that it mentions: only the host can call it."""
    owner: Unit | None = None
    """The class that it is a member of."""
    special: bool = False
    """Whether it is a specialisation, `template <>`."""
    pairs: frozenset[tuple[str, str]] = frozenset()
    """Words that qualify another one directly, each with that."""
    scopes: frozenset[str] = frozenset()
    """Of what is defined out of its class, the words that its name is qualified with."""
    opaque: bool = False
    """Whether it is a class of the host that is only declared."""
    needs: Collection[str] = ()
    """Of a specialisation, classes of the files without which nothing can ask for it."""
    kept: bool = False


class Reader:
    """The units of one file. `members` are classes of all files with names of functions that they have for the host.

    With `entries`, functions that only device code can call are no roots: something else has to mention them.
    """

    def __init__(
        self, label: str, verdicts: Verdicts, members: Collection[tuple[str, str]], *, entries: bool = False
    ) -> None:
        self.label, self.verdicts, self.parser, self.members = label, verdicts, verdicts.parser, members
        self.entries = entries
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

    def has_split_words(self) -> bool:
        """Whether the end of a line divides a name, which is read as two then."""
        text = self.parser.text
        return any(
            _SPLICE.fullmatch(text, one.end, other.start)
            for one, other in itertools.pairwise(self.parser.tokens)
            if one.kind == WORD and other.kind in (WORD, NUMBER)
        )

    def inline_spaces(self) -> Iterator[str]:
        """The namespaces whose names need not be mentioned."""
        tokens = self.parser.tokens
        for made in self.parser.declarations:
            words = [token.text for token in tokens[made.first : made.body]] if made.kind == "scope" else []
            yield from words if "inline" in words else ()

    def units(self) -> Iterator[Unit]:
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

    def _units_of(self, top: Declaration, end: int, members: Sequence[Declaration]) -> Iterator[Unit]:
        path = self.parser.paths[top]
        weak = dict.fromkeys(member for member in members if self._is_weak(member))
        hidden = self._hidden(members)
        friends = [m.name for m in members if m.kind == "function" and "friend" in self._head(m)]
        words, plain, pairs = self._words(top.first, end, hidden)
        unit = Unit(self.label, top, self._names(top), friends, path, words, plain, pairs=pairs)
        unit.root, unit.weak = self._is_root(top, end, members), self._is_weak(top)
        unit.special = self.verdicts.is_special(top)
        unit.opaque = top.kind == "class" and end < top.last and self.verdicts.of(top) == "cut"
        unit.scopes = self._scopes(top)
        if top.kind == "macro" and unit.names:
            unit.words = instantiated(self.parser, top).words
        unit.needs = self._needs(top) if unit.special else ()
        yield unit
        for member in weak:
            words, plain, pairs = self._words(member.first, self._end(member), ())
            yield Unit(self.label, member, (), (), path, words, plain, weak=True, owner=unit, pairs=pairs)

    def shell(self, made: Declaration) -> Shell | None:
        """A class of the host as its members are told apart, with what those mention that can stay."""
        shell = parts_of(self.verdicts, made)
        for part in shell.parts if shell is not None else ():
            inside = [part.made, *self.parser.inside(part.made)]
            hidden = self._hidden(inside)
            hidden += [(i, i + 1) for each in inside if each.kind == "function" for i in self._of_parameters(each)]
            part.words, part.plain, part.pairs = self._words(part.made.first, part.last + 1, hidden)
            weak = [each for each in inside if self._is_weak(each)]
            part.hosts = tuple((each.first, self._words(each.first, self._end(each), ())[0]) for each in weak)
        return shell

    def named(self, first: int, end: int) -> tuple[frozenset[str], frozenset[str]]:
        """The words in a range that do not only qualify another one, and those of them in arguments of templates."""
        inside: set[str] = set()
        index = first
        while index < end:
            closed = self.parser.angle(index, end) if self.parser.is_at(index, "<") else None
            if closed is not None:
                inside |= self._words(index, closed, ())[1]
                index = closed
            index += 1
        plain = self._words(first, end, ())[1] - _OF_HEADS
        return plain - inside, frozenset(inside)

    def _hidden(self, members: Sequence[Declaration]) -> list[tuple[int, int]]:
        """What goes of declarations: functions for the host or their bodies, and friends that are classes."""
        weak = {member for member in members if self._is_weak(member)}
        found = [(member.first, member.last + 1) for member in weak]
        found += [(self._end(m), m.last + 1) for m in members if m not in weak and self._end(m) <= m.last]
        return found + [(m.first, m.last + 1) for m in members if m.kind == "other" and self._is_friend(m)]

    def _of_parameters(self, made: Declaration) -> Iterator[int]:
        """Where a function names its parameters."""
        names = {*parameter_names(self.parser, made)}
        for index in range(made.name_at + 1, made.last) if names else ():
            if self.parser.tokens[index].text in names and not self.parser.is_at(index + 1, "::"):
                yield index

    def _scopes(self, made: Declaration) -> frozenset[str]:
        """The words that qualify the name of what is defined out of its class, `Table<T>::Row::size`."""
        tokens, found = self.parser.tokens, set[str]()
        index = made.name_at if made.kind in ("function", "variable", "class", "enum") else -1
        while index > made.first and tokens[index - 1].text in ("::", "~"):
            index -= 1 if tokens[index - 1].text == "~" else 2
            depth = 0
            while index > made.first:
                depth += (tokens[index].text == ">") - (tokens[index].text == "<")
                if depth == 0 and tokens[index].kind == WORD:
                    break
                index -= 1
            found.add(tokens[index].text)
        return frozenset(found)

    def _head(self, made: Declaration) -> Collection[str]:
        """The words before the name of a function."""
        return {token.text for token in self.parser.tokens[made.first : made.name_at]}

    def _end(self, made: Declaration) -> int:
        """One past what is left of a declaration."""
        verdict = self.verdicts.of(made)
        if verdict == "cut":
            after = self.verdicts.after_name(made)
            return made.first if after is None else after
        if verdict == "type":
            return self.parser.match[made.body] + 1
        if verdict in ("go", "erase") and self.verdicts.can_erase(made):
            return made.erasable
        return made.last + 1

    def _is_weak(self, made: Declaration) -> bool:
        guide = made.name_at == made.specifiers or self.parser.is_at(made.name_at - 1, "explicit")
        weak = made.kind == "function" and self.verdicts.of(made) in ("go", "erase") and not made.is_vital
        return weak and (made.parent is not None or not guide)

    def _is_definition(self, made: Declaration) -> bool:
        """Whether it defines a member of a class of any file that is host code."""
        return (
            made.kind == "function"
            and (self.verdicts.owner(made) or "", made.name) in self.members
            and not made.device
            and not made.instantiation
            and not made.words & {"constexpr", "consteval"}
        )

    def _is_root(self, made: Declaration, end: int, members: Sequence[Declaration]) -> bool:
        if any(INCLUDE.match(token.text) for token in self.parser.tokens[made.first : end] if token.kind == DIRECTIVE):
            return True  # what it declares stands in another file: `enum { ... #include "list.def" ... };`
        if made.kind != "macro" and not self.parser.surroundings.macros.keys().isdisjoint(self._names(made)):
            return True  # what it declares is called as a macro says: `struct PASTE(Co, de) { ... };`
        if made.kind == "function":
            callee = self.entries and self._is_callee(made)
            return (made.device and not callee) or self.verdicts.has_unknown_specifier(made)
        if made.kind in ("other", "macro"):
            return not self._names(made)
        functions = [member for member in members if member.kind == "function"]
        inside = sum(self._spaces(member.first, member.last + 1) for member in functions)
        entries = any("__global__" in self.parser.surroundings.expanded(member.words) for member in functions)
        return entries or self._spaces(made.first, end) > inside

    def _is_callee(self, made: Declaration) -> bool:
        """Whether it is a function of the device and no kernel."""
        words = self.parser.surroundings.expanded(made.words)
        return made.kind == "function" and "__device__" in words and "__global__" not in words

    def _spaces(self, first: int, end: int) -> int:
        """How many words in a range put something on the device."""
        return self.parser.space_before[end] - self.parser.space_before[first]

    def _names(self, made: Declaration) -> Collection[str]:
        parser = self.parser
        if made.kind == "function" and made.name.startswith("operator"):
            suffix, owner = _SUFFIX.match(made.name), self.verdicts.owner(made)
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
        if made.kind in ("function", "variable") and not made.device:
            names += sorted(oddly_declared(parser, made))
        if any(name.startswith("operator") for name in names):
            return []
        if made.kind == "enum":
            names += [t.text for t in parser.tokens[made.first : made.last] if t.kind == WORD]
        if self.entries and self._is_callee(made) and (owner := self.verdicts.owner(made)):
            names.append(owner)  # of a member, which is asked for in an object
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

    def _words(
        self, first: int, end: int, hidden: Sequence[tuple[int, int]]
    ) -> tuple[frozenset[str], frozenset[str], frozenset[tuple[str, str]]]:
        """The words from one token to another that can mean something at namespace level; those of them that do not
        only qualify another one; and those that do, each with that."""
        parser, tokens = self.parser, self.parser.tokens
        found: set[str] = set()
        plain: set[str] = set()
        pairs: set[tuple[str, str]] = set()
        skipped = dict(hidden)
        index = first
        while index < end:
            if skipped.get(index, index) > index:
                index = skipped[index]
                continue
            token = tokens[index]
            if token.kind == WORD and index not in self.parameters and not is_thrown(tokens, index):
                qualified = self._qualified(index)
                if qualified or not names_member(tokens, index, parser.surroundings.macros):
                    found.add(token.text)
                    plain.update(() if qualified else (token.text,))
                    pairs.update([(token.text, qualified)] if qualified else ())
            elif token.kind == NUMBER and (suffix := _OF_NUMBER.search(token.text)):
                found.add(f'""{suffix[0]}')
            index += 1
        return frozenset(found), frozenset(plain), frozenset(pairs)

    def _qualified(self, index: int) -> str:
        """The word that another one does nothing but qualify: `size` of `Table::size` and `Table<int>::size`."""
        parser, following = self.parser, self.parser.next_of(index)
        if parser.is_at(following, "<"):
            closed = parser.angle(following, parser.limit)
            following = following if closed is None else parser.next_of(closed)
        if not parser.is_at(following, "::"):
            return ""
        at = parser.next_of(following)
        at = parser.next_of(at) if parser.is_at(at, "template") else at
        return parser.tokens[at].text if at < len(parser.tokens) and parser.tokens[at].kind == WORD else ""
