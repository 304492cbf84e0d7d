# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Code that is chosen by what only a host compiler has is told of."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from jobs import KERNEL, compile_alone, compile_files, make_job, write

from hatch_cuda_kernels.caveats import caveats
from hatch_cuda_kernels.cubin import read_cubin
from hatch_cuda_kernels.errors import CompilationError
from hatch_cuda_kernels.hostcode import host_choices, other_layouts
from hatch_cuda_kernels.hostcode.choices import as_nvcc_chooses, kept_from_nvrtc
from hatch_cuda_kernels.hostcode.tokens import tokenize
from hatch_cuda_kernels.nvrtc import workspace

CODE = "#endif\n__device__ int used() { return FAST; }\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("\n#ifdef __NVCC__\nint a;\n#endif\n", [(2, "__NVCC__")]),
        ("#if 1\n#elif defined(__GNUC__)\nint a;\n#endif\n", [(1, "__GNUC__")]),
        ("#if defined(A) && \\\n  defined(__linux__)\nint a;\n#endif\n", [(1, "__linux__")]),
        ("#ifdef __GNUC__\n#ifdef B\nint a;\n#endif\n#endif\n", [(1, "__GNUC__")]),
        ("#ifdef __SSE2__\nint a;\n#endif\n", [(1, "__SSE2__")]),
        ("#if defined(_MSC_VER) || defined(__AVX2__) || defined(__clang__)\nint a;\n#endif\n", []),
        ("#if __has_include(<vector>)\nint a;\n#endif\n", [(1, "__has_include(<vector>)")]),
        ("#ifndef MAXFLOAT\n#define FAST 1\n" + CODE, [(1, "MAXFLOAT")]),
        ("#ifdef __NVCC__\n#define UNUSED 1\n" + CODE, []),
        ("#ifdef __NVCC__\n#include <vector>\n\n// int a;\n#endif\n", []),
        ("#if __has_include(<cuda/std/array>)\nint a;\n#endif\n", []),
        ("#ifdef __CUDACC__\nint a; // __NVCC__\n#endif\n#endif\n#else\n", []),
        ("#ifdef __NVCC__\nint a;\n", []),
        ("#ifdef __CUDACC_RTC__\n#ifdef __NVCC__\nint a;\n#endif\n#endif\n", []),
        ("#ifdef __GNUC__\nint a;\n#elif defined(__CUDACC_RTC__)\nint b;\n#endif\n", []),
        ("#if __SIZEOF_POINTER__ == 8\nint a;\n#endif\n", [(1, "__SIZEOF_POINTER__")]),
        ("#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__\nint a;\n#endif\n", [(1, "__BYTE_ORDER__")]),
        ("#ifdef PATH_MAX\nint a;\n#endif\n", [(1, "PATH_MAX")]),
        ("#if __CUDA_ARCH__ >= 800 && defined(__cplusplus)\nint a;\n#endif\n", []),
        ("#ifdef __has_attribute\n#if __has_attribute(x)\n#endif\nint a;\n#endif\n", [(1, "__has_attribute")]),
        ("#if !defined (__COUNTER__)\nint a;\n#endif\n", [(1, "__COUNTER__")]),
        ("#if __has_attribute(x)\nint a;\n#endif\n", []),
        ("#if defined(__cpp_lib_void_t)\nint a;\n#endif\n", [(1, "__cpp_lib_void_t")]),
        (
            "#ifdef CLOCKS_PER_SEC\nint a;\n#endif\n#ifndef _STDIO_H\nint b;\n#endif\n",
            [(1, "CLOCKS_PER_SEC"), (4, "_STDIO_H")],
        ),
        ("#ifndef M_PI\n#define M_PI 3.14\n#endif\ndouble a = M_PI;\n", []),
    ],
)
def test_host_choices(text: str, found: list[tuple[int, str]]) -> None:
    """A conditional counts where code is left in it, or a macro that the code has; headers of the host do not."""
    assert list(host_choices(text.encode())) == found


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("#if __GNUC__ < 5\n#error old\n#endif", False),
        ("#if defined(__GNUC__)\n#define X\n#elif defined(_MSC_VER)\n#define X\n#else\n#error none\n#endif", False),
        ("#ifdef __GNUC__\n#else\n#ifdef UNSAFE\n#else\n#error none\n#error at all\n#endif\n#endif", False),
        ("#ifdef __x86_64__\n#else\n#error none \\\n of both\n#endif", False),
        ("#ifdef __GNUC__\n#else\n#error none\n#define X\n#endif", True),
        ("#ifdef __GNUC__\n#ifndef SIZE\n#error SIZE\n#endif\n#endif", True),
        (
            "#if OWN\n#elif defined __GNUC__ || defined(__clang__)\n#elif defined _MSC_VER\n#else\n#error none\n#endif",
            False,
        ),
        (
            "#if (__GNUC__ < 4 || (__GNUC__ == 4 && __GNUC_MINOR__ < 9)) && !defined(__clang__)\n#error old\n#endif",
            False,
        ),
        ("#if !defined(__GNUC__) || !defined(SIZE)\n#error SIZE\n#endif", True),
        ("#if SIZE == 1\n#elif SIZE == 2 && defined(__GNUC__)\n#else\n#error SIZE\n#endif", True),
        ("#if (SIZE == 1 || defined(__GNUC__) || A) && B\n#else\n#error SIZE\n#endif", True),
        ("#if __GNUC__ < 7 || __cplusplus < 201703L\n#error old\n#endif", True),
        ("#if __CUDA_PREC_DIV == 0\n#error precise\n#endif", True),
        ("#if !defined(SIZE)\n#error SIZE\n#endif", True),
        ("#if __CUDA_ARCH__ < 800\n#error old\n#endif", True),
        ("#if defined(__GNUC__) || defined(__CUDACC_RTC__)\n#else\n#error none\n#endif", True),
        ("#error none", True),
    ],
)
def test_errors_that_nvcc_does_not_come_to(text: str, left: bool) -> None:
    """An `#error` that is all of an arm goes where only the host's compiler tells; what authors ask for stays."""
    shown = as_nvcc_chooses(text)
    assert ("#error" in shown) == left
    assert shown.count("\n") == text.count("\n")


@pytest.mark.parametrize("host", ["", "#include <vector>\nvoid h() { std::vector<int> v; }\n"])
def test_macros_that_hang_on_a_difference(tmp_path: Path, host: str) -> None:
    """What is chosen by a macro that such a conditional defines, in another file or by way of a third, is warned of."""
    header = "#ifdef __GNUC__\n#define A 1\n#endif\n#if A\n#define B\n#endif\n#define OWN\n"
    text = host + '#include "a.h"\n#ifdef B\n__global__ void k(int *p) { *p = 1; }\n#endif\n'
    text += "#ifdef OWN\n__global__ void j(int *p) { *p = 1; }\n#endif\n"
    with workspace() as space:
        image = compile_files(tmp_path, {"k.cu": text, "a.h": header}, space, toolkit_headers="auto")
    (warning,) = image.warnings
    assert f"k.cu({2 + host.count(chr(10))}): B" in warning and "OWN" not in warning


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("#ifdef __NVCC__\nint a;\n#endif\n", "#ifdef __CUDACC__\nint a;\n#endif\n"),
        ("#if A && \\\n defined(__NVCC__)\n#endif", "#if A && \\\n defined(__CUDACC__)\n#endif"),
        ("#if A\n#elif __NVCC__\n#endif\n", "#if A\n#elif __CUDACC__\n#endif\n"),
        ("#ifdef __NVCC__\n#elif defined(__CUDACC_RTC__)\n#endif\n", None),
        ("#ifndef __CUDACC_RTC__\n#ifdef __NVCC__\n#endif\n#endif\n", None),
        ("#ifdef __NVCC__\nint a;\n", None),
        ("#ifdef __NVCC___\n#endif\n#define A __NVCC__\n// #ifdef __NVCC__\nint b = __NVCC__;\n", None),
        ('const char *t = R"(\n#ifdef __NVCC__\n#endif\n)";\n', None),
        ("#if 0\n#ifdef __NVCC__\n#endif\n#endif\n", None),
        ("#if defined(__linux__) || __unix\n#endif\n", "#if defined(__CUDACC__) || __CUDACC__\n#endif\n"),
        ("#ifdef __linux\n#elif defined __GLIBC__\n#endif\n", "#ifdef __CUDACC__\n#elif defined __CUDACC__\n#endif\n"),
        (
            "#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__\n#endif\n",
            "#if defined(__CUDACC__) && 1234 == 1234\n#endif\n",
        ),
        ("#if __GLIBC__ > 2\n#ifndef _WIN32\n#endif\n#endif\n", None),
        ("#if defined(__linux__) && !defined(__CUDACC_RTC__)\n#endif\n", None),
    ],
)
def test_code_for_nvcc(text: str, shown: str | None) -> None:
    """A conditional on nvcc's macro is one on a macro of both compilers, but where its author thought of NVRTC."""
    assert as_nvcc_chooses(text) == (text if shown is None else shown)


def test_own_meaning_of_a_macro(tmp_path: Path) -> None:
    """A project that defines nvcc's macro itself means what it defines."""
    text = "#include <vector>\n#ifdef FAST\n#define __NVCC__\n#endif\n#ifdef __NVCC__\n#define STEP 2\n#else\n"
    text += "#define STEP 40\n#endif\n__global__ void k(int *p) { *p = STEP; }\nvoid f() { std::vector<int> v; }\n"
    with workspace() as space:
        image = compile_files(tmp_path, {"k.cu": text}, space, arch="compute_80", toolkit_headers="auto")
    assert b", 40;" in image.data


def test_a_build_warns(tmp_path: Path) -> None:
    """The image is made, and the warning has the line and what to ask for in its place."""
    text = "#ifdef __GNUC__\n#define STEP 2\n#else\n#define STEP 1\n#endif\n"
    text += "#include <vector>\n__global__ void k(int *p) { *p = STEP; }\nint main() { return 0; }\n"
    with workspace() as space:
        image = compile_files(tmp_path, {"k.cu": text}, space, toolkit_headers="auto")
    (warning,) = image.warnings
    assert "k.cu(1): __GNUC__" in warning
    assert "ask for __CUDACC__" in warning


def test_files_as_they_are_written(tmp_path: Path) -> None:
    """A file without host code is warned of as well where it asks for the compilers' macros, and for no header's."""
    text = "#if __SIZEOF_POINTER__ == 8\ntypedef long long word;\n#else\ntypedef int word;\n#endif\n"
    text += "#ifndef NAN\n#define NAN __int_as_float(0x7fffffff)\n#endif\n"
    text += "__global__ void k(word *p, float *q) { p[1] = 2; *q = NAN; }\n"
    with workspace() as space:
        (warning,) = compile_files(tmp_path, {"k.cu": text}, space).warnings
        assert "k.cu(1): __SIZEOF_POINTER__" in warning
        assert "NAN" not in warning
        split = text.replace("#if _", "#if 1 && \\\n_")
        assert compile_files(tmp_path, {"k.cu": split}, space).warnings
        asked = "#ifdef __CUDACC_RTC__\n#define __SIZEOF_POINTER__ 8\n#endif\n"
        assert compile_files(tmp_path, {"k.cu": asked + text.partition("#ifndef")[0] + KERNEL}, space).warnings
        assert not compile_files(tmp_path, {"k.cu": "#if defined(__CUDACC_RTC__) || " + text[4:]}, space).warnings


FAST = "#ifdef __USE_FAST_MATH__\n#define FAST 1\n#else\n#define FAST 0\n#endif\n#ifdef __CUDA_FTZ\n#define FTZ 1\n"
FAST += "#else\n#define FTZ 0\n#endif\n#if FAST == WANTED && FTZ == WANTED_FTZ\n" + KERNEL + "#endif\n"


@pytest.mark.parametrize("option", [None, "ftz", "use-fast-math"])
def test_fast_math_by_ifdef(option: str | None, tmp_path: Path) -> None:
    """NVRTC defines these macros as 0; nvcc leaves them undefined, and code asks for them by `#ifdef`."""
    options = {option: True} if option else {}
    wanted = {"WANTED": str(int(option == "use-fast-math")), "WANTED_FTZ": str(int(option is not None))}
    with workspace() as space:
        image = compile_files(tmp_path, {"k.cu": FAST}, space, options=options, defines=wanted)
        assert not image.warnings
        compile_files(
            tmp_path, {"k.cu": FAST}, space, defines={"__USE_FAST_MATH__": "1", "WANTED": "1", "WANTED_FTZ": "0"}
        )


def test_every_macro_of_the_host_compiler_is_known(tmp_path: Path) -> None:
    """What gcc defines and NVRTC does not, by asking both."""
    if (compiler := shutil.which("g++")) is None:
        pytest.skip("no host compiler")
    command = [compiler, "-dM", "-E", "-x", "c++", "-std=c++17", os.devnull]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    names = sorted(set(re.findall(r"^#define (\w+)", printed, re.MULTILINE)))
    text = "".join(f'#ifdef {name}\nextern "C" __global__ void has_{name}() {{}}\n#endif\n' for name in names)
    with workspace() as space:
        image = compile_files(tmp_path, {"k.cu": text + KERNEL}, space)
    absent = [name for name in names if f"has_{name}" not in read_cubin(image.data).entries]
    assert len(absent) > 100
    assert [name for name in absent if not list(host_choices(f"#ifdef {name}\nint a;\n#endif\n".encode()))] == []
    alike = set(names) - set(absent)
    assert [name for name in alike if list(host_choices(f"#ifdef {name}\nint a;\n#endif\n".encode()))] == []


def test_own_limits_of_floating_types(tmp_path: Path) -> None:
    """`FLT_MAX` is no name that nvcc has unasked: a file that defines it where it is not there has its own."""
    text = (
        "#include <vector>\n#ifndef FLT_MAX\n#define FLT_MAX 1e20f\n__global__ void own(float *p) { *p = FLT_MAX; }\n"
    )
    text += "#endif\nint main() { return 0; }\n"
    with workspace() as space:
        image = compile_files(tmp_path, {"k.cu": text}, space, toolkit_headers="auto")
        assert "FLT_MAX" in image.warnings[0]
        given = compile_files(tmp_path, {"k.cu": "#include <cfloat>\n" + text + KERNEL}, space, toolkit_headers="auto")
    assert list(read_cubin(image.data).entries) == ["_Z3ownPf"]
    assert list(read_cubin(given.data).entries) == ["k"]
    assert not given.warnings


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("std::variant<int> v;\nstd::string_view s;", [(1, "std::variant"), (2, "std::string_view")]),
        (
            "struct D : public std::optional<int> {};\nstruct E : X, std::expected<int> {};\nstd::optional<int> o;",
            [(1, "std::optional"), (2, "std::expected")],
        ),
        ("\nstruct P { char c; std::complex<float> z; };\nstd::complex<double> y;", [(2, "std::complex")]),
        ("typedef ::std :: tuple<int> T;\nstd::array<int, 0> a;", [(1, "std::tuple"), (2, "std::array<int, 0>")]),
        ("cuda::std::complex<float> z; ::cuda::std::tuple<int> t; std::array<int, 10> a; // std::complex", []),
        ("/* std::tuple */ std::tuple_size<int> n; mystd::tuple<int> t;", []),
    ],
)
def test_other_layouts(text: str, found: list[tuple[int, str]]) -> None:
    """Each type counts where it is first named by its name in `std`."""
    assert list(other_layouts(text.encode())) == found


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    ["template<>", "std::array<", "std::array<a, 0", ": public ", ", ", "struct S : std::optional<int> ", "/* ", '"'],
)
def test_time_is_bounded(piece: str) -> None:
    """Long texts of what could begin something take no longer than their length."""
    code = (
        "from hatch_cuda_kernels.hostcode import host_choices, other_layouts\n"
        f"text = ({piece!r} * 30000).encode()\n"
        "for find in (host_choices, other_layouts):\n    list(find(text))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=20)


@pytest.mark.slow
def test_a_build_warns_of_other_types(tmp_path: Path) -> None:
    """A warning in a file with host code; none where std is CUDA's."""
    text = "#include <complex>\n#include <vector>\n"
    text += "__global__ void k(int *p, std::complex<float> z) { p[0] = int(z.real()); }\n"
    text += "int main() { return 0; }\n"
    plain = text.replace("std::complex", "cuda::std::complex")
    with workspace() as space:
        (layout,) = compile_files(tmp_path, {"k.cu": text}, space, toolkit_headers="auto").warnings
        assert not compile_files(tmp_path, {"k.cu": plain}, space, toolkit_headers="auto").warnings
    assert "k.cu(3): std::complex" in layout
    assert "write cuda::std::" in layout


SAID = {
    "letters": ('/* u8"\u00e9"\n*/ // u8"\u00e9"\n__device__ auto s = u8"\u00e9";', "k.cu(3)", 1),
    "plain letters": ('__device__ const char *s = "\u00e9";', "", 0),
    "an attribute behind": ("struct S { char c; int i; } __attribute__((packed));", "after the braces", 1),
    "an attribute before": ("struct __attribute__((packed)) S { char c; int i; };", "", 0),
    "a counter": ("#define N(a) a##__COUNTER__\n__device__ int N(a), b;", "__COUNTER__", 1),
    "a counter in a macro alone": ("#define N(a) a##__COUNTER__\n// N(a)\n", "", 0),
    "limits": ("__device__ __half h = std::numeric_limits<__half>::max();", "cuda::std::numeric_limits", 1),
    "limits of a parameter": ("template <class T> __device__ T h = std::numeric_limits<T>::max();", "zero", 1),
    "limits of CUDA's": ("__device__ __half h = cuda::std::numeric_limits<__half>::max();", "", 0),
    "limits of a class": ("struct T; __device__ int h = std::numeric_limits<int>::max();", "", 0),
    "a moved specialisation": (
        "namespace std { } namespace cuda { namespace std { template <> struct tuple_size<V> {}; } }", "tuple_size", 1
    ),
}  # fmt: skip


@pytest.mark.parametrize("text, said, count", SAID.values(), ids=SAID)
def test_what_is_said(tmp_path: Path, text: str, said: str, count: int) -> None:
    """What NVRTC or libcu++ have otherwise than nvcc and the host's library is warned of, with its lines."""
    write(tmp_path, {"k.cu": text})
    found = list(caveats(make_job(tmp_path), {"k.cu": text.encode()}, expressions=["k<__half>"]))
    assert len(found) == count and all(said in warning and "k.cu(" in warning for warning in found)


def test_attributes_that_nvrtc_does_not_know(tmp_path: Path) -> None:
    """One that lays a class out is an error in a file with host code."""
    text = "#include <vector>\nstruct [[gnu::packed]] S { char c; int i; };\n"
    text += "__global__ void k(S s, int *p) { *p = s.i; }\nvoid run(std::vector<int> v) {}\n"
    write(tmp_path, {"k.cu": text})
    with pytest.raises(CompilationError, match="gnu::packed"):
        compile_alone(make_job(tmp_path, toolkit_headers="auto"))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("#ifndef __CUDACC_RTC__\nint a;\n#else\nint b;\n#endif", [(0, 4)]),
        ("#if !defined(__CUDACC_RTC__) // host\nint a;\n#endif", [(0, 4)]),
        ("#ifdef __CUDACC_RTC__\nint a;\n#else\nint b;\n#endif", [(4, 8)]),
        ("#if !defined(__CUDACC_RTC__) || X\nint a;\n#endif", []),
        ("#if X\n#ifndef __CUDACC_RTC__\n#elif Y\nint a;\n#endif\n#endif", [(1, 2)]),
        ("#if defined(__CUDACC_RTC__)\nint a;\n#elif X\nint b;\n#else\nint c;\n#endif", []),
    ],
)
def test_arms_that_an_author_keeps_from_nvrtc(text: str, kept: list[tuple[int, int]]) -> None:
    """By their first and last tokens."""
    assert kept_from_nvrtc(tokenize(text)) == kept


ASKED_OF_A_HEADER = "#include <Eigen/Core>\n%s#if !EIGEN_VERSION_AT_LEAST(3, 4, 0)\n%s\n#else\n%s\n#endif\n%s"
HARMLESS = {
    "includes": ("", "#include <vector>\n#include <Eigen/StdVector>", "", ""),
    "code of the host": ("", "inline int old(Eigen::Matrix m) { return m.rows(); }", "", ""),
    "a macro for itself": (
        "",
        "#define LIST(T) namespace std { template <> class vector<T> {}; }\nLIST(Eigen::A)",
        "",
        "",
    ),
}
DECISIVE = {
    "a macro": ("", "#define VALUE 3", "#define VALUE 40", "__device__ int v = VALUE;"),
    "a macro that is asked for": ("", "", "#define NEW", "#ifdef NEW\n__device__ int v = 40;\n#endif\n"),
    "a function of the device": ("", "__device__ int v() { return 3; }", "__device__ int v() { return 40; }", ""),
    "a constant": ("", "constexpr int v = 3;", "constexpr int v = 40;", "__device__ int w = v;"),
    "a part of a class": ("struct S { int a;\n", "int b;", "", "};\n__device__ S s;"),
    "names of a namespace": (
        "__device__ int v();\nnamespace a { __device__ int v(char); }\n",
        "using namespace a;",
        "",
        "__device__ int w = sizeof(v('a'));",
    ),
    "an enumeration": (
        "constexpr int v = 5;\nnamespace app {\n",
        "enum { v = 3 };",
        "enum { v = 40 };",
        "__device__ int w = v; }\n",
    ),
    "a name of another namespace": (
        "namespace a { __device__ int v(int); }\n__device__ int v(long);\n",
        "using a::v;",
        "",
        "__device__ int w = sizeof(v(1));",
    ),
    "an assertion": ("", 'static_assert(sizeof(int) == 8, "too small");', "", ""),
    "a layout": ("", "#pragma pack(push, 1)", "", "struct S { char a; int b; };\n__device__ S s;"),
    "an error": ("", "#error too old", "", ""),
    "a header of the project": ("", '#include "own.cuh"', "", ""),
}


@pytest.mark.parametrize("parts", HARMLESS.values(), ids=HARMLESS)
def test_conditionals_that_make_no_difference(tmp_path: Path, parts: tuple[str, ...]) -> None:
    """A question that only a header of the host answers goes, where its arms are host code."""
    text = ASKED_OF_A_HEADER % parts + "__global__ void k(int *p) { *p = 40; }\n"
    with workspace() as space:
        image = compile_files(tmp_path, {"k.cu": text}, space, arch="compute_80", toolkit_headers="auto")
    assert set(image.kernels) == {"k"} and b", 40;" in image.data


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(parts, id=name, marks=() if number % 3 == 0 else pytest.mark.slow)
        for number, (name, parts) in enumerate(DECISIVE.items())
    ],
)
def test_conditionals_that_make_a_difference(tmp_path: Path, parts: tuple[str, ...]) -> None:
    """Where an arm has anything that device code could see, the question is the author's to answer."""
    text = ASKED_OF_A_HEADER % parts + "__global__ void k(int *p) { *p = 40; }\nvoid f() { k<<<1, 1>>>(0); }\n"
    files = {"k.cu": text, "own.cuh": "struct Own { int a; };\n"}
    with workspace() as space, pytest.raises(CompilationError, match=r'EIGEN_VERSION_AT_LEAST|"v" is undefined'):
        compile_files(tmp_path, files, space, arch="compute_80", toolkit_headers="auto")


ELSEWHERE = {
    "a value": ({"c.h": "#ifdef __GNUC__\n#define VAL 42\n#else\n#define VAL 52\n#endif\n"}, "VAL", "c.h(1): __GNUC__"),
    "a switch": (
        {"c.h": "#if defined(__GNUC__)\n#define WIDE 1\n#else\n#define WIDE 0\n#endif\n"},
        "\n#if WIDE\n1\n#else\n2\n#endif\n",
        "c.h(1): __GNUC__",
    ),
    "a header": (
        {"c.h": '#ifdef __GNUC__\n#include "a.h"\n#endif\n#ifndef W\n#define W 5\n#endif\n', "a.h": "#define W 4\n"},
        "W",
        "c.h(1): __GNUC__",
    ),
    "nothing": (
        {"c.h": "#ifdef __GNUC__\n#define OTHER 1\n#endif\n#ifndef OTHER\n#define OTHER 2\n#endif\n"},
        "7",
        None,
    ),
}


@pytest.mark.parametrize(
    "host",
    [
        pytest.param("void h() { std::vector<int> v; }\n", id="host"),
        pytest.param("", id="as-written", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(("files", "value", "told"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_choices_in_other_files(tmp_path: Path, files: dict[str, str], value: str, told: str | None, host: str) -> None:
    """A choice that a header makes for another file is told of, with the line of the header."""
    include = "#include <vector>\n" if host else ""
    text = f'{include}#include "c.h"\n{host}__global__ void k(int *p) {{ *p = {value}; }}\n'
    with workspace() as space:
        image = compile_files(tmp_path, {"k.cu": text, **files}, space, toolkit_headers="auto")
    assert any(told in warning for warning in image.warnings) if told else not image.warnings


def test_integer_powers(tmp_path: Path) -> None:
    """Powers that nvcc computes in `double`, and NVRTC by multiplying, are warned of together, and no other ones."""
    text = "#include <vector>\n#include <cmath>\nvoid h(std::vector<int>) { }\n"
    text += "template <class T> __device__ T cube(T x) { return pow(x, 3); }\n"
    text += "__global__ void k(float *p, double *q, int *n) {\n"
    text += "  *p = cube(*p) + std::pow(*p, *n);\n  *q = pow(*q, -2);\n"
    text += "  *p = pow(*p, 2.0f) + powf(*p, 2) + pow(*p, 2.0) + pow(2, *p);\n  *n = pow(*n, 2);\n}\n"
    with workspace() as space:
        image = compile_files(tmp_path, {"k.cu": text}, space, toolkit_headers="auto")
    (warning,) = image.warnings
    places = ["k.cu(4): pow(float, int)", "k.cu(6): pow(float, int)", "k.cu(7): pow(double, int)"]
    assert sorted(line.removeprefix("  - ") for line in warning.splitlines()[1:]) == places


def test_macros_put_aside(tmp_path: Path) -> None:
    """NVRTC goes on with the macro as it is after `#pragma push_macro` and what follows: that is said."""
    text = '#define V 1\n#pragma push_macro("V")\n#undef V\n#define V 2\n#pragma pop_macro("V")\n'
    with workspace() as space:
        image = compile_files(tmp_path, {"k.cu": text + "__global__ void k(int *p) { *p = V; }\n"}, space)
    assert any("push_macro" in warning and "k.cu" in warning for warning in image.warnings)


@pytest.mark.slow
def test_layout_of_an_instance(tmp_path: Path) -> None:
    """A type of the library that only a launch names is warned of."""
    text = "#include <complex>\n#include <vector>\ntemplate <class T> __global__ void k(T *p) { *p = T(1); }\n"
    text += "void run(std::complex<float> *p, std::vector<int> v) { k<<<1, 1>>>(p); }\n"
    with workspace() as space:
        image = compile_files(tmp_path, {"k.cu": text}, space, toolkit_headers="auto")
    assert any("complex" in warning and "alignment" in warning for warning in image.warnings), image.kernels
