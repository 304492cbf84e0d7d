# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What was passed over and could have hidden something else: without it, a name may now mean another thing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from .calls import (
    ASKS,
    OPERANDS,
    Signature,
    arguments_of,
    asked,
    asked_signs,
    converts_to_anything,
    has_lists,
    turns_into_containers,
    unqualified,
)
from .declarations import Declaration, Parser
from .demands import Absent
from .passing import PassedOver, Passing
from .pasting import Pasting
from .surroundings import Surroundings
from .tokens import DIRECTIVE, WORD, is_thrown, names_member

__all__ = ["demanding", "uncovering"]

_WRITTEN = {"[]": ("[",), "==": ("==", "!="), "<=>": ("<", ">")}
"""Operators that other signs may stand for."""
_SIZES = frozenset({"sizeof", "alignof"})
_HARMLESS = ("include", "body", "definition", "macro", "instantiation")
"""What declares no name that is not declared elsewhere: a body, or the definition of a member, among them."""


@dataclass
class _Rest:
    """The names in what is left of the files."""

    used: set[str] = field(default_factory=set)
    """Words that refer to something, in code and in the macros that code uses."""
    called: set[str] = field(default_factory=set)
    """Those of them that arguments follow."""
    plain: set[str] = field(default_factory=set)
    """Those of them that may stand for something of that type: what only names its members is not meant, nor an alias
    of it."""
    members: set[str] = field(default_factory=set)
    """Words after a dot or an arrow."""
    words: set[str] = field(default_factory=set)
    """All words, but for a class that is only declared."""
    paths: set[tuple[str, ...]] = field(default_factory=set)
    """The namespaces around declarations."""
    spaces: set[str] = field(default_factory=set)
    """Words that may name a namespace: in front of `::`, after `namespace`, in an argument of a macro."""
    declared: dict[str, set[tuple[str, ...]]] = field(default_factory=dict)
    """Names that are declared outside classes and functions, or could be, by a macro -> the namespaces around."""
    hidden: set[tuple[str, tuple[str, ...]]] = field(default_factory=set)
    """Operators and their namespaces, but for those that the types of operands find whatever hides them."""
    asked: dict[str, set[int | None]] = field(default_factory=dict)
    """Names in operands that are not evaluated -> the numbers of arguments that follow them."""
    taken: dict[str, set[str]] = field(default_factory=dict)
    """Name of a function -> the words of its parameters."""
    signs: list[str] = field(default_factory=list)
    """The signs in operands that are not evaluated."""

    meanings: dict[str, set[str]] = field(default_factory=dict)
    """Name of an alias or a variable -> the words of its type."""
    parameters: set[str] = field(default_factory=set)
    """Names of template parameters that are types."""
    measured: set[str] = field(default_factory=set)
    """Words whose size is asked for."""
    instances: set[str] = field(default_factory=set)
    """Words of the template arguments that kernels are instantiated with."""
    tried: set[str] = field(default_factory=set)
    """Words of which a template takes a member where it may do without: in its parameters, results and arguments."""
    pasted: set[str] = field(default_factory=set)
    """Names of functions that macros in operands which are not evaluated can make."""
    asks: bool = False
    """Whether any code depends on what classes can do."""
    vectors_convert: bool = False
    """Whether a class turns into one of CUDA's vectors."""

    @cached_property
    def measures(self) -> bool:
        """Whether the size of a template's argument is asked for, which need not be an error where there is none."""
        return not self.measured.isdisjoint(self.parameters)

    def asks_about(self, function: str) -> bool:
        """Whether a call of a function, or what an operator makes of operands, is asked about."""
        if not function.startswith("operator"):
            return function in self.asked or function in self.pasted
        sign = function.removeprefix("operator").strip()
        if sign.startswith('"'):
            return self.asks or any(sign.strip('" ') in signs for signs in self.signs)
        if sign == "()":
            return self.asks or any(signs.count("(") > 1 for signs in self.signs)
        if sign in ("=", "->", "&", ","):
            return self.asks or any(sign in signs for signs in self.signs)
        if not sign or sign[0].isalnum() or sign[0] == "_":
            return self.asks
        return any(each in signs for each in _WRITTEN.get(sign, (sign,)) for signs in self.signs)

    def instantiate(self, expressions: Collection[str]) -> None:
        """Take in the template arguments of name expressions, with all that aliases among them stand for."""
        pending = [word for text in expressions for word in re.findall(r"[A-Za-z_]\w*", text.partition("<")[2])]
        while pending:
            if (word := pending.pop()) not in self.instances:
                self.instances.add(word)
                pending += self.meanings.get(word, ())
        self.used |= self.instances
        for text in expressions:
            self.plain.update(re.findall(r"[A-Za-z_]\w*", unqualified(text.partition("<")[2])))
        self._follow_aliases()
        if any(not OPERANDS.isdisjoint(re.findall(r"\w+", text)) for text in expressions):
            for word in self.instances:
                self.asked.setdefault(word, set()).add(None)

    def _follow_aliases(self) -> None:
        """Take in what aliases stand for that are used as types."""
        pending = list(self.plain)
        while pending:
            for word in self.meanings.get(pending.pop(), ()):
                if word not in self.plain:
                    self.plain.add(word)
                    pending.append(word)

    def add(self, parser: Parser, asking: Collection[str]) -> None:
        """Take in the rest of one file."""
        tokens = parser.tokens
        names = {declaration.name_at for declaration in parser.declarations}
        declared: set[int] = set()
        for declaration in parser.declarations:
            path = parser.paths[declaration]
            words: set[str] = set()
            if declaration.parent is None and declaration.kind not in ("scope", "other", "macro"):
                words = {declaration.name}
            if declaration.kind in ("other", "macro", "enum"):
                words = {t.text for t in tokens[declaration.first : declaration.last + 1] if t.kind == WORD}
                words = parser.surroundings.expanded(words) if declaration.kind == "macro" else words
            for word in words:
                self.declared.setdefault(word, set()).add(path)
            if declaration.name.startswith("operator") and not (path == () and _takes_vectors(parser, declaration)):
                self.hidden.add((declaration.name, path))
            if declaration.kind in ("alias", "variable"):
                inside = tokens[declaration.first : declaration.last]
                for name in parser.declared_names(declaration):
                    self.meanings.setdefault(name, set()).update(t.text for t in inside if t.kind == WORD)
            if declaration.kind == "function":
                inside = tokens[declaration.name_at + 1 : declaration.head_end]
                self.taken.setdefault(declaration.name, set()).update(t.text for t in inside if t.kind == WORD)
            if declaration.kind == "other" and tokens[declaration.last - 1].kind == WORD:
                names.add(declaration.last - 1)  # `struct S;`
                if tokens[declaration.last - 2].text in ("struct", "class", "union"):
                    declared.add(declaration.last - 1)
            if declaration.kind != "scope":
                self.paths.add(path)
        self.signs += asked_signs(parser, asking)
        for name, count in asked(parser, asking):
            self.asked.setdefault(name, set()).add(count)
        own = {index for made in parser.declarations for index in _own_mentions(parser, made)}
        for made in parser.declarations:
            own.update(range(made.first, made.last) if made.kind == "alias" else ())
            self.spaces.update(_named_spaces(parser, made))
            if made.template and made.kind in ("function", "class", "alias", "variable"):
                end = made.body if made.body >= 0 else made.last
                self.tried.update(tokens[i].text for i in range(made.first, end) if _names_members(parser, i))
        measured = handed = 0
        self.words.update(t.text for index, t in enumerate(tokens) if t.kind == WORD and index not in declared)
        for index, token in enumerate(tokens):
            if token.kind != WORD or index in names:
                continue
            if index and tokens[index - 1].text in (".", "->"):
                self.members.add(token.text)
            if names_member(tokens, index, parser.surroundings.macros) or is_thrown(tokens, index):
                continue
            self.used.add(token.text)
            following = tokens[index + 1].text if index + 1 < len(tokens) else ""
            if token.text in parser.surroundings.macros and following == "(":
                handed = max(handed, parser.match.get(index + 1, len(tokens)))
            if following == "::" or index < handed or tokens[index - 1].text == "namespace":
                self.spaces.add(token.text)
            if index not in own and not _names_members(parser, index):
                self.plain.add(token.text)
            if ASKS.fullmatch(token.text) and (token.text != "noexcept" or following == "("):
                self.asks = True
            if tokens[index - 1].text == "operator" and _VECTOR.fullmatch(token.text):
                self.vectors_convert = True
            if token.text in ("typename", "class") and index + 1 < len(tokens):
                self.parameters.add(following)
            if token.text in _SIZES:
                measured = max(measured, parser.match.get(index + 1, index + 2))
            if index < measured:
                self.measured.add(token.text)
            if index + 1 < len(tokens) and (
                tokens[index + 1].text in ("(", "<") or tokens[index + 1].kind == DIRECTIVE
            ):
                self.called.add(token.text)


_VECTOR = re.compile(r"(?:u?(?:char|short|int|long|longlong)|float|double)[1-4]")


def _takes_vectors(parser: Parser, made: Declaration) -> bool:
    """Whether an operator takes one of CUDA's vectors: nothing else can be given to it for that, and the types of the
    operands then find what is in the global namespace, as they are."""
    opened = next((i for i in range(made.name_at, made.head_end) if parser.is_at(i, "(")), made.head_end)
    parts = [[token.text for token in part] for part in arguments_of(parser, opened)]
    return not made.template and any("<" not in part and any(map(_VECTOR.fullmatch, part)) for part in parts)


def _named_spaces(parser: Parser, made: Declaration) -> Iterator[str]:
    """The namespaces that `namespace a = b;` or `using namespace b;` names."""
    if made.kind == "alias" and "namespace" in (t.text for t in parser.tokens[made.first : made.first + 2]):
        yield from (t.text for t in parser.tokens[made.first : made.last] if t.kind == WORD)


def _own_mentions(parser: Parser, made: Declaration) -> Iterator[int]:
    """Where a class is named by what constructs, copies or destroys it, which needs one that is there already."""
    if made.kind != "function" or made.parent is None:
        return
    if made.name in (made.parent.name, f"~{made.parent.name}", "operator="):
        for index in range(made.first, made.head_end):
            if parser.tokens[index].text == made.parent.name:
                yield index


def _names_members(parser: Parser, index: int) -> bool:
    """Whether a word only qualifies another one: `Table::` or `Table<int>::`."""
    following = parser.next_of(index)
    if parser.is_at(following, "<"):
        closed = parser.angle(following, parser.limit)
        following = following if closed is None else parser.next_of(closed)
    return parser.is_at(following, "::")


def uncovering(
    files: Mapping[str, PassedOver],
    surroundings: Surroundings,
    *,
    expressions: Collection[str] = (),
    linked: bool = False,
) -> Iterator[tuple[str, Passing]]:
    """The pieces, with the label of their file, without which another kernel could have come out.

    A name that nothing refers to any more is harmless. So is a variable of the host that nothing else is called
    like: what still uses its name has a parameter or a local variable of that name, or does not compile. A function
    that device code cannot call matters where it asks about a call, or where the function hid another one of an
    outer namespace. A type could have hidden another one, and a member decides what its class can do: where such a
    name is used, only nvcc knows what it meant; another name of a namespace, only where a namespace can be meant. A
    class that is still declared hides what it hid; it matters where a kernel is instantiated with it, by one of the
    `expressions`, where it is used and code asks what classes can do, and where a template tries a member of it. A
    constructor of a class that stays matters to what asks whether the class can be made. A function that takes an
    object which only the host has, such as a `std::vector`, is chosen for none that is left, unless something turns
    into one. In a file that is linked to others, a declaration without its body would be bound to what another file
    calls by that name.
    """
    left = _Left(files, surroundings, expressions)
    for label, found in files.items():
        for passing in found.passed:
            names = [_plain(name) for name in passing.name.split(", ")]
            if passing.kind == "body" and linked:
                passing_kind = "function"
            elif not passing.reached or passing.kind in _HARMLESS:
                continue
            else:
                passing_kind = passing.kind
            signature = passing.signature
            if signature is not None and left.has_defaults(passing):
                signature = signature._replace(least=0)
            made = left.pasted if signature is None else left.called
            if (left.may_hide(passing) and any(_hides(passing, name, left.rest) for name in names)) or (
                not left.is_for_nobody(passing)
                and any(name in made or _is_taken(passing_kind, name, signature, left.rest) for name in names)
            ):
                yield label, passing


def demanding(files: Mapping[str, PassedOver], surroundings: Surroundings) -> list[Passing]:
    """The functions that went and that each call would have to give what nothing has that is left."""
    left = _Left(files, surroundings, ())
    return [passing for found in files.values() for passing in found.passed if left.is_for_nobody(passing)]


class _Left:
    """What is left of files, with what it could make."""

    def __init__(
        self, files: Mapping[str, PassedOver], surroundings: Surroundings, expressions: Collection[str]
    ) -> None:
        self.rest = rest = _Rest()
        asking = surroundings.reaching(OPERANDS) - OPERANDS
        parsers = [Parser(found.data.decode("latin-1"), surroundings) for found in files.values()]
        for parser in parsers:
            rest.add(parser, asking)
        self._lists = any(has_lists(parser, asking) for parser in parsers)
        self._converts = any(converts_to_anything(parser, rest.parameters) for parser in parsers)
        self._contains = self._lists or self._converts or any(map(turns_into_containers, parsers))
        brought = surroundings.expanded(rest.used)
        rest.called |= brought - rest.used
        rest.spaces |= brought - rest.used
        rest.plain |= brought - rest.used
        rest.asks |= any(ASKS.fullmatch(word) for word in brought - rest.used)
        rest.measured |= rest.parameters if not _SIZES.isdisjoint(brought - rest.used) else set()
        rest.used |= brought
        rest.instantiate(expressions)
        passed = [passing for found in files.values() for passing in found.passed]
        gone = {_plain(name) for passing in passed for name in passing.name.split(", ")}
        pasting = Pasting([parser.tokens for parser in parsers], surroundings)
        self.pasted, self.called = pasting.made(gone, rest.used), pasting.made(gone, rest.asked)
        rest.pasted = pasting.made(rest.taken, rest.asked)
        told = [(each.name, each.signature) for each in passed if each.signature is not None]
        self._defaults = {name for name, signature in told if signature.least < signature.most}
        self._counts = Counter(name for name, _ in told)
        self._absent = Absent(passed, rest.words | rest.used | self.pasted)

    def has_defaults(self, passing: Passing) -> bool:
        """Whether other declarations of a function may add default arguments to those of this one."""
        return passing.name in self._defaults and self._counts[passing.name] > 1

    def may_hide(self, passing: Passing) -> bool:
        """Whether a function could hide what nothing in its place hides, which what converts to anything could be given
        to."""
        return not passing.replaced or self._converts

    def is_for_nobody(self, passing: Passing) -> bool:
        """Whether each call of a function would have to give it what nothing has that is left."""
        operator = passing.name.startswith("operator")
        named = "operator" in self.rest.asked if operator else self._is_asked(passing)
        listed = _takes_lists(passing.name.removeprefix("operator").strip()) if operator else passing.kind != "function"
        if passing.hosts - self.rest.used and not self._contains and not self._is_asked(passing):
            return not self._absent.turns_into(passing.hosts)
        return self._absent.demanded(
            passing, explicit=named, converts=self._converts or ((named or listed) and self._lists)
        )

    def _is_asked(self, passing: Passing) -> bool:
        return any(name in self.rest.asked or name in self.called for name in map(_plain, passing.name.split(", ")))


def _takes_lists(sign: str) -> bool:
    """Whether an operand of an operator can be a list in braces."""
    return sign in ("[]", "()") or (sign.endswith("=") and sign not in ("==", "!=", "<=", ">="))


def _hides(passing: Passing, name: str, rest: _Rest) -> bool:
    """Whether a function of a namespace hid one of an outer namespace, whatever it takes, where code is left."""
    if passing.kind != "function" or not (name in rest.used or name.startswith("operator")):
        return False
    outer = [path for path in rest.declared.get(name, ()) if path == passing.path[: len(path)] != passing.path]
    if name.startswith("operator") and not rest.vectors_convert:
        outer = [path for path in outer if (name, path) in rest.hidden]
    return any(here[: len(path) + 1] == passing.path[: len(path) + 1] for path in outer for here in rest.paths)


def _plain(name: str) -> str:
    """A name without what qualifies it and without its template arguments."""
    last = name.rpartition("::")[2].strip()
    return last if last.startswith("operator") else last.partition("<")[0].strip()


def _is_taken(kind: str, name: str, signature: Signature | None, rest: _Rest) -> bool:
    if name.startswith("operator") and kind in ("function", "member"):
        return _is_operator_asked(name.removeprefix("operator").strip(), signature, rest)
    if signature is not None:
        return any(map(signature.takes, rest.asked.get(name, ())))
    if kind == "class definition":
        taken = any(name in words and rest.asks_about(function) for function, words in rest.taken.items())
        asks = rest.asks or rest.measures or not rest.tried.isdisjoint(rest.parameters)
        tried = name in rest.tried or name in rest.asked
        return taken or tried or name in rest.instances or (name in rest.plain and asks)
    if kind == "namespace":
        return name in rest.spaces
    if kind == "member":
        return name in rest.used or name in rest.members
    if name not in rest.used:
        return False
    if kind == "constructor":
        return rest.asks and name in rest.plain
    if kind == "variable":
        return name in rest.declared
    return kind != "function" or name in rest.declared or name in rest.called


def _is_operator_asked(sign: str, signature: Signature | None, rest: _Rest) -> bool:
    """Whether code asks what an operator would give. An evaluated use of one that goes does not compile, unless it is
    a constant expression."""
    return signature is None or (not signature.streams and rest.asks_about(f"operator{sign}"))
