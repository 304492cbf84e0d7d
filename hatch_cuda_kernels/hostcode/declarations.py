# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""A file cut into its declarations by its brackets."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from .brackets import Brackets
from .names import AFTER_PARAMETERS, DEVICE_MACRO, MACRO_NAME, NOT_NAMES, looks_misspelt
from .surroundings import Surroundings
from .tokens import DIRECTIVE, NUMBER, SIGN, STRING, WORD

__all__ = ["Declaration", "Parser", "global_variables", "parsed"]

_ENDS = frozenset("{};")
_ATTRIBUTES = frozenset("nodiscard maybe_unused deprecated noreturn __attribute__ __declspec inline __inline__".split())
"""Words of which a macro on a line of its own belongs to what follows it."""
_ATTRIBUTES = frozenset({"__attribute__", "__attribute"})
_ATTRIBUTES_ALONE = re.compile(r"__attribute(?:__)?\s*\(\((?:[\w\s,]|\([\w\s,]*\))*\)\)")
_KEYS = frozenset("class struct union enum".split())
_BY_MACROS = frozenset("constexpr consteval constinit virtual".split())
"""Specifiers that count where a macro stands for one, too."""
_DEEPEST = 64
"""Namespaces of a name at most; nobody nests more."""


@dataclass(eq=False)
class Declaration:
    """One declaration at namespace or class level, as a range of tokens."""

    first: int
    last: int
    kind: str
    """"function", "variable", "class", "alias", "macro", "scope", "other"."""
    name: str = ""
    name_at: int = -1
    """Index of the token that is the name, or -1."""
    parent: Declaration | None = None
    """The class that it is a member of."""
    head_end: int = 0
    """One past the tokens of its head: of a function, all before the body."""
    body: int = -1
    """Index of the brace that opens the body, or -1."""
    erasable: int = -1
    """Index of the first token of the definition: the body, or the list of initialisers before it."""
    specifiers: int = 0
    """Index of the token before which an execution space can be put."""
    template: bool = False
    instantiation: bool = False
    ended: str = ""
    """"default", "delete" or "0" after a function's `=`."""
    device: bool = False
    words: frozenset[str] = frozenset()
    """Specifiers and other words of the head, parameters aside."""

    copies: bool = False
    """Whether it is a constructor that may be the one that copies or moves."""

    @property
    def is_vital(self) -> bool:
        """Whether it is a member that decides how the class is passed and laid out: it copies, destroys, is virtual."""
        return self.parent is not None and (
            self.copies
            or self.name == "operator="
            or self.name.startswith("~")
            or bool(self.words & {"virtual", "override", "final"})
        )


class Parser(Brackets):
    """Cuts a file into declarations. What it does not understand becomes no declaration, or one of kind "other"."""

    def __init__(self, text: str, surroundings: Surroundings) -> None:
        super().__init__(text)
        self.surroundings = surroundings
        known = surroundings.macros
        spaces = surroundings.spaces
        carrying = [
            token.kind == WORD
            and (
                token.text in spaces
                or (
                    token.text not in known
                    and (bool(DEVICE_MACRO.match(token.text)) or looks_misspelt(token.text))
                    and not self.is_at(index + 1, ">")  # the last argument of a template
                )
            )
            for index, token in enumerate(self.tokens)
        ]
        self.space_before = [0, *itertools.accumulate(carrying)]
        """How many of the tokens before an index put something on the device, or may do so."""
        self.declarations: list[Declaration] = []
        pending: list[tuple[int, int, Declaration | None]] = [(0, self.limit, None)]
        while pending:
            start, end, parent = pending.pop()
            pending += self._scope(start, min(end, self.limit), parent)
        self.declarations.sort(key=lambda d: (d.first, -d.last))
        for made in self.declarations:
            if made.kind == "function" and made.body >= 0:  # a guess is of no account there: `f(ATTRIBUTE_DEVICE_ID)`
                for index in range(made.body, made.last):
                    carrying[index] = self.tokens[index].text in spaces
        self.space_before = [0, *itertools.accumulate(carrying)]

    @cached_property
    def paths(self) -> dict[Declaration, tuple[str, ...]]:
        """The names of the namespaces around each declaration."""
        found: dict[Declaration, tuple[str, ...]] = {}
        scopes: list[tuple[int, tuple[str, ...]]] = [(len(self.tokens), ())]
        for made in self.declarations:
            while scopes[-1][0] < made.first:
                scopes.pop()
            found[made] = scopes[-1][1]
            if made.kind == "scope":
                words = [token.text for token in self.tokens[made.first : made.body] if token.kind == WORD]
                names = [word for word in words if word not in ("inline", "namespace", "extern")]
                scopes.append((made.last, (scopes[-1][1] + tuple(names))[:_DEEPEST]))
        return found

    @cached_property
    def members(self) -> dict[Declaration | None, list[Declaration]]:
        """The members of each class, and what is in none."""
        found: dict[Declaration | None, list[Declaration]] = {}
        for made in self.declarations:
            found.setdefault(made.parent, []).append(made)
        return found

    def inside(self, made: Declaration) -> Iterator[Declaration]:
        """The members of a class, and those of the classes in it."""
        pending = [*self.members.get(made, ())]
        while pending:
            member = pending.pop()
            yield member
            pending += self.members.get(member, ())

    def carries_space(self, first: int, end: int) -> bool:
        """Whether one of the tokens in that range puts something on the device."""
        return self.space_before[end] > self.space_before[first]

    def _scope(self, start: int, end: int, parent: Declaration | None) -> Iterator[tuple[int, int, Declaration | None]]:
        """Read the declarations in a range; yields the ranges inside them that are to be read in turn."""
        index = start
        while index < end:
            token = self.tokens[index]
            if (going_on := self.continued.get(index)) is not None:
                arm = Declaration(index, going_on[0], "other", parent=parent, head_end=going_on[0], device=True)
                self.declarations.append(arm)
                index = going_on[0] + 1
                continue
            if token.kind == DIRECTIVE or token.text == ";":
                index += 1
                continue
            if token.text == "_Pragma" and self.is_at(index + 1, "(") and index + 1 in self.match:
                index = self.match[index + 1] + 1
                continue
            if parent and token.text in ("public", "private", "protected") and self.is_at(self.next_of(index), ":"):
                index = self.next_of(index) + 1
                continue
            found = self._declaration(index, end, parent)
            if found is None:
                return
            declaration, inner = found
            if self._runs_into_an_arm(declaration) or self._hides_device_code(declaration):
                return
            self.declarations.append(declaration)
            yield from inner
            index = declaration.last + 1

    def _runs_into_an_arm(self, made: Declaration) -> bool:
        """Whether it would begin in one arm of a conditional and end where another one goes on inside of a bracket."""
        return any(
            made.first < start <= made.last
            and not (opened is not None and made.first <= opened and closed <= made.last)
            for start, (closed, opened) in self.continued.items()
        )

    def _hides_device_code(self, made: Declaration) -> bool:
        """Whether a function of the host is one of the device in another arm of a conditional, which opens the same
        body."""
        spaces = self.surroundings.spaces
        if made.kind != "function" or made.body < 0:
            return False
        if any(token.text in spaces for token in self.tokens[made.first : made.body]):
            return False
        inside = (twin for twin in self.twins if made.body < twin < made.last)
        return any(token.text in spaces for twin in inside for token in self.tokens[made.body : twin])

    def _declaration(
        self, first: int, end: int, parent: Declaration | None
    ) -> tuple[Declaration, list[tuple[int, int, Declaration | None]]] | None:
        tokens = self.tokens
        opened = self._opened_scope(first, end)
        if opened is not None:
            brace = opened
            if brace in self.twins:  # the same namespace as in the first arm of the conditional
                return Declaration(first, brace, "other", head_end=brace, device=True), []
            closed = self.match.get(brace)
            if closed is None or closed >= end:
                return None
            scope = Declaration(first, closed, "scope", body=brace, head_end=brace, device=True)
            return scope, [(brace + 1, closed, parent)]
        if (alone := self._macro(first, end, parent)) is not None:
            return alone, []
        made = Declaration(first, -1, "", parent=parent, specifiers=first)
        inner: list[tuple[int, int, Declaration | None]] = []
        words: set[str] = set()
        index, previous = first, -1
        parameters = -1
        assigned = False
        class_key = -1
        initialisers = -1
        last_word = -1
        while index < end:
            token = tokens[index]
            text = token.text
            if token.kind == DIRECTIVE:
                index += 1
                continue
            if token.kind == WORD:
                if not assigned and parameters < 0:
                    if text == "template":
                        following = self.next_of(index)
                        if self.is_at(following, "<"):
                            closed = self.angle(following, end)
                            if closed is None:
                                return None
                            made.template = True
                            previous, index = closed, closed + 1
                            made.specifiers = self.next_of(closed)
                            continue
                        made.instantiation = True
                    elif text == "requires":
                        index = made.specifiers = self._requirement(index, end)
                        continue
                    elif text == "operator" and tokens[first].text == "using":
                        ends = self._semicolon(index, end)
                        made.name = "operator" + "".join(t.text for t in tokens[index + 1 : ends])
                        made.name_at, index = index, ends
                        words.add(text)
                        continue
                    elif text == "operator":
                        at = self._operator(index, end)
                        if at is None:
                            return None
                        made.name = "operator" + "".join(t.text for t in tokens[index + 1 : at] if t.kind != DIRECTIVE)
                        made.name_at = index
                        parameters = at
                        index = self.match[at] + 1
                        previous = index - 1
                        words.add(text)
                        continue
                    elif text in ("class", "struct", "union", "enum") and class_key < 0 and not made.kind:
                        class_key = index
                words.add(text)
                last_word = index
            elif token.kind == STRING and previous == made.specifiers and tokens[previous].text == "extern":
                made.specifiers = self.next_of(index)
            elif token.kind == SIGN:
                if text == ";":
                    made.last = index
                    break
                if text == "<" and previous >= 0 and tokens[previous].kind == WORD and not assigned:
                    closed = self.angle(index, end)
                    if closed is not None:
                        index = closed + 1  # `previous` stays at the name before the arguments
                        continue
                elif text in "([":
                    closed = self.match.get(index)
                    if closed is None or closed >= end:
                        return None
                    pointed = self._pointed(index, closed)
                    if (
                        text == "("
                        and parameters < 0
                        and not assigned
                        and previous >= 0
                        and tokens[previous].kind == WORD
                        and tokens[previous].text not in NOT_NAMES
                        and tokens[pointed].text not in ("&", "*")  # `T (&row)[8]`
                        and not self._is_attribute(made.specifiers, previous, closed, end)
                        and not (class_key >= 0 and previous == class_key + 1 and self._class_goes_on(closed, end))
                    ):
                        parameters = index
                        before = previous - 1
                        tilde = before >= first and tokens[before].text == "~"
                        made.name = ("~" if tilde else "") + tokens[previous].text
                        made.name_at = previous
                    elif text == "(" and parameters < 0 and not assigned and self.is_at(pointed, "*"):
                        # a pointer to a function, or something of a longer type that names such a pointer
                        simple = closed == pointed + 2 and tokens[pointed + 1].kind == WORD
                        made.kind = "variable" if simple and not words & {"typedef", "using", "friend"} else "other"
                        made.name, made.name_at = (tokens[pointed + 1].text, pointed + 1) if simple else ("", -1)
                    if index == made.specifiers and text == "[":
                        made.specifiers = self.next_of(closed)
                    previous, index = closed, closed + 1
                    continue
                elif text == "=":
                    if parameters >= 0 and not assigned:
                        made.ended = tokens[min(self.next_of(index), len(tokens) - 1)].text
                    assigned = True
                elif text == ":" and parameters >= 0 and not assigned and initialisers < 0:
                    initialisers = index
                elif text == "{":
                    closed = self.match.get(index)
                    if closed is None or closed >= end:
                        return None
                    if class_key >= 0 and parameters < 0 and not assigned and not made.kind:
                        made.kind = "class"
                        made.name, made.name_at = self._class_name(class_key, index)
                        made.body = index
                        if tokens[class_key].text != "enum":
                            inner.append((index + 1, closed, made))
                        else:
                            made.kind = "enum"
                    elif assigned:
                        pass
                    elif parameters >= 0:
                        at_item = previous >= 0 and (tokens[previous].kind == WORD or tokens[previous].text == ">")
                        if not (initialisers >= 0 and at_item and tokens[previous].text != "try"):
                            made.body = index
                            made.erasable = initialisers if initialisers >= 0 else index
                            made.last = closed
                            while self.is_at(self.next_of(made.last), "catch"):
                                brace = self.next_of(self.match.get(self.next_of(self.next_of(made.last)), end))
                                made.last = self.match.get(brace, end)
                                made.erasable = -1
                            if made.last >= end:
                                return None
                            break
                    elif previous < 0 or tokens[previous].kind not in (WORD, SIGN):
                        made.kind = "other"
                        made.last = closed
                        break
                    previous, index = closed, closed + 1
                    continue
            previous = index
            index += 1
        if made.last < 0:
            return None
        self._finish(made, words, parameters, assigned, last_word)
        return made, inner

    def _finish(self, made: Declaration, words: set[str], parameters: int, assigned: bool, last_word: int) -> None:
        tokens, first = self.tokens, made.first
        head = tokens[first + (tokens[first].text == "__extension__")].text
        made.words = frozenset(words | (self.surroundings.expanded(words) & _BY_MACROS))
        if made.body >= 0 and made.kind not in ("class", "enum"):
            made.head_end = made.body
        else:
            made.head_end = made.last + 1
        if not made.kind:
            if head in ("using", "typedef", "namespace") or (made.template and tokens[made.specifiers].text == "using"):
                made.kind = "alias"
            elif head in ("static_assert", "asm", "__asm__", "_Static_assert"):
                made.kind = "other"
            elif parameters >= 0 and not (assigned and made.ended not in ("default", "delete", "0")):
                initial = tokens[self.next_of(parameters)]
                value = made.body < 0 and initial.kind in (NUMBER, STRING)
                made.kind = "variable" if value else "function"
            elif words & {"friend"} or (last_word >= 0 and words & _KEYS and self._only_declares(first, made.last)):
                made.kind = "other"  # `struct S;`, `enum class E : int;`, `friend class S;`
            else:
                made.kind = "variable"
        if made.kind in ("alias", "variable") and not made.name:
            made.name, made.name_at = self._declared_name(made)
        made.device = self.carries_space(first, made.head_end)
        if made.kind == "variable" and made.device:  # a guess is not enough: `buffers[MAX_DEVICES]`
            spaces = self.surroundings.spaces
            made.device = any(token.text in spaces for token in tokens[first : made.last])
        if made.parent is not None and made.kind == "function" and made.name == made.parent.name:
            closed = self.match.get(self.next_of(made.name_at), made.head_end)
            inside = [token.text for token in tokens[made.name_at + 1 : closed]]
            made.copies = made.name in inside and "&" in inside

    def _pointed(self, opened: int, closed: int) -> int:
        """The first token in parentheses; the star where something points to members of a class: `T (S<int>::*f)()`."""
        index = start = self.next_of(opened)
        while index < closed and (self.tokens[index].kind == WORD or self.tokens[index].text in ("::", "<")):
            if self.is_at(index, "<"):
                index = self.angle(index, closed) or closed
            elif self.is_at(index, "::") and self.is_at(index + 1, "*"):
                return index + 1
            index += 1
        return start

    def attributes_end(self, made: Declaration) -> int:
        """The last token of a class or enumeration with the attributes that follow its braces, or macros for them."""
        tokens, macros = self.tokens, self.surroundings.macros
        index = self.match[made.body]
        while index + 1 < len(tokens):
            word = tokens[index + 1].text
            if _ATTRIBUTES.isdisjoint({word, *macros.get(word, ())}):
                break
            index += 1
            index = self.match.get(index + 1, index) if self.is_at(index + 1, "(") else index
        return index

    def _only_declares(self, first: int, last: int) -> bool:
        """Whether a declaration that has the key of a class or an enumeration gives nothing but a type."""
        texts = [token.text for token in self.tokens[first:last] if token.kind == WORD and token.text not in _KEYS]
        based = self.tokens[first].text == "enum" and any(token.text == ":" for token in self.tokens[first:last])
        return len(texts) <= 1 or based

    def _declared_name(self, made: Declaration) -> tuple[str, int]:
        """Name of a variable or an alias without parentheses: the last word before `=`, `[`, `{` or the end."""
        tokens = self.tokens
        found = -1
        index = made.specifiers if made.template else made.first
        if tokens[index].text == "using" and self.is_at(self.next_of(self.next_of(index)), "="):
            return tokens[self.next_of(index)].text, self.next_of(index)
        while index < made.last:
            token = tokens[index]
            if token.kind == WORD:
                found = index
            elif token.text in ("=", "{", "["):
                break
            elif token.text in ("(",):
                index = self.match.get(index, made.last)
            elif token.text == "<":
                closed = self.angle(index, made.last)
                index = closed if closed is not None else index
            index += 1
        return (tokens[found].text, found) if found >= 0 else ("", -1)

    def declared_names(self, made: Declaration) -> list[str]:
        """Every name that a declaration gives: both of `int a, *b = &a;` and `typedef struct { } A, *B;`."""
        tokens = self.tokens
        found = [made.name] if made.name else []
        index = self.match[made.body] + 1 if made.kind == "class" and made.body >= 0 else made.first
        using = tokens[made.specifiers if made.template else made.first].text == "using"
        if made.kind in ("function", "macro") or (using and made.name):
            return found
        initialised = False
        while index <= made.last:
            token = tokens[index]
            following = self.next_of(index)
            if token.text == "(" and tokens[min(following, made.last)].text in ("*", "&"):
                inside = (t.text for t in tokens[index : self.match.get(index, index)] if t.kind == WORD)
                found += [] if initialised else list(itertools.islice(inside, 1))
            elif token.text in (",", "="):
                initialised = token.text == "="
            elif token.kind == WORD and token.text not in NOT_NAMES and not initialised:
                ends = following > made.last or tokens[following].text in (",", ";", "=", "[", "{", ":", ")")
                found += [token.text] if ends else []
            closed = self.match.get(index) if token.text in ("(", "[", "{") else None
            if token.text == "<" and not initialised:
                closed = self.angle(index, made.last)
            index = (index if closed is None else closed) + 1
        return list(dict.fromkeys(found))

    def _opened_scope(self, first: int, end: int) -> int | None:
        """The brace of a namespace or of `extern "C"` that starts at `first`, if one does."""
        tokens = self.tokens
        index = first
        if tokens[index].text == "inline":
            index = self.next_of(index)
        if index < end and tokens[index].text == "namespace":
            while index < end and tokens[index].text not in ("{", ";", "="):
                closed = self.match.get(index) if tokens[index].text in "([" else None
                index = self.next_of(index if closed is None else closed)
            return index if index < end and tokens[index].text == "{" else None
        if index < end and tokens[index].text == "extern" and index == first:
            language = self.next_of(index)
            brace = self.next_of(language)
            if brace < end and tokens[language].kind == STRING and tokens[brace].text == "{":
                return brace
        return None

    def _macro(self, first: int, end: int, parent: Declaration | None) -> Declaration | None:
        """A use of a macro that stands for declarations of its own."""
        tokens = self.tokens
        token = tokens[first]
        if token.kind != WORD or token.text in NOT_NAMES:
            return None
        following = self.next_of(first)
        known = self.surroundings.macros.get(token.text)
        if known:  # with what other macros bring that it mentions: `#define TYPES X(int) X(float)`
            known = frozenset(self.surroundings.expanded(known))
        if following >= end:  # the last of a class
            return self._as_macro(first, first) if known and "{" in known else None
        if tokens[following].text != "(":
            alone = bool(known and known & {"{", "}", ";", "namespace"})
            looks = token.text.isupper() and re.search("(?:^|_)(?:BEGIN|END|OPEN|CLOSE|NAMESPACE)(?:_|$)", token.text)
            if (alone or (looks and known is None)) and tokens[following].text not in ("::", "<"):
                return self._as_macro(first, first)
            return None
        closed = self.match.get(following)
        if closed is None or closed >= end:
            return None
        after = self.next_of(closed)
        if parent is not None and (token.text == parent.name or known is None):
            return None
        if after >= end:
            return self._as_macro(first, closed)
        shown = tokens[after].text
        if shown == ";":
            return self._as_macro(first, after)
        if shown == "{":
            last = self.match.get(after)
            if last is None or last >= end or parent is not None:
                return None
            made = self._as_macro(first, last)
            made.body, made.head_end = after, after
            made.device = self.carries_space(first, after)
            return made
        broken = "\n" in self.text[tokens[closed].end : tokens[after].start] and not self._is_attribute_alone(
            first, closed
        )
        if broken and tokens[after].kind == WORD and shown not in AFTER_PARAMETERS:
            return self._as_macro(first, closed)
        if tokens[after].kind == WORD and shown not in AFTER_PARAMETERS and known and known & {"{", "}", ";"}:
            return self._as_macro(first, closed)
        if tokens[after].kind == WORD and token.text in self.surroundings.complete:
            return self._as_macro(first, closed)
        return None

    def _is_attribute_alone(self, first: int, closed: int) -> bool:
        """Whether a use of a macro on a line of its own is an attribute of the function that follows."""
        around, after = self.surroundings, self.tokens[self.next_of(closed)].text
        brought = around.expanded([self.tokens[first].text])
        macros = [macro for name in brought & around.macros.keys() for macro in around.definitions.get(name, (None,))]
        plain = all(macro is not None and "##" not in macro.text for macro in macros)
        given = {token.text for token in self.tokens[first : closed + 1]}
        heads = after not in around.macros and after not in ("namespace", "extern", "using", "class", "struct", "enum")
        return heads and plain and not brought.isdisjoint(_ATTRIBUTES) and _ENDS.isdisjoint(brought | given)

    def _as_macro(self, first: int, last: int) -> Declaration:
        made = Declaration(first, last, "macro", name=self.tokens[first].text, name_at=first, head_end=last + 1)
        made.device = self.carries_space(first, last + 1)
        return made

    def _requirement(self, index: int, end: int) -> int:
        """One past a requires-clause that starts at `index`."""
        index = self.next_of(index)
        while index < end:
            token = self.tokens[index]
            if token.text == "(":
                index = self.next_of(self.match.get(index, end))
            else:
                while index < end and (self.tokens[index].kind == WORD or self.tokens[index].text == "::"):
                    word = self.tokens[index].text
                    index = self.next_of(index)
                    if word not in ("::", "requires") and not self.is_at(index, "::"):
                        break
                if self.is_at(index, "<"):
                    index = self.next_of(self.angle(index, end) or end)
                if self.is_at(index, "{"):
                    index = self.next_of(self.match.get(index, end))
            signs = [t.text for t in self.tokens[index : index + 2]]
            if signs not in (["&", "&"], ["|", "|"]):
                return index
            index += 2
        return end

    def _operator(self, index: int, end: int) -> int | None:
        """The parenthesis that opens the parameters of the operator function named at `index`."""
        at = self.next_of(index)
        if self.is_at(at, "("):
            at = self.next_of(self.match.get(at, end))
        while at < end and self.tokens[at].text != "(":
            if self.tokens[at].text in (";", "{", "}"):
                return None
            at = self.next_of(at)
        return at if at < end and at in self.match and self.match[at] < end else None

    def _semicolon(self, index: int, end: int) -> int:
        """The next semicolon, or the end."""
        while index < end and self.tokens[index].text != ";":
            index += 1
        return index

    def _is_attribute(self, first: int, name: int, closed: int, end: int) -> bool:
        """Whether a macro with arguments stands before a function: `BOUNDS(256) __global__ void kernel()`, or
        `EXPORTED FORMAT(1, 2) void log(const char *, ...)`."""
        after = self.next_of(closed)
        if after >= end or self.tokens[after].kind != WORD or self.tokens[after].text in AFTER_PARAMETERS:
            return False
        if not all(MACRO_NAME.match(token.text) for token in self.tokens[first : name + 1]):
            return False
        return first == name or self._brings_attributes(self.tokens[name].text)

    def _brings_attributes(self, name: str) -> bool:
        """Whether a macro stands for attributes of a declaration and for nothing that could be one."""
        texts = [macro.text.strip() for macro in self.surroundings.definitions.get(name, ())]
        if self.surroundings.expanded([name]) & self.surroundings.macros.keys() != {name}:
            return False
        return any(texts) and all(not text or _ATTRIBUTES_ALONE.fullmatch(text) for text in texts)

    def _class_goes_on(self, closed: int, end: int) -> bool:
        """Whether a parenthesis after a class key belongs to an attribute macro: a name or a brace follows."""
        after = self.next_of(closed)
        return after < end and (self.tokens[after].kind == WORD or self.tokens[after].text == "{")

    def _class_name(self, key: int, brace: int) -> tuple[str, int]:
        index, found = self.next_of(key), -1
        while index < brace:
            token = self.tokens[index]
            if token.kind == WORD and token.text not in NOT_NAMES:
                found = index
            if token.text == ":":
                break
            if token.text in "([":
                index = self.match.get(index, brace)
            elif token.text == "<":
                index = self.angle(index, brace) or index
            index = self.next_of(index)
        return (self.tokens[found].text, found) if found >= 0 else ("", -1)


def parsed(text: str, surroundings: Surroundings) -> Parser:
    """The declarations of a file, which is read once for all that looks at it in a compile."""
    known: Parser | None = surroundings.parsed.get(text)
    if known is None:
        known = surroundings.parsed[text] = Parser(text, surroundings)
        if text in surroundings.fragments:
            known.declarations = []
        known.rested = known.patience
    known.patience = known.rested
    return known


def global_variables(data: bytes, surroundings: Surroundings) -> Iterator[str]:
    """Names of the variables that a file declares outside of functions."""
    parser = Parser(data.decode("latin-1"), surroundings)
    for declaration in parser.declarations:
        if declaration.kind == "variable":
            yield from parser.declared_names(declaration)


def device_functions(data: bytes, surroundings: Surroundings) -> Iterator[str]:
    """Names of the functions, members among them, that a file declares with an execution space of the device."""
    for declaration in Parser(data.decode("latin-1"), surroundings).declarations:
        if declaration.kind == "function" and declaration.device:
            yield declaration.name
