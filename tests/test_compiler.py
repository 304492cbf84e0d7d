# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Sources with host code, compiled as they are: the same kernels, true line numbers, in a wheel and by the fallback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from jobs import KERNEL, compile_alone, make_job, one_unit, write
from projects import make_project, manifest_of

from hatch_cuda_kernels.cache import KernelCache, load_or_compile
from hatch_cuda_kernels.cli import main
from hatch_cuda_kernels.cubin import read_cubin
from hatch_cuda_kernels.errors import CompilationError
from hatch_cuda_kernels.nvrtc import AS_WRITTEN, RefusalError, Workspace, compile_shown, workspace

DEVICE = """
__constant__ float factor;
struct Pair { float a, b; };
__device__ float twice(float x) { return 2.0f * x; }
__global__ void scale(float *x, uint n) {
    uint i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = twice(x[i]) * factor + M_PI;
}
"""
BEFORE = """\
#include <cstdio>
#include <iostream>
#include <vector>
#include <cuda_runtime.h>
#include <torch/extension.h>
"""
AFTER = """
static std::vector<float> results;
void launch(float *x, int n) { scale<<<(n + 255) / 256, 256>>>(x, n); cudaDeviceSynchronize(); }
int main(int argc, char **argv) {
    std::cout << argc << std::endl;
    launch(nullptr, 0);
    return 0;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("launch", &launch); }
"""
PLAIN = "typedef unsigned int uint;\n#define M_PI 3.14159265358979323846\n" + DEVICE


@pytest.fixture(scope="module")
def space() -> Iterator[Workspace]:
    """A workspace for all tests here."""
    with workspace() as found:
        yield found


def test_host_code_is_passed_over(tmp_path: Path, space: Workspace) -> None:
    """A file with includes, launches, globals, main and bindings of the host gives the kernel of its device part."""
    write(tmp_path, {"k.cu": BEFORE + DEVICE + AFTER, "plain.cu": PLAIN})
    for arch in ("sm_80", "sm_90a"):
        whole = compile_alone(make_job(tmp_path, arch=arch, toolkit_headers="auto"))
        plain = compile_alone(make_job(tmp_path, "plain.cu", arch, toolkit_headers="auto"))
        assert whole.kernels == plain.kernels == {"scale": "_Z5scalePfj"}
        assert whole.entries == plain.entries
        assert read_cubin(whole.data) == read_cubin(plain.data)
    with pytest.raises(RefusalError):
        compile_shown(make_job(tmp_path, toolkit_headers="auto"), space, AS_WRITTEN)


def test_device_code_is_shown_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that NVRTC takes is compiled as it is: nothing of it is looked at."""
    write(tmp_path, {"k.cu": PLAIN})
    monkeypatch.setattr("hatch_cuda_kernels.reduction.settle", None)
    compile_alone(make_job(tmp_path, toolkit_headers="auto"))


def test_headers_of_the_project(tmp_path: Path) -> None:
    """Headers with host helpers are passed over as well, and an edit of any of them compiles again."""
    files = {
        "k.cu": '#include "helpers.cuh"\n__global__ void k(int *x) { *x = helper(*x); }\n',
        "helpers.cuh": "#include <string>\ninline std::string name() { return {}; }\n"
        "__device__ inline int helper(int v) { return v + 1; }\n",
    }
    write(tmp_path / "p", files)
    store = KernelCache.open(str(tmp_path / "cache"))
    for cached in (False, True):
        image, hit = load_or_compile(make_job(tmp_path / "p", toolkit_headers="auto"), store, compile_alone)
        assert hit is cached
        assert set(image.reads.files) == {"k.cu", "helpers.cuh"}
    write(tmp_path / "p", {"helpers.cuh": files["helpers.cuh"].replace("+ 1", "+ 2")})
    again, hit = load_or_compile(make_job(tmp_path / "p", toolkit_headers="auto"), store, compile_alone)
    assert not hit and again.data != image.data


def test_messages_point_into_the_file(tmp_path: Path) -> None:
    """An error in device code is the compiler's, at its own line; host code around it is not complained of."""
    wrong = DEVICE.replace("twice(x[i])", "thrice(x[i])")
    write(tmp_path, {"k.cu": BEFORE + wrong + AFTER})
    line = (BEFORE + wrong).split("thrice")[0].count("\n") + 1
    with pytest.raises(CompilationError, match=rf'(?s)k\.cu\({line}\): error: identifier "thrice" is undefined'):
        compile_alone(make_job(tmp_path, toolkit_headers="auto"))


def test_headers_of_the_host_without_a_stand_in(tmp_path: Path) -> None:
    """Headers that have no stand-in, since libcu++ looks for them, or that C++ has from C; placement new needs none."""
    names = "new version ranges scoped_allocator complex.h tgmath.h byteswap.h endian.h values.h".split()
    text = "".join(f"#include <{name}>\n" for name in names)
    text += "struct Cell { int a; __device__ explicit Cell(int v) : a(v) {} };\n"
    text += "__global__ void k(int *p) { Cell *cell = ::new (static_cast<void *>(p)) Cell(p[1]); p[2] = cell->a; }\n"
    write(tmp_path, {"k.cu": text})
    image = compile_alone(make_job(tmp_path, toolkit_headers="auto"))
    assert [omission.name for omission in image.passed_over] == names


def test_a_class_of_the_host_that_device_code_measures(tmp_path: Path) -> None:
    """The message is about that, and not about the headers of the host."""
    text = "#include <vector>\nstruct Layer { std::vector<int> v; static constexpr int n = 3; };\n"
    text += (
        "__global__ void k(int *p) { *p = sizeof(Layer) + Layer::n; }\nvoid b(int *p) { Layer l; k<<<1, 1>>>(p); }\n"
    )
    write(tmp_path, {"k.cu": text})
    with pytest.raises(CompilationError, match='incomplete type "Layer"'):
        compile_alone(make_job(tmp_path, toolkit_headers="auto"))


def test_a_missing_header_stays_an_error(tmp_path: Path) -> None:
    """A header that is nowhere and is none of the host's may have defined anything: it is never passed over."""
    write(tmp_path, {"k.cu": '#include "tuning.h"\n' + BEFORE + DEVICE + AFTER})
    with pytest.raises(CompilationError, match=r"(?s)tuning\.h.*include-dirs"):
        compile_alone(make_job(tmp_path, toolkit_headers="auto"))


@pytest.mark.parametrize("arch", ["sm_80", "compute_80"])
def test_device_code_that_calls_host_code(tmp_path: Path, arch: str) -> None:
    """A kernel that calls a function of the host is an error, for PTX too."""
    text = "#include <vector>\nint host(int v) { return std::vector<int>(v).size(); }\n"
    write(tmp_path, {"k.cu": text + "__global__ void k(int *x) { *x = host(*x); }\n"})
    with pytest.raises(CompilationError):
        compile_alone(make_job(tmp_path, arch=arch, toolkit_headers="auto"))


def test_refused_if_asked(tmp_path: Path) -> None:
    """With host-code = "error" each piece of host code is listed with its line, and device code compiles."""
    write(tmp_path, {"k.cu": BEFORE + DEVICE + AFTER, "plain.cu": PLAIN})
    with pytest.raises(CompilationError, match=r"(?s)host-code is 'error'.*k\.cu\(\d+\): function main"):
        compile_alone(make_job(tmp_path, host_code="error", toolkit_headers="auto"))
    compile_alone(make_job(tmp_path, "plain.cu", host_code="error", toolkit_headers="auto"))
    keys = {one_unit(tmp_path, host_code=value).content for value in ("skip", "error")}
    assert len(keys) == 2


def test_headers_are_told_as_well(tmp_path: Path) -> None:
    """With host-code = "error" host code of the project's headers is listed in one go, its includes among it; a header
    that NVRTC has no quarrel with is not."""
    header = "#include <vector>\ninline int count() { return std::vector<int>(3).size(); }\n"
    device = '#include "h.h"\n__global__ void k(int *x) { *x = 1; }\n'
    write(tmp_path, {"h.h": header, "k.cu": device, "both.cu": device + "int main() { return 0; }\n"})
    for source, pieces in (("k.cu", []), ("both.cu", ["both.cu(3): function main"])):
        with pytest.raises(CompilationError, match="host-code is 'error'") as caught:
            compile_alone(make_job(tmp_path, source, host_code="error", toolkit_headers="auto"))
        for piece in [*pieces, "h.h(1): include vector", "h.h(2): function count"]:
            assert piece in str(caught.value)
    write(tmp_path, {"h.h": f"#ifndef __CUDACC_RTC__\n{header}#endif\n"})
    compile_alone(make_job(tmp_path, host_code="error", toolkit_headers="auto"))


def test_wheel_and_fallback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A wheel of such a file, its fallback for every architecture, and the same bytes from another folder."""
    project = make_project(tmp_path, 'archs = ["sm_80", "compute_80"]', {"demo/k.cu": BEFORE + DEVICE + AFTER})
    run = project.build()
    assert run.status == 0, run.output
    (module,) = manifest_of(project.wheel())["modules"]
    assert module["host_code"] == "skip"
    assert module["kernels"] == {"scale": "_Z5scalePfj"}
    left_out = {(p["source"], p["kind"], p["name"]) for p in module["passed_over"]}
    assert {("demo/k.cu", "function", "main"), ("demo/k.cu", "include", "vector")} <= left_out
    lines = (BEFORE + DEVICE + AFTER).splitlines()
    assert all(p["name"].split("/")[0] in lines[p["line"] - 1] for p in module["passed_over"])
    assert f"host code passed over in 1 file: {len(module['passed_over'])} pieces" in run.output
    assert run.report is not None and run.report["images"][0]["passed_over"] == module["passed_over"]
    assert main(["inspect", str(project.wheel()), "--sources"]) == 0
    assert f"demo/k.cu({lines.index('#include <vector>') + 1}): include vector: " in capsys.readouterr().out
    again = project.build()
    assert set(again.outcomes.values()) == {"cached"}
    assert again.report is not None and again.report["images"][0]["passed_over"] == module["passed_over"]
    command = [sys.executable, "-m", "hatch_cuda_kernels", "verify", "--jit", str(project.wheel())]
    done = subprocess.run(
        command, env={**os.environ, "HATCH_CUDA_KERNELS_CACHE": "0"}, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0 and "no fallback" not in done.stdout, done.stdout


@pytest.mark.parametrize(
    "slip",
    [
        "this is no C++;\n",
        "foo bar;\n",
        "int x = 3\n;",
        "stuct Foo { int x; };\n",
        "#error not yet\n",
        "__devce__ int twice(int v) { return 2 * v; }\n",
        "tempate <> struct Traits<float> { static const int v = 2; };\n",
    ],
)
def test_slips_are_not_host_code(tmp_path: Path, slip: str) -> None:
    """A slip in a file without host code is the compiler's error; it is not explained away."""
    start = "template <class T> struct Traits { static const int v = 1; };\n"
    write(tmp_path, {"k.cu": start + slip + "__global__ void k(int *x) { *x = Traits<float>::v; }\n"})
    for toolkit in ("auto", "none"):
        with pytest.raises(CompilationError, match=r"k\.cu\(\d\): (catastrophic )?error"):
            compile_alone(make_job(tmp_path, toolkit_headers=toolkit))


@pytest.mark.parametrize(
    "slip",
    [
        "__devce__ int twice(int v) { return 2 * v; }\n",
        "__devise__ int twice(int v) { return 2 * v; }\n",
        "tempate <> struct Traits<float> { static const int v = 2; };\n",
        "template <> struct Traits<flaot> { static const int v = 2; };\n",
        "template <> stuct Traits<float> { static const int v = 2; };\n",
        '#define N 1\n#undef N\n#include "n.h"\n',
    ],
)
def test_slips_beside_host_code(tmp_path: Path, slip: str) -> None:
    """A slip that could change a kernel is an error beside host code, too."""
    start = "__device__ int twice(long v) { return 3 * v; }\n"
    start += "template <class T> struct Traits { static const int v = 1; };\n"
    kernel = "__global__ void k(int *x) { *x = Traits<float>::v + twice(*x); }\n"
    write(tmp_path, {"k.cu": BEFORE + start + slip + kernel + DEVICE + AFTER})
    with pytest.raises(CompilationError):
        compile_alone(make_job(tmp_path, toolkit_headers="auto"))


def test_predefined_names(tmp_path: Path) -> None:
    """Names that nvcc has unasked are there without host code, too."""
    write(tmp_path, {"k.cu": DEVICE})
    assert compile_alone(make_job(tmp_path, toolkit_headers="auto")).kernels == {"scale": "_Z5scalePfj"}


TRAITS = "template <class T> struct traits { static constexpr int N = 1; };\n"
USE = 'extern "C" __global__ void k(int *x) { *x = %s; }\n'
VOID = "template <class> struct V_ { typedef void t; };\n"
WHOLE = "template <int> struct W_ { typedef void t; };\n"
_SPACES = (
    "#include <vector>\nnamespace one { constexpr int n = 10; }\nnamespace py = one;\n"
    "namespace app { namespace py = torch::jit; int g(py::Value); "
)
TEMPTING = {
    "closed-in-arms-by-a-function": "#include <vector>\n__device__ int f(long) { return 2; }\nvoid h() {\n#ifndef OLD\n"
    "std::vector<int> a; }\n__device__ int f(int) { return 40; }\n#else\nstd::vector<float> b; }\n#endif\n"
    + USE % "f(1)",
    "closed-in-arms-by-a-class": "#include <vector>\n__device__ int f(long) { return 2; }\n"
    "struct H { std::vector<int> v;\n#ifndef OLD\nint a; };\n__device__ int f(int) { return 40; }\n#else\nfloat b; };\n"
    "#endif\n" + USE % "f(1)",
    "closed-in-arms-by-a-member": "#include <vector>\n__device__ int f(int) { return 2; }\nstruct S {\nvoid h() {\n"
    "#ifndef OLD\nstd::vector<int> a; }\n__device__ int f(int) { return 40; }\n#else\nstd::vector<float> b; }\n#endif\n"
    "__device__ int g(int x) { return f(x); }\n};\n" + USE % "S().g(1)",
    "closed-in-arms-by-the-device": "#include <vector>\nvoid h() { std::vector<int> q; }\n__device__ int f(int x) {\n"
    "#ifdef OLD\nreturn x + 1; }\n#elif defined(OLDER)\nreturn x + 2; }\n#else\nreturn x + 39; }\n#endif\n"
    + USE % "f(1)",
    "closed-in-arms-with-attributes": "#include <vector>\nstruct S {\n#ifndef OLD\nint a[10]; };\n#else\nint a[10]; } "
    "__attribute__((aligned(16)));\n#endif\nvoid h() { std::vector<int> v; }\n" + USE % "sizeof(S)",
    "closed-in-nested-arms": "#include <vector>\n__device__ int f(long) { return 2; }\n"
    "void h() { std::vector<int> v;\n#ifdef A\n}\n#else\n#if 1\nv.clear(); }\n"
    "__device__ int f(int) { return 40; }\n#else\nv.pop_back(); }\n#endif\n#endif\n" + USE % "f(1)",
    "instantiated-and-declared-by-macros": "#include <vector>\ntemplate <class T> struct V { T f; };\n"
    "#define MORE ; int f(int)\n#define INST(T) template struct V<T> MORE\n"
    "__device__ long f(long) { return 1; }\nextern INST(int);\nvoid h() { std::vector<int> q; }\n"
    + USE % "10 * sizeof(f(1))",
    "host-by-a-macro-of-two-arms": "#include <vector>\n#ifdef __CUDACC__\n#define STATE __host__ __device__\n#else\n"
    "#define STATE static const\n#endif\nSTATE int x = 5;\nvoid h() { std::vector<int> v; }\n"
    + USE % "(x = 40, 40)",
    "host-by-a-macro-with-more": "#include <vector>\n#define HD __host__ __device__ const unsigned\nHD char c = 200;\n"
    "void h() { std::vector<int> v; }\n" + USE % "(c == 200 ? 40 : 1)",
    "declared-and-templated-by-a-macro": "#include <vector>\n#define DECL(T) int f(T); template <class U> int g(U *)\n"
    "__device__ long f(int x) { return x; }\nextern DECL(long);\nvoid h() { std::vector<int> v; }\n"
    + USE % "10 * sizeof(f(1L))",
    "declared-by-an-argument": "#include <vector>\n#define FNDEF(n) int n(long x)\n"
    "__device__ long f(int x) { return x; }\nstatic inline FNDEF(f) { std::vector<int> v; return 1; }\n"
    + USE % "10 * sizeof(f(1L))",
    "declared-by-attributes": "#include <vector>\n#define EXPORT\n#define FNDEF(n) __attribute__((unused)) "
    "int n(long x) { return 1; }\n__device__ long f(int x) { return x; }\n"
    "EXPORT FNDEF(f) void g() { std::vector<int> v; }\n"
    + USE % "10 * sizeof(f(1L))",
    "another name of a namespace": _SPACES + USE % "py::n" + "}\n",
    "another name of a namespace in a macro": "#define OF(x) x::n\n" + _SPACES + USE % "OF(py)" + "}\n",
    "another name of a namespace in another": _SPACES + "namespace p = py;" + USE % "p::n" + "}\n",
    "another name of a namespace in a directive": _SPACES + "using namespace py;" + USE % "n" + "}\n",
    "specialisation": "#include <string>\n" + TRAITS
    + "template <> struct traits<float> { std::string name; static constexpr int N = 40; };\n"
    + USE % "traits<float>::N",
    "partial-specialisation": "#include <vector>\n" + TRAITS
    + "template <class T> struct traits<T *> { std::vector<T> v; static constexpr int N = 40; };\n"
    + USE % "traits<int *>::N",
    "inner-alias": "#include <torch/extension.h>\nusing scalar = float;\n"
    "namespace app { using scalar = at::opmath_t; __global__ void k(scalar *x) { *x = x[1] * x[2]; } }\n",
    "alias-of-ours": "#include <torch/extension.h>\n"
    "namespace app { using uint = at::opmath_t; __global__ void k(uint *x) { *x = x[1] * x[2]; } }\n",
    "outer-class": "#include <string>\nstruct Cfg { static constexpr int N = 1; };\n"
    "namespace a { struct Cfg { std::string s; static constexpr int N = 40; };\n" + USE % "Cfg::N" + "}\n",
    "overload": "#include <vector>\nstruct Big { int a[10]; };\n__device__ char foo(...);\n"
    "Big foo(int) { return Big(); }\n" + USE % "sizeof(foo(1))",
    "name-between-strings": "#include <torch/extension.h>\nnamespace app { using uint = at::opmath_t;\n"
    '__global__ void k(int *x) { printf("a\\n"); *x = sizeof(uint); printf("b\\n"); } }\n',
    "pasted-name": "#include <vector>\n#define P(a, b) a##b\nstruct Big { int a[10]; };\n__device__ char foo(...);\n"
    "Big foo(int) { return Big(); }\n" + USE % "sizeof(P(f, oo)(1))",
    "inner-variable": "#include <vector>\n__device__ int n = 1;\nnamespace app { static int n = 40;\n"
    + USE % "n" + "}\n",
    "inner-object": "#include <vector>\nenum { size = 1 };\nnamespace app { static std::vector<int> size;\n"
    + USE % "size" + "}\n",
    "function-in-a-macro": "#include <string>\n__device__ int pick(int) { return 1; }\n#define PICK pick(1)\n"
    "namespace app { int pick(std::string s) { return 40; }\n" + USE % "PICK" + "}\n",
    "constructor": "#include <string>\n#include <type_traits>\nstruct S { int a; S(std::string); };\n"
    + USE % "std::is_aggregate<S>::value ? 1 : 40",
    "both-sides": "#include <string>\nstruct Big { int a[10]; };\n__device__ char foo(...);\n"
    "__host__ __device__ Big foo(std::string);\n" + USE % 'sizeof(foo("x"))',
    "second-variable": "#include <vector>\n__device__ int n = 1;\nnamespace app { static int m, n = 40, *o;\n"
    + USE % "n" + "}\n",
    "pointer-to-a-function": "#include <vector>\ntypedef char Fn;\nnamespace app { typedef vendor_t (*Fn)(int);\n"
    + USE % "sizeof(Fn)" + "}\n",
    "unnamed-structure": "#include <cstdio>\nstruct C { char c; };\nnamespace app { typedef struct { FILE *f; } A, C;\n"
    + USE % "sizeof(C)" + "}\n",
    "specialised-member": "#include <string>\ntemplate <class T> struct S { static constexpr int n() { return 1; } };\n"
    "template <> constexpr int S<float>::n() { return 40; }\nvoid host(std::string) {}\n" + USE % "S<float>::n()",
    "asked-member-of-a-template": "#include <string>\nstruct Big { int a[10]; };\n"
    "struct Base { char name(...) const; };\n"
    "struct F : Base { Big name(int, std::string = {}) const; using Base::name; };\n"
    "template <class T> __device__ int size(const T &t) { return sizeof(t.name(1)); }\n"
    "__device__ F f;\n" + USE % "size(f)",
    "asked-through-a-macro": "#include <string>\nstruct Big { int a[10]; };\n#define SIZE(x) int(sizeof(x))\n"
    "__device__ char foo(...);\ntemplate <class T> vendor_t bar(T);\nBig foo(int, std::string s = {});\n"
    "void host(std::string) {}\n" + USE % "SIZE(foo(1))",
    "asked-in-a-macro": "struct Big { int a[10]; };\n__device__ char foo(...);\n#define BOTH(n) \\\n"
    "Big n(int) { return Big(); } __global__ void n##_k(int *x) { *x = sizeof(n(1)); }\nBOTH(foo)\n",
    "space-in-a-macro": "__device__ char foo(...);\n#define MAKE(S, n) __global__ void n##_k(int *x) { *x = 40; } \\\n"
    "S int n(int) { return 40; }\nMAKE(__device__, foo)\nvoid host() { throw 1; }\n" + USE % "foo(1)",
    "hidden-function": "#include <string>\n__device__ int pick(int) { return 1; }\n"
    "namespace app { int pick(std::string s) { return 40; }\n" + USE % "pick(1)" + "}\n",
    "made-from-a-number": "#include <string>\nstruct Big { int a[10]; };\n"
    "struct C { std::string s; C(int); };\n__device__ char foo(...);\n__device__ Big foo(C const &);\n"
    + USE % "sizeof(foo(1))",
    "made-from-a-number-by-a-template": "#include <string>\n#include <type_traits>\n"
    "struct C { std::string s; C(int); };\n"
    "template <class T> __device__ int g() { return std::is_convertible<int, T>::value ? 40 : 1; }\n" + USE % "g<C>()",
    "class-head-in-arms": "#include <string>\nstruct C { static constexpr int N = 1; };\nnamespace app {\n"
    "#ifdef ABSENT\nstruct alignas(8) C {\n#else\nstruct C {\n#endif\nstd::string s; static constexpr int N = 40; };\n"
    + USE % "C::N" + "}\n",
    "derived": "#include <string>\nstruct Base { int b; };\nstruct C : Base { std::string s; };\n"
    "__device__ int foo(const void *) { return 1; }\n__device__ int foo(const Base *) { return 40; }\n"
    "__device__ C *pointer;\n" + USE % "foo(pointer)",
    "slip-in-a-specialisation": "#include <string>\n" + TRAITS
    + "template <> struct traits<float> { static constexpr int N = 4; int a int b; };\n"
    + "template <class T> struct outer { static constexpr int N = traits<T>::N; };\nvoid host(std::string) {}\n"
    + USE % "outer<float>::N",
    "constant-of-the-host": "#include <string>\nnamespace app { constexpr int n() { return 1; }\nnamespace in {\n"
    "constexpr int n() { return vendor::n; }\nvoid host(std::string) {}\n" + USE % "n()" + "} }\n",
    "asked-operator": "#include <string>\n#include <utility>\n"
    "struct X { int v; std::string operator+(const X &) const; };\n"
    "template <class T, class = void> struct adds { static constexpr int N = 1; };\n"
    "template <class T> struct adds<T, decltype((void)(std::declval<T>() + std::declval<T>()))> "
    "{ static constexpr int N = 40; };\n" + USE % "adds<X>::N",
    "asked-index": "#include <vector>\nstruct X { int v; std::vector<int> operator[](int) const; };\n"
    "template <class T, class = void> struct has { static constexpr int N = 1; };\n"
    "template <class T> struct has<T, decltype((void)(T()[0]))> { static constexpr int N = 40; };\n"
    + USE % "has<X>::N",
    "asked-free-operator": "#include <string>\nstruct X { int v; };\nstd::string operator+(const X &, const X &);\n"
    "template <class T, class = void> struct adds { static constexpr int N = 1; };\n"
    "template <class T> struct adds<T, decltype((void)(T() + T()))> { static constexpr int N = 40; };\n"
    + USE % "adds<X>::N",
    "constructor-of-a-constant": "#include <cstdio>\n"
    "struct Id { int h; constexpr Id(FILE *) : h(40) {} constexpr Id(...) : h(1) {} };\n"
    "constexpr Id id(nullptr);\nconstexpr int chosen = id.h;\n" + USE % "chosen",
    "operator-of-a-class-that-others-turn-into": "#include <string>\n#include <utility>\nstruct Y { int v; };\n"
    "struct X { std::string s; X(const Y &); };\nbool operator==(const X &, const X &);\n"
    "template <class T, class = void> struct same { static constexpr int N = 1; };\n"
    "template <class T> struct same<T, decltype((void)(std::declval<T>() == std::declval<T>()))> "
    "{ static constexpr int N = 40; };\n" + USE % "same<Y>::N",
    "operator-of-any": "#include <string>\n#include <utility>\nstruct Y { int v; };\n"
    "template <class T> std::string operator==(const T &, const T &);\n"
    "template <class T, class = void> struct same { static constexpr int N = 1; };\n"
    "template <class T> struct same<T, decltype((void)(std::declval<T>() == std::declval<T>()))> "
    "{ static constexpr int N = 40; };\n" + USE % "same<Y>::N",
    "container-from-a-list": "#include <vector>\nstruct Big { int a[10]; };\n"
    "struct C { int n; C(int); C(const std::vector<int> &); };\n__device__ char foo(...);\n__device__ Big foo(C);\n"
    "template <class T> __device__ int g() { return sizeof(foo(T({1, 2}))); }\n" + USE % "g<C>()",
    "container-from-anything": "#include <vector>\n#include <type_traits>\n"
    "struct Any { template <class T> operator T() const; };\nstruct C { int n; C(const std::vector<int> &); };\n"
    "template <class T> __device__ int g() { return std::is_constructible<T, Any>::value ? 1 : 40; }\n"
    + USE % "g<C>()",
    "container-from-an-initializer-list": "#include <vector>\n#include <initializer_list>\n#include <type_traits>\n"
    "struct C { int n; C(const std::vector<int> &); };\nusing L = std::initializer_list<int>;\n"
    "template <class T> __device__ int g() { return std::is_constructible<T, L>::value ? 40 : 1; }\n" + USE % "g<C>()",
    "container-or-nothing": "#include <vector>\n#include <type_traits>\n"
    "struct C { int n; C(const std::vector<int> &v = {}); };\n"
    "template <class T> __device__ int g() { return std::is_constructible<T>::value ? 40 : 1; }\n" + USE % "g<C>()",
    "container-asked-for-by-name": "#include <vector>\nstruct Big { int a[10]; };\n__device__ char foo(...);\n"
    "__host__ __device__ Big foo(const std::vector<int> &v);\n" + USE % "sizeof(foo({1, 2}))",
    "pointer-to-a-container": "#include <vector>\n#include <type_traits>\nstruct C { int n; C(std::vector<int> *); };\n"
    "template <class T> __device__ int g() { return std::is_constructible<T, decltype(nullptr)>::value ? 40 : 1; }\n"
    + USE % "g<C>()",
    "class-of-an-instance": "#include <string>\n" + VOID + "struct C { int n; std::string s; };\n"
    "template <class T, class = void> struct has { static constexpr int v = 1; };\n"
    "template <class T> struct has<T, typename V_<decltype(T::n)>::t> { static constexpr int v = 40; };\n"
    "template <class T> __global__ void k(int *x) { *x = has<T>::v; }\nvoid f() { k<C><<<1, 1>>>(nullptr); }\n",
    "class-of-an-instance-by-an-alias": "#include <string>\n" + VOID + "struct C { int n; std::string s; };\n"
    "struct A { using type = C; };\ntemplate <class T, class = void> struct has { static constexpr int v = 1; };\n"
    "template <class T> struct has<T, typename V_<decltype(T::n)>::t> { static constexpr int v = 40; };\n"
    "template <class T> __global__ void k(int *x) { *x = has<T>::v; }\n"
    "void f() { k<A::type><<<1, 1>>>(nullptr); }\n",
    "class-of-a-deduced-instance": "#include <string>\n" + VOID + "struct C { int n; std::string s; };\n"
    "template <class T, class = void> struct has { static constexpr int v = 1; };\n"
    "template <class T> struct has<T, typename V_<decltype(T::n)>::t> { static constexpr int v = 40; };\n"
    "template <class T> __global__ void k(T *, int *x) { *x = has<T>::v; }\n"
    "void f(C *c, int *x) { k<<<1, 1>>>(c, x); }\n",
    "class-of-an-instance-that-measures": "#include <string>\n" + WHOLE + "struct C { int n; std::string s; };\n"
    "template <class T, class = void> struct has { static constexpr int v = 1; };\n"
    "template <class T> struct has<T, typename W_<sizeof(T)>::t> { static constexpr int v = 40; };\n"
    "template <class T> __device__ int ask(T *) { return has<T>::v; }\n__device__ C *c;\n" + USE % "ask(c)",
    "class-with-a-base-of-an-instance": "#include <string>\nstruct A { int a[40]; };\nstruct B { int b; };\n"
    "struct C : A, B { std::string s; };\n__device__ int f(B *) { return 40; }\n"
    "__device__ int f(void *) { return 1; }\n"
    "template <class T> __global__ void k(T *o, int *x) { *x = f(o); }\nvoid h() { k<C><<<1, 1>>>(nullptr, 0); }\n",
    "class-in-device-code-that-asks": "#include <string>\n" + VOID + "struct C { int n; std::string s; };\n"
    "template <class T, class = void> struct has { static constexpr int v = 1; };\n"
    "template <class T> struct has<T, typename V_<decltype(T::n)>::t> { static constexpr int v = 40; };\n"
    "template <class T> __device__ int ask(T *) { return has<T>::v; }\n__device__ C *c;\n" + USE % "ask(c)",
    "member": "#include <string>\ntemplate <class T> struct V_ { typedef void t; };\n"
    "template <class T, class = void> struct has { static constexpr int N = 1; };\n"
    "template <class T> struct has<T, typename V_<decltype(&T::name)>::t> { static constexpr int N = 2; };\n"
    "struct F { int q; std::string name(); };\n" + USE % "has<F>::N",
}  # fmt: skip


SHADOWING = {
    "a function in a macro": "#define BOTH(x, n) __global__ void x##_##n(int *p) { \\\n *p = __LINE__; \\\n} \\\n"
    "void x(int *p) { \\\n x##_##n<<<1, 1>>>(p); \\\n}\nBOTH(y, z)\n",
    "a class": "#include <string>\nclass x { std::string s; virtual std::string t() = 0; };\nint n(x *);\n",
    "a specialisation of a template of the library": "#include <limits>\n#include <string>\n"
    "struct Own { int v; };\n"
    "namespace std { template <> struct numeric_limits<Own> { static const int digits = 7; }; }\n"
    "void n(std::string);\n",
    "an overload with other arguments": "#include <string>\nvoid pick(std::string s, int) {}\n"
    "__device__ int pick(int v) { return v; }\ntypedef int T[sizeof(pick(1))];\n",
    "a function that has a pragma": '#include <string>\nvoid x() { _Pragma("unroll") for (std::string n;;); }\n',
    "a global variable": "float *x; int n;\n",
    "an operator on a stream": "#include <iostream>\n#include <type_traits>\nstruct x { int v; };\n"
    "inline std::ostream &operator<<(std::ostream &o, const x &a) { return o << a.v; }\n"
    "typedef std::enable_if<(sizeof(x) << 1) == 8, int>::type n;\n",
    "operators of a class template that is gone": "#include <string>\n#include <utility>\n"
    "template <class T> struct Pool { std::string name; T *next(); };\n"
    "template <class T, class U> bool operator==(const Pool<T> &, const Pool<U> &) { return true; }\n"
    "template <class T, class = void> struct same { static constexpr int N = 1; };\n"
    "template <class T> struct same<T, decltype((void)(std::declval<T>() == std::declval<T>()))> "
    "{ static constexpr int N = 40; };\nint of_the_host(vendor::Pool p) { return same<int>::N; }\n"
    "__device__ int asks = same<int>::N;\n",
    "an object": "#include <vector>\nstatic std::vector<float> x;\n",
    "a function that a macro calls": "#include <string>\nvoid n(std::string s) {}\n#define CHECK(s) n(s)\n",
    "what takes a container beside code that asks": "#include <vector>\n#include <type_traits>\n"
    "template <class T> struct V { T a[4]; __host__ __device__ V() {} V(const std::vector<T> &v) : a{v[0]} {}\n"
    "__host__ __device__ V(const V &o) { a[0] = o.a[0]; } };\n"
    "__host__ __device__ inline int at(std::vector<int> &v, int i) { return v[i]; }\n"
    "__host__ __device__ inline int at(const V<int> &v, int i) { return v.a[i]; }\n"
    "template <class T> __device__ int asks() { return std::is_constructible<T, int>::value ? 1 : 40; }\n"
    "__global__ void other(V<int> v, int *p) { *p = at(v, 1) + asks<V<int>>(); }\n",
    "a definition of a member": '#include <string>\nstruct x { x(); };\nx::x() { std::string s("x"); }\n',
}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, id=name, marks=() if number % 3 == 0 else pytest.mark.slow)
        for number, (name, text) in enumerate(SHADOWING.items())
    ],
)
def test_parameters_may_be_called_like_host_code(tmp_path: Path, text: str) -> None:
    """A name of the host that a kernel's parameter or local variable has too is no reason to refuse."""
    kernel = 'extern "C" __global__ void k(float *x, int n) { x[n] = 1; }\nvoid run() { k<<<1, 1>>>(nullptr, 0); }\n'
    write(tmp_path, {"k.cu": text + kernel})
    kernels = compile_alone(make_job(tmp_path, toolkit_headers="auto")).kernels
    others = {name for name in ("y_z", "other") if name in text or ("BOTH" in text and name == "y_z")}
    assert kernels["k"] == "k" and kernels.keys() - {"k"} == others


def test_a_function_that_another_file_names(tmp_path: Path) -> None:
    """A declaration of the host stays where another file names it: an overload set is what nvcc has."""
    header = "#include <vector>\nstruct Big { int a[10]; };\ninline Big foo(int v) { throw v; }\n"
    write(tmp_path, {"h.cuh": header, "k.cu": '#include "h.cuh"\n__device__ char foo(...);\n' + USE % "sizeof(foo(1))"})
    assert b", 40;" in compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="auto")).data


TEMPLATES = """
namespace app {
template <typename T, int N> __global__ void scale(T *x) { x[threadIdx.x] *= N; }
"""


def test_instances_come_from_launches(tmp_path: Path) -> None:
    """Instances that host code launches are kernels by the names that it gives them; the rest is warned of."""
    text = TEMPLATES + "void a(float *x) { const int n = 40; scale<float, n><<<1, 32>>>(x); }\n"
    text += "void b(vendor::Tensor x) { scale<vendor::Real, 2><<<1, 32>>>(x); }\n}\n"
    write(tmp_path, {"k.cu": text})
    image = compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="auto"))
    assert image.kernels == {"app::scale<float,40>": "_ZN3app5scaleIfLi40EEEvPT_"}
    (warning,) = image.warnings
    assert "scale<float" not in warning
    assert "k.cu(5): scale<vendor::Real, 2> (" in warning and "name-expressions" in warning
    listed = make_job(tmp_path, toolkit_headers="auto", name_expressions=["app::scale<int,3>"])
    image = compile_alone(listed)
    assert set(image.kernels) == {"app::scale<int,3>"} and not image.warnings


def test_no_instance_tells_what_to_list(tmp_path: Path) -> None:
    """Where no instance can be told, the error has the launches, and the table to paste."""
    write(tmp_path, {"k.cu": TEMPLATES + "template <typename T> void b(T *x) { scale<T, 2><<<1, 32>>>(x); }\n}\n"})
    with pytest.raises(CompilationError, match=r'(?s)k\.cu\(4\): scale<T, 2>.*source = "k\.cu".*scale<\.\.\.>'):
        compile_alone(make_job(tmp_path, toolkit_headers="auto"))


def test_an_instance_that_does_not_compile(tmp_path: Path) -> None:
    """It costs no other kernel, nor another instance of its own, and is warned of."""
    text = 'template <int N> __global__ void t(int *x) { static_assert(N < 8, "small"); *x = N; }\n' + KERNEL
    text += "void run(int *x) { t<3><<<1, 1>>>(x); t<9><<<1, 1>>>(x); t<absent><<<1, 1>>>(x); }\n"
    write(tmp_path, {"k.cu": text})
    image = compile_alone(make_job(tmp_path, toolkit_headers="auto"))
    assert set(image.kernels) == {"k", "t<3>"}
    (warning,) = (warning for warning in image.warnings if "instances of kernels" in warning)
    assert "k.cu(3): t<9> (t<9>: static assertion failed" in warning
    assert 't<absent> (t<absent>: identifier "absent" is undefined)' in warning and "t<3>" not in warning


def test_warnings_of_what_only_host_code_used(tmp_path: Path) -> None:
    """That a kernel or a constant is unused is no news where its launch was passed over; other warnings stay."""
    text = "#include <vector>\nstatic __global__ void k(int *x) { *x = 1; }\nstatic const int n = 4;\n"
    launch = "void run(int *x) { std::vector<int> v(n); k<<<1, 1>>>(x); }\n"
    write(tmp_path, {"k.cu": text + launch})
    assert compile_alone(make_job(tmp_path, toolkit_headers="auto")).warnings == ()
    slip = "__global__ void w(int *x) { int y; *x = y; }\n"
    write(tmp_path, {"k.cu": text + launch + slip})
    warnings = compile_alone(make_job(tmp_path, toolkit_headers="auto")).warnings
    assert "k.cu(5): warning #549-D" in warnings[0] and not any("#177-D" in warning for warning in warnings)
    write(tmp_path, {"k.cu": text + launch + "__global__ void u(int *x) { int unused = 3; *x = 1; }\n"})
    warnings = compile_alone(make_job(tmp_path, toolkit_headers="auto")).warnings
    assert 'k.cu(5): warning #177-D: variable "unused"' in warnings[0] and not any('"n"' in text for text in warnings)


def test_warnings_of_spaces_that_the_author_did_not_write(tmp_path: Path) -> None:
    """A function of the host that stays gets an execution space where it is declared: nothing is said of that, but of
    declarations of the author's that differ."""
    text = "#include <vector>\nstruct S { constexpr int n() const; %s constexpr int m() const; };\n"
    text += "constexpr int S::n() const { return 1; }\nconstexpr int S::m() const { return 2; }\n"
    text += "__global__ void k(S s, int *x) { *x = s.m(); }\nvoid f() { std::vector<int> v; }\n"
    write(tmp_path, {"k.cu": text % ""})
    assert compile_alone(make_job(tmp_path, toolkit_headers="auto")).warnings == ()
    write(tmp_path, {"k.cu": text % "__device__"})
    warnings = compile_alone(make_job(tmp_path, toolkit_headers="auto")).warnings
    told = [warning for warning in warnings if "redeclared without __device__" in warning]
    assert len(told) == 1 and '"S::m"' in told[0]


def test_macros_that_configure_headers(tmp_path: Path) -> None:
    """What a file defines for the toolkit's headers is defined for those that are read before it, too."""
    text = "#define __CUDA_NO_HALF_OPERATORS__\n#include <cuda_fp16.h>\n#include <cublas_v2.h>\n"
    text += "template <class T> __device__ T operator+(T a, T b) { return __hsub(a, b); }\n"
    text += "__global__ void k(__half *p) { p[0] = p[1] + p[2]; }\nvoid run() { throw 1; }\n"
    write(tmp_path, {"k.cu": text})
    image = compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="auto"))
    assert b"sub.f16" in image.data or b"sub{.f16" in image.data
    assert b"add.f16" not in image.data


TRAIT = "template <class T> struct W { static constexpr int v = 1; };\n"
MACROS = {
    "a specialisation with a function of the host": TRAIT
    + '#define SPEC(T, N) template <> struct W<T> { static constexpr int v = N; static void show() { printf(#T); } };\n'
    "SPEC(float, 40)\n" + USE % "W<float>::v",
    "a semicolon at the use": TRAIT
    + '#define SPEC(T, N) template <> struct W<T> { enum { v = N }; static const char *name() { return #T; } }\n'
    "SPEC(float, 40);\n" + USE % "W<float>::v",
    "a macro as an argument": TRAIT + "#define SIZE 40\n"
    "#define SPEC(T, N) template <> struct W<T> { static constexpr int v = N; static void show() { throw #N; } };\n"
    "SPEC(float, SIZE)\n" + USE % "W<float>::v",
    "macros that a macro is given": TRAIT
    + "#define SPEC(T, N) template <> struct W<T> { static constexpr int v = N; static void show() { throw #N; } };\n"
    "#define EACH(X) X(int, 10) X(float, 40)\nEACH(SPEC)\n" + USE % "W<float>::v",
    "members of data": "#define PROPERTY(T, n) T n##_; T n() const { return n##_; } void set_##n(T v) { n##_ = v; }\n"
    "struct P { PROPERTY(double, width) PROPERTY(double, height) char rest[24]; };\n" + USE % "sizeof(P)",
    "members without parentheses": "#define BASE double a, b, c; void show() { throw a; }\n"
    "struct P { char tag; BASE long d; };\n" + USE % "sizeof(P)",
    "a virtual function": '#define NAMED virtual const char *name() const { return "P"; }\n'
    "struct P { char c[32]; NAMED };\n" + USE % "sizeof(P)",
    "an overload": "constexpr int wid(double) { return 1; }\n"
    '#define WIDTH(T, N) constexpr int wid(T) { return N; } inline void dbg(T x) { printf("%f", x); }\n'
    "WIDTH(float, 40)\n" + USE % "wid(1.f)",
    "a namespace": "constexpr int tile = 1;\n"
    "#define OPEN(T) namespace N { constexpr int tile = T; void hi() { throw 1; } }\n"
    "OPEN(40)\nnamespace N {\n" + USE % "tile" + "}\n",
    "a constant beside a launch": "constexpr int n = 1;\n__global__ void other() {}\nnamespace app {\n"
    "#define START(f) static const int n = 40; void f() { other<<<1, 1>>>(); }\nSTART(go)\n" + USE % "n" + "}\n",
    "a specialisation of a function": "template <class T> constexpr int width() { return 1; }\n"
    "#define WIDE(T, N) template <> constexpr int width<T>() { return N; } void print_##T() { throw 1; }\n"
    "WIDE(float, 40)\n" + USE % "width<float>()",
    "a macro for constexpr": "template <class T> constexpr int width() { return 1; }\n#define CX constexpr\n"
    "template <> CX int width<float>() { return 40; }\nconstexpr int n = width<float>();\n" + USE % "n",
    "a list of arguments": TRAIT
    + "#define SPEC(T, ...) template <> struct W<T> { static constexpr int all[] = {__VA_ARGS__}; "
    "static constexpr int v = all[0] + sizeof(#__VA_ARGS__); static const char *s() { return #__VA_ARGS__; } };\n"
    "SPEC(float, (1, 31),   2)\n" + USE % "W<float>::v - 2",
    "a typedef": "enum { Big_N = 40 };\n"
    "#define TYPE(n) typedef struct n { char a[n##_N]; void show() { throw 1; } } n##_t;\n"
    "TYPE(Big)\n" + USE % "sizeof(Big_t)",
    "two definitions": TRAIT + "#ifdef ABSENT\n#define SPEC(T, N) void f() {}\n#else\n#define SPEC(T, N) "
    "template <> struct W<T> { static constexpr int v = N; static void show(); };\n#endif\nSPEC(float, 40)\n"
    + USE % "W<float>::v",
}  # fmt: skip
"""What a macro brings besides functions of the host stays."""


@pytest.mark.parametrize("text", MACROS.values(), ids=MACROS)
def test_macros_that_bring_more_than_host_code(tmp_path: Path, text: str) -> None:
    """A use of a macro is no unit: specialisations, members and constants stay where a function beside them goes."""
    write(tmp_path, {"k.cu": "#include <cstdio>\n#include <vector>\nvoid host() { std::vector<int> v; }\n" + text})
    try:
        image = compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="auto"))
    except CompilationError:
        assert "#ifdef ABSENT" in text  # of which definition is meant, only a preprocessor knows
    else:
        assert b", 40;" in image.data


def test_macros_that_differ_in_attributes(tmp_path: Path) -> None:
    """A macro for old functions is another one for each compiler, and brings the same function of the host."""
    text = (
        "#include <cstdio>\n#ifdef __GNUC__\n#define OLD(f, hint) f __attribute__((deprecated(hint)))\n"
        "#elif defined(_MSC_VER)\n#define OLD(f, hint) __declspec(deprecated(hint)) f\n#else\n"
        "#define OLD(f, hint) f\n#endif\n#define API extern\n"
        'OLD(API double size_of(int type), // size()\n    "use (\\"row\\") :) instead");\nint wid(float);\n'
        "__device__ int wid(double) { return 40; }\n"
    )
    write(tmp_path, {"k.cu": text + USE % "wid(1.0)" + "void run() { printf(0, size_of(3)); }\n"})
    image = compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="auto"))
    assert b", 40;" in image.data
    assert [(p.line, p.kind, p.name) for p in image.passed_over][:1] == [(10, "function", "size_of")]


def test_arguments_that_a_macro_quotes(tmp_path: Path) -> None:
    """A macro that is given to another is expanded first; the text alone does not do that, and is left alone."""
    text = (
        "#include <cstdio>\n#include <vector>\n#define WHICH tile\n#define CAT(a, b) a##b\n"
        "#define MAKE(n) constexpr int CAT(n, _v) = 40; void CAT(n, _f)() { std::vector<int> v; }\n"
        "constexpr int WHICH_v = 1;\nMAKE(WHICH)\n"
    )
    write(tmp_path, {"k.cu": text + USE % "tile_v + WHICH_v - 1"})
    try:
        image = compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="auto"))
    except CompilationError:
        return
    assert b", 40;" in image.data


def test_a_class_keeps_a_constructor(tmp_path: Path) -> None:
    """A class without any would be laid out otherwise where others derive from it: these begin in its last bytes."""
    text = (
        "#include <vector>\nclass Config { std::vector<int> sizes; public: int n() const; };\n"
        "struct Params { int n; char kind; Params(const Config& c) : n(c.n()), kind(1) {} };\n"
        "struct Wide : Params { char flag; Wide(const Config& c) : Params(c), flag(2) {} };\n"
        "struct Plain { int n; char kind; __host__ Plain(const std::vector<int>& c) : n(c.size()), kind(1) {} };\n"
        "struct More : Plain { char flag; More(std::vector<int>& c) : Plain(c), flag(2) {} };\n"
        "template <class T> struct Any { T n; char kind; template <class U> explicit Any(std::vector<U>&& c) {} };\n"
        "struct Last : Any<int> { char flag; using Any<int>::Any; };\n"
        "__global__ void k(Wide w, More m, Last l, int *o) { o[w.flag] = sizeof w + sizeof m + sizeof l; }\n"
        "void run(const Config& c, std::vector<int> v, int *o) {\n"
        "  k<<<1, 1>>>(Wide(c), More(v), Last(std::vector<int>()), o);\n}\n"
    )
    write(tmp_path, {"k.cu": text})
    image = compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="auto"))
    assert b", 24;" in image.data


DECLARED_WITH_A_TYPE = {
    "a structure": "struct O { int n; double d; } opts = {3, 4};\n" + USE % "sizeof(O) + 24",
    "a static structure": "static struct O { int n[10]; } opts, *all[2];\n" + USE % "sizeof(O)",
    "an enumeration": "enum { RED, GREEN = 40 } color;\n" + USE % "GREEN",
    "a constant by an alias": "typedef const int cint;\ncint n = 40;\n" + USE % "n",
    "a continued string": 'void say() { printf("a\\\r\nb"); }\n' + USE % "40",
}


@pytest.mark.parametrize("text", DECLARED_WITH_A_TYPE.values(), ids=DECLARED_WITH_A_TYPE)
def test_declarations_of_several_things(tmp_path: Path, text: str) -> None:
    """A type stays where a variable of the host is declared with it, and so does a constant by its type's name."""
    write(tmp_path, {"k.cu": "#include <cstdio>\n" + text + "int main() { printf(0); }\n"})
    assert b", 40;" in compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="auto")).data


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, id=name, marks=() if number % 15 == 0 else pytest.mark.slow)
        for number, (name, text) in enumerate(TEMPTING.items())
    ],
)
def test_another_declaration_never_takes_over(tmp_path: Path, text: str) -> None:
    """Where a declaration of the host would uncover another one for the device, the source is refused."""
    write(tmp_path, {"k.cu": text})
    try:
        image = compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="auto"))
    except CompilationError:
        return
    assert b", 40;" in image.data  # the overload may be kept, and is the right one then


PACKED = "struct Header { char tag; int value; };\n"
READS = "__global__ void k(Header *h, int *o) { o[0] = h[1].value; }\n"


@pytest.mark.parametrize(
    "text",
    [
        '#define BEGIN _Pragma("pack(push,1)")\n#define END _Pragma("pack(pop)")\nBEGIN\nstatic int n = 0;\n' + PACKED
        + 'END\nint main() { std::vector<int> v; printf("%d", n); }\n' + READS,
        'void h() { std::vector<int> v; _Pragma("pack(1)") }\n' + PACKED + READS,
        '_Pragma("pack(1)") std::vector<int> v;\n' + PACKED + READS,
    ],
)  # fmt: skip
def test_pragmas_at_host_code(tmp_path: Path, text: str) -> None:
    """An operator `_Pragma` that lays out classes does not go with the host code beside it."""
    write(tmp_path, {"k.cu": "#include <vector>\n#include <cstdio>\n" + text})
    try:
        image = compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="auto"))
    except CompilationError as error:
        assert "#pragma pack, on a line of its own" in str(error)
        return
    assert b"+12]" not in image.data


def test_version_of_cuda(tmp_path: Path) -> None:
    """`CUDA_VERSION` is that of the compiler where `cuda.h`, which NVRTC cannot read, was passed over."""
    test = "#if CUDA_VERSION >= 12000 && CUDA_VERSION < 20000\n#define N 77\n#else\n#define N 2\n#endif\n"
    text = "#include <cuda.h>\n#include <vector>\n" + test
    write(tmp_path, {"k.cu": text + "__global__ void k(int *o) { *o = N; }\nvoid f() { std::vector<int> v; }\n"})
    assert b", 77;" in compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="auto")).data


def test_enumerator_of_a_base(tmp_path: Path) -> None:
    """An argument that a base class of the launching class declares is that one, not the one outside."""
    text = (
        "#include <vector>\ntemplate <int n> __global__ void r(int *x) { x[0] = n; }\nconstexpr int TILE = 3;\n"
        "struct Base { enum { TILE = 9 }; };\nstruct L : Base { void go() { r<TILE><<<1, 1>>>(nullptr); } };\n"
        "__global__ void k(int *o) { *o = 1; }\nvoid f() { std::vector<int> v; L().go(); k<<<1, 1>>>(nullptr); }\n"
    )
    write(tmp_path, {"k.cu": text})
    image = compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="auto"))
    assert set(image.kernels) == {"k", "r<9>"}
    assert not image.warnings


LOOKED_UP = {
    "a class": ("struct X { int a; };\n", "X", "X"),
    "a template": ("template <class T> struct Box { T a; };\nusing X = Box<int>;\n", "Box<int>", "Box<int>"),
    "by another name": ("struct X { int a; };\nusing Y = X;\n", "Y", "X"),
}


@pytest.mark.parametrize(
    ("declared", "taken", "asked"),
    [pytest.param(*each, id=name, marks=pytest.mark.slow) for name, each in LOOKED_UP.items()],
)
def test_functions_that_libraries_look_up(tmp_path: Path, declared: str, taken: str, asked: str) -> None:
    """A host function by whose name CUDA's libraries ask about a type is not passed over."""
    text = (
        f"#include <vector>\n#include <cuda/std/utility>\n#include <cuda/std/type_traits>\n{declared}"
        f"void swap({taken} &, {taken} &) {{ std::vector<int> v; }}\n"
        f"__global__ void k(int *o) {{ *o = cuda::std::is_nothrow_swappable<{asked}>::value; }}\n"
    )
    write(tmp_path, {"k.cu": text})
    told = r"(?s)cannot be passed over safely.*by the types of their.*function swap"
    with pytest.raises(CompilationError, match=told):
        compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="auto"))


@pytest.mark.parametrize(
    ("function", "refused"),
    [
        ("int get(const X &, int) { return 1; }", False),
        pytest.param("void swap(X &) { }", False, marks=pytest.mark.slow),
        pytest.param("int get(const X &) { return 1; }", True, marks=pytest.mark.slow),
        pytest.param("int get(const X &, int = 1) { return 1; }", True, marks=pytest.mark.slow),
        ("int get(const X &, int = 1); int get(const X &, int) { return 1; }", True),
    ],
)
def test_arguments_that_libraries_give(tmp_path: Path, function: str, refused: bool) -> None:
    """A host function is nothing that CUDA's libraries look up which takes more or fewer arguments than they give."""
    text = (
        "#include <vector>\n#include <cuda/std/utility>\nstruct X { int a; };\nvoid f(std::vector<X> &);\n"
        f"{function}\n__global__ void k(X *x) {{ x->a = 1; }}\n"
    )
    write(tmp_path, {"k.cu": text})
    job = make_job(tmp_path, toolkit_headers="auto")
    if refused:
        with pytest.raises(CompilationError, match="by the types of their"):
            compile_alone(job)
    else:
        assert set(compile_alone(job).kernels) == {"k"}


LOST = {
    "after-a-function-that-arms-close": "#ifndef OLD\nstd::vector<int> a; }\n"
    "template <class T> __global__ void k(T *p) { *p = 1; }\ntemplate __global__ void k<float>(float *);\n"
    "#else\nstd::vector<float> b; }\n#endif\n",
    "defined-where-arms-close": "#ifndef OLD\nstd::vector<int> v; }\n"
    "template <class T> __global__ void k(T *p) { *p = 1; }\nvoid g() { k<float><<<1, 1>>>(nullptr); }\n"
    "#else\n }\n#endif\n",
    "opened-by-another-arm": "std::vector<int> v; }\n#ifdef B\nvoid g(float *p) {\n#else\n"
    "template <class T> __global__ void k(T *p) {\n#endif\n p[0] = 1; }\ntemplate __global__ void k<float>(float *);\n",
    "defined-after-a-comment": "std::vector<int> v; k<float><<<1, 1>>>(nullptr); }\n#ifndef __CUDACC_RTC__\n"
    "template <class T> __global__ void k(T *p /* in; out */) { *p = 1; }\n#endif\n",
    "defined-for-nvcc": "std::vector<int> v; k<float><<<1, 1>>>(nullptr); }\n#ifndef __CUDACC_RTC__\n"
    "template <class T> __global__ void k(T *p) { *p = 1; }\n#endif\n",
}


@pytest.mark.parametrize("text", LOST.values(), ids=LOST)
def test_no_kernel_is_lost(tmp_path: Path, text: str) -> None:
    """A kernel that stands where the text is hard to tell apart is there, or the source is refused."""
    ahead = "#include <vector>\ntemplate <class T> __global__ void k(T *p);\nvoid h() {\n"
    write(tmp_path, {"k.cu": ahead + text + "__global__ void last(int *p) { *p = 2; }\n"})
    try:
        image = compile_alone(make_job(tmp_path, toolkit_headers="auto"))
    except CompilationError:
        return
    assert set(image.kernels) == {"last", "k<float>"}


INSTANTIATED_BY_MACROS = """\
#include <vector>
#define API
#define NORETURN [[noreturn]]
#define FORMAT(...) __attribute__((format(printf, __VA_ARGS__)))
#define CASE(t) template void many<t>(std::vector<int> &args, int stream)
extern "C" {
NORETURN FORMAT(1, 2)
API void fail(const char *format, ...);
}
template <int N> void many(std::vector<int> &args, int stream) {}
extern CASE(3);
enum { FOUR = 4 };
extern CASE(FOUR);
__device__ int args(int stream) { return stream; }
__device__ int printf(int format) { return format + 1; }
__global__ void k(int *p) { int format = args(1); *p = printf(format); }
"""


def test_what_macros_instantiate_declares_no_name(tmp_path: Path) -> None:
    """What a macro names that makes an explicit instantiation, or attributes of a function, is no name that goes."""
    write(tmp_path, {"k.cu": INSTANTIATED_BY_MACROS})
    image = compile_alone(make_job(tmp_path, toolkit_headers="auto"))
    assert set(image.kernels) == {"k"}
    assert [(each.kind, each.name) for each in image.passed_over if each.kind in ("function", "instantiation")] == [
        ("function", "fail"),
        ("function", "many"),
        ("instantiation", "CASE"),
        ("instantiation", "CASE"),
    ]


@pytest.mark.slow
def test_addresses_of_objects(tmp_path: Path) -> None:
    """`std::addressof`, which came with a header of the host."""
    text = (
        "#include <memory>\nstruct S { int a; __device__ S *operator&() const { return nullptr; } };\n"
        "__global__ void k(S *s) { std::addressof(s[1])->a = 5; }\nvoid f(std::unique_ptr<S> &);\n"
        "void g() { k<<<1, 1>>>(nullptr); }\n"
    )
    write(tmp_path, {"k.cu": text})
    image = compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="auto"))
    assert b"+4]" in image.data


def test_instantiated_classes_of_the_host(tmp_path: Path) -> None:
    """An explicit instantiation of a class goes with it, whatever else device code calls like it."""
    text = (
        "#include <vector>\ntemplate <class T> class Loss { std::vector<T> v; public: void run(T *); };\n"
        "template <class T> __global__ void k(T *Loss) { *Loss = 3; }\n"
        "template <class T> void Loss<T>::run(T *x) { k<T><<<1, 1>>>(x); }\n"
        "template class Loss<float>;\ntemplate class Loss<double>;\n"
    )
    write(tmp_path, {"k.cu": text})
    assert set(compile_alone(make_job(tmp_path)).kernels) == {"k<float>", "k<double>"}


def test_headers_of_the_host_by_macros(tmp_path: Path) -> None:
    """An include by a macro that stands for a header of the host goes; so does what a library of the host generates."""
    text = (
        "#include <vector>\n#if TRACES\n#define STACK_H <execinfo.h>\n#else\n#define STACK_H\n#endif\n"
        "#define UNWIND_H <cxxabi.h>\n#include UNWIND_H\n#ifdef STACK_H\n#if TRACES\n#include STACK_H\n#endif\n#endif\n"
        '#include "layers.pb.h"\n#ifdef PLUGIN\n#include PLUGIN\n#endif\n'
        "__global__ void k(int *x) { *x = 1; }\nvoid f() { std::vector<int> v; }\n"
    )
    write(tmp_path, {"k.cu": text, "layers.pb.h": "#if PROTOBUF_VERSION < 3021000\n#error protoc\n#endif\n"})
    assert set(compile_alone(make_job(tmp_path, defines={"TRACES": "1"})).kernels) == {"k"}


def test_own_headers_by_macros(tmp_path: Path) -> None:
    """A header of the project is read, though it is included by a macro and called like one of the host's."""
    text = (
        '#include <vector>\n#define STEPS "process.h"\n#include STEPS\n'
        "__global__ void k(int *x) { *x = step(); }\nvoid f() { std::vector<int> v; }\n"
    )
    write(tmp_path, {"k.cu": text, "process.h": "__device__ inline int step() { return 77; }\n"})
    assert b", 77;" in compile_alone(make_job(tmp_path, arch="compute_80")).data


def test_a_place_for_plugins_in_a_class(tmp_path: Path) -> None:
    """An include by a macro that nothing defines does not make a part of a class of the file."""
    text = (
        '#include <vector>\n#include "matrix.h"\nstruct Device { explicit Device(const std::string &name); };\n'
        "__global__ void k(int *x) { *x = 1; }\nvoid f(Device &) { k<<<1, 1>>>(nullptr); }\n"
    )
    header = "struct Matrix {\n#ifdef MATRIX_PLUGIN\n#include MATRIX_PLUGIN\n#endif\nint rows; };\n"
    write(tmp_path, {"k.cu": text, "matrix.h": header})
    assert set(compile_alone(make_job(tmp_path)).kernels) == {"k"}


def test_a_function_without_a_body_that_is_called(tmp_path: Path) -> None:
    """A call of a function that nothing defines is an error, as with nvcc, where it is not in a dead branch."""
    text = (
        "#include <vector>\ntemplate <int N> __device__ inline void put(int *x);\n"
        "template <> __device__ inline void put<40>(int *x) { *x = 40; }\n"
        "template <int N> __global__ void k(int *x) { if (N > 8) put<N>(x); }\n"
        "void run(int *x) { std::vector<int> v; k<%s><<<1, 1>>>(x); k<40><<<1, 1>>>(x); }\n"
    )
    write(tmp_path, {"k.cu": text % 4})
    image = compile_alone(make_job(tmp_path))
    assert set(image.kernels) == {"k<4>", "k<40>"}
    write(tmp_path, {"k.cu": text % 9})
    with pytest.raises(CompilationError, match="Unresolved extern function"):
        compile_alone(make_job(tmp_path))
    with pytest.raises(CompilationError, match="put"):
        compile_alone(make_job(tmp_path, arch="compute_80"))


@pytest.mark.parametrize("value", ["measured()", "sqrt(two)", "*&two"])
def test_constants_that_are_none(tmp_path: Path, value: str) -> None:
    """What only a program's start computes is nothing that a kernel can use, whatever stands beside it."""
    text = (
        "#include <cmath>\n#include <vector>\ndouble measured();\nconst double two = 2.0, half = 1.0 / two;\n"
        "const double *const where = &half;\n"
        f"const double late = {value};\n__global__ void k(double *x) {{ *x = half + %s; }}\n"
        "void run(double *x) { std::vector<double> v(3, late + *where); k<<<1, 1>>>(x); }\n"
    )
    write(tmp_path, {"k.cu": text % "two"})
    assert set(compile_alone(make_job(tmp_path, toolkit_headers="auto")).kernels) == {"k"}
    write(tmp_path, {"k.cu": text % "late"})
    if value != "*&two":  # which both compilers take for a constant
        with pytest.raises(CompilationError, match="late"):
            compile_alone(make_job(tmp_path, toolkit_headers="auto"))


def test_an_attribute_that_lays_out(tmp_path: Path) -> None:
    """An attribute that nvcc lays classes out by, and this NVRTC not in this standard, is refused with the way out."""
    text = (
        "#include <vector>\nstruct Empty {};\n"
        "template <class A> struct Holder { [[no_unique_address]] A a; int n; };\n"
        "__global__ void k(Holder<Empty> h, int *x) { *x = 36 + sizeof(h); }\n"
        "void run(int *x) { std::vector<int> v; k<<<1, 1>>>({{}, 1}, x); }\n"
    )
    write(tmp_path, {"k.cu": text})
    for options in ({}, {"disable-warnings": True}, {"diag-suppress": 1097}):
        with pytest.raises(CompilationError, match=r"no_unique_address.*c\+\+20"):
            compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="auto", options=options))
    image = compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="auto", options={"std": "c++20"}))
    assert b", 40;" in image.data


LISTS = {
    "specialisations": "template <> struct Code<T> { static constexpr int value = v; };",
    "functions": "__device__ inline int pick(T) { return v; }",
    "overloads of an operator": "__device__ inline int operator|(Code<T>, int) { return v; }",
    "constants": "__constant__ int of_##T = v;",
    "specialisations whose name is pasted": "template <> struct PASTE(Co, de)<T> { static constexpr int value = v; };",
}
LISTED = {
    "TYPES": "#define TYPES X(float, 1) X(double, 2)",
    "ALL(X)": "#define ALL(M) M(float, 1) M(double, 2)",
    "EACH(X)": "#define ONE(M, a) M a\n#define TWO(M, a, ...) M a ONE(M, __VA_ARGS__)\n#define GET(_1, _2, N, ...) N\n"
    "#define EACH_OF(M, ...) GET(__VA_ARGS__, TWO, ONE)(M, __VA_ARGS__)\n"
    "#define EACH(M) EACH_OF(M, (float, 1), (double, 2))",
}
FOLLOWING = {
    "a function": "std::vector<std::string> names() { return {}; }",
    "a class": "struct Opts { std::vector<std::string> t; int n() const { return 3; } };",
    "a variable": "static std::vector<std::string> table;",
    "an alias, and what nothing reaches": "using Table = std::vector<std::string>;\n"
    "struct Opts { Table t; __host__ __device__ int n() const { return 3; } };",
}


@pytest.mark.parametrize("after", FOLLOWING.values(), ids=FOLLOWING)
@pytest.mark.parametrize(
    "made",
    [pytest.param(made, id=name, marks=() if "spec" in name else pytest.mark.slow) for name, made in LISTS.items()],
)
@pytest.mark.parametrize(
    "use", ["TYPES", *(pytest.param(use, marks=pytest.mark.slow) for use in ("TYPES;", "TYPES ", "EACH(X)", "ALL(X)"))]
)
def test_lists_by_macros(tmp_path: Path, use: str, made: str, after: str) -> None:
    """What a list makes by a macro that is defined several times stays, whatever host code follows it."""
    text = (
        "template <class T> struct Code { static constexpr int value = 0; };\n"
        "struct Any { template <class T> __device__ Any(T) {} }; __device__ inline int pick(Any) { return 7; }\n"
        "__device__ inline int operator|(Any, int) { return 7; } __device__ int of_other;\n"
        f"{LISTED[use.strip('; ')]}\n#define PASTE(a, b) a##b\n#define X(T, v) {made}\n{use}%s\n#undef X\n"
        "template <class T> __device__ int all() { return Code<T>::value + pick(T()) * 10 + (Code<T>() | 1) * 100; }\n"
        'extern "C" __global__ void k(int *p) { p[0] = all<float>(); p[1] = all<double>(); }\n%s'
    )
    host = "void run(int *p) {\n#define X(T, v) k<<<1, 1>>>(p);\nX(float, 1)\n}\n"
    between = "" if use.endswith(" ") else "\n"
    write(tmp_path, {"k.cu": "#include <string>\n#include <vector>\n" + text % (between + after, host)})
    image = compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="auto"))
    assert image.passed_over
    write(tmp_path, {"k.cu": text % ("", "")})
    plain = compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="auto"))
    assert not plain.passed_over and code_of_ptx(image.data) == code_of_ptx(plain.data)


_MAKES = "#define MAKE(n) __global__ void n(int *p) { *p = %d; } void n##_h() { std::string s; n<<<1, 1>>>(0); }\n"
ANEW = {
    "undefined between": _MAKES % 40 + "MAKE(k)\n#undef MAKE\n" + _MAKES % 41 + "MAKE(other)\n",
    "the last before the use": _MAKES % 41 + "#undef MAKE\n" + _MAKES % 40 + "MAKE(k)\n",
    "in an arm that is taken": f"#ifdef FLAG\n{_MAKES % 40}#else\n{_MAKES % 41}#endif\nMAKE(k)\n",
    "in an arm that is not taken": f"{_MAKES % 40}#ifndef FLAG\n#undef MAKE\n{_MAKES % 41}#endif\nMAKE(k)\n",
    "all in one arm": f"#ifdef FLAG\n{_MAKES % 41}#undef MAKE\n{_MAKES % 40}#if 1\nMAKE(k)\n#endif\n#endif\n",
    "put aside": f'{_MAKES % 40}#pragma push_macro("MAKE")\n#undef MAKE\n{_MAKES % 41}'
    '#pragma pop_macro("MAKE")\nMAKE(k)\n',
    "in a header": _MAKES % 41 + '#include "h.cuh"\nMAKE(k)\n' + "#undef MAKE\n" + _MAKES % 42,
    "of another number of arguments": "#define MAKE(n, m) struct n {};\nMAKE(a, b)\n#undef MAKE\n"
    + _MAKES % 40
    + "MAKE(k)\n",
    "that the build sets, too": "#undef LAST\n#define LAST 40\n#undef LAST\n" + _MAKES % 40 + "MAKE(k)\n",
    "that another file defines, too": '#include "h.cuh"\n#undef MAKE\n' + _MAKES % 40 + "MAKE(k)\n",
    "that another file defines between": _MAKES % 41 + '#include "h.cuh"\nMAKE(k)\n',
    "by another macro": _MAKES % 40 + "#define USE MAKE(k)\nUSE\n#undef MAKE\n" + _MAKES % 41 + "MAKE(other)\n",
}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(t, id=name, marks=() if "arm" in name or "file" in name else pytest.mark.slow)
        for name, t in ANEW.items()
    ],
)
def test_macros_that_are_defined_anew(tmp_path: Path, text: str) -> None:
    """A kernel comes from the definition that is in force at the use, which the preprocessor tells where the text does
    not; or the file is refused."""
    header = "#undef MAKE\n" + _MAKES % 40
    write(tmp_path, {"k.cu": "#include <string>\n" + text, "h.cuh": header})
    job = make_job(tmp_path, arch="compute_80", toolkit_headers="auto", defines={"FLAG": True, "LAST": "1"})
    if "push_macro" in text:
        with pytest.raises(CompilationError, match="MAKE"):
            compile_alone(job)
    else:
        image = compile_alone(job)
        code = image.data.decode().partition(".entry _Z1kPi")[2].partition("}")[0]
        assert ", 40;" in code


IN_FILES = {
    "a list": ("OP(k, 40)\n", True),
    "a list with commas": ("OP(k, 40);\n/* more */ OP(j, (41)) // last\n", True),
    "a list and a declaration": ("OP(k, 40)\nstruct Other;\n", True),
    "a list that is read once": ("#pragma once\nOP(k, 40)\n", True),
    "a list with conditionals": ("#ifdef A\nOP(j, 40)\n#else\nOP(k, 40)\n#endif\n#undef OP\n", True),
    "a list with its lines": ("#ifdef A\n#endif\nOP(k, __LINE__)\n", False),
}


@pytest.mark.parametrize(("content", "fine"), IN_FILES.values(), ids=IN_FILES)
def test_lists_in_files(tmp_path: Path, content: str, fine: bool) -> None:
    """A file that only lists is expanded for each of its includes; the image depends on it all the same."""
    text = (
        "#include <string>\n#define OP(n, v) __global__ void n(int *p) { *p = v; } void n##_h() { std::string s; }\n"
        '#include "ops.def"\n#undef OP\n#define OP(n, v) void n##_run() { std::string s; n<<<1, 1>>>(0); }\n'
        '#include "ops.def"\n'
    )
    write(tmp_path, {"k.cu": text, "ops.def": content})
    job = make_job(tmp_path, arch="compute_80", toolkit_headers="auto")
    if not fine:
        with pytest.raises(CompilationError, match=r"ops\.def"):
            compile_alone(job)
        return
    image = compile_alone(job)
    assert set(image.kernels) == {name for name in "kj" if f"({name}," in content} - (
        {"j"} if "#else" in content else set()
    )
    assert {"k.cu", "ops.def"} <= set(image.reads.files)


def code_of_ptx(data: bytes) -> list[str]:
    """The lines of PTX that say what is done."""
    return [line for line in data.decode().splitlines() if line and not line.startswith("//")]


INSIDE = {
    "a kernel": ('extern "C" __global__ void k(float *p) {\n#include "%s"\n}', "p[threadIdx.x] *= 2.0f;\n"),
    "a loop": (
        'extern "C" __global__ void k(float *p) {\nfor (int i = 0; i < 4; ++i) {\n#include "%s"\n}}',
        "float sum = 0;\nif (i > 1) { sum += p[i]; }\np[i] = sum;\n",
    ),
    "a function": (
        '__device__ float f(float x) {\n#include "%s"\n}\nextern "C" __global__ void k(float *p) { *p = f(*p); }',
        "float y = x * 3;\nreturn y;\n",
    ),
    "a class": (
        'struct V {\n#include "%s"\nfloat last; };\nextern "C" __global__ void k(V v, float *p) { *p = v.last; }',
        "float a;\ndouble b;\nint c[3];\n",
    ),
    "a list": (
        '__constant__ float t[] = {\n#include "%s"\n};\nextern "C" __global__ void k(float *p) { *p = t[*p > 0]; }',
        "1.0f,\n2.0f,\n",
    ),
    "an enumeration": (
        'enum E {\n#include "%s"\n};\nextern "C" __global__ void k(int *p) { *p = three; }',
        "one = 1,\nthree = 3,\n",
    ),
}


@pytest.mark.parametrize(
    "way", ["named", *(pytest.param(way, marks=pytest.mark.slow) for way in ("by a macro", "by another file"))]
)
@pytest.mark.parametrize(("text", "inside"), INSIDE.values(), ids=INSIDE)
def test_included_inside(tmp_path: Path, text: str, inside: str, way: str) -> None:
    """A file that is included inside of something has no host code, whatever it looks like by itself."""
    if way == "by a macro":
        text = '#define INSIDE "inside.inc"\n' + text.replace('"%s"', "INSIDE")
    text = text.replace("%s", "outer.inc" if way == "by another file" else "inside.inc")
    host = "#include <vector>\n%s\nvoid run(std::vector<int> v) { v.clear(); }\n"
    files = {"inside.inc": inside, "outer.inc": '#include "inside.inc"\n'}
    write(tmp_path, {**files, "k.cu": host % text})
    image = compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="auto"))
    assert {omission.source for omission in image.passed_over} == {"k.cu"}
    write(tmp_path, {"k.cu": text})
    plain = compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="auto"))
    assert code_of_ptx(image.data) == code_of_ptx(plain.data)
