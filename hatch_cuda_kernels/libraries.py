# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Libraries of the host that have a few headers for device code among thousands that only a host compiler can read.

Such a library is known here by the folders of its headers and by the names of those for device code. Every other
header of it is narrowed: it stands for the ones for device code that it leads to, in the order in which they would
be read. What it would declare besides is host code, and passed over with the rest of it. The headers for device code
are the installed library's own, as they are.
"""

from __future__ import annotations

import functools
import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["LIBRARIES", "Library", "narrowed", "undefined_macros", "used_libraries", "wanted_libraries"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Library:
    """What is known of one library."""

    folders: tuple[str, ...]
    """Its include folders below its package, in the order in which its users search them."""
    own: re.Pattern[str]
    """Names of all its headers, as `#include` has them."""
    names: re.Pattern[str]
    """What device code has of the library, as far as its text shows it."""
    device: re.Pattern[str]
    """Names of the headers for device code, as `#include` has them."""
    declared: Mapping[str, str]
    """Header of the host -> what it declares of names that device code has: where they are looked up, and types that
    headers for device code name and do not use. Without a definition these cannot be mistaken for anything."""
    defines: tuple[str, ...]
    """Macros that its own builds of extensions define, and that device code is written for."""

    def stands(self, name: str) -> bool:
        """Whether a header has something for device code of its own."""
        return name in self.declared or self.device.fullmatch(name) is not None

    def name(self, path: str) -> str | None:
        """How `#include` names the header of that path below the package; None for another file."""
        for folder in sorted(self.folders, key=len, reverse=True):
            if path.startswith(f"{folder}/"):
                return path[len(folder) + 1 :]
        return None


LIBRARIES: Mapping[str, Library] = {
    "torch": Library(
        folders=("include", "include/torch/csrc/api/include"),
        own=re.compile(r"(?:torch|ATen|c10|caffe2|THC)/.*"),
        names=re.compile(r"\b(?:(?:torch|at|c10)(?:\s*::\s*\w+)+|C10_\w+|CUDA_KERNEL_\w+|gpuAtomic\w+)"),
        device=re.compile(
            r"""
            c10/macros/\w+\.h
            |(?:c10|torch/headeronly)/util/
              (?:Half|BFloat16|Float[48]_\w+|complex\w*|bit_cast|floating_point_utils|TypeSafeSignMath|NumericUtils|Deprecated)
              (?:-inl|-math)?\.h
            |(?:c10|torch/headeronly)/core/DeviceType\.h
            |c10/cuda/CUDAMathCompat\.h
            |ATen/(?:OpMathType|AccumulateType|NumericUtils|ceil_div)\.h
            |(?:ATen|torch/headeronly)/core/TensorAccessor\.h
            |torch/headeronly/(?:macros|cuda)/(?:detail/)?\w+\.h
            |ATen/cuda/(?:ApplyGridUtils|AsmUtils|Atomic|DeviceUtils|NumericLimits|PhiloxUtils|ScanUtils|StatelessPhilox\w+)\.cuh
            |ATen/cuda/detail/(?:IntegerDivider|PhiloxCudaStateRaw|TensorInfo|UnpackRaw|KernelUtils)\.(?:cuh|h)
            |ATen/native/cuda/(?:DeviceSqrt|GridSampler|KernelUtils|Math|Pow|UpSample|block_reduce|im2col|vol2col
              |PersistentSoftmax|SortingRadixSelect)\.cuh
            |ATen/native/cuda/thread_constants\.h
            |THC/THC(?:Atomics|DeviceUtils|NumericLimits|ScanUtils|AsmUtils)\.cuh
            """,
            re.VERBOSE,
        ),
        declared={
            "torch/types.h": "namespace at {}\nnamespace torch {\nusing namespace at;\n}\n",
            "c10/util/ArrayRef.h": "#include <cstdint>\nnamespace c10 {\ntemplate <typename T> class ArrayRef;\n"
            "using IntArrayRef = ArrayRef<int64_t>;\n}\n",
            "torch/headeronly/util/HeaderOnlyArrayRef.h": "#include <cstdint>\nnamespace c10 {\n"
            "template <typename T> class HeaderOnlyArrayRef;\n}\nnamespace torch::headeronly {\n"
            "using c10::HeaderOnlyArrayRef;\nusing IntHeaderOnlyArrayRef = HeaderOnlyArrayRef<int64_t>;\n}\n",
        },
        defines=(
            "__CUDA_NO_BFLOAT16_CONVERSIONS__",
            "__CUDA_NO_HALF2_OPERATORS__",
            "__CUDA_NO_HALF_CONVERSIONS__",
            "__CUDA_NO_HALF_OPERATORS__",
        ),
    ),
}
"""Import package -> its headers."""


def wanted_libraries(headers: Mapping[str, str], texts: Iterable[str]) -> Iterator[str]:
    """What to do about libraries whose headers went, and whose names are left in the texts.

    `headers` are those that went, as `#include` names them, each with where that stands.
    """
    for package, used in used_libraries(headers, texts).items():
        lost = [f"<{name}> of {where}" for name, where in headers.items() if LIBRARIES[package].own.fullmatch(name)]
        yield (
            f"device code has {', '.join([*used][:5])}{', ...' if len(used) > 5 else ''}, which the headers of "
            f"{package} declare ({', '.join(lost[:3])}): add {package} to build-system.requires, and "
            f'include-packages = ["{package}"] to the hook table'
        )


def used_libraries(headers: Iterable[str], texts: Iterable[str]) -> dict[str, list[str]]:
    """Package of each library with one of these headers -> its names in texts of device code, where there are some."""
    names, code = list(headers), "\n".join(texts)
    found = {
        package: list(dict.fromkeys(re.sub(r"\s+", "", name) for name in library.names.findall(code)))
        for package, library in LIBRARIES.items()
        if any(map(library.own.fullmatch, names))
    }
    return {package: used for package, used in found.items() if used}


def undefined_macros(packages: Iterable[str], defines: Iterable[str]) -> Iterator[str]:
    """What to say of macros that the builds of these libraries define, and that are not among `defines`."""
    given = set(defines)
    for package in packages:
        missing = [name for name in LIBRARIES[package].defines if name not in given]
        if missing:
            line = ", ".join(f"{name} = true" for name in missing)
            yield f"{package}'s builds of extensions define macros that these files may need: defines = {{ {line} }}"


_GNU = re.compile(rb"\b__GNUC__\b")
_GNU_PRAGMA = re.compile(rb"^[ \t]*#[ \t]*pragma[ \t]+GCC\b[^\n]*", re.MULTILINE)
_GNU_SHOWN = b"__CUDA_KERNELS_GNUC__"
_GNU_DEFINED = b"#define __CUDA_KERNELS_GNUC__ 13\n"
"""nvcc has the macro from its host compiler, NVRTC has it not, and device code of a library is chosen by it. It cannot
be defined under its own name, which the toolkit's headers would see as well."""

_ONCE = re.compile(rb"^[ \t]*#[ \t]*pragma[ \t]+once", re.MULTILINE)
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)


def narrowed(package: Path, library: Library, path: str) -> bytes | None:
    """Text of a header that only a host compiler can read, narrowed to what of it is for device code.

    `path` is its path below the `package`. None for any other file: it is taken as it is.
    """
    name = library.name(path)
    if name is None:
        return None
    if library.device.fullmatch(name):
        text = package.joinpath(path).read_bytes()
        once = b"" if _ONCE.search(text) else b"#pragma once\n"  # what includes it, and sees to that, is narrowed
        return _as_with_gcc(once + text) if once or _GNU.search(text) else None
    lines = [f"#include <{header}>\n" for header in _leads_to(package, library, path)]
    declared = library.declared.get(name, "")
    return "".join(["#pragma once\n", f"// What of {name} device code can use.\n", *lines, declared]).encode()


def _as_with_gcc(text: bytes) -> bytes:
    """A text in which that host compiler is told from others as nvcc does it on Linux."""
    return _GNU_DEFINED + _GNU_PRAGMA.sub(b"", _GNU.sub(_GNU_SHOWN, text))


@functools.lru_cache(maxsize=512)
def _leads_to(package: Path, library: Library, path: str) -> tuple[str, ...]:
    """The headers for device code that a header includes, itself or by others, in the order of the text."""
    found: dict[str, None] = {}
    seen: set[str] = set()
    pending = [path]
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        name = library.name(current)
        if name is not None and current != path and library.stands(name):
            found[name] = None
        else:
            pending += reversed([*_includes(package, library, current)])
    return tuple(found)


@functools.lru_cache(maxsize=8192)
def _includes(package: Path, library: Library, path: str) -> tuple[str, ...]:
    """Paths of the library's own files that a file includes directly."""
    spellings = {os.fsdecode(match[1]): None for match in _INCLUDE.finditer(package.joinpath(path).read_bytes())}
    found = (_find(str(package), library, posixpath.dirname(path), spelling) for spelling in spellings)
    return tuple(target for target in found if target is not None)


@functools.lru_cache(maxsize=16384)
def _find(package: str, library: Library, folder: str, spelling: str) -> str | None:
    for start in (*library.folders, folder):  # a name that several folders have is the same file, or nearly always
        target = posixpath.normpath(posixpath.join(start, spelling))
        if not target.startswith("..") and os.path.isfile(os.path.join(package, target)):
            return target
    return None
