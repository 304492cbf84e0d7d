# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Cores and memory as the container has them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from jobs import write
from support import run_python

from hatch_cuda_kernels.machine import (
    available_cores,
    available_memory,
    resident_memory,
)

KB, MB = 1 << 10, 1 << 20
MEMINFO = "MemTotal: 16384000 kB\nMemFree: 1000 kB\nMemAvailable: 8192000 kB\n"
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")


def machine(tmp_path: Path, cgroup: str, files: dict[str, str]) -> Path:
    """A root with what the kernel would say."""
    return write(tmp_path, {"proc/meminfo": MEMINFO, "proc/self/cgroup": cgroup, **files})


@pytest.mark.parametrize(
    ("cgroup", "files", "expected"),
    [
        ("0::/\n", {}, 8192000 * KB),
        ("0::/\n", {"memory.max": "max\n", "memory.current": "1000\n"}, 8192000 * KB),
        ("0::/\n", {"memory.max": f"{900 * MB}\n", "memory.current": f"{500 * MB}\n"}, 400 * MB),
        # files that were read once are given back for the asking
        (
            "0::/\n",
            {
                "memory.max": f"{900 * MB}\n",
                "memory.current": f"{500 * MB}\n",
                "memory.stat": f"anon 5\ninactive_file {300 * MB}\n",
            },
            700 * MB,
        ),
        # a limit of a group above, and one of its own
        (
            "0::/a/b\n",
            {
                "a/memory.max": f"{200 * MB}",
                "a/memory.current": f"{100 * MB}",
                "a/b/memory.max": f"{500 * MB}",
                "a/b/memory.current": "0",
            },
            100 * MB,
        ),
        ("0::/\n", {"memory.max": f"{900 * MB}", "memory.current": f"{950 * MB}"}, 0),
        # version 1
        (
            "5:memory:/x\n1:name=systemd:/x\n0::/\n",
            {"memory/memory.limit_in_bytes": f"{300 * MB}", "memory/memory.usage_in_bytes": f"{100 * MB}"},
            200 * MB,
        ),
        (
            "5:memory:/\n",
            {"memory/memory.limit_in_bytes": "9223372036854771712", "memory/memory.usage_in_bytes": "5"},
            8192000 * KB,
        ),
        ("what\n", {"memory.max": "junk", "memory.current": ""}, 8192000 * KB),
    ],
)
def test_memory(tmp_path: Path, cgroup: str, files: dict[str, str], expected: int) -> None:
    """The least of what the machine and every control group above this process have left."""
    root = machine(tmp_path, cgroup, {f"sys/fs/cgroup/{name}": text for name, text in files.items()})
    assert available_memory(root) == expected


@pytest.mark.parametrize(
    ("cgroup", "files", "limit"),
    [
        ("0::/\n", {"cpu.max": "max 100000\n"}, None),
        ("0::/\n", {"cpu.max": "100000 100000\n"}, 1),
        ("0::/\n", {"cpu.max": "50000 100000\n"}, 1),
        ("0::/x\n", {"cpu.max": "100000 100000\n", "x/cpu.max": "900000 100000"}, 1),
        ("3:cpu,cpuacct:/\n", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ("3:cpu,cpuacct:/\n", {"cpu/cpu.cfs_quota_us": "90000", "cpu/cpu.cfs_period_us": "100000"}, 1),
        ("0::/\n", {"cpu.max": "0 0 0\n"}, None),
    ],
)
def test_cores(tmp_path: Path, cgroup: str, files: dict[str, str], limit: int | None) -> None:
    """A container's share of processor time counts, not the machine's cores; there is always one."""
    root = machine(tmp_path, cgroup, {f"sys/fs/cgroup/{name}": text for name, text in files.items()})
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    assert available_cores(root) == (cores if limit is None else min(cores, limit))


def test_nothing_is_known(tmp_path: Path) -> None:
    """Where the system tells nothing, nothing is limited."""
    assert available_memory(tmp_path) is None
    assert available_cores(tmp_path) >= 1
    assert resident_memory(2**22 + 1) == 0


PEAK = """
from hatch_cuda_kernels.machine import available_memory, forget_peak, peak_memory, resident_memory
MB = 1 << 20
forget_peak()
before = peak_memory()
taken = b"x" * (80 * MB)
grown, resident = peak_memory() - before, resident_memory(os.getpid())
del taken
forget_peak()
report([grown // MB, resident // MB, (peak_memory() - before) // MB, available_memory()])
"""


@linux
def test_peak() -> None:
    """The peak is that of the work since it was forgotten, in a process that has not had more memory before."""
    grown, resident, after, available = run_python(PEAK, os.environ).value
    assert grown > 70 < resident
    assert after < 70
    assert available > 0
