# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""How many warps of a kernel a multiprocessor holds at once, from NVIDIA's published limits.

The limits are those of the CUDA programming guide ("Compute Capabilities", technical specifications), the rules of
allocation those of the occupancy calculator that CUDA ships (`cuda_occupancy.h`); a test holds both tables against
that header and against libcu++'s `cuda/__device/arch_traits.h`. Where those two disagree (shared memory of 10.7) the
smaller value is taken. Dynamic shared memory and launch bounds are a matter of the launch, and not counted.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import NamedTuple

from .arch import Architecture, Capability
from .manifest import Resources

__all__ = ["LIMITS", "REGISTERS_PER_THREAD", "SOURCE", "Limits", "Occupancy", "active_blocks", "best_occupancy"]

SOURCE = "CUDA programming guide, Compute Capabilities; cuda_occupancy.h of CUDA 13"

_WARP = 32
_THREADS_PER_BLOCK = 1024
REGISTERS_PER_THREAD = 255
_REGISTERS = 64 * 1024
_REGISTER_UNIT = 256
_PARTITIONS = 4
_RESERVED = 1024
_FIRST_RESERVED: Capability = (8, 0)
"""From here on the system takes shared memory of each block."""
_FIRST_COUNTED = 90
"""From this architecture on a cubin's figure has what the system takes in it, where a kernel uses any."""


class Limits(NamedTuple):
    """What one multiprocessor of a compute capability holds: threads, blocks, and bytes of shared memory."""

    threads: int
    blocks: int
    shared: int


LIMITS: Mapping[Capability, Limits] = {
    (7, 5): Limits(1024, 16, 64 * 1024),
    (8, 0): Limits(2048, 32, 164 * 1024),
    (8, 6): Limits(1536, 16, 100 * 1024),
    (8, 7): Limits(1536, 16, 164 * 1024),
    (8, 8): Limits(1536, 16, 100 * 1024),
    (8, 9): Limits(1536, 24, 100 * 1024),
    (9, 0): Limits(2048, 32, 228 * 1024),
    (10, 0): Limits(2048, 32, 228 * 1024),
    (10, 3): Limits(2048, 32, 228 * 1024),
    (10, 7): Limits(1024, 16, 228 * 1024),
    (11, 0): Limits(1536, 24, 228 * 1024),
    (12, 0): Limits(1536, 24, 100 * 1024),
    (12, 1): Limits(1536, 24, 100 * 1024),
}


class Occupancy(NamedTuple):
    """The best that a kernel reaches on one capability, over all block sizes that are whole warps."""

    percent: int
    threads: int
    """The smallest block that reaches it."""
    limit: str
    """What keeps it from more: "warps", "registers", "shared memory" or "blocks"."""


@functools.lru_cache(maxsize=4096)
def best_occupancy(architecture: Architecture, found: Resources) -> Occupancy | None:
    """The best occupancy of a kernel on the capability that its image was made for; None where that is unknown."""
    limits = LIMITS.get(architecture.capability)
    if limits is None:
        return None
    shared = found.shared_bytes - (_RESERVED if architecture.number >= _FIRST_COUNTED and found.shared_bytes else 0)
    best = Occupancy(0, 0, "registers")
    for threads in range(_WARP, _THREADS_PER_BLOCK + 1, _WARP):
        blocks, limit = active_blocks(architecture.capability, found.registers, shared, threads)
        percent = 100 * blocks * threads // limits.threads
        if percent > best.percent:
            best = Occupancy(percent, threads, limit)
    return best


def active_blocks(capability: Capability, registers: int, shared: int, threads: int) -> tuple[int, str]:
    """Blocks of `threads` threads that a multiprocessor holds at once, and what limits them.

    `registers` are those of a thread, `shared` what a block uses itself.
    """
    limits = LIMITS[capability]
    warps = -(-threads // _WARP)
    unit = 256 if capability < _FIRST_RESERVED else 128
    block_shared = _round_up(shared + (_RESERVED if capability >= _FIRST_RESERVED else 0), unit)
    by_warps = limits.threads // _WARP // warps if threads <= _THREADS_PER_BLOCK else 0
    by_shared = limits.shared // block_shared if block_shared else limits.blocks
    by_registers = _blocks_by_registers(registers, warps) if registers else limits.blocks
    return min(
        (by_warps, "warps"), (limits.blocks, "blocks"), (by_registers, "registers"), (by_shared, "shared memory"),
        key=lambda found: found[0],
    )  # fmt: skip


def _blocks_by_registers(registers: int, warps: int) -> int:
    """Registers are allotted to warps, each of which lives in one of four partitions."""
    per_warp = _round_up(registers * _WARP, _REGISTER_UNIT)
    if per_warp * _round_up(warps, _PARTITIONS) > _REGISTERS:
        return 0
    return _REGISTERS // _PARTITIONS // per_warp * _PARTITIONS // warps


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
