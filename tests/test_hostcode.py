# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Host code is passed over: what goes, what stays, where it stays, and that NVRTC takes what is left."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hatch_cuda_kernels.cubin import read_cubin
from hatch_cuda_kernels.hostcode import (
    PassedOver,
    Settled,
    Surroundings,
    mark_fragments,
    mentions,
    pass_over,
    prelude,
    settle,
    uncovering,
)
from hatch_cuda_kernels.manifest import squeeze_name
from hatch_cuda_kernels.standins import write_standins
from hatch_cuda_kernels.toolchain import import_nvrtc

KERNEL = "__global__ void k(int* p)\n{\n    *p = 1;\n}\n"

GOES = {
    "function": "void launch(int* p) { k<<<1, 1>>>(p); }",
    "static function": "static int twice(int x)\n{\n    return 2 * x;\n}",
    "explicit host": '__host__ void show() { puts("}"); }',
    "prototype": "void launch(int* p);",
    "main": "int main(int argc, char** argv)\n{\n    k<<<1, 1>>>(nullptr);\n    return 0;\n}",
    "old main": "main() { return 0; }",
    "extern C function": 'extern "C" int launch(int* p) { return 0; }',
    "extern C block": 'extern "C" {\nint launch(int* p) { return 0; }\n}',
    "template": "template <typename T, int N = (3 > 2)>\nvoid launch(T* p) { k<<<1, N>>>(p); }",
    "instantiation": "template <typename T> void run(T x) { }\ntemplate void run<int>(int);",
    "namespace": "namespace a::b {\nvoid launch() { std::vector<int> v{1, 2}; }\n}",
    "anonymous namespace": "namespace {\nint counter = 0;\nvoid count() { ++counter; }\n}",
    "global": "int counter;",
    "initialised global": "static int table[] = {1, 2, 3};",
    "string global": 'const char* name = "k";',
    "string constant": 'const std::string name = "k";',
    "object": "static std::vector<int> all(3);",
    "dim3": "dim3 grid(16, 16);",
    "thread local": "thread_local int depth = 0;",
    "reference return": "static std::map<std::string, std::vector<int>>& registry() { static auto r = 1; return r; }",
    "torch": "torch::Tensor forward(torch::Tensor x) { return x; }",
    "pybind": 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n    m.def("forward", &forward);\n}',
    "torch library": 'TORCH_LIBRARY(demo, m) { m.def("k() -> ()"); }',
    "test": "TEST(Demo, Works) { EXPECT_EQ(1, 1); }",
    "function macro": "#define RUN(T) void run_##T() { k<<<1, 1>>>(nullptr); }\nRUN(float)\nRUN(double);",
    "host class": "class Holder {\n    std::vector<int> v;\npublic:\n    int size() const;\n};",
    "includes": "#include <iostream>\n#include <vector>\n#include <torch/extension.h>\n#include <cublas_v2.h>",
    "macro with a function": "#define CHECK(x) check((x), __LINE__)\nvoid check(int e, int l) { }",
    "conditional heads": "#ifdef WIDE\nvoid launch(long n) {\n#else\nvoid launch(int n) {\n#endif\n    (void)n;\n}",
    "conditional end": "void launch(int n) {\n#ifdef WIDE\n    if (n) {\n#else\n    {\n#endif\n    }\n}",
    "dead": "#if 0\nvoid broken( { ' \"\n#endif\nvoid launch() { }",
    "raw string": 'const char* text = R"x(} ) " )x";\nvoid launch() { }',
    "lambda": "auto twice = [](int x) { return 2 * x; };",
    "function try": "void launch() try { } catch (...) { }",
    "trailing return": "auto launch(int n) -> std::vector<int> { return {}; }",
    "attributes": "[[nodiscard]] static inline __attribute__((noinline)) int launch() noexcept { return 0; }",
    "pointer to function": "static void (*callback)(int) = nullptr;",
    "out of class": "struct S { int n; void grow(); };\nvoid S::grow() { ++n; }",
    "stream operator": "struct P { int x; };\nstd::ostream& operator<<(std::ostream& o, P p) { return o << p.x; }",
    "destructor": "template <typename T> struct S { ~S(); };\ntemplate <typename T> S<T>::~S() { free(0); }",
    "operator": "struct P { int x; };\nbool operator<(const P& a, const P& b) { return a.x < b.x; }",
    "static member": "struct S { static int count; int n; };\nint S::count = 0;",
    "digraphs": "struct S <% int v<:2:>; int sum() const <% return v<:0:>; %> %>;\nvoid launch() <% %>",
    "no digraph": "namespace a { struct S { int n; }; }\nvoid launch(std::vector<::a::S> v) { v.clear(); }",
    "stable torch library": 'STABLE_TORCH_LIBRARY_IMPL(demo, CUDA, m) { m.impl("k", &k); }',
}
"""Text that NVRTC refuses and that has to be gone, or harmless, afterwards."""

STAYS = {
    "device function": "__device__ int f(int x) { return x; }",
    "both": "__host__ __device__ inline int f(int x) { return x; }",
    "macro": "#define HD __host__ __device__\nHD int f(int x) { return x; }",
    "macro of a macro": "#define A __device__\n#define B A __forceinline__\nB int f(int x) { return x; }",
    "constant memory": "__constant__ float c[4];",
    "managed": "__managed__ int m;",
    "const": "const int n = 4;\nstatic const float f = 2.5f;\nconst int a[] = {1, 2};",
    "constexpr": "constexpr int n = 4;",
    "enum": "enum { A, B };\nenum class E : int { C };",
    "alias": "typedef int T;\nusing U = int;\nusing namespace std;",
    "template kernel": "template <class T> __global__ void g(T* p) { *p = 1; }\ntemplate __global__ void g<int>(int*);",
    "bounds": "__global__ void __launch_bounds__(128) g(int* p) { *p = 2; }",
    "bounds first": "__launch_bounds__(128) __global__ void g(int* p) { *p = 2; }",
    "macro for kernels": "#define MAKE(T) __global__ void g_##T(T* p) { *p = 0; }\nMAKE(int)\nMAKE(float);",
    "static_assert": 'static_assert(sizeof(int) == 4, "int");',
    "variable template": "template <typename T> constexpr bool wide = sizeof(T) > 4;",
    "own namespace": "namespace at { struct X { int n; }; }\nstruct Y { at::X x; };\nconst at::X x = {1};",
    "member of a class": "struct S { __device__ int f(); };\nint S::f() { return 1; }",
    "aggregate": "struct P { int x, y; };",
    "defaulted": "struct P { P() = default; int x; };",
}


def compiled(text: bytes, tmp_path: Path, *options: str) -> tuple[str | None, bytes]:
    """NVRTC's log where it refuses, and the cubin where it does not."""
    nvrtc = import_nvrtc()
    error, program = nvrtc.nvrtcCreateProgram(text, b"t.cu", 0, [], [])
    assert not error
    standins = write_standins(tmp_path / "standins")
    flags = [b"--gpu-architecture=sm_80", b"--std=c++17", f"-I{standins}".encode(), *(o.encode() for o in options)]
    (error,) = nvrtc.nvrtcCompileProgram(program, len(flags), flags)
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = b"\0" * size
    nvrtc.nvrtcGetProgramLog(program, log)
    image = b""
    if not error:
        _, size = nvrtc.nvrtcGetCUBINSize(program)
        image = b"\0" * size
        nvrtc.nvrtcGetCUBIN(program, image)
    nvrtc.nvrtcDestroyProgram(program)
    return (log.rstrip(b"\0").decode() if error else None), image


def shape(before: bytes, after: bytes) -> None:
    """Assert that each line is still itself, or is empty, or has lost words, or has gained `__device__`."""
    old, new = before.split(b"\n"), after.split(b"\n")
    assert len(old) == len(new)
    for was, now in zip(old, new, strict=True):
        if b"__device__ " not in now and now.strip(b" ;"):
            assert len(was) == len(now)
            assert all(b == a or b in b" ;" or b"__device__" in now for a, b in zip(was, now, strict=True)), (was, now)


@pytest.mark.parametrize("name", GOES)
def test_host_code_goes(name: str, tmp_path: Path) -> None:
    """NVRTC refuses the text as it is, takes what is left, and makes the kernel from it, byte for byte."""
    source = f"{GOES[name]}\n{KERNEL}".encode()
    assert compiled(source, tmp_path)[0] is not None
    result = pass_over(source)
    shape(source, result.data)
    log, image = compiled(result.data, tmp_path)
    assert log is None, (log, result.data.decode())
    assert image == compiled(KERNEL.encode(), tmp_path)[1]
    assert result.passed


@pytest.mark.parametrize("name", STAYS)
def test_device_code_stays(name: str, tmp_path: Path) -> None:
    """Text for the device is not touched."""
    source = f"{STAYS[name]}\n{KERNEL}".encode()
    assert pass_over(source) == PassedOver(source)
    assert compiled(source, tmp_path)[0] is None


def test_macros_of_other_files() -> None:
    """Whether a function is for the device can stand in another file of the project."""
    source = b"HD int f(int x) { return x; }\n"
    around = Surroundings.of([source, b"#define HD __host__ __device__\n"])
    assert pass_over(source, around).data == source
    assert pass_over(source, Surroundings.of([source, b"#define HD\n"])).passed


def test_macros_of_the_command_line() -> None:
    """Macros that the table defines count as well."""
    source = b"entry void f(int* x) { *x = 1; }\n"
    around = Surroundings.of([source], {"entry": 'extern "C" __global__', "WIDE": True})
    assert pass_over(source, around).data == source


def test_unknown_macro_is_left_to_the_compiler() -> None:
    """A specifier in capitals that nobody defines may be a kernel's."""
    source = b"VENDOR_ENTRY void f(int* x) { *x = 1; }\n"
    assert pass_over(source).data == source


def test_what_was_passed_over_is_told() -> None:
    """Line, kind and name of each thing."""
    source = b'#include <vector>\nint g;\n\nvoid f()\n{\n}\n#include "vector"\n'
    result = pass_over(source, keep_includes={"list"})
    told = [(p.line, p.kind, p.name) for p in result.passed]
    assert told == [(1, "include", "vector"), (2, "variable", "g"), (4, "function", "f"), (7, "include", "vector")]
    assert not result.data.strip()
    assert pass_over(b"#include <vector>\n", keep_includes={"vector"}).passed == ()


def test_launches() -> None:
    """The instances that host code launches."""
    source = b"""\
void f() {
    a<<<1, 1>>>();
    n::b<float, (3 > 2)><<<grid, block, 0, stream>>>(p, q);
    b<std::pair<int, X<4>>>
        <<<1, 1>>>();
}
"""
    shown = [(launch.line, launch.kernel) for launch in pass_over(source).launches]
    assert shown == [(2, "a"), (3, "n::b<float, (3 > 2)>"), (4, "b<std::pair<int, X<4>>>")]


MENTIONS = {
    "a local constant before a global one": (
        "constexpr int N = 1;\nvoid run() { const int N = 40; k<N><<<1, 1>>>(); }",
        ["k<40>"],
    ),
    "a constant of another type": ("void run() { const unsigned char N = 300; k<N><<<1, 1>>>(); }", []),
    "a constant with a fraction": ("void run() { const int N = 2.5; k<N><<<1, 1>>>(); }", []),
    "a constant that is declared twice": (
        "void run() { { const int N = 1; } const int N = 2; k<N><<<1, 1>>>(); }",
        [],
    ),
    "a variable": ("void run(int N) { k<N><<<1, 1>>>(); }", []),
    "a macro that changes": ("#define N 1\nvoid run() { k<N><<<1, 1>>>(); }\n#undef N\n#define N 2\n", []),
    "a macro": ("#define N 1\nvoid run() { k<N + 1><<<1, 1>>>(); }", ["k<N+1>"]),
    "names of two namespaces": (
        "constexpr int N = 1;\nnamespace a { constexpr int N = 2; void run() { k<N><<<1, 1>>>(); } }",
        [],
    ),
    "a name of a namespace": ("namespace a { constexpr int N = 2; void run() { k<N><<<1, 1>>>(); } }", ["k<a::N>"]),
    "a member of a class": (
        "constexpr int N = 1;\nstruct S { static const int N = 2; void run() { k<N><<<1, 1>>>(); } };",
        ["k<2>"],
    ),
    "a parameter of a class template": (
        "constexpr int N = 1;\ntemplate <int N> struct S { void run() { k<N><<<1, 1>>>(); } };",
        [],
    ),
    "an enumerator of the function": ("constexpr int N = 1;\nvoid run() { enum { M, N }; k<N><<<1, 1>>>(); }", []),
    "a binding": ("constexpr int N = 1;\nvoid run() { auto [N, m] = pair(); k<N><<<1, 1>>>(); }", []),
    "another template": (
        "template <int M> void a() { k<2 * M><<<1, 1>>>(); }\ntemplate <int M> void b() { a<M>(); }\nint i = b<3>();",
        ["k<2*3>"],
    ),
    "a template that calls itself": (
        "template <int M> void run() { k<M><<<1, 1>>>(); run<M - 1>(); }\nvoid all() { run<3>(); }",
        ["k<3>"],
    ),
    "deduced arguments": ("template <int M> void run(V<M> x) { k<M><<<1, 1>>>(); }\nvoid f() { run(v); }", []),
    "a constant of a block before": (
        "constexpr int N = 1;\nvoid run() { { const int N = 2; } k<N><<<1, 1>>>(); }",
        [],
    ),
    "a constant of another member": (
        "constexpr int N = 1;\nstruct S { void a() { const int N = 2; } void run() { k<N><<<1, 1>>>(); } };",
        [],
    ),
    "a constant of a loop": ("void run() { for (const int N = 2; go();) k<N><<<1, 1>>>(); }", []),
    "a macro that launches": (
        "#define RUN(n) k<n><<<1, 1>>>()\nvoid run() { const int N = 3; RUN(N); RUN(4); }",
        ["k<3>", "k<4>"],
    ),
    "a macro with a name of its own": (
        "constexpr int N = 1;\n#define RUN() { const int N = 2; k<N><<<1, 1>>>(); }\nvoid run() { RUN(); }",
        [],
    ),
    "a macro that uses a name of the function": (
        "constexpr int N = 1;\n#define RUN() k<N><<<1, 1>>>()\nvoid run() { const int N = 2; RUN(); }",
        ["k<2>"],
    ),
    "a macro that instantiates": (
        "template <int M> void run() { k<M><<<1, 1>>>(); }\n#define INSTANCE(n) template void run<n>();\nINSTANCE(7)",
        ["k<7>"],
    ),
    "an instantiation without arguments": (
        """template <typename T> void run(const T *x, int n) { k<sizeof(T)><<<1, 1>>>(); }
#define INSTANCE(T) template void run(const T *, int n)
INSTANCE(float);
template void run(const int *x, int);""",
        ["k<sizeof(float)>", "k<sizeof(int)>"],
    ),
    "a macro in a macro in a template": (
        """#define RUN(n) k<n + sizeof(T)><<<1, 1>>>()
#define ALL(n) if (go) { RUN(n); } else { RUN(n + 1); }
template <typename T> void run() { constexpr int M = 5; ALL(M) }
#define INSTANCE(T) template void run<T>();
INSTANCE(float)""",
        ["k<5+1+sizeof(float)>", "k<5+sizeof(float)>"],
    ),
    "a macro that declares its argument": (
        """constexpr bool N = false;
#define SWITCH(c, n, f) if (c) { constexpr bool n = true; f(); }
void run(bool c) { SWITCH(c, N, [&] { k<N><<<1, 1>>>(); }); }""",
        [],
    ),
    "a dispatch": (
        'void run() { AT_DISPATCH_FLOATING_TYPES(t, "k", ([&] { k<sizeof(scalar_t)><<<1, 1>>>(); })); }',
        ["k<sizeof(double)>", "k<sizeof(float)>"],
    ),
    "a dispatch of the project": (
        """#define DISPATCH(t, ...) AT_DISPATCH_SWITCH(t, 0, AT_DISPATCH_CASE(at::ScalarType::Half, __VA_ARGS__))
void run() { DISPATCH(t, [&] { using T = scalar_t; k<sizeof(T)><<<1, 1>>>(); }); }""",
        ["k<sizeof(c10::Half)>"],
    ),
    "a launch by a kernel": ("__global__ void parent() { k<1><<<1, 1>>>(); }", []),
}


@pytest.mark.parametrize(("text", "expected"), MENTIONS.values(), ids=MENTIONS)
def test_instances(text: str, expected: list[str]) -> None:
    """An argument is taken over only where it means the same outside of all functions."""
    source = f"template <int I> __global__ void k() {{ }}\n{text}\n".encode()
    found = mentions({"k.cu": source}, Surroundings.of([source]))
    assert sorted(squeeze_name(text) for mention in found for text in mention.expressions) == expected


def test_directives_stay() -> None:
    """Conditionals and macros inside host code stay, includes and pragmas inside it go with it."""
    source = b"""\
void f() {
#define N 4
#ifdef A
#include "body.inc"
#pragma unroll
    for (;;) { }
#endif
}
"""
    kept = [line.strip() for line in pass_over(source).data.split(b"\n") if line.strip()]
    assert kept == [b"#define N 4", b"#ifdef A", b"#endif"]


def test_members_keep_the_class_as_it_is(tmp_path: Path) -> None:
    """A class that kernels use keeps its layout, its constructors and how it is passed; bodies for the host go."""
    source = b"""\
#include <string>
struct Params {
    int n;
    float* data;
    Params(int n_, float* d) : n(n_), data{d} { check(); }
    explicit Params(const std::string& text) : n(text.size()) { }
    Params(const Params& other) : n(other.n), data(other.data) { log("copy"); }
    void check() const { if (n < 0) throw 1; }
    __device__ float at(int i) const { return data[i]; }
    constexpr int twice() const { return 2 * n; }
    static int live;
};
__global__ void k(const __grid_constant__ Params p, int* out) { out[0] = sizeof(Params) + p.at(0); }
"""
    result = pass_over(source)
    shape(source, result.data)
    log, image = compiled(result.data, tmp_path)
    assert log is None, log
    marked = source
    for line in (b"    Params(int n_", b"    Params(const P", b"    constexpr"):
        marked = marked.replace(line, b"    __device__ " + line.strip())
    marked = re.sub(rb"#include.*|.*std::string.*|.*live;", b"", marked)
    marked = marked.replace(b": n(n_), data{d} { check(); }", b";").replace(b'{ log("copy"); }', b"{ }")
    marked = marked.replace(b"void check() const { if (n < 0) throw 1; }", b"")
    log, expected = compiled(marked, tmp_path)
    assert log is None, log
    assert image == expected


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ('TORCH_CHECK(n != 3 && f(n, 1), "no ", n); return n;', "if (!(n != 3 && f(n, 1))) { __trap(); }"),
        ("STD_TORCH_CHECK(n >= 0); return n;", "if (!(n >= 0)) { __trap(); }"),
        ('TORCH_INTERNAL_ASSERT(\n  n == 1,\n  "one"); return n;', "if (!(n == 1)) { __trap(); }"),
        ("TORCH_CHECK_EQ(n, 3); return n;", "TORCH_CHECK_EQ(n, 3);"),
        ("TORCH_CHECK_WITH(ValueError, n < 3); return n;", "TORCH_CHECK_WITH(ValueError, n < 3);"),
        ("TORCH_INTERNAL_ASSERT_DEBUG_ONLY(n < 3); return n;", "TORCH_INTERNAL_ASSERT_DEBUG_ONLY(n < 3);"),
        ("return n < 0 ? throw 1 : n == 2;", "n < 0 ? (__trap(), n == 2) "),
    ],
)
def test_throws_in_constant_functions(body: str, left: str) -> None:
    """What throws in a constant function ends a constant expression all the same, on the line where it stands."""
    source = f"constexpr bool f(int, int) {{ return true; }}\nconstexpr int g(int n) {{ {body} }}\nint last;\n"
    result = pass_over(source.encode() + b"__global__ void k(int *p) { *p = g(1); }\n").data.decode()
    assert left in result and result.count("\n") == source.count("\n") + 1


def test_own_checks_stay() -> None:
    """A macro of the project that is called like one of PyTorch's means what the project says."""
    source = b"#define TORCH_CHECK(x, y) (x)\nconstexpr int g(int n) { TORCH_CHECK(n, 0); return n; }\n"
    assert b"TORCH_CHECK(n, 0);" in pass_over(source + b"__global__ void k(int *p) { *p = g(1); }\n").data


def test_declaration_stays_where_the_device_asks_for_its_type(tmp_path: Path) -> None:
    """A host function in an unevaluated operand keeps its declaration, so that overloads do not change."""
    source = b"""\
long measure(float x) { return long(x); }
__device__ int measure(int x) { return x; }
__global__ void k(int* p) { *p = sizeof(decltype(measure(1.5f))); }
"""
    result = pass_over(source)
    log, image = compiled(result.data, tmp_path)
    assert log is None
    assert b"__device__ long measure(float x) ;" in result.data
    expected = compiled(b"__global__ void k(int* p) { *p = 8; }", tmp_path)[1]
    assert read_cubin(image).entries.keys() == read_cubin(expected).entries.keys()


def test_call_of_host_code_is_an_error(tmp_path: Path) -> None:
    """A kernel that calls a host function does not compile: nvcc refuses it too."""
    source = b"int f(int x) { return x; }\n__global__ void k(int* p) { *p = f(1); }\n"
    log, _ = compiled(pass_over(source).data, tmp_path)
    assert log is not None


def test_misshapen_text_stays() -> None:
    """Where brackets do not match, nothing from there on is touched."""
    broken = b"void f() { ) }\nint g;\n"
    assert pass_over(broken).data == broken
    open_end = b"int g;\nvoid f() {\n"
    assert pass_over(open_end).data == b"      \nvoid f() {\n"


def test_line_ends_and_bytes_stay() -> None:
    """CRLF, tabs and bytes that are no UTF-8 come through."""
    source = b"int\tg;\r\n// caf\xe9\r\n__device__ int d;\r\n"
    assert pass_over(source).data == b"   \t  \r\n// caf\xe9\r\n__device__ int d;\r\n"


def test_idempotent() -> None:
    """A text without host code is given back as it is."""
    for text in GOES.values():
        once = pass_over(f"{text}\n{KERNEL}".encode()).data
        again = pass_over(once)
        assert again.data == once


def test_a_class_at_the_end() -> None:
    """A text may end after a class, its semicolon missing."""
    assert pass_over(b"struct S { int n; }").data == b"struct S { int n; }"
    odd = b"struct S namespace a { struct T { int n; }; }\nvoid f(std::vector<int> v) { v.clear(); }"
    assert pass_over(odd).data.count(b"\n") == 1


LONG = {
    "braces": b"{" * 50_000,
    "parentheses": b"(" * 50_000 + b")" * 50_000,
    "angles": b"a<" * 50_000,
    "arms": b"#if A\n{\n" * 20_000,
    "comments": b"/*" * 50_000,
    "raw strings": b'R"(' * 30_000,
    "initialisers": b"x = {1}, " * 20_000,
    "templates": b"template<" * 20_000,
    "namespaces": b"namespace a { " * 20_000 + b"}" * 20_000,
    "classes": b"struct S { " * 10_000 + b"};" * 10_000,
    "macros": b"#define A B\\\n" * 20_000,
    "calls": b"f(int) " * 20_000,
    "heads": b"void f() " * 20_000 + b"{ }",
    "literals": b"'" * 50_000,
    "operands": b"sizeof f requires g decltype(h) " * 10_000,
    "functions": b'#include "a.h"\n' + b"".join(b"static int f%d(int x) { return x; }\n" % n for n in range(20_000)),
    "nested operands": b"sizeof(" * 20_000 + b")" * 20_000,
    "macros of both sides": b"".join(
        b"#define M%d(x) __global__ void x##_k() {} void x() { }\nM%d(f%d)\n" % (n, n, n) for n in range(2000)
    ),
}


TEMPLATE_KERNEL = b"template <typename T, int N> __global__ void k(T *p) { }\n"
LONG_INSTANCES = {
    "launches": b"void f() { const int N = 4;\n" + b"k<float, N><<<1, 1>>>(p);\n" * 4000 + b"}",
    "dispatches": b"void f() { AT_DISPATCH_ALL_TYPES(t, [&] {\n" + b"k<scalar_t, 3><<<1, 1>>>(p);\n" * 3000 + b"}); }",
    "macros in macros": b"#define A(n) k<float, n><<<1, 1>>>(p)\n#define B(n) A(n); A(n + 1)\n#define C(n) B(n); B(n)\n"
    b"void f() {\n" + b"C(1); C(q);\n" * 3000 + b"}",
    "calls of templates": b"template <int N> void a() { k<float, N + q><<<1, 1>>>(p); }\n"
    b"template <int N> void b() { a<N>(); a<N + 1>(); }"
    b"void c() { int q;\n" + b"b<1>(); b<q>();\n" * 3000 + b"}",
    "nested arguments": b"void f() { k<" + b"X<" * 5000 + b">" * 5000 + b"><<<1, 1>>>(); }",
}


@pytest.mark.slow
@pytest.mark.parametrize("text", [*LONG.values(), *LONG_INSTANCES.values()], ids=[*LONG, *LONG_INSTANCES])
def test_time_is_bounded(text: bytes) -> None:
    """Odd texts of some hundred kilobytes take seconds at most."""
    start = time.perf_counter()
    around = Surroundings.of([text])
    mark_fragments({"k.cu": text}, around, {})
    result = pass_over(text, around)
    list(uncovering({"k.cu": result}, around))
    mentions({"k.cu": TEMPLATE_KERNEL + text}, around)
    assert time.perf_counter() - start < 20


_PIECES = [
    "k<T, N><<<1, 1>>>();",
    "#define M(x) k<float, x><<<1, 1>>>()",
    "M(N)",
    "const int N = 3;",
    "#define BOTH(x, y) __global__ void x##_k() { y; } \\\n void x(int n) { x##_k<<<n, 1>>>(); }",
    "BOTH(a, b)",
    "BOTH(",
    "sizeof(a(1))",
    "namespace std { template <> struct hash<S> { std::string s; }; }",
    *GOES.values(),
    *STAYS.values(),
    "{",
    "}",
    "(",
    ")",
    "<",
    ">",
    ";",
    "#if A",
    "#else",
    "#endif",
    '"',
    "'",
    "\\",
]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from([*_PIECES, "template", "struct S", "operator", ":", "=", "__global__", "f(int)"])))
def test_any_text(pieces: list[str]) -> None:
    """Any mixture keeps its lines, and its device code: every word of an execution space is still there."""
    source = "\n".join(pieces).encode()
    result = pass_over(source)
    assert result.data.count(b"\n") == source.count(b"\n")
    assert result.data.count(b"__global__") >= source.count(b"__global__") - source.count(b"#if 0")
    around = Surroundings.of([source])
    list(uncovering({"k.cu": result}, around))
    for mention in mentions({"k.cu": TEMPLATE_KERNEL + source}, around):
        assert mention.kernel.encode() in source


def settled(files: Mapping[str, str], tmp_path: Path) -> Settled:
    """Settle files with NVRTC; the first is the source."""
    texts = {label: text.encode() for label, text in files.items()}
    source = next(iter(files))

    def attempt(results: Mapping[str, PassedOver]) -> str | None:
        folder = tmp_path / "files"
        folder.mkdir(exist_ok=True)
        for label, result in results.items():
            (folder / label).write_bytes(result.data)
        ahead = tmp_path / "prelude.h"
        ahead.write_bytes(prelude(results.values()))
        log, _ = compiled(results[source].data, tmp_path, f"-I{folder}", f"--pre-include={ahead}")
        return log.replace(f"{folder}/", "").replace("t.cu(", f"{source}(") if log else None

    return settle(texts, attempt, Surroundings.of(texts.values()))


@pytest.mark.parametrize(
    "kind", ["std::vector<MY_KERNEL_ARGUMENTS> x;", "std::vector<int> x; CUDA_KERNEL_NODE_PARAMS y;"]
)
def test_names_that_only_look_like_spaces(kind: str) -> None:
    """The argument of a template puts nothing on the device, nor does a structure of the driver."""
    found = pass_over(f"class Graph {{ {kind} }};\n{KERNEL}".encode())
    assert [(p.kind, p.name) for p in found.passed] == [("class definition", "Graph")]
    text = f"class Graph {{ std::vector<int> x; MY_KERNEL_ARGUMENTS int f(); }};\n{KERNEL}".encode()
    assert pass_over(text) == PassedOver(text)


def test_settle_follows_the_compiler(tmp_path: Path) -> None:
    """Types that only a header of the host has: what uses them for the host goes, one after the other."""
    result = settled(
        {
            "k.cu": '#include <torch/sdk.h>\n#include "h.cuh"\nusing Handle = vendor::Handle;\n'
            "struct Holder { Handle h; status s; };\n"
            "__device__ int use(Holder *h, Plain *p) { return h ? p->x : 0; }\n"
            "__global__ void k(int *p) { *p = use(nullptr, nullptr); }\n",
            "h.cuh": "#pragma once\ntypedef vendor_status_t status;\nstruct Plain { int x; };\n",
        },
        tmp_path,
    )
    assert result.log is None
    kinds = {(label, p.kind, p.name) for label, file in result.files.items() for p in file.passed}
    assert kinds == {
        ("k.cu", "include", "torch/sdk.h"),
        ("k.cu", "alias", "Handle"),
        ("k.cu", "class definition", "Holder"),
        ("h.cuh", "alias", "status"),
    }


def test_settle_lets_go_of_a_class_with_constructors(tmp_path: Path) -> None:
    """A class that the device only points to stays declared, however many names of its own it has inside."""
    text = (
        "struct Pool { Pool(); Pool(int); vendor_t handle; };\n__device__ int use(Pool *p) { return p != nullptr; }\n"
        "__global__ void k(int *p) { *p = use(nullptr); }\n"
    )
    result = settled({"k.cu": text}, tmp_path)
    assert result.log is None
    assert [(p.kind, p.name) for p in result.files["k.cu"].passed if p.kind != "body"] == [("class definition", "Pool")]
    assert b"struct Pool ;" in b" ".join(result.files["k.cu"].data.split())


def test_settle_lets_go_of_a_specialisation_for_the_host(tmp_path: Path) -> None:
    """One whose head has a type that is not there can be for nothing that the device has, wherever its body begins."""
    text = "template <class T> struct io { __device__ static int n() { return 1; } };\ntemplate <class T>\n"
    text += "struct io<vendor<T>> {\n  static int n() { return 2; }\n};\n"
    text += "template <class T>\nstruct io<T, vendor::t> : io<T> {};\n"
    text += "__global__ void k(int *p) { *p = io<int>::n(); }\n"
    result = settled({"k.cu": text}, tmp_path)
    assert result.log is None
    assert {p.line for p in result.files["k.cu"].passed if p.name == "io"} == {2, 6}


def test_settle_does_not_invent_headers(tmp_path: Path) -> None:
    """A header that is not there, and is none of the host's, may have defined anything: it stays an error."""
    result = settled({"k.cu": f'#include "tuning.h"\nint host() {{ return 1; }}\n{KERNEL}'}, tmp_path)
    assert result.log is not None and "tuning.h" in result.log
    assert not [p for p in result.files["k.cu"].passed if p.kind == "include"]


def test_settle_leaves_device_code(tmp_path: Path) -> None:
    """An error in device code ends it, with the compiler's words."""
    result = settled({"k.cu": "__global__ void k(int* p) { *p = absent; }\n"}, tmp_path)
    assert result.log is not None
    assert "absent" in result.log
    assert result.attempts == 1
    assert result.files["k.cu"].passed == ()


UNCOVERS = {
    "alias": "typedef int T;\nnamespace n {\ntypedef vendor_t T;\n__global__ void k(int* p) { *p = sizeof(T); }\n}\n",
    "specialisation": """\
template <class T> struct traits { static constexpr int n = 1; };
template <> struct traits<float> {
    static constexpr int n = 2;
    vendor_t handle;
};
template <class T> struct config { static constexpr int n = traits<T>::n; };
__global__ void k(int* p) { *p = config<float>::n; }
""",
    "overload": """\
constexpr int f(int) { return 1; }
constexpr int f(double) {
    return vendor_value;
}
__global__ void k(int* p) { *p = f(1.0); }
""",
}
"""Text in which something cannot be compiled that hides another meaning of the kernel."""


@pytest.mark.parametrize("text", UNCOVERS.values(), ids=UNCOVERS)
def test_settle_does_not_uncover_another_name(text: str, tmp_path: Path) -> None:
    """What stands before another declaration of the same name does not go: the kernel would change."""
    result = settled({"k.cu": text}, tmp_path)
    assert result.log is not None
    assert result.files["k.cu"].passed == ()


def test_prelude(tmp_path: Path) -> None:
    """Names that nvcc gives unasked are there when they are used, and nothing is when they are not."""
    assert prelude([pass_over(KERNEL.encode())]) == b""
    source = b"""\
__extension__ typedef unsigned long wide;
__global__ void k(uint* p, double* q) {
    wide big = ULONG_MAX;
    q[0] = M_PI + INFINITY + pow(q[1], 2);
    __asm__ __volatile__("");
    p[0] = big;
}
"""
    ahead = tmp_path / "prelude.h"
    ahead.write_bytes(prelude([pass_over(source)]))
    assert pass_over(source) == PassedOver(source)
    assert compiled(source, tmp_path)[0] is not None
    assert compiled(source, tmp_path, f"--pre-include={ahead}")[0] is None


def test_prelude_for_types_of_the_driver(tmp_path: Path) -> None:
    """A tensor map is passed as `cuda.h` has it."""
    source = (
        b"#include <cuda.h>\n__global__ void k(const __grid_constant__ CUtensorMap m, int* p) { *p = sizeof(m); }\n"
    )
    result = pass_over(source)
    ahead = tmp_path / "prelude.h"
    ahead.write_bytes(prelude([result]))
    log, image = compiled(result.data, tmp_path, f"--pre-include={ahead}")
    assert log is None
    assert list(read_cubin(image).entries) == ["_Z1k14CUtensorMap_stPi"]
