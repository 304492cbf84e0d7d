# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""A small package with kernels, built by the real code and laid out as by an installer; processes that use it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hatch_cuda_kernels.build import build_packages
from hatch_cuda_kernels.config import Config
from hatch_cuda_kernels.editable import EDITABLE_FILE, describe_editable
from hatch_cuda_kernels.modules import ShippedPackage, find_modules

__all__ = [
    "ARCHS",
    "DEMO",
    "EXPRESSIONS",
    "Quiet",
    "Result",
    "Site",
    "build_demo",
    "edit_manifest",
    "install_editable",
    "kill_writers",
    "nowhere",
    "run_python",
    "write_project",
]

ARCHS = ("sm_80", "sm_90", "sm_90a", "compute_80")
EXPRESSIONS = ("axpby<float>", "axpby<double>")
WHERE = "tool.hatch.build.hooks.cuda-kernels"

_LOAD = "def load(name):\n    return load_kernel(name)\n"

DEMO: Mapping[str, str] = {
    "demo/__init__.py": "from hatch_cuda_kernels import load_kernel\n\n\n" + _LOAD,
    "demo/__main__.py": "from hatch_cuda_kernels import load_kernel\n\nload_kernel('saxpy')\nprint('ran')\n",
    "demo/module.py": "from hatch_cuda_kernels import load_kernel\n\n\n" + _LOAD,
    "demo/sub/__init__.py": "",
    "demo/sub/deep.py": "from hatch_cuda_kernels import load_kernel\n\n\n" + _LOAD,
    "include/demo/gain.cuh": "#pragma once\n#define GAIN 2.0f\n",
    "demo/vector.cu": """\
#include <demo/gain.cuh>

extern "C" __global__ void saxpy(float a, const float* x, float* y, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

namespace demo {

__global__ void scale(float* x, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= GAIN;
}

}  // namespace demo

template <typename T>
__global__ void axpby(T a, const T* x, T b, T* y, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + b * y[i];
}

#if __CUDA_ARCH__ >= 900
extern "C" __global__ void hopper(int* out) { *out = __CUDA_ARCH__; }
#endif
""",
    "demo/state.cu": """\
extern "C" {

__constant__ float coefficients[4];
__device__ int counter;

__global__ void polynomial(const float* x, float* y, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    y[i] = ((coefficients[3] * x[i] + coefficients[2]) * x[i] + coefficients[1]) * x[i] + coefficients[0];
    atomicAdd(&counter, 1);
}

}
""",
    "demo/one.cu": 'extern "C" __global__ void which(int* out) { *out = 1; }\n',
    "demo/two.cu": 'extern "C" __global__ void which(int* out) { *out = 2; }\n',
}


class Quiet:
    """A reporter that drops what it is told."""

    def info(self, message: str) -> None:
        """See account.Reporter."""

    def step(self, done: int, total: int, what: str) -> None:
        """See account.Reporter."""

    def warning(self, message: str) -> None:
        """See account.Reporter."""


def nowhere(package: str, name: str, pieces: Iterable[bytes]) -> None:
    """Takes a file of a build and drops it; see build.Put."""


@dataclass(frozen=True)
class Site:
    """A folder on `sys.path` that holds one package."""

    root: Path
    package: str = "demo"

    @property
    def kernels(self) -> Path:
        """The folder with the manifest."""
        return self.root / self.package / "_cuda_kernels"

    def manifest(self) -> Any:
        """The manifest as parsed JSON."""
        return json.loads((self.kernels / "manifest.json").read_bytes())

    def image(self, module: str, architecture: str) -> Path:
        """The file of an image."""
        suffix = "ptx" if architecture.startswith("compute") else "cubin"
        return self.kernels / f"{module}.{architecture}.{suffix}"

    def copy(self, root: Path) -> Site:
        """The same, elsewhere, to be damaged."""
        shutil.copytree(self.root, root)
        return Site(root, self.package)


def write_project(root: Path, files: Mapping[str, str] = DEMO) -> Path:
    """Write a project's files and return its root."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def _table(archs: Sequence[str], cache: Path, extra: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "archs": list(archs),
        "include-dirs": ["include"],
        "cache": str(cache),
        "modules": [{"source": "demo/vector.cu", "name-expressions": list(EXPRESSIONS)}],
        **extra,
    }


def build_demo(
    directory: Path,
    *,
    archs: Sequence[str] = ARCHS,
    extra: Mapping[str, Any] | None = None,
    cache: Path | None = None,
    files: Mapping[str, str] = DEMO,
) -> Site:
    """Build the package `demo` below `directory` and lay out its wheel there. `extra` is more of the hook table."""
    root = write_project(directory / "project", files)
    config = Config.from_table(_table(archs, cache or directory / "cache", extra or {}), where=WHERE)
    specs = find_modules(config, root, [ShippedPackage(name="demo", folder="demo")], where=WHERE)
    site = directory / "site"
    shutil.copytree(root / "demo", site / "demo", ignore=shutil.ignore_patterns("*.cu"))

    def put(package: str, name: str, pieces: Iterable[bytes]) -> None:
        path = site / package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(pieces))

    build_packages(config, root, specs, where=WHERE, reporter=Quiet(), put=put).close()
    return Site(site)


def edit_manifest(site: Site, change: Any) -> None:
    """Rewrite a manifest; `change` gets the parsed JSON to modify. Image digests are made to fit the files again."""
    value = site.manifest()
    change(value)
    for module in value["modules"]:
        for image in module["images"]:
            path = site.kernels / image["file"]
            if path.is_file():
                data = path.read_bytes()
                image["size"], image["sha256"] = len(data), hashlib.sha256(data).hexdigest()
    (site.kernels / "manifest.json").write_text(json.dumps(value), encoding="utf-8")


def install_editable(directory: Path, *, archs: Sequence[str] = ARCHS) -> tuple[Path, Path]:
    """An editable install of the package `demo`: its project's root, and the folder with its `.dist-info`."""
    lines = [
        "[tool.hatch.build.hooks.cuda-kernels]",
        f"archs = {json.dumps(list(archs))}",
        'include-dirs = ["include"]',
    ]
    lines += ["[[tool.hatch.build.hooks.cuda-kernels.modules]]", 'source = "demo/vector.cu"']
    lines.append(f"name-expressions = {json.dumps(list(EXPRESSIONS))}")
    root = write_project(directory / "project", {**DEMO, "pyproject.toml": "\n".join(lines) + "\n"})
    table = _table(archs, directory / "cache", {})
    del table["cache"]
    config = Config.from_table(table, where=WHERE)
    packages = [ShippedPackage(name="demo", folder="demo")]
    specs = find_modules(config, root, packages, where=WHERE)
    site = directory / "site"
    information = site / "demo-1.0.dist-info"
    note = information / "extra_metadata" / EDITABLE_FILE
    note.parent.mkdir(parents=True)
    note.write_bytes(describe_editable(root, packages, specs))
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n", encoding="utf-8")
    return root, site


@dataclass(frozen=True)
class Result:
    """How a process ended, and what it reported."""

    status: int
    value: Any
    output: str


_PRELUDE = """\
import json, os, sys, time, warnings
def report(value):
    print("\\n@" + json.dumps(value), flush=True)
def attempt(function, *arguments, **options):
    try:
        result = function(*arguments, **options)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "ok"
caught = []
warnings.simplefilter("always")
warnings.showwarning = lambda message, category, *rest: caught.append(f"{category.__name__}: {message}")
"""


def run_python(
    code: str,
    environment: Mapping[str, str],
    *path: Path | str,
    options: Iterable[str] = (),
    arguments: Iterable[str] = (),
    timeout: float = 60,
    check: bool = True,
    cwd: Path | None = None,
    executable: str = sys.executable,
) -> Result:
    """Run code in a fresh interpreter under a hard time limit, with `path` on its `sys.path`.

    The code has `report(value)`, `attempt(function, ...)` ("ok" or the error) and `caught` (warnings).
    """
    variables = {**environment, "PYTHONPATH": os.pathsep.join(map(str, path)), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [executable, *options, "-c", _PRELUDE + code, *arguments],
        env=variables,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        cwd=cwd,
    )
    output = done.stdout + done.stderr
    assert not check or done.returncode == 0, output
    reports = [line for line in done.stdout.splitlines() if line.startswith("@")]
    return Result(done.returncode, json.loads(reports[-1][1:]) if reports else None, output)


_WRITER = """\
import random
from hatch_cuda_kernels.stores import location, opening
layer, = opening.open_layers([location.parse_location(sys.argv[1])], max_size=5_000_000, alone=True)
draw = random.Random(int(sys.argv[2]))
layer.write("k0", b"k0")
print("ready", flush=True)
while True:
    key = f"k{draw.randrange(40)}"
    if draw.random() < 0.5:
        layer.write(key, key.encode() * draw.choice([10, 1000, 4000, 40000]))
    else:
        data = layer.read(key)
        if data is not None and data != key.encode() * (len(data) // len(key)):
            print("WRONG", key, flush=True)
    for text in caught:
        print("WARNED", text, flush=True)
    caught.clear()
"""


def kill_writers(place: str, delays: Sequence[float], *, seed: int = 0) -> str:
    """Let processes read and write one place of the cache, and kill them, each after its delay once all are at it; what
    they said of values that nobody wrote ("WRONG") and of warnings ("WARNED")."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _PRELUDE + _WRITER, place, str(seed + number)], stdout=subprocess.PIPE, text=True
        )
        for number in range(len(delays))
    ]
    for process in processes:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process, delay in zip(processes, delays, strict=True):
        time.sleep(delay)
        process.kill()
    return "".join(process.communicate()[0] for process in processes)
