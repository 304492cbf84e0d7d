# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The instances of template kernels that host code asks for, by the compiler's own word.

What a launch deduces takes all of C++ to tell: overloads, conversions, `if constexpr`, lambdas, the templates around
it. None of that is imitated. Files are rewritten to a probe, which NVRTC's front end reads as device code, functions
of the host and all: a launch is a plain call there, and a template kernel does nothing but use a class template of its
own with the same parameters, whose every instance draws a warning. A front end goes on after an error and instantiates
what it can, so that what it cannot read of the host costs that and no more. Nothing of a probe reaches an image: what
it tells are name expressions.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from .declarations import Declaration, Parser
from .editing import Editor
from .hosttypes import ANYTHING, declarations
from .mentions import Mention
from .passing import Passing
from .sites import File, Parameter, parameters
from .strangers import Name, expected, introduced, unknown
from .surroundings import Surroundings
from .tokens import DIRECTIVE, INCLUDE

__all__ = ["Instance", "Probe", "make_probe"]

_KERNEL = "__global__"
_CLASS = "hatch_cuda_kernels_instance_"
_CONFIGURATION = re.compile(r"<<<.*?>>>", re.DOTALL)
_ARCHITECTURE = re.compile(r"\b__CUDA_ARCH__\b")
_REPORT = re.compile(
    r"^(?P<file>[^\n()]*)\(\d+\): warning #959[^\n]*\n"
    r"(?:[^\n]+\n){1,6}?"
    rf'\s*instantiation of class "(?:[^"\n]*::)?{_CLASS}(?P<kernel>\d+)<[^\n]* '
    r'\[with (?P<given>[^\n]*)\]" at line \d+[^\n]*\n'
    r'\s*instantiation of "[^\n]*"(?: at line (?P<line>\d+)(?: of (?P<other>[^\n]*))?)?[ ]*$',
    re.MULTILINE,
)
_UNDERSTOOD = "device code does not support exception|dynamic initialization is not supported"
"""Errors of what is fine on the host."""
_ERROR = re.compile(rf": (?:catastrophic )?error(?:: (?!{_UNDERSTOOD})| #|$)|Error limit|NVRTC refuses")
_TROUBLE = re.compile(
    r"^(?P<file>[^\n()]*)\((?P<line>\d+)\): (?:catastrophic )?error[^\n:]*: (?P<text>[^\n]*)", re.MULTILINE
)
_PRELUDE = b"".join(
    b"#undef %s\n#define %s\n" % (re.split(rb"[ (]", name)[0], name)
    for name in (
        b"__global__ __device__",
        b"__host__",
        b"__launch_bounds__(...)",
        b"__cluster_dims__(...)",
        b"__block_size__(...)",
        b"__maxnreg__(...)",
        b"__grid_constant__",
    )
)


class Instance(NamedTuple):
    """An instance of a template kernel, and where a file asks for it."""

    label: str
    line: int
    """Of the outermost macro around the place, if there is one; 0 where the compiler does not say."""
    kernel: str
    expression: str

    @property
    def place(self) -> tuple[str, int, str]:
        """Where it is asked for, as `Mention.place` has it."""
        return self.label, self.line, self.kernel


class _Kernel(NamedTuple):
    name: str
    """As it is written outside all namespaces."""
    parameters: tuple[Parameter, ...]
    """Its template parameters, up to one without a name."""


@dataclass
class Probe:
    """What the compiler is shown in place of the files, and what its messages tell."""

    texts: Mapping[str, bytes] = field(repr=False)
    kernels: Sequence[_Kernel]
    declared: Collection[str]
    """Names that the files declare themselves."""
    known: bytes = field(repr=False)
    """Declarations of what is known of libraries of the host."""
    introduced: set[Name]
    """Names that are declared besides, as something that can be anything."""
    instances: list[Instance] = field(default_factory=list)
    """The instances that the files ask for, as far as the compiler understood them."""
    complete: bool = False
    """Whether these are all, since it understood everything."""
    troubled: set[tuple[str, int]] = field(default_factory=set)
    """Lines that it did not understand."""
    lost: set[str] = field(default_factory=set)
    """Files of which it did not understand how they go on, and so perhaps nothing of what follows."""
    goes_on: bool = True
    """Whether it may tell more when it is asked again."""

    @property
    def prelude(self) -> bytes:
        """What is to be read before the texts."""
        return _PRELUDE + self.known + introduced(self.introduced, self._shown)

    @cached_property
    def _shown(self) -> list[str]:
        return [text.decode("latin-1") for text in self.texts.values()]

    def heed(self, log: str) -> None:
        """Read the compiler's messages."""
        found = dict.fromkeys([*self.instances, *self._told(log)])
        vague = {each for each in found if ANYTHING in each.expression or "<error-type>" in each.expression}
        self.instances = [each for each in found if each not in vague]
        self.complete = not vague and not _ERROR.search(log) and all(map(_is_harmless, self.introduced))
        errors = [match for match in _TROUBLE.finditer(log) if not re.match(_UNDERSTOOD, match["text"])]
        self.troubled = {(match["file"], int(match["line"])) for match in errors}
        self.troubled |= {(each.label, each.line) for each in vague}
        self.lost = {match["file"] for match in errors if match["text"].startswith("expected a")}
        if "Error limit reached" in log:
            self.lost.update(self.texts)
        more = {name for name in unknown(log, self._shown) if name[-1] not in self.declared} - self.introduced
        self.introduced |= more
        self.goes_on = bool(more)

    def understood(self, mention: Mention) -> bool:
        """Whether the compiler understood what is around a place; of a template, whatever is used with it."""
        first, last = mention.function
        lines = range(first, last + 1)
        return self.complete or not (
            mention.label in self.lost or any(file == mention.label and line in lines for file, line in self.troubled)
        )

    def _told(self, log: str) -> Iterator[Instance]:
        for match in _REPORT.finditer(log):
            kernel = self.kernels[int(match["kernel"])]
            arguments = _arguments(match["given"], kernel.parameters)
            if arguments is not None:
                name = kernel.name.rpartition("::")[2]
                expression = f"{kernel.name}<{', '.join(arguments)}>"
                yield Instance(match["other"] or match["file"], int(match["line"] or 0), name, expression)


def _is_harmless(name: Name) -> bool:
    """Whether a name is one of CUDA's runtime or of the C library, or gives a tensor: no type depends on it."""
    return len(name) == 1 or name[0] in ("at", "torch", "c10")


def make_probe(
    files: Mapping[str, bytes], surroundings: Surroundings, passed: Mapping[str, Collection[Passing]]
) -> Probe:
    """Rewrite files; `passed` is what of each is passed over: its headers of the host stay out of the probe as well."""
    texts: dict[str, bytes] = {}
    kernels: list[_Kernel] = []
    declared: set[str] = set()
    for label, data in files.items():
        file = File(label, data.decode("latin-1"), surroundings)
        editor = Editor(file.parser)
        gone = {(p.kind, p.line) for p in passed.get(label, ()) if p.kind in ("include", "macro")}
        for declaration in file.parser.declarations:
            declared.add(declaration.name)
            if declaration.kind == "macro" and ("macro", file.parser.line(declaration.first)) in gone:
                editor.cut(declaration.first, declaration.last)
            elif (
                declaration.kind == "function"
                and declaration.body >= 0
                and any(_KERNEL in surroundings.expanded([word]) for word in declaration.words)
            ):
                report = _report(file, declaration, editor, kernels) if declaration.template else ""
                if any(declaration.body < twin < declaration.last for twin in file.parser.twins):
                    editor.insert(declaration.body + 1, report)
                else:
                    editor.cut(declaration.body, declaration.last, f"{{ {report} }}")
        _rewrite_launches(file.parser, editor)
        _rewrite_directives(file.parser, editor, {line for kind, line in gone if kind == "include"})
        texts[label] = editor.result().encode("latin-1")
    absent = [p.name for found in passed.values() for p in found if p.kind == "include"]
    known = declarations(absent, files.values())
    shown = [text.decode("latin-1") for text in texts.values()]
    missing = expected(shown, known.decode(), surroundings.namespaces)
    return Probe(texts, kernels, declared, known, {name for name in missing if name[-1] not in declared})


def _report(file: File, declaration: Declaration, editor: Editor, kernels: list[_Kernel]) -> str:
    """What the body of a template kernel is to be; the class that it uses is put in front of the kernel."""
    heads = parameters(file.parser, declaration)
    named = list(itertools.takewhile(lambda head: head.name, heads))
    if not named:
        return ""
    made = f"{_CLASS}{len(kernels)}"
    kernels.append(_Kernel("::".join((*file.paths[declaration], declaration.name)), tuple(named)))
    editor.insert(
        declaration.first,
        f"template <{', '.join(head.text for head in heads)}> struct {made} {{ int width : 40 + sizeof({made}*); }};",
    )
    return f"{made}<{', '.join(head.name + '...' * head.pack for head in named)}> instance;"


def _rewrite_launches(parser: Parser, editor: Editor) -> None:
    """Make calls of launches."""
    tokens = parser.tokens
    for index, token in enumerate(tokens):
        if token.text == "<<<" and (last := _closing(parser, index)) is not None:
            editor.cut(index, last)


def _closing(parser: Parser, start: int) -> int | None:
    """The last of the three signs that end the configuration of a launch."""
    tokens, index = parser.tokens, start + 1
    while index + 2 < len(tokens) and tokens[index].text not in (";", "}", "<<<"):
        three = tokens[index : index + 3]
        if all(token.text == ">" for token in three) and three[2].end - three[0].start == 3:
            return index + 2
        index = parser.match.get(index, index) + 1
    return None


def _rewrite_directives(parser: Parser, editor: Editor, absent: Collection[int]) -> None:
    """Leave out headers of the host, and choose the arms of conditionals that nvcc chooses for the host."""
    for index, token in enumerate(parser.tokens):
        if token.kind != DIRECTIVE:
            continue
        if INCLUDE.match(token.text):
            if parser.line(index) in absent:
                editor.cut(index, index)
        elif "<<<" in token.text or "__CUDA_ARCH__" in token.text:
            plain = _CONFIGURATION.sub(lambda match: re.sub(r"[^\\\r\n]", " ", match[0]), token.text)
            editor.cut(index, index, _ARCHITECTURE.sub("__NO_ARCH____", plain))


def _arguments(given: str, heads: Sequence[Parameter]) -> list[str] | None:
    """The arguments out of `T=float, N=4U`, as an author writes them; None where they cannot be told."""
    pattern = ", ".join(f"{re.escape(head.name)}=(.*?)" for head in heads) + r"(?:, (?:\w+|<unnamed>)=.*)?"
    match = re.fullmatch(pattern, given)
    if match is None:
        return None
    found: list[str] = []
    for head, value in zip(heads, match.groups(), strict=True):
        shown = value.replace("<unnamed>::", "")
        if head.pack:
            shown = shown.removeprefix("<").removesuffix(">")
        elif "auto" not in head.text and (plain := _TYPED.fullmatch(shown)):
            shown = plain["number"] or plain["small"] or "nullptr"  # the parameter has the type
        if shown:
            found.append(shown)
    return found


_TYPED = re.compile(
    r"(?P<number>-?\d{1,9})[UL]*|\((?:(?:un)?signed )?(?:short|char)\)\(?(?P<small>-?\d+)\)?|\([^()]*\*\)nullptr"
)
"""A value together with its type, as the compiler spells it."""
