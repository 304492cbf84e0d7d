# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Whether an architecture that was not asked for would read a header that nobody has: an outline never says no where a
whole compile says yes."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jobs import KERNEL, make_job, write
from projects import make_project

from hatch_cuda_kernels.absence import _PREDEFINED, _TOOLKIT, asks_for, outline, suspects
from hatch_cuda_kernels.compiler import compile_job
from hatch_cuda_kernels.errors import CompilationError
from hatch_cuda_kernels.nvrtc import Workspace, workspace
from hatch_cuda_kernels.plan import CompileJob, PlacedImage
from hatch_cuda_kernels.toolchain import probe
from hatch_cuda_kernels.toolkit import carries_headers, installed_roots

GONE = '#include "gone.h"\n'
NEWER = "__CUDA_ARCH__ >= 900"


@pytest.fixture(scope="module")
def space() -> Iterator[Workspace]:
    """Where these tests compile."""
    with workspace() as found:
        yield found


def wants_gone(job: CompileJob, space: Workspace) -> bool:
    """Whether a compile fails for want of gone.h; one that fails otherwise is not what a test means."""
    try:
        compile_job(job, space)
    except CompilationError as error:
        return asks_for("gone.h", str(error))
    return False


def verdicts(root: Path, files: dict[str, str], space: Workspace, **options: Any) -> tuple[bool | None, bool]:
    """For a newer architecture: (what the outline says, None where there is none; what a whole compile says)."""
    job = make_job(write(root, files), arch="sm_90", toolkit_headers="auto", **options)
    short = outline(job.unit, {"gone.h"})
    told = None if short is None else wants_gone(dataclasses.replace(job, unit=short), space)
    return told, wants_gone(job, space)


def when(condition: str, what: str = GONE) -> str:
    return f"#if {condition}\n{what}#endif\n"


TOLD: dict[str, tuple[bool, dict[str, str]]] = {
    "never": (False, {"k.cu": when("0")}),
    "always for NVRTC": (True, {"k.cu": "#ifdef __CUDACC_RTC__\n" + GONE + "#endif\n"}),
    "never for NVRTC": (False, {"k.cu": "#ifndef __CUDACC_RTC__\n" + GONE + "#endif\n"}),
    "newer": (True, {"k.cu": when(NEWER)}),
    "still newer": (False, {"k.cu": when("__CUDA_ARCH__ >= 1000")}),
    "older": (False, {"k.cu": when("__CUDA_ARCH__ < 900")}),
    "comparison": (True, {"k.cu": when("__CUDA_ARCH__ > 800 && 1000 > __CUDA_ARCH__")}),
    "number with a suffix": (True, {"k.cu": when("__CUDA_ARCH__ >= 900UL")}),
    "elif": (True, {"k.cu": "#if __CUDA_ARCH__ < 900\n#elif __CUDA_ARCH__ < 1000\n" + GONE + "#else\n#endif\n"}),
    "by a macro": (True, {"k.cu": f"#define NEW ({NEWER})\n" + when("NEW")}),
    "by a macro with arguments": (True, {"k.cu": "#define SINCE(x) (__CUDA_ARCH__ >= x)\n" + when("SINCE(900)")}),
    "by a macro of a header": (True, {"k.cu": '#include "a.h"\n' + when("NEW"), "a.h": when(NEWER, "#define NEW 1\n")}),
    "undefined again": (False, {"k.cu": "#define NEW 1\n" + when(NEWER, "#undef NEW\n") + when("NEW")}),
    "in a header of the newer": (
        True,
        {"k.cu": when(NEWER, '#include "a.h"\n'), "a.h": "#ifndef A_H\n#define A_H\n" + GONE + "#endif\n"},
    ),
    "in a header of the older": (False, {"k.cu": when("__CUDA_ARCH__ < 900", '#include "a.h"\n'), "a.h": GONE}),
    "computed": (True, {"k.cu": '#define HEADER "gone.h"\n' + when(NEWER, "#include HEADER\n") + when("0")}),
    "angled": (True, {"k.cu": when(NEWER, "#include <gone.h>\n") + when("0")}),
    "asked for first": (False, {"k.cu": when('__has_include("gone.h")')}),
    "spliced": (True, {"k.cu": f"#if {NEWER}\n#inc\\\nlude \"gone.h\"\n#endif\n"}),
    "digraph": (True, {"k.cu": f'%:if {NEWER}\n%:include "gone.h"\n%:endif\n'}),
    "after a comment": (True, {"k.cu": f"/* one\n two */ #if {NEWER} // three\n" + GONE + "#endif\n"}),
    "between code": (True, {"k.cu": "__device__ int f() {\n" + when(NEWER) + "return 1; }\n"}),
    "with loops": (
        False,
        {"k.cu": when("0") + "__device__ void f(int* p) {\n#pragma unroll\nfor (int i = 0; i < 4; ++i) p[i] = i;\n}\n"},
    ),
    "once": (
        False,
        {
            "k.cu": '#include "a.h"\n#define AGAIN\n#include "a.h"\n',
            "a.h": "#pragma once\n#ifdef AGAIN\n" + GONE + "#endif\n",
        },
    ),
    "beside the toolkit's headers": (False, {"k.cu": "#include <cuda/std/cstdint>\n" + when("__CUDA_ARCH__ < 900")}),
}  # fmt: skip
"""Name -> whether sm_90 reads gone.h, files; their outlines tell."""

UNTOLD: dict[str, dict[str, str]] = {
    "a macro of the toolkit": {"k.cu": "#include <cuda/std/cstdint>\n" + when("defined(CCCL_VERSION)")},
    "an unknown macro": {"k.cu": when("__SOME_FEATURE__")},
    "through two macros": {"k.cu": "#define ONE CUB_VERSION\n#define TWO ONE\n" + when("TWO")},
    "defined where the toolkit says": {"k.cu": when("CCCL_VERSION", "#define NEW\n") + when("defined(NEW)")},
    "raw string": {"k.cu": 'const char* s = R"(\n#if 0\n)";\n' + when(NEWER)},
    "a pragma in a macro": {"k.cu": '#define P _Pragma("push_macro(\\"NEW\\")")\n' + when("0")},
    "pasted": {"k.cu": "#define PASTE(A, B) A##B\n" + when("PASTE(__CUDA_, ARCH__) >= 900")},
    "the compiler's own, redefined": {"k.cu": "#undef __CUDA_ARCH__\n#define __CUDA_ARCH__ 100\n" + when(NEWER)},
    "counted": {"k.cu": when("__COUNTER__ == 0")},
    "headers of a library's name": {"k.cu": '#include "cub/a.h"\n' + when("0"), "cub/a.h": ""},
}  # fmt: skip
"""Name -> files whose outlines would not tell, so that there is none."""


@pytest.mark.parametrize("name", TOLD)
def test_told(tmp_path: Path, space: Workspace, name: str) -> None:
    """The outline says what the whole compile says."""
    expected, files = TOLD[name]
    files = {**files, "k.cu": files["k.cu"] + KERNEL}
    assert verdicts(tmp_path, files, space) == (expected, expected)


@pytest.mark.parametrize("name", UNTOLD)
def test_untold(tmp_path: Path, name: str) -> None:
    """There is no outline where directives alone do not tell."""
    files = {**UNTOLD[name], "k.cu": UNTOLD[name]["k.cu"] + KERNEL}
    job = make_job(write(tmp_path, files), arch="sm_90", toolkit_headers="auto")
    assert outline(job.unit, {"gone.h"}) is None


@pytest.mark.parametrize(
    ("defines", "expected"),
    [
        ({"NEW": True}, True),
        ({"NEW": "0"}, False),
        ({"NEW": NEWER}, True),
        ({"NEW": "CUB_VERSION"}, None),
        ({"NEW": "OTHER", "OTHER": "__CUDA_ARCH__ < 900"}, False),
        ({"NEW": "OTHER(900)", "OTHER(x)": "(__CUDA_ARCH__ >= x)"}, True),
        ({"NEW": "(CUB_VERSION > 0)"}, None),
        ({"OTHER(x)": "(CUB_VERSION > x)"}, False),
        ({}, False),
    ],
)
def test_defines(tmp_path: Path, space: Workspace, defines: dict[str, str | bool], expected: bool | None) -> None:
    """Macros of the table count as those of the files do."""
    told, whole = verdicts(tmp_path, {"k.cu": when("NEW") + KERNEL}, space, defines=defines)
    assert told == expected
    assert told is None or whole == told


_CONDITIONS = st.sampled_from(
    "0|1|__CUDA_ARCH__ >= 900|__CUDA_ARCH__ < 900|defined(A)|!defined(A)|A|B > 1|A || B|C(2)|defined(__CUDACC_RTC__)|"
    "defined(_WIN32)|__cplusplus > 201103L|B == __CUDA_ARCH__".split("|")
)
_LINES = st.recursive(
    st.sampled_from(
        [
            GONE,
            '#include "a.h"\n',
            "#define A\n",
            "#define A 1\n",
            "#undef A\n",
            "#undef B\n",
            "#define B (A + 900)\n",
            "#define C(x) (x < __CUDA_ARCH__ / 450)\n",
            "#pragma push_macro(\"A\")\n",
            "#pragma pop_macro(\"A\")\n",
            "#include <cuda/std/cstdint>\n",
            "__device__ int used(int x);\n",
        ]
    ),
    lambda inner: st.tuples(_CONDITIONS, st.lists(inner, max_size=3), st.lists(inner, max_size=2)).map(
        lambda parts: f"#if {parts[0]}\n{''.join(parts[1])}#else\n{''.join(parts[2])}#endif\n"
    ),
    max_leaves=12,
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(not carries_headers(probe().version), reason="needs headers of the toolkit")
@settings(deadline=None, max_examples=int(os.environ.get("HATCH_CUDA_KERNELS_TEST_EXAMPLES", "300")))
@given(st.lists(_LINES, max_size=6), st.lists(_LINES.filter(lambda line: "a.h" not in line), max_size=4))
def test_any(tmp_path_factory: pytest.TempPathFactory, space: Workspace, source: list[str], header: list[str]) -> None:
    """Whatever the directives: where the outline compiles, the whole does not ask for the header."""
    files = {"k.cu": "".join(source) + when("0") + KERNEL, "a.h": "".join(header)}
    told, whole = verdicts(tmp_path_factory.mktemp("any"), files, space)
    assert told is None or told == whole


def test_names_of_the_toolkit(space: Workspace) -> None:
    """No header of the toolkit, nor a stand-in of ours, defines a macro that an outline could take for the project's or
    for the compiler's own; those of cuRAND do, and what includes them has no outline."""
    version = probe().version
    tops = [space.standins(), *(Path(root.path) for root in installed_roots())]
    tops += [space.bundled_headers(version)] if carries_headers(version) else []
    directive = re.compile(rb"^[ \t]*#[ \t]*(?:define|undef)[ \t]+(\w+)", re.MULTILINE)
    names = {
        name
        for top in tops
        for path in top.rglob("*")
        if path.is_file() and not path.name.startswith("curand")
        for name in directive.findall(path.read_bytes())
    }
    assert b"CUB_VERSION" in names or len(names) > 100
    assert not {name for name in names if not _TOOLKIT.match(name)}
    assert not names & _PREDEFINED


def test_host_code_is_no_suspect(tmp_path: Path, space: Workspace) -> None:
    """A header that was passed over with its host code is not looked for on any architecture."""
    source = '#include "iostream"\n' + KERNEL + "int main() { k<<<1, 1>>>(nullptr); return 0; }\n"
    job = make_job(write(tmp_path, {"k.cu": source}), toolkit_headers="auto")
    image = PlacedImage.of(compile_job(job, space))
    assert {omission.name for omission in image.passed_over} >= {"iostream", "main"}
    assert suspects(job.unit, [image]) == set()
    assert suspects(job.unit, [dataclasses.replace(image, passed_over=())]) == {"iostream"}


@pytest.mark.slow
def test_build(tmp_path: Path) -> None:
    """A build asks outlines, compiles nothing for other architectures where these tell, and never asks twice."""
    told = "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700\n" + GONE + "#endif\n" + KERNEL
    project = make_project(tmp_path, 'archs = ["sm_80"]', {"demo/k.cu": told})
    run = project.build(env={"HATCH_CUDA_KERNELS_JOBS": "2"})
    assert run.status == 0 and "whether it needs" not in run.output, run.output
    untold = told.replace("__CUDA_ARCH__ < 700", "__CUDA_ARCH__ < 700 && defined(CUB_VERSION)")
    project.write({"demo/k.cu": untold})
    run = project.build(env={"HATCH_CUDA_KERNELS_JOBS": "2"})
    assert run.status == 0 and run.output.count("whether it needs gone.h") == len(probe().supported) - 1, run.output
    project.write({"demo/k.cu": told.replace("< 700", ">= 1000")})
    run = project.build(env={"HATCH_CUDA_KERNELS_JOBS": "2"})
    newer = [f"sm_{number}" for number in sorted(probe().supported) if number >= 100]
    assert run.status != 0
    assert f"gone.h, which demo/k.cu includes when compiled for {', '.join(newer)}\n" in f"{run.output}\n", run.output
    project.write({"demo/k.cu": told})
    assert project.build(env={"HATCH_CUDA_KERNELS_COMPILE_TIMEOUT": "0.001"}).status == 0  # a compile would fail
