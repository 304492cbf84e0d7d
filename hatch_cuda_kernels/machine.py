# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What this process may use of its machine: cores and memory, as the container that it runs in has them.

Linux tells all of it. Elsewhere memory is not known, and nothing is held back for want of it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

__all__ = [
    "available_cores",
    "available_memory",
    "forget_peak",
    "memory_folder",
    "offer_to_be_killed",
    "peak_memory",
    "resident_memory",
]

_IN_MEMORY = "/dev/shm"
_ROOM = 1 << 30

_UNLIMITED = 1 << 60
"""What version 1 of control groups says where there is no limit is more than this."""


def available_cores(root: Path = Path("/")) -> int:
    """Cores that this process may use: those it may run on, or what the control group's share of time amounts to."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for folder in _groups("cpu", root):
        quota, period = _number(folder / "cpu.cfs_quota_us"), _number(folder / "cpu.cfs_period_us")
        with suppress(OSError, ValueError):
            quota, period = (int(word) for word in (folder / "cpu.max").read_text().split())
        if quota and period and quota > 0:
            cores = min(cores, math.ceil(quota / period))
    return max(1, cores)


def available_memory(root: Path = Path("/")) -> int | None:
    """Bytes that can still be taken without pushing anything out; None where that is not known."""
    found = [_field(root / "proc/meminfo", "MemAvailable")]
    for folder in _groups("memory", root):
        for limit, used, cached in (
            ("memory.max", "memory.current", "inactive_file"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ):
            most, taken = _number(folder / limit), _number(folder / used)
            if most is not None and taken is not None and most < _UNLIMITED:
                found.append(most - taken + (_field(folder / "memory.stat", cached, unit=1) or 0))
    return max(0, min(known)) if (known := [number for number in found if number is not None]) else None


def memory_folder() -> str | None:
    """A folder in memory with room to spare, unless the user has said where temporary files go."""
    if any(os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP")) or not os.access(_IN_MEMORY, os.W_OK | os.X_OK):
        return None
    found = os.statvfs(_IN_MEMORY)
    return _IN_MEMORY if found.f_bavail * found.f_frsize >= _ROOM and os.path.ismount(_IN_MEMORY) else None


def resident_memory(pid: int) -> int:
    """Bytes of memory that a process has now; 0 where that is not known."""
    return _field(Path("/proc", str(pid), "status"), "VmRSS") or 0


def peak_memory() -> int:
    """Most bytes of memory that this process had since `forget_peak`; 0 where that is not known."""
    return _field(Path("/proc/self/status"), "VmHWM") or 0


def forget_peak() -> None:
    """Begin to measure the peak anew."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def offer_to_be_killed() -> None:
    """Make the system choose this process, and not the build or a desktop, when no memory is left at all."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _groups(controller: str, root: Path) -> Iterator[Path]:
    """Folders of this process's control group and those above it, which limit it as well."""
    with suppress(OSError, ValueError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and controller not in controllers.split(","):
                continue
            top = root / "sys/fs/cgroup" / (controller if controllers else "")
            folder = top / path.strip("/")
            while folder.is_relative_to(top):
                yield folder
                folder = folder.parent


def _number(path: Path) -> int | None:
    with suppress(OSError, ValueError):
        return int(path.read_text())
    return None


def _field(path: Path, name: str, *, unit: int = 1024) -> int | None:
    """A number out of lines such as `MemAvailable:  8123 kB`."""
    with suppress(OSError, ValueError, IndexError):
        for line in path.read_text().splitlines():
            words = line.replace(":", " ").split()
            if words[0] == name:
                return int(words[1]) * unit
    return None
