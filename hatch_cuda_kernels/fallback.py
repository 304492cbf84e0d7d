# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The run-time fallback: a unit compiled by this environment's NVRTC, through the same job, cache and compiler code as
a build."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING

from .arch import Architecture, Capability, cubin_verdict, format_capability
from .cache import KernelCache, load_or_compile
from .errors import NoCompatibleImageError, ToolchainError, warn_once
from .jobs import make_job
from .plan import CompiledImage, CompileJob, Unit
from .toolchain import Toolchain, detect, probe

if TYPE_CHECKING:
    from .nvrtc import Workspace

__all__ = ["fallback_image", "supported_target", "this_toolchain"]


@functools.lru_cache(maxsize=1)
def this_toolchain() -> Toolchain:
    try:
        with contextlib.closing(KernelCache.from_environment()) as cache:
            return detect(cache, probe)
    except ToolchainError as error:
        if "two NVRTC" not in str(error):
            raise
        warn_once(str(error))  # another library was loaded first; what it compiles is kept under its own release
        return probe()


def fallback_image(unit: Unit, architecture: Architecture) -> tuple[CompiledImage, bool]:
    """Compile a unit with this environment's NVRTC through the cache; whether it was cached."""

    def compile_now(job: CompileJob) -> CompiledImage:
        from .compiler import compile_job
        from .nvrtc import workspace

        with workspace() as space:
            return _compile_apart(job, space) if job.unit.parts else compile_job(job, space)

    job = make_job(unit, architecture, this_toolchain())
    with contextlib.closing(KernelCache.from_environment()) as cache:  # nobody waits for another machine's cache here
        return load_or_compile(job, cache, compile_now)


def _compile_apart(job: CompileJob, space: Workspace) -> CompiledImage:
    """Compile a job that is linked in a process of its own: a link that fails can crash its process later."""
    from .pool import compile_all

    ((_, result),) = compile_all([job], space, workers=1)
    if isinstance(result, CompiledImage):
        return result
    raise result


def supported_target(
    wanted: Architecture, device: Capability, driver: tuple[int, int], toolchain: Toolchain
) -> Architecture:
    """`wanted` if NVRTC has it; else the nearest that gives something this device runs."""
    release = f"NVRTC {toolchain.release}"
    if driver[0] >= toolchain.version[0]:
        if wanted.number in toolchain.supported:
            return wanted
        nearest = [a for a in map(Architecture, toolchain.supported) if cubin_verdict(a, device)[0]]
        if nearest:
            return nearest[-1]
    lower = [number for number in toolchain.supported if divmod(number, 10) <= device]
    if lower and driver >= toolchain.version:
        return Architecture(lower[-1], virtual=True)
    here = f"compute capability {format_capability(device)}, driver of CUDA {format_capability(driver)}"
    raise NoCompatibleImageError(
        f"no image fits and {release} cannot compile for {here}; install the extra cu{driver[0]}, whose NVRTC this "
        "driver takes, or a newer driver"
    )
