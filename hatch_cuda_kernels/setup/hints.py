# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What a project told another build system about its CUDA sources, as far as the text of its files shows it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..arch import expand_architectures, split_list

__all__ = ["Hints", "python_with_cuda", "read_hints"]

_LARGEST = 1 << 20
_BUILD_FILES = re.compile(r"setup\.(?:py|cfg)|pyproject\.toml|CMakeLists\.txt|.*\.cmake|Makefile|Dockerfile.*")
_COMPILES_CUDA = re.compile(r"nvcc|\b(?:CUDAExtension|RawModule|RawKernel|load_inline|SourceModule)\s*\(")
_CUDA_STRINGS = re.compile(r"\b(?:RawModule|RawKernel|load_inline|SourceModule)\s*\(")
_LISTS = re.compile(r"""(?:TORCH_CUDA_ARCH_LIST|CUDA_ARCHITECTURES|CUDAARCHS)['"\])\s:,=(]+([^"'()\n]+)""")
_CODES = re.compile(r"\bcode=\\?\[?([^\s\]\"']+)")
_ARCH = re.compile(r"(?:-arch|--gpu-architecture)[= ](sm|compute)_(\d+[af]?)\b")
_DEFINE = re.compile(r"""["'\s]-D([A-Za-z_]\w*)(?:=([^\s"',\])]+))?""")
_UNDEFINE = re.compile(r"""["'\s]-U([A-Za-z_]\w*)""")
_OLDEST = 75
"""The oldest architecture of CUDA 13."""


@dataclass(frozen=True, kw_only=True)
class Hints:
    """What was found, and in which file."""

    archs: tuple[str, ...] = ()
    archs_from: str = ""
    too_old: tuple[str, ...] = ()
    """Architectures that were asked for and that CUDA 13 no longer compiles for."""
    options: Mapping[str, str | bool | int]
    """Name of an option of the hook -> its value."""
    options_from: Mapping[str, str]
    defines: Mapping[str, str]
    """Macro -> the file that passes it to some compiler, not necessarily to CUDA's."""
    undefines: frozenset[str]
    """Macros that some file undefines for a compiler: those of a library, which its builds would define."""


def read_hints(root: Path, files: Sequence[str], environ: Mapping[str, str]) -> Hints:
    """Architectures and options; the environment wins, then the file that is nearest to the root."""
    archs, where = split_list(environ.get("TORCH_CUDA_ARCH_LIST", "")), "TORCH_CUDA_ARCH_LIST"
    options: dict[str, str | bool | int] = {}
    options_from: dict[str, str] = {}
    defines: dict[str, str] = {}
    undefines: set[str] = set()
    for label, text in _build_texts(root, files):
        if not _known(archs):
            archs, where = _architectures(text), label
        for option, value in _options(text).items():
            options_from.setdefault(option, label)
            options.setdefault(option, value)
        undefines.update(match[1] for match in _UNDEFINE.finditer(text))
        for match in _DEFINE.finditer(text):
            defines.setdefault(match[1] if match[2] is None else f"{match[1]}={match[2]}", label)
    known = _known(archs)
    return Hints(
        archs=tuple(name for name, number in known.items() if number >= _OLDEST),
        archs_from=where if known else "",
        too_old=tuple(name for name, number in known.items() if number < _OLDEST),
        options=options,
        options_from=options_from,
        defines=defines,
        undefines=frozenset(undefines),
    )


def python_with_cuda(root: Path, files: Sequence[str]) -> list[str]:
    """Python files that hand CUDA source to a compiler as a string."""
    return [label for label in files if label.endswith(".py") and _CUDA_STRINGS.search(_read(root / label))]


def _build_texts(root: Path, files: Sequence[str]) -> Iterable[tuple[str, str]]:
    """The files that may say how CUDA is compiled, without the lines that are comments, nearest to the root first."""
    for label in sorted(files, key=lambda label: (label.count("/"), label)):
        named = _BUILD_FILES.fullmatch(posixpath.basename(label))
        if named or label.endswith(".py"):
            text = _read(root / label)
            if named or _COMPILES_CUDA.search(text):
                yield label, re.sub(r"^[ \t]*#.*", "", text, flags=re.MULTILINE)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace") if path.is_file() and path.stat().st_size <= _LARGEST else ""
    except OSError:
        return ""


def _architectures(text: str) -> list[str]:
    """Spellings of architectures in lists and in flags for nvcc, whose `-arch=sm_80` stands for a cubin and PTX."""
    found = [spelling for match in _LISTS.finditer(text) for spelling in split_list(match[1])]
    found += [spelling for match in _CODES.finditer(text) for spelling in split_list(match[1])]
    for match in _ARCH.finditer(text):
        found += [f"sm_{match[2]}"] * (match[1] == "sm") + [f"compute_{match[2]}"]
    return found


def _known(spellings: Iterable[str]) -> dict[str, int]:
    """Name of each architecture among words that need not all be one -> its number."""
    found: dict[str, int] = {}
    for spelling in spellings:
        if spelling in ("all", "all-major"):
            found[spelling] = _OLDEST
        elif spelling != "native":
            architectures, problems = expand_architectures([spelling])
            found.update({} if problems else {str(architecture): architecture.number for architecture in architectures})
    return found


def _options(text: str) -> dict[str, str | bool | int]:
    """Flags for nvcc that change what a kernel computes or needs, as options of the hook."""
    found: dict[str, str | bool | int] = {}
    if re.search(r"-use_fast_math\b", text):
        found["use-fast-math"] = True
    if match := re.search(r"-std=(c\+\+(?:17|20))\b", text):
        found["std"] = match[1]
    if match := re.search(r"-maxrregcount[= ](\d+)\b", text):
        found["max-register-count"] = int(match[1])
    return found
