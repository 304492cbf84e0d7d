# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Headers that nobody has: whether the run-time fallback would ask for one on an architecture that was not built for.

An include that finds nothing is no fault where no architecture makes it active. Which includes are active is a matter
of directives alone, so that the outline of a unit, its directives without the code between them, answers for the
unit: it compiles in a hundredth of the time. The compiler evaluates every condition of it, as in the unit itself. An
outline leaves the toolkit's headers out, and so there is none where one of their macros could decide anything.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator

from .plan import PlacedImage, Unit
from .sources import SourceFile, join_label

__all__ = ["asks_for", "outline", "suspects"]


def suspects(unit: Unit, images: Iterable[PlacedImage]) -> set[str]:
    """Names of quoted includes of a unit that find nothing, neither in the project nor in the toolkit.

    Those of host code are none: what one architecture passes over, every one does.
    """
    unresolved = unit.closure.unresolved
    if not unresolved:
        return set()
    images = list(images)
    passed = {
        (omission.source, omission.name)
        for image in images
        for omission in image.passed_over
        if omission.kind == "include"
    }
    missing = {name for image in images for name in image.reads.missing}
    return missing & {name for label, name in unresolved if (label, name) not in passed}


def asks_for(name: str, text: str) -> bool:
    """Whether an error says that this header was included and is not there."""
    return f'cannot open source file "{name}"' in text


def outline(unit: Unit, absent: Iterable[str]) -> Unit | None:
    """A unit that compiles unless an include of one of the names `absent` is active in `unit`.

    None where the directives of the project's own files do not tell.
    """
    files = unit.closure.files
    if unit.parts or unit.relocatable or any(map(_may_hide, files.values())) or not _self_contained(unit):
        return None
    absent = set(absent)
    texts = {label: _directives(unit, file, absent) for label, file in files.items()}
    texts[unit.source] += _KERNEL
    closure = dataclasses.replace(unit.closure, files={label: SourceFile(label, text) for label, text in texts.items()})
    name = f"{unit.module}, directives alone,"
    return dataclasses.replace(unit, module=name, closure=closure, name_expressions=(), host_code="error")


_KERNEL = b'\nextern "C" __global__ void cuda_kernels_outline() {}\n'

_DIRECTIVE = re.compile(rb"^[ \t\f\v]*(?:#|%:)[^\n]*$", re.MULTILINE)
_INCLUDE = re.compile(rb'[ \t\f\v]*(?:#|%:)[ \t\f\v]*(?:include|include_next|import)[ \t\f\v]*(?:<([^>]+)>|"([^"]+)")')
_CONDITION = re.compile(rb"[ \t\f\v]*(?:#|%:)[ \t\f\v]*(?:el)?if(?:n?def)?\b(.*)", re.DOTALL)
_COMPUTED = re.compile(rb"[ \t\f\v]*(?:#|%:)[ \t\f\v]*(?:include|include_next|import|embed)\b[ \t\f\v]*([A-Za-z_].*)")
_DEFINE = re.compile(rb"[ \t\f\v]*(?:#|%:)[ \t\f\v]*define[ \t\f\v]+([A-Za-z_]\w*)(.*)", re.DOTALL)
_PRAGMA = re.compile(rb"[ \t\f\v]*(?:#|%:)[ \t\f\v]*pragma\b(?![ \t\f\v]*(?:once|push_macro|pop_macro)\b)")
_LITERAL = re.compile(rb'"(?:\\.|[^"\\])*"|(?<=\()[ \t]*<[^<>()]*>[ \t]*(?=\))')
_WORD = re.compile(rb"(?<![\w.'])[A-Za-z_]\w*")
_PARAMETERS = re.compile(rb"\(([^)]*)\)")
_HIDING = re.compile(rb'R"|_Pragma|__pragma|\?\?[=/]')
"""What makes lines that look like directives none, or a macro change without one."""

_OPERATORS = frozenset(b"defined and or not true false __has_include __has_include_next".split())
_PREDEFINED = frozenset(
    b"""
    __CUDA_ARCH__ __CUDA_ARCH_LIST__ __CUDA_ARCH_SPECIFIC__ __CUDA_ARCH_FAMILY_SPECIFIC__ __CUDACC__ __CUDACC_RTC__
    __NVCC__ __NVRTC__ __NVCOMPILER __CUDACC_VER_MAJOR__ __CUDACC_VER_MINOR__ __CUDACC_VER_BUILD__
    __CUDA_API_VER_MAJOR__ __CUDACC_RDC__ __CUDACC_DEBUG__ __CUDA__ __cplusplus _WIN32 _WIN64 _MSC_VER __linux__
    __linux __unix__ __unix __APPLE__ __GNUC__ __GNUC_MINOR__ __clang__ __clang_major__ __INTEL_COMPILER __HIP__
    __HIPCC__ __HIP_PLATFORM_AMD__ __HIP_DEVICE_COMPILE__ __x86_64__ __aarch64__ _OPENMP __MINGW32__ __CYGWIN__
    """.split()
)
"""Macros that the compiler has, or has not, by itself; no header of the toolkit defines one."""
_TOOLKIT = re.compile(
    rb"_|CU|Cu|NV|THRUST|CCCL|LIBCUDACXX|[a-z]|U?INT|(?:DBL|FLT|FP|M|EXIT|HUGE|MAKE|RESOURCE)_|\w+_(?:MIN|MAX)$"
    rb"|(?:CHAR_BIT|CLOCKS_PER_SEC|DECIMAL_DIG|EXCLUDE_FROM_RTC|IF_DEVICE_OR_CUDACC|INFINITY|LOAD_ENVREG|MAX_PLANES|NAN|TIME_UTC)$"
)
"""How the names of the macros begin that the toolkit's headers define, or ours."""
_LIBRARIES = re.compile(r"(?:cuda|cub|thrust|nv|crt|cooperative_groups)(?:/|\.|_|$)")


def _may_hide(file: SourceFile) -> bool:
    return bool(_HIDING.search(file.code))


def _self_contained(unit: Unit) -> bool:
    """Whether no macro of the toolkit's headers can decide which directives of the project's files are active, and no
    file of the project is read by them."""
    for label in unit.closure.files:
        inside = [label[len(folder) :].lstrip("/") for folder in unit.include_dirs if label.startswith(f"{folder}/")]
        if any(map(_LIBRARIES.match, [label, *inside])):
            return False
    if any(
        include.spelling.startswith("curand") for file in unit.closure.files.values() for include in file.scan.includes
    ):
        return False  # its headers name their macros as anyone does: QUALIFIERS, THREAD_NUM
    bodies: dict[bytes, list[bytes]] = {}
    deciding: set[bytes] = set()
    for name, value in unit.defines.items():
        name, opened, rest = name.partition("(")
        bodies.setdefault(name.encode(), []).append(f"{opened}{rest} {value}".encode())
    for file in unit.closure.files.values():
        for line in _DIRECTIVE.findall(file.code):
            if match := _DEFINE.match(line):
                bodies.setdefault(match[1], []).append(match[2])
            elif match := _CONDITION.match(line) or _COMPUTED.match(line):
                deciding.update(_words(match[1]))
    pending = list(deciding)
    while pending:
        for body in bodies.get(pending.pop(), ()):
            if b"##" in body:
                return False
            parameters = _PARAMETERS.match(body)
            words = set(_words(body)) - set(_words(parameters[1] if parameters else b"")) - deciding
            deciding |= words
            pending += words
    deciding -= _OPERATORS | (_PREDEFINED - set(bodies))
    return not any(map(_TOOLKIT.match, deciding))


def _words(text: bytes) -> Iterator[bytes]:
    return (match[0] for match in _WORD.finditer(_LITERAL.sub(b" ", text)))


def _directives(unit: Unit, file: SourceFile, absent: set[str]) -> bytes:
    """The directives of a file that decide which others are active, and the includes that there is a question about."""
    lines = []
    for line in _DIRECTIVE.findall(file.code):
        match = _INCLUDE.match(line)
        if not _PRAGMA.match(line) and (match is None or _kept(unit, file.label, match, absent)):
            lines.append(line)
    return b"\n".join(lines) + b"\n"


def _kept(unit: Unit, label: str, match: re.Match[bytes], absent: set[str]) -> bool:
    name, quoted = (match[1] or match[2]).decode("utf-8", "surrogateescape"), match[1] is None
    if name in absent:
        return True
    folders = [label.rpartition("/")[0], *unit.include_dirs] if quoted else unit.include_dirs
    return any(join_label(folder, name) in unit.closure.files for folder in folders)
