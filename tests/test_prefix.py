# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Headers compiled once for several sources: the same images, the same records, and never another's headers."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from jobs import KERNEL, make_job, write

from hatch_cuda_kernels import precompiled
from hatch_cuda_kernels.cache import KernelCache
from hatch_cuda_kernels.compiler import compile_job
from hatch_cuda_kernels.costs import Cost
from hatch_cuda_kernels.errors import CompilationError
from hatch_cuda_kernels.nvrtc import Workspace, workspace
from hatch_cuda_kernels.plan import CompiledImage, CompileJob
from hatch_cuda_kernels.pool import Pool
from hatch_cuda_kernels.precompiled import Precompiled
from hatch_cuda_kernels.prefix import Prefix, includes_more, leading_directives, shared_prefixes, without_prefix

LONG = Cost(1.0, 400 << 20)


@pytest.fixture(scope="module")
def space() -> Iterator[Workspace]:
    """A workspace for all tests here: laying out the toolkit's headers takes longer than most compiles."""
    with workspace() as found:
        yield dataclasses.replace(found, own_process=True)


def told(image: CompiledImage) -> dict[str, Any]:
    """All that is known of an image but what it took to make it."""
    return {**dataclasses.asdict(image), "seconds": 0, "memory": 0}


class Counted:
    """How many compiles used a precompiled prefix."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.used = self.given_up = 0
        original = Precompiled.compile

        def counted(this: Precompiled, job: CompileJob) -> CompiledImage | None:
            image = original(this, job)
            self.used += image is not None
            self.given_up += image is None
            return image

        monkeypatch.setattr(Precompiled, "compile", counted)


def text_of(job: CompileJob) -> bytes:
    """The text of a job's source."""
    return job.unit.closure.files[job.unit.source].data


def whole_prefix(job: CompileJob, includes: int | None = None) -> Prefix:
    """The prefix of a job up to the last of its includes, or of the first few."""
    lines = leading_directives(text_of(job))
    ends = [n for n, line in enumerate(lines, 1) if b"include" in line]
    return Prefix("", ends[includes - 1 if includes else -1])


def with_prefix(jobs: list[CompileJob], space: Workspace, includes: int | None = None) -> list[CompiledImage]:
    """Compile jobs in this process with the prefix of the first."""
    found = Precompiled(whole_prefix(jobs[0], includes), space)
    images = [compile_job(job, space, found) for job in jobs]
    found.remove()
    return images


def told_alone(jobs: list[CompileJob], space: Workspace) -> list[dict[str, Any]]:
    """What is known of the images that a loop over the jobs gives."""
    return [told(compile_job(job, space)) for job in jobs]


# -- which jobs may share ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "directives"),
    [
        ("#include <a.h>\nint x;", ["#include <a.h>"]),
        ("// c\n\n# include <a.h> // c\n/* c\n c */ #define N 3\n#include \"b.h\"\n#define M\nint x;",
         ["# include <a.h>", "#define N 3", "#include \"b.h\"", "#define M"]),
        ("#define A \\\n 1\n#include <a.h>", ["#define A  1", "#include <a.h>"]),
        ("#include <a.h>\r\nint x;\r\n", ["#include <a.h>"]),
        ("int x;\n#include <a.h>\n", []),
        ("#include <a.h>\nint x;\n#include <b.h>\n", ["#include <a.h>"]),
        ("#include <a.h>\n#ifdef X\n#include <b.h>\n#endif\n", ["#include <a.h>"]),
        ("#ifdef X\n#endif\n#include <a.h>\n", []),
        ("#pragma once\n#include <a.h>\n", []),
        ("", []),
    ],
)  # fmt: skip
def test_leading_directives(text: str, directives: list[str]) -> None:
    """Inclusions and macros at the beginning, as long as they hang on no condition."""
    assert leading_directives(text.encode()) == [line.encode() for line in directives]


@pytest.mark.parametrize(
    ("rest", "more"),
    [
        ("int x;\n", False),
        ("// #include <b.h>\nint x;\n", False),
        ("#include <b.h>\n", True),
        ("#include <a.h>\n", True),
        ("int x;\n%:include <b.h>\n", True),
        ("int x;\n#include NAME\n", True),
        ("int x;\n#if __has_include(<b.h>)\n#endif\n", True),
        ("#ifdef X\n#include <b.h>\n#endif\n", True),
    ],
)
def test_includes_more(rest: str, more: bool) -> None:
    """Whether what follows a prefix asks for any header, be it one of the prefix."""
    assert includes_more(f"#include <a.h>\n{rest}".encode(), 1) is more


STOP = (b"#stop", b"#define L")


@pytest.mark.parametrize(
    ("text", "put", "shown"),
    [
        ("#include <a.h>\nx\n", 1, "#stop\nx\n"),
        ("// c\n#include <a.h>\n\n// c\nx\n", 1, "#stop\n\n\n// c\nx\n"),
        ("// c\n#include <a.h>\n\n// c\nx\n", 2, "#stop\n#define L\n\n// c\nx\n"),
        ("#include <a.h>", 1, "#stop\n"),
        ("#include <a.h>\nx\n", 2, None),
        ("#include <a.h>\n#define A\nx\n", 1, "#stop\n#define A\nx\n"),
        ("\r\n#include <a.h>\r\n#define A\r\n", 1, "#stop\n\n#define A\r\n"),
        ("#include \\\n<a.h>\n#if 0\n", 1, "#stop\n\n#if 0\n"),
        ("#include <a.h>\\\n\nx\n", 1, "#stop\n\nx\n"),
        ("#include <a.h>\n/* c\n*/ %:if 1\n", 1, "#stop\n/* c\n*/ %:if 1\n"),
        ("/* c\n*/ #include <a.h> // c\nx", 1, "#stop\n\nx"),
        ("#include <a.h> /*\n*/\nx\n", 1, None),
    ],
)
def test_without_prefix(text: str, put: int, shown: str | None) -> None:
    """Directives give their place to other lines, and every line of the rest keeps its number."""
    found = without_prefix(text.encode(), 1, *STOP[:put])
    assert found == (None if shown is None else shown.encode())


COMMON = '#include "common.h"\n#include <cuda_fp16.h>\n'
BASE: Mapping[str, str] = {"a.cu": COMMON + KERNEL, "b.cu": COMMON + KERNEL, "common.h": "#pragma once\n"}


def sharing(root: Path, files: Mapping[str, str], first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Whether two jobs, and others like the first, have a prefix in common."""
    files = {**BASE, **files}
    root = write(root, {**files, "c.cu": files["a.cu"], "d.cu": files["a.cu"]})
    options: dict[str, Any] = {"toolkit_headers": "auto"}
    jobs = [
        *(make_job(root, **{"source": f"{name}.cu", **options, **first}) for name in "acd"),
        make_job(root, **{"source": "b.cu", **options, **second}),
    ]
    keys = shared_prefixes(jobs)
    return len(keys) == 4 and len(set(keys.values())) == 1


def test_who_shares(tmp_path: Path) -> None:
    """Two sources of one folder with the same includes share; another architecture, macro, option or path does not."""
    assert sharing(tmp_path, {"common.h": "#ifdef A\n#endif\n"}, {}, {})
    assert sharing(tmp_path, {"b.cu": "// other\n\n" + COMMON + "#define MINE 1\nint x;\n" + KERNEL}, {}, {})
    other: Mapping[str, Any]
    for other in (
        {"arch": "sm_90"},
        {"arch": "compute_80"},
        {"defines": {"A": "1"}},
        {"options": {"use-fast-math": True}},
        {"include_dirs": ["include"]},
        {"toolkit_headers": "bundled"},
    ):
        assert not sharing(tmp_path, {"include/unused.h": "", "common.h": "#ifdef A\n#endif\n"}, {}, other), other
        assert sharing(tmp_path, {"include/unused.h": ""}, other, other), other


@pytest.mark.parametrize(
    "files",
    [
        {"b.cu": "#define A\n" + COMMON + KERNEL},
        {"b.cu": "#include <cuda_bf16.h>\n" + COMMON + KERNEL},
        {"common.h": "#define F __BASE_FILE__\n"},
        {"common.h": "#define F __INCLUDE_LEVEL__\n"},
        {"common.h": "#define T __TIME__\n"},
        {"common.h": "#include __SOME\n"},
        {"common.h": '#ifdef NEVER\n#include "b.cu"\n#endif\n'},
        {"common.h": "#if __has_include(\"a.cu\")\n#endif\n"},
    ],
)  # fmt: skip
def test_who_does_not(tmp_path: Path, files: dict[str, str]) -> None:
    """Another prefix, an include elsewhere, a header that asks for the time or a source: each on its own."""
    assert not sharing(tmp_path, files, {}, {})


def test_questions_by_a_macro(tmp_path: Path) -> None:
    """Where a macro of the options asks for headers, nobody knows which a prefix looks for."""
    options = {"defines": {"HAS(x)": "__has_include(x)"}}
    assert not sharing(tmp_path, {}, options, options)


@pytest.mark.parametrize(
    ("common", "shares"),
    [
        ('#define HEADER(x) <lib/x>\n#include HEADER(one.h)\n', True),
        ('#define HEADER "own.h"\n#include HEADER\n', True),
        ('#include __HEADER\n', False),
        ('#ifdef HEADER\n#include HEADER\n#endif\n', True),
        ('#define HEADER(x, y) <x/y>\n#include HEADER(lib, one.h)\n', False),
    ],
)  # fmt: skip
def test_includes_by_macros(tmp_path: Path, common: str, shares: bool) -> None:
    """An include by a macro is shared where all that the macro can stand for is known, and the same."""
    files = {"common.h": common, "include/lib/one.h": "// 1\n", "own.h": "// 2\n"}
    options = {"include_dirs": ["include"]}
    assert sharing(tmp_path, files, options, options) is shares


def test_same_text_in_another_folder(tmp_path: Path) -> None:
    """The same line can mean another header in another folder, which NVRTC would not notice."""
    files = {"sub/b.cu": COMMON + KERNEL, "sub/common.h": "#pragma once\n#define OTHER\n"}
    assert not sharing(tmp_path, files, {}, {"source": "sub/b.cu"})


@pytest.mark.parametrize("options", [{"lineinfo": True}, {"debug": True}, {"pre-include": "common.h"}])
def test_options_that_name_files(tmp_path: Path, options: dict[str, Any]) -> None:
    """Where an image tells of paths, or files are read ahead, each is compiled on its own."""
    assert not sharing(tmp_path, {}, {"options": options}, {"options": options})


# -- the same images ---------------------------------------------------------------------------------------------

HEADER = """\
#pragma once
#define HERE __LINE__
namespace { __device__ int hidden = 3; __device__ __noinline__ int helper(int x) { return x * hidden; } }
template <int N> __device__ __noinline__ int plus(int x) { return x + N; }
struct Base { __device__ virtual int f(int x) { static int calls; return x + ++calls; } };
"""
INCLUDES = '#include "inner.h"\n#include <cooperative_groups.h>\n#include <cub/warp/warp_reduce.cuh>\n'


def body(number: int) -> str:
    """A kernel that uses all of the headers, its own anonymous names, and lines."""
    return f"""
#define LOCAL {number}
namespace {{ __device__ int mine = LOCAL; struct Tag {{ int x[LOCAL + 1]; }}; }}
__device__ int lines = HERE;
template <class T> __global__ void sized(T* p) {{ mine += sizeof(Tag); *p = mine; }}
extern "C" __global__ void k{number}(int* p)
{{
    auto block = cooperative_groups::this_thread_block();
    using Reduce = cub::WarpReduce<int>;
    __shared__ typename Reduce::TempStorage storage;
    int sum = Reduce(storage).Sum(p[threadIdx.x]);
    Base base;
    p[block.thread_rank()] = helper(sum) + plus<4>(sum) + plus<{number}>(sum) + HERE + lines + base.f(sum);
}}
"""


def varied(root: Path) -> Path:
    """Sources that begin with the same includes, with other comments, lines and macros."""
    files = {f"k{n}.cu": f"// {n}\n" * n + INCLUDES.replace("\n", f" // {n}\n") + body(n) for n in range(4)}
    return write(root, {**files, "inner.h": HEADER})


@pytest.mark.parametrize(
    ("arch", "options"),
    [
        pytest.param("sm_80", {}, marks=pytest.mark.slow),
        pytest.param("sm_90a", {"use-fast-math": True, "std": "c++20"}, marks=pytest.mark.slow),
        pytest.param("compute_90", {"fma": False}, marks=pytest.mark.slow),
        pytest.param("sm_120", {"max-register-count": 32, "restrict": True}, marks=pytest.mark.slow),
    ],
)
def test_same_images(
    tmp_path: Path, space: Workspace, monkeypatch: pytest.MonkeyPatch, arch: str, options: dict[str, Any]
) -> None:
    """Images, kernels, resources, warnings and reads are those of compiles one by one, and the prefix is used."""
    root = varied(tmp_path)
    jobs = [
        make_job(root, f"k{n}.cu", arch, toolkit_headers="auto", options=options, name_expressions=["sized<int>"])
        for n in (0, 3)
    ]
    third = make_job(root, "k1.cu", arch, toolkit_headers="auto", options=options, name_expressions=["sized<int>"])
    assert set(shared_prefixes([*jobs, third]).values()) == {
        dataclasses.replace(whole_prefix(jobs[0]), key=shared_prefixes([*jobs, third])[third].key)
    }
    counted = Counted(monkeypatch)
    shared = with_prefix(jobs, space)
    assert counted.used == len(jobs)
    assert [told(image) for image in shared] == told_alone(jobs, space)
    for job, image in zip(jobs, shared, strict=True):
        assert image.reads.files == {file.label: file.sha256 for file in job.unit.closure.files.values()}


CHOICES = """
__device__ int wrapped(int a, int b, int size) {
    return min(min((a - (b - size)) * (a - (b - size)), (a - (b + size)) * (a - (b + size))), (a - b) * (a - b));
}
__global__ void k(int size, int x, int *out) {
    int t = threadIdx.x, cell = x - t;
    %s
    if (t < 5) out[t] = wrapped(t, 2, size) + wrapped(cell - 3, t, size) + wrapped(t + x, cell, size);
}
"""
"""Code that the optimiser makes otherwise where the headers are traced."""


@pytest.mark.parametrize("names", ["", "assert(size > 0);"])
def test_the_machine_code_is_the_same(
    tmp_path: Path, space: Workspace, monkeypatch: pytest.MonkeyPatch, names: str
) -> None:
    """What the optimiser makes of a source does not depend on whether a prefix was shared."""
    includes = "#include <cuda/std/cstdint>\n#include <cassert>\n\n"
    files = {f"{name}.cu": includes + CHOICES % names for name in ("a", "b")}
    write(tmp_path, files)
    counted = Counted(monkeypatch)
    jobs = [make_job(tmp_path, name, toolkit_headers="auto") for name in files]
    alone = [compile_job(job, space).data for job in jobs]
    assert [image.data for image in with_prefix(jobs, space)] == alone
    assert counted.used == len(jobs)


def test_warnings_are_not_lost(tmp_path: Path, space: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source's own warnings are told as ever; headers with a warning are compiled with each source."""
    root = write(
        tmp_path,
        {
            "a.cu": "#include <cuda_fp16.h>\n" + KERNEL.replace("{", "{ int unused;"),
            "b.cu": "#include <cuda_fp16.h>\n" + KERNEL,
            "warns.h": "static __device__ int never() { int unused; return 1; }\n",
            "c.cu": '#include <cuda_fp16.h>\n#include "warns.h"\n' + KERNEL,
        },
    )
    jobs = [make_job(root, name, toolkit_headers="auto") for name in ("a.cu", "b.cu")]
    counted = Counted(monkeypatch)
    assert [told(image) for image in with_prefix(jobs, space)] == told_alone(jobs, space)
    assert counted.used == 2
    assert "unused" in str(compile_job(jobs[0], space).warnings)
    third = make_job(root, "c.cu", toolkit_headers="auto")
    assert "unused" in str(compile_job(third, space).warnings)
    assert Precompiled(whole_prefix(third), space).compile(third) is None
    assert [path for path in space.path.iterdir() if path.name.startswith("job-")] == []


def test_a_header_that_changes_diagnostics(tmp_path: Path, space: Workspace) -> None:
    """What a header switches off stays off in the source."""
    files = {"quiet.h": "#pragma nv_diag_suppress 177\n"}
    text = '#include <cuda_fp16.h>\n#include "quiet.h"\n' + KERNEL.replace("{", "{ int unused;")
    jobs = [make_job(write(tmp_path, {**files, name: text}), name, toolkit_headers="auto") for name in ("a.cu", "b.cu")]
    assert [told(image) for image in with_prefix(jobs, space)] == told_alone(jobs, space)


def test_errors_are_those_of_a_compile_alone(tmp_path: Path, space: Workspace) -> None:
    """A source that NVRTC refuses has its usual message, and host code is passed over as ever."""
    root = write(
        tmp_path,
        {
            "good.cu": "#include <cuda_fp16.h>\n" + KERNEL,
            "bad.cu": "#include <cuda_fp16.h>\n" + KERNEL + "nonsense;\n",
            "host.cu": "#include <cuda_fp16.h>\n" + KERNEL + "int main() { k<<<1, 1>>>(nullptr); return 0; }\n",
        },
    )
    jobs = [make_job(root, name, toolkit_headers="auto") for name in ("good.cu", "host.cu")]
    assert [told(image) for image in with_prefix(jobs, space)] == told_alone(jobs, space)
    bad = make_job(root, "bad.cu", toolkit_headers="auto")
    found = Precompiled(whole_prefix(jobs[0]), space)
    assert found.compile(jobs[0]) is not None
    with pytest.raises(CompilationError) as shared:
        compile_job(bad, space, found)
    with pytest.raises(CompilationError) as alone:
        compile_job(bad, space)
    assert str(shared.value) == str(alone.value)


def test_another_prefix_is_noticed(tmp_path: Path, space: Workspace) -> None:
    """Were a prefix used for a job that does not have it, the compile would not count."""
    root = write(tmp_path, {"a.cu": "#include <cuda_fp16.h>\n" + KERNEL, "b.cu": "#include <cuda_bf16.h>\n" + KERNEL})
    first, other = (make_job(root, name, toolkit_headers="auto") for name in ("a.cu", "b.cu"))
    found = Precompiled(whole_prefix(first), space)
    assert found.compile(first) is not None
    assert found.compile(other) is None
    assert found.compile(make_job(root, "a.cu", "sm_90", toolkit_headers="auto")) is None
    assert found.compile(first) is not None


def test_nothing_where_it_cannot_be(tmp_path: Path, space: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Little room, or headers that do not compile: no prefix, and the jobs are compiled as ever."""
    job = make_job(write(tmp_path, dict(BASE)), "a.cu", toolkit_headers="auto")
    monkeypatch.setattr(precompiled, "_ROOM", 1 << 60)
    assert Precompiled(whole_prefix(job), space).compile(job) is None
    monkeypatch.undo()
    assert Precompiled(whole_prefix(job), space).compile(job) is not None
    broken = make_job(write(tmp_path, {"common.h": "nonsense;\n"}), "a.cu", toolkit_headers="auto")
    assert Precompiled(whole_prefix(broken), space).compile(broken) is None


def test_headers_by_macros(tmp_path: Path, space: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers that are included by a macro's name are compiled once, and are read by all."""
    files = {
        "common.h": "#define LIB(x) <lib/x>\n#include LIB(one.h)\n#include LIB(cuda.h)\n#include OWN\n",
        "include/lib/one.h": "#define ONE 1\n",
        "include/lib/cuda.h": "#define STD(x) <cuda/std/x>\n#include STD(cstdint)\n",
        "own.h": "#define TWO (ONE + 1)\n#ifdef NEVER\n#include LIB(never.h)\n#endif\n",
        "include/lib/never.h": "",
    }  # fmt: skip
    use = KERNEL.replace("1", "TWO + N")
    texts = {f"k{n}.cu": f'#define OWN "own.h"\n#include "common.h"\n#define N {n}\n' + use for n in range(3)}
    root = write(tmp_path, {**texts, **files})
    jobs = [make_job(root, name, toolkit_headers="auto", include_dirs=["include"]) for name in texts]
    assert len(set(shared_prefixes(jobs).values())) == 1
    counted = Counted(monkeypatch)
    images = with_prefix(jobs, space)
    assert (counted.used, counted.given_up) == (3, 0)
    assert [told(image) for image in images] == told_alone(jobs, space)
    assert set(images[1].reads.files) == {"k1.cu", *files} - {"include/lib/never.h"}


# -- never a stale one -------------------------------------------------------------------------------------------


def build(root: Path, cache: KernelCache, space: Workspace) -> tuple[list[CompiledImage], int]:
    """Images of all sources through the cache, with a prefix where any are missing, and how many those were."""
    jobs = [make_job(root, f"k{n}.cu", toolkit_headers="auto") for n in range(4)]
    images = {job: image for job in jobs if (image := cache.lookup(job)) is not None}
    missing = [job for job in jobs if job not in images]
    for job, image in zip(missing, with_prefix(missing, space) if missing else [], strict=True):
        cache.store(job, image)
        images[job] = image
    return [images[job] for job in jobs], len(missing)


def test_edited_headers_inside_a_prefix(tmp_path: Path, space: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """An edit of a header that was compiled once for all recompiles all its users, and of one that none reads none."""
    start = '#include "outer.h"\n#include <cuda_fp16.h>\n'
    texts = {f"k{n}.cu": start + KERNEL.replace("1", f"VALUE + {n}") for n in range(4)}
    outer = '#include "deep.h"\n#ifdef NEVER\n#include "unread.h"\n#endif\n'
    headers = {"outer.h": outer, "deep.h": "#define VALUE 1\n", "unread.h": "// a\n"}
    root = write(tmp_path / "project", {**texts, **headers})
    cache = KernelCache.open(str(tmp_path / "cache"))
    counted = Counted(monkeypatch)
    first, compiled = build(root, cache, space)
    assert compiled == 4
    for image, number in zip(first, range(4), strict=True):
        assert set(image.reads.files) == {f"k{number}.cu", "outer.h", "deep.h"}
    assert build(root, cache, space)[1] == 0
    write(root, {"unread.h": "// b\n"})
    assert build(root, cache, space)[1] == 0
    write(root, {"deep.h": "#define VALUE 2\n"})
    second, compiled = build(root, cache, space)
    assert compiled == 4
    assert all(one.data != two.data for one, two in zip(first, second, strict=True))
    write(root, {"k2.cu": texts["k2.cu"] + "// edited\n"})
    assert build(root, cache, space)[1] == 1
    write(root, {"k2.cu": texts["k2.cu"], "deep.h": "#define VALUE 1\n"})
    assert [told(image) for image in build(root, cache, space)[0]] == [told(image) for image in first]
    assert (counted.used, counted.given_up) == (9, 0)


@pytest.mark.slow
def test_workers_share(tmp_path: Path, space: Workspace) -> None:
    """Workers that share prefixes give what a loop over all jobs gives, with other jobs between."""
    root = varied(tmp_path)
    write(root, {"plain.cu": KERNEL})
    jobs = [make_job(root, f"k{n}.cu", arch, toolkit_headers="auto") for n in range(4) for arch in ("sm_80", "sm_90")]
    jobs.insert(3, make_job(root, "plain.cu"))
    with closing(Pool(2)) as pool:
        results = dict(pool.compile(jobs, space, lambda job: LONG))
    for job in (jobs[0], jobs[3], jobs[6], jobs[-1]):
        result = results[job]
        assert isinstance(result, CompiledImage), result
        assert told(result) == told(compile_job(job, space))
    assert len(results) == len(jobs)
    if os.path.exists("/proc/self/status"):
        assert all(isinstance(result, CompiledImage) and result.memory > 50 << 20 for result in results.values())


@pytest.mark.slow
def test_a_crash_with_a_prefix_is_not_the_job_s(
    tmp_path: Path, space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that dies over a precompiled prefix costs nothing: its job is compiled without."""
    texts = {f"k{n}.cu": "#include <cuda_fp16.h>\n" + KERNEL.replace("1", str(n)) for n in range(4)}
    jobs = [make_job(write(tmp_path, texts), f"k{n}.cu", toolkit_headers="auto") for n in range(4)]
    code = "import os, hatch_cuda_kernels.precompiled as p; p.Precompiled.compile = lambda *a: os.abort(); "
    monkeypatch.setattr("hatch_cuda_kernels.worker._START", code.join(
        ["import sys; sys.path[:] = {path!r}; ", "from hatch_cuda_kernels.worker import main; main()"]
    ))  # fmt: skip
    with closing(Pool(1)) as pool:
        results = dict(pool.compile(jobs, space, lambda job: LONG))
    assert [type(result) for result in results.values()] == [CompiledImage] * 4


def test_a_member_has_its_own_headers_meanwhile(tmp_path: Path, space: Workspace) -> None:
    """A job that shares sees the headers of the prefix, its own for as long as it is compiled, and no other's."""
    start = '#include "inner.h"\n#include <cuda_fp16.h>\n'
    seen = '#if __has_include("{0}")\n#include "{0}"\n#endif\n'
    files = {f"k{n}.cu": start + seen.format(f"own{n}.h") + KERNEL.replace("1", "OWN") for n in range(4)}
    files |= {f"own{n}.h": f"#define OWN {n}\n" for n in range(4)} | {"inner.h": HEADER}
    root = write(tmp_path, files)
    jobs = [make_job(root, f"k{n}.cu", toolkit_headers="auto") for n in range(4)]
    assert len(set(shared_prefixes(jobs).values())) == 1
    found = Precompiled(whole_prefix(jobs[0]), space)
    for number, job in enumerate(jobs):
        image = found.compile(job)
        assert image is not None and told(image) == told(compile_job(job, space))
        assert set(image.reads.files) == {f"k{number}.cu", "inner.h", f"own{number}.h"}
        assert found._made is not None
        tree = found._made.stage.path / "tree"
        assert {path.name for path in tree.rglob("*.*")} == {"k0.cu", "inner.h", "cuda-kernels-prefix.h"}
    found.remove()
    assert not tree.exists()


def test_how_many_it_takes(tmp_path: Path) -> None:
    """It takes three jobs, whatever they go on with."""
    start = "#include <cub/block/block_scan.cuh>\n"
    texts = {"a0.cu": start + '#include "own.h"\n', "a1.cu": start, "own.h": ""}
    assert lengths(tmp_path / "two", texts) == {}
    found = lengths(tmp_path / "three", texts | {"a2.cu": start + "#define N\n"})
    assert len(found) == 3
    assert len(set(found.values())) == 1


# -- prefixes that are shorter than what a source begins with ------------------------------------------------------


def lengths(root: Path, texts: Mapping[str, str], **options: Any) -> dict[str, tuple[str, int]]:
    """Source -> key of its prefix and number of directives."""
    write(root, {name: text + KERNEL for name, text in texts.items()})
    jobs = [make_job(root, name, toolkit_headers="auto", **options) for name in texts if name.endswith(".cu")]
    return {job.unit.source: (found.key, found.length) for job, found in shared_prefixes(jobs).items()}


def test_the_prefix_that_most_share(tmp_path: Path) -> None:
    """A longer prefix that fewer share is taken only for a header that is long in compiling."""
    cub = "#include <cub/block/block_{}.cuh>\n"
    texts = {f"a{n}.cu": cub.format("scan") + ('#include "own.h"\n' if n < 3 else "#define T\n") for n in range(6)}
    found = lengths(tmp_path / "one", texts | {"own.h": ""})
    assert len(found) == 6 and len(set(found.values())) == 1 and found["a0.cu"][1] == 1
    texts = {
        f"{name}{n}.cu": "#include <cuda_fp16.h>\n" + cub.format(name) for name in ("scan", "load") for n in "1234"
    }
    found = lengths(tmp_path / "two", texts)
    assert {length for _, length in found.values()} == {2} and len(found) == 8
    assert len({key for key, _ in found.values()}) == 2
    heavy = {"own.h": "#include <cub/cub.cuh>\n"}
    texts = {f"a{n}.cu": "#include <cuda_fp16.h>\n" + ('#include "own.h"\n' if n < 4 else "") for n in range(6)}
    found = lengths(tmp_path / "three", texts | heavy)
    assert {name: length for name, (_, length) in found.items()} == {f"a{n}.cu": 2 for n in range(4)}


def test_what_lies_in_include_dirs_is_alike(tmp_path: Path) -> None:
    """A toolkit header could ask for a header in include-dirs that only some jobs bring: those do not share."""
    texts = {f"a{n}.cu": "#include <cub/block/block_scan.cuh>\n" for n in range(6)}
    texts["a0.cu"] += "#include <own.h>\n"
    found = lengths(tmp_path, texts | {"include/own.h": ""}, include_dirs=["include"])
    assert sorted(found) == [f"a{n}.cu" for n in range(1, 6)]


@pytest.mark.parametrize(
    "defined",
    [
        pytest.param("__device__ int table = 3;", marks=pytest.mark.slow),
        pytest.param("__device__ int table; __device__ int more(int x) { return x * 3; }", marks=pytest.mark.slow),
        pytest.param(
            "__device__ int table; struct S { __device__ int m(); }; __device__ int S::m() { return 4; }",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            'extern "C" __global__ void of_h(int*) {} namespace n { __constant__ int table; } using n::table;',
            marks=pytest.mark.slow,
        ),
    ],
)
@pytest.mark.parametrize("arch", ["sm_80", pytest.param("compute_90", marks=pytest.mark.slow)])
def test_symbols_are_named_after_their_own_source(tmp_path: Path, space: Workspace, defined: str, arch: str) -> None:
    """NVRTC names what is not inline after the source: never after the one whose beginning was compiled."""
    start = '// spare\n#include <cooperative_groups.h>\n#include "common.cuh"\n'
    kernel = 'extern "C" __global__ void k{0}(int* p) {{ p[0] = *(int*)&table + {0}; }}\n'
    files = {f"k{n}.cu": start + kernel.format(n) for n in range(2)}
    write(tmp_path, {"common.cuh": f"#pragma once\n{defined}\n", **files})
    jobs = [make_job(tmp_path, name, arch, toolkit_headers="auto") for name in files]
    assert [told(image) for image in with_prefix(jobs, space)] == told_alone(jobs, space)


@pytest.mark.parametrize("first", ["#define MORE 3\n", "enum { MORE = 3 };\n"])
def test_rests_differ(tmp_path: Path, space: Workspace, monkeypatch: pytest.MonkeyPatch, first: str) -> None:
    """Sources that go on with other includes, conditions and macros have the images and reads of compiles alone."""
    start = '#include "inner.h"\n#include <cuda_fp16.h>\n'
    rests = [
        first,
        '#include "more.h"\n',
        '#define SOME\n#include <cuda_bf16.h>\n#ifdef SOME\n#include "more.h"\n#else\n#include "never.h"\n#endif\n',
        '__device__ int between;\n#include "deep/more.h"\n#include "inner.h"\n',
        '#include "deep/up.h"\n',  # climbs out of the folder that was laid out for the prefix
    ]
    files = {"inner.h": HEADER, "more.h": "#define MORE __LINE__ + 7\n", "never.h": "#error never\n"}
    files |= {"deep/more.h": "#define MORE 5 + sizeof(long)\n", "deep/up.h": '#include "../more.h"\n'}
    use = "helper(*p) + plus<MORE>(*p) + HERE + Base().f(2)"
    texts = {f"k{n}.cu": start + rest + KERNEL.replace("1", use) for n, rest in enumerate(rests)}
    root = write(tmp_path, files | texts)
    jobs = [make_job(root, f"k{n}.cu", toolkit_headers="auto") for n in range(len(rests))]
    counted = Counted(monkeypatch)
    images = with_prefix(jobs, space, includes=2)
    assert [told(image) for image in images] == told_alone(jobs, space)
    assert (counted.used, counted.given_up) == (4, 1)
    assert [len(image.reads.files) for image in images] == [2, 3, 3, 3, 4]


WHERE = "__device__ const char* where() { return __FILE__; }\n#define HERE __FILE__\n"
PLAIN = "#define where() __FILE__\n#define HERE __FILE__\n"
PUT = "#define PUT(a, b) a##b\n__device__ const char* where() { return PUT(__FI, LE__); }\n"
ABOVE = '#include "../b.h"\n'
NAMED: Mapping[str, tuple[str, Mapping[str, str], int]] = {
    "headers by their labels": ('#include "in/where.h"\n', {"in/where.h": WHERE}, 3),
    "along the search path": ("#include <where.h>\n", {"include/where.h": WHERE}, 3),
    "in the source alone": ('#include "in/plain.h"\n', {"in/plain.h": PLAIN}, 3),
    "a header by a way round": ('#include "in/../in/where.h"\n', {"in/where.h": WHERE}, 0),
    "another by a way round": ('#include "in/a.h"\n', {"in/a.h": ABOVE + WHERE, "b.h": "// b\n"}, 0),
    "by a way round, with no name": ('#include "in/a.h"\n', {"in/a.h": ABOVE, "b.h": "// b\n"}, 3),
    "a name put together": ('#include "in/a.h"\n', {"in/a.h": ABOVE, "b.h": PUT}, 0),
}


@pytest.mark.parametrize("odd", NAMED)
def test_names_of_files(tmp_path: Path, space: Workspace, monkeypatch: pytest.MonkeyPatch, odd: str) -> None:
    """What `__FILE__` gives, in headers and in sources, is what it is in compiles alone."""
    start, headers, shared = NAMED[odd]
    use = "(long long)" + ("where()" if "where" in str(headers) else "p")
    here = " + (long long)HERE" if "HERE" in str(headers) else ""
    texts = {f"k{n}.cu": start + "#include <nv/target>\n" + KERNEL.replace("1", use + here) for n in range(3)}
    root = write(tmp_path, {**texts, **headers})
    jobs = [make_job(root, name, toolkit_headers="auto", include_dirs=["include"]) for name in texts]
    counted = Counted(monkeypatch)
    images = with_prefix(jobs, space)
    assert (counted.used, counted.given_up) == (shared, 3 - shared)
    assert [told(image) for image in images] == told_alone(jobs, space)
    if "HERE" in str(headers):
        assert b"k2.cu\0" in images[2].data
        assert b"k0.cu\0" not in images[2].data


def test_a_trace_that_names_nothing_is_not_believed(
    tmp_path: Path, space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where NVRTC does not tell what the rest of a source reads, the job is compiled on its own."""
    start = "#include <cuda_fp16.h>\n"
    texts = {"a.cu": start + KERNEL, "b.cu": start + '#include "more.h"\n' + KERNEL, "more.h": ""}
    root = write(tmp_path, texts)
    plain, more = (make_job(root, name, toolkit_headers="auto") for name in ("a.cu", "b.cu"))
    found = Precompiled(whole_prefix(plain), space)
    assert found.compile(plain) is not None
    assert found.compile(more) is not None
    monkeypatch.setattr(precompiled, "traced_names", lambda path: [])
    assert found.compile(plain) is not None
    assert found.compile(more) is None
    found.remove()


LAYOUT = "struct Q {{ char c; int i; }};\n#define A sizeof(Q)\n"
NAMES = """\
static __device__ int one; namespace { __device__ int two; } __constant__ int three[4];
template <class T> __device__ T once(T x) { static T s; return s += x; }
"""
DIAGNOSTIC = "#include <cuda/std/__cccl/preprocessor.h>\n#include <cuda/std/__cccl/diagnostic.h>\n"
ODD: Mapping[str, tuple[str, str]] = {
    "a macro of the prefix is another one after it": ("#define A 3\n", "#undef A\n#define A (__LINE__)\n"),
    "an open namespace": ("#define A v\nnamespace x {\n", "__device__ int v = {n}; }} using x::v;\n"),
    "an open linkage": ('extern "C" {\n', "__device__ int v = {n}; }}\n#define A v\n"),
    "an open declaration": ("static __device__\n", "int v = {n};\n#define A v\n"),
    "an open template": ("template <class T>\n", "__device__ T same(T x) {{ return x; }}\n#define A same({n})\n"),
    "a layout that goes on": ("#pragma pack(push, 1)\n", LAYOUT),
    "a layout that has begun": ("#pragma pack(push, 1)\nstruct P { char c; int i; };\n", LAYOUT),
    "a layout that ends": ("#pragma pack(push, 1)\nstruct P { char c; int i; };\n#pragma pack(pop)\n", LAYOUT),
    "a layout by an operator": ('_Pragma("pack(1)")\n', LAYOUT),
    "a layout by a macro": ("#define SAY(x) _Pragma(#x)\nSAY(pack(1))\n", LAYOUT),
    "a layout by the toolkit's macro": (DIAGNOSTIC + "_CCCL_PRAGMA(pack(1))\n", LAYOUT),
    "a layout in disguise": ("#/**/pra\\\ngma pack(1)\n", LAYOUT),
    "a macro that is kept aside": (
        '#define A 3\n#pragma push_macro("A")\n#undef A\n#define A 4\n',
        '#pragma pop_macro("A")\n',
    ),
    "names of one file alone": (NAMES, "#define A (one + two + three[1] + once(4))\n"),
    "a guard that is lifted": (
        "#ifdef ONCE\n#error twice\n#endif\n#define ONCE\n#define A 1\n",
        '#undef ONCE\n#undef A\n#include "own.h"\n',
    ),
    "no precompiled headers, please": ("#define A 3\n", "#pragma nv_no_pch\n"),
    "an end of the prefix of its own": ("#define A 3\n", "#pragma nv_hdrstop\n"),
    "what is suppressed": (
        "#pragma nv_diag_suppress 177\n#define A 3\n",
        "static __device__ int never() {{ int x; return 1; }}\n",
    ),
}


@pytest.mark.parametrize("odd", ODD)
def test_odd_sources(tmp_path: Path, space: Workspace, odd: str) -> None:
    """Whatever headers leave behind, an image with a prefix is that of a compile alone."""
    header, rest = ODD[odd]
    start = '// c\n#include <nv/target>\n#include "own.h"\n'
    texts = {f"k{n}.cu": start + rest.format(n=n) + KERNEL.replace("1", f"A + {n}") for n in range(3)}
    ends = "\r\n" if len(odd) % 2 else "\n"
    root = write(tmp_path, {name: text.replace("\n", ends) for name, text in {**texts, "own.h": header}.items()})
    jobs = [make_job(root, f"k{n}.cu", toolkit_headers="auto") for n in range(3)]
    assert len(set(shared_prefixes(jobs).values())) <= 1
    assert [told(image) for image in with_prefix(jobs, space, includes=2)] == told_alone(jobs, space)
