# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Uses of macros that NVRTC's preprocessor is asked about: what is asked, what is taken of the answers, what stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from jobs import compile_alone, make_job, write

from hatch_cuda_kernels.errors import CompilationError
from hatch_cuda_kernels.hostcode import Inquiry, Surroundings, pass_over
from hatch_cuda_kernels.hostcode.dependence import Dependence, arms_of
from hatch_cuda_kernels.hostcode.spelling import merged, same_tokens, spaced, spaced_definition
from hatch_cuda_kernels.hostcode.tokens import tokenize

MAKE = "#define MAKE(n, v) __global__ void n(int *p) { *p = v; } static void n##_host() { std::vector<int> w; }\n"
OTHER = MAKE.replace("= v;", "= v + 1;")


def inquiry_of(**files: str) -> Inquiry:
    """Questions about some files, of which `k` is the source; each may include any other by its name."""
    texts = {label: text.encode() for label, text in files.items()}
    own = {label: {name: [name] for name in files} for label in files}
    return Inquiry(texts, Surroundings.of(texts.values()), own, "k")


def told(*answers: tuple[int, str]) -> str:
    """What the compiler says of questions, and of the end of the source."""
    lines = [
        f'k(1): error: static assertion failed with "hatch_cuda_kernels {n}:{t}:hatch_cuda_kernels"' for n, t in answers
    ]
    return "\n".join([*lines, 'k(9): error: static assertion failed with "hatch_cuda_kernels end"'])


def test_white_space_keeps_apart_what_macros_put_side_by_side() -> None:
    """Around every word and after every use; not inside of what is one token without it."""
    assert spaced("-e+f(-x)-1 ->m ++i \"5\"_km L'x'") == "- e + f (- x ) -1 -> m ++ i \"5\"_km L'x'"
    assert spaced_definition("#define NEG(e)-e") == "#define NEG(e)- e"
    assert spaced_definition("#define NEG (e)") == "#define NEG ( e )"


@pytest.mark.parametrize(
    ("apart", "written", "expected"),
    [
        ("- - x", "--x", "- - x"),
        ('f ( "a + b" , - 1 )', 'f("a+b",-1)', 'f ( "a+b" , - 1 )'),
        ('f ( "a" )', 'f("b")', None),
        ('u8 "a"', 'u8"a"', None),
        ("# define x", "#define x", None),
        (None, "x", None),
    ],
)
def test_strings_are_as_written_and_tokens_as_apart(apart: str | None, written: str, expected: str | None) -> None:
    """White space of one question, strings of the other; nothing where they tell two things."""
    assert merged(apart, written) == expected
    assert expected is None or same_tokens(expected, expected.replace(" , ", ","))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("#ifdef A\nint f(int x)\n#else\nint f()\n#endif\n{}\n", 2),
        ("#ifdef A\nint x;\n#else\nint y;\n#endif\n", 0),
        ("#ifdef A\nint f() {\n#endif\nint x; }\n", 1),
        ("#ifdef A\n}\n#endif\n", 1),
        ("#ifdef __GNUC__\nint x\n#else\nint y\n#endif\n;", 0),
        ("#if defined(__GNUC__) && !defined(__CUDACC_RTC__)\nint x\n#endif\n", 1),
        ("#ifdef __GNUC__\n#define A 1\n#endif\n#ifdef A\n#define B\n#endif\n#ifdef B\nint x\n#endif\n", 0),
        ('#pragma push_macro("A")\n#ifdef A\nint x\n#endif\n', 0),
        ("#ifdef A\n#ifdef __GNUC__\nint x\n#endif\nint y\n#endif\n", 1),
    ],
)
def test_arms_that_both_compilers_take_alike(text: str, count: int) -> None:
    """What hangs on a macro that one of the compilers has, at however many removes, is left alone."""
    tokens = tokenize(text)
    assert len([*arms_of(tokens, Dependence([tokens]), cutting=True)]) == count


def test_nothing_is_expanded_that_has_to_come_back() -> None:
    """Spaces, assertions and what no message can show come back as the author wrote them."""
    text = '#ifdef A\n#define M(e) 1\n#endif\n#define M(e) __global__ void k() { assert(e); f("@ é"); }\nM(x)\n'
    inquiry = inquiry_of(k=text)
    shown = inquiry.questions()["k"].decode()
    assert "__global__" not in shown.replace("_kept___global__", "") and "@" not in shown
    kept = "hatch_cuda_kernels_kept_"
    answer = f'{kept}__global__ void k ( ) {{ {kept}assert("x>\\"1\\"") ; f ( "hatch_cuda_kernels_x40_" ) ; }}'
    for _ in range(2):
        assert inquiry.heed(told((0, answer)))
    assert not inquiry.is_answered
    assert inquiry.heed(told((0, answer)))
    assert inquiry.is_answered
    assert ' __global__ void k ( ) { assert(x>"1") ; f ( "@" ) ; } ' in inquiry.answered()["k"].decode("latin-1")


@pytest.mark.parametrize(
    "answer",
    [
        'R"(a\\nb)"',
        "f(1 __VA_OPT__(,) 2)",
        "__attribute__((global)) void k();",
        "a ? b : c",
        "hatch_cuda_kernels_x",
    ],
)
def test_answers_that_are_not_taken(answer: str) -> None:
    """Raw strings, what the compiler did not understand, keywords that `##` made, and what no file could have."""
    text = "#define M(e) struct S { e };\nM(x)\n"
    inquiry = inquiry_of(k=text)
    assert inquiry.heed(told((0, answer))) and inquiry.heed(told((0, answer)))
    assert not inquiry.heed(told())


@pytest.mark.parametrize("second", ["int a ;", "int b ;", None])
def test_answers_have_to_stand_for_themselves(second: str | None) -> None:
    """A text that becomes another one when it stands in the place of the use is not put there."""
    inquiry = inquiry_of(k="#define M(e) int e; struct S {};\nM(x)\n")
    assert inquiry.heed(told((0, "int a;"))) and inquiry.heed(told((0, "int a;")))
    assert inquiry.heed(told(*([] if second is None else [(0, second)]))) is (second == "int a ;")


def test_a_source_that_is_not_read_to_its_end_tells_nothing() -> None:
    """An error that ends the compile leaves arms unread that it would take."""
    inquiry = inquiry_of(k="#ifdef A\nint x\n#else\nint y\n#endif\n;\n")
    assert inquiry.possible and not inquiry.heed(told((0, "")).rpartition("\n")[0])


def test_arms_that_are_not_taken_go() -> None:
    """In their place stands an error; the lines keep their numbers."""
    text = "#ifdef A\nint x\n#elif 1\nint y\n#define Z\n#endif\n;\n"
    inquiry = inquiry_of(k=text)
    for _ in range(3):
        assert inquiry.heed(told((2, "")))
    lines = inquiry.answered()["k"].decode().split("\n")
    assert lines[1] == "#error hatch_cuda_kernels_is_read_after_all"
    assert lines[0:1] + lines[2:] == text.split("\n")[0:1] + text.split("\n")[2:]


def test_brackets_that_an_arm_with_an_error_does_not_open() -> None:
    """What follows a conditional goes on from an arm that can be compiled."""
    text = "#ifdef A\n#error no\n#else\nnamespace n {\n#endif\nvoid f() {}\n}\n__global__ void k() {}\n"
    assert [passing.name for passing in pass_over(text.encode()).passed] == ["f"]


def test_pragmas_in_the_language_are_no_part_of_a_declaration() -> None:
    """`_Pragma` stands before a namespace or a function, as a directive does."""
    text = (
        '_Pragma("once")\nnamespace n {\n_Pragma("x") std::vector<int> f() { return {}; }\n}\n__global__ void k() {}\n'
    )
    found = pass_over(text.encode())
    assert [passing.name for passing in found.passed] == ["f"]
    assert found.data.count(b"_Pragma") == 2


@pytest.mark.parametrize(("value", "fine"), [("-x", False), ("x", True), ("(-x)", True), ("1", True)])
def test_signs_that_would_become_one(value: str, fine: bool) -> None:
    """The text alone does not put `-x` behind a minus sign: a preprocessor keeps the two apart."""
    text = "#define MAKE(n, e) __global__ void n(int *p) { int x = *p; p[2] = -e; p[1] = x; } void n##_h() {}\n"
    found = pass_over(f"{text}MAKE(k, {value})\n".encode())
    assert (b"MAKE(k" not in found.data) is fine
    assert b"--" not in found.data


LISTED = MAKE + '#include "ops"\n#undef MAKE\n#define MAKE(n, v) n##_of,\nenum E {\n#include "ops"\n};\n'
LIST = "#ifdef A\nMAKE(a, 1)\n#endif\nMAKE(k, 2)\n#undef MAKE\n"


def answers_of_list(*, whole: bool = True) -> list[tuple[int, str]]:
    """Two includes with two runs each, of which the first is not read."""
    second = [(11, ""), *([(10, "k_of ,")] if whole else [])]
    return [(0, ""), (11, ""), (10, "int k ;"), (1, ""), (2, ""), *second, (3, "")]


@pytest.mark.parametrize(("after", "whole", "gone"), [("", True, True), ("", False, False), ("int MAKE;", True, False)])
def test_includes_that_are_told_run_by_run(after: str, whole: bool, gone: bool) -> None:
    """Each include becomes what its file is there, unless a piece is missing or the file defines what is still used."""
    inquiry = inquiry_of(k=LISTED + after, ops=LIST)
    numbers = [n for n in range(40) if f'"hatch_cuda_kernels {n}:' in inquiry.questions()["ops"].decode()]
    text = numbers[-2]
    log = [(number + text - 10 if number >= 10 else number, shown) for number, shown in answers_of_list(whole=whole)]
    inquiry.heed(told(*log))
    inquiry.heed(told(*log))
    inquiry.heed(told((0, "int k ;"), (2, "k_of ,")))
    found = {label: data.decode() for label, data in inquiry.answered().items()}
    assert ("#include" not in found["k"]) is gone
    assert (found["ops"] == "#error hatch_cuda_kernels_is_read_after_all") is gone
    assert ("#define" not in found["k"]) is gone


ASKED = {
    "per architecture": (
        "#if __CUDA_ARCH__ >= 900\n#define LIST MAKE(k, 90)\n#else\n#define LIST MAKE(k, 80)\n#endif\nLIST\n",
        {"compute_80": ", 80;", "compute_90": ", 90;"},
    ),
    "a minus sign": (
        "#define NEG -3\n#ifdef A\n#define L\n#else\n#define L MAKE(k, -NEG)\n#endif\nL\n",
        {"compute_80": ", 3;"},
    ),
    "an arm of a class": (
        (
            "#ifdef A\nstruct S { int a[9];\n#else\nstruct S { int a[40];\n#endif\nstatic void h() {} };\n"
            "__global__ void k(int *p) { *p = sizeof(S) / 4; }\n"
        ),
        {"compute_80": ", 40;"},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("text", "values"), ASKED.values(), ids=ASKED)
def test_what_the_preprocessor_tells(tmp_path: Path, text: str, values: dict[str, str]) -> None:
    """A kernel is what the preprocessor makes of it for its architecture."""
    write(tmp_path, {"k.cu": "#include <vector>\n" + MAKE + text})
    for arch, value in values.items():
        image = compile_alone(make_job(tmp_path, arch=arch, toolkit_headers="auto"))
        assert value in image.data.decode()


STAYS = {
    "chosen by the host's compiler": f"#ifdef __GNUC__\n{MAKE}#else\n{OTHER}#endif\nMAKE(k, 1)\n",
    "chosen by what that defines": "#ifdef __GNUC__\n#define A\n#endif\n"
    f"#ifdef A\n{MAKE}#else\n{OTHER}#endif\nMAKE(k, 1)\n",
    "a raw string": f'{MAKE}#ifdef A\n#define L\n#else\n#define L MAKE(k, sizeof(R"(a)"))\n#endif\nL\n',
    "a macro of its own name": "__device__ int f(int x);\n#define f(x) f(x + 1)\n"
    f"{MAKE}#ifdef A\n#define L\n#else\n#define L MAKE(k, f(1))\n#endif\nL\n",
    "a line of several": f"{MAKE}#ifdef A\n#define L(v)\n#else\n#define L(v) MAKE(k, v + __LINE__)\n#endif\nL(\n1)\n",
    "a keyword that is made": f"{MAKE}#define SP(x) __##x##__\n#ifdef A\n#define L\n#else\n"
    "#define L SP(global) void k(int *p) { *p = 1; } static void h() { std::vector<int> v; }\n#endif\nL\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("text", STAYS.values(), ids=STAYS)
def test_what_stays_refused(tmp_path: Path, text: str) -> None:
    """What another compiler may see otherwise, or no message tells for certain."""
    write(tmp_path, {"k.cu": "#include <vector>\n" + text})
    with pytest.raises(CompilationError, match="host"):
        compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="auto"))
