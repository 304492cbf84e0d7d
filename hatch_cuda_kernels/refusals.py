# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What is passed over and may not be: reasons to refuse an image that NVRTC made."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from .errors import CompilationError, numbered
from .hostcode import CUSTOMIZATIONS, PassedOver, Passing, Surroundings, demanding
from .plan import CompiledImage, CompileJob

__all__ = [
    "check_attributes",
    "check_customizations",
    "check_externals",
    "check_names",
    "check_pragmas",
    "found_unasked",
]


def check_names(job: CompileJob, unsafe: Sequence[tuple[str, Passing]]) -> None:
    """Refuse an image where something that was passed over could have hidden another meaning of a name."""
    problems = [f"{label}({passing.line}): {passing.kind} {passing.name}" for label, passing in unsafe]
    if problems:
        raise CompilationError(
            numbered(
                f"{job}: {job.unit.source} has host code that cannot be passed over safely, because device code has "
                "the same names; put it between #ifndef __CUDACC_RTC__ and #endif, or into another file:",
                problems[:10],
            )
        )


_LAYOUT_PRAGMA = rb"_Pragma\s*\(\s*\"\s*(?:pack|push_macro|pop_macro)\b"
_LAYOUT_MACRO = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:\\\r?\n|[^\n])*?" + _LAYOUT_PRAGMA, re.MULTILINE)
_WORD_OR_PRAGMA = re.compile(rb"(?P<layout>" + _LAYOUT_PRAGMA + rb")|[A-Za-z_]\w*")


def check_pragmas(job: CompileJob, texts: Mapping[str, bytes], files: Mapping[str, PassedOver]) -> None:
    """Refuse an image where what was passed over lays out classes that stay, by an operator `_Pragma`."""
    macros = {match[1] for text in texts.values() for match in _LAYOUT_MACRO.finditer(text)}
    problems = []
    for label, found in files.items():
        if not macros and not re.search(_LAYOUT_PRAGMA, texts[label]):
            continue
        lines = zip(texts[label].split(b"\n"), found.data.split(b"\n"), strict=True)
        for number, (written, left) in enumerate(lines, 1):
            if _layouts(left, macros) < _layouts(written, macros):
                problems.append(f"{label}({number})")
    if problems:
        raise CompilationError(
            numbered(
                f'{job}: {job.unit.source} has _Pragma("pack...") at host code, which cannot be passed over safely; '
                "write it as a directive, #pragma pack, on a line of its own:",
                problems[:10],
            )
        )


def _layouts(line: bytes, macros: Collection[bytes]) -> int:
    """How often a line lays out what follows."""
    return sum(match[0] in macros or bool(match["layout"]) for match in _WORD_OR_PRAGMA.finditer(line))


_LIBRARIES = re.compile(r"(?:cuda|cub|thrust)/")


def found_unasked(job: CompileJob, files: Mapping[str, PassedOver], around: Surroundings) -> list[str]:
    """The host functions passed over that CUDA's libraries may find by the type of an argument.

    Not those that take another number of arguments, or what nothing has that is left, nor those of a namespace that
    nothing left has a type of.
    """
    includes = [include.spelling for file in job.unit.closure.files.values() for include in file.scan.includes]
    if not any(map(_LIBRARIES.match, includes)):
        return []
    passed = [(label, passing) for label, found in files.items() for passing in found.passed]
    told = [(label, p) for label, p in passed if p.kind == "function" and p.reached and p.name in CUSTOMIZATIONS]
    defaults = {p.name for _, p in told if p.signature is not None and p.signature.least < p.signature.most}
    found = [(label, passing) for label, passing in told if _takes_what_libraries_give(passing, defaults)]
    harmless = demanding(files, around) if found else []
    return [f"{label}({passing.line}): function {passing.name}" for label, passing in found if passing not in harmless]


def _takes_what_libraries_give(passing: Passing, defaults: Collection[str]) -> bool:
    """Whether a function can be called as CUDA's libraries do; another declaration may add default arguments."""
    count, signature = CUSTOMIZATIONS[passing.name], passing.signature
    if count is None or signature is None:
        return True
    return count <= signature.most if passing.name in defaults else signature.takes(count)


def check_customizations(job: CompileJob, problems: Sequence[str]) -> None:
    """Refuse an image where there is such a function."""
    if problems:
        raise CompilationError(
            numbered(
                f"{job}: {job.unit.source} has host functions that cannot be passed over safely, because CUDA's "
                "libraries call functions of these names by the types of their arguments; make them __host__ "
                "__device__, or put them between #ifndef __CUDACC_RTC__ and #endif:",
                problems[:10],
            )
        )


_NO_ADDRESS = "no_unique_address"
_PACKED = re.compile(r'unknown attribute "gnu::(?:packed|aligned|__packed__|__aligned__)"')


def check_attributes(job: CompileJob, image: CompiledImage, files: Mapping[str, PassedOver]) -> None:
    """Refuse an image where the compiler does not know an attribute that lays classes out."""
    packed = [warning for warning in image.warnings if _PACKED.search(warning)]
    if packed:
        raise CompilationError(
            f"{job}: {job.unit.source} has attributes that NVRTC does not know and nvcc lays classes out by; write "
            "__attribute__((packed)) or alignas:\n" + "\n".join(packed)
        )
    unknown = any(f'unknown attribute "{_NO_ADDRESS}"' in warning for warning in image.warnings)
    silent = any(name.startswith(("disable-warnings", "diag-")) for name in job.unit.options)
    old = job.unit.options.get("std", "c++17") in ("c++03", "c++11", "c++14", "c++17")
    if unknown or (silent and old and any(_NO_ADDRESS.encode() in found.data for found in files.values())):
        raise CompilationError(
            f"{job}: {job.unit.source} has classes with [[{_NO_ADDRESS}]], which NVRTC does not know before C++20 and "
            'nvcc lays out by it in every standard; set options.std = "c++20"'
        )


_KNOWN_EXTERNALS = re.compile(r"vprintf|__assertfail|malloc|free|__nv\w*|__cuda_\w+")
_EXTERNAL = re.compile(r"^\s*\.extern\s+\.func\s+(?:\([^)]*\)\s*)?([\w$]+)", re.MULTILINE)


def check_externals(job: CompileJob, image: CompiledImage) -> None:
    """A declaration whose body was passed over and that a kernel calls is an error; in PTX NVRTC does not notice."""
    if job.architecture.virtual:
        missing = [n for n in _EXTERNAL.findall(image.data.decode("latin-1")) if not _KNOWN_EXTERNALS.fullmatch(n)]
        if missing:
            raise CompilationError(
                f"{job}: {job.unit.source} calls {', '.join(missing)} from device code, whose body is host code"
            )
