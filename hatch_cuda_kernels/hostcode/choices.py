# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Code that is chosen by a macro which nvcc has and NVRTC has not, or the reverse.

Of `__NVCC__` it is certain what nvcc takes, and of a few names of systems what nvcc on Linux takes; of all others
nothing says that it is the same."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from .names import HOST_HEADERS
from .tokens import DEFINE, DIRECTIVE, INCLUDE, Token, directive_name, tokenize

__all__ = [
    "Uses",
    "as_chosen",
    "as_nvcc_chooses",
    "differing",
    "host_choices",
    "kept_from_nvrtc",
    "knows_nvrtc",
]

_OF_COMPILERS = r"""
    __NVCC__|__EDG__|__EDG_VERSION__|__RTTI|__CUDA_PREC_(?:DIV|SQRT)
    |__GNU[CG]__|__(?:GNUC|GCC|GXX|GLIBCXX)_\w+|__VERSION__|__DEPRECATED|__NO_INLINE__
    |(?:__)?(?:linux|unix)(?:__)?|__gnu_linux__|__ELF__|_GNU_SOURCE
    |__(?:x86_64|amd64|k8|aarch64|i386)(?:__)?|__(?:code_model|ARM)_\w+|__(?:SSE2?(?:_MATH)?|MMX(?:_WITH_SSE)?)__|__FXSR__|__SEG_[FG]S
    |__(?:pic|pie|PIC|PIE)__|_LP64|__BYTE_ORDER__|__FLOAT_WORD_ORDER__|__ORDER_\w+_ENDIAN__|__BIGGEST_ALIGNMENT__
    |__SIZEOF_\w+__|__(?:U?INT|S?CHAR|SHRT|LONG|WCHAR|WINT|SIZE|PTRDIFF|SIG_ATOMIC|B?FLT|L?DBL|DEC)\w*__|__U?INT\w+_C
    |__STRICT_ANSI__|__FINITE_MATH_ONLY__|__ATOMIC_\w+|__(?:REGISTER|USER_LABEL)_PREFIX__|__HAVE_SPECULATION_SAFE_VALUE
    |_STDC_PREDEF_H|__STDCPP_THREADS__|__STDC_(?:IEC|ISO|UTF)_\w+|__cpp_(?:rvalue_reference|runtime_arrays|template_auto)
    |__has_(?:(?:c_)?attribute|include_next)(?!\s*\()|__has_(?:builtin|cpp_attribute)|__COUNTER__|__TIMESTAMP__|_Pragma
"""
"""What the compilers themselves define, one and not the other; of the host's compiler, what it defines unasked: neither
has `_MSC_VER`, `__clang__` or `__AVX__` on Linux."""
_OF_HEADERS = r"""
    MAXFLOAT|SNANF?|M_\w+f|FP_(?:NAN|INFINITE|ZERO|NORMAL|SUBNORMAL|ILOGB\w+)|MATH_ERR\w+|math_errhandling
    |(?:FLT|L?DBL)_[A-Z]\w*|EXIT_(?:SUCCESS|FAILURE)|L_tmpnam|TMP_MAX|FILENAME_MAX|FOPEN_MAX|SEEK_(?:SET|CUR|END)|std(?:in|out|err)|alloca
    |(?:PATH|NAME|IOV|SSIZE|HOST_NAME)_MAX|PIPE_BUF|LONG_LONG_M(?:AX|IN)|(?:U?(?:CHAR|SHRT|INT|LONG|LLONG)|SCHAR)_WIDTH
    |WORD_BIT|LONG_BIT|MB_(?:LEN|CUR)_MAX|_*(?:BYTE_ORDER|(?:LITTLE|BIG)_ENDIAN)|__WORDSIZE
    |__GLIBC(?:XX|_MINOR)?__|_GLIBCXX\w*|__GNU_LIBRARY__|__USE_\w+|CUDA_DOUBLE_MATH_FUNCTIONS
    |__cpp_lib_\w+|_{2}glibc(?:xx)?_\w+|_(?:POSIX|XOPEN|ISOC|LARGEFILE|DEFAULT_SOURCE|ATFILE_SOURCE)\w*
    |_(?:ASSERT|CTYPE|ENDIAN|FEATURES|MATH|STDIO|STDLIB|STRINGS?|TIME|SYS_[A-Z]+)_H|_(?:LIMITS|STDDEF)_H_*
    |__(?:BEGIN|END)_DECLS|__(?:CONCAT|STRING|P|THROW|NTH|LEAF|THROWNL)|__(?:always_inline|extern_inline|nonnull|wur|restrict_arr|flexarr)|__attribute_\w+
    |CLOCKS_PER_SEC|CLOCK_(?:REALTIME|MONOTONIC|BOOTTIME|TAI|(?:PROCESS|THREAD)_CPUTIME_ID)\w*|TIME_UTC|TIMER_ABSTIME
    |FD_(?:CLR|ISSET|SET|SETSIZE|ZERO)|NFDBITS|W(?:NOHANG|UNTRACED|IF(?:EXITED|SIGNALED|STOPPED)|(?:EXITSTATU|STOPSI|TERMSI)[SG])
    |(?:BC_(?:BASE|DIM|SCALE|STRING)|LINE|LOGIN_NAME|NGROUPS|RE_DUP|RTSIG|SEM_VALUE|TTY_NAME|NL_[A-Z]+)_MAX|MAX_(?:CANON|INPUT)|NZERO
    |E(?:PERM|NOENT|INTR|IO|AGAIN|NOMEM|ACCES|FAULT|BUSY|EXIST|INVAL|NOSPC|PIPE|DOM|RANGE|DEADLK|NOSYS|OVERFLOW|ILSEQ|TIMEDOUT)
    |HUGE_VALL|SNANL|toascii|isascii|strn?dupa|(?:be|le)(?:16|32|64)toh|hto(?:be|le)(?:16|32|64)|PTHREAD_(?:KEYS_MAX|STACK_MIN)
"""
"""What nvcc has from headers of the host without an include, or with one of the C++ library's, and no stand-in
defines; or, as `FLT_MAX`, what libcu++ defines where the host's headers of the same names do not."""
_COMPILERS_ALONE = re.compile(rf"\b(?:{_OF_COMPILERS})\b", re.VERBOSE)
_ALL = re.compile(rf"\b(?:{_OF_COMPILERS}|{_OF_HEADERS})\b", re.VERBOSE)
_HAS_INCLUDE = re.compile(r"__has_include\s*\(\s*<([^>\n]+)>\s*\)")
_KNOWS_NVRTC = "__CUDACC_RTC__"
_CERTAIN = re.compile(r"\b(?:__NVCC__|__(?:gnu_)?linux(?:__)?|__unix(?:__)?)\b")
"""What nvcc on Linux has as 1, without an include, and NVRTC has not."""
_ASKED_FOR = re.compile(
    r"(\bdefined\s*\(?\s*|^\s*(?:#|%:)\s*(?:el)?ifn?def\s+)(__GLIBC__|__BYTE_ORDER__|__ORDER_\w+_ENDIAN__)\b"
)
"""What is there as well, with another value: `__GLIBC__` comes with any header of the C library."""
_ORDERS = {"__BYTE_ORDER__": "1234", "__ORDER_LITTLE_ENDIAN__": "1234", "__ORDER_BIG_ENDIAN__": "4321"}
"""GCC's macros for the order of bytes, which is one for all that CUDA is for."""
_VALUES = re.compile("|".join(rf"\b{name}\b" for name in _ORDERS))
_ERROR = re.compile(r"^[ \t]*(?:#|%:)[ \t]*error\b", re.MULTILINE)
_OF_OTHERS = re.compile(
    r"_MSC_\w+|_WIN(?:32|64)|_M_\w+|_ARCH_\w+|__ICC|__i[3-6]86\w*|__(?:clang|INTEL|MINGW|CYGWIN|PGI|NVCOMPILER|IBM|SUNPRO"
    r"|BORLAND|EMSCRIPTEN|APPLE|arm|ARM|ppc|powerpc|s390|riscv|mips|sparc)\w*"
)
"""What compilers tell of themselves that nvcc does not have on Linux."""
_ASKS_WHETHER = re.compile(r"(?:#|%:)\s*(ifdef|elifdef|if|elif)\b(.*)", re.DOTALL)
_DEFINED = re.compile(r"\s*defined(?:\s*\(\s*(\w+)\s*\)|\s+(\w+))\s*")


@dataclass
class _Chain:
    """The directives of a conditional that is not closed yet which ask for that, and what they ask for instead."""

    knows: bool
    asking: list[tuple[Token, str]] = field(default_factory=list)


def as_nvcc_chooses(text: str, own: Collection[str] = ()) -> str:
    """A text whose conditionals ask for `__CUDACC__`, which both compilers have, where they asked for what nvcc on
    Linux has for certain and NVRTC has not.

    One that asks for NVRTC, or is inside such a one, stays as its author wrote it; so does one that asks for a macro
    that the files define themselves, the `own`. An `#error` that nvcc does not come to goes. Lines stay.
    """
    stops = _ERROR.search(text) is not None
    if not (stops or _CERTAIN.search(text) or _VALUES.search(text) or "__GLIBC__" in text):
        return text
    stack: list[_Chain] = []
    tokens = tokenize(text)
    asking = [(token, "\n" * token.text.count("\n")) for token in _idle_errors(tokens)] if stops else []
    for token in tokens:
        name = directive_name(token.text) if token.kind == DIRECTIVE else None
        if name in ("if", "ifdef", "ifndef"):
            stack.append(_Chain(knows=bool(stack) and stack[-1].knows))
        if name in ("if", "ifdef", "ifndef", "elif", "elifdef", "elifndef") and stack:
            stack[-1].knows |= _KNOWS_NVRTC in token.text
            chosen = as_chosen(token.text, own)
            stack[-1].asking += [(token, chosen)] if chosen != token.text else []
        elif name == "endif" and stack:
            closed = stack.pop()
            asking += [] if closed.knows else closed.asking
    for token, chosen in sorted(asking, key=lambda each: each[0].start, reverse=True):
        text = text[: token.start] + chosen + text[token.end :]
    return text


@dataclass
class _Arms:
    """A conditional that is not closed yet, as far as it decides whether nvcc comes to an `#error`."""

    knows: bool
    within: bool
    """Whether it is in an `#else` that nvcc does not take."""
    alone: bool = True
    """Whether it has asked for nothing but what compilers tell of themselves."""
    holds: bool = False
    """Whether one of its conditions holds wherever nvcc has GCC."""
    last: bool = False
    idle: bool = False
    """Whether nvcc does not come to an `#error` in the arm that is read."""
    more: bool = False
    """Whether that arm has anything but such directives."""
    read: list[Token] = field(default_factory=list)
    found: list[Token] = field(default_factory=list)

    def open_arm(self, directive: str, *, last: bool) -> None:
        """Begin the next arm, and take notice of what the one before it was."""
        self.found += self.read if self.idle and not self.more else []
        told = not last and _told_by_compilers(directive)
        self.alone &= last or told
        self.holds |= not last and _holds_with_gcc(directive)
        self.knows |= _KNOWS_NVRTC in directive
        self.idle = self.within or told or (last and (self.alone or self.holds))
        self.last, self.more, self.read = last, False, []


def _idle_errors(tokens: Sequence[Token]) -> Iterator[Token]:
    """The `#error` directives that are all of an arm to which nvcc does not come: because of what the host's compiler
    tells of itself, `#if __GNUC__ < 5`, and nothing of the author's."""
    stack: list[_Arms] = []
    for token in tokens:
        name = directive_name(token.text) if token.kind == DIRECTIVE else None
        if name in ("if", "ifdef", "ifndef"):
            around = stack[-1] if stack else _Arms(knows=False, within=False)
            around.more = True
            stack.append(_Arms(knows=around.knows, within=around.last and around.idle))
            stack[-1].open_arm(token.text, last=False)
        elif name in ("elif", "elifdef", "elifndef", "else") and stack:
            stack[-1].open_arm(token.text, last=name == "else")
        elif name == "endif" and stack:
            closed = stack.pop()
            closed.open_arm("", last=True)
            yield from () if closed.knows else closed.found
        elif name == "error" and stack:
            stack[-1].read.append(token)
        elif stack:
            stack[-1].more = True


def _told_by_compilers(directive: str) -> bool:
    """Whether a condition asks the compilers about themselves and nothing else."""
    words = [word for word in _WORD.findall(directive)[1:] if word != "defined"]
    of_gcc = [word for word in words if _COMPILERS_ALONE.fullmatch(word) and "CUDA" not in word]
    return bool(of_gcc) and all(word in of_gcc or _OF_OTHERS.fullmatch(word) for word in words)


def _holds_with_gcc(directive: str) -> bool:
    """Whether a condition holds for certain where the host's compiler is GCC: `defined(X) || defined(__GNUC__)`."""
    asked = _ASKS_WHETHER.match(directive)
    if asked is None or re.search(r"&&|!|\?", asked[2]):
        return False
    terms = [f"defined {asked[2]}"] if asked[1].endswith("def") else asked[2].split("||")
    names = [term[1] or term[2] for term in map(_DEFINED.fullmatch, terms) if term]
    return any(_COMPILERS_ALONE.fullmatch(name) and "CUDA" not in name for name in names)


def as_chosen(directive: str, own: Collection[str]) -> str:
    """What a directive asks for in the place of that."""
    chosen = _CERTAIN.sub(lambda match: match[0] if match[0] in own else "__CUDACC__", directive)
    chosen = _ASKED_FOR.sub(lambda match: match[0] if match[2] in own else f"{match[1]}__CUDACC__", chosen)
    return _VALUES.sub(lambda match: match[0] if match[0] in own else _ORDERS[match[0]], chosen)


@dataclass
class _Open:
    """A conditional that is not closed yet."""

    start: int
    knows: bool
    macro: str | None = None
    code: bool = False

    def ask(self, directive: str, macros: re.Pattern[str], derived: Collection[str]) -> None:
        """Take notice of what a directive of it asks for."""
        self.knows |= _KNOWS_NVRTC in directive
        self.macro = self.macro or _chooses_by(directive, macros)
        if self.macro is None and derived:
            self.macro = next((word for word in _WORD.findall(directive) if word in derived), None)


def _chooses_by(directive: str, macros: re.Pattern[str]) -> str | None:
    """What of the compilers' differences a directive asks for."""
    if match := macros.search(directive):
        return match[0]
    asked = (match[1] for match in _HAS_INCLUDE.finditer(directive))
    return next((f"__has_include(<{header}>)" for header in asked if HOST_HEADERS.fullmatch(header)), None)


def differing(directive: str, *, as_written: bool = False) -> bool:
    """Whether a directive asks for what the compilers do not have alike; see host_choices."""
    return _chooses_by(directive, _COMPILERS_ALONE if as_written else _ALL) is not None


def knows_nvrtc(directive: str) -> bool:
    """Whether it asks for NVRTC: then its author knows what each compiler takes."""
    return _KNOWS_NVRTC in directive


_NOT_FOR_NVRTC = re.compile(
    r"\s*(?:#|%:)\s*(?:ifndef\s+__CUDACC_RTC__|if\s*!\s*defined\s*\(?\s*__CUDACC_RTC__\s*\)?)\s*(?://.*)?"
)
_FOR_NVRTC = re.compile(
    r"\s*(?:#|%:)\s*(?:ifdef\s+__CUDACC_RTC__|if\s+defined\s*\(?\s*__CUDACC_RTC__\s*\)?)\s*(?://.*)?"
)


def kept_from_nvrtc(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """First and last token of the arms that an author keeps from NVRTC: `#ifndef __CUDACC_RTC__`, and `#else` to the
    contrary."""
    found: list[tuple[int, int]] = []
    open_arms: list[tuple[int, str]] = []
    for index, token in enumerate(tokens):
        name = directive_name(token.text) if token.kind == DIRECTIVE else None
        if name in ("if", "ifdef", "ifndef"):
            kind = "not" if _NOT_FOR_NVRTC.fullmatch(token.text) else "for" if _FOR_NVRTC.fullmatch(token.text) else ""
            open_arms.append((index, kind))
        elif name in ("else", "elif", "elifdef", "elifndef", "endif") and open_arms:
            start, kind = open_arms.pop()
            if kind == "not":
                found.append((start, index))
            if name != "endif":
                open_arms.append((index, "not" if kind == "for" and name == "else" else ""))
    return found


class Uses:
    """Which macros the texts of some files use, other than where they define them or ask whether they are defined."""

    def __init__(self, texts: Collection[bytes]) -> None:
        self._texts = texts

    @cached_property
    def _lines(self) -> str:
        joined = "\n".join(text.decode("latin-1") for text in self._texts)
        return _COMMENT.sub(" ", _SPLICE.sub(" ", joined))

    def __contains__(self, name: object) -> bool:
        for match in re.finditer(rf"\b{name}\b", self._lines):
            before = self._lines[self._lines.rfind("\n", 0, match.start()) + 1 : match.start()]
            if not _ASKS_OR_DEFINES.fullmatch(before):
                return True
        return False


_WORD = re.compile(r"[A-Za-z_]\w*")
_SPLICE = re.compile(r"\\[ \t]*\r?\n")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ASKS_OR_DEFINES = re.compile(r"\s*(?:#|%:)\s*(?:define|undef|(?:el)?ifn?def|(?:el)?if\s*!?\s*defined\s*\(?)\s*")


def host_choices(
    data: bytes, *, as_written: bool = False, used: Uses | None = None, derived: Collection[str] = ()
) -> Iterator[tuple[int, str]]:
    """Line and question of each conditional of that kind which has code in what is left of a file, a header of the
    project, or a macro that is `used` in this file or another. `derived` are macros that such conditionals define.

    One that asks for NVRTC knows what it does. A file that compiles as it is written has its headers as it includes
    them; there only macros of the compilers count.
    """
    text = data.decode("latin-1")
    macros = _COMPILERS_ALONE if as_written else _ALL
    if _chooses_by(text, macros) is None and (not derived or {*_WORD.findall(text)}.isdisjoint(derived)):
        return
    tokens = tokenize(text)
    words = Uses([data]) if used is None else used
    stack: list[_Open] = []
    for token in tokens:
        name = directive_name(token.text) if token.kind == DIRECTIVE else None
        if name in ("if", "ifdef", "ifndef"):
            stack.append(_Open(token.start, knows=bool(stack) and stack[-1].knows))
            stack[-1].ask(token.text, macros, derived)
        elif name == "elif" and stack:
            stack[-1].ask(token.text, macros, derived)
        elif name == "endif" and stack:
            closed = stack.pop()
            if closed.macro is not None and closed.code and not closed.knows:
                yield text.count("\n", 0, closed.start) + 1, closed.macro
            elif closed.code and stack:
                stack[-1].code = True
        elif stack:
            match = DEFINE.match(token.text) if name == "define" else None
            include = INCLUDE.match(token.text) if name and name.startswith("include") else None
            read = include is not None and not HOST_HEADERS.fullmatch(include[1] or include[2])
            stack[-1].code |= name is None or read or (match is not None and match[1] in words)
