# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""How time and memory grow with the number of kernels: a warm build of each size, and what is done with its wheel.

    python benchmarks/builds/scale.py --kernels 250 500 1000 2000

Every kernel is a module of its own for eight architectures. All files say the same but for a comment, so that eight
compiles fill the cache; each job has an entry of its own there, as it would have if they differed. Filling takes
minutes on a disk that is waited for; `--cache FOLDER` keeps it for the next run. The folder is this user's alone,
as the default one is. "packaging" is hatchling alone with the same finished files, "import" Python with cuda.core;
every process is counted from its start. Seconds are processor time, user's and system's, which other work on the
machine changes little; of three runs the one counts that took least.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
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
FINISHED = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "demo"
version = "1.0"
requires-python = ">=3.10"
"""
PROJECT = f"""\
{FINISHED}
[tool.hatch.build.hooks.cuda-kernels]
archs = {json.dumps(ARCHS)}
"""
COMMANDS = {
    "inspect": (),
    "verify": (),
    "explain": ("k7:k", "--compute-capability", "8.6"),
    "coverage": (),
    "diff": ("WHEEL",),
    "report": ("-o", "report.html"),
}
HOUSEKEEPING = ("info", "verify", "clear")
_WRITERS = 8
LOAD = """\
import time
from hatch_cuda_kernels.catalog import installed_package
begin = time.perf_counter()
package = installed_package("demo")
image = next(i for i in package.module("k7").images if str(i.architecture) == "sm_86")
assert package.read_image(image)
print(time.perf_counter() - begin)
"""


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
    location.mkdir(mode=0o700, exist_ok=True)
    with workspace() as space, KernelCache.open(str(location)) as cache, ThreadPoolExecutor(_WRITERS) as writers:
        toolchain = detect(cache, probe)
        for unit in make_units(root, specs):
            for arch in ARCHS:
                job = make_job(unit, Architecture.parse(arch), toolchain)
                image = images.get(arch) or images.setdefault(arch, compile_job(job, space))
                files = {file.label: file.sha256 for file in unit.closure.files.values()}
                reads = dataclasses.replace(image.reads, files=files)
                if cache.recheck(job) is None:
                    writers.submit(cache.store, job, dataclasses.replace(image, reads=reads))


def copy_entries(location: Path, copy: Path, count: int) -> None:
    """A cache with that many of the entries."""
    for path in itertools.islice((location / "entries").glob("*/*"), count):
        target = copy / path.relative_to(location)
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copyfile(path, target)


@dataclasses.dataclass(frozen=True)
class Timed:
    """Some runs of a command."""

    seconds: float
    """Of processor time, user's and system's, of the run that took least."""
    memory: int
    """Most bytes that a process had."""
    output: str


def timed(command: Sequence[str], folder: Path, location: Path, *, times: int = 3) -> Timed:
    """Run a command several times."""
    code = (
        "import resource, subprocess, sys\n"
        "done = subprocess.run(sys.argv[1:], capture_output=True, text=True)\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(done.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss)\n"
        "print(done.stdout, done.stderr)"
    )
    environment = {**os.environ, "HATCH_CUDA_KERNELS_CACHE": str(location)}
    runs = []
    for _ in range(times):
        done = subprocess.run([sys.executable, "-c", code, *command], cwd=folder, env=environment, capture_output=True,
                              text=True, check=True)  # fmt: skip
        line, _, output = done.stdout.partition("\n")
        status, seconds, peak = line.split()
        if status != "0":
            raise SystemExit(output)
        runs.append(Timed(float(seconds), int(peak) * 1024, output))
    return Timed(
        seconds=min(run.seconds for run in runs),
        memory=max(run.memory for run in runs),
        output=runs[0].output,
    )


def measure(folder: Path, count: int, location: Path) -> dict[str, float]:
    """Seconds of each step with that many kernels, and bytes of memory and of the manifest."""
    found: dict[str, float] = {}
    root, finished, site = folder / f"project-{count}", folder / f"finished-{count}", folder / f"site-{count}"
    write_project(root, count)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d"]
    timed([*command, str(root)], root, location, times=1)  # what it scanned is remembered then, and bundled
    build = timed([*command, str(root)], root, location)
    assert f"{count * len(ARCHS)} cached, 0 compiled" in build.output, build.output
    wheel = next(root.glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
        found["manifest"] = archive.getinfo("demo/_cuda_kernels/manifest.json").file_size
    shutil.copytree(site / "demo", finished / "demo")
    (finished / "pyproject.toml").write_text(FINISHED)
    packaging = timed([*command, str(finished)], finished, location)
    imports = timed([sys.executable, "-c", "import cuda.core"], root, location)
    found |= {"memory, build": build.memory, "memory, packaging": packaging.memory}
    found |= {"build": build.seconds, "packaging": packaging.seconds, "import": imports.seconds}
    for name, rest in COMMANDS.items():
        arguments = [str(wheel) if word == "WHEEL" else word for word in rest]
        inspected = timed([sys.executable, "-m", "hatch_cuda_kernels", name, str(wheel), *arguments], root, location)
        found[name] = inspected.seconds
    copy = folder / f"cache-{count}"
    copy.mkdir(mode=0o700)
    copy_entries(location, copy, count * len(ARCHS))
    for action in HOUSEKEEPING:
        kept = [sys.executable, "-m", "hatch_cuda_kernels", "cache", action]
        found[f"cache {action}"] = timed(kept, root, copy, times=1 if action == "clear" else 3).seconds
    loads = (timed([sys.executable, "-c", LOAD], site, location, times=1).output for _ in range(5))
    found["load"] = min(map(float, loads))
    return found


def main() -> None:
    """Print the figures of each size, and the growth from size to size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=int, nargs="+", default=[250, 500, 1000, 2000])
    parser.add_argument("--cache", type=Path, help="folder of the cache; without it one of this run alone")
    parser.add_argument("--fill-only", action="store_true", help="measure nothing")
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with tempfile.TemporaryDirectory(prefix="scale-") as name:
        folder = Path(name)
        write_project(folder / "largest", max(args.kernels))
        location = args.cache or folder / "cache"
        fill(folder / "largest", location)
        if args.fill_only:
            return
        found = {count: measure(folder, count, location) for count in args.kernels}
    images = [count * len(ARCHS) for count in found]
    print(f"| | {' | '.join(f'{number:,} images' for number in images)} | growth |")
    print("|---" * (len(images) + 2) + "|")
    for key in found[args.kernels[0]]:
        unit, scale = ("MB", 1e6) if key.startswith("m") else ("ms", 1e-3) if key == "load" else ("s", 1)
        values = [found[count][key] / scale for count in found]
        print(f"| {key} | {' | '.join(f'{value:.2f} {unit}' for value in values)} | {values[-1] / values[0]:.2f} x |")
    ratios = [row["build"] / (row["packaging"] + row["import"]) for row in found.values()]
    print(f"| build / (packaging + import) | {' | '.join(f'{ratio:.2f}' for ratio in ratios)} | |")


if __name__ == "__main__":
    main()
