# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The `options` table: fields of `cuda.core.ProgramOptions`, hyphenated, and those that cannot work here.

Kept as a table of our own, so that a hook table is checked before cuda.core is installed; a test holds it against
the dataclass.
"""

from __future__ import annotations

import difflib
import re
from typing import Any

__all__ = ["ALLOWED", "LOST_AT_LINK", "REFUSED", "check_options", "field_name"]

_BOOL, _INT, _TEXT = "true or false", "an integer", "a string"
_TEXTS, _INTS = "a string or a list of strings", "an integer or a list of integers"

ALLOWED: dict[str, str] = {
    "brief-diagnostics": _BOOL,
    "builtin-initializer-list": _BOOL,
    "builtin-move-forward": _BOOL,
    "debug": _BOOL,
    "device-as-default-execution-space": _BOOL,
    "device-code-optimize": _BOOL,
    "device-float128": _BOOL,
    "device-int128": _BOOL,
    "diag-error": _INTS,
    "diag-suppress": _INTS,
    "diag-warn": _INTS,
    "disable-warnings": _BOOL,
    "extra-device-vectorization": _BOOL,
    "fma": _BOOL,
    "frandom-seed": _TEXT,
    "ftz": _BOOL,
    "lineinfo": _BOOL,
    "link-time-optimization": _BOOL,
    "max-register-count": _INT,
    "minimal": _BOOL,
    "no-cache": _BOOL,
    "no-display-error-number": _BOOL,
    "no-source-include": _BOOL,
    "ofast-compile": _TEXT,
    "optimization-info": _TEXT,
    "pre-include": _TEXTS,
    "prec-div": _BOOL,
    "prec-sqrt": _BOOL,
    "ptxas-options": _TEXTS,
    "restrict": _BOOL,
    "split-compile": _INT,
    "std": _TEXT,
    "undefine-macro": _TEXTS,
    "use-fast-math": _BOOL,
}
"""Field -> the kind of value that it takes."""

_PCH = "precompiled headers are a matter of the build, not of a module"
_LINK = "a module whose source is a list is compiled so; an image is a finished program"
_NVVM = "it belongs to NVVM input, and sources here are CUDA C++"

REFUSED: dict[str, str] = {
    "arch": "use the key archs",
    "create-pch": _PCH,
    "define-macro": "use the table defines",
    "extensible-whole-program": _LINK,
    "extra-sources": _NVVM,
    "fdevice-syntax-only": "it makes no image; `hatch-cuda-kernels verify --jit` checks sources",
    "fdevice-time-trace": "it is how the headers that were read are found",
    "gen-opt-lto": _LINK,
    "include-path": "use the key include-dirs",
    "instantiate-templates-in-pch": _PCH,
    "name": "the name is the source's path; a module's name is the key name of its [[modules]] entry",
    "numba-debug": _NVVM,
    "pch": _PCH,
    "pch-dir": _PCH,
    "pch-messages": _PCH,
    "pch-verbose": _PCH,
    "relocatable-device-code": _LINK,
    "time": "it writes a file; the build report has the time of every image",
    "use-bundled-headers": "use the key toolkit-headers",
    "use-libdevice": _NVVM,
    "use-pch": _PCH,
}
"""Field that cannot work here -> what to do instead."""

_OF_NVCC = {
    "arch": "use the key archs",
    "code": "use the key archs",
    "ccbin": "no host compiler is used here",
    "D": "use the table defines",
    "expt-extended-lambda": "NVRTC has no extended lambdas; write a struct with a __device__ operator()",
    "expt-relaxed-constexpr": "declare such functions __host__ __device__, or set device-as-default-execution-space",
    "extended-lambda": "NVRTC has no extended lambdas; write a struct with a __device__ operator()",
    "G": "write debug = true",
    "gencode": "use the key archs",
    "generate-code": "use the key archs",
    "I": "use the key include-dirs",
    "include": "write pre-include",
    "maxrregcount": "write max-register-count",
    "O3": "optimised is what images are unless debug is set",
    "rdc": _LINK,
    "threads": "use the key jobs",
    "t": "use the key jobs",
    "Xcompiler": "no host compiler is used here",
    "Xptxas": "write ptxas-options",
    "x": "every source is CUDA C++ here",
}
"""Options of nvcc that are no fields of ProgramOptions -> what to do instead."""

LOST_AT_LINK = ("extra-device-vectorization", "ofast-compile", "optimization-info")
"""Options of code generation that nvJitLink, which does it under `link-time-optimization`, does not know."""

_STANDARDS = ("c++03", "c++11", "c++14", "c++17", "c++20")


def field_name(option: str) -> str:
    """`use-fast-math` -> `use_fast_math`, the field of ProgramOptions."""
    return option.replace("-", "_")


def check_options(table: object, where: str, problems: list[str]) -> dict[str, Any]:
    """Check an `options` table at key path `where`; add each mistake to `problems`, return what is usable."""
    if not isinstance(table, dict):
        problems.append(f"{where}: expected a table of options, found {type(table).__name__}")
        return {}
    usable: dict[str, Any] = {}
    for raw, value in table.items():
        path, option = f"{where}.{raw}", raw.replace("_", "-")
        if option in REFUSED:
            problems.append(f"{path}: cannot be set; {REFUSED[option]}")
        elif raw not in ALLOWED and (advice := _of_nvcc(raw)):
            problems.append(f"{path}: is an option of nvcc; {advice}")
        elif raw not in ALLOWED:
            near = difflib.get_close_matches(option, ALLOWED, n=1)
            hint = f"; did you mean {near[0]}?" if near else "; see cuda.core.ProgramOptions for the fields"
            problems.append(f"{path}: unknown option{hint}")
        elif not _fits(value, ALLOWED[raw]):
            problems.append(f"{path}: expected {ALLOWED[raw]}, found {value!r}")
        elif raw == "ptxas-options" and (bad := [word for word in _words(value) if _FILE_OPTION.match(word)]):
            problems.append(f"{path}: {bad[0]} names a file that nobody tracks; write its options here")
        elif raw == "std" and value not in _STANDARDS:
            problems.append(f"{path}: {value!r} is none of {', '.join(_STANDARDS)}")
        else:
            usable[raw] = value
    return usable


def _of_nvcc(raw: str) -> str | None:
    name = raw.lstrip("-")
    if raw != name and name.replace("_", "-") in ALLOWED:
        return f"write {name.replace('_', '-')}"
    return _OF_NVCC.get(name) or _OF_NVCC.get(name.replace("_", "-"))


_FILE_OPTION = re.compile(r"--?(?:options-file|optf|output-file|o|input-as-string)(?:$|=|\s|[^a-z-])")


def _words(value: str | list[str]) -> list[str]:
    return [word for text in ([value] if isinstance(value, str) else value) for word in re.split(r"[\s,]+", text)]


def _fits(value: object, kind: str) -> bool:
    if kind == _BOOL:
        return isinstance(value, bool)
    values = value if isinstance(value, list) and kind in (_TEXTS, _INTS) else [value]
    if kind in (_INT, _INTS):
        return bool(values) and all(type(item) is int and 0 <= item < 2**31 for item in values)
    return bool(values) and all(isinstance(item, str) and item and not set(item) & set("\0\n\r") for item in values)
