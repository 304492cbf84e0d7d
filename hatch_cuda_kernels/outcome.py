# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What came out of a compile, held against what was asked for: entries, names, warnings."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .cubin import plain_names, read_cubin, read_ptx, spills_from_log
from .elf import ImageFormatError
from .errors import CompilationError, ToolchainError
from .manifest import Resources, squeeze_name
from .plan import CompileJob

__all__ = ["NoKernelError", "UndefinedKernelsError", "image_facts", "kernel_names", "warnings_in"]


class NoKernelError(CompilationError):
    """The source compiles, to nothing that could be launched."""


class UndefinedKernelsError(CompilationError):
    """Name expressions of templates that no file of the module defines."""

    def __init__(self, message: str, expressions: Sequence[str]) -> None:
        super().__init__(message)
        self.expressions = expressions


_PTXAS_REPORT = re.compile(r"^ptxas\s+(?:info\s*:|\.\s).*(?:\n|\Z)", re.MULTILINE)


def image_facts(job: CompileJob, data: bytes, log: str) -> dict[str, Resources | None]:
    """Check an image against the job and return its entries. NVRTC gives empty or foreign output without an error.

    One of several sources need not have an entry, and what is to be optimised at the link does not show any. The
    linker of an image that is linked is checked elsewhere (linker.py).
    """
    source = job.unit.source
    entries: dict[str, Resources | None]
    if not data:
        raise CompilationError(f"{job}: NVRTC gave no output for {source}")
    if job.unit.optimized_later:
        return {}
    try:
        if job.architecture.virtual:
            ptx = read_ptx(data)
            matches, release, entries = ptx.matches(job.architecture), ptx.release, dict.fromkeys(ptx.entries)
        else:
            cubin = read_cubin(data)
            spills = spills_from_log(log)
            matches, release = cubin.matches(job.architecture), cubin.release
            entries = {
                name: Resources(**{**found.to_dict(), "spill_bytes": spills.get(name, 0)})
                for name, found in cubin.entries.items()
            }
    except ImageFormatError as error:
        raise CompilationError(f"{job}: NVRTC gave something that is no {job.architecture.format} ({error})") from None
    if not matches:
        raise CompilationError(f"{job}: NVRTC gave an image for another architecture")
    if release is not None and release != job.release and not job.unit.parts:
        raise ToolchainError(
            f"{job}: compiled by NVRTC {release}, but {job.release} was expected; another NVRTC shadows the one of "
            "this environment (LD_LIBRARY_PATH, CUDA_HOME, or a library loaded earlier)"
        )
    if not entries and not job.unit.relocatable:
        raise NoKernelError(
            f"{job}: {source} compiles to no kernel; it has no __global__ function, only templates that no "
            "name-expressions entry instantiates, or an #if that hides them from this architecture"
        )
    return entries


def kernel_names(job: CompileJob, entries: dict[str, Resources | None], lowered: dict[str, str]) -> dict[str, str]:
    """Every name that a kernel of this image is loaded by -> its symbol; of a part, those that were asked for."""
    if job.unit.relocatable:
        return lowered
    if undefined := [expression for expression, symbol in lowered.items() if symbol not in entries]:
        raise UndefinedKernelsError(
            f"{job}: the name expression {undefined[0]!r} gives {lowered[undefined[0]]}, which is no kernel of the "
            "image; the files of the module declare its template and do not define it",
            undefined,
        )
    names = {squeeze_name(name): symbol for name, symbol in plain_names(list(entries)).items()}
    names.update(lowered)
    named = set(names.values())
    names.update({symbol: symbol for symbol in entries if symbol not in named})
    return dict(sorted(names.items()))


def warnings_in(log: str) -> tuple[str, ...]:
    text = _PTXAS_REPORT.sub("", log)
    return tuple(block.strip() for block in re.split(r"\n\s*\n", text) if block.strip())
