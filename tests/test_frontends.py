# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The example and every layout through the front ends that authors use, in true isolation, and installed as users do.

docs/reference/support.md is the table of what is proven here.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import zipfile
from pathlib import Path

import pytest
from frontends import FRONT_ENDS, build, report_of, run
from layouts import LAYOUTS, copy_layout, kernels_in

pytestmark = [pytest.mark.isolated, pytest.mark.xdist_group("isolated"), pytest.mark.timeout(900)]

REPOSITORY = Path(__file__).parent.parent
EXAMPLE = REPOSITORY / "example_project"


@pytest.fixture
def example(tmp_path: Path, ours: Path) -> Path:
    """A fresh checkout of the example that requires this project's wheel by its address."""
    project = tmp_path / "checkout"
    shutil.copytree(EXAMPLE, project, ignore=shutil.ignore_patterns("__pycache__", "dist", ".*"))
    table = project / "pyproject.toml"
    text = table.read_text().replace(
        'requires = ["hatchling", "hatch-cuda-kernels"]',
        f'requires = ["hatchling", "hatch-cuda-kernels @ {ours.as_uri()}"]',
    )
    assert ours.as_uri() in text
    table.write_text(text)
    return project


def images(wheel: Path) -> dict[str, str]:
    """Path of each of our files in a wheel -> its digest."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if "/_cuda_kernels/" in name]
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in names}


EXPECTED: dict[str, dict[str, str]] = {}


@pytest.mark.parametrize("front_end", FRONT_ENDS)
def test_front_end(front_end: str, example: Path, frontend_cache: Path, tmp_path: Path) -> None:
    """pip, build (sdist, then the wheel from it), uv and hatch give the same images; a second build compiles none."""
    for attempt in ("first", "second"):
        report = tmp_path / f"{attempt}.json"
        env = {"HATCH_CUDA_KERNELS_CACHE": str(frontend_cache), "HATCH_CUDA_KERNELS_REPORT": str(report)}
        found = images(build(front_end, example, tmp_path / attempt, env))
        assert len(found) == 20 + 1 + 7
        assert EXPECTED.setdefault("images", found) == found
        counts = json.loads(report.read_text())
        if attempt == "second" or front_end != "pip":
            assert counts["compiled"] == 0, front_end


LAYOUT_CELLS = [
    pytest.param(front_end, layout, id=f"{front_end}-{layout}", marks=[pytest.mark.slow] if front_end != "uv" else [])
    for front_end in FRONT_ENDS
    for layout in LAYOUTS
]


@pytest.mark.parametrize(("front_end", "layout"), LAYOUT_CELLS)
def test_layouts(front_end: str, layout: str, way: dict[str, str], tmp_path: Path) -> None:
    """Every front end builds every layout in isolation, and all find the same kernels."""
    project = copy_layout(layout, tmp_path / "project")
    assert kernels_in(build(front_end, project, tmp_path / "out", way)) == LAYOUTS[layout].kernels


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, ours: Path, frontend_cache: Path) -> Path:
    """A user's environment with the example's wheel and its dependencies: no hatchling. Its interpreter."""
    base = tmp_path_factory.mktemp("user")
    project = base / "checkout"
    shutil.copytree(EXAMPLE, project, ignore=shutil.ignore_patterns("__pycache__", "dist", ".*"))
    env = {"HATCH_CUDA_KERNELS_CACHE": str(frontend_cache)}
    run(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--find-links",
        ours.parent,
        "-w",
        base,
        project,
        env=env,
    )
    run(sys.executable, "-m", "venv", base / "venv")
    python = base / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    (wheel,) = base.glob("mandelscope-*.whl")
    run(python, "-m", "pip", "install", "-q", "--find-links", ours.parent, wheel)
    return python


def test_user_has_no_hatchling(installed: Path) -> None:
    """The wheel needs no hatchling, and importing the loader imports neither CUDA nor numpy nor hatchling."""
    script = (
        "import sys, importlib.util, hatch_cuda_kernels\n"
        "assert importlib.util.find_spec('hatchling') is None\n"
        "loaded = {name.split('.')[0] for name in sys.modules}\n"
        "assert not loaded & {'cuda', 'numpy', 'hatchling'}, loaded\n"
    )
    run(installed, "-I", "-c", script)


def test_user_without_driver(installed: Path) -> None:
    """Without a driver load_kernel fails in under a second with a DriverError that says what to do, twice in a row."""
    script = (
        "import time, hatch_cuda_kernels as h\n"
        "try:\n"
        "    h.load_kernel('nothing', package='mandelscope')\n"
        "except h.KernelNotFoundError:\n"
        "    pass\n"
        "import cuda.core\n"
        "for _ in range(2):\n"
        "    start = time.perf_counter()\n"
        "    try:\n"
        "        h.load_kernel('escape_time', package='mandelscope')\n"
        "    except h.DriverError as error:\n"
        "        assert time.perf_counter() - start < 1, time.perf_counter() - start\n"
        "        assert 'install the NVIDIA driver' in str(error), error\n"
        "        print('refused')\n"
    )
    assert run(installed, "-I", "-c", script).count("refused") == 2


def test_user_sees_what_would_be_loaded(installed: Path) -> None:
    """The app itself, without a GPU, says what it would load for which device."""
    shown = run(installed, "-I", "-m", "mandelscope")
    for text in ("7.5", "12.0", "sm_80", "sm_90a", "compute_80", "jit"):
        assert text in shown
    command = run(installed, "-I", "-m", "hatch_cuda_kernels", "verify", "mandelscope", "--json")
    assert json.loads(command) == {"schema": 1, "ok": True, "problems": []}


TOOLKIT = """\
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <mma.h>
#include <cooperative_groups.h>
#include <cub/block/block_reduce.cuh>
#include <cuda/std/array>
#include <cstdint>
#include <type_traits>
__global__ void k(float *x) {
    using Reduce = cub::BlockReduce<float, 128>;
    __shared__ typename Reduce::TempStorage storage;
    static_assert(std::is_same<std::uint32_t, unsigned>::value, "");
    cooperative_groups::this_thread_block().sync();
    x[0] = Reduce(storage).Sum(x[threadIdx.x]) + __half2float(__half(1));
}
"""


TOOLCHAINS = {"12": ('cuda = "12"', "12.9."), "13.0.88": ('nvrtc = "13.0.88"', "13.0.88"), "13": ('cuda = "13"', "13.")}
LAYOUT_TOOLCHAIN_CELLS = [
    pytest.param(layout, toolchain, id=f"{layout}-{toolchain}", marks=[pytest.mark.slow])
    for layout in LAYOUTS
    for toolchain in TOOLCHAINS
    if toolchain != "13"
]


@pytest.mark.parametrize(("layout", "toolchain"), LAYOUT_TOOLCHAIN_CELLS)
def test_layouts_and_toolchains(layout: str, toolchain: str, way: dict[str, str], tmp_path: Path) -> None:
    """Every layout with every toolchain; the default one is that of test_layouts."""
    key, release = TOOLCHAINS[toolchain]
    project = copy_layout(layout, tmp_path / "project")
    table = project / ("hatch.toml" if layout == "hatch_toml" else "pyproject.toml")
    archs = 'archs = ["sm_80", "compute_80"]\n'
    assert archs in table.read_text()
    table.write_text(table.read_text().replace(archs, f"{archs}{key}\n"))
    assert kernels_in(build("uv", project, tmp_path / "out", way, "--wheel")) == LAYOUTS[layout].kernels
    assert report_of(way)["nvrtc"].startswith(release)


TOOLCHAIN_CELLS = [
    pytest.param(front_end, toolchain, id=f"{front_end}-{toolchain}", marks=[pytest.mark.slow] if slow else [])
    for front_end, slow in (("pip", False), ("build", True), ("uv", True), ("hatch", True))
    for toolchain in TOOLCHAINS
]


@pytest.mark.parametrize(("front_end", "toolchain"), TOOLCHAIN_CELLS)
def test_toolchains(front_end: str, toolchain: str, way: dict[str, str], tmp_path: Path) -> None:
    """The toolchain that the table asks for is installed, with all headers that it needs to be used as it comes, and
    its linker where something is linked."""
    key, release = TOOLCHAINS[toolchain]
    project = tmp_path / "project"
    (project / "demo").mkdir(parents=True)
    table = f'[tool.hatch.build.hooks.cuda-kernels]\narchs = ["sm_80", "sm_90a"]\n{key}\n'
    table += '[[tool.hatch.build.hooks.cuda-kernels.modules]]\nsource = ["demo/a.cu", "demo/b.cu"]\n'
    table += '[build-system]\nbuild-backend = "hatchling.build"\nrequires = ["hatchling", "hatch-cuda-kernels"]\n'
    table += '[project]\nname = "demo"\nversion = "1"\nrequires-python = ">=3.10"\n'
    (project / "pyproject.toml").write_text(table)
    (project / "demo/__init__.py").touch()
    (project / "demo/k.cu").write_text(TOOLKIT)
    (project / "demo/a.cu").write_text('__device__ int f();\nextern "C" __global__ void linked(int *x) { *x = f(); }\n')
    (project / "demo/b.cu").write_text("__device__ int f() { return 7; }\n")
    wheel = build(front_end, project, tmp_path / "out", way)
    report = report_of(way)
    assert report["nvrtc"].startswith(release)
    assert not any("/site-packages/" in text for image in report["images"] for text in image["warnings"])
    assert kernels_in(wheel) == {"demo": {"a": ["linked"], "k": ["k"]}}
