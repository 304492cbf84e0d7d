# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What becomes of each declaration of a file: it stays, it goes, or its definition does."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

from .declarations import Declaration, Parser
from .names import (
    HOST,
    HOST_MACROS,
    HOST_MEMBERS,
    HOST_NAMESPACES,
    HOST_TYPES,
    MACRO_NAME,
    NO_SPACE,
)
from .tokens import DIRECTIVE, WORD

__all__ = ["Verdicts", "names_host_type"]


def names_host_type(parser: Parser, first: int, end: int) -> bool:
    """Whether the tokens name a type that exists on the host alone."""
    tokens = parser.tokens
    for index in range(first, end):
        token = tokens[index]
        if token.kind == WORD:
            if HOST_TYPES.fullmatch(token.text):
                return True
            if parser.is_at(index + 1, "::"):
                before = tokens[index - 1].text if index else ""
                if before == "::" and index > 1 and tokens[index - 2].kind == WORD:
                    continue
                around = parser.surroundings
                if token.text in HOST_NAMESPACES and token.text not in around.macros:
                    names = [t.text for t in tokens[index + 2 : min(end, index + 16)] if t.kind == WORD]
                    if token.text not in around.namespaces or not around.knows(names):
                        return True
                if index + 2 < end and tokens[index + 2].text in HOST_MEMBERS.get(token.text, ()):
                    return True
    return False


def _is_const(parser: Parser, declaration: Declaration, constants: Collection[str] = ()) -> bool:
    """Whether a variable is a constant, which device code can use as it is; `constants` are aliases of such types."""
    around = parser.surroundings
    if around.expanded(declaration.words) & {"constexpr", "constinit", "consteval"}:
        return True
    constant = False
    for token in parser.tokens[declaration.first : declaration.last]:
        if token.text == "const" or token.text in constants or "const" in around.macros.get(token.text, ()):
            constant = True
        elif token.text in ("*", "&"):
            constant = False
        elif token.text in ("=", "{", "["):
            break
    return constant


def _names_constants(parser: Parser, alias: Declaration) -> bool:
    """Whether an alias stands for a type of constants, and for nothing that points elsewhere."""
    texts = [token.text for token in parser.tokens[alias.first : alias.last]]
    return "const" in texts and not {"*", "&", "<", "(", "["} & set(texts)


class Verdicts:
    """The decisions about the declarations of one file."""

    def __init__(self, parser: Parser) -> None:
        self.parser, self.surroundings = parser, parser.surroundings
        self._known: dict[Declaration, str] = {}

    def of(self, declaration: Declaration) -> str:
        """One of "stay"; "go" unless the name is used; "cut"; "erase" the definition; "mark"; the "type" alone."""
        if declaration not in self._known:
            self._known[declaration] = self._verdict(declaration)
        return self._known[declaration]

    def _verdict(self, declaration: Declaration) -> str:
        parser = self.parser
        if declaration in self._host_classes:
            return "cut"
        if declaration.kind == "alias" and (
            names_host_type(parser, declaration.first, declaration.last) or declaration.name in self._foreign_operators
        ):
            return "cut"
        if declaration.kind in ("enum", "class") and self.declares_variables(declaration):
            return "type"
        if declaration.kind in ("scope", "other", "alias", "enum", "class"):
            return "stay"
        if declaration.kind == "macro":
            return "cut" if self._host_macro(declaration) else "stay"
        if declaration.device:
            return "cut" if self._takes_types_of_the_host(declaration) else "stay"
        if declaration.kind == "function":
            return self._function_verdict(declaration)
        if declaration.parent is None and not declaration.template:
            if names_host_type(parser, declaration.first, declaration.head_end):
                return "cut"
            constant = _is_const(parser, declaration, self._constant_types)
            return "stay" if constant or declaration.instantiation else "cut"
        if declaration.parent is not None and "static" in declaration.words and not _is_const(parser, declaration):
            return "cut"
        return "stay"

    def _takes_types_of_the_host(self, declaration: Declaration) -> bool:
        """Whether a function for both sides has a parameter or result that only the host can make."""
        words = self.surroundings.expanded(declaration.words)
        return (
            declaration.kind == "function"
            and HOST in words
            and "__global__" not in words
            and not declaration.is_vital
            and self._is_foreign(declaration)
        )

    def is_for_both(self, declaration: Declaration) -> bool:
        """Whether a function is for the host and the device, and its body tells nothing of what it is."""
        tokens = self.parser.tokens[declaration.first : declaration.head_end]
        words = self.surroundings.expanded([token.text for token in tokens])
        deduced = {"constexpr", "consteval", "virtual", "override", "final", "auto", "decltype", "__global__"}
        return {HOST, "__device__"} <= words and words.isdisjoint(deduced)

    def _is_foreign(self, declaration: Declaration) -> bool:
        """Whether a function has a parameter or a result that only the host has; initialisers tell nothing of it."""
        end = declaration.erasable if declaration.erasable >= 0 else declaration.head_end
        return names_host_type(self.parser, declaration.first, end)

    def _is_class_by_macro(self, declaration: Declaration) -> bool:
        """Whether it only looks like a function: `struct PASTE(Co, de)<int> { ... };`."""
        before = self.parser.tokens[declaration.name_at - 1].text if declaration.name_at > declaration.first else ""
        return before in ("struct", "class", "union", "enum")

    def _function_verdict(self, declaration: Declaration) -> str:
        if declaration.instantiation:
            return "cut" if declaration.name in self._host_names - self.device_names else "stay"
        if self.has_unknown_specifier(declaration) or self._is_class_by_macro(declaration):
            return "stay"
        foreign = self._is_foreign(declaration)
        member = declaration.parent is not None
        owner = None if member else self.owner(declaration)
        if owner is not None and not foreign:
            # The space of a member stands at its declaration in the class, which may be in another file.
            here = (
                owner in self.type_names
                and declaration.name not in self.device_names
                and not declaration.words & {"constexpr", "consteval"}
            )
            return "cut" if here else "stay"
        if foreign and not declaration.is_vital:
            return "cut"
        if declaration.ended == "default":
            return "mark" if "virtual" in declaration.words else "stay"
        if declaration.ended in ("delete", "0") or declaration.words & {"constexpr", "consteval"}:
            return "mark"
        if member and declaration.words & {"virtual", "override", "final"}:
            return "mark"
        if member or declaration.name.startswith("operator"):
            return "erase"
        return "go"

    @cached_property
    def _host_classes(self) -> frozenset[Declaration]:
        """Classes at namespace level that have a base or a member of a type of the host, and no device code but in the
        functions and classes in them."""
        parser = self.parser
        found = set()
        tops: dict[Declaration, Declaration] = {}
        for member in parser.declarations:
            tops[member] = member if member.parent is None else tops[member.parent]
            is_class = member.kind == "class" and member.body >= 0
            if (member.kind == "variable" and member.parent is not None) or is_class:
                top = tops[member]
                if (
                    top not in found
                    and (not parser.carries_space(top.first, top.last + 1) or self._is_for_both(top))
                    and names_host_type(parser, member.first, member.body if is_class else member.head_end)
                ):
                    found.add(top)
        return frozenset(found)

    def _is_for_both(self, made: Declaration) -> bool:
        """Whether the device code of a class is all in functions that kernels call, of its own or of classes in it."""
        parser, entries = self.parser, self.surroundings.reaching({"__global__"})
        spaces = parser.space_before
        told = sum(
            spaces[each.last + 1] - spaces[each.first]
            for each in parser.inside(made)
            if each.kind == "function" and "friend" not in each.words
        )
        texts = [token.text for token in parser.tokens[made.first : made.last]]
        known = sum(text in self.surroundings.spaces for text in texts)  # a guess is not enough
        return entries.isdisjoint(texts) and told == known == spaces[made.last + 1] - spaces[made.first]

    @cached_property
    def _constant_types(self) -> frozenset[str]:
        """Aliases of types of constants: `typedef const int size;`."""
        aliases = [made for made in self.parser.declarations if made.kind == "alias" and made.parent is None]
        return frozenset(made.name for made in aliases if made.name and _names_constants(self.parser, made))

    @cached_property
    def _foreign_operators(self) -> frozenset[str]:
        """Operators of which the file has those alone that only the host can have, such as `<<` on a stream."""
        named = [d for d in self.parser.declarations if d.kind == "function" and d.name.startswith("operator")]
        there = {d.name for d in named if d.device or not self._is_foreign(d)}
        return frozenset(d.name for d in named) - there

    @cached_property
    def device_names(self) -> frozenset[str]:
        """Names of the functions that are marked as device code somewhere in the file."""
        return frozenset(d.name for d in self.parser.declarations if d.kind == "function" and d.device and d.name)

    @cached_property
    def _host_names(self) -> frozenset[str]:
        """Names of the function templates that have no execution space."""
        return frozenset(
            d.name for d in self.parser.declarations if d.kind == "function" and d.template and not d.device
        )

    @cached_property
    def type_names(self) -> frozenset[str]:
        tokens = self.parser.tokens
        names = {d.name for d in self.parser.declarations if d.kind in ("class", "enum", "alias")}
        for index, token in enumerate(tokens[:-1]):
            if token.text in ("typename", "class", "struct"):
                names.add(tokens[index + 1].text)
        return frozenset(names)

    def owner(self, declaration: Declaration) -> str | None:
        """The class or namespace that the name of a function is qualified with."""
        tokens = self.parser.tokens
        index = declaration.name_at - 1
        if index > 0 and tokens[index].text == "~":
            index -= 1
        if index < 1 or tokens[index].text != "::":
            return None
        index -= 1
        depth = 0
        while index > declaration.first:
            depth += (tokens[index].text == ">") - (tokens[index].text == "<")
            if depth == 0 and tokens[index].kind == WORD:
                break
            index -= 1
        return tokens[index].text

    def is_special(self, declaration: Declaration) -> bool:
        """Whether it is a specialisation, `template <>`: something of its own, though it has another's name."""
        parser, first = self.parser, declaration.first
        return parser.is_at(first + 1, "<") and parser.is_at(first + 2, ">")

    def has_unknown_specifier(self, declaration: Declaration) -> bool:
        """Whether a word of the head may be a macro of a header that is not at hand, and so put it on the device."""
        around = self.surroundings
        return any(
            word not in around.macros and word not in around.types and word not in self.type_names
            for word in declaration.words - {declaration.name}
            if MACRO_NAME.match(word) and word not in NO_SPACE and not HOST_TYPES.fullmatch(word)
        )

    def _host_macro(self, declaration: Declaration) -> bool:
        """Whether a use of a macro stands for host code for certain."""
        if declaration.device:
            return False
        name = declaration.name
        if name in self.surroundings.macros:
            return False  # of one that is not expanded, only the preprocessor knows what it brings
        return bool(HOST_MACROS.fullmatch(name)) or (name.startswith("PYBIND") and declaration.body >= 0)

    def declares_variables(self, declaration: Declaration) -> bool:
        """Whether a type with a name, or an enumeration, declares variables of the host: `struct S { } s;`."""
        parser, tokens = self.parser, self.parser.tokens
        if declaration.parent is not None or declaration.template or declaration.body < 0:
            return False
        closed = parser.attributes_end(declaration)
        before = [token.text for token in tokens[declaration.first : declaration.body]]
        key = next((index for index, text in enumerate(before) if text in ("struct", "class", "union", "enum")), -1)
        after = tokens[closed + 1 : declaration.last]
        named = declaration.name_at >= 0 or declaration.kind == "enum"
        plain = not any(token.kind == DIRECTIVE or token.text in self.surroundings.macros for token in after)
        return bool(
            named
            and plain
            and any(token.kind == WORD for token in after)
            and not set(before[: max(key, 0)]) - {"static"}
            and not parser.carries_space(closed, declaration.last)
        )

    def after_name(self, declaration: Declaration) -> int | None:
        """Index of the token after the name of a class that can be declared without its definition."""
        parser = self.parser
        if declaration.kind != "class" or declaration.parent is not None or declaration.name_at < 0:
            return None
        if not parser.is_at(parser.next_of(parser.match[declaration.body]), ";"):
            return None  # it declares something else as well
        arms = any(declaration.first < twin < declaration.last for twin in parser.twins)
        if arms or any(token.kind == DIRECTIVE for token in parser.tokens[declaration.first : declaration.body]):
            return None  # the head differs by a conditional
        after = parser.next_of(declaration.name_at)
        if parser.is_at(after, "<"):
            closed = parser.angle(after, declaration.body)
            after = declaration.body if closed is None else parser.next_of(closed)
        return after

    def stays_declared(self, declaration: Declaration) -> bool:
        """Whether the definition of a class can go without its declaration."""
        return self.after_name(declaration) is not None

    def can_erase(self, declaration: Declaration) -> bool:
        """Whether the definition of a function can go without its declaration."""
        twins = self.parser.twins
        return declaration.erasable >= 0 and not any(declaration.body < twin < declaration.last for twin in twins)
