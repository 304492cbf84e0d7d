# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Large closures: what a compile does not read is not looked at, and nothing comes out otherwise for that."""

from __future__ import annotations

from pathlib import Path

import pytest
from jobs import compile_alone, make_job, write

from hatch_cuda_kernels.narrowing import narrowed
from hatch_cuda_kernels.nvrtc import workspace
from hatch_cuda_kernels.plan import CompiledImage, CompileJob

LARGE = "template <int N> struct Tile { static constexpr int rows = N; };\n" + "// what the library is for\n" * 50_000
KERNEL = "__global__ void k(float *p) { p[threadIdx.x] *= VALUE; }\n"
KERNEL += "void run(std::vector<float> v) { k<<<1, 1>>>(v.data()); }\n"


def job_of(folder: Path, text: str, **files: str) -> CompileJob:
    """A job for a source with a large header that no compile reads, and with others."""
    others = {f"{name}.cuh": content for name, content in files.items()}
    head = '#ifdef NOBODY_DEFINES\n#include "large.cuh"\n#endif\n#include <vector>\n'
    write(folder, {"k.cu": head + text, "large.cuh": LARGE, **others})
    return make_job(folder, arch="compute_80", toolkit_headers="auto", include_dirs=["."])


def read_of(job: CompileJob) -> set[str]:
    """Labels of the files that are left of a job."""
    with workspace() as space:
        found = narrowed(job, space, dict.fromkeys(job.unit.closure.files, ()))
    return {label for label, file in found.unit.closure.files.items() if file == job.unit.closure.files[label]}


def value_of(image: CompiledImage, value: str) -> bool:
    """Whether a kernel multiplies by a value, as PTX spells it."""
    return f"0f{value}" in image.data.decode()


def test_what_is_not_read(tmp_path: Path) -> None:
    """A file that no compile reads is left out; an image depends on it all the same."""
    text = '#if 1\n#include "one.cuh"\n#else\n#include "two.cuh"\n#endif\n' + KERNEL
    job = job_of(tmp_path, text, one="#define VALUE 5.0f\n", two="#define VALUE 3.0f\n")
    assert read_of(job) == {"k.cu", "one.cuh"}
    image = compile_alone(job)
    assert value_of(image, "40A00000")
    assert set(image.reads.files) == {"k.cu", "large.cuh", "one.cuh", "two.cuh"}
    assert image.reads.files["large.cuh"] == job.unit.closure.files["large.cuh"].sha256


def test_small_closures_are_left_alone(tmp_path: Path) -> None:
    """Where there is little to read, nothing is asked."""
    write(tmp_path, {"k.cu": '#ifdef NOBODY\n#include "h.cuh"\n#endif\n#include <vector>\n', "h.cuh": "int x;\n"})
    job = make_job(tmp_path, toolkit_headers="auto")
    with workspace() as space:
        assert narrowed(job, space, {}) is job


@pytest.mark.slow
@pytest.mark.parametrize(
    "condition",
    [
        "defined(M_PI)",
        "defined(__NVCC__)",
        "defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 800",
        "__has_include(<cstdint>)",
    ],
)
def test_read_after_all(tmp_path: Path, condition: str) -> None:
    """What a compile reads by a macro of the compiler, or of a header that is read unasked, is there."""
    text = f'#if {condition}\n#include "one.cuh"\n#else\n#define VALUE 3.0f\n#endif\n' + KERNEL.replace(
        "*=", "*= M_PI *"
    )
    image = compile_alone(job_of(tmp_path, text, one="#define VALUE 2.0f\n"))
    assert image.passed_over
    assert "401921FB54442D18" in image.data.decode().upper()  # two times pi


def test_instances_in_what_nvcc_alone_reads(tmp_path: Path) -> None:
    """A header with launches that is shown to nvcc alone is read for its instances."""
    text = (
        "template <class T> __global__ void scale(T *p, T v) { *p *= v; }\n"
        '#ifndef __CUDACC_RTC__\n#include "launch.cuh"\n#endif\nvoid host(std::vector<int>) {}\n'
    )
    launches = "template <class T> void go(T *p) { scale<<<1, 1>>>(p, T(2)); }\nvoid all(double *d) { go(d); }\n"
    image = compile_alone(job_of(tmp_path, text, launch=launches))
    assert set(image.kernels) == {"scale<double>"}


@pytest.mark.slow
def test_a_file_that_only_looks_unread(tmp_path: Path) -> None:
    """An include that a string or a comment seems to hold, or that a macro makes, is the preprocessor's to judge."""
    text = (
        'const char *text = R"(\n#ifdef NOTHING\n)";\n/*\n#if 0\n*/\n#define HEADER "one.cuh"\n#include HEADER\n'
        'const char *end = R"(\n#endif\n)";\n' + KERNEL
    )
    assert value_of(compile_alone(job_of(tmp_path, text, one="#define VALUE 5.0f\n")), "40A00000")


LIBRARY = "#pragma once\n#include <vector>\n#define JSON_TILE 16\ninline void dump(std::vector<int>) {}\n"
LIBRARY += "int host(fmt::nothing::here) { throw 1; }\nstruct Odd : fmt::base { auto operator==(Odd) { return x; } };\n"


def test_libraries_of_the_host_in_the_tree(tmp_path: Path) -> None:
    """A library of the host is passed over where a project has it; its macros stay where a conditional asks for one."""
    text = '#include "nlohmann/json.hpp"\nvoid h() { dump({}); }\n__global__ void k(int *p) { *p = %s; }\n'
    write(tmp_path, {"k.cu": text % "40", "nlohmann/json.hpp": LIBRARY})
    image = compile_alone(make_job(tmp_path, toolkit_headers="auto"))
    assert "nlohmann/json.hpp" in {omission.name for omission in image.passed_over}
    asking = "#ifndef JSON_TILE\n#define JSON_TILE 32\n#endif\n"
    text = text.replace("void h()", asking + "void h()") % "JSON_TILE"
    write(tmp_path, {"k.cu": text, "nlohmann/json.hpp": LIBRARY})
    image = compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="auto"))
    assert b", 16;" in image.data


@pytest.mark.slow
@pytest.mark.parametrize("asks", [False, True], ids=["a test of the library", "a header that is read"])
def test_only_what_is_read_asks_for_a_library(tmp_path: Path, asks: bool) -> None:
    """Of a library of the host in the tree, files that are not read ask for nothing, such as its own tests."""
    broken = "" if asks else "int host(fmt::nothing::here) { throw 1; }\n"
    write(tmp_path, {"nlohmann/json.hpp": LIBRARY + broken})
    text = f'#if {int(asks)} || defined NOBODY_DEFINES\n#include "asking.cuh"\n#else\n#define VALUE 3.0f\n#endif\n'
    asking = "#ifdef JSON_TILE\n#define VALUE 5.0f\n#else\n#define VALUE 4.0f\n#endif\n"
    image = compile_alone(job_of(tmp_path, '#include "nlohmann/json.hpp"\n' + text + KERNEL, asking=asking))
    assert value_of(image, "40A00000" if asks else "40400000")
    assert asks or "nlohmann/json.hpp" in {omission.name for omission in image.passed_over}
