# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Where the time of a build goes: the build's own process, cold and warm, and what one compile takes, by its parts.

python benchmarks/builds/where.py > benchmarks/builds/profiles.md
"""

from __future__ import annotations

import json
import os
import platform
import pstats
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from serial import compile_one, laid_out
from sets import SETS, KernelSet
from ways import Hook, Tools

from hatch_cuda_kernels.arch import Architecture
from hatch_cuda_kernels.compiler import compile_job
from hatch_cuda_kernels.modules import ModuleSpec
from hatch_cuda_kernels.nvrtc import workspace
from hatch_cuda_kernels.plan import CompileJob, make_unit
from hatch_cuda_kernels.precompiled import Precompiled
from hatch_cuda_kernels.prefix import Prefix, shared_prefixes
from hatch_cuda_kernels.sources import ProjectTree
from hatch_cuda_kernels.toolchain import probe

_LINES = 14
_PHASES = ("CUDA C++ Front-End", "LibNVVM", "Total PTXAS Time")
_CODE = """\
import cProfile, pstats, sys
from hatchling.cli import hatchling
sys.argv[1:] = ["build", "-t", "wheel", "-d", sys.argv[2]]
profile = cProfile.Profile()
profile.enable()
try:
    hatchling()
except SystemExit:
    pass
profile.disable()
profile.dump_stats(sys.argv[0])
"""


def profile_build(way: Hook, out: str) -> str:
    """The functions of the build's process that took longest, themselves and all that they called."""
    file = Path(out, "profile")
    code = _CODE.replace("sys.argv[2]", repr(out)).replace("sys.argv[0]", repr(str(file)))
    subprocess.run([sys.executable, "-c", code], cwd=way.project, capture_output=True, check=True,
                   env={**os.environ, "HATCH_CUDA_KERNELS_CACHE": str(way.cache)})  # fmt: skip
    stats = pstats.Stats(str(file))
    rows = []
    for (path, line, name), (_, calls, own, total, _) in stats.stats.items():  # type: ignore[attr-defined]
        place = re.sub(r".*/(site-packages|lib/python3\.\d+|hatch_cuda_kernels)/", r"", path)
        rows.append((own, total, calls, f"{place}:{line} {name}" if line else name))
    whole = max(total for _, total, _, _ in rows)
    lines = [
        f"{whole:.2f} s under the profiler.",
        "",
        "| own s | with callees s | calls | function |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {own:.3f} | {total:.3f} | {calls} | `{name}` |" for own, total, calls, name in sorted(rows)[:-_LINES:-1]
    ]
    return "\n".join(lines)


def phases(kernels: KernelSet, folder: Path) -> str:
    """Seconds of NVRTC's phases over all sources, for the set's first architecture."""
    from cuda.bindings import nvrtc

    total: Counter[str] = Counter()
    with laid_out() as includes:
        for label in kernels.sources:
            source, trace = folder / label, folder / "trace"
            _, program = nvrtc.nvrtcCreateProgram(source.read_bytes(), str(source).encode(), 0, [], [])
            flags = [
                f"-arch={kernels.archs[0]}".encode(),
                b"--no-cache",
                f"--fdevice-time-trace={trace}".encode(),
                *includes,
            ]
            (error,) = nvrtc.nvrtcCompileProgram(program, len(flags), flags)
            assert not error, label
            nvrtc.nvrtcDestroyProgram(program)
            for event in json.loads(trace.with_suffix(".json").read_bytes())["traceEvents"]:
                if event.get("name") in _PHASES and event.get("ph") == "X":
                    total[event["name"]] += event["dur"]
            trace.with_suffix(".json").unlink()
    return " ".join(f"{name}: {total[name] / 1e6:.2f} s." for name in _PHASES)


def jobs_of(kernels: KernelSet, folder: Path) -> list[CompileJob]:
    """The jobs of a set for its first architecture."""
    tree, architecture = ProjectTree(folder), Architecture.parse(kernels.archs[0])
    common = {"package": "demo", "include_dirs": (), "options": {}, "defines": {}, "name_expressions": (), "archs": ()}
    specs = (
        ModuleSpec(source=source, name=source, toolkit_headers="auto", host_code="skip", **common)
        for source in kernels.sources
    )
    return [
        CompileJob(unit=make_unit(tree, "demo", spec), architecture=architecture, release=probe().release)
        for spec in specs
    ]


def compiles(kernels: KernelSet, folder: Path) -> str:
    """What one compile takes: by NVRTC alone, as a worker does it, and with a prefix that others share."""
    rows: dict[str, list[tuple[float, float, int]]] = {}

    def timed(name: str, work: Callable[[], object]) -> None:
        before = resource.getrusage(resource.RUSAGE_SELF)
        work()
        after = resource.getrusage(resource.RUSAGE_SELF)
        system = after.ru_stime - before.ru_stime
        row = (after.ru_utime - before.ru_utime + system, system, after.ru_minflt - before.ru_minflt)
        rows.setdefault(name, []).append(row)

    jobs = jobs_of(kernels, folder)
    with laid_out() as includes, workspace() as folder_of_jobs:
        space = replace(folder_of_jobs, own_process=True)
        os.environ["TMPDIR"] = str(space.path)
        flags = [f"-arch={kernels.archs[0]}".encode(), b"--ptxas-options=-v", b"--no-cache", *includes]
        compile_one(folder / kernels.sources[0], flags)  # the first one of a process grows its heap
        compile_job(jobs[0], space)
        for source, job in zip(kernels.sources, jobs, strict=True):
            timed("NVRTC alone", lambda source=source: compile_one(folder / source, flags))
            quick = [*flags, b"--Ofast-compile=mid"]
            timed(
                "NVRTC alone, ofast-compile = mid",
                lambda source=source, quick=quick: compile_one(folder / source, quick),
            )
            timed("a worker, with trace, checks and files", lambda job=job: compile_job(job, space))
        prefixes: dict[Prefix, Precompiled] = {}
        for job, prefix in shared_prefixes(jobs).items():
            name = "with a prefix that is there" if prefix in prefixes else "the first one, which makes its prefix"
            found = prefixes.setdefault(prefix, Precompiled(prefix, space))
            timed(name, lambda job=job, found=found: compile_job(job, space, found))
    lines = ["| one compile | CPU s | of it in the system | page faults |", "|---|---|---|---|"]
    for name, found in rows.items():
        total, system, faults = (statistics.median(column) for column in zip(*found, strict=True))
        lines.append(f"| {name} ({len(found)}) | {total:.2f} | {system:.2f} | {faults:.0f} |")
    return "\n".join(lines)


def main() -> None:
    """Print all of it as Markdown."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    print(f"# Where the time goes\n\nWritten by `where.py`. Python {platform.python_version()}.")
    for name in ("small", "cub-shared", "cub"):
        kernels = SETS[name]
        with tempfile.TemporaryDirectory(prefix="where-") as folder:
            nothing = {"peer_python": None, "nvcc": None, "ccache": None, "sccache": None}
            tools = Tools(python=sys.executable, includes=[], cores=1, **nothing)
            way = Hook("hook", tools, kernels, Path(folder))
            way.prepare()
            what = f"{len(kernels.sources)} sources for {kernels.archs[0]}, one after the other"
            print(f"\n## Set `{name}`\n\nNVRTC, {what}: {phases(kernels, way.project)}")
            print(f"\n{compiles(kernels, way.project)}")
            for scenario in ("cold", "warm"):
                print(f"\n### {scenario}, the build's own process\n\n{profile_build(way, folder)}")


if __name__ == "__main__":
    main()
