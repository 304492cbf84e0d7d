# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The fake driver does what a driver does, seen through the real ``cuda.core``.

Everything that touches CUDA runs in a subprocess with a time limit.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest
from fake_driver import COMPILER, build, environment, fnv1a64, read_log

if shutil.which(COMPILER) is None:
    pytest.skip(f"{COMPILER} is not there", allow_module_level=True)
try:
    version("cuda-core")
    version("nvidia-cuda-nvrtc")
except PackageNotFoundError as missing:
    pytest.skip(f"{missing.name} is not installed", allow_module_level=True)

PTX = ("compute_80", "compute_90", "compute_90a", "compute_100f")
ARCHITECTURES = ("sm_80", "sm_90", "sm_90a", "sm_100f", *PTX)

COMPILE = r"""
import sys
from pathlib import Path
from cuda.bindings import nvrtc

SOURCE = b'''
extern "C" __device__ int counter;
extern "C" __global__ void scale(float a, float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= a;
    counter = n;
}
template <class T> __global__ void fill(T *x, double value) { *x = T(value); }
template __global__ void fill<int>(int *, double);
'''

def call(result):
    assert int(result[0]) == 0, result
    return result[1] if len(result) == 2 else None

for name in sys.argv[2:]:
    program = call(nvrtc.nvrtcCreateProgram(SOURCE, b"kernels.cu", 0, [], []))
    call(nvrtc.nvrtcCompileProgram(program, 1, [b"--gpu-architecture=" + name.encode()]))
    ptx = name.startswith("compute_")
    size = call((nvrtc.nvrtcGetPTXSize if ptx else nvrtc.nvrtcGetCUBINSize)(program))
    image = b" " * size
    call((nvrtc.nvrtcGetPTX if ptx else nvrtc.nvrtcGetCUBIN)(program, image))
    Path(sys.argv[1], name).write_bytes(image)
"""

PRELUDE = r"""
import json, os, sys, time
from pathlib import Path
from cuda.core import Device, LaunchConfig, ObjectCode, Program, ProgramOptions, launch
from cuda.bindings import driver

def image(name, **options):
    data = Path(sys.argv[1], name).read_bytes()
    return (ObjectCode.from_ptx if name.startswith("compute_") else ObjectCode.from_cubin)(data, **options)

def outcome(function, *arguments):
    try:
        function(*arguments)
    except Exception as error:
        return str(error).split(":")[0]
    return "ok"

def tries(*names):
    return {name: outcome(image(name).get_kernel, "scale") for name in names}

def report(value):
    print(json.dumps(value))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("driver"))


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images")
    subprocess.run([sys.executable, "-c", COMPILE, str(folder), *ARCHITECTURES], check=True, timeout=30)
    return folder


def run(images: Path, variables: dict[str, str], code: str) -> Any:
    """Run the code in a fresh interpreter and return what it reports."""
    command = [sys.executable, "-c", PRELUDE + code, str(images)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_build_is_cached(library: Path) -> None:
    before = (library / "libcuda.so.1").stat()
    assert build(library.parent) == library
    assert (library / "libcuda.so.1").stat().st_mtime_ns == before.st_mtime_ns


@pytest.mark.slow
def test_devices_come_from_the_environment(library: Path, images: Path) -> None:
    variables = environment(library, capabilities=("9.0", "8.6", "12.1"), driver="13.2")
    found = run(
        images,
        variables,
        """
Device()
count = int(driver.cuDeviceGetCount()[1])
maps = [line.split()[-1] for line in open("/proc/self/maps") if "libcuda.so" in line]
capabilities = [list(Device(i).compute_capability) for i in range(count)]
report([int(driver.cuDriverGetVersion()[1]), capabilities, maps])
""",
    )
    assert found[:2] == [13020, [[9, 0], [8, 6], [12, 1]]]
    assert {Path(path) for path in found[2]} == {library / "libcuda.so.1"}


def test_the_right_image_loads_and_launches(library: Path, images: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    found = run(
        images,
        environment(library, log=log),
        """
device = Device()
device.set_current()
code = image("sm_90", symbol_mapping={"fill<int>": b"_Z4fillIiEvPT_d"})
kernel = code.get_kernel("scale")
stream = device.create_stream()
launch(stream, LaunchConfig(grid=4, block=128), kernel, 2.0, 0, 3)
stream.sync()
size = int(driver.cuLibraryGetGlobal(driver.CUlibrary(int(code.handle)), b"counter")[2])
report([kernel.num_arguments, kernel.attributes.max_threads_per_block > 0, size,
        [list(info) for info in code.get_kernel("fill<int>").arguments_info],
        outcome(code.get_kernel, "scal"), outcome(code.get_kernel, "counter")])
""",
    )
    assert found == [3, True, 4, [[0, 8], [8, 8]], "CUDA_ERROR_NOT_FOUND", "CUDA_ERROR_NOT_FOUND"]
    data = (images / "sm_90").read_bytes()
    (load,) = read_log(log, "library_load")
    assert (load["arch"], load["bytes"], load["fnv1a64"]) == ("sm_90", len(data), fnv1a64(data))
    assert [entry["name"] for entry in read_log(log, "launch")] == ["scale"]


@pytest.mark.parametrize(
    ("capability", "runs"),
    [
        ("8.0", {"sm_80", "compute_80"}),
        ("8.6", {"sm_80", "compute_80"}),
        ("8.7", {"compute_80"}),
        ("9.0", {"sm_90", "sm_90a", "compute_80", "compute_90", "compute_90a"}),
        ("10.0", {"sm_100f", "compute_80", "compute_90", "compute_100f"}),
        ("10.3", {"sm_100f", "compute_80", "compute_90", "compute_100f"}),
        ("12.0", {"compute_80", "compute_90"}),
    ],
)
def test_which_image_runs_where(library: Path, images: Path, capability: str, runs: set[str]) -> None:
    variables = environment(library, capabilities=(capability,))
    found = run(images, variables, f"Device().set_current()\nreport(tries(*{ARCHITECTURES!r}))")
    assert {name for name, result in found.items() if result == "ok"} == runs
    assert {result for result in found.values() if result != "ok"} <= {"CUDA_ERROR_NO_BINARY_FOR_GPU"}


@pytest.mark.parametrize(
    ("driver", "cubin"), [("12.9", "CUDA_ERROR_NO_BINARY_FOR_GPU"), ("13.0", "ok"), ("14.0", "ok")]
)
def test_older_and_newer_drivers(library: Path, images: Path, driver: str, cubin: str) -> None:
    variables = environment(library, driver=driver)
    found = run(images, variables, "Device().set_current()\nreport(tries('sm_90', 'compute_80'))")
    ptx = "ok" if driver == "14.0" else "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"
    assert found == {"sm_90": cubin, "compute_80": ptx}


def test_a_lazy_driver_finds_out_late(library: Path, images: Path) -> None:
    code = """
Device().set_current()
kernel = image("sm_80").get_kernel("scale")
report(outcome(lambda: kernel.attributes.num_regs))
"""
    assert run(images, environment(library, lazy=True), code) == "CUDA_ERROR_NO_BINARY_FOR_GPU"


def test_refusals_on_demand(library: Path, images: Path) -> None:
    variables = environment(library, refuse={"sm_90": 209, "compute_90": 218})
    code = "Device().set_current()\nreport(tries('sm_90', 'sm_90a', 'compute_90', 'compute_80'))"
    found = run(images, variables, code)
    assert found == {
        "sm_90": "CUDA_ERROR_NO_BINARY_FOR_GPU",
        "sm_90a": "ok",
        "compute_90": "CUDA_ERROR_INVALID_PTX",
        "compute_80": "ok",
    }


def test_broken_images(library: Path, images: Path) -> None:
    found = run(
        images,
        environment(library),
        """
Device().set_current()
data = Path(sys.argv[1], "sm_90").read_bytes()
broken = [data[:n] for n in (*range(4, len(data) - 64, 97), len(data) - 64)]
broken += [b"\\x00", b"\\x01\\x02\\x03", b"P\\xed\\x55\\xba"]
elf = {outcome(ObjectCode.from_cubin(item).get_kernel, "scale") for item in broken}
report([sorted(elf), outcome(ObjectCode.from_ptx(b"no PTX at all").get_kernel, "scale")])
""",
    )
    assert found == [["CUDA_ERROR_INVALID_IMAGE"], "CUDA_ERROR_INVALID_PTX"]


def test_parameters(library: Path, images: Path) -> None:
    found = run(
        images,
        environment(library, capabilities=("10.0",)),
        """
Device().set_current()
kernels = [image(name).get_kernel("scale") for name in ("sm_100f", "compute_80", "compute_100f")]
report([[list(info) for info in kernel.arguments_info] for kernel in kernels])
""",
    )
    assert found == [[[0, 4], [8, 8], [16, 4]]] * 3


@pytest.mark.slow
def test_cubins_of_cuda_12(library: Path, images: Path, tmp_path: Path) -> None:
    """Below 10.0 they have another layout, without the note; the suffix is a flag."""
    for name, flags in (("sm_80", 0x500550), ("sm_90", 0x5A055A), ("sm_90a", 0x5A0D5A)):
        data = bytearray((images / name).read_bytes().replace(b".note.nv.tkinfo", b".note.nv.xxinfo"))
        data[7] = 51
        data[48:52] = flags.to_bytes(4, "little")
        (tmp_path / name).write_bytes(data)
    code = "Device().set_current()\nreport(tries('sm_80', 'sm_90', 'sm_90a'))"
    no = "CUDA_ERROR_NO_BINARY_FOR_GPU"
    for driver, capability, wanted in (("12.4", "9.0", [no, "ok", "ok"]), ("13.5", "8.9", ["ok", no, no])):
        found = run(tmp_path, environment(library, driver=driver, capabilities=(capability,)), code)
        assert list(found.values()) == wanted


def test_compiling_with_the_fake_driver_there(library: Path, images: Path) -> None:
    """NVRTC looks for the driver too."""
    code = """
device = Device()
device.set_current()
source = 'extern "C" __global__ void one(float *x) { *x = 1; }'
options = ProgramOptions(arch="sm_" + device.arch)
found = [Program(source, "c++", options).compile(kind) for kind in ("cubin", "ptx")]
report([outcome(item.get_kernel, "one") for item in found])
"""
    assert run(images, environment(library), code) == ["ok", "ok"]


def test_two_devices_in_one_process(library: Path, images: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    found = run(
        images,
        environment(library, capabilities=("9.0", "8.6"), log=log),
        """
found = []
for number in (0, 1, 0):
    device = Device(number)
    device.set_current()
    found.append([Device().device_id, tries("sm_80", "sm_90")])
    kernel = image("sm_80" if number else "sm_90").get_kernel("scale")
    launch(device.create_stream(), LaunchConfig(grid=1, block=32), kernel, 2.0, 0, 3)
report(found)
""",
    )
    no = "CUDA_ERROR_NO_BINARY_FOR_GPU"
    assert found == [
        [0, {"sm_80": no, "sm_90": "ok"}],
        [1, {"sm_80": "ok", "sm_90": no}],
        [0, {"sm_80": no, "sm_90": "ok"}],
    ]
    launches = [(entry["device"], entry["arch"]) for entry in read_log(log, "launch")]
    assert launches == [(0, "sm_90"), (1, "sm_80"), (0, "sm_90")]


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (None, "CUDA_ERROR_NO_DEVICE"),
        (100, "CUDA_ERROR_NO_DEVICE"),
        (804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"),
        (999, "CUDA_ERROR_UNKNOWN"),
    ],
)
def test_failing_initialisation(library: Path, images: Path, error: int | None, name: str) -> None:
    capabilities = () if error is None else ("9.0",)
    found, seconds = run(
        images,
        environment(library, capabilities=capabilities, init_error=error),
        "start = time.monotonic()\nreport([[outcome(Device), outcome(Device)], time.monotonic() - start])",
    )
    assert found == [name, name]
    assert seconds < 1


@pytest.mark.slow
def test_sixteen_threads(library: Path, images: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    found = run(
        images,
        environment(library, capabilities=("9.0", "8.6"), log=log, load_delay=20),
        """
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

barrier = Barrier(16)
shared = [image("sm_90"), image("sm_80")]

def work(number):
    device = Device(number % 2)
    barrier.wait()
    device.set_current()
    results = [tries("sm_80", "sm_90") for _ in range(20)]
    kernel = shared[number % 2].get_kernel("scale")
    stream = device.create_stream()
    for _ in range(20):
        launch(stream, LaunchConfig(grid=1, block=32), kernel, 2.0, 0, 3)
    return [Device().device_id, [result for result in results if result != results[0]], results[0]]

with ThreadPoolExecutor(16) as executor:
    report(list(executor.map(work, range(16))))
""",
    )
    no = "CUDA_ERROR_NO_BINARY_FOR_GPU"
    for number, result in enumerate(found):
        wanted = {"sm_80": "ok", "sm_90": no} if number % 2 else {"sm_80": no, "sm_90": "ok"}
        assert result == [number % 2, [], wanted]
    assert [entry["result"] for entry in read_log(log, "launch")] == [0] * (16 * 20)
    loads = [entry for entry in read_log(log, "library_load") if entry["result"] == 0]
    assert len(loads) == 16 * 20 + 2  # the two shared ones were loaded once each


def test_after_a_fork(library: Path, images: Path) -> None:
    found = run(
        images,
        environment(library),
        """
Device().set_current()
reader, writer = os.pipe()
if not os.fork():
    calls = [driver.cuInit(0), driver.cuDeviceGetCount(), driver.cuCtxGetCurrent()]
    os.write(writer, json.dumps([int(call[0]) for call in calls]).encode())
    os._exit(0)
os.wait()
report([json.loads(os.read(reader, 100)), int(driver.cuDeviceGetCount()[0])])
""",
    )
    assert found == [[3, 3, 3], 0]


def test_an_unknown_function_is_an_error(library: Path, images: Path) -> None:
    code = """
Device()
status, *_ = driver.cuGetProcAddress(b"cuNo", 13000, 0)
report([outcome(driver.cuProfilerStart), status.name])
"""
    missing, status = run(images, environment(library), code)
    assert "cuProfilerStart" in missing
    assert status == "CUDA_ERROR_NOT_FOUND"
