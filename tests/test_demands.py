# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Functions of the host that take an object of a class that is gone: chosen for nothing, unless something else turns
into one, or the name means something else; and those that hide one of an outer namespace, whatever they take."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from hatch_cuda_kernels.hostcode import Surroundings, demanding, settle, uncovering

ASKS = """\
template <class T> T &&val() noexcept;
template <class A, class B, class = void> struct has_equal { static constexpr int value = 1; };
template <class A, class B> struct has_equal<A, B, decltype(void(val<A>() == val<B>()))> {
static constexpr int value = 40; };
struct P { int x; using type = int; };
"""
KERNEL = "__global__ void k(P p, int *x) { *x = has_equal<P, P>::value%s; }\n"
EQUAL = "bool operator==(const C &, const C &);\n"


def unsafe(text: str, more: str = "", keep_names: Collection[str] = ()) -> set[str]:
    """The names for which a file with that text is refused, once what no kernel reaches is gone."""
    files = {"k.cu": (ASKS + text + KERNEL % more).encode()}
    around = Surroundings.of(files.values())
    found = settle(files, lambda _: None, around, sliced=True, keep_names=keep_names)
    return {passing.name for _, passing in uncovering(found.files, around)}


HARMLESS = {
    "a reference": "struct C { vendor::Handle h; };\n" + EQUAL,
    "a value": "struct C { vendor::Handle h; };\nbool operator==(C, int);\n",
    "a class of a namespace": "namespace n { class C { vendor::Handle h; }; }\n"
    "bool operator==(const n::C &, int);\nbool operator==(int, ::n::C const &b);\n",
    "a class that was declared before": "struct C;\nstruct C { vendor::Handle h; };\n" + EQUAL,
    "an explicit constructor": "struct C { explicit C(P); C(const C &); C(C &&o); C(); C(int, int); };\n" + EQUAL,
    "a conversion that is asked for by name": "struct C { vendor::Handle h; };\n"
    "struct L { template <class T> __device__ explicit operator T() const; };\n__device__ L make();\n" + EQUAL,
    "nothing is made for a reference": "struct C { C(P); };\nbool operator==(C &, C &);\n",
    "a template whose argument is deduced": "template <class T> struct C { template <class U> C(U); };\n"
    "template <class T> bool operator==(const C<T> &, P);\n",
    "several arguments": "template <class T, int n> struct C { C(P); };\n"
    "template <class T, int n> bool operator==(C<T, n> const &, const C<T, n> &other);\n",
    "a constant function": "struct C { vendor::Handle h; };\n"
    "constexpr bool operator==(const C &, P) { return true; }\n",
}


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS)
def test_chosen_for_nothing(text: str) -> None:
    """No object of the class is left, and nothing turns into one."""
    assert unsafe(text) == set()


REFUSED = {
    "a constructor": "struct C { C(const P &); };\n" + EQUAL,
    "a constructor template": "struct C { template <class U> C(const U &); };\n" + EQUAL,
    "a constructor with a pack": "struct C { template <class... U> C(const U &...); };\n" + EQUAL,
    "a constructor with a default": "struct C { C(P, int = 3); };\n" + EQUAL,
    "a constructor that may be explicit": "struct C { explicit(sizeof(int) > 4) C(P); };\n" + EQUAL,
    "a constructor by a macro": "#define MAKES(X) X(P);\nstruct C { MAKES(C) };\n" + EQUAL,
    "a constructor of a base": "struct B { B(P); };\nstruct C : B { using B::B; };\n" + EQUAL,
    "a constructor of a specialisation": "template <class T> struct C { };\n"
    "template <> struct C<int> { C(P); };\nbool operator==(const C<int> &, P);\n",
    "a conversion": "struct C { vendor::Handle h; };\nstruct L { int n; operator C() const; };\n"
    "__device__ L make();\n" + EQUAL,
    "a conversion to a reference": "struct C { vendor::Handle h; };\nstruct L { int n; operator const C &() const; };\n"
    "__device__ L make();\n" + EQUAL,
    "a conversion to anything": "struct C { vendor::Handle h; };\n"
    "struct L { template <class T> __device__ operator T() const; };\n__device__ L make();\n" + EQUAL,
    "a conversion to any instance": "template <class T> struct C { vendor::Handle h; };\n"
    "struct L { template <template <class> class X, class T> __device__ operator X<T>() const; };\n"
    "__device__ L make();\nbool operator==(const C<int> &, P);\n",
    "a conversion that may be explicit": "struct C { vendor::Handle h; };\n"
    "struct L { template <class T> __device__ explicit(sizeof(T) > 4) operator T() const; };\n"
    "__device__ L make();\n" + EQUAL,
    "an alias": "namespace n { struct C { vendor::Handle h; }; }\nusing C = P;\n" + EQUAL,
    "an alias template": "template <class T> using C = T;\n"
    "template <class T> bool operator==(const C<T> &, const C<T> &);\n",
    "a parameter of the template": "struct C { vendor::Handle h; };\n"
    "struct D { vendor::Handle h; };\ntemplate <class C> D operator==(const C &, P);\n",
    "arguments that are not deduced": "template <class T> struct C { C(P); };\n"
    "template <class T> bool operator==(const C<typename T::type> &, const T &);\n",
    "arguments that are fixed": "template <class T> struct C { C(P); };\n"
    "template <class T> bool operator==(const C<int> &, const T &);\n",
    "a pointer": "struct C { vendor::Handle h; };\nbool operator==(C *, P);\n",
    "an enumeration": "enum C { c = vendor::c };\nbool operator==(C, P);\n",
    "a class of another namespace": "namespace n { struct C { vendor::Handle h; }; }\n"
    "struct D { vendor::Handle h; };\nnamespace m { D operator==(const C &, P); __device__ int f(); }\n",
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_may_be_chosen(text: str) -> None:
    """Something that is left may turn into an object of the class, or be what the name means."""
    assert any(name.startswith("operator") for name in unsafe(text))


def test_calls_that_are_asked_about() -> None:
    """A list in braces becomes an object without the name of its class, and so does what a call with explicit arguments
    is given."""
    text = "struct C { vendor::Handle h; };\nint f(int, const C &);\n__device__ char f(...);\n"
    assert unsafe(text, " + sizeof(f(1, 2))") == set()
    assert unsafe(text, " + sizeof(f(1, {2}))") == {"f"}
    assert unsafe("struct C { };\nint f(int, const C & = C());\n__device__ char f(...);\n", " + sizeof(f(1))") == {"f"}
    text = (
        "template <class T> struct C { C(int); };\ntemplate <class T> int f(const C<T> &);\n__device__ char f(...);\n"
    )
    assert unsafe(text, " + sizeof(f<int>(1))") == {"f"}


HIDES = {
    "an operator on streams": ("std::ostream &operator==(std::ostream &, int);\n", "operator=="),
    "a function that takes a container": ("void f(const std::vector<int> &);\n", "f"),
    "a function that takes what is gone": ("struct C { vendor::Handle h; };\nvoid f(const C &);\n", "f"),
    "an operator that takes what is gone": ("struct C { vendor::Handle h; };\n" + EQUAL, "operator=="),
}


@pytest.mark.parametrize("text, name", HIDES.values(), ids=HIDES)
def test_hides_one_of_an_outer_namespace(text: str, name: str) -> None:
    """Without it, a call in that namespace finds the outer one besides what the types of its arguments lead to."""
    outer = "__device__ int f(P);\n__device__ int operator==(P, int);\n"
    assert unsafe(f"{outer}namespace n {{ {text}__device__ int g(P p) {{ return f(p) + (p == 1); }} }}\n") == {name}
    assert unsafe(f"{outer}namespace n {{ {text}}}\n__device__ int g(P p) {{ return f(p) + (p == 1); }}\n") == set()


@pytest.mark.parametrize("text, name", HIDES.values(), ids=HIDES)
def test_something_in_its_place_hides_it_too(text: str, name: str) -> None:
    """A function that nothing can be given to stands there, unless something turns into anything."""
    outer = "__device__ int f(P);\n__device__ int operator==(P, int);\n"
    inner = f"namespace n {{ {text}__device__ int g(P p) {{ return f(p) + (p == 1); }} }}\n"
    assert unsafe(outer + inner, keep_names=[name]) == set()
    any_type = "struct L { template <class T> __device__ operator T() const; };\n__device__ L make();\n"
    assert unsafe(outer + any_type + inner, keep_names=[name]) == {name}
    odd = inner.replace("void f(", "void (f)(")
    assert bool(unsafe(outer + odd, keep_names=[name])) == (odd != inner)  # by an odd declaration


@pytest.mark.parametrize("text, name", HIDES.values(), ids=HIDES)
def test_what_an_author_keeps_from_nvrtc(text: str, name: str) -> None:
    """The author has decided already."""
    outer = "__device__ int f(P);\n__device__ int operator==(P, int);\n"
    kept = f"#ifndef __CUDACC_RTC__\n{text}#endif\n"
    inner = "namespace n {\n%s__device__ int g(P p) { return f(p) + (p == 1); } }\n"
    assert unsafe(outer + inner % kept) == set()
    assert unsafe(outer + inner % kept.replace("#endif", "#elif 1\nint x;\n#endif")) == set()
    assert unsafe(outer + inner % kept.replace("ifndef", "ifdef")) == {name}


def test_looked_up_by_libraries() -> None:
    """The same holds for what CUDA's libraries look up by the types of arguments."""
    text = "struct %s { vendor::Handle h; %s };\nvoid swap(const %s &, const %s &);\nusing std::swap;\n"
    for more, count in (("", 1), ("C(P);", 0)):
        files = {"k.cu": (ASKS + text % ("C", more, "C", "C") + KERNEL % "").encode()}
        around = Surroundings.of(files.values())
        found = settle(files, lambda _: None, around, sliced=True)
        assert len(demanding(found.files, around)) == count


PLUS = "char operator+(const X &, const Host &);\n"
ADD = "char add(const X &, const Host &%s);\n"
DEFAULTS = ADD % ", int, int" + ADD % ", int, int = 1" + ADD % ", int = 3, int"
CALLED = """
struct S { int z; char operator()(const X &, const Host &); __device__ long operator()(const Base &, A); };
template <class F> __device__ auto call(F f, X x) -> decltype(f(x, 1));
"""
ASKED = {
    "an operator": (PLUS, "sizeof(x + 1)"),
    "an operator by a macro": (PLUS + "#define PLUS(a, b) a + b\n", "sizeof(PLUS(x, 1))"),
    "an alignment": (PLUS, "__alignof__(x + 1)"),
    "a comma": ("char operator,(const X &, const Host &);\n", "sizeof((x, 1))"),
    "a comparison that is rewritten": ("bool operator==(const X &, const Host &);\n", "sizeof(x != 1)"),
    "a name that is pasted": (ADD % "" + "#define SUM(a, ...) a##dd(__VA_ARGS__)\n", "sizeof(SUM(a, x, 1))"),
    "default arguments of another declaration": (DEFAULTS, "sizeof(add(x, 1))"),
    "a name in parentheses": ("char (add)(const X &, const Host &);\n", "sizeof(add(x, 1))"),
    "a second name": ("char one(int), add(const X &, const Host &);\n", "sizeof(add(x, 1))"),
    "a name by a macro": ("#define plus add\nchar plus(const X &, const Host &);\n#undef plus\n", "sizeof(add(x, 1))"),
    "a call of an object": (CALLED, "sizeof(call(S(), x))"),
    "a default argument of a macro": ("#define DEF = 3\n" + ADD % ", int DEF", "sizeof(add(x, 1))"),
}
OPERANDS = """
struct Host { std::vector<int> v; Host(int) {} };
struct Base { int x; };
struct X : Base { int y; };
struct A { __host__ __device__ A(int) {} };
__device__ long operator+(const Base &, A);
__device__ long add(const Base &, A);
__device__ long operator""_km(const char *);
"""


def asked_about(host: str, asks: str, *, sliced: bool) -> bool:
    """Whether something that goes, or is only declared, is asked about in an operand that is not evaluated."""
    text = (OPERANDS + host + f"__global__ void k(X x, int *p) {{ p[0] = {asks}; }}\n").encode()
    around = Surroundings.of([text])
    found = settle({"k.cu": text}, lambda _: None, around, sliced=sliced)
    return bool(list(uncovering(found.files, around)))


@pytest.mark.parametrize(("host", "asks"), ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("sliced", [False, True])
def test_asked_about_without_a_call(host: str, asks: str, sliced: bool) -> None:
    """A conversion to a class that is gone, or only declared, decides in operands that are not evaluated as well."""
    assert asked_about(host, asks, sliced=sliced)


def test_literals_that_are_asked_about() -> None:
    """A number names the operator of its suffix."""
    assert asked_about('Host operator""_km(unsigned long long);\n', "sizeof(1_km)", sliced=True)
    assert not asked_about('Host operator""_kg(unsigned long long);\n', "sizeof(1_km)", sliced=True)
