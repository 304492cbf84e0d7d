# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What to say of an image whose files may mean something else to nvcc."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from .errors import numbered
from .installed import INSTALLED
from .plan import CompileJob

__all__ = ["caveats"]

_MAY_CHOOSE = re.compile(
    rb"^[ \t]*(?:#|%:)[ \t]*(?:el)?if(?:\\\r?\n|[^\n])*?(?:\b_(?!_CUDA(?!_PREC)|_cplusplus)|linux|unix)", re.MULTILINE
)
"""Conditionals that may be of that kind. Files that compile as they are written are told to have none without hostcode,
which takes long to import: the fallback compiles while an app waits."""

_LIMITS = re.compile(rb"(?:#|%:)[ \t]*include[ \t]*<(?:cfloat|float\.h)>")
_FLOATING = re.compile(r"(?:FLT|L?DBL)_")


_OF_LIBCUXX = re.compile(r"cuda\s*::\s*std\s*::\s*(?:__\w+\s*::\s*)*")
_PUT_ASIDE = re.compile(rb"p(?:ush|op)_macro\b")


def caveats(
    job: CompileJob, texts: Mapping[str, bytes], *, as_written: bool = False, expressions: Collection[str] = ()
) -> Iterator[str]:
    """Warnings where files of the project, as they were compiled, mean something else to nvcc, or may.

    `expressions` are the instances that were compiled with them.
    """
    own = {label: text for label, text in texts.items() if not label.startswith(f"{INSTALLED}/")}
    aside = [label for label, text in own.items() if _PUT_ASIDE.search(text)]
    if aside:
        yield numbered(
            f"{job}: NVRTC does not know #pragma push_macro and pop_macro, and goes on with the macro as it is then; "
            "where kernels depend on it, write #undef and #define:",
            aside,
            6,
        )
    if as_written and not any(map(_MAY_CHOOSE.search, own.values())):
        return
    from .hostcode import Uses, derived_macros, host_choices, names_integers, other_integers, other_layouts

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
    integers = [f"{label}({line}): {what}" for label, text in own.items() for line, what in other_integers(text)]
    if integers and any(names_integers(file.data) for file in job.unit.closure.files.values()):
        yield numbered(
            f"{job}: int64_t, uint64_t, intptr_t and their like are (unsigned) long long here, and (unsigned) long "
            "with nvcc on Linux; code that tells the two apart may take another branch. Have it treat both alike, or "
            "use long and long long themselves:",
            integers,
            6,
        )
