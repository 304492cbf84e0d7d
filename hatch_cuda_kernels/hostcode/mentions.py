# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The instances of template kernels that files ask for, as name expressions.

nvcc compiles an instance because host code launches it, or names it otherwise; NVRTC compiles it for a name expression,
which it reads at the end of the source. Where the text does not tell what an instance is, the author is asked to.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .declarations import Declaration, Parser, parsed
from .launches import before_launch
from .meanings import Meanings
from .sites import File, Site, parameters
from .surroundings import Surroundings
from .tokens import DEFINE, DIRECTIVE, WORD, Token, tokenize

__all__ = ["Mention", "has_made_kernels", "is_kernel", "may_define", "mentions"]

_GLOBAL = "__global__"
_BEFORE_VALUES = frozenset("( , = & { ? : return".split())
_AFTER_VALUES = frozenset(") , ; } ? :".split())
"""What stands around a kernel that is handed on, as in `Function table[] = {fill, copy};`."""
_MOST = 512
"""Expressions taken from one compile at most."""


class Mention(NamedTuple):
    """A place that asks for an instance of a template kernel."""

    label: str
    line: int
    text: str
    """As it stands there."""
    kernel: str
    expressions: tuple[str, ...]
    """The instances that it asks for; empty where that is not known."""
    seen: int = 0
    """Line on which the compiler sees it, that of the outermost macro around it; 0 in the definition of a macro."""
    function: tuple[int, int] = (0, 0)
    """First and last line of the function around it, where that is no template."""
    certain: bool = True
    """Whether the expressions are all that it asks for."""
    literal: bool = True
    """Whether no name stands in the arguments, which could mean another thing there than the text shows."""
    loose: bool = False
    """Whether it is a launch of which the text does not tell the kernel, since macros make one of the two."""
    through: frozenset[str] = frozenset()
    """Names of the function templates of the host that lead to it, where it is in one."""
    wanted: bool = False
    """Whether what is no template names one of these."""

    @property
    def place(self) -> tuple[str, int, str]:
        """File, line and kernel, as the compiler sees them."""
        return self.label, self.seen, self.kernel


def mentions(files: Mapping[str, bytes], surroundings: Surroundings) -> list[Mention]:
    """All places in files that ask for instances of the template kernels in them."""
    read = [File(label, data.decode("latin-1"), surroundings) for label, data in files.items()]
    kernels: dict[str, _Kernel] = {}
    plain: set[str] = set()
    made = has_made_kernels(files, surroundings)
    for file in read:
        for declaration in file.parser.declarations:
            if not is_kernel(declaration, surroundings) or declaration.name in surroundings.macros:
                continue
            made_by_macro = "template" in surroundings.expanded(declaration.words)
            if declaration.template or made_by_macro or _is_abbreviated(file.parser, declaration):
                kernels.setdefault(declaration.name, _Kernel()).add(file, declaration)
            else:
                plain.add(declaration.name)
    found = list(_mentions(Meanings(read, surroundings), kernels)) if kernels else []
    return found + (list(_loose(read, surroundings, plain | kernels.keys(), made)) if made or kernels else [])


def has_made_kernels(files: Mapping[str, bytes], surroundings: Surroundings) -> bool:
    """Whether macros make template kernels, so that the text does not tell what they are called."""
    if any({"template", _GLOBAL} <= surroundings.expanded([name]) for name in surroundings.macros):
        return True
    if not surroundings.reaching({_GLOBAL}) - {_GLOBAL}:
        return False
    return any(
        declaration.name in surroundings.macros
        and is_kernel(declaration, surroundings)
        and (declaration.template or "template" in surroundings.expanded(declaration.words))
        for data in files.values()
        for declaration in parsed(data.decode("latin-1"), surroundings).declarations
    )


def is_kernel(declaration: Declaration, surroundings: Surroundings) -> bool:
    """Whether a declaration is of a kernel, as the text shows it."""
    return declaration.kind == "function" and any(
        _GLOBAL in surroundings.expanded([word]) for word in declaration.words
    )


def _is_abbreviated(parser: Parser, declaration: Declaration) -> bool:
    """Whether a function is a template because a parameter has the type `auto`."""
    opened = parser.next_of(declaration.name_at)
    closed = parser.match.get(opened, opened)
    return any(token.text == "auto" for token in parser.tokens[opened:closed])


def _loose(files: Sequence[File], surroundings: Surroundings, known: Collection[str], made: bool) -> Iterator[Mention]:
    """Launches of kernels whose names only the compiler can tell; `known` are those that the text has."""
    defined = [
        match
        for file in files
        for token in file.parser.tokens
        if token.kind == DIRECTIVE and (match := DEFINE.match(token.text))
    ]
    pasting = surroundings.reaching({match[1] for match in defined if "##" in match[3]})
    bare = surroundings.reaching({match[1] for match in defined if not match[2] and "<<<" in match[3]})
    launching = surroundings.reaching({"<<<"})
    macros = launching if made else launching & (pasting | bare)
    for file in files:
        parser = file.parser
        opening = {closed: opened for opened, closed in parser.match.items()}
        for index, token in enumerate(parser.tokens):
            if token.kind == WORD and token.text in macros:
                end = parser.match.get(index + 1, index + 1) if parser.is_at(index + 1, "(") else index
                yield _loose_mention(file, index, end, "")
            elif token.text == "<<<" and (at := before_launch(parser, opening, index)) is not None:
                name = parser.tokens[at]
                if name.text == ")" and parser.tokens[opening[at] - 1].text in pasting:
                    yield _loose_mention(file, opening[at] - 1, index - 1, "")
                elif made and name.kind == WORD and name.text not in known and name.text not in file.variables:
                    yield _loose_mention(file, at, index - 1, name.text)


def _loose_mention(file: File, first: int, last: int, kernel: str) -> Mention:
    tokens = file.parser.tokens
    text = " ".join(file.parser.text[tokens[first].start : tokens[last].end].split())
    return Mention(file.label, file.line(first), text, kernel, (), file.seen(first), certain=False, loose=True)


@dataclass
class _Kernel:
    """The template kernels of one name."""

    paths: set[tuple[str, ...]] = field(default_factory=set)
    """The namespaces that they are in."""
    required: int | None = None
    """How many arguments tell an instance: what has a default may be deduced, and so may more of a pack."""

    def add(self, file: File, declaration: Declaration) -> None:
        self.paths.add(file.paths[declaration])
        if found := parameters(file.parser, declaration):
            taken = {token.text for token in file.parser.tokens[declaration.name_at : declaration.head_end]}
            told = [n for n, each in enumerate(found, 1) if not each.default or each.name in taken]
            required = max(told, default=0) + any(each.pack and each.name in taken for each in found) * _MOST
            required -= sum(1 for each in found if each.pack and each.name not in taken)
            self.required = required if self.required is None else max(required, self.required)


def _mentions(meanings: Meanings, kernels: Mapping[str, _Kernel]) -> Iterator[Mention]:
    total = 0
    for file in meanings.files:
        parser = file.parser
        for site in _asked(file, kernels):
            around = site.around
            if around is not None and around.device and not _is_instance(parser, around, site.at):
                continue  # its own declaration, or a launch by a kernel
            first = site.at
            while first > 1 and parser.tokens[first - 1].text == "::" and parser.tokens[first - 2].kind == WORD:
                first -= 2
            name = _qualified(file, first, site.at, kernels, meanings)
            whole = bool(site.arguments) and len(site.arguments) >= (kernels[parser.tokens[site.at].text].required or 0)
            found = meanings.of(site) if name is not None and whole else []
            total += len(found)
            template = next((made for made in (around, around and around.parent) if made and made.template), None)
            through = meanings.leading_to(template) if template is not None else frozenset()
            yield Mention(
                file.label,
                file.line(site.at),
                " ".join(parser.text[parser.tokens[first].start : parser.tokens[site.end].end].split()),
                parser.tokens[site.at].text,
                tuple(f"{name}<{', '.join(each)}>" for each in found) if total <= _MOST else (),
                file.seen(site.at),
                _lines(file, around),
                name is not None and whole and meanings.is_plain(site),
                meanings.is_literal(site),
                through=through,
                wanted=not through.isdisjoint(meanings.wanted),
            )


def _lines(file: File, around: Declaration | None) -> tuple[int, int]:
    if around is None or around.template or file.macro:
        return 0, 0
    return file.line(around.first), file.line(around.last)


def _asked(file: File, kernels: Collection[str]) -> Iterator[Site]:
    yield from file.sites(kernels)
    tokens = file.parser.tokens
    for index, token in enumerate(tokens[1:-1], 1):
        if token.text in kernels:
            before, after = tokens[index - 1].text, tokens[index + 1].text
            handed = before in _BEFORE_VALUES and after in _AFTER_VALUES
            if after == "<<<" or (handed and token.text not in file.variables):
                yield Site(file, index, index, [])


def _qualified(file: File, first: int, last: int, kernels: Mapping[str, _Kernel], meanings: Meanings) -> str | None:
    """A kernel's name as it is written outside all namespaces; None where it could be one of several."""
    words = tuple(token.text for token in file.parser.tokens[first : last + 1] if token.kind == WORD)
    paths = kernels[words[-1]].paths
    if first and file.parser.tokens[first - 1].text == "::" and len(paths) > 1:
        return "::".join(words) if words[:-1] in paths else None
    if len(paths) > 1 and (words[-1] in meanings.brought or not meanings.renamed.isdisjoint(words)):
        return None
    around = file.around(first)
    here = file.paths[around] if around is not None else ()
    for depth in range(len(here), -1, -1):
        if here[:depth] + words[:-1] in paths and not file.macro:
            return "::".join(here[:depth] + words)
    return "::".join((*next(iter(paths)), words[-1])) if len(paths) == 1 else None


def _is_instance(parser: Parser, declaration: Declaration, at: int) -> bool:
    """Whether a declaration is an explicit instantiation, or a specialisation, of the function named at a token."""
    special = parser.is_at(declaration.first + 1, "<") and parser.is_at(declaration.first + 2, ">")
    return declaration.name_at == at and (declaration.instantiation or special)


def may_define(text: bytes, names: Collection[str]) -> bool:
    """Whether a file may define a function of one of these names, whatever its conditionals choose."""
    if not any(name.encode() in text for name in names):
        return False
    tokens = tokenize(text.decode("latin-1"))
    return any(_has_body(tokens, index) for index, token in enumerate(tokens) if token.text in names)


def _has_body(tokens: Sequence[Token], index: int) -> bool:
    """Whether a brace follows outside of parentheses before the end of a statement."""
    depth = 0
    for token in tokens[index:]:
        if depth < 0 or (depth == 0 and token.text in (";", "}")):
            return False
        if depth == 0 and token.text == "{":
            return True
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
    return False
