# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The device at hand, packages built for it, and a record of what was found."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support import Result, Site, build_demo, run_python

RECORD = "GPU_RECORD"
"""Environment variable: the file that gets the record of a run."""

_WHERE = """
from cuda.bindings import driver
from cuda.core import Device
device = Device()
status, count = driver.cuDeviceGetCount()
number = int(driver.cuDriverGetVersion()[1])
with open("/proc/self/maps") as stream:
    libraries = {line.split()[-1] for line in stream if "libcuda.so" in line}
report({"name": device.name, "capability": list(device.compute_capability), "devices": int(count),
        "driver": [number // 1000, number % 1000 // 10], "library": sorted(libraries),
        "fake": "FAKE_CUDA_DEVICES" in os.environ and "fake" in device.name.lower()})
"""

_PRELUDE = """
import numpy as np
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, launch
from hatch_cuda_kernels import check_arguments, explain, load_kernel, load_module

device = Device()
device.set_current()
stream = device.create_stream()
fake = "FAKE_CUDA_DEVICES" in os.environ
kept = []

def call(result):
    status, *rest = result
    assert not status, status
    return rest[0] if rest else None

def up(array):
    buffer = device.allocate(array.nbytes, stream=stream)
    stream.sync()
    call(driver.cuMemcpyHtoD(int(buffer.handle), array.ctypes.data, array.nbytes))
    kept.append(buffer)
    return buffer

def down(buffer, like):
    stream.sync()
    array = np.empty_like(like)
    call(driver.cuMemcpyDtoH(array.ctypes.data, int(buffer.handle), array.nbytes))
    return array

def start(kernel, count, *arguments):
    launch(stream, LaunchConfig(grid=-(-count // 128), block=128), kernel, *arguments)

def error(found, wanted):
    return float(np.max(np.abs(found.astype(np.float64) - wanted) / np.maximum(1, np.abs(wanted))))
"""


@dataclass(frozen=True)
class Gpu:
    """The device that the checks run on."""

    name: str
    capability: tuple[int, int]
    driver: tuple[int, int]
    devices: int
    fake: bool

    @property
    def number(self) -> int:
        """90 for 9.0."""
        return self.capability[0] * 10 + self.capability[1]


_facts: dict[str, Any] = {}
_checks: list[dict[str, Any]] = []


@pytest.fixture(scope="session")
def gpu() -> Gpu:
    """The device, or a skip where there is none."""
    result = run_python(_WHERE, os.environ, timeout=60, check=False)
    if result.status or result.value is None:
        pytest.skip(f"no GPU: {result.output.strip().splitlines()[-1]}")
    found = result.value
    _facts.update(found)
    return Gpu(found["name"], tuple(found["capability"]), tuple(found["driver"]), found["devices"], found["fake"])


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Sequence[str]], Site]:
    """Builds the package `demo` for some architectures."""
    cache = tmp_path_factory.mktemp("build-cache")
    return lambda archs: build_demo(tmp_path_factory.mktemp("demo"), archs=archs, cache=cache)


Run = Callable[..., Result]


@pytest.fixture
def run(gpu: Gpu, tmp_path: Path) -> Run:
    """Runs code on the device in a fresh process; `site` is the package that it loads from."""

    def start(code: str, site: Site, *arguments: str, jit: str | None = None, **options: Any) -> Result:
        variables = {k: v for k, v in os.environ.items() if not k.startswith("HATCH_CUDA_KERNELS_")}
        variables["HATCH_CUDA_KERNELS_CACHE"] = str(tmp_path / "cache")
        if jit is not None:
            variables["HATCH_CUDA_KERNELS_JIT"] = jit
        return run_python(_PRELUDE + code, variables, site.root, arguments=arguments, timeout=90, **options)

    return start


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep one entry for each check."""
    if report.when == "call" or report.outcome != "passed":
        reason = ""
        if report.skipped and isinstance(report.longrepr, tuple):
            reason = report.longrepr[2].removeprefix("Skipped: ")
        elif report.failed:
            reason = str(report.longrepr)[-2000:]
        name = report.nodeid.rpartition("::")[2]
        entry = {"check": name, "outcome": report.outcome, "seconds": round(report.duration, 3)}
        _checks.append({**entry, "reason": reason, "found": dict(report.user_properties)})


def pytest_sessionfinish() -> None:
    """Write the record."""
    path = os.environ.get(RECORD)
    if path:
        record = {
            "schema": 1,
            "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "device": _facts,
            "python": sys.version.split()[0],
            "versions": {name: found for name in _NAMES if (found := _version(name))},
            "checks": _checks,
        }
        Path(path).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


_NAMES = (
    "hatch-cuda-kernels",
    "mandelscope",
    "cuda-core",
    "cuda-bindings",
    "nvidia-cuda-nvrtc",
    "nvidia-nvjitlink",
    "numpy",
    "torch",
    "cupy-cuda13x",
    "cupy-cuda12x",
)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
