# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The instances of template kernels that a source asks for, as name expressions.

nvcc compiles an instance because host code launches it, or names it otherwise. NVRTC compiles it for a name expression,
which it reads at the end of the source, outside all namespaces. So an argument is taken over only where it means the
same there: a literal, a type of the language, a name that the files declare in one place, a macro that they define
once. Constants and aliases of the function around it are put in; so are the arguments that the files give to the
function template around it. What remains is told to the author.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from .declarations import Declaration, Parser
from .surroundings import Surroundings
from .tokens import DEFINE, DIRECTIVE, NUMBER, STRING, WORD, Token, directive_name

__all__ = ["Mention", "mentions"]

_GLOBAL = "__global__"
_MOST = 512
"""Expressions taken from one compile at most."""
_DEEPEST = 4
"""How many function templates are followed from a launch to the arguments."""
_LANGUAGE = frozenset(
    """
    void bool char short int long float double signed unsigned const volatile true false nullptr sizeof alignof
    wchar_t char8_t char16_t char32_t static_cast typename template struct class enum union decltype
    """.split()
)
_INTEGERS = frozenset("int unsigned long auto size_t int32_t uint32_t int64_t uint64_t uint std".split())
_NOT_BEFORE_NAMES = frozenset(
    "return case else do sizeof goto new not const volatile static constexpr inline extern co_return co_yield".split()
)
"""Words that may stand before the use of a name."""


class Mention(NamedTuple):
    """A place that asks for an instance of a template kernel."""

    label: str
    line: int
    text: str
    """As it stands there."""
    kernel: str
    expressions: tuple[str, ...]
    """The instances that it asks for; empty where the text does not tell."""


def mentions(files: Mapping[str, bytes], surroundings: Surroundings) -> list[Mention]:
    """All places in files that ask for instances of the template kernels in them."""
    return list(_Index(files, surroundings).mentions())


class _Site(NamedTuple):
    """A name with template arguments, somewhere in the files."""

    file: _File
    at: int
    end: int
    """Index of the bracket that closes the arguments; that of the name where there are none."""
    arguments: list[list[Token]]

    @property
    def around(self) -> Declaration | None:
        """The outermost declaration around it, namespaces aside."""
        return self.file.around(self.at)


class _File:
    """One file, with the namespaces of its declarations."""

    def __init__(self, label: str, data: bytes, surroundings: Surroundings) -> None:
        self.label = label
        self.parser = Parser(data.decode("latin-1"), surroundings)
        self.paths: dict[Declaration, tuple[str, ...]] = {}
        self.tops: list[Declaration] = []
        scopes: list[tuple[int, tuple[str, ...]]] = [(len(self.parser.tokens), ())]
        for declaration in self.parser.declarations:
            while scopes[-1][0] < declaration.first:
                scopes.pop()
            path = self.paths[declaration] = scopes[-1][1]
            if declaration.kind == "scope":
                words = [t.text for t in self.parser.tokens[declaration.first : declaration.body] if t.kind == WORD]
                names = [word for word in words if word not in ("inline", "namespace", "extern")]
                scopes.append((declaration.last, path + tuple(names)))
            elif not self.tops or self.tops[-1].last < declaration.first:
                self.tops.append(declaration)

    def around(self, index: int) -> Declaration | None:
        """The outermost declaration around a token, namespaces aside."""
        low, high = 0, len(self.tops)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.tops[middle].last < index else (low, middle)
        found = self.tops[low] if low < len(self.tops) else None
        return found if found is not None and found.first <= index else None

    def sites(self, names: Mapping[str, object]) -> Iterator[_Site]:
        """Where one of `names` stands with template arguments."""
        parser = self.parser
        for index, token in enumerate(parser.tokens):
            if token.kind == WORD and token.text in names and parser.is_at(index + 1, "<"):
                closed = parser.angle(index + 1, parser.limit)
                if closed is not None:
                    yield _Site(self, index, closed, split(parser, index + 2, closed))


def split(parser: Parser, start: int, end: int) -> list[list[Token]]:
    """The tokens between brackets, cut at the commas."""
    parts: list[list[Token]] = [[]]
    index = start
    while index < end:
        token = parser.tokens[index]
        last = parser.match.get(index) if token.text in ("(", "[", "{") else None
        if token.text == "<":
            last = parser.angle(index, end)
        if token.text == "," and last is None:
            parts.append([])
            index += 1
            continue
        upto = index if last is None else last
        parts[-1] += [t for t in parser.tokens[index : upto + 1] if t.kind != DIRECTIVE]
        index = upto + 1
    return [part for part in parts if part]


class _Index:
    """What the files declare, as far as arguments can refer to it."""

    def __init__(self, files: Mapping[str, bytes], surroundings: Surroundings) -> None:
        self.surroundings = surroundings
        self.files = [_File(label, data, surroundings) for label, data in files.items()]
        self.declared: dict[str, set[tuple[str, ...]]] = {}
        """Name -> the namespaces in which the files declare it."""
        self.members: set[str] = set()
        self.kernels: dict[str, set[tuple[str, ...]]] = {}
        """Name of each template kernel -> the namespaces that have one."""
        self.templates: dict[str, list[tuple[_File, Declaration]]] = {}
        """Name -> the function templates of the host of that name."""
        for file in self.files:
            for declaration in file.parser.declarations:
                self._take(file, declaration)

    def _take(self, file: _File, declaration: Declaration) -> None:
        path = file.paths[declaration]
        if declaration.kind == "enum":
            body = file.parser.tokens[declaration.body : declaration.last]
            for name in {declaration.name, *(token.text for token in body if token.kind == WORD)}:
                self.declared.setdefault(name, set()).add(path)
        elif declaration.parent is not None:
            self.members.add(declaration.name)
        elif declaration.kind in ("function", "variable", "class", "alias") and declaration.name:
            self.declared.setdefault(declaration.name, set()).add(path)
            if declaration.kind == "function" and declaration.template:
                if any(_GLOBAL in self.surroundings.expanded([word]) for word in declaration.words):
                    self.kernels.setdefault(declaration.name, set()).add(path)
                elif not declaration.device:
                    self.templates.setdefault(declaration.name, []).append((file, declaration))

    @cached_property
    def fixed_macros(self) -> frozenset[str]:
        """Macros that the files define once and never undefine: they mean the same everywhere after."""
        counts: dict[str, int] = {}
        for file in self.files:
            for token in file.parser.tokens:
                if token.kind == DIRECTIVE and (match := DEFINE.match(token.text)):
                    counts[match[1]] = counts.get(match[1], 0) + 1
                elif token.kind == DIRECTIVE and directive_name(token.text) == "undef":
                    counts.update(dict.fromkeys(token.text.split()[1:], 2))
        return frozenset(name for name, count in counts.items() if count == 1)

    @cached_property
    def calls(self) -> dict[str, list[_Site]]:
        """Name of a function template of the host -> where it is named with arguments."""
        found: dict[str, list[_Site]] = {}
        for file in self.files:
            for site in file.sites(self.templates):
                found.setdefault(file.parser.tokens[site.at].text, []).append(site)
        return found

    def mentions(self) -> Iterator[Mention]:
        """All places that ask for an instance."""
        total = 0
        for file in self.files:
            tokens = file.parser.tokens
            for site in self._asked(file):
                around = site.around
                if around is not None and around.device and not _is_instance(file.parser, around, site.at):
                    continue  # its own declaration, or a launch by a kernel
                first = site.at
                while first > 1 and tokens[first - 1].text == "::" and tokens[first - 2].kind == WORD:
                    first -= 2
                name = self._kernel(file, first, site.at)
                found = [] if name is None or not site.arguments else self._expressions(name, site)
                total += len(found)
                text = " ".join(file.parser.text[tokens[first].start : tokens[site.end].end].split())
                yield Mention(
                    file.label,
                    file.parser.line(site.at),
                    text,
                    tokens[site.at].text,
                    tuple(found if total <= _MOST else ()),
                )

    def _asked(self, file: _File) -> Iterator[_Site]:
        yield from file.sites(self.kernels)
        tokens = file.parser.tokens
        for index, token in enumerate(tokens):
            if token.text == "<<<" and index and tokens[index - 1].text in self.kernels:
                yield _Site(file, index - 1, index - 1, [])

    def _kernel(self, file: _File, first: int, last: int) -> str | None:
        """The kernel's name as it is written outside all namespaces; None where it could be one of several."""
        tokens = file.parser.tokens
        words = tuple(token.text for token in tokens[first : last + 1] if token.kind == WORD)
        paths = self.kernels[words[-1]]
        around = file.around(first)
        here = file.paths[around] if around is not None else ()
        for depth in range(len(here), -1, -1):
            if here[:depth] + words[:-1] in paths:
                return "::".join(here[:depth] + words)
        return "::".join((*next(iter(paths)), words[-1])) if len(paths) == 1 else None

    def _expressions(self, kernel: str, site: _Site) -> list[str]:
        """The instances that one place asks for."""
        found: dict[str, None] = {}
        for choice in self._meanings(site.arguments, site, _DEEPEST):
            found[f"{kernel}<{', '.join(choice)}>"] = None
        return list(found)

    def _meanings(self, arguments: Sequence[list[Token]], site: _Site, depth: int) -> list[list[str]]:
        """Every list of arguments, spelled for the end of the source, that a place can stand for."""
        found = []
        for bound in itertools.chain([{}], self._bindings(site.around, self._parameters(site.around), depth)):
            spelled = [self._spelled(part, site, bound, depth) for part in arguments]
            if None not in spelled:
                found.append([part for part in spelled if part is not None])
                if not bound:
                    break  # nothing depends on the parameters of the function around
        return found[:_MOST]

    def _parameters(self, declaration: Declaration | None) -> list[str]:
        """The names of the template parameters of a function template of the host."""
        if declaration is None or declaration.kind != "function" or not declaration.template or declaration.device:
            return []
        for file, other in self.templates.get(declaration.name, []):
            if other is declaration:
                return [name for name, _ in self._heads(file, declaration)]
        return []

    def _heads(self, file: _File, declaration: Declaration) -> list[tuple[str, list[Token]]]:
        """Name and default of each template parameter; empty where one has no plain name."""
        parser = file.parser
        opened = parser.next_of(declaration.first)
        closed = parser.angle(opened, parser.limit) if parser.is_at(opened, "<") else None
        if closed is None or parser.tokens[declaration.first].text != "template":
            return []
        heads = []
        for part in split(parser, opened + 1, closed):
            sign = next((i for i, token in enumerate(part) if token.text == "="), len(part))
            if sign < 2 or part[sign - 1].kind != WORD or any(token.text == "..." for token in part):
                return []
            heads.append((part[sign - 1].text, part[sign + 1 :]))
        return heads

    def _bindings(self, declaration: Declaration | None, names: list[str], depth: int) -> Iterator[dict[str, str]]:
        """What the template parameters of a host function stand for, wherever the files name it with arguments."""
        if declaration is None or not names or depth == 0:
            return
        heads = next(self._heads(file, d) for file, d in self.templates[declaration.name] if d is declaration)
        for site in self.calls.get(declaration.name, []):
            if site.around is declaration:
                continue
            given: list[list[Token]] = list(site.arguments)
            given += [default for _, default in heads[len(given) :]]
            if len(given) != len(names) or not all(given):
                continue  # the rest is deduced
            for choice in self._meanings(given, site, depth - 1):
                yield dict(zip(names, choice, strict=True))

    def _spelled(self, part: Sequence[Token], site: _Site, bound: Mapping[str, str], depth: int) -> str | None:
        """One argument as it is written at the end of the source; None where it may mean something else there."""
        words: list[str] = []
        for index, token in enumerate(part):
            after = part[index - 1].text if index else ""
            if token.kind == STRING:
                return None
            if token.kind != WORD or token.text in _LANGUAGE or after in ("::", ".", "->"):
                words.append(token.text)
                continue
            spelled = bound.get(token.text) or self._name(token, site, bound, depth)
            if spelled is None:
                return None
            words.append(spelled)
        return _joined(words)

    def _name(self, token: Token, site: _Site, bound: Mapping[str, str], depth: int) -> str | None:
        name = token.text
        if name in self.surroundings.macros:
            return name if name in self.fixed_macros else None
        local = self._locals(site, name)
        if local is not None:
            return self._constant(local, name, site, bound, depth)
        if name in self.members:
            return None
        paths = self.declared.get(name)
        if paths is None:
            return name  # the language's, the toolkit's or nobody's: the compiler knows
        if len(paths) > 1:
            return None
        (path,) = paths
        return "::".join((*path, name))

    @staticmethod
    def _in_block(parser: Parser, around: Declaration, declared: int, used: int) -> bool:
        """Whether the innermost bracket around a declaration is a block that also holds its use."""
        for index in range(declared - 1, around.first - 1, -1):
            if parser.tokens[index].text in ("(", "[", "{") and parser.match.get(index, -1) > declared:
                return parser.tokens[index].text == "{" and parser.match[index] > used
        return False

    def _locals(self, site: _Site, name: str) -> list[int] | None:
        """Where the function around a place may declare a name; None where it does not."""
        around = site.around
        if around is None:
            return None
        tokens = site.file.parser.tokens
        found = []
        for index in range(around.first, around.last + 1):
            if tokens[index].text != name or index == site.at or index == around.name_at:
                continue
            earlier, before = tokens[index - 2], tokens[index - 1]
            typed = before.kind == WORD and before.text not in _NOT_BEFORE_NAMES
            pointed = before.text in ("*", "&") and (earlier.kind == WORD or earlier.text in (">", "*", "&"))
            bound = before.text == "[" and earlier.text in ("auto", "&")
            assigned = site.file.parser.is_at(index + 1, "=") and not site.file.parser.is_at(index + 2, "=")
            if typed or pointed or bound or assigned or before.text in (">", "..."):
                found.append(index)
        if not found and any(t.text == "enum" for t in tokens[around.first : around.last + 1]):
            return []
        return found or None

    def _constant(self, places: list[int], name: str, site: _Site, bound: Mapping[str, str], depth: int) -> str | None:
        """The value of an integral constant, or the type of an alias, that the function around a place declares."""
        around, tokens = site.around, site.file.parser.tokens
        if len(places) != 1 or around is None or depth == 0 or places[0] > site.at:
            return None
        at = places[0]
        if not self._in_block(site.file.parser, around, at, site.at):
            return None
        start = at
        while start > around.first and tokens[start - 1].text not in (";", "{", "}"):
            start -= 1
        end = at
        while end < around.last and tokens[end].text not in (";", ",") and tokens[end].kind != DIRECTIVE:
            end += 1
        if tokens[min(at + 1, around.last)].text != "=" or tokens[end].text != ";":
            return None
        head, value = [t.text for t in tokens[start:at]], tokens[at + 2 : end]
        if head == ["using"]:
            spelled = self._spelled(value, site, bound, depth - 1)
        elif set(head) & {"const", "constexpr"} and set(head) - {"const", "constexpr", "static", "::"} <= _INTEGERS:
            if not any(t.kind == NUMBER for t in value) or any(
                t.kind == NUMBER and set(t.text.lower()) & set(".'") for t in value
            ):
                return None
            spelled = self._spelled(value, site, bound, depth - 1)
            spelled = f"({spelled})" if spelled is not None and len(value) > 1 else spelled
        else:
            return None
        return spelled


def _is_instance(parser: Parser, declaration: Declaration, at: int) -> bool:
    """Whether a declaration is an explicit instantiation, or a specialisation, of the function named at a token."""
    special = parser.is_at(declaration.first + 1, "<") and parser.is_at(declaration.first + 2, ">")
    return declaration.name_at == at and (declaration.instantiation or special)


def _joined(words: Sequence[str]) -> str:
    """Words with white space where two of them would run into one."""
    pieces = [words[0]] if words else []
    for before, word in itertools.pairwise(words):
        run = (before[-1].isalnum() or before[-1] == "_") and (word[0].isalnum() or word[0] == "_")
        pieces.append(f" {word}" if run or before == word else word)
    return "".join(pieces)
