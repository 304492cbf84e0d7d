# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Where the time of a build goes: the build's own process, cold and warm, and NVRTC's phases for each set.

python benchmarks/builds/where.py > benchmarks/builds/profiles.md
"""

from __future__ import annotations

import json
import os
import platform
import pstats
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from serial import laid_out
from sets import SETS, KernelSet
from ways import Hook, Tools

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


def main() -> None:
    """Print all of it as Markdown."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    print(f"# Where the time goes\n\nWritten by `where.py`. Python {platform.python_version()}.")
    for name in ("small", "cub-shared"):
        kernels = SETS[name]
        with tempfile.TemporaryDirectory(prefix="where-") as folder:
            nothing = {"peer_python": None, "nvcc": None, "ccache": None, "sccache": None}
            tools = Tools(python=sys.executable, includes=[], cores=1, **nothing)
            way = Hook("hook", tools, kernels, Path(folder))
            way.prepare()
            what = f"{len(kernels.sources)} sources for {kernels.archs[0]}, one after the other"
            print(f"\n## Set `{name}`\n\nNVRTC, {what}: {phases(kernels, way.project)}")
            for scenario in ("cold", "warm"):
                print(f"\n### {scenario}, the build's own process\n\n{profile_build(way, folder)}")


if __name__ == "__main__":
    main()
