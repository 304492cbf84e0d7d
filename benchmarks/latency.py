# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What loading a kernel costs, as ratios to the same thing done by hand within the same run.

    python benchmarks/latency.py                # on a machine with an NVIDIA GPU
    python benchmarks/latency.py --fake-driver  # without one: counts our own work, and no GPU's
    python benchmarks/latency.py -o record.json

Each sample is a process of its own, so that it is cold; the pairs that a ratio compares take turns. The package that
is loaded from is built first, in a temporary folder. Nothing is written elsewhere but the record, if asked for.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import fake_driver
from support import Site, build_demo

from hatch_cuda_kernels.manifest import Manifest, canonical_json

SMALL = {"SOURCE": "demo/vector.cu", "KERNEL": "saxpy", "BUNDLED": False}
LARGE = {"SOURCE": "demo/sort.cu", "KERNEL": "sort", "BUNDLED": True}

START = """
import json, sys, time
from pathlib import Path
folder, image, source = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
clock = time.perf_counter
times = {}
"""

# Both start an interpreter, import cuda.core, make the device current and end with the same kernel in hand.
BARE = """
begin = clock()
from cuda.core import Device, ObjectCode
Device().set_current()
ready = clock()
kernel = ObjectCode.from_cubin((folder / image).read_bytes()).get_kernel("saxpy")
registers = kernel.attributes.num_regs  # the driver has taken the image once this is told
times["load"] = clock() - ready
times["all"] = clock() - begin
"""

OURS = """
begin = clock()
from cuda.core import Device
Device().set_current()
ready = clock()
import hatch_cuda_kernels
imported = clock()
kernel = hatch_cuda_kernels.load_kernel("saxpy", package="demo")
times["load"] = clock() - imported
times["import"] = imported - ready
times["all"] = clock() - begin
registers = kernel.attributes.num_regs
"""

# An app that has loaded something already: what one more image costs.
NEXT_BARE = """
from cuda.core import Device, ObjectCode
Device().set_current()
ObjectCode.from_cubin((folder / image).read_bytes()).get_kernel("saxpy").attributes.num_regs
begin = clock()
kernel = ObjectCode.from_cubin((folder / image.replace("vector", "one")).read_bytes()).get_kernel("which")
registers = kernel.attributes.num_regs
times["load"] = clock() - begin
"""

NEXT_OURS = """
from cuda.core import Device
import hatch_cuda_kernels
Device().set_current()
hatch_cuda_kernels.load_kernel("saxpy", package="demo").attributes.num_regs
begin = clock()
kernel = hatch_cuda_kernels.load_kernel("one:which", package="demo")
times["load"] = clock() - begin
"""

IMPORT = """
begin = clock()
import hatch_cuda_kernels
times["import"] = clock() - begin
"""

REPEATED = """
from timeit import repeat
from cuda.core import Device
from hatch_cuda_kernels import load_kernel
device = Device()
device.set_current()
kernel = load_kernel("saxpy", package="demo")
load_kernel("saxpy", package="demo", device=device)
table = {("demo", "saxpy", None): kernel}
def look_up(name, *, package=None, device=None):
    return table[package, name, device]
def per_call(function):
    return min(repeat(function, number=20000, repeat=5)) / 20000
times["dict"] = per_call(lambda: table["demo", "saxpy", None])
times["function"] = per_call(lambda: look_up("saxpy", package="demo"))
times["package"] = per_call(lambda: load_kernel("saxpy", package="demo"))
times["device"] = per_call(lambda: load_kernel("saxpy", package="demo", device=device))
scope = {"__package__": "demo", "__name__": "demo.module", "load_kernel": load_kernel}
exec("def call(): return load_kernel('saxpy')", scope)
times["caller"] = per_call(scope["call"])
"""

JIT = """
begin = clock()
from cuda.core import Device
import hatch_cuda_kernels
Device().set_current()
ready = clock()
kernel = hatch_cuda_kernels.load_kernel(KERNEL, package="demo")
times["load"] = clock() - ready
registers = kernel.attributes.num_regs
times["all"] = clock() - begin
"""

NVRTC = """
begin = clock()
from cuda.core import Device, Program, ProgramOptions
device = Device()
device.set_current()
ready = clock()
options = ProgramOptions(
    arch="sm_" + device.arch, include_path=source + "/include", use_bundled_headers=BUNDLED, no_cache=True
)
code = Program(Path(source, SOURCE).read_text(), "c++", options).compile("cubin")
kernel = code.get_kernel(KERNEL)
times["load"] = clock() - ready
registers = kernel.attributes.num_regs
times["all"] = clock() - begin
"""

# The same source through what else compiles at run time, each with its own cache if it has one.
CUPY = """
begin = clock()
import cupy
options = ("-std=c++17", "-I" + source + "/include")
kernel = cupy.RawModule(code=Path(source, SOURCE).read_text(), options=options).get_function(KERNEL)
registers = kernel.num_regs
times["all"] = clock() - begin
"""

TORCH = """
begin = clock()
import torch
torch.cuda.init()
code = Path(source, SOURCE).read_text()
kernel = torch.cuda._compile_kernel(code, KERNEL, cuda_include_dirs=[source + "/include"])
times["all"] = clock() - begin
"""

PEERS = {"CuPy RawModule": ("cupy", CUPY), "torch.cuda._compile_kernel": ("torch", TORCH)}

# A kernel as libraries have them, whose headers take the compiler seconds.
HEAVY = {
    "demo/__init__.py": "",
    "demo/sort.cu": """\
#include <cub/block/block_radix_sort.cuh>

extern "C" __global__ void sort(int *values) {
    using Sort = cub::BlockRadixSort<int, 128, 8>;
    __shared__ typename Sort::TempStorage storage;
    int mine[8];
    for (int i = 0; i < 8; ++i) mine[i] = values[threadIdx.x * 8 + i];
    Sort(storage).Sort(mine);
    for (int i = 0; i < 8; ++i) values[threadIdx.x * 8 + i] = mine[i];
}
""",
}


def spread(values: list[float]) -> dict[str, float]:
    """Least, median and greatest."""
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}


def show(what: str, values: list[float], unit: str) -> dict[str, float]:
    """Print one row and return it for the record."""
    scale = {"ms": 1e3, "ns": 1e9, "x": 1.0}[unit]
    found = spread(values)
    row = "".join(f"{found[key] * scale:12.3f}" for key in ("min", "median", "max"))
    print(f"{what:58}{row} {unit}")
    return {**{key: value * scale for key, value in found.items()}, "samples": len(values)}


class Bench:
    """Runs snippets in fresh processes, and collects a record."""

    def __init__(self, environment: Mapping[str, str], site: Site, image: str, runs: int, *, fake: bool) -> None:
        self.environment, self.site, self.image, self.runs, self.fake = environment, site, image, runs, fake
        self.record: dict[str, Any] = {}

    def sample(
        self,
        code: str,
        variables: Mapping[str, str] | None = None,
        *,
        site: Site | None = None,
        names: Mapping[str, object] = SMALL,
    ) -> dict[str, float]:
        """Times that one snippet reports. `names` are defined in it."""
        site = site or self.site
        code = "".join(f"{name} = {value!r}\n" for name, value in names.items()) + code
        path = os.pathsep.join([str(site.root), str(Path(__file__).resolve().parents[1])])
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                START + code + "\nprint(json.dumps(times))",
                *map(str, (site.kernels, self.image, site.kernels / "src")),
            ],
            env={**self.environment, **(variables or {}), "PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"a sample failed:\n{done.stderr}")
        found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return found

    def show(self, key: str, what: str, values: list[float], unit: str) -> None:
        """Print a row and keep it."""
        self.record[key] = show(what, values, unit)

    def compare(
        self,
        key: str,
        what: str,
        ours: str,
        bare: str,
        *times: str,
        site: Site | None = None,
        names: Mapping[str, object] = SMALL,
        runs: int | None = None,
        **variables: str,
    ) -> None:
        """A row of each, and one of the ratio of neighbouring samples.

        `{fresh}` in a variable becomes a folder that does not exist yet.
        """
        pairs = []
        for _ in range(runs or self.runs):
            with tempfile.TemporaryDirectory() as folder:
                here = {key: value.format(fresh=f"{folder}/fresh") for key, value in variables.items()}
                pairs.append(
                    (self.sample(ours, here, site=site, names=names), self.sample(bare, here, site=site, names=names))
                )
        for name in times:
            suffix = "" if name == "load" else f", {name}"
            self.show(f"{key}.{name}", f"{what}{suffix}", [a[name] for a, _ in pairs], "ms")
            self.show(f"{key}.{name}.bare", f"  by hand{suffix}", [b[name] for _, b in pairs], "ms")
            self.show(f"{key}.{name}.ratio", f"  ratio{suffix}", [a[name] / b[name] for a, b in pairs], "x")

    def peers(self, forced: Mapping[str, str]) -> None:
        """The whole process to a kernel: our image, our fallback, and others that compile at run time."""
        for name, (module, code) in PEERS.items():
            if self.fake or importlib.util.find_spec(module) is None:
                print(f"{name:58}not measured ({'needs a GPU' if self.fake else f'{module} is not installed'})")
                continue
            for state in ("cold", "warm"):
                pairs = []
                for _ in range(max(3, self.runs // 2)):
                    with tempfile.TemporaryDirectory() as fresh:
                        caches = {"CUPY_CACHE_DIR": f"{fresh}/cupy", "CUDA_CACHE_PATH": f"{fresh}/driver"}
                        caches |= {"HATCH_CUDA_KERNELS_CACHE": f"{fresh}/ours"}
                        if state == "warm":
                            self.sample(code, caches), self.sample(JIT, {**forced, **caches})
                        times = [self.sample(snippet, caches)["all"] for snippet in (code, OURS)]
                        pairs.append((*times, self.sample(JIT, {**forced, **caches})["all"]))
                key = f"peers.{module}.{state}"
                self.show(f"{key}", f"{name}, {state}: whole process", [peer for peer, _, _ in pairs], "ms")
                self.show(f"{key}.image", "  ratio of ours, shipped image", [a / b for b, a, _ in pairs], "x")
                self.show(f"{key}.fallback", "  ratio of ours, fallback", [c / b for b, _, c in pairs], "x")


def large_manifest(site: Site, root: Path, images: int) -> Site:
    """A copy of the package whose manifest lists at least so many images; those added are never loaded."""
    copy = site.copy(root)
    manifest = copy.manifest()
    (pattern,) = (module for module in manifest["modules"] if module["name"] == "two")
    for number in range(max(0, images - sum(len(m["images"]) for m in manifest["modules"])) // len(pattern["images"])):
        module = json.loads(json.dumps(pattern))
        module["name"] = f"more{number}"
        for image in module["images"]:
            image["file"] = f"more{number}.{image['file']}"
        manifest["modules"].append(module)
    manifest["modules"].sort(key=lambda module: module["name"])
    manifest.pop("kernels")
    whole = Manifest.from_bytes(json.dumps(manifest).encode(), "the copy")  # which knows its index
    (copy.kernels / "manifest.json").write_bytes(canonical_json(whole.to_dict()))
    return copy


DEVICE = """
from cuda.core import Device
from cuda.bindings import driver
device = Device()
times = {"arch": device.arch, "name": device.name, "driver": driver.cuDriverGetVersion()[1]}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fake-driver", action="store_true", help="use the tests' fake driver instead of a GPU")
    parser.add_argument("--runs", type=int, default=11, help="samples of each row (%(default)s)")
    parser.add_argument("-o", "--output", type=Path, help="write the record there, as JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        environment = dict(os.environ)
        if arguments.fake_driver:
            environment = fake_driver.environment(fake_driver.build(folder))
        environment |= {"HATCH_CUDA_KERNELS_CACHE": str(folder / "cache"), "PYTHONPYCACHEPREFIX": str(folder / "pyc")}
        environment["XDG_CACHE_HOME"] = str(folder / "user-cache")
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment.pop("HATCH_CUDA_KERNELS_JIT", None)
        bench = Bench(environment, Site(folder), "-", arguments.runs, fake=arguments.fake_driver)
        device: dict[str, Any] = bench.sample(DEVICE)
        arch = f"sm_{device['arch']}"
        bench.site = site = build_demo(folder / "build", archs=[arch, "compute_80"], cache=folder / "build-cache")
        bench.image = f"vector.{arch}.cubin"
        where = "FAKE DRIVER, no GPU: only ratios of our own work mean something" if arguments.fake_driver else "GPU"
        print(f"{where}: {device['name']}, {arch}, driver {device['driver']}, Python {platform.python_version()}")
        print(f"{'':58}{'min':>12}{'median':>12}{'max':>12}")
        for _ in range(2):  # fills the byte code and the file system's cache
            bench.sample(OURS), bench.sample(BARE)
        imports = [bench.sample(IMPORT)["import"] for _ in range(arguments.runs)]
        bench.show("import", "import hatch_cuda_kernels, in an empty interpreter", imports, "ms")
        bench.compare("first", "first load_kernel of a process", OURS, BARE, "load", "all")
        bench.compare("next", "load_kernel of a further image", NEXT_OURS, NEXT_BARE, "load")
        for images in (10, 1_000, 10_000):
            copy = large_manifest(site, folder / f"manifest-{images}", images)
            loads = [bench.sample(OURS, site=copy) for _ in range(arguments.runs)]
            bench.show(
                f"manifest.{images}",
                f"first load_kernel, manifest of {images} images",
                [s["load"] for s in loads],
                "ms",
            )
        repeated = [bench.sample(REPEATED) for _ in range(max(3, arguments.runs // 3))]
        for key, what in (
            ("dict", "look-up in a dict"),
            ("function", "  in a function with keyword arguments"),
            ("package", "repeated load_kernel(name, package=...)"),
            ("device", "  with device=..."),
            ("caller", "  without package"),
        ):
            bench.show(f"repeated.{key}", what, [sample[key] for sample in repeated], "ns")
        bench.show("repeated.ratio", "  ratio to the function", [s["package"] / s["function"] for s in repeated], "x")
        forced = {"HATCH_CUDA_KERNELS_JIT": "force"}
        bench.sample(JIT, forced)
        bench.compare("jit.warm", "fallback, warm", JIT, BARE, "load", "all", **forced)
        for kind, cache in (("without a cache", "0"), ("into an empty cache", "{fresh}")):
            variables = {**forced, "HATCH_CUDA_KERNELS_CACHE": cache}
            bench.compare(f"jit.cold.{kind}", f"fallback, cold, {kind}", JIT, NVRTC, "load", "all", **variables)
        heavy = build_demo(
            folder / "heavy",
            archs=[arch],
            cache=folder / "build-cache",
            files=HEAVY,
            extra={"modules": [], "include-dirs": []},
        )
        bench.sample(NVRTC, site=heavy, names=LARGE)  # lays out the headers that NVRTC carries in the user's cache
        bench.compare(
            "jit.cold.heavy",
            "fallback, cold, a CUB kernel",
            JIT,
            NVRTC,
            "load",
            "all",
            site=heavy,
            names=LARGE,
            runs=3,
            **forced,
            HATCH_CUDA_KERNELS_CACHE="{fresh}",
        )
        bench.peers(forced)
        if arguments.output:
            record = {
                "schema": 1,
                "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "fake_driver": arguments.fake_driver,
                "device": device,
                "python": platform.python_version(),
                "versions": {
                    name: version(name)
                    for name in ("hatch-cuda-kernels", "cuda-core", "cuda-bindings", "nvidia-cuda-nvrtc")
                },
                "results": bench.record,
            }
            arguments.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
