# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""On a real device: the images that it takes, what they compute, and what happens when they do not fit.

With the fake driver everything runs but the comparisons of numbers: it executes nothing, so those checks are skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from support import Site, build_demo, edit_manifest, write_project

from hatch_cuda_kernels.arch import FAMILIES

pytestmark = pytest.mark.gpu

Run = Callable[..., Any]
Record = Callable[[str, object], None]


def linker_is_here() -> bool:
    """Whether NVIDIA's linker is installed."""
    try:
        return bool(version("nvidia-nvjitlink"))
    except PackageNotFoundError:
        return False


FAKE = "fake driver: it executes nothing, so there are no numbers to compare"

LOAD = """
name = sys.argv[1]
taken = explain(name, package="demo").choice
outcome = attempt(load_kernel, name, package="demo")
binary = load_kernel(name, package="demo").attributes.binary_version if outcome == "ok" and not fake else None
report([outcome, taken and [taken.kind, taken.arch], binary, caught])
"""

NUMERICS = """
count = 1000
rng = np.random.default_rng(7)
x, y = rng.standard_normal((2, count)).astype(np.float32)
errors = {}

def check(name, wanted, arguments, output):
    check_arguments(name, arguments, package="demo")
    start(load_kernel(name, package="demo"), count, *arguments)
    found = down(arguments[output], np.empty(count, wanted.dtype))
    errors[name] = error(found, wanted.astype(np.float64))

a, b, n = np.float32(1.5), np.float32(-0.25), np.int32(count)
check("saxpy", a * x + y, [a, up(x), up(y), n], 2)
check("demo::scale", 2 * x, [up(x), n], 0)
check("axpby<float>", a * x + b * y, [a, up(x), b, up(y), n], 3)
xd, yd = x.astype(np.float64), y.astype(np.float64)
check("axpby<double>", 1.5 * xd - 0.25 * yd, [1.5, up(xd), -0.25, up(yd), n], 3)

state = load_module("state", package="demo")
library = driver.CUlibrary(int(state.handle))
def variable(name):
    status, address, size = driver.cuLibraryGetGlobal(library, name)
    assert not status, status
    return int(address), int(size)
address, size = variable(b"coefficients")
coefficients = np.array([1, -2, 0.5, 0.25], np.float32)
assert size == coefficients.nbytes
call(driver.cuMemcpyHtoD(address, coefficients.ctypes.data, size))
check("polynomial", np.polyval(coefficients[::-1].astype(np.float64), xd).astype(np.float32), [up(x), up(y), n], 1)
counter, (address, size) = np.zeros(1, np.int32), variable(b"counter")
call(driver.cuMemcpyDtoH(counter.ctypes.data, address, size))
errors["counter"] = abs(int(counter[0]) - count)

for module, wanted in (("one", 1), ("two", 2)):
    out = up(np.zeros(1, np.int32))
    launch(stream, LaunchConfig(grid=1, block=1), load_kernel(f"{module}:which", package="demo"), out)
    errors[f"{module}:which"] = abs(int(down(out, np.zeros(1, np.int32))[0]) - wanted)
report(errors)
"""

TOLERANCE = 1e-6


def loaded(run: Run, site: Site, name: str = "saxpy", **options: Any) -> tuple[str, list[str] | None, int, list[str]]:
    """(outcome, [kind, arch] that explain tells, binary version of what was loaded, warnings)."""
    outcome, taken, binary, warnings = run(LOAD, site, name, **options).value
    return outcome, taken, binary, warnings


def exact(gpu: Any) -> str:
    return f"sm_{gpu.number}"


def compiler() -> tuple[int, int]:
    major, minor = version("nvidia-cuda-nvrtc").split(".")[:2]
    return int(major), int(minor)


def lower_ptx(site: Site, release: str, *, really: bool) -> None:
    """Make the PTX of a package one of an older CUDA release: the manifest, and if `really` the PTX too.

    Kernels as plain as these use nothing that the older PTX version lacks, so that its text differs in a line only.
    """
    major, minor = release.split(".")[:2]
    (path,) = site.kernels.glob("vector.compute_*.ptx")
    if really:
        lines = path.read_text().splitlines(keepends=True)
        lines = [f".version {int(major) - 4}.{minor}\n" if line.startswith(".version") else line for line in lines]
        path.write_text("".join(lines))
    edit_manifest(site, lambda manifest: manifest["compiler"].update(release=release))


def test_exact_cubin(gpu: Any, run: Run, build: Callable[[Sequence[str]], Site]) -> None:
    """The cubin for exactly this device is loaded, without a compiler."""
    outcome, taken, binary, warnings = loaded(run, build([exact(gpu), "compute_80"]), jit="0")
    assert (outcome, taken, warnings) == ("ok", ["cubin", exact(gpu)], [])
    assert gpu.fake or binary == gpu.number


def test_cubin_of_a_lower_minor(gpu: Any, run: Run, build: Callable[[Sequence[str]], Site]) -> None:
    """A cubin of the same major and a lower minor runs here."""
    lower = {8: 80, 12: 120}.get(gpu.capability[0])
    if lower is None or lower >= gpu.number:
        pytest.skip(f"no lower minor of {gpu.capability[0]}.x that NVRTC compiles for, below {gpu.number}")
    outcome, taken, binary, _ = loaded(run, build([f"sm_{lower}"]), jit="0")
    assert (outcome, taken) == ("ok", ["cubin", f"sm_{lower}"])
    assert gpu.fake or binary == lower


def test_architecture_specific_cubin(gpu: Any, run: Run, build: Callable[[Sequence[str]], Site]) -> None:
    """An `a` cubin is preferred to the plain one of the same capability."""
    if gpu.capability < (9, 0):
        pytest.skip("the suffix a begins with 9.0")
    site = build([exact(gpu), f"{exact(gpu)}a"])
    outcome, taken, binary, _ = loaded(run, site, jit="0")
    assert (outcome, taken) == ("ok", ["cubin", f"{exact(gpu)}a"])
    assert gpu.fake or binary == gpu.number


def test_family_specific_cubin(gpu: Any, run: Run, build: Callable[[Sequence[str]], Site]) -> None:
    """An `f` cubin runs on its family."""
    if gpu.number not in FAMILIES:
        pytest.skip("the suffix f begins with 10.0")
    outcome, taken, _, _ = loaded(run, build([f"{exact(gpu)}f"]), jit="0")
    assert (outcome, taken) == ("ok", ["cubin", f"{exact(gpu)}f"])


def test_ptx_accepted(gpu: Any, run: Run, build: Callable[[Sequence[str]], Site], tmp_path: Path) -> None:
    """PTX that is not newer than the driver is compiled by the driver, without NVRTC."""
    site = build(["compute_80"])
    if gpu.driver < compiler():
        site = site.copy(tmp_path / "older")
        lower_ptx(site, f"{gpu.driver[0]}.0.48", really=True)
    outcome, taken, binary, warnings = loaded(run, site, jit="0")
    assert (outcome, taken, warnings) == ("ok", ["ptx", "compute_80"], [])
    assert gpu.fake or binary == gpu.number


def test_ptx_refused_by_rule(gpu: Any, run: Run, build: Callable[[Sequence[str]], Site], tmp_path: Path) -> None:
    """PTX newer than the driver is not handed to it; the error's trace says why."""
    site = build(["compute_80"]).copy(tmp_path / "newer")
    lower_ptx(site, f"{gpu.driver[0]}.{gpu.driver[1] + 1}.0", really=False)
    outcome, _, _, _ = loaded(run, site, jit="0")
    assert outcome.startswith("NoCompatibleImageError") and "needs a driver at least as new" in outcome


def test_ptx_refused_by_the_driver(gpu: Any, run: Run, build: Callable[[Sequence[str]], Site], tmp_path: Path) -> None:
    """When the driver refuses PTX that looked fine, one warning tells, and the fallback serves."""
    site = build(["compute_80"]).copy(tmp_path / "lying")
    lower_ptx(site, f"{gpu.driver[0]}.0.48", really=False)
    (path,) = site.kernels.glob("vector.compute_*.ptx")
    path.write_bytes(path.read_bytes().replace(b".version ", b".version 9", 1))  # a version that none has yet
    edit_manifest(site, lambda manifest: None)
    outcome, taken, _, warnings = loaded(run, site)
    assert (outcome, taken) == ("ok", ["ptx", "compute_80"])
    assert len(warnings) == 1 and "the driver refuses" in warnings[0] and "CUDA_ERROR_" in warnings[0]


COUNTED = """
import hatch_cuda_kernels.compiler as compiler
compiled, original = [], compiler.compile_job
def counting(job, space):
    compiled.append(str(job))
    return original(job, space)
compiler.compile_job = counting
begin = time.perf_counter()
outcome = attempt(load_kernel, "saxpy", package="demo")
report([outcome, compiled, time.perf_counter() - begin])
"""


def test_fallback(gpu: Any, run: Run, build: Callable[[Sequence[str]], Site], record_property: Record) -> None:
    """The fallback compiles when no image fits, finds that again when warm, and can be forced and forbidden."""
    foreign = build(["sm_75" if gpu.capability[0] != 7 else "sm_80"])
    fitting = build([exact(gpu)])
    steps = {}
    for step, site, jit in (("cold", foreign, None), ("warm", foreign, None), ("forced", fitting, "force")):
        outcome, compiled, seconds = run(COUNTED, site, jit=jit).value
        assert outcome == "ok"
        steps[step] = (compiled, round(seconds, 4))
        record_property(step, steps[step])
    assert steps["cold"][0] == [f"vector for {exact(gpu)}"] and steps["warm"][0] == []
    assert steps["forced"][0] == []  # the same source for the same device: cached by what it is, not where it lies
    outcome = run(COUNTED, foreign, jit="0").value[0]
    assert outcome.startswith("NoCompatibleImageError") and "HATCH_CUDA_KERNELS_JIT=0" in outcome


def test_tampered_image(gpu: Any, run: Run, build: Callable[[Sequence[str]], Site], tmp_path: Path) -> None:
    """A flipped bit in an image is found before the driver sees it; the fallback serves, or IntegrityError tells."""
    site = build([exact(gpu)]).copy(tmp_path / "tampered")
    path = site.image("vector", exact(gpu))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    outcome, _, _, warnings = loaded(run, site)
    assert outcome == "ok" and len(warnings) == 1 and "digest differs" in warnings[0]
    assert loaded(run, site, jit="0")[0].startswith("IntegrityError")


@pytest.mark.parametrize("kind", ["cubin", "specific", "ptx", "jit"])
def test_numbers(
    gpu: Any,
    run: Run,
    build: Callable[[Sequence[str]], Site],
    tmp_path: Path,
    record_property: Record,
    kind: str,
) -> None:
    """Every kernel computes what numpy computes, whichever way it came to the device, variables included."""
    if kind == "specific" and gpu.capability < (9, 0):
        pytest.skip("the suffix a begins with 9.0")
    archs = {"cubin": exact(gpu), "specific": f"{exact(gpu)}a", "ptx": "compute_80", "jit": exact(gpu)}
    site = build([archs[kind]])
    if kind == "ptx" and gpu.driver < compiler():
        site = site.copy(tmp_path / "older")
        for path in site.kernels.glob("*.ptx"):
            lines = path.read_text().splitlines(keepends=True)
            path.write_text("".join(f".version {gpu.driver[0] - 4}.0\n" if ".version" in k else k for k in lines))
        edit_manifest(site, lambda manifest: manifest["compiler"].update(release=f"{gpu.driver[0]}.0.48"))
    errors = run(NUMERICS, site, jit="force" if kind == "jit" else "0").value
    record_property("errors", errors)
    if gpu.fake:
        pytest.skip(FAKE)
    assert {name: error for name, error in errors.items() if not error <= TOLERANCE} == {}


LINKED = {
    "demo/sum.cu": """\
__device__ int square(int n);
extern __constant__ int bias[2];
extern "C" __global__ void sum(int *out, int n) { *out = square(n) * SIZE + bias[1]; }
""",
    "demo/square.cu": "__constant__ int bias[2];\n__device__ __noinline__ int square(int n) { return n * n; }\n",
}

LINKED_CODE = """
errors = {}
for module in ("plain", "optimized"):
    for size in (1, 3):
        name = f"{module}[SIZE={size}]"
        library = driver.CUlibrary(int(load_module(name, package="demo").handle))
        address, bytes = call3(driver.cuLibraryGetGlobal(library, b"bias"))
        call(driver.cuMemcpyHtoD(int(address), np.array([0, 5], np.int32).ctypes.data, int(bytes)))
        out = up(np.zeros(1, np.int32))
        launch(stream, LaunchConfig(grid=1, block=1), load_kernel(f"{name}:sum", package="demo"), out, np.int32(7))
        errors[name] = abs(int(down(out, np.zeros(1, np.int32))[0]) - (49 * size + 5))
report(errors)
"""


@pytest.mark.skipif(not linker_is_here(), reason="nvidia-nvjitlink is not installed")
@pytest.mark.parametrize("jit", ["0", "force"])
def test_linked_sources_and_variants(gpu: Any, run: Run, tmp_path: Path, record_property: Record, jit: str) -> None:
    """Modules of two sources, linked with and without link-time optimization, in two variants each, compute what they
    should, a `__constant__` that one source defines and another reads included."""
    write_project(tmp_path / "project", LINKED)
    shared = {"source": list(LINKED), "variants": {"SIZE": [1, 3]}}
    options = {"link-time-optimization": True}
    entries = [{**shared, "name": "plain"}, {**shared, "name": "optimized", "options": options}]
    site = build_demo(tmp_path, archs=[exact(gpu)], extra={"modules": entries})
    three = "def call3(result):\n    assert not result[0], result[0]\n    return result[1:]\n"
    errors = run(three + LINKED_CODE, site, jit=jit).value
    record_property("errors", errors)
    if gpu.fake:
        pytest.skip(FAKE)
    assert set(errors.values()) == {0}, errors


def test_the_driver_agrees_on_parameters(gpu: Any, run: Run, build: Callable[[Sequence[str]], Site]) -> None:
    """What check_arguments reads from an image is what the driver tells of the kernel."""
    code = """
from hatch_cuda_kernels.arguments import _parameters
names = ("saxpy", "demo::scale", "axpby<float>", "axpby<double>", "polynomial", "one:which")
told = {name: [list(p) for p in load_kernel(name, package="demo").arguments_info] for name in names}
read = {name: [list(p) for p in _parameters("demo", name)] for name in names}
report([told, read])
"""
    told, read = run(code, build([exact(gpu)]), jit="0").value
    assert told == read


def test_loading_before_a_context(gpu: Any, run: Run, build: Callable[[Sequence[str]], Site]) -> None:
    """A kernel may be loaded before a device is made current, and be launched afterwards."""
    code = """
call(driver.cuCtxSetCurrent(driver.CUcontext(0)))
kernel = load_kernel("one:which", package="demo")
device.set_current()
out = up(np.zeros(1, np.int32))
launch(stream, LaunchConfig(grid=1, block=1), kernel, out)
report([int(down(out, np.zeros(1, np.int32))[0]), caught])
"""
    found, warnings = run(code, build([exact(gpu)]), jit="0").value
    assert warnings == []
    if gpu.fake:
        pytest.skip(FAKE)
    assert found == 1


def test_sixteen_threads(gpu: Any, run: Run, build: Callable[[Sequence[str]], Site]) -> None:
    """Sixteen threads load and launch at once; all get the one kernel, and every result is right."""
    code = """
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
barrier, count = Barrier(16), 1000
def work(number):
    device.set_current()
    x = np.full(count, number, np.float32)
    mine = device.create_stream()
    buffer = device.allocate(x.nbytes, stream=mine)
    mine.sync()
    call(driver.cuMemcpyHtoD(int(buffer.handle), x.ctypes.data, x.nbytes))
    barrier.wait()
    kernel = load_kernel("demo::scale", package="demo")
    launch(mine, LaunchConfig(grid=-(-count // 128), block=128), kernel, buffer, np.int32(count))
    mine.sync()
    call(driver.cuMemcpyDtoH(x.ctypes.data, int(buffer.handle), x.nbytes))
    return int(kernel.handle), bool((x == 2 * number).all())
with ThreadPoolExecutor(16) as threads:
    found = list(threads.map(work, range(16)))
report([len({handle for handle, _ in found}), all(right for _, right in found)])
"""
    handles, right = run(code, build([exact(gpu)]), jit="0").value
    assert handles == 1
    if gpu.fake:
        pytest.skip(FAKE)
    assert right


def test_two_processes_race_a_cold_fallback(gpu: Any, run: Run, build: Callable[[Sequence[str]], Site]) -> None:
    """Two processes that need the same kernel from a cold cache both get it, and one of them compiles."""
    site = build([exact(gpu)])
    with ThreadPoolExecutor(2) as threads:
        results = [threads.submit(run, COUNTED, site, jit="force") for _ in range(2)]
        found = [result.result().value for result in results]
    assert [outcome for outcome, *_ in found] == ["ok", "ok"]
    assert sum(len(compiled) for _, compiled, _ in found) == 1


def test_every_device(gpu: Any, run: Run, build: Callable[[Sequence[str]], Site]) -> None:
    """With several devices each is served, whichever is current."""
    if gpu.devices < 2:
        pytest.skip("one device")
    code = f"""
found = []
for ordinal in range({gpu.devices}):
    found.append(attempt(load_kernel, "saxpy", package="demo", device=ordinal))
    Device(ordinal).set_current()
    found.append(attempt(load_kernel, "saxpy", package="demo"))
report(found)
"""
    assert set(run(code, build([exact(gpu), "compute_80"])).value) == {"ok"}


def test_memory_checker(
    gpu: Any, run: Run, build: Callable[[Sequence[str]], Site], tmp_path: Path, record_property: Record
) -> None:
    """NVIDIA's checker finds no invalid access in the kernels and no error in the calls around them."""
    tool = shutil.which("compute-sanitizer")
    if tool is None:
        pytest.skip("compute-sanitizer is not on PATH")
    if gpu.fake:
        pytest.skip(FAKE)
    wrapper = tmp_path / "python"
    wrapper.write_text(f'#!/bin/sh\nexec "{tool}" --error-exitcode 9 "{sys.executable}" "$@"\n')
    wrapper.chmod(0o755)
    result = run(NUMERICS, build([exact(gpu)]), jit="0", check=False, executable=str(wrapper))
    summary = [line for line in result.output.splitlines() if "ERROR SUMMARY" in line]
    record_property("summary", summary)
    assert result.status == 0 and summary and "0 errors" in summary[-1], result.output[-3000:]


def test_torch(gpu: Any, run: Run, build: Callable[[Sequence[str]], Site]) -> None:
    """A kernel runs on a torch tensor, in torch's current stream."""
    if find_spec("torch") is None:
        pytest.skip("torch is not installed")
    if gpu.fake:
        pytest.skip(FAKE)
    code = """
import torch
from cuda.core import Stream
x = torch.arange(1000, dtype=torch.float32, device="cuda")
theirs = Stream.from_handle(torch.cuda.current_stream().cuda_stream)
kernel = load_kernel("demo::scale", package="demo")
launch(theirs, LaunchConfig(grid=8, block=128), kernel, x.data_ptr(), np.int32(1000))
report(bool((x == 2 * torch.arange(1000, device="cuda")).all()))
"""
    assert run(code, build([exact(gpu)]), jit="0").value is True


def test_cupy(gpu: Any, run: Run, build: Callable[[Sequence[str]], Site]) -> None:
    """A kernel runs on a CuPy array, in a stream of CuPy's."""
    if find_spec("cupy") is None:
        pytest.skip("cupy is not installed")
    if gpu.fake:
        pytest.skip(FAKE)
    code = """
import cupy
from cuda.core import Stream
with cupy.cuda.Stream(non_blocking=True) as theirs:
    x = cupy.arange(1000, dtype=cupy.float32)
    kernel = load_kernel("demo::scale", package="demo")
    launch(Stream.from_handle(theirs.ptr), LaunchConfig(grid=8, block=128), kernel, x.data.ptr, np.int32(1000))
    report(bool((x == 2 * cupy.arange(1000)).all()))
"""
    assert run(code, build([exact(gpu)]), jit="0").value is True


def test_example_app(gpu: Any, tmp_path: Path, record_property: Record) -> None:
    """The example app finds all its kernels, agrees with numpy on each, and draws its picture."""
    if find_spec("mandelscope") is None:
        pytest.skip("mandelscope is not installed")
    variables = {**os.environ, "HATCH_CUDA_KERNELS_CACHE": str(tmp_path / "cache"), "HATCH_CUDA_KERNELS_JIT": "0"}
    if gpu.driver < compiler() and gpu.number not in (80, 86, 89, 90):
        del variables["HATCH_CUDA_KERNELS_JIT"]  # its PTX is too new, so that the fallback has to serve
    picture = tmp_path / "picture.png"
    command = [sys.executable, "-m", "mandelscope", "-o", str(picture)]
    done = subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=90, check=False)
    record_property("output", done.stdout.splitlines())
    assert "Every kernel against numpy" in done.stdout, done.stdout + done.stderr
    if gpu.fake:
        pytest.skip(FAKE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "MISMATCH" not in done.stdout and picture.stat().st_size > 1000
    assert json.dumps(done.stdout).count(" ok") >= 8
