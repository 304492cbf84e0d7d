# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What has to go where the compiler refuses the first text: what no kernel can reach, then, as the last resort, what
its messages are about."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from .complaints import complaints
from .conditionals import Undecided, undecided
from .declarations import Declaration
from .names import HOST_HEADERS, HOST_MACROS
from .passing import Pass, PassedOver
from .reach import Reach, find_unreached
from .surroundings import Surroundings
from .tokens import COMPUTED, DIRECTIVE, WORD

__all__ = ["Settled", "settle"]


@dataclass(frozen=True)
class Settled:
    """How `settle` ended."""

    files: Mapping[str, PassedOver] = field(repr=False)
    log: str | None = None
    """The compiler's messages where they could not be settled; None where the last attempt succeeded."""
    attempts: int = 0
    sliced: bool = False
    """Whether what no kernel can reach went."""


_OF_THE_AUTHOR = re.compile(
    r"static assertion failed|#error directive|could not open source file|cannot open source file"
)
"""Messages that no declaration can be let go for: what was meant is the author's to say."""

_NOT_THERE = re.compile(r'(?:could not|cannot) open source file "([^"]+)"')
_DRAGS = "host code that only other host code uses"

_IDLE = "no kernel reaches it"
_REPEATED = "declared before in the same scope"
_REDECLARED = re.compile(r"invalid redeclaration of type name ")
"""Of an alias, what says that its scope has another one of its name, which for nvcc is the same."""
_OF_THE_HOST = re.compile(r'attribute "__host__" does not apply here')
_NO_BODY = re.compile(r"extern inline function .* was referenced but not defined")
"""An error with NVRTC and a warning with nvcc, where the call is in a branch that is never taken."""
_FOLDED = re.compile(r"dynamic initialization is not supported for a __device__ variable")
"""An error with NVRTC for `const float half = 1 / two;`, which nvcc folds where it is a constant expression."""
_INTEGERS = frozenset("int unsigned signed short long char bool size_t".split())
_NO_CONSTANT = frozenset("* & constexpr extern".split())
_UNDECIDED = re.compile(r"function call is not allowed in a constant expression|missing binary operator before token")
"""What is said of a conditional that asks a macro with arguments which nothing defines."""
_OF_LIBCUXX = re.compile(r'class "cuda::std::[^"]*" cannot be specialized in the current scope')


def settle(
    files: Mapping[str, bytes],
    attempt: Callable[[Mapping[str, PassedOver]], str | None],
    surroundings: Surroundings,
    *,
    keep_includes: Mapping[str, Collection[str]] | None = None,
    keep_names: Collection[str] = (),
    expressions: Collection[str] = (),
    sliced: bool = False,
    linked: bool = False,
    limit: int = 40,
) -> Settled:
    """Pass over the host code of files, compile; pass over what no kernel can reach, compile; and then again what the
    compiler complains of.

    `files` are the texts as the author has them, by label; `attempt` compiles what they become and returns the log
    where that fails, with files named by their labels. A declaration with an execution or memory space is never passed
    over where a kernel can reach it, nor one for which another of the same name could be taken. Ends when a compile
    succeeds, when nothing can be done about any message, or after `limit` attempts. Of functions called like one of
    `keep_names` the declaration stays. `expressions` are the instances that are asked for; with `sliced`, what no
    kernel can reach goes at once. Of what is `linked` to others, all functions of the device stay.
    """
    keep = keep_includes or {}
    passes = {
        label: _Amendment(Pass(data, surroundings, keep.get(label, ()), keep_names)) for label, data in files.items()
    }
    scopes: dict[str, set[str]] = {}
    mentioned: set[str] = set()
    for amendment in passes.values():
        mentioned |= amendment.mentioned
        for name, scope in amendment.declared:
            scopes.setdefault(name, set()).add(scope)
    shared = frozenset(name for name, found in scopes.items() if len(found) > 1 and name in mentioned)
    results, log, count = dict[str, PassedOver](), None, 0
    if not sliced:
        results = {label: amendment.run() for label, amendment in passes.items()}
        sliced = _names_members(results)
    if not sliced:
        log, count = attempt(results), 1
    if sliced or log is not None:
        states = {label: amendment.state.verdicts for label, amendment in passes.items()}
        for label, reach in find_unreached(states, surroundings, expressions).items():
            passes[label].reach = reach
        first, sliced = results, True
        results = {label: amendment.run() for label, amendment in passes.items()}
        same = all(label in first and first[label].data == each.data for label, each in results.items())
        if count == 0 or not same:
            log = attempt(results)
            count += 1
    kernels = {text.partition("<")[0].rpartition("::")[2].strip() for text in expressions}
    idle = dict[str, frozenset[int]]()
    if log is not None and not linked:
        states = {label: amendment.state.verdicts for label, amendment in passes.items()}
        reached = find_unreached(states, surroundings, expressions, entries=True)
        idle = {label: reach.unreached - passes[label].reach.unreached for label, reach in reached.items()}
    while log is not None and count < limit:
        complained = _complained(log, passes, kernels)
        if any(passes[label].concerns(lines, idle.get(label, ())) for label, lines in complained.items()):
            changed = [label for label, firsts in idle.items() if firsts]
            for label in changed:
                passes[label].idle = idle[label]
            idle = {}
        elif _FOLDED.search(log) and (folding := [label for label, each in passes.items() if each.fold()]):
            changed = folding
        else:
            changed = [label for label, lines in complained.items() if passes[label].heed(lines, shared)]
            changed += [label for label, lines in complained.items() if not linked and passes[label].hollow_out(lines)]
            for label, lines in complained.items():
                if passes[label].open_up(lines, [data for other, data in files.items() if other != label]):
                    changed.append(label)
            if [label for label in changed if passes[label].names_members_of_more(files.values())]:
                states = {label: amendment.state.verdicts for label, amendment in passes.items()}
                classes = {label: amendment.classes for label, amendment in passes.items()}
                reached = find_unreached(states, surroundings, expressions, complained=classes)
                hollow = [label for label, reach in reached.items() if reach.shells != passes[label].reach.shells]
                changed = [*{*changed, *hollow}]
                for label in hollow:
                    passes[label].reach = reached[label]
        if not changed:
            break
        for label in changed:
            results[label] = passes[label].run()
        log = attempt(results)
        count += 1
    return Settled(files=results, log=log, attempts=count, sliced=sliced)


def _names_members(results: Mapping[str, PassedOver]) -> bool:
    """Whether what is left names members of a class that is only declared in it: no compiler takes that, and some
    crash."""
    gone = {p.name for found in results.values() for p in found.passed if p.kind == "class definition"}
    members = re.compile(rb"\b(%s)\b\s*(?:<[^;{}]*?>\s*)?::" % "|".join(map(re.escape, sorted(gone))).encode("latin-1"))
    return bool(gone) and any(members.search(found.data) for found in results.values())


def _complained(log: str, labels: Collection[str], kernels: Collection[str]) -> dict[str, dict[int, tuple[str, bool]]]:
    """Label of each file that the compiler complains of -> lines, with the first message of each, and whether it
    complains of the line in instances of these kernels alone."""
    found: dict[str, dict[int, tuple[str, bool]]] = {}
    for complaint in complaints(log):
        if complaint.label in labels:
            lines, of_instance = found.setdefault(complaint.label, {}), complaint.is_of(kernels)
            known = lines.setdefault(complaint.line, (complaint.text, of_instance))
            if (known[1] and not of_instance) or _REDECLARED.match(complaint.text):
                lines[complaint.line] = (complaint.text, of_instance)
    return found


class _Amendment:
    """A file with what is to go on the compiler's word."""

    def __init__(self, state: Pass) -> None:
        self.state, self.parser = state, state.parser
        self.reach = Reach()
        self.idle: Collection[int] = frozenset()
        """What only functions of the device mention that no kernel reaches, and these."""
        self.further: dict[int, str] = {}
        self.whole: set[int] = set()
        """Those of them whose declaration is complained of, too."""
        self.known_classes: set[int] = set()
        self.moved: set[int] = set()
        """Specialisations of templates of `std` that are those of `cuda::std`, by way of the stand-ins."""
        self.repeated: set[int] = set()
        """Aliases that are declared before in their scope."""
        self.dropped: set[int] = set()
        """Directives of conditionals whose arms are host code."""
        self.retouched: set[int] = set()
        """Inline functions that nothing defines, which lose the `inline`; constants, which get a `constexpr`."""
        self.unmarked: set[int] = set()
        """Variables that lose `__host__`."""
        self.hollow: dict[int, str] = {}
        """Functions for both sides whose body goes, with what is complained of there."""

    def run(self) -> PassedOver:
        """The file as it stands."""
        further = {**dict.fromkeys(self.reach.dragging, _DRAGS), **self.further}
        unreached = {**dict.fromkeys(self.idle, _IDLE), **dict.fromkeys(self.reach.unreached, "")}
        unreached.update(dict.fromkeys(self.repeated, _REPEATED))
        return self.state.run(
            further,
            self.whole,
            self.moved,
            unreached,
            self.reach.shells,
            self.retouched,
            self.dropped,
            self.hollow,
            self.unmarked,
        )

    @cached_property
    def declared(self) -> list[tuple[str, str]]:
        """Names that the file declares, with what tells their declarations apart.

        Two aliases, variables or classes of one scope are arms of a conditional; overloads and specialisations are not.
        """
        found: list[tuple[str, str]] = []
        tokens = self.parser.tokens
        around: list[tuple[int, str]] = []
        for declaration in self.parser.declarations:
            while around and around[-1][0] < declaration.first:
                around.pop()
            if declaration.kind in ("scope", "class"):
                head = [t.text for t in tokens[declaration.first : declaration.body] if t.kind == WORD]
                shown = declaration.name or "::".join(word for word in head if word not in ("inline", "extern"))
            if declaration.name and declaration.kind in ("class", "alias", "variable", "enum", "function"):
                scope = "/".join(label for _, label in around)
                special = self.parser.is_at(declaration.name_at + 1, "<")
                if declaration.parent is not None and declaration.name == declaration.parent.name:
                    continue  # a constructor
                if declaration.kind == "function" or special:
                    scope += f" {id(declaration)}"
                found.append((declaration.name, scope))
            if declaration.kind in ("scope", "class"):
                around.append((declaration.last, shown))
        return found

    @cached_property
    def mentioned(self) -> frozenset[str]:
        """Words that the device's code and everything around it has, where they do not declare themselves."""
        tokens = self.parser.tokens
        absent = bytearray(len(tokens))
        for declaration in self.parser.declarations:
            if declaration.name_at >= 0:
                absent[declaration.name_at] = 1
            if declaration.kind == "function" and not declaration.device and "constexpr" not in declaration.words:
                absent[declaration.first : declaration.last + 1] = b"\1" * (declaration.last + 1 - declaration.first)
        words: set[str] = set()
        for index, token in enumerate(tokens):
            if token.kind == WORD and not absent[index]:
                words.add(token.text)
            elif token.kind == DIRECTIVE:
                words.update(re.findall(r"\w+", token.text))
        return frozenset(words)

    def heed(self, complained: Mapping[int, tuple[str, bool]], shared: Collection[str]) -> bool:
        """Let go what is complained of in those lines, as far as it can; whether anything new does.

        What is complained of in an instance alone, that instance goes for, and nothing of the files but a body that
        only the host can run.
        """
        before = self._changes
        gone = set(self.further)
        for line, (message, of_instance) in complained.items():
            if (absent := _NOT_THERE.search(message)) and HOST_HEADERS.fullmatch(posixpath.normpath(absent[1])):
                self.further.update(dict.fromkeys(self._includes_by_macros(line), f"{absent[1]}, a header of the host"))
            if _OF_THE_AUTHOR.search(message):
                continue
            if _OF_THE_HOST.match(message):
                self.unmarked.update(self._variables(line))
                continue
            if _NO_BODY.match(message):
                self.retouched.update(self._bodiless(line))
                continue
            if _REDECLARED.match(message) and (again := self._alias(line)) is not None:
                self.repeated.add(again.first)
                continue
            declaration = self._removable(line, shared)
            if of_instance and not (declaration is not None and self._is_host_body(declaration, line)):
                continue
            if declaration is not None and declaration.first not in self.moved and _OF_LIBCUXX.match(message):
                self.moved.add(declaration.first)
            elif declaration is not None and (declaration.first in gone or declaration.first in self.reach.shells):
                self.further.setdefault(declaration.first, message)
                self.whole.add(declaration.first)
            elif declaration is not None:
                self.further.setdefault(declaration.first, message)
        return self._changes > before

    def open_up(self, complained: Mapping[int, tuple[str, bool]], others: Collection[bytes]) -> bool:
        """Let conditionals go whose question nothing answers, with their arms, as far as that makes no difference to
        the rest of the file and to the others; whether one does."""
        before = len(self.dropped)
        for line, (message, _) in complained.items():
            found = undecided(self.parser, line, self.state.keep_includes) if _UNDECIDED.search(message) else None
            if found is not None and not self._used_elsewhere(found, others):
                self.dropped.update(found.directives)
                self.further.update((made.first, message) for made in found.declarations)
                self.whole.update(made.first for made in found.declarations)
        return len(self.dropped) > before

    def _used_elsewhere(self, found: Undecided, others: Collection[bytes]) -> bool:
        """Whether anything but a conditional mentions a macro that the conditional defines."""
        tokens = self.parser.tokens
        here = [token.text for token in (*tokens[: found.first], *tokens[found.last + 1 :])]
        texts = [*here, *(data.decode("latin-1") for data in others)]
        return any(re.search(rf"\b{name}\b", text) for name in found.macros for text in texts)

    @property
    def classes(self) -> set[int]:
        """Classes that are complained of, of which a shell may do."""
        those = {made.first for made in self.parser.declarations if made.kind == "class" and made.parent is None}
        return those & self.further.keys() - self.whole

    def names_members_of_more(self, texts: Collection[bytes]) -> bool:
        """Whether the files name members of a class that is complained of since this was asked last."""
        new = self.classes - self.known_classes
        self.known_classes |= new
        names = [made.name for made in self.parser.declarations if made.first in new and made.name]
        return any(re.search(rf"\b{name}\s*(?:::|<)".encode(), text) for name in names for text in texts)

    @property
    def _changes(self) -> int:
        amended = (self.further, self.whole, self.moved, self.retouched, self.repeated, self.hollow, self.unmarked)
        return sum(map(len, amended))

    def _alias(self, line: int) -> Declaration | None:
        """The only alias that a line declares."""
        found = [made for made in self.parser.declarations if made.kind == "alias" and self._is_at(made, line)]
        return found[0] if len(found) == 1 else None

    def _variables(self, line: int) -> Iterator[int]:
        """The variables that a line declares."""
        return (made.first for made in self.parser.declarations if made.kind == "variable" and self._is_at(made, line))

    def _is_at(self, made: Declaration, line: int) -> bool:
        return self.parser.line(made.first) <= line <= self.parser.line(made.last)

    def _includes_by_macros(self, line: int) -> Iterator[int]:
        """The include of a line whose operand is a macro: only the compiler tells which header that is."""
        for index, token in enumerate(self.parser.tokens):
            if token.kind == DIRECTIVE and self.parser.line(index) == line and COMPUTED.fullmatch(token.text):
                yield index

    def _bodiless(self, line: int) -> Iterator[int]:
        """The functions of the device that a line declares and does not define, or those of the host."""
        parser = self.parser
        for made in parser.declarations:
            host = not made.device and self.state.verdicts.of(made) in ("go", "erase")
            bodiless = made.kind == "function" and (host or (made.device and made.body < 0))
            if bodiless and made.name_at >= 0 and parser.line(made.name_at) == line:
                yield made.first

    def fold(self) -> bool:
        """Make all constants outside of classes ones of `constexpr`, which may be computed from each other; whether
        there are any left."""
        parser, before = self.parser, self._changes
        for made in parser.declarations:
            words = [token.text for token in parser.tokens[made.first : max(made.name_at, made.first)]]
            plain = words.count("const") == 1 and _INTEGERS.isdisjoint(words) and _NO_CONSTANT.isdisjoint(words)
            if made.kind == "variable" and made.parent is None and not made.device and plain:
                self.retouched.add(made.first)
        return self._changes > before

    def hollow_out(self, complained: Mapping[int, tuple[str, bool]]) -> bool:
        """Let the bodies of functions for both sides go that are complained of; whether a new one does.

        nvcc lets such a function call what only the host can run, as long as no kernel calls it. One that a kernel does
        call is an error of the linker then, as it has no body.
        """
        parser, verdicts, before = self.parser, self.state.verdicts, len(self.hollow)
        for made in parser.declarations:
            if made.kind == "function" and made.body >= 0 and verdicts.is_for_both(made) and verdicts.can_erase(made):
                lines = range(parser.line(made.erasable), parser.line(made.last) + 1)
                of_body = (
                    text for line, (text, of_instance) in complained.items() if line in lines and not of_instance
                )
                for message in of_body:
                    self.hollow.setdefault(made.first, message)
        return len(self.hollow) > before

    def _is_host_body(self, declaration: Declaration, line: int) -> bool:
        """Whether a line is in the body of a function that device code cannot call."""
        plain = declaration.kind == "function" and not declaration.words & {"constexpr", "consteval"}
        return plain and declaration.body >= 0 and line >= self.parser.line(declaration.body)

    def concerns(self, lines: Collection[int], firsts: Collection[int]) -> bool:
        """Whether one of the lines is in a declaration that begins at one of these tokens."""
        parser = self.parser
        those = [
            (parser.line(made.first), parser.line(made.last)) for made in parser.declarations if made.first in firsts
        ]
        return any(first <= line <= last for line in lines for first, last in those)

    def _removable(self, line: int, shared: Collection[str]) -> Declaration | None:
        """The innermost declaration around a line that can go. `shared` are names that have several declarations."""
        parser = self.parser
        for declaration in reversed(parser.declarations):
            if declaration.kind in ("scope", "enum") or not (
                parser.line(declaration.first) <= line <= parser.line(declaration.last)
            ):
                continue
            if declaration.first in self.further and (declaration.kind != "class" or declaration.first in self.whole):
                continue  # it went before: what is complained of is around it
            inside = parser.carries_space(declaration.first, declaration.last + 1)
            if declaration.device or (inside and declaration.kind != "function"):
                continue
            named = declaration.kind in ("class", "alias", "variable", "function") and not declaration.instantiation
            hides = named and declaration.name in shared and not self._may_uncover(declaration, line)
            if hides and (declaration.first in self.further or not self._stays_declared(declaration)):
                return None
            if declaration.parent is not None:
                within = declaration.body >= 0 and line >= parser.line(declaration.body)
                if declaration.kind == "function" and (within or not declaration.is_vital):
                    return declaration  # of one that decides what the class is, the body
                if declaration.kind in ("alias", "other"):
                    return declaration
                continue
            if declaration.instantiation and declaration.name in self.state.verdicts.device_names:
                continue
            if declaration.kind == "macro" and not self._of_the_host(declaration):
                continue
            return declaration
        return None

    def _stays_declared(self, declaration: Declaration) -> bool:
        """Whether only the definition goes: of a class that is no specialisation."""
        special = self.parser.is_at(declaration.name_at + 1, "<")
        return not special and self.state.verdicts.stays_declared(declaration)

    def _may_uncover(self, declaration: Declaration, line: int) -> bool:
        """Whether a declaration can go though others of its name would come into sight.

        Not an alias, a variable or a class. A function or a specialisation, if the compiler complains of its head:
        nothing of the device can have a type that is not there; or a function that the device cannot call anyway.
        """
        parser = self.parser
        if declaration.kind == "function" and not declaration.words & {"constexpr", "consteval"}:
            return True
        special = declaration.kind == "class" and parser.is_at(declaration.name_at + 1, "<")
        if declaration.kind not in ("function", "class") or not (special or declaration.kind == "function"):
            return False
        if declaration.body < 0 or line < parser.line(declaration.body):
            return True
        inside = parser.next_of(declaration.body)
        empty = inside == parser.match.get(declaration.body)
        return line == parser.line(declaration.body) and (
            empty
            or parser.line(inside) > line
            or (line == parser.line(declaration.first) and parser.line(declaration.last) > line)
        )

    def _of_the_host(self, declaration: Declaration) -> bool:
        """Whether a use of a macro is one of a library of the host; what any other brings, nobody has looked at."""
        known = declaration.name in self.state.surroundings.macros
        return not known and bool(HOST_MACROS.fullmatch(declaration.name))
