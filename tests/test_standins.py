# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The C++ standard headers that device code uses are there with no configuration, and disturb nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from jobs import KERNEL, compile_files, make_job, write

from hatch_cuda_kernels import CompilationError
from hatch_cuda_kernels.compiler import compile_job
from hatch_cuda_kernels.nvrtc import Workspace, workspace
from hatch_cuda_kernels.standins import FIRST, standins, standins_digest, write_standins

BODIES: dict[str, str] = {
    "algorithm": """
        int a[4] = {3, 1, 2, 0};
        std::swap(a[0], a[1]);
        std::fill(a, a + 2, *i);
        *i = std::min(a[0], a[1]) + std::max(1, 2) + std::clamp(*i, 0, 9) + *std::lower_bound(a, a + 4, 2);""",
    "array": "std::array<int, 3> a{1, 2, 3}; for (int v : a) *i += v; *i += int(a.size()) + std::get<0>(a);",
    "atomic": "std::atomic_ref<int> a(*i); a.fetch_add(1, std::memory_order_relaxed);",
    "barrier": "using B = std::barrier<>; __shared__ char b[sizeof(B)]; reinterpret_cast<B*>(b)->arrive_and_wait();",
    "bit": "*i = std::popcount(unsigned(*i)) + int(std::bit_cast<unsigned>(1.f)) + std::countl_zero(unsigned(*i));",
    "bitset": "std::bitset<8> b(3); *i = int(b.count());",
    "cassert": "assert(*i > 0);",
    "assert.h": "assert(*i > 0);",
    "cfloat": "*f = FLT_MAX + FLT_EPSILON; *d = DBL_MIN + DBL_DIG;",
    "float.h": "*f = FLT_MAX;",
    "chrono": """
        using namespace std::chrono_literals;
        std::chrono::milliseconds m(3); *i = int(std::chrono::duration_cast<std::chrono::nanoseconds>(m).count());""",
    "climits": '*i = INT_MAX - CHAR_BIT; static_assert(LONG_MAX > 0 && ULLONG_MAX > UINT_MAX, "");',
    "limits.h": "*i = INT_MIN;",
    "cmath": """
        *f = std::sqrt(*f) + std::pow(*f, 2.f) + std::abs(*f) + std::fmaf(1.f, *f, 2.f);
        *d = std::sqrt(2) + std::pow(*d, 2) + std::floor(*d) + std::hypot(*d, 1) + std::pow(*f, *d) + M_PI + INFINITY;
        if (std::isnan(*f) || std::isinf(*d) || std::isfinite(*i) || std::signbit(*f)) *i = int(std::lround(*d));""",
    "math.h": "*d = sqrt(2) + fmax(1, 2.0) + M_SQRT2 + NAN + HUGE_VAL; *f = sinf(*f);",
    "compare": "*i = (*i <=> 3) < 0 || 0 < (*f <=> 2.f) || std::is_gteq(*d <=> *f);",
    "complex": """
        std::complex<float> c(*f, 1.f); c = std::exp(c) * std::conj(c) + std::polar(1.f, 2.f);
        *f = std::abs(c) + std::norm(c) + c.real() + std::sqrt(*f); c = std::pow(c, 2.f); *f += std::arg(c);""",
    "concepts": 'static_assert(std::integral<int> && !std::same_as<int, float>, "");',
    "cstddef": "std::size_t n = sizeof(std::max_align_t); std::byte b{3}; std::nullptr_t z = nullptr;"
    " ptrdiff_t q = z == 0; struct S { int a, b; }; *i = int(n + q + offsetof(S, b)) + std::to_integer<int>(b);",
    "stddef.h": "size_t n = 3; nullptr_t z = nullptr; *i = int(n) + (z == nullptr) + int(sizeof(max_align_t));",
    "cstdint": "std::uint32_t a = UINT32_MAX; uint8_t b = 3; std::int_fast16_t c = 2; uintptr_t p = uintptr_t(i);"
    " std::uint64_t q = UINT64_C(5); *i = int(a + b + c + p + q + INT8_MAX); std::size_t n = 1; *i += int(n);",
    "stdint.h": "uint32_t a = 1; int64_t b = INT64_MAX; *i = int(a + b);",
    "cstdio": 'std::printf("%d\\n", *i); printf("x");',
    "stdio.h": 'printf("%d\\n", *i);',
    "stdbool.h": "bool b = true; *i = b && __bool_true_false_are_defined;",
    "cstdbool": "bool b = true; *i = b;",
    "stdalign.h": "alignas(16) char a[16]; *i = int(alignof(int)) + a[0];",
    "cstdalign": "*i = int(alignof(int));",
    "iso646.h": "if (not *i and true) *i = 1;",
    "ciso646": "*i = not *i;",
    "cstdlib": "*i = std::abs(*i) + abs(-2) + std::div(7, 2).quot; void* p = std::malloc(4); std::free(p);",
    "stdlib.h": "*i = abs(*i); void* p = malloc(4); free(p);",
    "cstring": "char a[4]; std::memcpy(a, i, 4); std::memset(i, 0, 4); *i += a[0] + std::memcmp(a, i, 4);",
    "string.h": "char a[4]; memcpy(a, i, 4); memset(i, 0, 4); *i += a[0];",
    "ctime": "std::clock_t t = std::clock(); *i = int(t);",
    "time.h": "clock_t t = clock(); *i = int(t);",
    "expected": "std::expected<int, float> e = 3; *i = e.value_or(1) + e.has_value();",
    "functional": "auto r = std::ref(*i); r.get() = std::plus<>{}(1, 2) + std::invoke(std::multiplies<int>{}, 2, 3);"
    "struct F : std::unary_function<int, int> {}; struct G : std::binary_function<int, F, int> {};"
    "*i += F::result_type(sizeof(G)) + sizeof(G::second_argument_type);",
    "initializer_list": "auto sum = [](std::initializer_list<int> l) { int s = 0; for (int v : l) s += v; return s; };"
    " *i = sum({1, 2, 3});",
    "iterator": "int a[3] = {}; *i = int(std::distance(i, i + 3)) + *std::next(i) + *std::begin(a) + std::size(a);",
    "latch": "std::latch l(1); l.count_down();",
    "limits": "*f = std::numeric_limits<float>::infinity(); *i = std::numeric_limits<int>::max();",
    "numbers": "*d = std::numbers::pi;",
    "numeric": "*i = std::accumulate(i, i + 3, 0) + std::gcd(4, 6) + std::midpoint(1, 3); std::iota(i, i + 3, 0);",
    "optional": "std::optional<int> o = 3; *i = o.value_or(1); o = std::nullopt;",
    "ratio": "*i = int(std::ratio_add<std::ratio<1, 2>, std::milli>::num);",
    "semaphore": "std::binary_semaphore s(1); s.release();",
    "source_location": "*i = int(std::source_location::current().line());",
    "span": "std::span<int> s(i, 3); *i = s[1] + int(s.size());",
    "string_view": 'std::string_view s = "abc"; *i = int(s.size());',
    "tuple": """
        auto t = std::make_tuple(1, 2.f, 'c'); auto [a, b, c] = t; std::tie(*i, b, c) = t; *f = b + c;
        static_assert(std::tuple_size<decltype(t)>::value == 3, ""); *i = a + std::get<0>(t);
        std::tuple_element_t<1, decltype(t)> e = 2.f; *f += e;""",
    "type_traits": """
        static_assert(std::is_same<std::remove_const_t<const int>, int>::value && std::is_integral_v<int>, "");
        std::enable_if_t<true, int> x = 0; std::conditional_t<true, int, char> y = x; *i = y;""",
    "utility": """
        std::pair<int, float> p = std::make_pair(1, 2.f); std::swap(p.first, *i); std::exchange(*i, 3);
        auto q = std::move(p); *i = std::get<0>(q) + int(std::index_sequence<1, 2>::size()) + std::as_const(*i);
        [](auto&& v) { return std::forward<decltype(v)>(v); }(q);""",
    "variant": "std::variant<int, float> v = 3; *i = std::get<int>(v) + std::holds_alternative<int>(v);",
}
"""Header -> statements that use it; `i`, `f` and `d` point to an int, a float and a double."""


@pytest.fixture(scope="module")
def space() -> Iterator[Workspace]:
    """A workspace with NVRTC's headers, for all tests here."""
    with workspace() as found:
        yield found


def function(header: str, number: int) -> str:
    """A kernel that uses one header."""
    return f'extern "C" __global__ void k{number}(int* i, float* f, double* d)\n{{\n{BODIES[header]}\n}}\n'


def test_every_standin_is_used() -> None:
    """Each stand-in has a kernel here, and there is none for the two headers that must not have one."""
    assert set(BODIES) == set(standins())
    assert not {"version", "new", "vector", "iostream"} & set(standins())


@pytest.mark.parametrize(
    ("arch", "backwards"),
    [
        pytest.param("sm_90", True, marks=pytest.mark.slow),
        pytest.param("sm_80", False, marks=pytest.mark.slow),
        pytest.param("sm_80", True, marks=pytest.mark.slow),
        pytest.param("sm_90", False, marks=pytest.mark.slow),
    ],
)
def test_all(tmp_path: Path, space: Workspace, arch: str, backwards: bool) -> None:
    """Everything together, in either order, under `using namespace std`, compiles without a warning of ours."""
    headers = sorted(BODIES, reverse=backwards)
    text = "".join(f"#include <{header}>\n" for header in headers) + "using namespace std;\n"
    text += (
        "__device__ float plain(float x, int n) { return sqrt(x) + pow(x, 2) + max(1, n) + min(x, 2.f) + abs(x); }\n"
    )
    text += "".join(function(header, number) for number, header in enumerate(headers))
    options = {"options": {"std": "c++20"}, "toolkit_headers": "auto", "arch": arch}
    image = compile_files(tmp_path, {"k.cu": text}, space, **options)
    assert len(image.kernels) == len(headers)
    assert not [warning for warning in image.warnings if "standins" in warning]


@pytest.mark.parametrize(
    "header", ["cstdint", "stdint.h", "cmath", "math.h", "cstddef", "cstdlib", "cstring", "cstdio"]
)
def test_one(tmp_path: Path, space: Workspace, header: str) -> None:
    """The headers that are included most stand alone."""
    check_alone(tmp_path, space, header, "sm_80")


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("header", sorted(BODIES))
def test_each(tmp_path: Path, space: Workspace, header: str, arch: str) -> None:
    """Every header stands alone, on two architectures and with two standards."""
    check_alone(tmp_path, space, header, arch)


def check_alone(root: Path, space: Workspace, header: str, arch: str) -> None:
    """A kernel that includes one header and uses its names compiles without warnings about it."""
    text = f"#include <{header}>\n" + function(header, 0)
    options = {"options": {"std": "c++20"}, "toolkit_headers": "auto", "arch": arch}
    assert compile_files(root, {"k.cu": text}, space, **options).kernels == {"k0": "k0"}
    if header not in ("bit", "compare", "concepts", "numbers", "source_location", "expected"):
        assert compile_files(root, {"k.cu": text}, space, toolkit_headers="auto", arch=arch).kernels == {"k0": "k0"}


def test_integers_and_mixtures(tmp_path: Path, space: Workspace) -> None:
    """Mathematical functions take integers and mixtures as the standard says, and keep float for floats."""
    text = """
#include <cmath>
template <class A, class B> struct same { static const bool value = false; };
template <class A> struct same<A, A> { static const bool value = true; };
#define IS(type, ...) static_assert(same<type, decltype(__VA_ARGS__)>::value, #__VA_ARGS__)
extern "C" __global__ void k(double* d)
{
    IS(float, std::sqrt(1.f)); IS(double, std::sqrt(1.)); IS(double, std::sqrt(1)); IS(double, sqrt(1u));
    IS(float, std::pow(1.f, 2.f)); IS(double, std::pow(1, 2)); IS(double, std::pow(1.f, 2.)); IS(float, fmaxf(1, 2));
    IS(double, std::fmax(1.f, 2.)); IS(int, std::abs(-1)); IS(float, std::abs(-1.f)); IS(double, std::floor(3l));
    IS(bool, std::isnan(1)); IS(long, std::lround(2)); IS(float, std::sinf(1.f));
    *d = sqrt(4) + std::pow(2, 3);
}
"""
    compile_files(tmp_path, {"k.cu": text}, space, toolkit_headers="auto")


@pytest.mark.parametrize(
    "header",
    [
        "cuda_fp16.h",
        "cuda_bf16.h",
        "mma.h",
        pytest.param("cub/block/block_reduce.cuh", marks=pytest.mark.slow),
        pytest.param("cooperative_groups.h", marks=pytest.mark.slow),
        pytest.param("cuda/std/tuple", marks=pytest.mark.slow),
    ],
)
def test_toolkit_headers(tmp_path: Path, space: Workspace, header: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """[S13] CUDA's and CCCL's own headers work, and give the same image whether or not there are stand-ins."""
    text = f"#include <{header}>\n" + KERNEL
    image = compile_files(tmp_path, {"k.cu": text}, space, toolkit_headers="auto")
    folder = tmp_path / "none"
    folder.mkdir()
    monkeypatch.setattr(Workspace, "standins", lambda self: folder)
    assert compile_files(tmp_path, {"k.cu": text}, space, toolkit_headers="auto").data == image.data


@pytest.mark.parametrize("kind", ["fp16", "bf16"])
@pytest.mark.parametrize("order", [("h", "hpp"), ("hpp", "h"), ("hpp",)], ids="-".join)
def test_what_the_compiler_has_built_in(tmp_path: Path, space: Workspace, kind: str, order: tuple[str, ...]) -> None:
    """`cuda_fp16.hpp` besides `cuda_fp16.h`, which costs nothing with nvcc, changes nothing."""
    use = {"fp16": "__half", "bf16": "__nv_bfloat16"}[kind]
    text = f"__global__ void k({use} *p) {{ *p = __hadd(p[0], p[1]); }}\n"
    images = [
        compile_files(
            tmp_path,
            {"k.cu": "".join(f"#include <cuda_{kind}.{suffix}>\n" for suffix in suffixes) + text},
            space,
            toolkit_headers="auto",
        )
        for suffixes in (("h",), order)
    ]
    assert images[0].data == images[1].data


USE_OF_HOST_TYPE = KERNEL.replace("*p = 1", "std::vector<int> v; *p = v.size()")


@pytest.mark.parametrize("header", ["vector", "iostream", "string", "memory", "thread"])
def test_others(tmp_path: Path, space: Workspace, header: str) -> None:
    """[S13] What only a host has is NVRTC's error where a kernel uses it, with the header that had it and a way out."""
    source = f"#include <{header}>\n" + USE_OF_HOST_TYPE
    with pytest.raises(CompilationError, match=rf"(?s)k\.cu\(2\): error.*vector.*hint: .*<{header}> of k\.cu\(1\)"):
        compile_files(tmp_path, {"k.cu": source}, space, toolkit_headers="auto")


def test_a_header_that_nobody_has(tmp_path: Path, space: Workspace) -> None:
    """[S13] It is NVRTC's error, with a way out, whatever else the source has of the host."""
    source = "#include <version_that_is_not>\n" + USE_OF_HOST_TYPE
    with pytest.raises(CompilationError, match=r"(?s)cannot open source file.*hint: "):
        compile_files(tmp_path, {"k.cu": source}, space, toolkit_headers="auto")


@pytest.mark.slow
def test_assertions(tmp_path: Path, space: Workspace) -> None:
    """Each include of `assert.h` looks at NDEBUG, as the real one does; a macro of the same name goes."""
    steps = [
        ("on_without_an_include", "", True),
        ("on_in_spite_of_a_definition", "#define NDEBUG", True),
        ("off", "#include <cassert>", False),
        ("off_until_the_next_include", "#undef NDEBUG", False),
        ("on_again", '#include "own.cuh"', True),
        ("on_as_the_header_left_it", "#define NDEBUG 1", True),
        ("off_again", "#include <assert.h>", False),
        ("on_after_another_macro", "#undef NDEBUG\n#undef assert\n#define assert(x)\n#include <cassert>", True),
    ]
    text = "".join(f"{lines}\n__global__ void {name}(int *p) {{ assert(*p == 3); }}\n" for name, lines, _ in steps)
    files = {"own.cuh": "#include <cassert>\n", "k.cu": text}
    for host in ("", "void f(int *p) { off<<<1, 1>>>(p); }\n"):
        files["k.cu"] += host
        for defines in ({}, {"NDEBUG": True}):
            options = {"toolkit_headers": "auto", "arch": "compute_80", "defines": defines}
            bodies = compile_files(tmp_path, files, space, **options).data.decode("latin-1").split(".entry ")[1:]
            on = {body.split("(")[0] for body in bodies if "call.uni \n\t__assertfail" in body}
            first = 2 if defines else 0  # with NDEBUG from the start, those before the first include are off as well
            assert on == {f"_Z{len(name)}{name}Pi" for name, _, expected in steps[first:] if expected}


@pytest.mark.slow
def test_assertions_are_named_as_written(tmp_path: Path, space: Workspace) -> None:
    """The message has the expression of the file, not what macros in it stand for."""
    text = "#include <cassert>\n#define LIMIT 77\n__global__ void k(int *p) { assert(*p < LIMIT && *p != '%'); }\n"
    image = compile_files(tmp_path, {"k.cu": text}, space, toolkit_headers="auto")
    assert b"*p < LIMIT && *p != '%'\0" in image.data


def test_own_header_wins(tmp_path: Path, space: Workspace) -> None:
    """A header of the project comes before a stand-in of that name."""
    files = {"k.cu": "#include <cstdint>\n" + KERNEL.replace("1", "MINE"), "include/cstdint": "#define MINE 5\n"}
    compile_files(tmp_path, files, space, toolkit_headers="auto", include_dirs=["include"])


def test_none(tmp_path: Path, space: Workspace) -> None:
    """With toolkit-headers = "none" there are no stand-ins either."""
    with pytest.raises(CompilationError, match="toolkit-headers is 'none'"):
        compile_files(tmp_path, {"k.cu": "#include <cstdint>\n" + KERNEL}, space)


def test_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-ins are part of every key: a source without an include can need them for what nvcc predefines."""
    write(tmp_path, {"k.cu": KERNEL})
    before = make_job(tmp_path, toolkit_headers="auto").key
    monkeypatch.setattr("hatch_cuda_kernels.plan.standins_digest", lambda: "other")
    assert make_job(tmp_path, toolkit_headers="auto").key != before
    assert len(standins_digest()) == 64


def test_line_info(tmp_path: Path, space: Workspace) -> None:
    """Line tables name stand-ins without the folder of the compile."""
    text = "#include <cmath>\n" + function("cmath", 0)
    image = compile_job(
        make_job(write(tmp_path, {"k.cu": text}), toolkit_headers="auto", options={"lineinfo": True}), space
    )
    assert b"/cuda-kernels/" in image.data
    assert str(space.path).encode() not in image.data


def test_write_twice(tmp_path: Path) -> None:
    """Writing them again, as another worker would, changes nothing and leaves no other folder."""
    write_standins(tmp_path / "s")
    write_standins(tmp_path / "s")
    assert [path.name for path in tmp_path.iterdir()] == ["s"]
    assert {path.name for path in (tmp_path / "s").iterdir()} == {*standins(), FIRST}
