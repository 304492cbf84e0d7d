# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What is said of a refusal: hints for real refusals of NVRTC, and command lines that repeat them."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from jobs import KERNEL, compile_alone, make_job, write
from projects import make_project

from hatch_cuda_kernels.advice import folders_that_hold, repeat_command
from hatch_cuda_kernels.cli import main
from hatch_cuda_kernels.errors import CompilationError, ConfigurationError
from hatch_cuda_kernels.options import check_options

BODY = 'extern "C" __global__ void k(int *p) {{ {} }}\n'


@pytest.mark.parametrize(
    ("arch", "source", "hint"),
    [
        ("sm_90", BODY.format('asm volatile("wgmma.fence.sync.aligned;");'), "wgmma.fence may be .* sm_90a"),
        ("sm_100", BODY.format('asm volatile("tcgen05.fence::before_thread_sync;");'), "sm_100a"),
        ("sm_75", BODY.format('asm volatile("cp.async.commit_group;");'), "begins with sm_80; .* __CUDA_ARCH__ >= 800"),
        ("sm_80", BODY.format("auto f = [] __device__ (int x) { return x; }; *p = f(1);"), "no extended lambdas"),
        ("sm_80", KERNEL + 'extern "C" __global__ void m(int *p) { k<<<1, 1>>>(p); }', "launch from the host"),
        ("sm_80", "constexpr int one() { return 1; }\n" + BODY.format("*p = one();"), "no --expt-relaxed-constexpr"),
        ("sm_80", BODY.format("std::vector<int> v;"), "cuda::std"),
        ("sm_80", BODY.format("__half h = 1;"), "__half is declared by <cuda_fp16.h>"),
        (
            "sm_80",
            BODY.format("*p = TILE_M;"),
            "TILE_M: a macro that a program sets .* goes into the table defines: .*TILE_M =",
        ),
        (
            "sm_80",
            BODY.format("*p = tile_m;"),
            'nothing here declares tile_m.* defines = { tile_m = "..." }.*pre-include',
        ),
        (
            "sm_80",
            "texture<float, 1> t;\n" + BODY.format("*p = tex1Dfetch(t, 0);"),
            "gone since CUDA 12.*TextureObject",
        ),
        ("sm_80", '#include "surface_functions.h"\n' + KERNEL, "gone since CUDA 12"),
        ("sm_80", "#include <nvfunctional>\n" + KERNEL, "gone since CUDA 13"),
        (
            "sm_80",
            "#define WIDE(bits) __int##bits\n" + BODY.format("WIDE(128) a = *p; *p = a * a;"),
            "options.device-int128 = true",
        ),
        ("sm_80", "#include <vector>\n" + BODY.format("std::vector<int> v;"), "cuda::std"),
        ("sm_80", '#include "no/where.cuh"\n' + KERNEL, "no/where.cuh"),
        ("sm_80", "#error libcu++ requires at least C++ 17\n" + KERNEL, 'options.std = "c..17"'),
        (
            "sm_80",
            '#error "nvcc flag --expt-extended-lambda is required"\n' + KERNEL,
            "__CUDACC_EXTENDED_LAMBDA__ = true",
        ),
        (
            "sm_80",
            "template <int> struct A;\n"
            "template <int N> struct S { template <int M = N> __device__ static typename A<M>::t f();\n"
            "template <int M = N> __device__ typename A<M>::u f() const; };\n" + KERNEL,
            "class = void",
        ),
    ],
    ids=(
        "suffix family newer lambda launch constexpr std include macro lower texture surface function int128 "
        "host-header missing standard lambdas static"
    ).split(),
)
def test_hints(tmp_path: Path, arch: str, source: str, hint: str) -> None:
    """A refusal whose cause is known says what to do."""
    job = make_job(write(tmp_path, {"k.cu": source}), arch=arch)
    with pytest.raises(CompilationError, match=rf"(?s)m for {arch}: NVRTC refuses k\.cu.*hint: .*{hint}"):
        compile_alone(job)


def test_what_went_with_the_host_code(tmp_path: Path) -> None:
    """Device code that misses what was passed over is told where that is, and why it went."""
    text = "#include <string>\ntexture<float, 1> grid;\nstruct Plan { enum Kind { FAST }; std::string name; };\n"
    text += BODY.format("*p = tex1Dfetch(grid, 0) + sizeof(Plan);") + "void host() { k<<<1, 1>>>(nullptr); }\n"
    with pytest.raises(CompilationError) as caught:
        compile_alone(make_job(write(tmp_path, {"k.cu": text}), toolkit_headers="auto"))
    message = str(caught.value)
    assert "grid of k.cu(2): a texture or surface reference, which CUDA has no more since version 12" in message
    assert "Plan of k.cu(3): host code" in message and "defines" not in message


def test_device_runtime(tmp_path: Path) -> None:
    """A call of the runtime in device code is told from one of the host."""
    job = make_job(write(tmp_path, {"k.cu": BODY.format("void *q; cudaMalloc(&q, 4);")}))
    with pytest.raises(CompilationError, match="cudaMalloc in device code needs the device runtime"):
        compile_alone(job)


def test_a_lambda_without_annotation(tmp_path: Path) -> None:
    """What the hint about lambdas recommends compiles."""
    source = BODY.format("auto f = [] (int x) { return x; }; *p = f(1);")
    assert compile_alone(make_job(write(tmp_path, {"k.cu": source}))).kernels == {"k": "k"}


def test_ptxas_option_of_nvcc(tmp_path: Path) -> None:
    """An option of nvcc among those of ptxas is told."""
    job = make_job(write(tmp_path, {"k.cu": KERNEL}), options={"ptxas-options": ["--extended-lambda"]})
    with pytest.raises(CompilationError, match="ptxas-options takes options of ptxas"):
        compile_alone(job)


@pytest.mark.parametrize(
    ("option", "advice"),
    [
        ("maxrregcount", "write max-register-count"),
        ("--use_fast_math", "write use-fast-math"),
        ("expt-relaxed-constexpr", "device-as-default-execution-space"),
        ("gencode", "use the key archs"),
        ("-Xcompiler", "no host compiler"),
        ("extended_lambda", "no extended lambdas"),
    ],
)
def test_option_of_nvcc(option: str, advice: str) -> None:
    """An option that only nvcc has is told as such, with what to write."""
    problems: list[str] = []
    check_options({option: True}, "options", problems)
    (told,) = problems
    assert told.startswith(f"options.{option}: is an option of nvcc; ")
    assert advice in told


@pytest.mark.slow
def test_a_header_that_the_project_has(tmp_path: Path) -> None:
    """A header that lies in the project, outside of include-dirs, is named, and its folder mends the build."""
    files = {"demo/k.cu": '#include "deep/value.cuh"\n' + KERNEL, "third_party/lib/deep/value.cuh": "// here\n"}
    project = make_project(tmp_path, 'archs = ["sm_80", "sm_90"]', files)
    run = project.build()
    assert run.status == 1
    (hint,) = [line for line in run.output.splitlines() if "the project has deep/value.cuh" in line]
    table = hint.rpartition(": ")[2]
    assert table == 'include-dirs = ["third_party/lib"]'
    assert "k for sm_80, k for sm_90: NVRTC refuses" in run.output
    project.write({"pyproject.toml": (project.root / "pyproject.toml").read_text() + table + "\n"})
    assert project.build().status == 0


def test_folders_that_hold(tmp_path: Path) -> None:
    """Whole names count, and the root is a folder too."""
    write(tmp_path, {"v.h": "", "a/v.h": "", "a/xv.h": "", "b/a/v.h": ""})
    assert folders_that_hold("v.h", tmp_path) == [".", "a", "b/a"]
    assert folders_that_hold("a/v.h", tmp_path) == [".", "b"]
    assert folders_that_hold("../a/v.h", tmp_path) == [".", "b"]


Compile = Callable[..., tuple[int, str, str]]


@pytest.fixture
def compile_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Compile:
    """Runs a printed line in a project's root: (status, output, errors)."""

    def run(line: str, root: Path, *more: str) -> tuple[int, str, str]:
        words = shlex.split(line)
        assert words[0] == "hatch-cuda-kernels"
        monkeypatch.chdir(root)
        capsys.readouterr()
        status = main([*words[1:], *more])
        return (status, *capsys.readouterr())

    return run


@pytest.mark.slow
def test_repeat_a_failure(tmp_path: Path, compile_line: Compile) -> None:
    """The line that a failing build prints gives the same message, and once the source is mended, success."""
    table = 'archs = ["sm_90"]\ninclude-dirs = ["my include"]\ndefines = { N = 3, BARE = true, TEXT = "a b" }\n'
    table += '[tool.hatch.build.hooks.cuda-kernels.options]\nstd = "c++20"\nuse-fast-math = true\n'
    table += "[[tool.hatch.build.hooks.cuda-kernels.modules]]\nsource = 'demo/k.cu'\nname-expressions = ['k<float>']\n"
    source = '#include "v.cuh"\n#ifdef BARE\ntemplate <class T> __global__ void k(T *x) { *x = N; {} }\n#endif\n'
    files = {"demo/k.cu": source.replace("{}", "wrong"), "my include/v.cuh": "// v\n"}
    project = make_project(tmp_path, table, files)
    run = project.build()
    assert run.status == 1
    (line,) = [line[len("repeat: ") :] for line in run.output.splitlines() if line.startswith("repeat: ")]
    status, output, errors = compile_line(line, project.root)
    message = 'demo/k.cu(3): error: identifier "wrong" is undefined'
    assert message in run.output and message in errors
    assert (status, output) == (1, "")
    project.write({"demo/k.cu": source.replace("{}", "")})
    status, output, errors = compile_line(line, project.root, "-o", str(tmp_path / "k.cubin"))
    assert status == 0, errors
    assert "k<float>" in output
    assert (tmp_path / "k.cubin").read_bytes().startswith(b"\x7fELF")


def test_repeat_gives_the_same_image(tmp_path: Path, compile_line: Compile) -> None:
    """The image of the line is the image of the job, whatever the job has."""
    root = write(tmp_path, {"a b/k.cu": '#include "v.h"\n' + KERNEL, "inc/v.h": "#define A B\n"})
    options = {"ptxas-options": ["-O3", "-v"], "fma": False, "max-register-count": 32}
    job = make_job(root, "a b/k.cu", "sm_90a", include_dirs=["inc"], options=options, defines={"B": "'\"'", "C": True})
    status, _, errors = compile_line(repeat_command(job), root, "-o", "k.cubin")
    assert status == 0, errors
    assert (root / "k.cubin").read_bytes() == compile_alone(job).data


@pytest.mark.slow
def test_repeat_a_linked_module(tmp_path: Path, compile_line: Compile) -> None:
    """A module of several sources is linked again by its line."""
    table = 'archs = ["sm_80"]\n[[tool.hatch.build.hooks.cuda-kernels.modules]]\nsource = ["demo/a.cu", "demo/b.cu"]\n'
    table += "options = { link-time-optimization = true }\n"
    caller = '__device__ int twice(int v);\nextern "C" __global__ void k(int *x) { *x = twice(*x); }\n'
    files = {"demo/a.cu": caller, "demo/b.cu": "__device__ int other(int v) { return v; }\n"}
    project = make_project(tmp_path, table, files)
    run = project.build()
    assert run.status == 1
    (line,) = [line[len("repeat: ") :] for line in run.output.splitlines() if line.startswith("repeat: ")]
    status, _, errors = compile_line(line, project.root)
    assert status == 1
    assert "twice" in errors and "nvJitLink" in errors
    project.write({"demo/b.cu": "__device__ int twice(int v) { return 2 * v; }\n"})
    status, _, errors = compile_line(line, project.root)
    assert status == 0, errors


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (["missing.cu", "--arch", "sm_80"], 1, "missing.cu"),
        (["k.cu", "--arch", "sm_80", "--option", "maxrregcount=3"], 1, "write max-register-count"),
        (["k.cu", "--arch", "sm_80", "-D", "1X"], 1, "is no macro name"),
        (["/etc/hostname", "--arch", "sm_80"], 1, "absolute path"),
    ],
)
def test_misuse_of_compile(tmp_path: Path, compile_line: Compile, arguments: list[str], status: int, told: str) -> None:
    """What cannot be compiled is one message."""
    write(tmp_path, {"k.cu": KERNEL})
    found, _, errors = compile_line(shlex.join(["hatch-cuda-kernels", "compile", *arguments]), tmp_path)
    assert found == status
    assert told in errors


def test_compile_takes_one_architecture(compile_line: Compile, tmp_path: Path) -> None:
    """An architecture is spelled as NVRTC spells it: anything else is misuse."""
    with pytest.raises(SystemExit) as caught:
        compile_line("hatch-cuda-kernels compile k.cu --arch 9.0", tmp_path)
    assert caught.value.code == 2


def test_utf16(tmp_path: Path) -> None:
    """A source that some editor saved as UTF-16 says how to save it."""
    with pytest.raises((CompilationError, ConfigurationError), match="UTF-8"):
        compile_alone(make_job(write(tmp_path, {"k.cu": KERNEL.encode("utf-16")})))


@pytest.mark.parametrize(
    ("before", "body"),
    [("", "FILE *f;"), ("", "*p = __COUNT__;"), ("#define MAKE(n) n = 1;\n", "*p = Mode;\nMAKE(Mode)")],
)
def test_no_hint_that_misleads(tmp_path: Path, before: str, body: str) -> None:
    """Names of the host's library and of the compiler, and what a macro of the file is given, are no settings."""
    write(tmp_path, {"k.cu": before + BODY.format(body)})
    with pytest.raises(CompilationError, match="is undefined") as caught:
        compile_alone(make_job(tmp_path))
    assert "defines = {" not in str(caught.value)
