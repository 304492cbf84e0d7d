# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What a compile is expected to take: what it took last time, else a guess by the headers that it names.

Nothing but the order of work and the number of compiles at once hangs on it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from .plan import CompiledImage, CompileJob, Unit
from .toolchain import Memory

__all__ = ["Cost", "Costs", "guess"]


@dataclass(frozen=True)
class Cost:
    """Time and memory of one compile."""

    seconds: float
    memory: int
    """Most bytes of memory."""


_MB = 1 << 20
_FAMILIES = (
    (("cutlass/", "cute/"), Cost(20.0, 1600 * _MB)),
    (("cub/", "thrust/"), Cost(2.0, 600 * _MB)),
    (("cuda/", "cooperative_groups"), Cost(1.0, 450 * _MB)),
)
_PLAIN = Cost(0.06, 200 * _MB)


class Costs:
    """The costs of a package's compiles, by module and architecture, whatever their sources say by now."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._known: dict[str, dict[str, Cost]] = {}
        """Package -> module and architecture -> what it took last."""
        self._learned: dict[str, None] = {}
        self._guesses: dict[Unit, Cost] = {}

    def of(self, job: CompileJob) -> Cost:
        """What a job is expected to take."""
        known = self._package(job.unit.package)
        return known.get(_name(job)) or self._guess(job.unit)

    def learn(self, job: CompileJob, image: CompiledImage) -> None:
        """Take in what a compile took."""
        self._learned[job.unit.package] = None
        known = self._package(job.unit.package)
        known[_name(job)] = Cost(image.seconds, image.memory or self._guess(job.unit).memory)

    def remember(self) -> None:
        """Keep what was learned for the next build, beside what was known."""
        for package in self._learned:
            rows = {name: [round(cost.seconds, 3), cost.memory] for name, cost in self._known[package].items()}
            self._memory.remember(_key(package), json.dumps(rows, sort_keys=True).encode())

    def _package(self, package: str) -> dict[str, Cost]:
        if package not in self._known:
            self._known[package] = dict(_parse(self._memory.recall(_key(package))))
        return self._known[package]

    def _guess(self, unit: Unit) -> Cost:
        if unit not in self._guesses:
            files = unit.closure.files.values()
            self._guesses[unit] = guess({include.spelling for file in files for include in file.scan.includes})
        return self._guesses[unit]


def guess(names: Collection[str]) -> Cost:
    """What a compile is expected to take that reads these headers, among others."""
    return next((cost for starts, cost in _FAMILIES if any(name.startswith(starts) for name in names)), _PLAIN)


def _key(package: str) -> str:
    return f"costs {package}"


def _name(job: CompileJob) -> str:
    return f"{job.unit.module} {job.architecture}"


def _parse(data: bytes | None) -> Mapping[str, Cost]:
    """What was remembered; nothing of it is believed that is no sane number."""
    try:
        rows: dict[str, Any] = json.loads(data or b"{}")
        return {
            name: Cost(float(seconds), int(memory))
            for name, (seconds, memory) in rows.items()
            if 0 <= seconds < 1e6 and 0 <= memory < 1 << 45
        }
    except (ValueError, TypeError, AttributeError):
        return {}
