# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Build the same kernels in several ways and write how long each takes, as ratios within this run.

    python benchmarks/builds --nvcc NVCC --peer-python PYTHON --include DIR --sets small cub --repeat 3

Every scenario begins from a known state: `cold` with nothing, `warm` from a clean checkout with what earlier builds
keep outside of it, `kept` in the same tree once more, `touched` after the edit of one header there. The images of
the hook are held against those of the serial loop, byte by byte, and the compiles after an edit against those needed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from report import Measured, write
from sets import SETS, KernelSet
from ways import FailedError, Hook, Serial, Tools, Way, ways

from hatch_cuda_kernels.machine import available_cores


def scenarios(way: Way) -> Iterator[tuple[str, Callable[[int], None]]]:
    """Names, and what comes before each build."""

    def cold(number: int) -> None:
        way.forget()
        way.prepare()

    def clean(number: int) -> None:
        way.prepare()

    yield "cold", cold
    if way.name == "packaging":
        return
    if way.keeps_cache or way.keeps_tree:
        if way.keeps_cache:
            yield "warm", clean
        yield "kept", lambda number: None
        yield "touched", way.touch


def measure(way: Way, repeat: int) -> Iterator[Measured]:
    """Time every scenario of one way."""
    for scenario, before in scenarios(way):
        seconds, peaks = [], []
        for number in range(repeat):
            before(number)
            begin = time.perf_counter()
            way.build()
            seconds.append(time.perf_counter() - begin)
            if scenario == "cold" and isinstance(way, Hook):
                peaks.append(max(image["memory"] for image in way.report()["images"]) / 1e9)
            if scenario == "touched" and isinstance(way, Hook):
                compiled = way.report()["compiled"]
                assert compiled == way.kernels.readers, f"{compiled} compiled, {way.kernels.readers} needed"
        row = Measured(way.kernels.name, way.name, scenario, seconds)
        if peaks:
            yield Measured(way.kernels.name, way.name, "peak memory of a worker, GB", peaks)
        print(f"{way.kernels.name:11} {way.name:28} {scenario:8} {statistics.median(seconds):8.2f} s", flush=True)
        yield row


def check_bytes(hook: Hook, serial: Serial) -> None:
    """Every image in the hook's wheel is that of the serial loop."""
    with tempfile.TemporaryDirectory() as folder:
        (wheel,) = (hook.root / "hook-out").glob("*.whl")
        shutil.unpack_archive(str(wheel), folder, "zip")
        images = sorted(Path(folder).rglob("*.cubin"))
        assert len(images) == len(hook.kernels.sources) * len(hook.kernels.archs)
        for image in images:
            other = serial.project / "demo" / image.name
            assert image.read_bytes() == other.read_bytes(), f"{image.name} differs from the serial loop's"


def measure_set(kernels: KernelSet, tools: Tools, args: argparse.Namespace) -> Iterator[Measured]:
    """Time every way of one set."""
    with tempfile.TemporaryDirectory(prefix="builds-") as folder:
        found = list(ways(tools, kernels, Path(folder), dict(option.split("=", 1) for option in args.table)))
        for way in found:
            if args.ways and way.name not in args.ways:
                continue
            try:
                yield from measure(way, args.repeat)
            except FailedError as error:
                print(f"{kernels.name:11} {way.name:28} cannot build it: {error}"[:2000], flush=True)
                continue
            if isinstance(way, Serial):
                yield Measured(kernels.name, way.name, "sum of single compiles", [sum(way.seconds())])
                check_bytes(next(other for other in found if isinstance(other, Hook)), way)


def main() -> None:
    """Measure what was asked for, and add it to the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=["small", "cub", "cub-shared"], choices=sorted(SETS))
    parser.add_argument("--ways", nargs="+", help="names of ways; all that the tools allow")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--python", default=sys.executable, help="interpreter with hatchling and this package")
    parser.add_argument("--peer-python", help="interpreter with scikit-build-core, cmake and ninja")
    parser.add_argument("--nvcc", default=shutil.which("nvcc"))
    parser.add_argument("--ccache", default=shutil.which("ccache"))
    parser.add_argument("--sccache", default=shutil.which("sccache"))
    parser.add_argument("--include", action="append", default=[], help="folder with headers, for nvcc and the loop")
    parser.add_argument("--table", action="append", default=[], metavar="KEY=TOML", help="more of the hook table")
    parser.add_argument("--results", type=Path, help="JSON to add to; without it nothing is written")
    parser.add_argument("--note", default="", help="what to say of the machine")
    parser.add_argument("--docs", type=Path, help="folder for the table and the plot, made of all results")
    args = parser.parse_args()
    tools = Tools(
        python=args.python,
        peer_python=args.peer_python,
        nvcc=args.nvcc,
        ccache=args.ccache,
        sccache=args.sccache,
        includes=[f"-I{folder}" for folder in args.include],
        cores=available_cores(),
    )
    rows = [row for name in args.sets for row in measure_set(SETS[name], tools, args)]
    if args.results:
        known = json.loads(args.results.read_text()) if args.results.is_file() else {"runs": {}}
        for name in args.sets:
            mine = [row.to_dict() for row in rows if row.kernels == name]
            known["runs"][name] = {"date": time.strftime("%Y-%m-%d"), "cores": tools.cores,
                                   "versions": tools.versions, "note": args.note, "rows": mine}  # fmt: skip
        args.results.write_text(json.dumps(known, indent=1) + "\n")
        if args.docs:
            write(known, args.docs)


if __name__ == "__main__":
    main()
