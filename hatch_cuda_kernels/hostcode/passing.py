# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""A file without its host code, by what becomes of each declaration."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .calls import Signature, oddly_declared, signature_of, taken_host_objects
from .choices import as_nvcc_chooses, kept_from_nvrtc
from .declarations import Declaration
from .demands import Demand, demands_of, is_closed
from .editing import Editor
from .expansion import expanded
from .launches import Launch, find_launches
from .names import HOST, HOST_HEADERS, SPACES
from .shells import Left
from .surroundings import Surroundings
from .throwing import without_throws
from .tokens import COMPUTED, DIRECTIVE, INCLUDE, WORD, directive_name, is_thrown, names_member
from .verdicts import Verdicts

__all__ = ["Pass", "PassedOver", "Passing", "pass_over"]

_CLASSES = frozenset("class struct union enum".split())
_OF_ONE = frozenset(f"operator{sign}" for sign in ("!", "~"))
_INSTANTIATES = re.compile(r"\s*template\s+(?!<)[^;{}#]*")
_INLINE = frozenset("inline __inline __inline__ __forceinline__".split())


class Passing(NamedTuple):
    """One thing that was passed over."""

    line: int
    kind: str
    """"function", "variable", "class", "alias", "namespace" of another name of one, "macro", "include", "other",
    "instantiation"; "body" and "class definition" where the declaration stays; "member" or "constructor" of a class;
    "definition" of what its class or namespace declares."""
    name: str
    """What it declares; several names with commas between them."""
    reason: str = "host code"
    signature: Signature | None = None
    """Of a function that device code can ask about and not call."""
    reached: bool = True
    """Whether something that is left may name it."""
    hosts: frozenset[str] = frozenset()
    """Types of the host of which each call of it has to give it an object (see `calls.taken_host_objects`)."""
    path: tuple[str, ...] = ()
    """The namespaces that it is declared in."""
    demands: tuple[Demand, ...] = ()
    """Of a function, the classes of which each call has to give it an object."""
    closed: bool = False
    """Of a class, whether nothing but its objects turns into one."""
    replaced: bool = False
    """Of a function, whether one stands in its place that hides what it hid, and that nothing can be given to."""


@dataclass(frozen=True)
class PassedOver:
    """A file without its host code."""

    data: bytes = field(repr=False)
    passed: tuple[Passing, ...] = ()
    launches: tuple[Launch, ...] = ()


class Pass:
    """The state of one `pass_over`."""

    def __init__(
        self,
        data: bytes,
        surroundings: Surroundings,
        keep_includes: Collection[str],
        keep_names: Collection[str] = (),
    ) -> None:
        text = data.decode("latin-1")
        self.parser = expanded(as_nvcc_chooses(text, surroundings.macros), surroundings)
        self.surroundings, self.verdicts = surroundings, Verdicts(self.parser)
        self.keep_includes, self.keep_names = keep_includes, keep_names
        self.passed: list[Passing] = []
        self.kept_away = kept_from_nvrtc(self.parser.tokens)

    def run(
        self,
        further: Mapping[int, str] | None = None,
        whole: Collection[int] = (),
        moved: Collection[int] = (),
        unreached: Mapping[int, str] | None = None,
        shells: Mapping[int, Left] | None = None,
        retouched: Collection[int] = (),
        dropped: Collection[int] = (),
        hollow: Mapping[int, str] | None = None,
        unmarked: Collection[int] = (),
    ) -> PassedOver:
        """Decide about every declaration, and make the new text.

        `further` are the first tokens of declarations and includes that have to go as well, each with the reason;
        `whole`, of those whose declaration cannot stay either; `moved`, of those in namespace `std` that are to be in
        `cuda::std`; `unreached`, of those that no kernel reaches, with the reason where they are no host code;
        `shells`, of classes of which members alone are named; `retouched`, of functions of the device that are
        inline and nowhere defined, and of constants that nvcc folds; `dropped`, directives of conditionals that make no
        difference; `hollow`, of functions for both sides whose body only the host can run, each with the reason;
        `unmarked`, of variables that lose `__host__`.
        """
        parser = self.parser
        more, unmentioned, partly, bodies = further or {}, unreached or {}, shells or {}, hollow or {}
        editor = Editor(parser)
        self.passed = []
        candidates: list[Declaration] = []
        erased: list[Declaration] = []
        gone: list[tuple[int, int]] = []
        inside = -1
        for declaration in parser.declarations:
            if declaration.first < inside:
                continue  # a member of a class that goes
            if declaration.first in unmentioned and declaration.kind != "scope":
                inside = declaration.last
                editor.cut(declaration.first, declaration.last)
                gone.append((declaration.first, declaration.last))
                self._note(declaration, reason=unmentioned[declaration.first], reached=False)
                continue
            if self._leaves_shell(declaration, partly, whole):
                inside = declaration.last
                editor.cut(declaration.first, declaration.last)
                gone.append((declaration.first, declaration.last))
                continue
            reason = more.get(declaration.first) if declaration.kind != "scope" else None
            verdict = self.verdicts.of(declaration)
            if reason is not None:
                verdict = "erase" if declaration.is_vital else "cut"
            if verdict == "go":
                candidates.append(declaration)
            elif declaration.first in partly and declaration.first not in whole:
                gone += self._leave_parts(declaration, partly[declaration.first], editor)
                self._note(declaration, "class definition", reason, reached=False)
            elif verdict == "cut":
                inside = declaration.last
                after = self.verdicts.after_name(declaration) if declaration.first not in whole else None
                first = declaration.first if after is None else after
                instead = self._in_place_of(declaration) if after is None else ";"
                editor.cut(first, declaration.last, instead)
                gone.append((first, declaration.last))
                kind = "class definition" if self._is_opaque(declaration, after) else None
                self._note(declaration, kind, reason, replaced=bool(instead))
            elif declaration.first in moved and parser.paths[declaration] == ("std",):
                editor.insert(declaration.first, "} namespace cuda { namespace std {")
                editor.cut(declaration.last, declaration.last, "; } } namespace std {")
            elif verdict == "type":
                self._leave_type(declaration, editor)
            elif verdict == "erase":
                erased.append(declaration)
            elif verdict == "mark":
                self._mark(declaration, editor)
            elif declaration.first in unmarked:
                self._unmark(declaration, editor)
            elif declaration.first in bodies:
                self._hollow_out(declaration, editor, bodies[declaration.first])
            elif declaration.first in retouched:
                self._retouch(declaration, editor)
        used = self._used(candidates, erased, gone).union(self.keep_names)
        for declaration in candidates:
            if declaration.name not in used or declaration.name == "main":
                editor.cut(declaration.first, declaration.last)
                self._note(declaration)
            else:
                erased.append(declaration)
        for declaration in erased:
            self._erase(declaration, editor)
            if declaration.first in retouched:
                self._retouch(declaration, editor)
        for declaration in parser.declarations:
            if declaration.kind in ("class", "enum") and declaration.body >= 0:
                self._move_attributes(declaration, editor)
        for start, (closed, opened) in parser.continued.items():
            if opened is not None and any(first <= opened <= last for first, last, _ in editor.cuts):
                editor.cut(start, closed)
        for index in dropped:
            editor.cut(index, index)
        for index, token in enumerate(parser.tokens):
            match = INCLUDE.match(token.text) or COMPUTED.fullmatch(token.text) if token.kind == DIRECTIVE else None
            if match and index not in dropped:
                name = posixpath.normpath(match[match.lastindex or 0])
                if index in more or (match.re is INCLUDE and self._is_host_header(name)):
                    editor.cut(index, index)
                    self.passed.append(
                        Passing(parser.line(index), "include", name, more.get(index, "a header of the host"))
                    )
        return PassedOver(
            data=editor.result().encode("latin-1"),
            passed=tuple(sorted(self.passed, key=lambda passing: passing[:4])),
            launches=tuple(find_launches(parser)),
        )

    def _in_place_of(self, declaration: Declaration) -> str:
        """What stays of a declaration that goes: a constructor or a function that nothing can call.

        A class without any constructor would be an aggregate, could be made without arguments, and classes derived from
        it would no longer begin in its last bytes (the ABI's "POD for the purpose of layout"). A function of a
        namespace hides those of outer ones that are called like it.
        """
        parent, name = declaration.parent, declaration.name
        if declaration.kind != "function":
            return ""
        nothing = f"struct __cuda_kernels_gone_{declaration.first} &"
        if parent is not None:
            return f"__device__ {name}({nothing});" if name and name == parent.name else ""
        if name not in self.keep_names or not self._hides_by_name(declaration):
            return ""
        head = "template <class...> __device__" if declaration.template else "__device__"
        taken = f"{nothing}, {nothing}" if name.startswith("operator") and name not in _OF_ONE else nothing
        return f"{head} void {name}({taken});"

    def _hides_by_name(self, declaration: Declaration) -> bool:
        """Whether a function declares its own name alone, in the namespace around it."""
        name = declaration.name
        if name.startswith("operator") and not re.fullmatch(r"operator\W+", name.replace('"', "x")):
            return False
        qualified = self.verdicts.owner(declaration) is not None
        special = self.verdicts.is_special(declaration) or self.parser.is_at(declaration.name_at + 1, "<")
        return not (qualified or special or oddly_declared(self.parser, declaration))

    def _is_opaque(self, declaration: Declaration, after: int | None) -> bool:
        """Whether its declaration stays and tells all that code without objects of a class can ask: it has no base."""
        tokens = self.parser.tokens
        return after is not None and not any(token.text == ":" for token in tokens[after : declaration.body])

    def _note(
        self,
        declaration: Declaration,
        kind: str | None = None,
        reason: str | None = None,
        *,
        reached: bool = True,
        replaced: bool = False,
    ) -> None:
        line = self.parser.line(declaration.first)
        evaluated = declaration.device or bool(declaration.words & {"constexpr", "consteval"})
        if kind is None:
            kind = declaration.kind
            if kind == "alias" and self.parser.is_at(declaration.first, "namespace"):
                kind = "namespace"
            elif declaration.instantiation or self._instantiates_by_macro(declaration):
                kind = "instantiation"
            elif self.verdicts.owner(declaration) is not None:
                kind = "member" if self.verdicts.is_special(declaration) else "definition"
            elif declaration.parent is not None:  # a constant may be made by a constructor that is evaluated
                kind = "constructor" if declaration.name == declaration.parent.name and not evaluated else "member"
        names = self.parser.declared_names(declaration)
        signature = None
        if kind in ("function", "variable", "member") and (odd := oddly_declared(self.parser, declaration)):
            names, kind = [*names, *sorted(odd)], "function" if kind == "variable" else kind
        elif kind in ("function", "member") and declaration.kind == "function" and not evaluated:
            signature = signature_of(self.parser, declaration, self.parser.paths[declaration])
        if declaration.kind == "variable" and declaration.words & {"texture", "surface"}:
            reason = "a texture or surface reference, which CUDA has no more since version 12"
        is_function = declaration.kind == "function"
        self.passed.append(
            Passing(
                line,
                kind,
                ", ".join(names) or "(unnamed)",
                reason or "host code",
                signature,
                reached and not any(first < declaration.first < last for first, last in self.kept_away),
                taken_host_objects(self.parser, declaration) if is_function else frozenset(),
                self.parser.paths[declaration],
                demands_of(self.parser, declaration) if is_function else (),
                declaration.kind == "class" and is_closed(self.parser, declaration),
                replaced and is_function,
            )
        )

    def _instantiates_by_macro(self, declaration: Declaration) -> bool:
        """Whether it can only be an explicit instantiation: `extern INSTANTIATE(4);`, where that is a template."""
        tokens = self.parser.tokens[declaration.first : declaration.name_at]
        if declaration.kind not in ("function", "variable") or [token.text for token in tokens] != ["extern"]:
            return False
        brought = {token.text for token in self.parser.tokens[declaration.name_at : declaration.last]}
        if self.surroundings.expanded(brought) & {";", "{", "}"}:
            return False
        texts = [macro.text for macro in self.surroundings.definitions.get(declaration.name, ())]
        return bool(texts) and all(_INSTANTIATES.fullmatch(text) for text in texts)

    def _is_host_header(self, name: str) -> bool:
        return name not in self.keep_includes and bool(HOST_HEADERS.fullmatch(name))

    def _used(
        self, candidates: Sequence[Declaration], erased: Sequence[Declaration], gone: Sequence[tuple[int, int]]
    ) -> set[str]:
        """Names that what stays can refer to."""
        tokens = self.parser.tokens
        absent = bytearray(len(tokens))
        for declaration in candidates:
            absent[declaration.first : declaration.last + 1] = b"\1" * (declaration.last + 1 - declaration.first)
        for declaration in erased:
            if declaration.erasable >= 0:
                absent[declaration.erasable : declaration.last + 1] = b"\1" * (
                    declaration.last + 1 - declaration.erasable
                )
        for first, last in gone:
            absent[first : last + 1] = b"\1" * (last + 1 - first)
        for declaration in self.parser.declarations:
            if declaration.kind == "function" and declaration.name_at >= 0:
                absent[declaration.name_at] = 1
        words: set[str] = set()
        for index, token in enumerate(tokens):
            if absent[index]:
                continue
            if token.kind == WORD:
                if not (names_member(tokens, index, self.surroundings.macros) or is_thrown(tokens, index)):
                    words.add(token.text)
            elif token.kind == DIRECTIVE and directive_name(token.text) not in ("define", "include", "undef"):
                words.update(re.findall(r"\w+", token.text))
        return self.surroundings.expanded(words)

    def _leave_type(self, declaration: Declaration, editor: Editor) -> None:
        """Let the variables go that a definition of a type declares, and leave the type."""
        parser = self.parser
        if parser.is_at(declaration.first, "static"):
            editor.cut(declaration.first, declaration.first)
        closed = parser.attributes_end(declaration)
        editor.cut(closed + 1, declaration.last - 1)
        names = [name for name in parser.declared_names(declaration) if name != declaration.name]
        self.passed.append(Passing(parser.line(closed), "variable", ", ".join(names) or "(unnamed)"))

    def _move_attributes(self, declaration: Declaration, editor: Editor) -> None:
        """Put the attributes of a class after `struct`: NVRTC does not heed them after what is in braces."""
        parser = self.parser
        closed, last = parser.match[declaration.body], parser.attributes_end(declaration)
        keys = (i for i in range(declaration.specifiers, declaration.body) if parser.tokens[i].text in _CLASSES)
        if last > closed and (key := next(keys, None)) is not None:
            editor.insert(key + 1, " ".join(token.text for token in parser.tokens[closed + 1 : last + 1]))
            editor.cut(closed + 1, last)

    @staticmethod
    def _leaves_shell(declaration: Declaration, shells: Mapping[int, Left], whole: Collection[int]) -> bool:
        """Whether it is a member that goes of a class of which a shell is left."""
        parent = declaration.parent
        if parent is None or parent.first not in shells or parent.first in whole:
            return False
        return declaration.first not in shells[parent.first].parts

    def _leave_parts(self, declaration: Declaration, left: Left, editor: Editor) -> Iterator[tuple[int, int]]:
        """Open a class of which a shell is left, and let go what is no member; yields what goes."""
        parser, tokens = self.parser, self.parser.tokens
        after = self.verdicts.after_name(declaration)
        assert after is not None
        if after < declaration.body and not left.based:
            editor.cut(after, declaration.body - 1)
            yield after, declaration.body - 1
        editor.cut(declaration.body, declaration.body, "{public:")
        ends = {member.first: member.last for member in parser.members.get(declaration, ())}
        index = declaration.body + 1
        while index < parser.match[declaration.body]:
            if (last := left.parts.get(index)) is not None and last < ends[index] - 1:
                editor.cut(last + 1, ends[index] - 1)  # a variable of the type
            if tokens[index].text in ("private", "protected"):
                editor.cut(index, index, "public")
            index = ends.get(index, index) + 1

    def _erase(self, declaration: Declaration, editor: Editor) -> None:
        """Leave the declaration, marked as device code, without its definition."""
        if self.verdicts.can_erase(declaration):
            editor.cut(declaration.erasable, declaration.last, ";")
            self._note(declaration, "body")
        self._mark(declaration, editor)

    def _hollow_out(self, declaration: Declaration, editor: Editor, reason: str) -> None:
        """Leave a function without its body, which is all of it where its class or namespace declares it."""
        again = self.verdicts.owner(declaration) is not None and not self.verdicts.is_special(declaration)
        editor.cut(declaration.first if again else declaration.erasable, declaration.last, "" if again else ";")
        self._note(declaration, "definition" if again else "body", reason)

    def _retouch(self, declaration: Declaration, editor: Editor) -> None:
        """Make a constant of `const` one of `constexpr`; take `inline` from a function, and from the macros that stand
        for it and for a space besides."""
        tokens = self.parser.tokens
        for index in range(declaration.first, declaration.name_at):
            words = self.surroundings.expanded([tokens[index].text])
            if declaration.kind == "variable" and tokens[index].text == "const":
                editor.cut(index, index, "constexpr")
            elif declaration.kind == "function" and words & _INLINE:
                editor.cut(index, index, " ".join(sorted(words & {*SPACES, HOST, "static"})))

    def _mark(self, declaration: Declaration, editor: Editor) -> None:
        """Put `__device__` in front of a function, in the place of `__host__` if that is there."""
        marked = False
        for index in range(declaration.first, declaration.head_end):
            if self.parser.tokens[index].text in self.surroundings.hosts:
                editor.cut(index, index, "" if marked else "__device__")
                marked = True
        if not marked:
            editor.insert(declaration.specifiers, "__device__")
        if declaration.body >= 0 and declaration.words & {"constexpr", "consteval"}:
            for first, last, instead in without_throws(self.parser, declaration.name_at, declaration.last):
                editor.cut(first, last, instead)

    def _unmark(self, declaration: Declaration, editor: Editor) -> None:
        """Take `__host__` from a variable: it says nothing there to nvcc, and is an error to NVRTC. A macro stays that
        may bring anything but the two spaces."""
        for index in range(declaration.first, declaration.name_at):
            word = self.parser.tokens[index].text
            brought = self._spaces_alone(word) or set()
            if HOST in brought:
                editor.cut(index, index, "__device__" if "__device__" in brought else "")

    def _spaces_alone(self, word: str, around: frozenset[str] = frozenset()) -> set[str] | None:
        """What a word brings of `__host__` and `__device__`, if anything; None where that may be something else."""
        if word in (HOST, "__device__"):
            return {word}
        if word in around:
            return None
        found: set[frozenset[str]] = set()
        for macro in self.surroundings.definitions.get(word, (None,)):
            if macro is None or macro.parameters is not None or not re.fullmatch(r"[\w\s]*", macro.text):
                return None
            parts = [self._spaces_alone(each, around | {word}) for each in macro.text.split()]
            if any(part is None for part in parts):
                return None
            found.add(frozenset().union(*filter(None, parts)))
        brought = found - {frozenset()}
        return set().union(*brought) if len(brought) < 2 else None


def pass_over(
    data: bytes, surroundings: Surroundings | None = None, *, keep_includes: Collection[str] = ()
) -> PassedOver:
    """Blank the host code out of a file.

    `surroundings` has the macros of all files that go into the compile, this one among them; without it, those of
    this file alone. `keep_includes` are headers, as directives spell them, that the project itself has.
    """
    around = Surroundings.of([data]) if surroundings is None else surroundings
    return Pass(data, around, keep_includes).run()
