# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""How time and memory grow with the number of kernels: a warm build of each size, and what is done with its wheel.

    python benchmarks/builds/scale.py --kernels 125 250 500 1000

Every kernel is compiled for eight architectures. All files say the same but for a comment, so that eight compiles fill
the cache; each job has an entry of its own there, as it would have if they differed.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from hatch_cuda_kernels.arch import Architecture
from hatch_cuda_kernels.build import make_units
from hatch_cuda_kernels.cache import KernelCache
from hatch_cuda_kernels.compiler import compile_job
from hatch_cuda_kernels.config import Config
from hatch_cuda_kernels.jobs import make_job
from hatch_cuda_kernels.modules import ShippedPackage, find_modules
from hatch_cuda_kernels.nvrtc import workspace
from hatch_cuda_kernels.plan import CompiledImage
from hatch_cuda_kernels.toolchain import detect, probe

ARCHS = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120", "compute_80")
KERNEL = 'extern "C" __global__ void k(float* x) { x[threadIdx.x] *= 2.0f; }\n'
TABLE = f"archs = {json.dumps(ARCHS)}\n"
PROJECT = f"""\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "demo"
version = "1.0"
requires-python = ">=3.10"

[tool.hatch.build.hooks.cuda-kernels]
{TABLE}"""


def write_project(root: Path, count: int) -> None:
    """A package with that many sources."""
    (root / "demo").mkdir(parents=True)
    (root / "demo/__init__.py").touch()
    (root / "pyproject.toml").write_text(PROJECT)
    for number in range(count):
        (root / f"demo/k{number}.cu").write_text(f"// {number}\n{KERNEL}")


def fill(root: Path, location: Path) -> None:
    """Put the image of every job into the cache."""
    where = "tool.hatch.build.hooks.cuda-kernels"
    config = Config.from_table({"archs": list(ARCHS)}, where=where)
    specs = find_modules(config, root, [ShippedPackage(name="demo", folder="demo")], where=where)
    images: dict[str, CompiledImage] = {}
    with workspace() as space, KernelCache.open(str(location)) as cache:
        toolchain = detect(cache, probe)
        for unit in make_units(config, root, specs):
            for arch in ARCHS:
                job = make_job(unit, Architecture.parse(arch), toolchain)
                image = images.get(arch) or images.setdefault(arch, compile_job(job, space))
                files = {file.label: file.sha256 for file in unit.closure.files.values()}
                reads = dataclasses.replace(image.reads, files=files)
                cache.store(job, dataclasses.replace(image, reads=reads))


def timed(command: Sequence[str], folder: Path, location: Path) -> tuple[float, int, str]:
    """(seconds, peak bytes of the process, output) of a command."""
    code = (
        "import resource, subprocess, sys\n"
        "done = subprocess.run(sys.argv[1:], capture_output=True, text=True)\n"
        "print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
        "print(done.stdout, done.stderr)"
    )
    environment = {**os.environ, "HATCH_CUDA_KERNELS_CACHE": str(location)}
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code, *command], cwd=folder, env=environment, capture_output=True,
                          text=True, check=True)  # fmt: skip
    seconds = time.perf_counter() - begin
    status, peak = map(int, done.stdout.split("\n")[0].split())
    if status:
        raise SystemExit(done.stdout)
    return seconds, peak * 1024, done.stdout


def main() -> None:
    """Print one row for each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=int, nargs="+", default=[125, 250, 500, 1000])
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    print("| images | warm build | peak memory | `inspect` | `verify` | manifest |\n|---|---|---|---|---|---|")
    for count in args.kernels:
        with tempfile.TemporaryDirectory(prefix="scale-") as folder:
            root, location = Path(folder, "project"), Path(folder, "cache")
            write_project(root, count)
            fill(root, location)
            build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
            seconds, peak, output = timed(build, root, location)
            assert f"{count * len(ARCHS)} cached, 0 compiled" in output, output
            command = [sys.executable, "-m", "hatch_cuda_kernels"]
            wheel = str(next(Path(folder).glob("*.whl")))
            shown = [timed([*command, name, wheel], root, location)[0] for name in ("inspect", "verify")]
            code = "import sys, zipfile; print(zipfile.ZipFile(sys.argv[1]).getinfo(sys.argv[2]).file_size)"
            members = [sys.executable, "-c", code, wheel, "demo/_cuda_kernels/manifest.json"]
            size = int(timed(members, root, location)[2].split()[2])
            print(f"| {count * len(ARCHS)} | {seconds:.2f} s | {peak / 1e6:.0f} MB | {shown[0]:.2f} s "
                  f"| {shown[1]:.2f} s | {size / 1e6:.1f} MB |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
