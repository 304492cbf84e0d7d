# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Arguments are held against the parameters that stand in the image."""

from __future__ import annotations

import ctypes
import os
import struct
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_driver import environment
from support import Site, build_demo, install_editable, run_python

from hatch_cuda_kernels import IntegrityError, KernelNotFoundError, check_arguments
from hatch_cuda_kernels.arguments import read_parameters

try:
    version("cuda-core")
    version("nvidia-cuda-nvrtc")
except PackageNotFoundError as missing:
    pytest.skip(f"{missing.name} is not installed", allow_module_level=True)

SOURCE = """
struct Pair { char first; double second; };
struct __align__(16) Wide { float values[8]; };
struct Large { char bytes[5000]; };

extern "C" __global__ void mixed(float a, float *x, int n, char c, Pair p, short q, double d, bool e, const Pair *r) {
    *x = a + n + c + p.second + q + d + e + r->second;
}
extern "C" __global__ void wide(char c, const __grid_constant__ Wide w, unsigned long long *x) { *x = c + w.values[7]; }
extern "C" __global__ void large(float a, Large b, float *x, char c) { *x = a + b.bytes[4000] + c; }
extern "C" __global__ void none() {}
template <class T, class U> __global__ void pair(T a, U b, T *out) { *out = a + b; }
"""

KNOWN = {
    "mixed": [(0, 4), (8, 8), (16, 4), (20, 1), (24, 16), (40, 2), (48, 8), (56, 1), (64, 8)],
    "wide": [(0, 1), (16, 32), (48, 8)],
    "large": [(0, 4), (4, 5000), (5008, 8), (5016, 1)],
    "none": [],
    "pair<double, short>": [(0, 8), (8, 2), (16, 8)],
}
"""What a C++ compiler makes of these signatures: (offset, size) of each parameter."""

COMPILE = """
from cuda.bindings import nvrtc
source, expression, *names = sys.argv[1:]
folder = Path(names.pop())
for name in names:
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"known.cu", 0, [], [])
    nvrtc.nvrtcAddNameExpression(program, expression.encode())
    (status,) = nvrtc.nvrtcCompileProgram(program, 1, [b"-arch=" + name.encode()])
    assert not status
    _, symbol = nvrtc.nvrtcGetLoweredName(program, expression.encode())
    ptx = name.startswith("compute")
    _, size = (nvrtc.nvrtcGetPTXSize if ptx else nvrtc.nvrtcGetCUBINSize)(program)
    image = b" " * size
    (nvrtc.nvrtcGetPTX if ptx else nvrtc.nvrtcGetCUBIN)(program, image)
    (folder / name).write_bytes(image)
report(symbol.decode())
"""

IMAGES = ("sm_80", "sm_90", "sm_90a", "sm_100", "sm_120", "compute_80", "compute_90")


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder of images of SOURCE, and the symbol of its template."""
    folder = tmp_path_factory.mktemp("known")
    arguments = [SOURCE, "pair<double, short>", *IMAGES, str(folder)]
    found = run_python("from pathlib import Path\n" + COMPILE, os.environ, arguments=arguments)
    return folder, found.value


@pytest.mark.parametrize("image", IMAGES)
@pytest.mark.parametrize("kernel", KNOWN)
def test_parameters_of_known_signatures(known: tuple[Path, str], image: str, kernel: str) -> None:
    """Offsets and sizes read from cubins and from PTX are those of the C++ signature, past 4 kB too."""
    folder, symbol = known
    data = (folder / image).read_bytes()
    found = read_parameters(data, symbol if "<" in kernel else kernel, virtual=image.startswith("compute"))
    assert [tuple(parameter) for parameter in found] == KNOWN[kernel]


@pytest.mark.parametrize("image", ["sm_90", "compute_80"])
def test_an_image_without_the_kernel(known: tuple[Path, str], image: str) -> None:
    """A kernel that is not in the image has no parameters to compare with, which is an error."""
    data = (known[0] / image).read_bytes()
    with pytest.raises(IntegrityError, match="no such kernel"):
        read_parameters(data, "nowhere", virtual=image.startswith("compute"))


def test_damaged_parameters(known: tuple[Path, str]) -> None:
    """Bytes that are no image, or lack a parameter, are an IntegrityError and nothing else."""
    data = (known[0] / "sm_90").read_bytes()
    for broken in (b"", data[:100], data[: len(data) // 2], b"\x7fELF" + bytes(200)):
        with pytest.raises(IntegrityError):
            read_parameters(broken, "mixed")
    record = struct.pack("<BBHIHH", 4, 0x17, 12, 0, 5, 40)
    assert data.count(record) == 1
    with pytest.raises(IntegrityError, match="some are missing"):
        read_parameters(data.replace(record, struct.pack("<BBHIHH", 4, 0x18, 12, 0, 5, 40)), "mixed")


@pytest.fixture
def importable(demo: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.syspath_prepend(str(demo.root))
    return demo


GOOD: list[Any] = [np.float32(2), 0x1000, np.uint64(0), np.int32(8)]


@pytest.mark.parametrize(
    "args",
    [
        GOOD,
        [ctypes.c_float(2), 0, 0, ctypes.c_int(8)],
        [np.int32(2), np.uint64(0), np.int64(0), np.float32(8)],  # sizes, not meanings
        tuple(GOOD),
    ],
)
def test_arguments_that_fit(importable: Site, args: Any) -> None:
    """Arguments of the right sizes pass, whatever they are made of."""
    check_arguments("saxpy", args, package="demo")


@pytest.mark.parametrize(
    ("position", "value", "told"),
    [
        (1, 2.0, "a Python float, which is passed as 8 bytes, but the kernel takes 4 there; pass .*numpy.float32"),
        (1, np.float64(2), "numpy.float64, which is passed as 8 bytes, but the kernel takes 4"),
        (1, np.float16(2), "numpy.float16, which is passed as 2 bytes"),
        (4, 8, "a Python int, which is passed as 8 bytes, but the kernel takes 4 there; pass numpy.int32"),
        (4, True, "a Python bool, which is passed as 1 byte,"),
        (4, 1j, "a Python complex, which is passed as 16 bytes"),
        (4, ctypes.c_int64(8), "ctypes.c_long(long)?, which is passed as 8 bytes"),
        (2, np.int32(0), "numpy.int32, which is passed as 4 bytes, but the kernel takes 8 there; pass .*pointer"),
        (3, ctypes.c_uint8(0), "which is passed as 1 byte, but the kernel takes 8"),
    ],
)
def test_arguments_of_a_wrong_size(importable: Site, position: int, value: Any, told: str) -> None:
    """TypeError names the argument, both sizes, and what to pass: a Python float for a C float first of all."""
    args = [*GOOD]
    args[position - 1] = value
    with pytest.raises(TypeError, match=f"argument {position} of saxpy is .*{told}"):
        check_arguments("saxpy", args, package="demo")


def test_a_wrong_number_of_arguments(importable: Site) -> None:
    """Too few and too many arguments are told apart from wrong ones."""
    for args in ([], GOOD[:3], [*GOOD, 1]):
        with pytest.raises(TypeError, match=rf"saxpy takes 4 arguments, {len(args)} given"):
            check_arguments("saxpy", args, package="demo")
    with pytest.raises(TypeError, match="one:which takes 1 argument, 0 given"):
        check_arguments("one:which", [], package="demo")


def test_what_only_cuda_core_can_judge(importable: Site) -> None:
    """Objects of unknown types pass: cuda.core refuses them itself, or knows better."""
    check_arguments("saxpy", [object(), "text", None, np.zeros(3)], package="demo")


def test_templates(importable: Site) -> None:
    """Each instance of a template has sizes of its own."""
    single, double = np.float32(1), np.float64(1)
    check_arguments("axpby< float >", [single, 0, single, 0, np.int32(1)], package="demo")
    check_arguments("axpby<double>", [double, 0, 1.0, 0, np.int32(1)], package="demo")
    with pytest.raises(TypeError, match="argument 3 of axpby<double>"):
        check_arguments("axpby<double>", [double, 0, single, 0, np.int32(1)], package="demo")


def test_unknown_kernels(importable: Site) -> None:
    """A kernel that is not there is a KernelNotFoundError with near names, as from load_kernel."""
    with pytest.raises(KernelNotFoundError, match="did you mean 'saxpy'"):
        check_arguments("saxpi", GOOD, package="demo")


def test_packages_with_ptx_only(tmp_path: Path, build_cache: Path) -> None:
    """Where a package ships PTX alone, the parameters are read from that."""
    site = build_demo(tmp_path, archs=("compute_80",), cache=build_cache)
    code = """
from hatch_cuda_kernels import check_arguments
import ctypes
good = [ctypes.c_float(1), 0, 0, ctypes.c_int(1)]
report([attempt(check_arguments, "saxpy", args, package="demo") for args in (good, [1.0, *good[1:]])])
"""
    fine, wrong = run_python(code, os.environ, site.root).value
    assert fine == "ok" and wrong.startswith("TypeError: argument 1 of saxpy is a Python float")


def test_the_callers_package(demo: Site) -> None:
    """Without `package` it is the caller's, as in load_kernel; a caller in no package is told so."""
    code = """
import types
from hatch_cuda_kernels import check_arguments
inside = {"__package__": "demo.sub", "__name__": "demo.sub.module", "check": check_arguments}
exec("def call(*arguments): check(*arguments)", inside)
report([attempt(inside["call"], "saxpy", []), attempt(check_arguments, "saxpy", [])])
"""
    inside, outside = run_python(code, os.environ, demo.root).value
    assert inside == "TypeError: saxpy takes 4 arguments, 0 given"
    assert outside.startswith("ConfigurationError")


@pytest.mark.slow
def test_editable_installs(tmp_path: Path) -> None:
    """In an editable install the live source counts."""
    root, site = install_editable(tmp_path)
    source = root / "demo/vector.cu"
    source.write_text(source.read_text().replace("saxpy(float a", "saxpy(double a"))
    code = """
from hatch_cuda_kernels import check_arguments
import ctypes
report(attempt(check_arguments, "saxpy", [1.0, 0, 0, ctypes.c_int(1)], package="demo"))
"""
    variables = {**os.environ, "HATCH_CUDA_KERNELS_CACHE": str(tmp_path / "cache")}
    assert run_python(code, variables, site, root).value == "ok"


@pytest.mark.slow
def test_cuda_core_passes_these_sizes(fake_library: Path, demo: Site) -> None:
    """The sizes are those that cuda.core itself writes: what lies at the address of each argument says so."""
    code = """
import ctypes
import numpy as np
from cuda.core import Device
from cuda.core._kernel_arg_handler import ParamHolder
from hatch_cuda_kernels.arguments import _passed_size
device = Device()
device.set_current()
buffer = device.allocate(16, stream=device.create_stream())
given = [1.5, 7, True, np.float32(1.5), np.float64(1.5), np.int8(3), np.float16(2), 1.5 + 2j, np.complex64(1 + 2j),
         ctypes.c_float(1.5), ctypes.c_uint16(9), buffer]
expected = [np.float64(1.5), np.int64(7), np.bool_(True), *given[3:7], np.complex128(1.5 + 2j), given[8],
            np.float32(1.5), np.uint16(9), np.int64(int(buffer.handle))]
holder = ParamHolder(tuple(given))
addresses = (ctypes.c_void_p * len(given)).from_address(holder.ptr)
found = []
for argument, wanted, address in zip(given, expected, addresses):
    size = _passed_size(argument)
    found.append(size == wanted.nbytes and ctypes.string_at(address, size) == wanted.tobytes())
report(found)
"""
    found = run_python(code, environment(fake_library), demo.root).value
    assert found == [True] * 12


def test_importing_ctypes_or_numpy_is_left_to_the_app(demo: Site) -> None:
    """The check imports neither numpy nor ctypes nor CUDA: what is not there cannot be an argument."""
    code = """
from hatch_cuda_kernels import check_arguments
outcome = attempt(check_arguments, "saxpy", [1.0, 0, 0, 0], package="demo")
report([outcome, [name for name in ("numpy", "ctypes", "cuda") if name in sys.modules]])
"""
    outcome, modules = run_python(code, os.environ, demo.root).value
    assert outcome.startswith("TypeError: argument 1") and modules == []
