# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Occupancy against NVIDIA's own: the calculator that CUDA ships, and the limits that libcu++ ships."""

from __future__ import annotations

import importlib.util
import itertools
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from jobs import KERNEL, compile_alone, make_job, write

from hatch_cuda_kernels.arch import CAPABILITIES, Architecture, Capability
from hatch_cuda_kernels.errors import CompilationError
from hatch_cuda_kernels.manifest import Resources
from hatch_cuda_kernels.occupancy import LIMITS, Limits, active_blocks, best_occupancy
from hatch_cuda_kernels.toolchain import probe

ORACLE = """
#include <cstdio>
#include <climits>
#include "cuda_occupancy.h"
int main()
{
    int major, minor, threads, blocks, shared, registers, used, size;
    while (std::scanf("%d %d %d %d %d %d %d", &major, &minor, &threads, &shared, &registers, &used, &size) == 7) {
        cudaOccDeviceProp device;
        device.computeMajor = major;
        device.computeMinor = minor;
        device.maxThreadsPerBlock = 1024;
        device.maxThreadsPerMultiprocessor = threads;
        device.regsPerBlock = device.regsPerMultiprocessor = 65536;
        device.warpSize = 32;
        device.sharedMemPerBlock = 49152;
        device.sharedMemPerMultiprocessor = shared;
        device.numSms = 1;
        device.reservedSharedMemPerBlock = major >= 8 ? 1024 : 0;
        device.sharedMemPerBlockOptin = shared - device.reservedSharedMemPerBlock;
        cudaOccFuncAttributes function;
        function.maxThreadsPerBlock = INT_MAX;
        function.numRegs = registers;
        function.sharedSizeBytes = used;
        function.numBlockBarriers = 1;
        cudaOccDeviceState state;
        cudaOccResult result;
        cudaOccError error = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &state, size, 0);
        std::printf("%d %d %d\\n", (int)error, result.activeBlocksPerMultiprocessor, result.blockLimitBlocks);
    }
}
"""

TRAITS = """
static_assert(ARCH({number}).max_threads_per_multiprocessor == {threads});
static_assert(ARCH({number}).max_blocks_per_multiprocessor == {blocks});
static_assert(ARCH({number}).max_shared_memory_per_multiprocessor == {shared});
static_assert(ARCH({number}).max_registers_per_multiprocessor == 65536);
static_assert(ARCH({number}).max_registers_per_thread == 255);
"""


def compiled(folder: Path, text: str, *flags: str) -> Path:
    """A host program."""
    (folder / "oracle.cpp").write_text(text)
    command = ["g++", "-std=c++17", "-w", *flags, "oracle.cpp", "-o", "oracle"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[:2000]
    return folder / "oracle"


def cuda_headers() -> Path:
    """Headers of the installed CUDA runtime wheel."""
    spec = importlib.util.find_spec("nvidia.cu13")
    folders = [Path(found) / "include" for found in (spec.submodule_search_locations if spec else None) or ()]
    found = [folder for folder in folders if (folder / "cuda_occupancy.h").is_file()]
    if not found:
        pytest.skip("the installed CUDA wheels bring no cuda_occupancy.h")
    return found[0]


@pytest.mark.skipif(shutil.which("g++") is None, reason="NVIDIA's calculator is a header for a host compiler")
def test_against_the_calculator(tmp_path: Path) -> None:
    """Every capability, and registers, shared memory and block sizes around every step: the same blocks."""
    program = compiled(tmp_path, ORACLE, f"-I{cuda_headers()}")
    registers = [1, 8, 9, 16, 24, 32, 33, 40, 41, 63, 64, 65, 80, 96, 97, 127, 128, 129, 168, 169, 200, 254, 255]
    shared = [0, 1, 127, 128, 129, 1000, 1024, 1025, 4096, 8191, 10_000, 16_384, 30_000, 47_000, 48 * 1024]
    sizes = [1, 31, 32, 33, 64, 96, 128, 160, 192, 256, 257, 384, 480, 512, 640, 768, 992, 1000, 1024]
    cases = list(itertools.product(LIMITS, registers, shared, sizes))
    lines = [
        f"{cc[0]} {cc[1]} {LIMITS[cc].threads} {LIMITS[cc].shared} {used} {kept} {size}"
        for cc, used, kept, size in cases
    ]
    done = subprocess.run([program], input="\n".join(lines), capture_output=True, text=True, timeout=120, check=True)
    answers = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert len(answers) == len(cases)
    for (cc, used, kept, size), (error, blocks, most) in zip(cases, answers, strict=True):
        assert error == 0
        assert (active_blocks(cc, used, kept, size)[0], LIMITS[cc].blocks) == (blocks, most), (cc, used, kept, size)


@pytest.mark.slow
def test_against_the_published_limits(tmp_path: Path) -> None:
    """Every limit is the one that libcu++ publishes, and one that is not is noticed."""
    if probe().version < (13, 3):
        pytest.skip("this NVRTC carries no libcu++")

    def compile_with(limits: Mapping[Capability, Limits]) -> None:
        text = "".join(TRAITS.format(number=10 * cc[0] + cc[1], **found._asdict()) for cc, found in limits.items())
        ahead = "#include <cuda/devices>\n#define ARCH(n) cuda::arch_traits_for(cuda::compute_capability{n})\n"
        files = {"k.cu": ahead + text + KERNEL}
        compile_alone(make_job(write(tmp_path, files), toolkit_headers="bundled", options={"std": "c++20"}))

    compile_with(LIMITS)
    with pytest.raises(CompilationError, match="static assertion failed"):
        compile_with({**LIMITS, (9, 0): Limits(2048, 32, 227 * 1024)})


def resources(registers: int, shared: int = 0) -> Resources:
    """What a kernel needs; only these two count."""
    return Resources(
        registers=registers, shared_bytes=shared, local_bytes=0, stack_bytes=0, constant_bytes=0, spill_bytes=0
    )


def test_best() -> None:
    """The best block size, what limits it, and the system's share of shared memory counted once."""
    sm_80, sm_90 = Architecture(80), Architecture(90)
    assert best_occupancy(sm_80, resources(32)) == (100, 64, "warps")
    best = best_occupancy(sm_80, resources(255))
    assert best is not None and (best.percent, best.limit) == (12, "registers")
    heavy = best_occupancy(sm_80, resources(16, 48 * 1024))
    assert heavy == (100, 1024, "warps")
    assert best_occupancy(sm_90, resources(16, 48 * 1024 + 1024)) == best_occupancy(sm_90, resources(16, 49 * 1024))
    assert best_occupancy(Architecture(60), resources(32)) is None


def test_every_capability_has_its_limits() -> None:
    """The table covers what the package's own table of capabilities has."""
    assert set(LIMITS) == set(CAPABILITIES)
