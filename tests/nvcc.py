# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""nvcc of the same release as the NVRTC at hand, and what kernels of two cubins differ in."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from hatch_cuda_kernels.cubin import kernel_attributes, read_cubin
from hatch_cuda_kernels.elf import Elf
from hatch_cuda_kernels.manifest import squeeze_name
from hatch_cuda_kernels.toolchain import probe

__all__ = ["KernelCode", "compile_with_nvcc", "differences", "install_nvcc", "kernel_code", "promised_kernels"]

_PARAMETERS = 0x17
"""EIATTR_KPARAM_INFO: ordinal, offset and size of one parameter."""


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


def differences(ours: bytes, theirs: bytes, *, longs_alike: bool = False) -> dict[str, str]:
    """Symbol of each kernel that two cubins do not have alike -> in what it differs.

    `longs_alike`: `long` and `long long` are one in symbols, since `int64_t` is the first by the C library of Linux,
    and the second by libcu++.
    """
    left, right = kernel_code(ours), kernel_code(theirs)
    if longs_alike:
        alike = str.maketrans("xy", "lm")
        left = {name.translate(alike): code for name, code in left.items()}
        right = {name.translate(alike): code for name, code in right.items()}
    found = dict.fromkeys(sorted(left.keys() - right.keys()), "only with NVRTC")
    found |= dict.fromkeys(sorted(right.keys() - left.keys()), "only with nvcc")
    for name in sorted(left.keys() & right.keys()):
        one, other = left[name], right[name]
        if one.parameters != other.parameters:
            found[name] = "parameters"
        elif one != other:
            different = sum(a != b for a, b in zip(one.code, other.code, strict=False))
            found[name] = f"machine code: {different} bytes of {len(one.code)} and {len(other.code)}"
    return found
