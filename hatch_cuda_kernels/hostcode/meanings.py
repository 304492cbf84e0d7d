# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What template arguments mean, spelled for the end of the source, outside of all namespaces and functions.

An argument is taken over only where it means the same there: a literal, a type of the language, a name that the files
declare in one place, a macro that they define once. Constants and aliases of the function around it are put in; so is
what a function template, a macro or a dispatch over tensor types around it is used with, wherever the files tell it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from .declarations import Declaration, Parser
from .sites import File, Site, declares, macro_bodies, parameters, split
from .surroundings import Surroundings
from .tokens import DEFINE, DIRECTIVE, NUMBER, STRING, WORD, Token, directive_name

__all__ = ["Meanings"]

_MOST = 512
"""Meanings of one place at most."""
_DEEPEST = 4
"""How many function templates and macros are followed from a place to the arguments."""
_LANGUAGE = frozenset(
    """
    void bool char short int long float double signed unsigned const volatile true false nullptr sizeof alignof
    wchar_t char8_t char16_t char32_t static_cast typename template struct class enum union decltype
    """.split()
)
_INTEGERS = frozenset("int unsigned long auto size_t int32_t uint32_t int64_t uint64_t uint std".split())
_INTS = frozenset({"int", "int32_t", "auto"})
_ARITHMETIC = frozenset("+ - * / % ( )".split())
_DISPATCHED = "scalar_t"
"""The type that a dispatch over tensor types gives to the code inside it."""
_TENSOR_TYPES = {
    "Float": "float",
    "Double": "double",
    "Half": "c10::Half",
    "BFloat16": "c10::BFloat16",
    "Byte": "uint8_t",
    "Char": "int8_t",
    "Short": "int16_t",
    "Int": "int",
    "Long": "int64_t",
    "Bool": "bool",
}
_DISPATCHES = {
    "FLOATING": ("Double", "Float"),
    "INTEGRAL": ("Byte", "Char", "Int", "Long", "Short"),
    "ALL": ("Byte", "Char", "Double", "Float", "Int", "Long", "Short"),
    "REDUCED": ("Half", "BFloat16"),
    "HALF": ("Half",),
    "BFLOAT16": ("BFloat16",),
}
"""Word in the name of a dispatch -> the types that it brings."""


class _Around(NamedTuple):
    """What a function, or another declaration outside of all, has inside."""

    places: dict[str, list[int]]
    """Name -> where something may declare it."""
    dispatches: list[tuple[int, int, list[str]]]
    """Parentheses of each dispatch over tensor types, and the types."""
    enumerates: bool


class Meanings:
    """What the files declare and define, as far as arguments can refer to it."""

    def __init__(self, files: Sequence[File], surroundings: Surroundings) -> None:
        self.surroundings = surroundings
        self.files = [*files, *itertools.chain.from_iterable(macro_bodies(file) for file in files)]
        self._declared: dict[str, set[tuple[str, ...]]] = {}
        """Name -> the namespaces in which the files declare it."""
        self._spaces: dict[str, set[tuple[str, ...]]] = {}
        """Name of a namespace -> the namespaces in which the files open it."""
        self.brought: dict[str, set[str]] = {}
        """Names of using-declarations -> the words that qualify them there."""
        self.renamed: set[str] = set()
        """Other names of namespaces."""
        self._untyped: set[str] = set()
        """Names of templates with a parameter that takes a value of any type."""
        self._members: set[str] = set()
        self._templates: dict[str, list[tuple[File, Declaration]]] = {}
        """Name -> the function templates of the host of that name."""
        self._scopes: dict[Declaration, _Around] = {}
        self._patience = 200_000
        """Words left to be looked up: keeps the time linear for any text."""
        for file in files:
            for declaration in file.parser.declarations:
                self._take(file, declaration)
            self._take_other_names(file.parser.tokens)

    def of(self, site: Site) -> list[tuple[str, ...]]:
        """Every list of arguments that the arguments at a place stand for."""
        found: dict[tuple[str, ...], None] = {}
        for context, bound in self._contexts(site, _DEEPEST):
            if self._patience < 0:
                break
            spelled = [self._spelled(part, context, bound, _DEEPEST) for part in site.arguments]
            if None not in spelled:
                found[tuple(part for part in spelled if part is not None)] = None
            if len(found) >= _MOST:
                break
        return list(found)

    def is_plain(self, site: Site) -> bool:
        """Whether the arguments at a place stand for one list, whatever a template or a macro around is used with."""
        return (
            not site.file.macro
            and not self._dispatched(site)
            and all(self._spelled(part, site, {}, _DEEPEST) is not None for part in site.arguments)
        )

    @staticmethod
    def is_literal(site: Site) -> bool:
        """Whether the arguments at a place are types of the language and numbers."""
        return all(t.kind != WORD or t.text in _LANGUAGE for part in site.arguments for t in part)

    def _take(self, file: File, declaration: Declaration) -> None:
        path = file.paths[declaration]
        for depth, space in enumerate(path):
            self._spaces.setdefault(space, set()).add(path[:depth])
        if declaration.kind == "enum":
            body = file.parser.tokens[declaration.body : declaration.last]
            names = {declaration.name, *(token.text for token in body if token.kind == WORD)}
            if declaration.parent is not None:
                self._members.update(names)
            for name in names:
                self._declared.setdefault(name, set()).add(path)
        elif declaration.parent is not None:
            self._members.add(declaration.name)
        elif declaration.kind in ("function", "variable", "class", "alias") and declaration.name:
            self._declared.setdefault(declaration.name, set()).add(path)
            head = file.parser.tokens[declaration.first : declaration.name_at] if declaration.template else ()
            if any(token.text == "auto" for token in head):
                self._untyped.add(declaration.name)
            if declaration.kind == "function" and declaration.template and not declaration.device:
                self._templates.setdefault(declaration.name, []).append((file, declaration))

    def _take_other_names(self, tokens: Sequence[Token]) -> None:
        """Take in using-declarations, `using a::b;`, and other names of namespaces, in blocks as well."""
        for index, token in enumerate(tokens[:-2]):
            if token.text == "namespace" and tokens[index + 2].text == "=":
                self.renamed.add(tokens[index + 1].text)
            elif token.text == "using":
                words = [t.text for t in itertools.takewhile(lambda t: t.text not in ";={", tokens[index + 1 :])]
                for one, sign, other in zip(words, words[1:], words[2:], strict=False):
                    if sign == "::" and words[0] != "namespace":
                        self.brought.setdefault(other, set()).add(one)

    def leading_to(self, declaration: Declaration) -> frozenset[str]:
        """Names of the function templates of the host that lead to one of them, with its own."""
        found, more = set(), {declaration.name}
        while more:
            found |= more
            more = {name for name, words in self._words.items() if not words.isdisjoint(found)} - found
        return frozenset(found)

    @cached_property
    def _words(self) -> dict[str, set[str]]:
        """Name of a function template of the host -> the words in it, and what macros bring with them."""
        return {name: self._words_of(those) for name, those in self._templates.items()}

    @cached_property
    def wanted(self) -> set[str]:
        """Words of functions and variables of the host that are no templates: what these name is asked for."""
        plain = [
            (file, made)
            for file in self.files
            for made in file.parser.declarations
            if made.kind in ("function", "variable", "macro") and not (made.template or made.device or file.macro)
        ]
        return self._words_of(plain)

    def _words_of(self, those: Iterable[tuple[File, Declaration]]) -> set[str]:
        tokens = (t for file, made in those for t in file.parser.tokens[made.first : made.last])
        return self.surroundings.expanded(token.text for token in tokens if token.kind == WORD)

    @cached_property
    def _fixed_macros(self) -> frozenset[str]:
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
    def _uses(self) -> dict[str, list[Site]]:
        """Name of a function template of the host, or of a macro -> where it is used with arguments."""
        macros = {file.macro for file in self.files if file.macro}
        found: dict[str, list[Site]] = {}
        for file in self.files:
            parser = file.parser
            for site in (*file.sites(self._templates), *file.sites(macros, "(")):
                found.setdefault(parser.tokens[site.at].text, []).append(site)
            for made in parser.declarations:
                if made.instantiation and made.name in self._templates and parser.is_at(made.name_at + 1, "("):
                    site = Site(file, made.name_at, made.name_at, [])  # its arguments follow from its parameters
                    found.setdefault(made.name, []).append(site)
        return found

    def _contexts(self, site: Site, depth: int) -> Iterator[tuple[Site, dict[str, str | None]]]:
        """Where the names at a place are looked up, and what parameters around it stand for; one for each use."""
        if site.file.macro:
            parameters = site.file.parameters
            for use in self._uses.get(site.file.macro, []) if depth else []:
                for context, outer in self._contexts(use, depth - 1):
                    given = [self._spelled(part, context, outer, depth) for part in use.arguments]
                    bound = dict(zip(parameters, given, strict=False))
                    yield context, {**outer, **dict.fromkeys([*parameters, *_own_names(site.file)]), **bound}
            return
        bindings: Iterator[dict[str, str | None]] = itertools.chain([{}], self._bindings(site.around, depth))
        types = self._dispatched(site)
        for bound in bindings:
            for name in types:
                yield site, {**bound, _DISPATCHED: name}
            if not types:
                yield site, bound

    def _bindings(self, declaration: Declaration | None, depth: int) -> Iterator[dict[str, str | None]]:
        """What the template parameters of a host function stand for, wherever the files name it with arguments."""
        if declaration is None or depth == 0:
            return
        file = next((f for f, d in self._templates.get(declaration.name, []) if d is declaration), None)
        heads = _heads(file.parser, declaration) if file is not None else []
        if file is None or not heads:
            return
        for use in self._uses.get(declaration.name, []):
            if use.around is declaration:
                continue
            known = use.arguments or _deduced(file, declaration, [name for name, _ in heads], use)
            given = [*known, *(default for _, default in heads[len(known) :])]
            if len(given) != len(heads) or not all(given):
                continue  # the rest is deduced
            for context, bound in self._contexts(use, depth - 1):
                spelled = [self._spelled(part, context, bound, depth - 1) for part in given]
                if None not in spelled:
                    yield dict(zip((name for name, _ in heads), spelled, strict=True))

    def _dispatched(self, site: Site) -> list[str]:
        """The types for which a dispatch over tensor types runs the code at a place."""
        around = site.around
        if around is None or self._locals(site, _DISPATCHED) is not None:
            return []
        calls = self._around(site.file, around).dispatches
        found = (name for opened, closed, names in calls if opened < site.at < closed for name in names)
        return [_TENSOR_TYPES[name] for name in dict.fromkeys(found)]

    def _around(self, file: File, around: Declaration) -> _Around:
        """What is declared in a declaration, and dispatched."""
        if around not in self._scopes:
            self._scopes[around] = self._read(file, around)
        return self._scopes[around]

    def _read(self, file: File, around: Declaration) -> _Around:
        parser, tokens = file.parser, file.parser.tokens
        places: dict[str, list[int]] = {}
        dispatches: list[tuple[int, int, list[str]]] = []
        enumerates = False
        callees: list[str] = []
        """For each parenthesis that is open, the word before it."""
        for index in range(around.first, around.last + 1):
            token = tokens[index]
            if token.text == "(":
                callees.append(tokens[index - 1].text if index else "")
                if (closed := parser.match.get(index)) is not None and (names := self._types(file, index, closed)):
                    dispatches.append((index, closed, names))
            elif token.text == ")" and callees:
                callees.pop()
            elif token.kind == WORD:
                enumerates |= token.text == "enum"
                whole = tokens[index - 1].text in ("(", ",") and (
                    parser.is_at(index + 1, ",") or parser.is_at(index + 1, ")")
                )
                if declares(file, index) or (whole and callees and self._may_declare(callees[-1])):
                    places.setdefault(token.text, []).append(index)
        return _Around(places, dispatches, enumerates)

    def _may_declare(self, callee: str) -> bool:
        """Whether a call may be of a macro that declares its arguments."""
        return callee in self._declaring or (callee.isupper() and callee not in self.surroundings.macros)

    def _types(self, file: File, opened: int, closed: int) -> list[str]:
        """The tensor types of a dispatch whose arguments stand between two parentheses; none of any other call."""
        tokens = file.parser.tokens
        words = self.surroundings.expanded([tokens[opened - 1].text]) if opened else set()
        dispatches = [word for word in words if word.startswith(("AT_DISPATCH_", "THO_DISPATCH_"))]
        if not dispatches:
            return []
        head = itertools.takewhile(lambda token: token.text not in ("[", "{"), tokens[opened:closed])
        named = words | {token.text.removeprefix("k") for token in head}
        found = {name for name in _TENSOR_TYPES if name in named}
        for word, names in _DISPATCHES.items():
            if any(f"_{word}" in dispatch.replace("_REDUCED_FLOATING", "_REDUCED") for dispatch in dispatches):
                found.update(names)
        return sorted(found)

    def _spelled(self, part: Sequence[Token], site: Site, bound: Mapping[str, str | None], depth: int) -> str | None:
        """One argument as it is written at the end of the source; None where it may mean something else there."""
        words: list[str] = []
        signed = len(part) > 1 and not site.file.macro and any(token.text == "-" for token in part)
        if (signed and any(token.text in bound for token in part)) or _measures_host_type(part):
            return None  # of what type the difference is, the text does not tell; how large, the host's library
        for index, token in enumerate(part):
            before = part[index - 1].text if index else ""
            if token.kind == STRING or token.text == "#":
                return None
            if token.kind != WORD or token.text in _LANGUAGE or before in ("::", ".", "->"):
                twice = bool(words) and before == token.text and part[index - 1].end == token.start
                words[-1:] = [words[-1] + token.text] if twice else [*words[-1:], token.text]
                continue
            name = token.text
            self._patience -= 1
            qualifies = index + 1 < len(part) and part[index + 1].text == "::" and name in self._spaces
            if name in bound:
                spelled = bound[name]
            else:
                alone = len(part) == 1 and site.file.parser.tokens[site.at].text not in self._untyped
                spelled = self._space(name, site) if qualifies else self._name(name, site, bound, depth, alone=alone)
            if spelled is None or self._patience < 0:
                return None
            words.append(spelled)
        return _joined(words)

    def _name(
        self, name: str, site: Site, bound: Mapping[str, str | None], depth: int, *, alone: bool = False
    ) -> str | None:
        if name in self.surroundings.macros:
            return name if name in self._fixed_macros else None
        local = self._locals(site, name)
        if local is not None:
            return self._constant(local, site, bound, depth, alone=alone)
        if name in self._members or name == _DISPATCHED:
            return None
        paths = self._declared.get(name)
        if not self.brought.get(name, set()) <= {path[-1] if path else "" for path in paths or ()}:
            return None
        if paths is None:
            # The language's, the toolkit's or nobody's, which the compiler knows; or one of a block that a macro opens.
            return None if name in self._of_macros else name
        if len(paths) > 1:
            return None
        (path,) = paths
        return "::".join((*path, name))

    def _space(self, name: str, site: Site) -> str | None:
        """A namespace that a name begins with, as it is called outside of all; as it stands where none here is."""
        if name in self.renamed:
            return None
        around, parents = site.around, self._spaces[name]
        here = site.file.paths[around] if around is not None and not site.file.macro else ()
        found = (here[:depth] for depth in range(len(here), -1, -1) if here[:depth] in parents)
        return "::".join((*next(found, ()), name))

    def _locals(self, site: Site, name: str) -> list[int] | None:
        """Where the function around a place may declare a name; None where it does not."""
        around = site.around
        if around is None:
            return None
        scope = self._around(site.file, around)
        found = [index for index in scope.places.get(name, []) if index not in (site.at, around.name_at)]
        return found or ([] if scope.enumerates else None)

    @cached_property
    def _declaring(self) -> frozenset[str]:
        """Macros that declare one of their arguments."""
        return frozenset(file.macro for file in self.files if set(file.parameters) & _own_names(file))

    @cached_property
    def _of_macros(self) -> frozenset[str]:
        """Names that bodies of macros may declare."""
        return frozenset(name for file in self.files if file.macro for name in _own_names(file))

    def _constant(
        self, places: list[int], site: Site, bound: Mapping[str, str | None], depth: int, *, alone: bool
    ) -> str | None:
        """The value of an integral constant, or the type of an alias, that the function around a place declares.

        One of another type than `int` only where it stands `alone`, as what a parameter of some type is given, and is a
        literal: its text does not have its type.
        """
        around, parser = site.around, site.file.parser
        if len(places) != 1 or around is None or depth == 0 or places[0] > site.at:
            return None
        tokens, at = parser.tokens, places[0]
        if not _in_block(parser, around, at, site.at):
            return None
        start = at
        while start > around.first and tokens[start - 1].text not in (";", "{", "}"):
            start -= 1
        end = at
        while end < around.last and tokens[end].text != ";" and tokens[end].kind != DIRECTIVE:
            end += 1
        head, value = [t.text for t in tokens[start:at]], tokens[at + 2 : end]
        if not parser.is_at(at + 1, "=") or tokens[end].text != ";":
            return None
        if head == ["using"]:
            return self._spelled(value, site, bound, depth - 1)
        if not set(head) & {"const", "constexpr"} or set(head) - {"const", "constexpr", "static", "::"} - _INTEGERS:
            return None
        literal = len(value) == 1 and value[0].kind == NUMBER and not set(value[0].text) & set(".'")
        if not (literal and alone) and not (set(head) & _INTS and all(map(_is_of_int, value))):
            return None
        if not any(token.kind == NUMBER for token in value) and any(token.text not in bound for token in value):
            return None  # what kind of number the name stands for, the text does not tell
        spelled = self._spelled(value, site, bound, depth - 1)
        return f"({spelled})" if spelled is not None and len(value) > 1 else spelled


def _is_of_int(token: Token) -> bool:
    """Whether a token is of an expression that is an `int` where all names in it are."""
    if token.kind == NUMBER:
        literal = re.fullmatch(r"0[xX][0-9a-fA-F]+|0|[1-9]\d*", token.text)
        return bool(literal) and int(token.text, 0) < 2**31
    return token.text in _ARITHMETIC or (token.kind == WORD and token.text not in _LANGUAGE)


def _measures_host_type(part: Sequence[Token]) -> bool:
    """Whether an argument asks for the size of a type of the C++ library, which is another one in device code."""
    texts = {token.text for token in part}
    return "std" in texts and not texts.isdisjoint({"sizeof", "alignof"})


def _heads(parser: Parser, declaration: Declaration) -> list[tuple[str, list[Token]]]:
    """Name and default of each template parameter; empty where one has no plain name."""
    found = parameters(parser, declaration)
    plain = all(parameter.name and not parameter.pack for parameter in found)
    return [(parameter.name, parameter.default) for parameter in found] if plain else []


def _deduced(file: File, declaration: Declaration, names: Sequence[str], use: Site) -> list[list[Token]]:
    """The arguments of an explicit instantiation that gives none, by the types of its parameters."""
    wanted, given = _parameter_types(file.parser, declaration.name_at), _parameter_types(use.file.parser, use.at)
    found: list[list[Token]] = []
    for name in names:
        for pattern, actual in zip(wanted, given, strict=False):
            texts = [token.text for token in pattern]
            if texts.count(name) == 1:
                before, after = texts.index(name), len(texts) - texts.index(name) - 1
                shown = [token.text for token in actual]
                middle = actual[before : len(actual) - after]
                around = shown[:before] + shown[len(shown) - after :]
                if middle and around == texts[:before] + texts[len(texts) - after :]:
                    found.append(middle)
                    break
        else:
            break  # the default, or nothing, has to tell it
    return found


def _parameter_types(parser: Parser, name: int) -> list[list[Token]]:
    """The parameters of a function, without their names."""
    opened = parser.next_of(name)
    closed = parser.match.get(opened)
    parts = split(parser, opened + 1, closed) if closed is not None else []
    named = (len(part) > 1 and part[-1].kind == WORD and part[-2].text not in ("::", "const") for part in parts)
    return [part[:-1] if has else part for part, has in zip(parts, named, strict=True)]


def _own_names(file: File) -> set[str]:
    """Words that may be declared in a file: in the body of a macro."""
    return {token.text for index, token in enumerate(file.parser.tokens) if declares(file, index)}


def _in_block(parser: Parser, around: Declaration, declared: int, used: int) -> bool:
    """Whether the innermost bracket around a declaration is a block that also holds its use."""
    for index in range(declared - 1, around.first - 1, -1):
        if parser.tokens[index].text in ("(", "[", "{") and parser.match.get(index, -1) > declared:
            return parser.tokens[index].text == "{" and parser.match[index] > used
    return False


def _joined(words: Sequence[str]) -> str:
    """Words with white space where two of them would run into one."""
    pieces = [words[0]] if words else []
    for before, word in itertools.pairwise(words):
        run = (before[-1].isalnum() or before[-1] == "_") and (word[0].isalnum() or word[0] == "_")
        pieces.append(f" {word}" if run or before == word else word)
    return "".join(pieces)
