# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Files as authors of nvcc projects write them (`tests/ordinary/`): each compiles with no edit, to nvcc's kernels.

The first line of a file says what it has, the second which kernels it gives, by the names that they are loaded by.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from jobs import TESTS, compile_files, make_job
from nvcc import PLACES, WIDE, compile_with_nvcc, differences, install_nvcc, promised_kernels

from hatch_cuda_kernels.compiler import compile_job
from hatch_cuda_kernels.nvrtc import Workspace, workspace
from hatch_cuda_kernels.plan import CompiledImage

FOLDER = TESTS / "ordinary"
FILES = sorted(path.stem for path in FOLDER.glob("*.cu"))
FEW = FILES[::28]
"""Those of the default run."""

NVCC_REFUSES = {
    "names_limits": "FLT_MAX is no name that nvcc has unasked",
    "names_stdint": "uint8_t is no name that nvcc has unasked",
}
ABSENT = r"fatal error: (?:[\w/]+/\w+|cublas_v2|cufft|Python)\.h: No such file"
"""What nvcc says of headers that are not installed; our build passes them over."""


@pytest.fixture(scope="module")
def space() -> Iterator[Workspace]:
    """A workspace for all tests here."""
    with workspace() as found:
        yield found


def promised(name: str) -> set[str]:
    """The kernels that a file says it gives."""
    return promised_kernels(FOLDER / f"{name}.cu")


def compiled(name: str, arch: str, space: Workspace) -> CompiledImage:
    """A file, compiled by our build's own code."""
    return compile_job(make_job(FOLDER, f"{name}.cu", arch, toolkit_headers="auto"), space)


def check(name: str, space: Workspace) -> None:
    """Assert that a file gives its kernels and no other."""
    image = compiled(name, "sm_80", space)
    assert set(image.kernels) == promised(name)
    assert len(image.entries) == len(promised(name))
    assert image.passed_over or name.startswith(("names_", "macro_list", "device_", "include_math"))


def test_there_are_enough() -> None:
    """At least sixty files, each of which says what it gives."""
    assert len(FILES) >= 60
    assert all(promised(name) for name in FILES)


@pytest.mark.parametrize("name", FEW)
def test_compiles_as_it_is(name: str, space: Workspace) -> None:
    """A file compiles with no edit, to the kernels that it says."""
    check(name, space)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FILES if name not in FEW])
def test_each_compiles_as_it_is(name: str, space: Workspace) -> None:
    """The same for all others."""
    check(name, space)


def test_names_of_the_runtime(space: Workspace) -> None:
    """The header that has what dependent launches call is read without its warning of internal headers."""
    image = compiled("names_dependent_launch", "sm_90", space)
    assert set(image.kernels) == promised("names_dependent_launch")
    assert not image.warnings


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ("", None),
        ('__device__ int first = 1; extern "C" __global__ void a(int *p) { *p = first; }', PLACES),
        ('#define FORMAT "%d!"', "machine code"),
        ("#define counter second", "machine code"),
        ("#define TYPE long", "parameters"),
        ("#define FIRST 8", "machine code"),
        ("#define FACTOR 2.5f", "machine code"),
        ("#define ADD 2", "machine code"),
        ("#define LOW 6", "only with nvcc"),
    ],
)
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_differences(tmp_path: Path, space: Workspace, arch: str, other: str, expected: str | None) -> None:
    """The same instructions about the same objects are told from all others, whatever stands beside them."""
    defaults = {"FORMAT": '"%d"', "TYPE": "int", "ADD": "1", "FIRST": "7", "FACTOR": "1.5f"}
    text = "".join(f"#ifndef {name}\n#define {name} {value}\n#endif\n" for name, value in defaults.items())
    text += """
        __device__ int counter = FIRST;
        __constant__ float factor[2] = {1.f, FACTOR};
        extern "C" __global__ void k(TYPE value, float *p) {
            atomicAdd(&counter, ADD);
            printf(FORMAT, 3);
            p[value] *= factor[1];
        }
        #ifdef LOW
        extern "C" __global__ void more(int *p) { *p = 1; }
        #endif
    """
    made = [compile_files(tmp_path, {"k.cu": f"{line}\n{text}"}, space, arch=arch).data for line in ("", other)]
    found = differences(*made)
    assert found.get("more" if expected == "only with nvcc" else "k", "").split(":")[0] == (expected or "")


@pytest.fixture(scope="module")
def nvcc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """nvcc of NVRTC's own release."""
    return install_nvcc(tmp_path_factory.mktemp("nvcc"))


@pytest.mark.isolated
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("arch", ["sm_80", pytest.param("sm_90", marks=pytest.mark.slow)])
def test_kernels_are_those_of_nvcc(nvcc: Path, arch: str, space: Workspace, tmp_path: Path) -> None:
    """Entry points, parameters, machine code and constants of every kernel are what nvcc makes of the same file.

    Where the addresses of objects stand depends on what else is in the file.
    """
    found: dict[tuple[str, str], str] = {}
    compared = 0
    refused = {}
    for name in FILES:
        target = tmp_path / f"{name}.cubin"
        log = compile_with_nvcc(nvcc, FOLDER / f"{name}.cu", arch, target, ["--expt-relaxed-constexpr"])
        if log is not None:
            if not re.search(ABSENT, log):
                refused[name] = log
            continue
        image = compiled(name, arch, space)
        compared += len(image.entries)
        found |= {(name, kernel): what for kernel, what in differences(image.data, target.read_bytes()).items()}
    assert refused.keys() == NVCC_REFUSES.keys(), refused
    assert not {key: what for key, what in found.items() if what not in (PLACES, WIDE)}
    assert compared >= 60
