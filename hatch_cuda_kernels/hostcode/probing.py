# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The instances of template kernels that host code asks for, by the compiler's own word.

What a launch deduces takes all of C++ to tell: overloads, conversions, `if constexpr`, lambdas, the templates around
it. None of that is imitated. Files are rewritten to a probe, which NVRTC's front end reads as device code, functions
of the host and all: a launch is a plain call there, and `__global__` makes a function deprecated, so that every call
of a kernel draws a warning, whatever macros made of the two; and since an address does not, a kernel's body does
nothing but draw another one for each instance. A front end goes on after an error and instantiates what it can, so that
what it cannot read of the host costs that and no more. Nothing of a probe reaches an image: what it tells are name
expressions.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from .choices import as_chosen
from .declarations import Declaration, Parser
from .editing import Editor
from .hosttypes import OF_PROBES, REGISTRY, declarations, members_of_tensors
from .mentions import Mention, is_kernel
from .passing import Passing
from .sites import File, Parameter, parameters
from .strangers import Name, expected, introduced, unknown
from .surroundings import Surroundings
from .tokens import DEFINE, DIRECTIVE, INCLUDE, NUMBER, WORD, Token, code_of

__all__ = ["Instance", "Probe", "as_nvcc_sees", "make_probe"]

_MARK = "hatch_cuda_kernels"
_BODY = f"{{ {_MARK}_body }}"
"""The body of a kernel: of a template, the compiler warns of each instance."""
_BRIEF = f"""
#define {_MARK}_body struct {_MARK}_instance {{ int {_MARK}_width : 40 + sizeof({_MARK}_instance *); }};
""".encode()
_WORDS, _WORD = 256, 8
_IN_FULL = f"""
template <unsigned long long...> struct {_MARK}_spelled {{ int width : 40 + sizeof({_MARK}_spelled *); }};
__device__ constexpr unsigned long long {_MARK}_word(const char *text, int at) {{
    unsigned long long word = 0;
    int start = 0;
    while (start < at * {_WORD} && text[start]) ++start;
    for (int i = 0; i < {_WORD} && text[start + i]; ++i) word |= (unsigned char)text[start + i] * (1ull << 8 * i);
    return word;
}}
#define {_MARK}_body {_MARK}_spelled<{", ".join(f"{_MARK}_word(__PRETTY_FUNCTION__, {at})" for at in range(_WORDS))}> x;
""".encode()
"""The same with the name of the instance as the values of a class template, which the compiler spells all of: it
abbreviates types in types in types."""
_CUT_SHORT = "/* etc..."
_CONFIGURATION = re.compile(r"<<<.*?>>>", re.DOTALL)
_OF_NVCC = {"__CUDA_ARCH__": "__NO_ARCH__", "__CUDACC_RTC__": "__NO_NVRTC__", "__NVCC__": "__CUDACC__"}
"""Macros that nvcc does not have for the host, or has there alone -> one in that state here."""
_ASKED_OF_NVCC = re.compile(rf"\b(?:{'|'.join(_OF_NVCC)})\b")
_THROWS = re.compile(r"([{};)]\s*(?:\\\s*)?)\bthrow\b(?!\s*(?:;|\(\s*\)))")
_CONTINUED = re.compile(r"\\[ \t]*\r?\n")
_INSTANCE = r"(?P<kernel>(?:(?:\w+|<unnamed>)::)*\w+)(?:[<(][^\n]* \[with (?P<given>[^\n]*)\])?"
_CALL_REPORT = re.compile(
    rf'^(?P<file>[^\n()]*)\((?P<line>\d+)\): warning [^\n]*: function "{_INSTANCE}[^\n]*"'
    rf' was declared deprecated \("{_MARK}"\)',
    re.MULTILINE,
)
"""What the compiler says of a call of a kernel: in a template also where `if constexpr` discards it."""
_BODY_REPORT = re.compile(
    r"^(?P<file>[^\n()]*)\(\d+\): warning #959[^\n]*\n"
    r"(?:[^\n]+\n){1,6}?"
    rf'(?:[^\n]*"{_MARK}_spelled<[^\n]*<unnamed>=<(?P<words>[\d, UL]*)>\]"[^\n]*\n)?'
    rf'[^\n]*\binstantiation of "void {_INSTANCE}"(?: at line (?P<line>\d+)(?: of (?P<other>[^\n]*))?)?[ ]*$',
    re.MULTILINE,
)
"""What it says of an instance, and what first asks for it."""
_UNNAMED = re.compile(r"<unnamed>::(\w+)")
_VAGUE = (OF_PROBES, "<unnamed>", "<error-type>", re.escape(_CUT_SHORT), re.escape("**128-BIT"))
_SHOWN_ALIKE = (
    (r"\bint\b", re.compile(r"\bwchar_t\b|\bL[\"']")),
    (r"[\w>] \(", re.compile(r"\)\s*(?:const|volatile|noexcept|&&?)[\s\w&]*[>,)]")),
)
"""What the compiler shows in two ways alike, `wchar_t` and `int`, types of functions with qualifiers and without, where
the files have both."""
_CALLED = re.compile(r"(?<![.\w>])(\w+)\s*[(<]")
_ENDS = re.compile(r"[;{}]")
"""Where a statement does."""
_INDENT = "  "
"""What stands before a line that the compiler shows."""
_UNDERSTOOD = "device code does not support exception|dynamic initialization is not supported"
"""Errors of what is fine on the host."""
_ERROR = re.compile(rf": (?:catastrophic )?error(?:: (?!{_UNDERSTOOD})| #|$)|Error limit|NVRTC refuses")
_NO_MEMBER = re.compile(r'error: class "at::Tensor" has no member "(\w+)"')
_TROUBLE = re.compile(
    r"^(?P<file>[^\n()]*)\((?P<line>\d+)\): (?:catastrophic )?error[^\n:]*: (?P<text>[^\n]*)"
    r"(?:\n[^\n]*\n(?P<caret> *)\^)?",
    re.MULTILINE,
)
_ABSENT = re.compile(
    r"^(?P<file>[^\n()]*)\((?P<line>\d+)\): catastrophic error[^\n:]*: (?:cannot|could not) open source file",
    re.MULTILINE,
)
_PRELUDE = b"".join(
    b"#undef %s\n#define %s\n" % (re.split(rb"[ (]", name)[0], name)
    for name in (
        b'__global__ __device__ __attribute__((deprecated("%s")))' % _MARK.encode(),
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


@dataclass
class Probe:
    """What the compiler is shown in place of the files, and what its messages tell."""

    texts: dict[str, bytes] = field(repr=False)
    kernels: Mapping[str, Sequence[Parameter]]
    """Template kernels whose names the text has, with their parameters."""
    declared: Collection[str]
    """Names that the files declare themselves."""
    twins: Collection[str]
    """Names of types that several of them have."""
    known: bytes = field(repr=False)
    """Declarations of what is known of libraries of the host."""
    introduced: set[Name]
    """Names that are declared besides, as something that can be anything."""
    instances: list[Instance] = field(default_factory=list)
    """The instances that the files ask for, as far as the compiler understood them."""
    vague: set[tuple[str, int, str]] = field(default_factory=set)
    """Places that ask for instances with a type that only a library has: it is known that there are some."""
    reached: set[tuple[str, int]] = field(default_factory=set)
    """Lines that use kernels, templates or not, by the compiler's word."""
    complete: bool = False
    """Whether these are all, since it understood everything."""
    troubled: set[tuple[str, int]] = field(default_factory=set)
    """Lines that it did not understand."""
    in_vain: set[str] = field(default_factory=set)
    """Names that such lines call."""
    lost: set[str] = field(default_factory=set)
    """Files of which it did not understand how they go on, and so perhaps nothing of what follows."""
    members: dict[str, None] = field(default_factory=dict)
    """Names of members that tensors are given besides."""
    in_full: bool = False
    """Whether the compiler is to spell all of the types that it names."""
    goes_on: bool = True
    """Whether it may tell more when it is asked again."""

    @property
    def prelude(self) -> bytes:
        """What is to be read before the texts."""
        members = members_of_tensors(self.members).encode()
        body = _IN_FULL if self.in_full else _BRIEF
        return body + _PRELUDE + members + self.known + introduced(self.introduced, self._shown)

    @cached_property
    def _shown(self) -> list[str]:
        return [code_of(text.decode("latin-1")) for text in self.texts.values()]

    @cached_property
    def _has_auto(self) -> bool:
        """Whether a template may have a value of any type as a parameter."""
        return any(_AUTO.search(text) for text in self._shown)

    def heed(self, log: str) -> None:
        """Read the compiler's messages."""
        found = dict.fromkeys([*self.instances, *self._told(log)])
        texts = [text.decode("latin-1") for text in self.texts.values()]
        signs = [*_VAGUE, *(sign for sign, written in _SHOWN_ALIKE if any(map(written.search, texts)))]
        vague = {each for each in found if any(re.search(sign, each.expression) for sign in signs)}
        cut_short = not self.in_full and any(_CUT_SHORT in each.expression for each in vague)
        self.in_full |= cut_short
        self.instances = [each for each in found if each not in vague]
        self.vague = {each.place for each in vague}
        self.reached -= {(each.label, each.line) for each in vague}
        self.complete = not vague and not _ERROR.search(log) and all(map(_is_harmless, self.introduced))
        errors = [match for match in _TROUBLE.finditer(log) if not re.match(_UNDERSTOOD, match["text"])]
        self.troubled = {(_label(match["file"]), int(match["line"])) for match in errors}
        self.in_vain = {name for match in errors for name in self._called(match)}
        self.troubled |= {(each.label, each.line) for each in vague}
        self.lost = {_label(match["file"]) for match in errors if match["text"].startswith("expected a")}
        if "Error limit reached" in log:
            self.lost.update(self.texts)
        more = {name for name in unknown(log, self._shown) if name[-1] not in self.declared} - self.introduced
        self.introduced |= more
        members = dict.fromkeys(match[1] for match in _NO_MEMBER.finditer(log) if match[1] not in self.members)
        self.members |= members
        self.goes_on = bool(more or members or cut_short or self._without_absent_headers(log))

    def _called(self, error: re.Match[str]) -> list[str]:
        """What the statement around an error calls, members aside."""
        lines = self.texts.get(_label(error["file"]), b"").decode("latin-1").split("\n")
        column = max(len(error["caret"] or "") - len(_INDENT), 0)
        at = sum(len(line) + 1 for line in lines[: int(error["line"]) - 1]) + column
        text = "\n".join(lines)
        return _CALLED.findall(_ENDS.split(text[:at])[-1] + _ENDS.split(text[at:], 1)[0])

    def asks_in_vain(self, mention: Mention) -> bool:
        """Whether it is known that an instance is asked for which the compiler does not tell."""
        told = self.complete or not mention.wanted or any(each.kernel == mention.kernel for each in self.instances)
        return not told or mention.place in self.vague or not mention.through.isdisjoint(self.in_vain)

    def _without_absent_headers(self, log: str) -> bool:
        """Blank the includes of files that are not there, of which the compiler tells one at a time; whether any is."""
        found = False
        for match in _ABSENT.finditer(log):
            label, number = _label(match["file"]), int(match["line"]) - 1
            lines = self.texts[label].split(b"\n") if label in self.texts else []
            if number < len(lines):
                lines[number] = b""
                self.texts[label] = b"\n".join(lines)
                found = True
        return found

    def understood(self, mention: Mention) -> bool:
        """Whether the compiler understood what is around a place; of a template, whatever is used with it.

        Where the text does not tell which kernel it is, the compiler has to have found one.
        """
        if mention.loose:
            return self.complete or (mention.label, mention.seen) in self.reached
        first, last = mention.function
        lines = range(first, last + 1)
        return self.complete or not (
            mention.label in self.lost or any(file == mention.label and line in lines for file, line in self.troubled)
        )

    def _told(self, log: str) -> Iterator[Instance]:
        """The instances; by the calls alone where no body tells, since macros made it in pieces."""
        bodies = list(self._reported(_BODY_REPORT, log))
        yield from bodies
        tell = {each.kernel for each in bodies} | self.kernels.keys()
        yield from (each for each in self._reported(_CALL_REPORT, log) if each.kernel not in tell)

    def _reported(self, report: re.Pattern[str], log: str) -> Iterator[Instance]:
        for match in report.finditer(log):
            found = match.groupdict()
            label, line = _label(found.get("other") or found["file"]), int(found["line"] or 0)
            self.reached.add((label, line))
            path = found["kernel"].replace("<unnamed>::", "")
            name = path.rpartition("::")[2]
            if found["given"]:
                arguments = ", ".join(self._arguments(_in_full(found), self.kernels.get(name)))
                yield Instance(label, line, name, f"{path}<{arguments}>")

    def _arguments(self, given: str, heads: Sequence[Parameter] | None) -> list[str]:
        """The arguments out of `T=float, N=4U`, as an author writes them; what cannot differ is left out at the end."""
        least = _LEAST.sub(lambda match: f"(-{int(match[1]) - 1}{match[2]}-1)", given.replace("__nv_bool", "bool"))
        _, *shown = _GIVEN.split(least)
        found: list[str] = []
        left_out = 0
        """How many of the last ones nobody gave."""
        for index, (name, value) in enumerate(zip(shown[::2], shown[1::2], strict=True)):
            head = heads[index] if heads and index < len(heads) else None
            typed = "auto" not in head.text if head is not None else not self._has_auto
            unnamed = head is not None and not head.name and name == "<unnamed>"
            if unnamed and head is not None and head.default and _is_default(value, head.default):
                left_out += 1
                found.append(value)
                continue
            left_out = 0
            value = _UNNAMED.sub(lambda match: match[0] if match[1] in self.twins else match[1], value)
            if value.startswith("<") and value.endswith(">"):
                value = value[1:-1]  # of a pack
            elif typed and (plain := _TYPED.fullmatch(value)):
                value = plain["number"] or plain["small"] or "nullptr"  # the parameter has the type
            if value:
                found.append(value)
        return found[: len(found) - left_out]


def _is_default(value: str, default: Sequence[Token]) -> bool:
    """Whether a parameter without a name has its default: one that is computed has a value for its own sake alone."""
    texts = [token.text for token in default]
    plain = all(token.kind == NUMBER or token.text in _PLAIN_DEFAULTS for token in default)
    return "".join(texts) == value.replace(" ", "") if plain else value in _FORMAL


def _in_full(found: Mapping[str, str | None]) -> str:
    """What the parameters of a template are in an instance, by the name of the instance where that is told as well."""
    given, words = found["given"] or "", found.get("words")
    if _CUT_SHORT not in given or not words:
        return given
    spelled = b"".join(int(word.strip(" UL")).to_bytes(_WORD, "little") for word in words.split(","))
    name = spelled.rstrip(b"\0").decode()
    _, *shown = _GIVEN_IN_NAMES.split(name[name.find(" [with ") + 7 : -1])
    values: dict[str, list[str]] = {}
    for parameter, value in zip(shown[::2], shown[1::2], strict=True):
        values.setdefault(parameter, []).append(value)
    first, *told = _GIVEN.split(given)
    for at in range(1, len(told), 2):
        if _CUT_SHORT in told[at] and len(spelled) > len(name) and told.count(told[at - 1]) == 1:
            whole = ", ".join(values.get(told[at - 1], [told[at]]))
            told[at] = f"<{whole}>" if told[at].startswith("<") else whole
    return first + ", ".join(f"{parameter}={value}" for parameter, value in zip(told[::2], told[1::2], strict=True))


def _label(file: str) -> str:
    """The label of a file by the path that the compiler has, which goes by the includes: `kernels/../common.h`."""
    return posixpath.normpath(file.strip('"'))


def _is_harmless(name: Name) -> bool:
    """Whether a name is one of CUDA's runtime or of the C library, or gives a tensor: no type depends on it."""
    return len(name) == 1 or name[0] in ("at", "torch", "c10")


def make_probe(
    files: Mapping[str, bytes],
    surroundings: Surroundings,
    passed: Mapping[str, Collection[Passing]],
    libraries: Mapping[str, bytes] | None = None,
) -> Probe:
    """Rewrite files; `passed` is what of each is passed over: its headers of the host stay out of the probe as well.

    `libraries` are headers of libraries, as they are compiled: what they have for the host is declared instead.
    """
    narrowed = libraries or {}
    texts = dict(narrowed)
    kernels: dict[str, Sequence[Parameter]] = {}
    declared: set[str] = set()
    types = Counter[str]()
    registering = 0
    for label, data in files.items():
        file = File(label, data.decode("latin-1"), surroundings)
        editor = Editor(file.parser)
        gone = {(p.kind, p.line) for p in passed.get(label, ()) if p.kind in ("include", "macro")}
        for declaration in file.parser.declarations:
            declared.add(declaration.name)
            types[declaration.name] += declaration.kind in ("class", "enum", "alias")
            if declaration.kind == "macro" and ("macro", file.parser.line(declaration.first)) in gone:
                registering += 1
                _rewrite_registration(file.parser, declaration, editor, registering)
            elif declaration.kind == "function" and is_kernel(declaration, surroundings):
                if heads := parameters(file.parser, declaration):
                    kernels[declaration.name] = _merged(kernels.get(declaration.name, heads), heads)
                if declaration.body < 0:
                    continue
                if any(declaration.body < twin < declaration.last for twin in file.parser.twins):
                    editor.insert(declaration.body + 1, _BODY)
                else:
                    editor.cut(declaration.body, declaration.last, _BODY)
        _rewrite_launches(file.parser, editor)
        _rewrite_throws(file.parser, editor)
        _rewrite_directives(file.parser, editor, {line for kind, line in gone if kind == "include"})
        texts[label] = editor.result().encode("latin-1")
    absent = [p.name for found in passed.values() for p in found if p.kind == "include"]
    known = declarations([*absent, *narrowed], files.values())
    shown = [code_of(texts[label].decode("latin-1")) for label in files]
    there = b"\n".join([known, *narrowed.values()]).decode("latin-1")
    missing = expected(shown, there, surroundings.namespaces)
    twins = {name for name, count in types.items() if count > 1}
    return Probe(texts, kernels, declared, twins, known, {name for name in missing if name[-1] not in declared})


def _merged(known: Sequence[Parameter], heads: Sequence[Parameter]) -> Sequence[Parameter]:
    """The parameters of a template that is declared again; none where it is another one of the same name."""
    one, other = ([_PLAIN_HEAD.sub("", head.text).strip() for head in each] for each in (known, heads))
    if one != other:
        return ()
    return [earlier if earlier.default else later for earlier, later in zip(known, heads, strict=True)]


def _rewrite_registration(parser: Parser, made: Declaration, editor: Editor, number: int) -> None:
    """Make a function of a macro with a block in which a library is told of functions: it names what it is told of."""
    if made.body < 0:
        editor.cut(made.first, made.last)
        return
    closed = parser.match.get(made.first + 1, made.first)
    module = parser.tokens[closed - 1].text if parser.tokens[closed - 1].kind == WORD else ""
    editor.cut(made.first, made.body - 1, f"static void {_MARK}_registers_{number}({REGISTRY} &{module})")


def _rewrite_launches(parser: Parser, editor: Editor) -> None:
    """Make calls of launches."""
    tokens = parser.tokens
    for index, token in enumerate(tokens):
        if token.text == "<<<" and (last := _closing(parser, index)) is not None:
            editor.cut(index, last)


def _rewrite_throws(parser: Parser, editor: Editor) -> None:
    """Leave out that a statement throws what stands there: an error for device code, of which there are 100 at most."""
    tokens = parser.tokens
    for index, token in enumerate(tokens[1:-1], 1):
        if token.text == "throw" and tokens[index - 1].text in ("{", "}", ";", ")", "else"):
            if tokens[index + 1].text == ";":
                editor.cut(index, index)
            elif tokens[index + 1].text != "(" or not parser.is_at(index + 2, ")"):
                editor.cut(index, index, "(void)")


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
        if INCLUDE.match(token.text) or _SILENCES.search(token.text):
            if parser.line(index) in absent or not INCLUDE.match(token.text):
                editor.cut(index, index)
            continue
        plain = _CONFIGURATION.sub(lambda match: re.sub(r"[^\\\r\n]", " ", match[0]), token.text)
        plain = _THROWS.sub(r"\1(void)", plain)
        plain = _without_bodies(as_nvcc_sees(plain, parser.surroundings.macros), parser.surroundings)
        if plain != token.text:
            editor.cut(index, index, plain)


def as_nvcc_sees(directives: str, own: Collection[str] = ()) -> str:
    """Directives that ask for what nvcc has for the host, but where the files define that themselves."""
    return _ASKED_OF_NVCC.sub(lambda match: _OF_NVCC[match[0]], as_chosen(directives, own))


def _without_bodies(directive: str, surroundings: Surroundings) -> str:
    """A directive with the bodies of kernels replaced in the macro that it defines; it keeps its lines."""
    match = DEFINE.match(directive)
    if match is None or "{" not in match[3]:
        return directive
    parser = Parser(_CONTINUED.sub(lambda end: " " * len(end[0]), match[3]), surroundings)
    for made in reversed(parser.declarations):
        if made.kind == "function" and made.body >= 0 and is_kernel(made, surroundings):
            start, end = (match.start(3) + at for at in (parser.tokens[made.body].start, parser.tokens[made.last].end))
            lines = "".join(_CONTINUED.findall(directive[start:end]))
            directive = directive[:start] + _BODY + lines + directive[end:]
    return directive


_PLAIN_HEAD = re.compile(r"\bclass\b|\btypename\b|=.*")
_AUTO = re.compile(r"[<,(]\s*(?:decltype\s*\(\s*)?auto\b")
_PLAIN_DEFAULTS = frozenset("- void int float double char short long unsigned signed bool true false".split())
_SILENCES = re.compile(r"\bpragma\b[^\n]*diag_")
"""What could keep the compiler from telling."""
_FORMAL = frozenset("void int 0 1 bool true nullptr".split())
"""What `std::enable_if_t<...>`, a pointer to it and their like come to."""
_GIVEN = re.compile(r"(?:^|, )(\w+|<unnamed>|<auto-\d+>)=")
"""What stands before the value of a parameter."""
_LEAST = re.compile(r"-(2147483648|9223372036854775808)(L*)\b")
"""The least integers, whose literals without the sign are of another type."""
_GIVEN_IN_NAMES = re.compile(r"(?:^|, )(\w+|<unnamed>|<auto-\d+>) = ")
_TYPED = re.compile(
    r"(?P<number>-?\d{1,9})[UL]*|\((?:(?:un)?signed )?(?:short|char)\)\(?(?P<small>-?\d+)\)?|\([^()]*\*\)nullptr"
)
"""A value together with its type, as the compiler spells it."""
