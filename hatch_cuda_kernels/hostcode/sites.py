# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Places in files that name something with arguments, and what is declared around them."""

from __future__ import annotations

import bisect
import re
from collections.abc import Container, Iterator
from functools import cached_property
from typing import NamedTuple

from .declarations import Declaration, Parser, parsed
from .surroundings import Surroundings
from .tokens import DEFINE, DIRECTIVE, WORD, Token

__all__ = ["File", "Parameter", "Site", "declares", "macro_bodies", "parameters", "split"]


class Site(NamedTuple):
    """A name with arguments, of a template or of a macro."""

    file: File
    at: int
    end: int
    """Index of the bracket that closes the arguments; that of the name where there are none."""
    arguments: list[list[Token]]

    @property
    def around(self) -> Declaration | None:
        """The outermost declaration around it, namespaces aside."""
        return self.file.around(self.at)


class Parameter(NamedTuple):
    """A parameter of a template."""

    text: str
    """As it is written, on one line."""
    name: str
    """Empty where it has none."""
    default: list[Token]
    pack: bool


class File:
    """One file, or the body of a macro, with the namespaces of its declarations."""

    def __init__(self, label: str, text: str, surroundings: Surroundings) -> None:
        self.label = label
        self.macro = ""
        """Name of the macro that this is the body of."""
        self.parameters: list[str] = []
        self.defined_at = 0
        self.parser = parsed(text, surroundings)
        self.paths = self.parser.paths
        self._tops: list[Declaration] = []
        for declaration in self.parser.declarations:
            if declaration.kind != "scope" and (not self._tops or self._tops[-1].last < declaration.first):
                self._tops.append(declaration)

    def line(self, index: int) -> int:
        """Line of a token in the file."""
        return self.defined_at or self.parser.line(index)

    def seen(self, index: int) -> int:
        """Line on which the compiler sees a token: of the outermost macro around it. 0 in the body of a macro."""
        at = bisect.bisect_right(self._calls, index, key=lambda call: call[0]) - 1
        if self.macro:
            return 0
        return self.line(self._calls[at][0] if at >= 0 and index <= self._calls[at][1] else index)

    @cached_property
    def _calls(self) -> list[tuple[int, int]]:
        """What may be uses of macros, the outermost: name and closing parenthesis."""
        parser, macros = self.parser, self.parser.surroundings.macros
        found: list[tuple[int, int]] = []
        for index, token in enumerate(parser.tokens):
            if token.kind == WORD and (token.text in macros or token.text.isupper()):
                closed = parser.match.get(index + 1) if parser.is_at(index + 1, "(") else None
                if closed is not None and not (found and index < found[-1][1]):
                    found.append((index, closed))
        return found

    @cached_property
    def variables(self) -> frozenset[str]:
        """Names that something else than a declaration outside of functions may declare."""
        outside = {declaration.name_at for declaration in self.parser.declarations}
        tokens = self.parser.tokens
        return frozenset(
            token.text for index, token in enumerate(tokens) if index not in outside and declares(self, index)
        )

    def around(self, index: int) -> Declaration | None:
        """The outermost declaration around a token, namespaces aside."""
        low, high = 0, len(self._tops)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self._tops[middle].last < index else (low, middle)
        found = self._tops[low] if low < len(self._tops) else None
        return found if found is not None and found.first <= index else None

    def sites(self, names: Container[str], bracket: str = "<") -> Iterator[Site]:
        """Where one of `names` stands with arguments."""
        parser = self.parser
        for index, token in enumerate(parser.tokens):
            if token.kind == WORD and token.text in names and parser.is_at(index + 1, bracket):
                closed = parser.angle(index + 1, parser.limit) if bracket == "<" else parser.match.get(index + 1)
                if closed is not None:
                    yield Site(self, index, closed, split(parser, index + 2, closed))


def macro_bodies(file: File) -> Iterator[File]:
    """The macros with parameters that a file defines, each as a file of its own.

    Those are left out that neither name something with arguments, nor declare a constant, nor use a macro.
    """
    parser, macros = file.parser, file.parser.surroundings.macros
    for index, token in enumerate(parser.tokens):
        if token.kind != DIRECTIVE or not (match := DEFINE.match(token.text)) or not match[2]:
            continue
        text = re.sub(r"\\[ \t]*\r?\n", " ", match[3])
        if re.search(r"[<=]|\btemplate\b", text) or any(name in macros for name in re.findall(r"(\w+)\s*\(", text)):
            body = File(file.label, f"{text} ;", parser.surroundings)
            body.macro, body.defined_at = match[1], parser.line(index)
            body.parameters = [name.strip() for name in match[2].strip("()").replace("\\\n", " ").split(",")]
            yield body


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


_NOT_BEFORE_NAMES = frozenset(
    "return case else do sizeof goto new not const volatile static constexpr inline extern co_return co_yield".split()
)
"""Words that may stand before the use of a name."""
_TYPE_WORDS = frozenset("typename class void bool char short int long float double signed unsigned auto const".split())


def parameters(parser: Parser, declaration: Declaration) -> list[Parameter]:
    """The parameters of a template; empty where there is none, or one is not understood."""
    opened = parser.next_of(declaration.first)
    closed = parser.angle(opened, parser.limit) if parser.is_at(opened, "<") else None
    if closed is None or parser.tokens[declaration.first].text != "template":
        return []
    found = []
    for part in split(parser, opened + 1, closed):
        depth, end, pack = 0, len(part), False
        for index, token in enumerate(part):
            depth += (token.text in ("(", "<", "[", "{")) - (token.text in (")", ">", "]", "}"))
            pack |= token.text == "..." and depth == 0
            if token.text == "=" and depth == 0:
                end = index
                break
        declared = part[:end]
        named = end > 1 and declared[-1].kind == WORD and declared[-1].text not in _TYPE_WORDS
        name = declared[-1].text if named and declared[-2].text != "::" else ""
        found.append(Parameter(" ".join(token.text for token in part), name, part[end + 1 :], pack))
    return found


def declares(file: File, index: int) -> bool:
    """Whether a word may be the name that something declares there."""
    parser, tokens = file.parser, file.parser.tokens
    if tokens[index].kind != WORD or index < 1:
        return False
    earlier, before = tokens[index - 2], tokens[index - 1]
    typed = before.kind == WORD and before.text not in _NOT_BEFORE_NAMES
    pointed = before.text in ("*", "&") and (earlier.kind == WORD or earlier.text in (">", "*", "&"))
    unpacked = before.text == "[" and earlier.text in ("auto", "&")
    assigned = parser.is_at(index + 1, "=") and not parser.is_at(index + 2, "=")
    assigned |= before.text in ("const", "constexpr", ",") and parser.is_at(index + 1, "{")
    return typed or pointed or unpacked or assigned or before.text in (">", "...")
