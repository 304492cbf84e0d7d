# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What each place of the cache costs, what a warm one saves, and how a build scales over the workers of a cluster.

    python benchmarks/cache.py places     # images through each place, against cuda.core's FileStreamProgramCache
    python benchmarks/cache.py runner     # a cold runner whose remote is warm, against compiling
    python benchmarks/cache.py workers    # one build over 1, 2 and 4 workers of Dask
    python benchmarks/cache.py places -o record.json

Servers are started here, where their programs are there (`pip install --group servers`; Redis and nginx); all is on one
machine, so that a network's latency comes on top. Ratios compare within one run.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import _pytest.outcomes
from jobs import KERNEL, compile_alone, make_job, write
from servers import SERVERS

from hatch_cuda_kernels.cache import KernelCache
from hatch_cuda_kernels.executor import compile_elsewhere
from hatch_cuda_kernels.plan import CompiledImage, CompileJob, Reads
from hatch_cuda_kernels.stores import program_cache

MEASURED = ("redis", "nginx", "s3")
"""Servers worth measuring: the other emulators are slower than any network. Of these, s3 is one in Python, too."""
HEAVY = """\
#include <cub/block/block_radix_sort.cuh>
extern "C" __global__ void sort_NUMBER(unsigned* keys) {
    using Sort = cub::BlockRadixSort<unsigned, 128, 4 + NUMBER % 3>;
    __shared__ typename Sort::TempStorage storage;
    unsigned mine[4 + NUMBER % 3];
    for (int i = 0; i < 4 + NUMBER % 3; ++i) mine[i] = keys[threadIdx.x + 128 * i] + NUMBER;
    Sort(storage).Sort(mine);
    for (int i = 0; i < 4 + NUMBER % 3; ++i) keys[threadIdx.x + 128 * i] = mine[i];
}
"""
PYPROJECT = """\
[build-system]
requires = ["hatchling", "hatch-cuda-kernels"]
build-backend = "hatchling.build"
[project]
name = "demo"
version = "1.0"
requires-python = ">=3.10"
[tool.hatch.build.hooks.cuda-kernels]
archs = ["sm_80", "sm_90"]
"""


@contextlib.contextmanager
def served(name: str, folder: Path) -> Iterator[str | None]:
    """The place on a server, or None where its program is missing."""
    before = dict(os.environ)
    folder.mkdir(parents=True)
    with contextlib.ExitStack() as stack:
        try:
            found = stack.enter_context(SERVERS[name](folder))
        except _pytest.outcomes.Skipped:
            yield None
            return
        os.environ.update(found.environment)
        yield found.url
    os.environ.clear()
    os.environ.update(before)


def sizes(count: int) -> list[int]:
    """Sizes as cubins have them: from 3 to 300 kB, evenly over their logarithm."""
    return [int(3000 * 100 ** (number / count)) for number in range(count)]


def bytes_through(cache: Any, entries: Mapping[str, bytes]) -> tuple[float, list[float]]:
    """Seconds to store all, and the seconds of each read, one after another and checked."""
    begin = time.perf_counter()
    for key, data in entries.items():
        cache[key] = data
    for layer in getattr(cache, "layers", ()):
        layer.flush()
    stored = time.perf_counter() - begin
    reads = []
    for key, data in entries.items():
        begin = time.perf_counter()
        found = cache.get(key)
        reads.append(time.perf_counter() - begin)
        assert found == data, key
    return stored, reads


def many_jobs(folder: Path, count: int) -> dict[CompileJob, CompiledImage]:
    """Jobs that differ in their sources, with images of the sizes above: one compile, other bytes."""
    draw = random.Random(1)
    root = write(folder, {f"k{number}.cu": f"{KERNEL}// {number}\n" for number in range(count)})
    jobs = [make_job(root, f"k{number}.cu") for number in range(count)]
    image = compile_alone(jobs[0])
    found = {}
    for job, size in zip(jobs, sizes(count), strict=True):
        reads = Reads(files={label: file.sha256 for label, file in job.unit.closure.files.items()})
        found[job] = replace(image, data=draw.randbytes(size), reads=reads)
    return found


def places(folder: Path, count: int) -> dict[str, Any]:
    """Images through each place: as bytes, and as a build looks them up."""
    from cuda.core.utils import FileStreamProgramCache, InMemoryProgramCache

    draw = random.Random(2)
    entries = {f"key {number}": draw.randbytes(size) for number, size in enumerate(sizes(count))}
    pairs = many_jobs(folder / "project", count)
    total = sum(map(len, entries.values()))
    print(f"{count} images, {total / 1e6:.0f} MB")
    print("place | store/s | read/s | median us | 99 % us | median vs bare | look-ups/s of a build")
    record: dict[str, Any] = {"count": count, "bytes": total}
    bare = None
    local: dict[str, Callable[[], Any]] = {
        "cuda.core's FileStreamProgramCache": lambda: FileStreamProgramCache(folder / "bare"),
        "cuda.core's InMemoryProgramCache": InMemoryProgramCache,
        "folder": lambda: program_cache(str(folder / "folder")),
        "sqlite": lambda: program_cache(f"sqlite:{folder}/c.db"),
        "sqlite, capped": lambda: program_cache(f"sqlite:{folder}/capped.db", max_size=10**10),
        "memory": lambda: program_cache("memory:10GB"),
    }
    with contextlib.ExitStack() as stack:
        for name in [*local, *MEASURED]:
            url = None if name in local else stack.enter_context(served(name, folder / name))
            if name not in local and url is None:
                print(f"{name} | not measured: its program is not installed")
                continue
            cache = local[name]() if name in local else program_cache(url)
            stored, reads = bytes_through(cache, entries)
            cache.close()
            rate, median = count / sum(reads), statistics.median(reads)
            bare = bare or median
            place = {"folder": f"{folder}/f2", "sqlite": f"sqlite:{folder}/c2.db", "memory": "memory:10GB"}.get(
                name, url
            )
            looked = build_rate(place, folder / f"empty {name}", pairs) if place else None
            row = {
                "stores_per_second": count / stored,
                "reads_per_second": rate,
                "median": median,
                "p99": statistics.quantiles(reads, n=100)[98],
                "ratio": bare / median,
                "lookups_per_second": looked,
            }
            record[name] = row
            shown = f"{looked:.0f}" if looked else ""
            print(
                f"{name} | {count / stored:.0f} | {rate:.0f} | {row['median'] * 1e6:.0f} | {row['p99'] * 1e6:.0f} | "
                f"{row['ratio']:.2f} | {shown}",
                flush=True,
            )
    return record


def build_rate(place: str, empty: Path, pairs: Mapping[CompileJob, CompiledImage]) -> float:
    """Look-ups per second of a build's jobs, all hits; a remote stands behind an empty folder, which it fills."""
    remote = "://" in place
    where = [str(empty), place] if remote else [place]
    with KernelCache.open(where) as cache:
        for job, image in pairs.items():
            cache.store(job, image)
        if not remote:
            begin = time.perf_counter()
            assert len(cache.lookup_all(list(pairs))) == len(pairs)
            return len(pairs) / (time.perf_counter() - begin)
    shutil.rmtree(empty)
    with KernelCache.open(where) as cache:
        begin = time.perf_counter()
        assert len(cache.lookup_all(list(pairs))) == len(pairs)
        return len(pairs) / (time.perf_counter() - begin)


def runner(folder: Path, count: int) -> dict[str, Any]:
    """A build on a runner with nothing: compiling, and with a warm remote."""
    files = {"pyproject.toml": PYPROJECT, "demo/__init__.py": ""}
    files |= {f"demo/k{number}.cu": HEAVY.replace("NUMBER", str(number)) for number in range(count)}
    project = write(folder / "project", files)
    record: dict[str, Any] = {"images": 2 * count}

    def build(cache: str) -> tuple[float, int]:
        report = folder / "report.json"
        variables = {"HATCH_CUDA_KERNELS_CACHE": cache, "HATCH_CUDA_KERNELS_REPORT": str(report)}
        begin = time.perf_counter()
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "out")]
        subprocess.run(command, cwd=project, env={**os.environ, **variables}, check=True, capture_output=True)
        return time.perf_counter() - begin, json.loads(report.read_text())["compiled"]

    print(f"{2 * count} images of CUB kernels")
    for name in MEASURED:
        with served(name, folder / name) as url:
            if url is None:
                continue
            times = {}
            for state in ("cold", "warm"):
                times[state], compiled = build(f"{folder}/{name}-{state},{url}")
                assert compiled == (2 * count if state == "cold" else 0)
            ratio = times["cold"] / times["warm"]
            record[name] = {**times, "ratio": ratio}
            print(f"{name}: compiling {times['cold']:.1f} s, remote warm {times['warm']:.1f} s, {ratio:.1f} x")
    return record


def workers(folder: Path, count: int) -> dict[str, Any]:
    """The same jobs over 1, 2 and 4 workers of Dask, each worker a process of one thread."""
    from distributed import LocalCluster

    root = write(folder / "project", {f"k{n}.cu": HEAVY.replace("NUMBER", str(n)) for n in range(count)})
    jobs = [make_job(root, f"k{n}.cu", toolkit_headers="auto") for n in range(count)]
    record: dict[str, Any] = {"jobs": count, "cores": os.cpu_count()}
    first = None
    for number in (1, 2, 4):
        with LocalCluster(
            n_workers=number, threads_per_worker=1, dashboard_address=None, local_directory=str(folder)
        ) as cluster:
            begin = time.perf_counter()
            found = dict(compile_elsewhere(f"dask:{cluster.scheduler_address}", jobs))
            seconds = time.perf_counter() - begin
        failed = [image for image in found.values() if not isinstance(image, CompiledImage)]
        assert not failed, failed[0]
        first = first or seconds
        ideal = min(number, os.cpu_count() or 1)
        record[str(number)] = {"seconds": seconds, "speedup": first / seconds, "ideal": ideal}
        print(f"{number} workers: {seconds:.1f} s, {first / seconds:.2f} x of {ideal} x", flush=True)
    return record


def main(argv: Sequence[str] | None = None) -> None:
    """Measure one of the three."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["places", "runner", "workers"])
    parser.add_argument("-n", type=int, help="images (2000), sources (8) or jobs (16)")
    parser.add_argument("-o", "--output", type=Path, help="where to write the record, as JSON")
    options = parser.parse_args(argv)
    run, count = {"places": (places, 2000), "runner": (runner, 8), "workers": (workers, 16)}[options.what]
    with tempfile.TemporaryDirectory() as folder:
        record = run(Path(folder), options.n or count)
    if options.output:
        options.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
