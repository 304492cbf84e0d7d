# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Of a class of the host, what device code names of it is left: as long as nothing has the class as a type."""

from __future__ import annotations

from pathlib import Path

import pytest
from jobs import compile_alone, make_job, write
from test_reach import sliced

from hatch_cuda_kernels.errors import CompilationError

NEXT = "const int w = 5;\n"
KERNEL = "__global__ void k(int *x) { *x = %s; }\n"
LEFT = {
    "constants": (
        "struct L { std::vector<int> v; static const int n = 3; int m; };",
        "L::n",
        "static const int n = 3;",
    ),
    "types": (
        "class L { struct D { int a; }; typedef short t; using u = t; std::vector<D> v; };",
        "sizeof(L::D) + sizeof(L::u)",
        "struct D { int a; }; typedef short t; using u = t;",
    ),
    "functions": (
        "struct L { static constexpr int f(int v) { return v; } std::vector<int> v; std::string s() const; };",
        "L::f(3)",
        "__device__ static constexpr int f(int v) { return v; }",
    ),
    "functions of the device": (
        "struct L { static __device__ int f() { return 1; } std::vector<int> v; };",
        "L::f()",
        "static __device__ int f() { return 1; }",
    ),
    "a type with a member of it": (
        "struct L { enum K { a, b } k; struct D { int q; } d; std::vector<int> v; };",
        "L::a + sizeof(L::D)",
        "enum K { a, b } ; struct D { int q; } ;",
    ),
    "what a member mentions": (
        "struct L { static const int n = 3; struct D { int a[n]; }; std::vector<int> v; enum { unused }; };",
        "sizeof(L::D)",
        "static const int n = 3; struct D { int a[n]; };",
    ),
    "templates": (
        "template <class T> struct L { static const int n = sizeof(T); std::vector<T> v; };",
        "L<int>::n",
        "static const int n = sizeof(T);",
    ),
    "a base that is given the class": (
        "template <class T> struct B { int n[sizeof(T)]; };\nclass L : B<L> { std::vector<int> v; enum { n }; };",
        "L::n",
        "enum { n };",
    ),
    "conditionals": (
        "struct L {\n#if A\nenum { n = 1 };\n#else\nenum { n = 2 };\n#endif\nstd::vector<int> v; };",
        "L::n",
        "#if A enum { n = 1 }; #else enum { n = 2 }; #endif",
    ),
    "names of parameters and members of its own": (
        "struct L { std::vector<int> v; int n; struct D { int n; __device__ int f(int v) { return v + n; } }; };",
        "sizeof(L::D)",
        "struct D { int n; __device__ int f(int v) { return v + n; } };",
    ),
}


@pytest.mark.parametrize(("text", "use", "left"), LEFT.values(), ids=LEFT)
def test_what_is_left(text: str, use: str, left: str) -> None:
    """Members that need no object of the class, where they are named; in the open, since its friends are gone."""
    (found,) = sliced(f"{text}\n{KERNEL % use}")
    between = found[found.index("{public:") + 8 : found.index("__global__")]
    assert " ".join(between.replace("public:", "").split()) == f"{left} }};"


def test_members_of_types_in_capitals(tmp_path: Path) -> None:
    """A type that another file declares is no macro that could bring anything, whatever it is called."""
    for kind in ("struct PLAN { std::vector<int> v; };", "using PLAN = std::vector<int>;", "typedef FILE PLAN;"):
        text = f"#pragma once\n#include <vector>\n{kind}\n"
        own = '#include "plan.h"\n' + NEXT + "struct L { PLAN plan; struct D { int a[w]; }; void run(); };\n"
        own += KERNEL % "sizeof(L::D)" + "void L::run() { k<<<1, 1>>>(nullptr); }\n"
        write(tmp_path, {"plan.h": text, "k.cu": own})
        assert set(compile_alone(make_job(tmp_path)).kernels) == {"k"}


def test_classes_that_have_one() -> None:
    """What has the class as a base or a member is no more than a shell either; another name of it is one."""
    text = (
        "struct L { std::vector<int> v; enum { n = 3 }; };\nstruct D : L { int q; static const int m = n; };\n"
        "struct H { L l; enum { z = 5 }; };\nusing A = D;\n"
    )
    (found,) = sliced(text + KERNEL % "A::m + H::z")
    assert found.startswith(
        "struct L {public: enum { n = 3 }; }; struct D : L {public: static const int m = n; }; "
        "struct H {public: enum { z = 5 }; }; using A = D;"
    )


CLASS = "struct L { std::vector<int> v; int w; static constexpr int n = 3; %s };\n"
DECLARED_ONLY = {
    "size": CLASS % "" + KERNEL % "L::n + sizeof(L)",
    "size by another name": CLASS % "" + "using A = L;\n" + KERNEL % "A::n + sizeof(A)",
    "pointers": CLASS % "" + "__device__ long f(L *a, L *b) { return a - b; }\n" + KERNEL % "L::n",
    "pointers in a type of its own": CLASS % "struct D { L *l; };" + KERNEL % "L::n + sizeof(L::D)",
    "pointers to members": CLASS % "" + "__device__ int L::*p;\n" + KERNEL % "L::n",
    "arguments of a template": "template <class T> struct U : T { };\n" + CLASS % "" + KERNEL % "U<L>::n",
    "a member of a base that is given the class": "template <class T> struct B { enum { m }; };\n"
    + CLASS.replace("L {", "L : B<L> {") % ""
    + KERNEL % "L::n + L::m",
    "a base of a base, of the host": "struct size_type { };\n"
    + CLASS.replace("L {", "L : std::vector<int> {") % ""
    + "struct D : L { enum { e = sizeof(size_type) }; };\n"
    + KERNEL % "L::n + D::e",
    "arguments of another name": "template <class T> struct U;\n"
    + CLASS % ""
    + "using A = U<L>;\n"
    + KERNEL % "A::n + L::n",
    "a class derived from it": CLASS % "" + "struct D : L { };\n" + KERNEL % "L::n + sizeof(D)",
    "a class that has it": CLASS % "" + "struct D { L l; };\n" + KERNEL % "L::n + sizeof(D)",
    "a member that goes": CLASS % "" + KERNEL % "L::n + sizeof(L::w)",
    "a member that goes in a type": NEXT + CLASS % "struct D { int a[w]; };" + KERNEL % "L::n + sizeof(L::D)",
    "a member that goes in a constant": NEXT + CLASS % "enum { e = sizeof(w) };" + KERNEL % "L::n + L::e",
    "a member that goes, out of the class": NEXT
    + CLASS % "struct D { __device__ int f(); };"
    + "__device__ int L::D::f() { return w; }\n"
    + KERNEL % "L::n",
    "a member of a base that goes": NEXT
    + CLASS % ""
    + "struct D : L { enum { e = sizeof(w) }; };\n"
    + KERNEL % "L::n + D::e",
    "a base of the host": "const int size = 5;\n"
    + CLASS.replace("L {", "L : std::vector<int> {") % "enum { e = size };"
    + KERNEL % "L::n + L::e",
    "a macro nobody knows": "const int e = 5;\n" + CLASS % "MEMBERS(e); enum { f = e };" + KERNEL % "L::n + L::f",
    "a name that a macro pastes": "#define CAT(a, b) a##b\n"
    "const char q = 1;\n" + CLASS % "double CAT(, q); enum { f = sizeof(q) };" + KERNEL % "L::n + L::f",
    "a name in parentheses": "const char q = 1;\n"
    + CLASS % "double (q); enum { f = sizeof(q) };"
    + KERNEL % "L::n + L::f",
    "a name by a macro": "const char q = 1;\n#define r q\n"
    + CLASS % "double r; enum { f = sizeof(q) };"
    + KERNEL % "L::n + L::f",
    "a friend found by an argument": CLASS % "enum K { a }; friend constexpr K operator|(K, K) { return a; }"
    + KERNEL % "L::n + sizeof(L::a | L::a)",
    "an include": CLASS % '\n#include "list.def"\n' + KERNEL % "L::n",
    "a macro that names it": "#define SIZE sizeof(L)\n" + CLASS % "" + KERNEL % "L::n + SIZE",
    "a namesake": CLASS % "" + "namespace a { struct L { int q; }; }\n" + KERNEL % "L::n + a::L{}.q",
}


@pytest.mark.parametrize("text", DECLARED_ONLY.values(), ids=DECLARED_ONLY)
def test_no_shell(text: str) -> None:
    """One that is the type of anything, or loses a name that could give way to another one, is declared alone."""
    (found,) = sliced(text)
    assert "{public:" not in found
    assert "struct L" in found


TRIES = (
    "template <class T> __device__ int f(typename %s::vec *) { return 1; }\n"
    "template <class T> __device__ int f(...) { return 2; }\n"
)


@pytest.mark.parametrize(
    ("head", "tried", "given"),
    [("template <class T> struct L", "L<T>", "int"), ("struct L", "T", "L")],
    ids=["of a template", "of an argument"],
)
def test_templates_that_try_a_member(tmp_path: Path, head: str, tried: str, given: str) -> None:
    """A class that is only declared answers a template that does without a member where there is none otherwise."""
    text = f"#include <vector>\n{head} {{ using vec = std::vector<int>; vec v; }};\n" + TRIES % tried
    write(tmp_path, {"k.cu": text + KERNEL % f"f<{given}>(nullptr)" + "void host() { k<<<1, 1>>>(nullptr); }\n"})
    with pytest.raises(CompilationError, match="class definition L"):
        compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="auto"))


@pytest.mark.slow
def test_by_the_compilers_word(tmp_path: Path) -> None:
    """A class that only the compiler tells to be the host's, by a type that is gone, is left as much."""
    text = "#include <vector>\nusing Vec = std::vector<int>;\nstruct L { Vec v; enum { n = 37 }; };\n"
    text += "struct D : L { static const int m = n + 3; };\nvoid host() { throw 1; }\n"
    write(tmp_path, {"k.cu": text + KERNEL % "D::m"})
    image = compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="auto"))
    assert b", 40;" in image.data
