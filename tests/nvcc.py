# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""nvcc of the same release as the NVRTC at hand, and what kernels of two cubins differ in."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from hatch_cuda_kernels.cubin import kernel_attributes, read_cubin
from hatch_cuda_kernels.elf import Elf
from hatch_cuda_kernels.manifest import squeeze_name
from hatch_cuda_kernels.toolchain import probe

__all__ = [
    "PLACES",
    "WIDE",
    "KernelCode",
    "compile_with_nvcc",
    "differences",
    "install_nvcc",
    "kernel_code",
    "promised_kernels",
]

_PARAMETERS = 0x17
"""EIATTR_KPARAM_INFO: ordinal, offset and size of one parameter."""
_INSTRUCTION = 16
_CONSTANTS, _ADDRESSES = 3, 4
"""Banks of constants: that of `__constant__` objects, and that of the addresses of others."""
_WITH_CONSTANT = (3, 5)
"""Forms of instructions that have an operand in a bank of constants."""
_LOAD_CONSTANT, _NO_REGISTER = 0xB82, 0xFF
"""An instruction that may add a register to the offset."""
WIDE = "only with nvcc: a kernel of CUB's or Thrust's device-wide algorithms"
"""What host code launches by calling a library; no kernel of the file."""
PLACES = "places of objects in the bank of addresses"
"""What kernels differ in that are the same instructions about the same objects."""


def promised_kernels(source: Path) -> set[str]:
    """The kernels that a file says it gives, in its line `// kernels: a, b<float, 2>`."""
    match = re.search(r"^// kernels: (.*)$", source.read_text(), re.MULTILINE)
    assert match is not None
    kernels = [""]
    for part in match[1].split(", "):
        whole = kernels[-1].count("<") == kernels[-1].count(">")
        kernels[-1:] = [kernels[-1], part] if whole else [f"{kernels[-1]}, {part}"]
    return {squeeze_name(kernel) for kernel in kernels[1:]}


def install_nvcc(folder: Path) -> Path:
    """Install nvcc of NVRTC's own release below a folder, from the package index; returns its path."""
    release = probe().release
    major = release.split(".")[0]
    command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--target", str(folder)]
    command += [f"nvidia-cuda-nvcc=={release}", "nvidia-cuda-runtime", "nvidia-cuda-cccl"]
    subprocess.run(command, check=True, capture_output=True, timeout=600)
    return folder / "nvidia" / f"cu{major}" / "bin" / "nvcc"


def compile_with_nvcc(nvcc: Path, source: Path, arch: str, target: Path, options: Sequence[str] = ()) -> str | None:
    """Compile a file as it is into a cubin; nvcc's messages where it refuses."""
    compiler = shutil.which("g++") or "g++"
    command = [str(nvcc), "-cubin", f"-arch={arch}", "-ccbin", compiler, "-w", *options]
    command += [] if any(option.startswith("-std=") for option in options) else ["-std=c++17"]
    command += [f"-I{nvcc.parent.parent / 'include' / 'cccl'}", str(source), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    return None if done.returncode == 0 else done.stdout + done.stderr


class KernelCode(NamedTuple):
    """What a device runs of one kernel, and what a launch has to know."""

    code: bytes
    parameters: tuple[bytes, ...]
    constants: bytes


def kernel_code(image: bytes) -> dict[str, KernelCode]:
    """Symbol of each kernel of a cubin -> its machine code, parameters and constants."""
    elf = Elf(image)
    found = {}
    for name in read_cubin(image).entries:
        parameters = [payload for attribute, payload in kernel_attributes(image, name) if attribute == _PARAMETERS]
        constants = elf.content(f".nv.constant2.{name}")
        found[name] = KernelCode(elf.content(f".text.{name}"), tuple(sorted(parameters)), constants)
    return found


_Place = tuple[str, bytes, int]
"""Name and first value of an object, and how far into it. A string is its value alone."""


class _Objects:
    """What the instructions of a cubin address by banks of constants: `__constant__` objects, and in another bank the
    addresses of all others."""

    def __init__(self, image: bytes) -> None:
        elf = Elf(image)
        names = [name for name, _ in elf.symbols()]
        symbols = [*struct.iter_unpack("<IBBHQQ", elf.content(".symtab"))]
        self.places: dict[tuple[int, int], _Place] = {}
        sections = {number: section.name for number, section in enumerate(elf.sections)}

        def known(index: int) -> tuple[str, bytes]:
            _, _, _, section, value, size = symbols[index]
            content = elf.content(sections.get(section, ""))[value : value + size]
            text = re.match(r"\$str|__unnamed_|__PRETTY_FUNCTION__", names[index])
            content = (
                content.partition(b" [with ")[0] if text else content
            )  # the compilers spell what follows otherwise
            return "" if text else re.sub(r"(_INTERNAL_|_GLOBAL__N__)[0-9a-f]{8}", r"\1", names[index]), content

        for section, form in ((".rel", "<QQ"), (".rela", "<QQq")):
            for offset, info, *_ in struct.iter_unpack(form, elf.content(f"{section}.nv.constant{_ADDRESSES}")):
                self.places |= {(_ADDRESSES, offset + half): (*known(info >> 32), half) for half in (0, 4)}
        for index, (_, _, _, section, value, size) in enumerate(symbols):
            if sections.get(section) == f".nv.constant{_CONSTANTS}":
                self.places |= {(_CONSTANTS, value + at): (*known(index), at) for at in range(size)}

    def operand(self, instruction: bytes) -> _Place | None:
        """What an instruction with an operand `c[bank][offset]` addresses."""
        word = int.from_bytes(instruction[4:8], "little")
        bank, offset = word >> 22 & 0x1F, word >> 6 & 0xFFFC
        code = int.from_bytes(instruction[:2], "little") & 0xFFF
        known = code >> 9 in _WITH_CONSTANT and (code != _LOAD_CONSTANT or instruction[3] == _NO_REGISTER)
        return self.places.get((bank, offset)) if known else None

    def offset(self, instruction: bytes) -> _Place | None:
        """What an instruction may mean that puts an offset into a register, which another one then uses."""
        return self.places.get((_ADDRESSES, int.from_bytes(instruction[4:8], "little")))


def _is_same(mine: _Place | None, its: _Place | None) -> bool:
    """Whether two places are the same. A file names itself by its whole path to nvcc, and here by its path in the
    project, with line information below a folder that stands for that."""
    if mine is None or its is None:
        return False
    path = b"/" + mine[1].removeprefix(b"/cuda-kernels/")
    return mine == its or (mine[0] == its[0] == "" and its[1].endswith(path) and mine[2] == its[2])


def _compared(ours: bytes, theirs: bytes, left: _Objects, right: _Objects) -> str | None:
    """In what two pieces of machine code differ, None where they are the same instructions about the same objects."""
    found = None
    for start in range(0, max(len(ours), len(theirs)), _INSTRUCTION):
        one, other = ours[start : start + _INSTRUCTION], theirs[start : start + _INSTRUCTION]
        operands = left.operand(one), right.operand(other)
        if one == other and (operands == (None, None) or _is_same(*operands)):
            continue
        same = _is_same(*operands) or (one != other and _is_same(left.offset(one), right.offset(other)))
        if not same or one[:4] + one[8:] != other[:4] + other[8:]:
            different = sum(a != b for a, b in zip(ours, theirs, strict=False))
            return f"machine code: {different} bytes of {len(ours)} and {len(theirs)}"
        found = PLACES
    return found


def _comparable(symbol: str, longs_alike: bool) -> str:
    """A symbol without what stands in it for the place of the file, and with pairs of either library as one."""
    while match := re.search(r"(\d+)_GLOBAL__N__", symbol):
        symbol = symbol[: match.start()] + "12_GLOBAL__N_1" + symbol[match.end(1) + int(match[1]) :]
    symbol = re.sub(r"N4cuda3std3__44pairI([a-z]+)EE", r"St4pairI\1E", symbol)
    return symbol.translate(str.maketrans("xy", "lm")) if longs_alike else symbol


def differences(ours: bytes, theirs: bytes, *, longs_alike: bool = False) -> dict[str, str]:
    """Symbol of each kernel that two cubins do not have alike -> in what it differs.

    `longs_alike`: `long` and `long long` are one in symbols, since `int64_t` is the first by the C library of Linux,
    and the second by libcu++.
    """
    left = {_comparable(name, longs_alike): code for name, code in kernel_code(ours).items()}
    right = {_comparable(name, longs_alike): code for name, code in kernel_code(theirs).items()}
    objects = _Objects(ours), _Objects(theirs)
    found = dict.fromkeys(sorted(left.keys() - right.keys()), "only with NVRTC")
    for name in sorted(right.keys() - left.keys()):
        found[name] = WIDE if re.match(r"_ZN(?:\d+[a-z_]\w*?)?(?:3cub|6thrust)", name) else "only with nvcc"
    for name in sorted(left.keys() & right.keys()):
        one, other = left[name], right[name]
        if one.parameters != other.parameters:
            found[name] = "parameters"
        elif one.constants != other.constants:
            found[name] = "constants"
        elif what := _compared(one.code, other.code, *objects):
            found[name] = what
    return found
