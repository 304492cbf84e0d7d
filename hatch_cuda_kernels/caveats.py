# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What to say of an image whose files may mean something else to nvcc."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterator, Mapping

from .errors import numbered
from .installed import INSTALLED
from .plan import CompileJob
from .scanning import blank_comments

__all__ = ["caveats"]

_MAY_CHOOSE = re.compile(
    rb"^[ \t]*(?:#|%:)[ \t]*(?:el)?if(?:\\\r?\n|[^\n])*?(?:\b_(?!_CUDA(?!_PREC)|_cplusplus)|linux|unix)", re.MULTILINE
)
"""Conditionals that may be of that kind. Files that compile as they are written are told to have none without hostcode,
which takes long to import: the fallback compiles while an app waits."""

_LIMITS = re.compile(rb"(?:#|%:)[ \t]*include[ \t]*<(?:cfloat|float\.h)>")
_FLOATING = re.compile(r"(?:FLT|L?DBL)_")


_OF_LIBCUXX = re.compile(r"cuda\s*::\s*std\s*::\s*(?:__\w+\s*::\s*)*")
_WIDE = re.compile(rb"""(?<!\w)(?:u8|[uUL])(?:"(?:\\.|[^"\\\n\x80-\xff])*|'[^'\n\x80-\xff]*)[\x80-\xff]""")
_LAID_OUT = re.compile(rb"\}\s*__attribute__\s*\(\(\s*(?:__)?(?:packed|aligned)")
_MOVED = re.compile(
    rb"namespace cuda \{ namespace std \{ template\s*<[^{}]*?\b(?:struct|class)\s+"
    rb"(?P<shown>tuple_size|tuple_element|is_\w+)"
)
_LIMITS_OF = re.compile(rb"(?<!cuda::)(?<!\w)std\s*::\s*numeric_limits\s*<\s*(?P<type>\w+)\s*>")
_SMALL_FLOAT = re.compile(r"\b(?:__half|half|(?:__)?nv_bfloat16|__nv_fp\w+)\b")


def caveats(
    job: CompileJob, texts: Mapping[str, bytes], *, as_written: bool = False, expressions: Collection[str] = ()
) -> Iterator[str]:
    """Warnings where files of the project, as they were compiled, mean something else to nvcc, or may.

    `expressions` are the instances that were compiled with them.
    """
    own = {label: text for label, text in texts.items() if not label.startswith(f"{INSTALLED}/")}
    for find, headline in _EVERYWHERE:
        places = [place for label, text in own.items() for place in find(label, text)]
        if places:
            yield numbered(f"{job}: {headline}", places, 6)
    if as_written and not any(map(_MAY_CHOOSE.search, own.values())):
        return
    from .hostcode import Uses, derived_macros, host_choices, other_layouts

    used, derived = Uses(own.values()), derived_macros(own.values(), as_written=as_written)
    has_limits = any(_LIMITS.search(text) for text in own.values())
    choices = [
        f"{label}({line}): {macro}"
        for label, text in own.items()
        for line, macro in host_choices(text, as_written=as_written, used=used, derived=derived)
        if not (has_limits and _FLOATING.match(macro))
    ]
    if choices:
        yield numbered(
            f"{job}: code is chosen by macros that nvcc and NVRTC do not have alike, most of them the host compiler's; "
            "where kernels depend on it, ask for __CUDACC__ or __CUDACC_RTC__, or for a macro of the project's own:",
            choices,
            6,
        )
    if as_written:
        return
    layouts = [f"{label}({line}): {name}" for label, text in own.items() for line, name in other_layouts(text)]
    if any(_OF_LIBCUXX.search(text) for text in expressions):  # which may stand for the host's in a launch
        hosts = {name for file in job.unit.closure.files.values() for _, name in other_layouts(file.data)}
        shown = {text: _OF_LIBCUXX.sub("std::", f"{text};").encode() for text in expressions}
        layouts += [f"{text}: {name}" for text in shown for _, name in other_layouts(shown[text]) if name in hosts]
    if layouts:
        yield numbered(
            f"{job}: in device code these types are those of cuda::std, whose size, alignment or order of members is "
            "another than in the host's C++ library, with which nvcc compiles both sides; where they reach a kernel, "
            "as an argument or in memory, write cuda::std:: on both sides, or an integer of a certain size:",
            layouts,
            6,
        )
    moved = [place for label, text in own.items() for place in _matches(_MOVED, label, text)]
    limits = [line for label, text in own.items() for line in _limits_of_small_floats(label, text, expressions)]
    for places, headline in ((moved, _OTHER_SPECIALISATIONS), (limits, _OTHER_LIMITS)):
        if places:
            yield numbered(f"{job}: {headline}", places, 6)


_OTHER_SPECIALISATIONS = (
    "these specialisations of templates of std are those of cuda::std here; structured bindings, and other traits such "
    "as is_floating_point_v, do not ask them as the host's library does:"
)
_OTHER_LIMITS = (
    "std::numeric_limits has values for CUDA's small floating-point types here, and with nvcc, whose host library does "
    "not know them, zero; write cuda::std::numeric_limits:"
)


def _matches(pattern: re.Pattern[bytes], label: str, text: bytes) -> Iterator[str]:
    """Where a pattern stands in the code of a file, with what its group `shown` has."""
    code = blank_comments(text) if pattern.search(text) else b""
    for match in pattern.finditer(code):
        line = code.count(b"\n", 0, match.start()) + 1
        shown = match.groupdict().get("shown")
        yield f"{label}({line}): {shown.decode()}" if shown else f"{label}({line})"


def _put_aside(label: str, text: bytes) -> Iterator[str]:
    if re.search(rb"p(?:ush|op)_macro\b", text):
        yield label


_DEFINES = re.compile(rb"[ \t]*(?:#|%:)[ \t]*define[ \t]+(\w+)")
_DIRECTIVE = re.compile(rb"^[ \t]*(?:#|%:)(?:\\\r?\n|[^\n])*", re.MULTILINE)


def _counted(label: str, text: bytes) -> Iterator[str]:
    """Where code names the macro that counts its uses, or one whose text has it."""
    if b"__COUNTER__" in text:
        defined = (_DEFINES.match(each) for each in _DIRECTIVE.findall(text) if b"__COUNTER__" in each)
        names = [rb"\w*__COUNTER__", *(rb"\b%s\b" % match[1] for match in defined if match is not None)]
        code = _DIRECTIVE.sub(lambda each: re.sub(rb"[^\n]", b" ", each[0]), text)
        yield from _matches(re.compile(b"|".join(names)), label, code)


def _limits_of_small_floats(label: str, text: bytes, expressions: Collection[str]) -> Iterator[str]:
    """Where a text asks for limits of such a type, or of a template's parameter that may be one in an instance."""
    small = any(map(_SMALL_FLOAT.search, expressions))
    for match in {match["type"]: match for match in _LIMITS_OF.finditer(text)}.values():
        of_parameter = small and re.search(rb"\b(?:typename|class)\s+%s\b" % match["type"], text)
        if _SMALL_FLOAT.fullmatch(match["type"].decode()) or of_parameter:
            yield from _matches(re.compile(rb"(?<!cuda::)\b(?P<shown>%s)" % re.escape(match[0])), label, text)


_EVERYWHERE: tuple[tuple[Callable[[str, bytes], Iterator[str]], str], ...] = (
    (
        _put_aside,
        (
            "NVRTC does not know #pragma push_macro and pop_macro, and goes on with the macro as it is then; where "
            "kernels depend on it, write #undef and #define:"
        ),
    ),
    (
        _counted,
        "NVRTC does not know __COUNTER__, and takes it for a name; where kernels depend on it, write __LINE__:",
    ),
    (
        functools.partial(_matches, _WIDE),
        (
            'NVRTC takes each byte of u8"...", u"...", U"..." and L"..." for a letter, and nvcc reads UTF-8; write '
            "letters beyond ASCII as \\u escapes:"
        ),
    ),
    (
        functools.partial(_matches, _LAID_OUT),
        (
            "NVRTC does not heed an attribute after the braces of a class, which nvcc lays out by it; write "
            "struct __attribute__((...)) name:"
        ),
    ),
)
"""What is told of every file: where it stands, and what to say of it."""
