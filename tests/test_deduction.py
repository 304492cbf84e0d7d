# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Instances whose arguments a launch deduces: the compiler is asked for them. See also tests/ordinary/deduce_*.cu."""

from __future__ import annotations

from pathlib import Path

import pytest
from jobs import compile_alone, make_job, write

from hatch_cuda_kernels import CompilationError
from hatch_cuda_kernels.hostcode import Passing, Surroundings, make_probe, mentions
from hatch_cuda_kernels.hostcode.declarations import Parser, parsed
from hatch_cuda_kernels.nvrtc import Shown, Workspace, compile_shown, front_end_log
from hatch_cuda_kernels.plan import CompiledImage, CompileJob

SCALE = "template <typename T> __global__ void scale(T *x, int n) { x[threadIdx.x] *= T(n); }\n"


def compiled(folder: Path, text: str, **files: str) -> CompiledImage:
    """A source and further headers, compiled to PTX."""
    write(folder, {"k.cu": text, **{f"{name}.cuh": header for name, header in files.items()}})
    return compile_alone(make_job(folder, arch="compute_80", toolkit_headers="auto"))


class TestProbe:
    """What the compiler is shown in place of the files."""

    def test_every_line_keeps_its_number(self) -> None:
        """The compiler's lines are those of the files: of launches over several lines, of macros, of kernels."""
        text = (
            "#include <vector>\n#if __CUDA_ARCH__ >= 800\n#endif\n#define RUN(T) \\\n  scale<T><<<1, \\\n  2>>>(x, 1)\n"
            "template <typename T>\n__global__ void scale(T *x, int n) {\n  x[0] = n;\n#ifdef A\n  x[1] = 1;\n#endif\n"
            "}\n"
            "void f(float *x) {\n  scale<<<1,\n 2, (1 < 2) >> 1\n>>>(x, 1); RUN(float);\n}\n"
        )
        passed = [Passing(1, "include", "vector")]
        probe = make_probe({"k.cu": text.encode()}, Surroundings.of([text.encode()]), {"k.cu": passed})
        shown = probe.texts["k.cu"].decode()
        assert shown.count("\n") == text.count("\n")
        lines = shown.split("\n")
        assert lines[0].strip() == "" and "<<<" not in shown and "__CUDA_ARCH__" not in shown
        assert lines[9:12] == ["#ifdef A", "           ", "#endif"]
        assert lines[-5].split() == ["scale"] and lines[-4].strip() == ""

    @pytest.mark.parametrize("log", ["m: NVRTC refuses k.cu\n5", 'k.cu(1): catastrophic error: cannot open "a.h"\n'])
    def test_a_compiler_that_gives_up_has_not_told_all(self, log: str) -> None:
        """What ends without a word, or in the middle, is not taken for the whole."""
        text = (SCALE + "void f(float *x) { scale<<<1, 1>>>(x, 1); }\n").encode()
        probe = make_probe({"k.cu": text}, Surroundings.of([text]), {})
        probe.heed(log)
        assert not probe.complete and not probe.instances
        probe.heed("")
        assert probe.complete


def test_only_what_could_not_be_told_is_warned_of(tmp_path: Path) -> None:
    """A launch that the compiler does not understand costs the others nothing, and is named with its line."""
    text = SCALE + (
        "void a(float *x) { scale<<<1, 32>>>(x, 1); }\n"
        "template <typename T> void c(T *x) { vendor::check(x); scale<<<1, 32>>>(x, 1); }\n"
        "void d(double *x, short *y) { c(x); vendor::log(x); c(y); }\n"
        "void b(int n) { auto x = vendor::array(n); scale<<<1, 32>>>(x.data(), 1); }\n"
    )
    image = compiled(tmp_path, text)
    assert set(image.kernels) == {"scale<float>", "scale<double>", "scale<short>"}
    (warning,) = image.warnings
    assert "k.cu(5): scale (" in warning and warning.count("k.cu(") == 1


@pytest.mark.parametrize("depth", [12, pytest.param(80, marks=pytest.mark.slow)])
def test_types_that_messages_abbreviate(tmp_path: Path, depth: int) -> None:
    """A type that the compiler's messages do not spell is never taken for what they show of it: with all arguments, or
    not at all and warned of."""
    text = SCALE + (
        "template <class... T> struct List { int n; };\n"
        "template <class T, int N> struct Deep { using type = List<typename Deep<T, N - 1>::type, T>; };\n"
        "template <class T> struct Deep<T, 0> { using type = T; };\n"
        "template <class T> __global__ void k(T *x) { x->n = 1; }\n"
        "template <class T> void run() { k<<<1, 1>>>((T *)0); }\n"
        f"void f(float *x) {{ scale<<<1, 1>>>(x, 1); run<Deep<unsigned long long, {depth}>::type>(); }}\n"
    )
    image = compiled(tmp_path, text)
    deep = "k<" + "List<" * depth + "unsigned long long" + ",unsigned long long>" * depth + ">"
    assert set(image.kernels) == {"scale<float>", *([deep] if depth == 12 else [])}
    assert [warning for warning in image.warnings if "k (" in warning] if depth > 12 else not image.warnings


def test_templates_that_nobody_uses(tmp_path: Path) -> None:
    """What nvcc would not instantiate is neither compiled nor warned of, where all of the host's code is understood."""
    text = SCALE + (
        "template <typename T> void a(T *x) { scale<<<1, 1>>>(x, 1); }\n"
        "template <typename T> void b(T *x) { if constexpr (sizeof(T) == 4) scale<<<1, 1>>>(x, 1);\n"
        "else a((char *)x); }\n"
        "void c(float *x) { b(x); }\n"
    )
    image = compiled(tmp_path, text)
    assert set(image.kernels) == {"scale<float>"} and not image.warnings


def test_launches_in_headers_and_macros(tmp_path: Path) -> None:
    """A launch in a header, in a macro and in the arguments of one is told like any other."""
    header = "#pragma once\n" + SCALE + "template <typename T>\nvoid run(T *x) { scale<<<1, 1>>>(x, 1); }\n"
    header += "#define RUN(x) \\\n  scale<<<1, 32>>>(x, 2)\n#define WITH(...) __VA_ARGS__()\n"
    text = '#include "k.cuh"\nvoid f(float *x, int *y, char *z) {\n  run(x);\n  RUN(y);\n  WITH([&] {\n\n'
    text += "    auto kernel = scale<char>;\n    kernel<<<1, 1>>>(z, 1);\n  });\n}\n"
    image = compiled(tmp_path, text, k=header)
    assert set(image.kernels) == {"scale<float>", "scale<int>", "scale<char>"} and not image.warnings


@pytest.mark.slow
def test_instances_that_templates_of_headers_lose(tmp_path: Path) -> None:
    """A launch in a header's template is warned of where an instance that is asked for is not compiled, also beside
    others: for a lambda, or for a type that only a library has. Where nobody uses it, it is not."""
    header = "#pragma once\n" + SCALE + (
        "template <typename T> void run(T *x) { scale<<<1, 1>>>(x, 1); }\n"
        "template <typename F> __global__ void each(F f) { f(threadIdx.x); }\n"
        "template <typename F> void all(F f) { each<F><<<1, 32>>>(f); }\n"
        "template <typename T> void unused(T *x) { scale<<<1, 2>>>(x, 1); }\n"
    )  # fmt: skip
    lines = {text: header[: header.index(text)].count("\n") + 1 for text in ("void run", "void all")}
    told = compiled(tmp_path, '#include "k.cuh"\nvoid f(float *x) { run(x); }\n', k=header)
    assert set(told.kernels) == {"scale<float>"} and not told.warnings
    text = '#include "k.cuh"\nvoid f(float *x) { run(x); all([=] __device__(int i) { x[i] = i; }); }\n'
    image = compiled(tmp_path, text, k=header)
    assert set(image.kernels) == {"scale<float>"}
    (warning,) = image.warnings
    assert f"k.cuh({lines['void all']}): each<F> (" in warning and warning.count("k.cuh(") == 1
    for unknown in ("run(&vendor::value());", "auto v = vendor::make(x);\n  run(v.data());", "run(vendor::data());"):
        image = compiled(tmp_path, f'#include "k.cuh"\nvoid f(float *x) {{\n  run(x);\n  {unknown}\n}}\n', k=header)
        assert set(image.kernels) == {"scale<float>"}
        (warning,) = image.warnings
        assert f"k.cuh({lines['void run']}): scale (" in warning and warning.count("k.cuh(") == 1


def test_the_host_sees_no_architecture(tmp_path: Path) -> None:
    """Of conditionals on `__CUDA_ARCH__`, host code is in the arm that nvcc's host compiler sees."""
    text = SCALE + (
        "void f(float *x, double *y) {\n#ifdef __CUDA_ARCH__\n  scale<<<1, 1>>>(y, 1);\n#else\n"
        "  scale<<<1, 1>>>(x, 1);\n#endif\n}\n"
    )
    assert set(compiled(tmp_path, text).kernels) == {"scale<float>"}


@pytest.mark.parametrize("host", ["", "#include <vector>\n"], ids=["as-written", "passed-over"])
def test_launches_that_are_not_for_nvrtc(tmp_path: Path, host: str) -> None:
    """Launches that a file shows nvcc alone are heard, also where NVRTC takes the file as it is written."""
    text = host + SCALE + (
        "#ifndef __CUDACC_RTC__\n#include <string>\nvoid f(float *x) { scale<<<1, 1>>>(x, 1); }\n#endif\n"
        "#ifdef __NVCC__\nvoid g(short *x) { scale<<<1, 1>>>(x, 1); }\n#else\nstruct G {};\n#endif\n"
    )  # fmt: skip
    image = compiled(tmp_path, text)
    assert set(image.kernels) == {"scale<float>", "scale<short>"}
    assert image.reads.files.keys() == {"k.cu"}


def test_launches_that_are_not_for_nvrtc_beside_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source with kernels of its own does not lose the instances that it asks nvcc for; one that asks for none, or
    names a launch in a comment alone, is compiled once."""
    tried: list[int] = []

    def counted(job: CompileJob, space: Workspace, shown: Shown) -> CompiledImage:
        tried.append(len(shown.expressions))
        return compile_shown(job, space, shown)

    monkeypatch.setattr("hatch_cuda_kernels.reduction.compile_shown", counted)
    own = SCALE + "__global__ void k(int *x) { x[0] = 1; } // k<<<1, 1>>>(x)\n"
    assert set(compiled(tmp_path, own).kernels) == {"k"} and not tried
    hidden = "#ifndef __CUDACC_RTC__\nvoid f(float *x, int *y) { scale<<<1, 1>>>(x, 1); k<<<1, 1>>>(y); }\n#endif\n"
    assert set(compiled(tmp_path, own + hidden).kernels) == {"k", "scale<float>"} and tried == [1]
    bad = hidden.replace("f(float *x, int *y)", "f(vendor::Array x, int *y)")
    image = compiled(tmp_path, own + bad)
    assert set(image.kernels) == {"k"} and "k.cu(4): scale (" in image.warnings[-1]


def test_launches_that_are_not_for_nvrtc_may_be_refused(tmp_path: Path) -> None:
    """Where none of them compiles, or host code is refused, nothing comes out but the error that says so."""
    bad = "template <typename T> __global__ void k(T *x) { static_assert(sizeof(T) == 1); }\n"
    text = bad + "#ifndef __CUDACC_RTC__\nvoid f(float *x) { k<float><<<1, 1>>>(x); }\n#endif\n"
    with pytest.raises(CompilationError, match=r"compiles to no kernel[\s\S]*k\.cu\(3\): k<float>[\s\S]*is refused"):
        compiled(tmp_path, text)


def test_headers_beside_a_folder(tmp_path: Path) -> None:
    """A launch in a header that is included by `../` belongs to that header, whatever the compiler calls it."""
    header = (
        "#pragma once\n"
        + SCALE
        + "inline void f(int n) {\n  auto x = vendor::array(n);\n  scale<<<1, 1>>>(x.data(), n);\n}\n"
    )
    write(
        tmp_path, {"a/k.cu": '#include "../b/k.cuh"\nvoid g(float *x) { scale<<<1, 1>>>(x, 1); }\n', "b/k.cuh": header}
    )
    image = compile_alone(make_job(tmp_path, "a/k.cu", arch="compute_80", toolkit_headers="auto"))
    assert set(image.kernels) == {"scale<float>"}
    (warning,) = image.warnings
    assert "b/k.cuh(5): scale (" in warning and warning.count("k.cu") == 1


def test_kernels_on_conditions_that_do_not_hold(tmp_path: Path) -> None:
    """Where all of a source's kernels are hidden, the error has the conditions, and the macros to define."""
    text = (
        "#ifndef GUARD_\n#define GUARD_\n#include <vector>\n#if defined(WITH_MPI) && __CUDA_ARCH__ >= 700\n"
        "__global__ void k(int *x) { x[0] = 1; }\n#endif\n#ifdef OTHER\n#else\n#endif\nvoid f() {}\n#endif\n"
    )
    with pytest.raises(CompilationError) as raised:
        compiled(tmp_path, text)
    said = str(raised.value)
    assert "k.cu(4): #if defined(WITH_MPI) && __CUDA_ARCH__ >= 700" in said and said.count("k.cu(") == 1
    assert "defines = { WITH_MPI = true }" in said and "left out of archs" in said
    with pytest.raises(CompilationError) as raised:
        compiled(tmp_path, "#ifdef WITH_MPI\n__global__ void k(int *x) { x[0] = 1; }\n#endif\n")
    assert "k.cu(1): #ifdef WITH_MPI" in str(raised.value)
    assert set(compiled(tmp_path, "#define WITH_MPI\n" + text).kernels) == {"k"}


@pytest.mark.parametrize("outside", ["", "namespace cuda { int x; }\n"], ids=["alone", "another-outside"])
def test_namespaces_inside_of_others(outside: str) -> None:
    """A name that begins with an inner namespace is written with the ones around it, whatever is called so outside."""
    text = outside + (
        "namespace lib { namespace cuda { template <class T> struct device { using type = T; }; }\n"
        "template <class T> __global__ void k(T *x) {}\n"
        "template <class T> void run(T *x) { k<cuda::device<T>><<<1, 1>>>(x); }\ntemplate void run<float>(float *); }\n"
        "void f(float *x) { lib::k<lib::cuda::device<int>><<<1, 1>>>(x); lib::k<cuda::std::tuple<>><<<1, 1>>>(x); }\n"
    )
    found = mentions({"k.cu": text.encode()}, Surroundings.of([text.encode()]))
    assert [mention.expressions for mention in found] == [
        ("lib::k<lib::cuda::device<float>>",),
        ("lib::k<lib::cuda::device<int>>",),
        ("lib::k<cuda::std::tuple<>>",),
    ]


def test_types_that_cannot_be_named(tmp_path: Path) -> None:
    """An instance for a lambda or a type inside a function has no name outside of it: it is warned of."""
    text = (
        "template <typename F> __global__ void each(int *x, F f) { x[0] = f(x[1]); }\n" + SCALE + "void f(int *x) {\n"
        "  struct Inner { int a; };\n  scale<<<1, 1>>>(x, 1);\n"
        "  each<<<1, 1>>>(x, [] __device__(int a) { return a; });\n"
        "  each<<<1, 1>>>(x, Inner());\n}\n"
    )
    image = compiled(tmp_path, text)
    assert set(image.kernels) == {"scale<int>"}
    (warning,) = image.warnings
    assert "k.cu(6): each (" in warning and "k.cu(7): each (" in warning


def test_names_are_those_of_the_author(tmp_path: Path) -> None:
    """A kernel has the name that its launch has where that says it all; values have no suffix where none matters."""
    text = (
        "constexpr unsigned wide = 128;\ntemplate <typename T, unsigned N> __global__ void sum(T *x) { x[0] = T(N); }\n"
        "template <typename T> void run(T *x) { sum<T, wide><<<1, wide>>>(x); }\n"
        "void f(float *x, unsigned char *y) { sum<float, wide><<<1, 1>>>(x); run(x); run(y); }\n"
    )
    image = compiled(tmp_path, text)
    assert set(image.kernels) == {"sum<float,wide>", "sum<unsigned char,128>"}
    assert len(set(image.kernels.values())) == 2 and not image.warnings


def test_a_lambda_beside_an_explicit_launch(tmp_path: Path) -> None:
    """What a generic lambda launches is told for the line that calls it, which has launches of its own."""
    text = SCALE + (
        "void f(float *x, double *y) {\n  auto l = [](auto *p) { scale<<<1, 1>>>(p, 1); };\n  l(x);\n"
        "  scale<float><<<1, 1>>>(x, 1); l(y);\n}\n"
    )
    assert set(compiled(tmp_path, text).kernels) == {"scale<float>", "scale<double>"}


def test_launches_in_the_text_of_a_macro(tmp_path: Path) -> None:
    """A launch in a macro's text is told for every use, and not warned of."""
    text = (
        "enum class Act { Relu, Gelu };\n"
        "template <typename T, Act A> __global__ void bias(T *x) { x[0] = T(int(A)); }\n"
        "#define CASE(NAME) case Act::NAME: bias<T, Act::NAME><<<1, 1>>>(x); break;\n"
        "template <typename T> void run(T *x, Act a) { switch (a) { CASE(Relu) CASE(Gelu) } }\n"
        "void f(float *x, double *y) { run(x, Act::Relu); run(y, Act::Gelu); }\n"
    )
    image = compiled(tmp_path, text)
    names = {f"bias<{kind},Act::{act}>" for kind in ("float", "double") for act in ("Relu", "Gelu")}
    assert set(image.kernels) == names and not image.warnings


MADE = "#define DEFINE(name) template <class T, unsigned N> __global__ void name##_k(T *x) \\\n{ x[N] = 1; \\\n}\n"


def test_kernels_and_launches_that_macros_make(tmp_path: Path) -> None:
    """What the compiler does not understand is warned of by the launch as it is written; the others are told."""
    text = MADE + (
        "#include <vector>\nDEFINE(one) DEFINE(two)\n"
        "#define PLAIN(name) __global__ void name##_k(int *x) { x[0] = 1; }\nPLAIN(three)\n"
        "#define RUN(name, ...) name##_k<float, 7><<<1, 1>>>(__VA_ARGS__)\n"
        "void a(float *x, int *y) { RUN(one, x); three_k<<<1, 1>>>(y); }\n"
        "void b(int n) { auto x = vendor::array(n); three_k<<<1, 1>>>(x.data());\n  RUN(two, x.data());\n}\n"
        "void c(int n) { auto x = vendor::list(n);\n  RUN(four, x.data()); }\n"
    )
    image = compiled(tmp_path, text)
    assert set(image.kernels) == {"one_k<float,7>", "two_k<float,7>", "three_k"}
    (warning,) = image.warnings
    assert "k.cu(14): RUN(four, x.data()) (" in warning and warning.count("k.cu(") == 1


@pytest.mark.parametrize(
    "use",
    [
        "template __global__ void one_k<float, 7>(float *);",
        "void f(float *x) { auto kernel = &one_k<float, 7u>; kernel<<<1, 1>>>(x); }",
        "#define CAT(a, b) a##b\nvoid f(float *x) { CAT(one, _k)<float, 7><<<1, 1>>>(x); }",
        "#define GO one_k<float, 7><<<1, 1>>>(x)\nvoid f(float *x) { GO; }",
        "#define WITH(kernel) kernel<float, 7><<<1, 1>>>(x)\nvoid f(float *x) { WITH(one_k); }",
    ],
    ids=["instantiation", "address", "paste", "no-arguments", "parameter"],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_ways_to_use_what_a_macro_made(tmp_path: Path, use: str, end: str) -> None:
    """Alone in a file, each way to ask for an instance of such a kernel is heard."""
    text = MADE + f"#include <vector>\nDEFINE(one)\n{use}\n"
    image = compiled(tmp_path, text.replace("\n", end))
    assert set(image.kernels) == {"one_k<float,7>"} and not image.warnings


def test_a_value_keeps_its_type_where_a_macro_may_have_left_it_open(tmp_path: Path) -> None:
    """`3u` and `3` are two instances of `template <auto N>`, and one of `template <unsigned N>`."""
    text = (
        "#include <vector>\n"
        "#define DEFINE(name) template <auto N> __global__ void name(int *x) { x[0] = sizeof(N); }\nDEFINE(one)\n"
        "void f(int *x) { one<3u><<<1, 1>>>(x); one<'a'><<<1, 1>>>(x); }\n"
    )
    assert set(compiled(tmp_path, text).kernels) == {"one<3U>", "one<'a'>"}


def test_abbreviated_templates(tmp_path: Path) -> None:
    """A kernel with a parameter of type `auto` is a template."""
    text = (
        "#include <vector>\n__global__ void k(auto *x, int n) { x[0] = n; }\n"
        "void f(float *x, short *y) { k<<<1, 1>>>(x, 1); k<<<1, 1>>>(y, 2); }\n"
    )
    write(tmp_path, {"k.cu": text})
    job = make_job(tmp_path, arch="compute_80", toolkit_headers="auto", options={"std": "c++20"})
    image = compile_alone(job)
    assert set(image.kernels) == {"k<float>", "k<short>"} and not image.warnings


def test_functions_that_authors_call_deprecated(tmp_path: Path) -> None:
    """A warning of the author's own is not taken for one of a probe."""
    text = SCALE + (
        '[[deprecated("old")]] void g() {}\ntemplate <typename T> [[deprecated]] __device__ T h(T x) { return x; }\n'
        "void f(float *x) { g(); scale<<<1, 1>>>(x, h(3)); }\n"
    )
    assert set(compiled(tmp_path, text).kernels) == {"scale<float>"}


def test_libraries_that_are_not_there(tmp_path: Path) -> None:
    """Types of unknown libraries in heads and statements hide nothing that stands beside them."""
    text = SCALE + (
        "#include <vector>\nvendor::Status a(vendor::Handle *h, const vendor::detail::Options<float, 3> &o) {\n"
        "  return o.run(h);\n}\n"
        "struct Holder { vendor::Handle handle; std::vector<float> data; };\n"
        "void b(Unknown *u, float *x) { vendor::log(u, x); scale<<<1, 1>>>(x, vendor::kDefault); }\n"
        "void c(Holder &h) { VENDOR_CHECK(h.handle.ok()); scale<<<1, 1>>>((double *)h.handle, h.data.size()); }\n"
        "template <typename T> void d(T *x) { vendor::launch([&] { scale<<<1, 1>>>(x, 1); }); }\n"
        "void e(short *x) { d(x); }\n"
    )
    assert set(compiled(tmp_path, text).kernels) == {"scale<float>", "scale<double>", "scale<short>"}


def test_more_errors_than_a_compiler_shows(tmp_path: Path) -> None:
    """Host code with hundreds of things that are not there, after which a compiler gives up."""
    noise = "".join(f"  vendor_call_{number}(x);\n  unknown_{number} += 1;\n" for number in range(150))
    text = SCALE + f"void a(float *x) {{\n{noise}  scale<<<1, 1>>>(x, 1);\n}}\n"
    assert set(compiled(tmp_path, text).kernels) == {"scale<float>"}


def test_explicit_launches_cost_no_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the text tells every instance, or the author lists some, the compiler is not asked."""
    asked: list[str] = []

    def counted(job: CompileJob, space: Workspace, shown: Shown) -> str:
        asked.append(str(job))
        return front_end_log(job, space, shown)

    monkeypatch.setattr("hatch_cuda_kernels.deduction.front_end_log", counted)
    compiled(tmp_path, SCALE + "void f(float *x) { const int n = 3; scale<float><<<1, n>>>(x, n); }\n")
    assert not asked
    text = SCALE + "void f(float *x) { scale<<<1, 1>>>(x, 1); }\n"
    write(tmp_path, {"k.cu": text})
    compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="auto", name_expressions=["scale<int>"]))
    assert not asked
    compiled(tmp_path, text)
    assert len(asked) == 1


def test_warnings_do_not_cost_instances(tmp_path: Path) -> None:
    """Of instances, those go that have errors; not those that are warned of beside them."""
    text = (
        "#include <vector>\ntemplate <class A, class B> struct Pair { A a; B b; };\n"
        'template <typename T, unsigned N> __global__ void k(T *x) { int unused; static_assert(N != 3, "three"); }\n'
        "template <typename T> __global__ void w(T *x) { int unused; }\n"
        "void f(Pair<int, float> *x, int *y) { k<Pair<int, float>, 2><<<1, 1>>>(x);\n"
        "k<Pair<int, float>, 3><<<1, 1>>>(x);\n"
        "k<int, 4><<<1, 1>>>(y); w<<<1, 1>>>(x); w<<<1, 1>>>(y); }\n"
    )
    image = compiled(tmp_path, text)
    assert set(image.kernels) == {"k<Pair<int,float>,2>", "k<int,4>", "w<Pair<int,float>>", "w<int>"}
    (warning,) = (warning for warning in image.warnings if "instances of kernels" in warning)
    assert "k<Pair<int,float>,3>: static assertion failed" in warning and warning.count("k.cu(") == 1


OF_AN_INSTANCE = {
    "its body": "template <class T> static constexpr bool staged = T::first && T::second;\n"
    "template <class T> __global__ void k(int *x) { if (staged<T>) *x = 1; }\n",
    "its parameters": "template <class T> struct Op {\n  struct Params { int n; };\n"
    "  static constexpr bool staged = T::second;\n};\n"
    "template <class T> __global__ void k(typename Op<T>::Params p) { static_assert(sizeof(T) > 0); }\n",
}


@pytest.mark.parametrize("text", OF_AN_INSTANCE.values(), ids=OF_AN_INSTANCE)
def test_an_instance_costs_nothing_but_itself(tmp_path: Path, text: str) -> None:
    """Where the compiler complains of a line for one instance alone, that one goes, and not what stands in the line."""
    types = "struct Good { static constexpr bool first = true, second = true; };\n"
    types += "struct Bad { static constexpr bool first = true; };\nusing Handle = vendor::Handle;\n"
    host = "#include <vector>\nvoid f() { k<Good><<<1, 1>>>({}); k<Bad><<<1, 1>>>({}); }\n"
    image = compiled(tmp_path, types + text + host)
    assert set(image.kernels) == {"k<Good>"}
    assert {omission.name for omission in image.passed_over} == {"Handle", "vector", "f"}
    (warning,) = (warning for warning in image.warnings if "instances of kernels" in warning)
    assert 'k<Bad>: class "Bad" has no member "second"' in warning


def test_what_nothing_asks_for_in_a_line_is_no_instance(tmp_path: Path) -> None:
    """Virtual functions of a template are instantiated at the end, like kernels: they are the file's all the same."""
    text = "#include <vector>\ntemplate <class T> struct Base {\n  int n; T v;\n"
    text += "  virtual int size() { return host_size(v); }\n};\n"
    text += "template <class T> __global__ void k(Base<T> *b, int *x) { Base<T> made(*b); *x = made.n; }\n"
    image = compiled(tmp_path, text + "void f(int *x) { k<<<1, 1>>>((Base<int> *)0, x); }\n")
    assert set(image.kernels) == {"k<int>"}
    assert ("body", "size") in {(omission.kind, omission.name) for omission in image.passed_over}


@pytest.mark.slow
def test_all_errors_are_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has to go on the compiler's word goes in one step, however much it is."""
    tried: list[int] = []

    def counted(job: CompileJob, space: Workspace, shown: Shown) -> CompiledImage:
        tried.append(len(shown.expressions))
        return compile_shown(job, space, shown)

    monkeypatch.setattr("hatch_cuda_kernels.reduction.compile_shown", counted)
    aliases = "".join(f"  using type_{number} = vendor::type_{number};\n" for number in range(300))
    text = f"#include <vector>\nstruct S {{\n{aliases}  int n;\n}};\n__global__ void k(S s, int *x) {{ *x = s.n; }}\n"
    image = compiled(tmp_path, text)
    assert len(image.passed_over) == 301
    assert len(tried) == 2
    calls = "".join(f"  absent_{number}();\n" for number in range(300))
    with pytest.raises(CompilationError, match=r'(?s)"absent_99"(?!.*"absent_100").*and 200 more errors'):
        compiled(tmp_path, text.replace("*x = s.n;", f"\n{calls}"))


def test_instances_are_not_let_go_for_errors_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the file has an error of its own, which stays, the compiler is not asked again for each instance."""
    tried: list[int] = []

    def counted(job: CompileJob, space: Workspace, shown: Shown) -> CompiledImage:
        tried.append(len(shown.expressions))
        return compile_shown(job, space, shown)

    monkeypatch.setattr("hatch_cuda_kernels.reduction.compile_shown", counted)
    bad = "template <int N> __global__ void k(int *x) { x[0] = N; absent(x); }\n"
    bad += "__device__ int g() { return missing; }\n__global__ void j(int *x) { x[0] = g(); }\n"
    with pytest.raises(CompilationError, match='"missing" is undefined'):
        compiled(tmp_path, bad + "void f(int *x) { " + "".join(f"k<{n}><<<1, 1>>>(x); " for n in range(8)) + "}\n")
    assert set(tried) == {8, 0}


def test_a_file_is_understood_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever looks at a file's declarations in a compile, they are read once, and each has the same patience."""
    seen: list[str] = []

    def counted(parser: Parser, text: str, surroundings: Surroundings) -> None:
        seen.append(text)
        made(parser, text, surroundings)

    made = Parser.__init__
    monkeypatch.setattr(Parser, "__init__", counted)
    text = "#include <vector>\n" + SCALE + "void f(float *x) { scale<<<1, 1>>>(x, 1); }\n"
    compiled(tmp_path, text)
    assert seen.count(text) == 1
    around = Surroundings.of([text.encode()])
    before = parsed(text, around).patience
    parsed(text, around).patience = 0
    assert parsed(text, around).patience == before


@pytest.mark.parametrize("word", ["const", "constexpr"])
def test_constants_that_are_computed_from_others(tmp_path: Path, word: str) -> None:
    """In floating point, NVRTC takes them where they are `constexpr`, and so they are made that."""
    text = f"#include <vector>\n{word} float two = 2.0f;\n{word} float half = 1.0 / two;\n"
    text += "__global__ void k(float *x) { x[0] = half; }\nvoid f(float *x) { k<<<1, 1>>>(x); }\n"
    image = compiled(tmp_path, text)
    assert set(image.kernels) == {"k"}
    assert b"0f3F000000" in image.data or b", 1056964608;" in image.data


def test_an_instance_that_does_not_compile_is_the_compilers_error(tmp_path: Path) -> None:
    """Where no instance compiles, its own error is what the author reads, not a table to fill in."""
    text = (
        "namespace cub { template <class T> struct Reduce { template <class Op> __device__ T of(T v, Op op); }; }\n"
        "template <class T> __global__ void rms(T *out, const T *in) {\n"
        "  using R = cub::Reduce<float>;\n"
        "  R reduce;\n"
        "  out[0] = reduce.of((float)in[threadIdx.x], cub::Sum{});\n}\n"
        "template <class T> void go(T *o, const T *i) { rms<T><<<1, 128>>>(o, i); }\n"
        "void run(float *x) { go(x, x); }\n"
    )
    error = r'(?s)k\.cu\(5\): error: namespace "cub" has no member "Sum".*hint: CUB'
    with pytest.raises(CompilationError, match=error):
        compiled(tmp_path, text)


def test_many_errors_of_what_is_fine_on_the_host(tmp_path: Path) -> None:
    """The compiler gives up after 100 errors; what a host throws and switches over is none of them."""
    throws = "".join(f"  if (x[{n}]) throw std::runtime_error(nullptr);\n  FAIL_IF(x, {n})\n" for n in range(60))
    text = SCALE + (
        "#include <stdexcept>\n#include <cusparse.h>\n#define FAIL_IF(x, n) { if (x[n] < 0) \\\n"
        '  throw std::out_of_range("n"); }\n'
        f"void check(float *x) noexcept(false) {{\n{throws}  try {{ throw; }} catch (...) {{ }}\n}}\n"
        "const char *name(cusparseStatus_t status) {\n  switch (status) {\n"
        + "".join(f"  case CUSPARSE_STATUS_{n}: return nullptr;\n" for n in range(120))
        + "  }\n  return nullptr;\n}\nvoid f(float *x) { check(x); scale<<<1, 1>>>(x, 1); }\n"
    )
    image = compiled(tmp_path, text)
    assert set(image.kernels) == {"scale<float>"} and not image.warnings


@pytest.mark.slow
def test_thrust_in_another_namespace(tmp_path: Path) -> None:
    """A project that has Thrust in a namespace of its own names its vectors by that."""
    text = SCALE + (
        "#include <thrust/device_vector.h>\nvoid f(app::thrust::device_vector<double> &x) {\n"
        "  scale<<<1, 1>>>(app::thrust::raw_pointer_cast(x.data()), 1);\n}\n"
    )
    write(tmp_path, {"k.cu": text})
    job = make_job(tmp_path, toolkit_headers="auto", defines={"THRUST_CUB_WRAPPED_NAMESPACE": "app"})
    assert set(compile_alone(job).kernels) == {"scale<double>"}


def test_tensors_of_the_stable_interface(tmp_path: Path) -> None:
    """PyTorch's interface that does not change is known, and what it calls nested namespaces, declared."""
    text = SCALE + (
        "#include <torch/csrc/stable/tensor.h>\n#include <torch/csrc/stable/library.h>\n"
        "template <class T> torch::stable::Tensor run(torch::stable::Tensor x) {\n"
        "  STD_TORCH_CHECK(x.dim() == 1);\n  torch::stable::accelerator::DeviceGuard guard(x.device().index());\n"
        "  auto y = torch::stable::odd::made(x, torch::headeronly::ScalarType::Half);\n"
        "  scale<<<1, 32>>>((T *)x.data_ptr(), T(y.numel()));\n  return x;\n}\n"
        'STABLE_TORCH_LIBRARY_IMPL(app, CUDA, m) {\n  m.impl("run", TORCH_BOX(run<float>));\n'
        '  m.impl("run2", TORCH_BOX(&run<double>));\n}\n'
    )
    assert set(compiled(tmp_path, text).kernels) == {"scale<float>", "scale<double>"}


def test_headers_that_only_a_build_makes(tmp_path: Path) -> None:
    """What a script of the project writes before its build, and host code alone includes, hides no launch."""
    text = SCALE + (
        '#include <mutex>\n#ifndef __CUDACC_RTC__\n#include "made/texts.h"\n'
        '#include "made/names.h"\n#endif\n'
        "std::once_flag once;\nvoid f(float *x) {\n  std::call_once(once, [] {});\n  scale<<<1, 1>>>(x, 1);\n}\n"
    )
    image = compiled(tmp_path, text)
    assert set(image.kernels) == {"scale<float>"} and not image.warnings


BARE = {
    "a body": "#define ALL kt<1><<<1, 1>>>(p); kt<2><<<1, 1>>>(p);\nvoid l(int *p) { ALL }\n",
    "a body in a macro": "#define ONE kt<1><<<1, 1>>>(p);\n#define TWO(n) ONE kt<n><<<1, 1>>>(p);\n"
    "void l(int *p) { TWO(2) }\n",
    "a body beside a launch": "#define ONE kt<1><<<1, 1>>>(p);\nvoid l(int *p) { ONE\nkt<2><<<1, 1>>>(p); }\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("host", BARE.values(), ids=BARE)
def test_launches_in_macros_without_arguments(tmp_path: Path, host: str) -> None:
    """A launch that a macro without arguments brings asks for its instance."""
    text = "#include <vector>\ntemplate <int N> __global__ void kt(int *p) { *p = N; }\n" + host
    image = compiled(tmp_path, text + "__global__ void other(int *p) { *p = 1; }\nvoid h() { std::vector<int> v; }\n")
    assert set(image.kernels) == {"kt<1>", "kt<2>", "other"}


def test_templates_whose_head_is_a_macro(tmp_path: Path) -> None:
    """A kernel is a template also where a macro has the word."""
    text = "#include <vector>\n#define TPL template <class T>\nTPL __global__ void k(T *p) { *p = T(4); }\n"
    text += "void h(std::vector<float> v, int *p) { k<<<1, 1>>>(v.data()); k<<<1, 1>>>(p); }\n"
    assert set(compiled(tmp_path, text).kernels) == {"k<float>", "k<int>"}


@pytest.mark.slow
def test_instances_that_a_macro_of_a_header_asks_for(tmp_path: Path) -> None:
    """A launch in a template of a header, to which a macro in another one leads, is warned of where the compiler does
    not get so far; where nothing names these templates, it is not."""
    header = "#pragma once\n" + SCALE + (
        "template <typename T> void run(T *x) { scale<<<1, 1>>>(x, 1); }\n"
        "#define RUN(x) do { auto *p = x; run(p); } while (0)\n"
        "template <typename T> void go(T *x) { RUN(vendor::data(x)); }\n"
    )  # fmt: skip
    own = '#include "k.cuh"\n__global__ void k(int *x) { *x = 1; }\nvoid f(float *x, int *y) { k<<<1, 1>>>(y); %s }\n'
    image = compiled(tmp_path, own % "vendor::log(); go(x);", k=header)
    (warning,) = image.warnings
    assert "k.cuh(3): scale (" in warning and set(image.kernels) == {"k"}
    assert not compiled(tmp_path, own % "vendor::log();", k=header).warnings


@pytest.mark.slow
@pytest.mark.parametrize(
    ("host", "found"),
    [
        ("auto f(int *p) { return std::make_unique<Impl<3>>(p); }", {"k<3>"}),
        ("auto f(int *p) { return std::make_shared<Impl<4>>(p); }", {"k<4>"}),
        ("void f(int *p) { std::vector<Impl<6>> v; v.emplace_back(p); }", {"k<6>"}),
        ("std::function<void(int *)> f = [](auto *p) { Impl<5>(p).go(); };", {"k<5>"}),
        ("struct S { std::string s; std::vector<int> v; };\nvoid f(int *p) { Impl<sizeof(S)>(p).go(); }", {"k<56>"}),
        ("void f(int *p) { Impl<-2147483647 - 1>(p).go(); t<(-2147483647 - 1)><<<1, 1>>>(p); }", {"k<-2147483648>"}),
    ],
)
def test_what_libraries_make(tmp_path: Path, host: str, found: set[str]) -> None:
    """What a library of the host makes and calls is made and called; its types have the sizes that nvcc sees."""
    text = "#include <functional>\n#include <memory>\n#include <string>\n#include <vector>\n"
    text += "template <int N> __global__ void k(int *p) { *p = N; }\n"
    text += "template <auto N> __global__ void t(int *p) { *p = N; }\n"
    text += "struct Base { virtual void go() = 0; };\n"
    text += "template <int N> struct Impl : Base { int *p; explicit Impl(int *p) : p(p) {}\n"
    text += "void go() override { k<N><<<1, 1>>>(p); } };\n"
    image = compiled(tmp_path, text + host + "\n")
    names = {name for name in image.kernels if name.startswith("k<")}
    assert not image.warnings and {name.replace("(-2147483647-1)", "-2147483648") for name in names} == found


@pytest.mark.slow
@pytest.mark.parametrize(
    "launch", ['k<<<1, 1>>>(p, L"abc")', "k<<<1, 1>>>(p, (Box<void(int) const> *)0)", "k<<<1, 1>>>(p, (__int128 *)0)"]
)
def test_types_that_messages_show_alike(tmp_path: Path, launch: str) -> None:
    """A type that the compiler shows like another one is not taken for that one."""
    text = "#include <vector>\ntemplate <class T> struct Box;\n__global__ void j(int *p) { *p = 1; }\n"
    text += "template <class T> __global__ void k(int *p, T t) { *p = sizeof(T); }\n"
    text += f"void f(int *p) {{ std::vector<int> v; {launch}; }}\n"
    image = compiled(tmp_path, text)
    assert set(image.kernels) == {"j"} and any("k.cu(5): k (" in warning for warning in image.warnings)


@pytest.mark.slow
def test_a_template_inside_a_class_of_the_host(tmp_path: Path) -> None:
    """The compiler is not shown the class without its members, of which a kernel has one: it would crash."""
    text = "#include <vector>\nstruct H { std::vector<int> v; template <class T> struct R { T a; }; };\n"
    text += "template <class T> __global__ void k(H::R<T> r, int *p) { p[0] = r.a; }\n"
    text += "void f(int *p) { H::R<int> r; k<int><<<1, 1>>>(r, p); }\n"
    assert set(compiled(tmp_path, text).kernels) == {"k<int>"}
