# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What no kernel can reach goes; whatever could be found by a name that is left stays, so that no meaning changes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from jobs import compile_alone, make_job, write

from hatch_cuda_kernels.errors import CompilationError
from hatch_cuda_kernels.hostcode import Surroundings, settle
from hatch_cuda_kernels.hostcode.pasting import Pasting
from hatch_cuda_kernels.hostcode.tokens import names_member, tokenize
from hatch_cuda_kernels.nvrtc import Shown, unread_files, workspace

REFUSED = "using Handle = vendor::Handle;\n"
"""What NVRTC refuses in the first text, and nothing reaches."""
IDLE = "inline __device__ int idle(vendor::Tensor *t) { return t->size; }\n"
"""Code of the device that no kernel reaches, with a type that only the host has."""
KERNEL = "__global__ void k(int *x) { *x = %s; }\n"


def sliced(*texts: str, expressions: tuple[str, ...] = ()) -> list[str]:
    """What is left of files, with white space as single spaces."""
    files = {f"{number}.cu": text.encode() for number, text in enumerate(texts)}
    found = settle(files, lambda _: None, Surroundings.of(files.values()), expressions=expressions, sliced=True)
    return [" ".join(file.data.decode().split()) for file in found.files.values()]


GOES = {
    "class": "struct Options { int n; };",
    "class with a member that is a class that goes": "struct Inner { int n; };\nstruct Outer { Inner inner; };",
    "alias": "using json = vendor::json;",
    "constant": "constexpr int limit = 40;",
    "enumeration": "enum class Mode { fast, exact };",
    "host function": "int launch(int n);",
    "constant function": "constexpr int twice(int n) { return 2 * n; }",
    "forward declaration": "struct Options;",
    "specialisation": "struct Own { };\ntemplate <> struct vendor::traits<Own> { };",
    "specialisation for a class that is declared first": "struct Own;\nstruct Own { };\n"
    "template <> struct vendor::traits<Own> { };",
    "class with functions for both sides": "struct Span { int *p; __host__ __device__ int first() { return *p; } };",
    "definition of a member": "struct Layer { void run(int); };\nvoid Layer::run(int n) { }",
    "operators of a class": "struct Money { int n; };\nbool operator<(const Money &a, const Money &b);",
    "class that befriends another": "class Other { int n; };\nclass Options { friend class Other; };",
}


@pytest.mark.parametrize("text", GOES.values(), ids=GOES)
def test_goes(text: str) -> None:
    """What nothing mentions, and what only such things mention."""
    kernel = "__global__ void k(Point *p) { p->first(); p->both = 1; }"
    assert sliced(f"struct Point {{ int both; __device__ void first() {{ }} }};\n{text}\n{kernel}\n") == [
        f"struct Point {{ int both; __device__ void first() {{ }} }}; {kernel}"
    ]


def test_another_namespace() -> None:
    """What has the name of something that is left, in a namespace that nothing names, cannot be meant."""
    text = "namespace vendor { struct size_type { int n; }; constexpr int size = 3; }\nconstexpr int size = 40;\n"
    assert sliced(text + KERNEL % "size") == [
        f"namespace vendor {{ }} constexpr int size = 40; {KERNEL % 'size'}".strip()
    ]


def test_other_files_keep() -> None:
    """A name keeps what any file declares by it."""
    header = "struct Options { int n; };\nstruct Other { int n; };\n"
    assert sliced("__global__ void k(Options o, int *x) { *x = o.n; }\n", header)[1] == "struct Options { int n; };"


def test_instances_keep() -> None:
    """An instance that is asked for mentions what its arguments name."""
    text = "struct Options { int n; };\nstruct Other { int n; };\ntemplate <class T> __global__ void k(T *) { }\n"
    assert "Options" in sliced(text, expressions=("k<Options>",))[0]
    assert "Other" not in sliced(text, expressions=("k<Options>",))[0]


LISTS = """\
#ifdef ONE
#define FOR_ALL(X) X(0)
#else
#define FOR_ALL(X) X(0) X(1)
#endif
#define EACH(X) FOR_ALL(X) FOR_ALL(X)
template <int n> struct Solver { int run(); };
template <int n> struct Matrix { int at; };
"""
LINE = "#define LINE(M) template class %s<M>;\nEACH(LINE)\nFOR_ALL(LINE)\n#undef LINE\n"


def test_lists_of_instantiations() -> None:
    """Macros that only instantiate classes mention these classes, each by the definition right before the use."""
    text = LISTS + LINE % "Solver" + LINE % "Matrix"
    kernel = "__global__ void k(Matrix<1> m, int *x) { *x = m.at; }\n"
    left = sliced(text + kernel)[0]
    assert "struct Matrix" in left and "struct Solver" not in left
    assert left.count("(LINE)") == 3  # of the second list, with `EACH` expanded
    assert "struct Matrix" not in sliced(text + KERNEL % "1")[0]


@pytest.mark.parametrize("more", ["__device__ int M;", "int f();", "using N = Solver<0>;"])
def test_lists_of_other_things(more: str) -> None:
    """A macro that brings anything else as well is not understood, and kept."""
    text = LISTS + f"#define LINE(M) template class Solver<M>; {more}\nEACH(LINE)\n"
    assert "struct Solver" in sliced(text + KERNEL % "1")[0]


def test_parameters_of_templates_mention_nothing() -> None:
    """A parameter of a template means itself, but for a name that something qualifies."""
    text = "struct Op { int n; };\ntemplate <class Op> __device__ int f(Op o) { return Op::n(o); }\n"
    assert "struct Op" not in sliced(text)[0]
    assert "struct Op" in sliced(text.replace("Op::n", "::Op::n"))[0]


@pytest.mark.parametrize(
    ("text", "certain"),
    [
        ("p.name", True),
        ("p->name;", True),
        ("this->name()", True),
        ("f(x)->name(1)", True),
        ("v[1]->name.x", True),
        ("f(x)->name - 1", True),
        ("f(x)->name;", False),
        ("auto f(int) -> name;", False),
        ("auto f(int) -> name (*)(int);", False),
        ("auto f() const -> name {", False),
        ("auto f() QUIET -> name {", False),
        ("auto f() quiet -> name {", False),
        ("requires { { x } -> name; }", False),
        ("-> name", False),
        ("name", False),
    ],
)
def test_members_of_objects(text: str, certain: bool) -> None:
    """What stands after a dot or an arrow mentions nothing but a member, unless it may be a type after an arrow."""
    tokens = tokenize(text)
    index = [token.text for token in tokens].index("name")
    assert names_member(tokens, index, {"quiet"}) is certain


def test_functions_of_the_host_in_a_class() -> None:
    """A function of a class that stays goes with what it takes; the class keeps what decides what it is."""
    text = (
        "struct Log { int n; };\n"
        "struct S { int a; S(const S &); virtual void v(Log); void show(Log); int get() const; };\n"
        "__global__ void k(S *s) { s->a = 1; }\n"
    )
    left = sliced(text)[0]
    assert "struct Log" in left  # of a virtual function
    assert "show" in left
    left = sliced(text.replace("virtual void v(Log);", ""))[0]
    assert "Log" not in left and "show" not in left
    assert "S(const S &);" in left and "get() const;" in left


MEANS_40 = {
    "an inner constant": "constexpr int n = 1;\nnamespace app { constexpr int n = 40; namespace in {\n"
    + KERNEL % "n" + "} }\n",
    "an inline namespace": "namespace app { inline namespace v1 { constexpr int n = 40; } }\n" + KERNEL % "app::n",
    "a using-directive": "namespace deep { constexpr int n = 40; }\nnamespace app { using namespace deep;\n"
    + KERNEL % "n" + "}\n",
    "an alias of a namespace": "namespace app { namespace deep { constexpr int n = 40; } }\n"
    "namespace s = app::deep;\n" + KERNEL % "s::n",
    "a using-declaration": "constexpr int n = 1;\nnamespace deep { constexpr int n = 40; }\n"
    "namespace app { using deep::n;\n" + KERNEL % "n" + "}\n",
    "an enumerator": "constexpr int n = 1;\nnamespace app { enum Size { m, n = 40 };\n" + KERNEL % "n" + "}\n",
    "an enumerator of a base": "constexpr int n = 1;\nstruct A { enum { n = 40 }; };\nstruct B : A { };\n"
    "struct C : B { __device__ int f() { return n; } };\n" + KERNEL % "C().f()",
    "an overload": "constexpr int f(long) { return 1; }\nconstexpr int f(int) { return 40; }\n" + KERNEL % "f(2)",
    "an overload of another file's namespace": "namespace lib { struct X { }; constexpr int f(X) { return 40; } }\n"
    "constexpr int f(...) { return 1; }\n" + KERNEL % "f(lib::X())",
    "an operator": "namespace lib { struct X { }; constexpr int operator+(X, int) { return 40; } }\n"
    + KERNEL % "lib::X() + 1",
    "an operator for what a class is made of": "struct Y { int n; };\nstruct X { int n; constexpr X(Y) : n(40) { } };\n"
    "constexpr int operator*(X x, X) { return x.n; }\n" + KERNEL % "Y{1} * Y{1}",
    "a literal operator": "constexpr int operator\"\"_n(unsigned long long v) { return int(v) * 4; }\n"
    + KERNEL % "10_n",
    "a literal operator of strings":
    "constexpr int operator\"\"_n(const char *, unsigned long) { return 40; }\n" + KERNEL % '"text"_n',
    "a function that a class befriends": "struct X { friend constexpr int f(X) { return 40; } };\n"
    "constexpr int f(...) { return 1; }\n" + KERNEL % "f(X())",
    "a conversion": "struct X { constexpr operator int() const { return 40; } };\n" + KERNEL % "X()",
    "a default argument": "constexpr int n() { return 40; }\n__device__ int f(int v = n()) { return v; }\n"
    + KERNEL % "f()",
    "a default of a template": "struct Is { static constexpr int n = 40; };\n"
    "template <class T = Is> __device__ int f() { return T::n; }\n" + KERNEL % "f()",
    "a guide": "struct Tag { };\n"
    "template <class T> struct Box { static constexpr int n = 1; constexpr Box(int) { } };\n"
    "template <> struct Box<Tag> { static constexpr int n = 40; constexpr Box(int) { } };\nBox(int) -> Box<Tag>;\n"
    + KERNEL % "decltype(Box(2))::n",
    "a specialisation by an alias": "using Key = int;\ntemplate <class T> struct t { static constexpr int n = 1; };\n"
    "template <> struct t<Key> { static constexpr int n = 40; };\n" + KERNEL % "t<int>::n",
    "a specialisation for an alias": "struct Tag { };\nusing Mine = Tag;\n"
    "template <class T> struct t { static constexpr int n = 1; };\n"
    "template <> struct t<const Tag *> { static constexpr int n = 40; };\n" + KERNEL % "t<const Mine *>::n",
    "a specialisation for what a trait gives": "struct Host { using type = int; };\n"
    "template <class T> struct t { static constexpr int n = 1; };\n"
    "template <> struct t<Host::type> { static constexpr int n = 40; };\n" + KERNEL % "t<int>::n",
    "a partial specialisation by a trait": "template <bool, class T = void> struct If { };\n"
    "template <class T> struct If<true, T> { using type = T; };\ntemplate <class> struct big { enum { v = false }; };\n"
    "template <> struct big<float> { enum { v = true }; };\n"
    "template <class T, class = void> struct t { static constexpr int n = 1; };\n"
    "template <class T> struct t<T, typename If<big<T>::v>::type> { static constexpr int n = 40; };\n"
    + KERNEL % "t<float>::n",
    "a member that is asked for": "template <class T> struct V_ { using type = void; };\n"
    "template <class T, class = void> struct t { static constexpr int n = 1; };\n"
    "template <class T> struct t<T, typename V_<decltype(&T::name)>::type> { static constexpr int n = 40; };\n"
    "struct X { int name(int) const; };\n" + KERNEL % "t<X>::n",
    "a size with bases": "struct A { char pad[36]; };\nstruct B : A { int x; };\n" + KERNEL % "int(sizeof(B))",
    "a size with virtual functions": "struct Log { int n; };\nstruct B { virtual void f(Log); char pad[32]; };\n"
    + KERNEL % "int(sizeof(B))",
    "a pasted name": "#define PICK(a) a##_value\nconstexpr int my_value = 1;\n"
    "namespace app { constexpr int my_value = 40;\n" + KERNEL % "PICK(my)" + "}\n",
    "a name pasted of a number": "#define CAT(a, b) a##b\n#define PICK(a, b) CAT(a, b)\n#define TWO 2\n"
    "constexpr int v2x = 1;\nnamespace app { constexpr int v2x = 40;\n" + KERNEL % "PICK(PICK(v, TWO), x)" + "}\n",
    "a name of a macro with two meanings": "#ifdef ABSENT\n#define N one\n#else\n#define N two\n#endif\n"
    "constexpr int one = 1;\nconstexpr int two = 40;\n" + KERNEL % "N",
    "a name pasted by a macro that is given one": "#define MAKE(n) n##_c +\n#define ALL(X) X(aa) X(bb)\n"
    "constexpr int aa_c = 30, bb_c = 10;\n" + KERNEL % "ALL(MAKE) 0",
    "what a parameter of a template hides, qualified": "struct Op { static constexpr int n = 40; };\n"
    "template <class Op> __device__ int f() { return ::Op::n; }\n" + KERNEL % "f<int>()",
    "a base that a member access names": "struct A { int n; };\nstruct B : A { int n; };\n"
    "__device__ int f(B b) { b.A::n = 40; b.n = 1; return b.A::n; }\n" + KERNEL % "f(B())",
    "a friend that a class without a name defines": "struct A { int v; };\n__device__ int area(A const &);\n"
    "struct Ops { friend __device__ int area(A const &a) { return a.v * 4; } };\n" + KERNEL % "area(A{10})",
    "a friend that an instantiation defines": "template <int N> struct Slot { friend constexpr auto peek(Slot<N>); };\n"
    "template <int N, class T> struct Fill { friend constexpr auto peek(Slot<N>) { return T{}; } };\n"
    "template struct Fill<1, short>;\nconstexpr auto peek(Slot<1>);\ntemplate <class T> struct V_ { };\n"
    "template <class T, class = V_<void>> struct has { static constexpr int v = 1; };\n"
    "template <class T> struct has<T, V_<decltype(void(peek(T{})))>> { static constexpr int v = 40; };\n"
    + KERNEL % "has<Slot<1>>::v",
    "a type after an arrow": "namespace app { struct int2 { char pad[40]; };\n"
    "__device__ auto f() noexcept -> int2 { return {}; }\n" + KERNEL % "int(sizeof(f()))" + "}\n",
    "a type after a macro and an arrow": "#define quiet noexcept\nnamespace app { struct int2 { char pad[40]; };\n"
    "__device__ auto f() quiet -> int2 { return {}; }\n" + KERNEL % "int(sizeof(f()))" + "}\n",
    "a type after the arrow of a lambda": "namespace app { struct int2 { char pad[40]; };\n"
    "__device__ int f() { auto made = [](int) -> int2 { return {}; }; return int(sizeof(made(1))); }\n"
    + KERNEL % "f()" + "}\n",
    "a member of the device": "struct S { __device__ int f(); };\n__device__ int S::f() { return 40; }\n"
    + KERNEL % "S().f()",
    "a member of a template": "template <class T> struct S { __device__ int f(); };\n"
    "template <class T> __device__ int S<T>::f() { return 40; }\n" + KERNEL % "S<int>().f()",
    "a member of a class in a class": "struct A { struct B { __device__ int f(); }; };\n"
    "__device__ int A::B::f() { return 40; }\n" + KERNEL % "A::B().f()",
    "what makes, unmakes and converts": "struct X { int n; __device__ X(); __device__ ~X();\n"
    "__device__ operator int(); };\n"
    "__device__ X::X() : n(40) { }\n__device__ X::~X() { }\n__device__ X::operator int() { return n; }\n"
    + KERNEL % "X()",
    "a function of a namespace, defined outside": "namespace a { __device__ int f(); }\n"
    "__device__ int f() { return 1; }\n__device__ int a::f() { return 40; }\n" + KERNEL % "a::f()",
    "a function by its argument": "namespace lib { struct X { }; __device__ int f(X) { return 40; } }\n"
    "__device__ int f(...) { return 1; }\n" + KERNEL % "f(lib::X())",
    "a function of the device that a class befriends": "struct X { friend __device__ int f(X); };\n"
    "__device__ int f(X) { return 40; }\n__device__ int f(...) { return 1; }\n" + KERNEL % "f(X())",
    "a specialised function": "template <class T> __device__ int f() { return 1; }\n"
    "template <> __device__ int f<float>() { return 40; }\n" + KERNEL % "f<float>()",
    "a function in a table": "typedef int (*function)();\n__device__ int f() { return 40; }\n"
    "__device__ function table[] = {f};\n" + KERNEL % "table[x[0]]()",
    "a function that a macro names": "#define CALL(n) n##_of()\n__device__ int it_of() { return 40; }\n"
    + KERNEL % "CALL(it)",
    "functions of a loop": "namespace lib { struct R { int n; };\n"
    "__device__ const int *begin(const R &r) { return &r.n; }\n"
    "__device__ const int *end(const R &r) { return &r.n + 1; } }\n"
    "__device__ int f() { lib::R r{40}; for (int v : r) return v; return 1; }\n" + KERNEL % "f()",
    "loops over ranges": "namespace lib { struct R { int n; };\n"
    "constexpr const int *begin(const R &r) { return &r.n; }\n"
    "constexpr const int *end(const R &r) { return &r.n + 1; } }\n"
    "__device__ int f() { lib::R r{40}; for (int v : r) return v; return 1; }\n" + KERNEL % "f()",
}  # fmt: skip


@pytest.mark.parametrize("text", MEANS_40.values(), ids=MEANS_40)
def test_meanings_stay(tmp_path: Path, text: str) -> None:
    """A file of which NVRTC refuses the first two texts: what is found without being named is there in the third."""
    write(tmp_path, {"k.cu": f"void host() {{ throw 1; }}\n{REFUSED}{IDLE}{text}"})
    image = compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="none"))
    assert b", 40;" in image.data
    assert {"Handle", "idle"} <= {omission.name for omission in image.passed_over}


def test_a_name_over_two_lines(tmp_path: Path) -> None:
    """Where the end of a line divides a name, nothing goes for its not being mentioned."""
    text = "struct Trait { static constexpr int v = 1; };\nnamespace in {\n"
    text += "struct Tra\\\nit { static constexpr int v = 40; };\n"
    write(tmp_path, {"k.cu": f"void host() {{ throw 1; }}\n{REFUSED}{text}{KERNEL % 'Trait::v'}}}\n"})
    image = compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="none"))
    assert b", 40;" in image.data


FUNCTIONS = """\
struct Shape { int n; };
__device__ int width(Shape s) { return s.n; }
__device__ int area(Shape s) { return width(s) * width(s); }
template <class T> __device__ int depth(T t) { return area(t); }
__device__ int count;
__device__ int used() { return 3; }
"""


def test_functions_that_no_kernel_reaches(tmp_path: Path) -> None:
    """They go with what only they mention where the compiler complains of one of them, and stay for a linker."""
    write(tmp_path, {"k.cu": f"int main() {{ }}\n{IDLE}{FUNCTIONS}{KERNEL % 'used()'}"})
    image = compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="none"))
    gone = {omission.name: omission.reason for omission in image.passed_over}
    assert gone == dict.fromkeys(["idle", "Shape", "width", "area", "depth"], "no kernel reaches it") | {
        "main": "host code"
    }
    job = make_job(
        write(tmp_path, {"lib/other.cu": "__device__ int other() { return 1; }\n"}), linked=("lib/other.cu",)
    )
    with pytest.raises(CompilationError, match="name followed by"):
        compile_alone(job)


def test_functions_that_compile_stay(tmp_path: Path) -> None:
    """What the compiler does not complain of stays, whoever calls it."""
    write(tmp_path, {"k.cu": f"int main() {{ }}\n{REFUSED}{FUNCTIONS}{KERNEL % 'used()'}"})
    image = compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="none"))
    assert {omission.name for omission in image.passed_over} == {"main", "Handle"}


def test_what_a_kernel_reaches_is_complained_of(tmp_path: Path) -> None:
    """A function that a kernel calls is the author's to mend, whatever else goes."""
    called = IDLE.replace("idle", "called")
    write(tmp_path, {"k.cu": f"int main() {{ }}\n{IDLE}{called}{KERNEL % 'called(nullptr)'}"})
    with pytest.raises(CompilationError, match=r"k\.cu\(3\): error: name followed by"):
        compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="none"))


def test_files_that_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands in a file that this compile does not read is in nobody's way, though no trace tells what it reads."""
    header = '#ifdef OTHER\n#include "other.h"\n#endif\ntypedef vendor::option option_t;\nvoid load(option_t *);\n'
    other = "#line 7\ntypedef int option_t;\n__device__ option_t chosen = 1;\n}\n"  # cannot be understood to its end
    write(tmp_path, {"k.cu": f'#include "api.h"\nint main() {{ }}\n{KERNEL % "40"}', "api.h": header, "other.h": other})
    job = make_job(tmp_path, arch="compute_80", toolkit_headers="none")
    image = compile_alone(job)
    assert ("api.h", "option_t") in {(omission.source, omission.name) for omission in image.passed_over}
    assert set(image.reads.files) == {"k.cu", "api.h", "other.h"}
    with pytest.raises(CompilationError, match="expected a declaration"):
        compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="none", defines={"OTHER": True}))
    monkeypatch.setattr("hatch_cuda_kernels.reduction.unread_files", lambda *_: set())
    with pytest.raises(CompilationError, match=r"cannot be passed over safely[\s\S]*api\.h\(4\): alias option_t"):
        compile_alone(job)


@pytest.mark.parametrize("text", ["#error never\n", "#pragma nv_diag_suppress 1105\n"])
def test_only_what_is_proven_not_to_be_read(tmp_path: Path, text: str) -> None:
    """A file whose warnings are suppressed is read all the same, and no error in its place is passed over."""
    write(tmp_path, {"k.cu": f'#include "a.h"\n#include "b.h"\n{KERNEL % "2"}', "a.h": text, "b.h": "", "c.h": ""})
    job = make_job(tmp_path, arch="compute_80", toolkit_headers="none")
    with workspace() as space:
        assert unread_files(job, space, Shown({})) == set()


def test_enumerators_of_another_file(tmp_path: Path) -> None:
    """What an include in the middle of a declaration brings is not looked for: the declaration stays."""
    text = (
        'const int Sub = 1;\nnamespace in {\nenum Op {\n#define X(n, v) n = v + 36,\n#include "ops.def"\n#undef X\n};\n'
    )
    write(
        tmp_path, {"k.cu": f"void host() {{ throw 1; }}\n{REFUSED}{text}{KERNEL % 'Sub'}}}\n", "ops.def": "X(Sub, 4)\n"}
    )
    image = compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="none"))
    assert b", 40;" in image.data


LAYER = (
    "#include <vector>\nstruct Base { std::vector<int> w; };\nclass Layer : Base {\n    std::vector<float> trained;\n"
    "  public:\n    Layer(int n);\n    enum Kind { dense, sparse = 40, };\n    static constexpr int most = 3;\n};\n"
)


def test_constants_of_a_class_of_the_host(tmp_path: Path) -> None:
    """A class that only the host can have, and whose constants device code names, is left with those."""
    text = LAYER + "template <int> struct Codec { static constexpr int n = 1; };\n"
    text += "template <> struct Codec<Layer::Kind::sparse> { static constexpr int n = 37; };\n"
    text += "template <Layer::Kind kind> __global__ void k(int *x) { *x = Codec<kind>::n + Layer::most; }\n"
    write(tmp_path, {"k.cu": text + "void host(Layer l) { k<Layer::sparse><<<1, 1>>>(nullptr); }\n"})
    image = compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="auto"))
    assert b", 40;" in image.data
    assert "class definition Layer" in {f"{omission.kind} {omission.name}" for omission in image.passed_over}


@pytest.mark.parametrize(
    "more",
    [
        KERNEL % "int(sizeof(Layer))",
        "using L = Layer;\n" + KERNEL % "int(sizeof(L)) + L::dense",
        "template <class T> __device__ int f() { return sizeof(T); }\n" + KERNEL % "f<Layer>() + Layer::dense",
        "struct More : Layer { };\n" + KERNEL % "int(sizeof(More)) + Layer::dense",
        "#define SIZE(x) int(sizeof(x))\n" + KERNEL % "SIZE(Layer) + Layer::dense",
        "Layer make();\n" + KERNEL % "int(sizeof(make())) + Layer::dense",
    ],
)
def test_a_class_of_the_host_has_no_size(tmp_path: Path, more: str) -> None:
    """One that is the type of anything is not left without its members: its size would be another."""
    write(tmp_path, {"k.cu": LAYER + more})
    with pytest.raises(CompilationError):
        compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="auto"))


LONG = {
    "functions": "".join(f"int f{n}() noexcept(noexcept(f{n + 1}(T{n})));\n" for n in range(1500)) + KERNEL % "f0",
    "bases": "".join(f"struct A{n} : A{n + 1} {{ int f(A{n}); }};\n" for n in range(1500)) + KERNEL % "sizeof(A0)",
    "members": "struct A {" + "".join(f" int f{n}(B{n});" for n in range(3000)) + "};\n" + KERNEL % "sizeof(A)",
    "classes in classes": "struct A { " * 3000 + "};" * 3000,
    "templates in templates": "template <class T> struct A { " * 300 + "};" * 300,
    "pasted": "#define C(a, b) a##b\n"
    + "".join(f"struct A{n};\nC(x, y{n})\n" for n in range(1000))
    + KERNEL % "C(a, b)",
    "lists": "#define X(L) L(a) L(b)\n" + "X(L)\n" * 3000,
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_time_is_bounded(text: str) -> None:
    """Odd texts take no time that grows with the square of their length."""
    start = time.process_time()
    sliced(text)
    assert time.process_time() - start < 10


MAY_DIFFER = {
    "a constructor that is asked about": "struct Log { int n; };\nstruct S { S(Log, int); };\n"
    "template <class T, class = void> struct made { static constexpr int n = 1; };\n"
    "template <class T> struct made<T, decltype((void)T({1}, 1))> { static constexpr int n = 40; };\n"
    + KERNEL % "made<S>::n",
    "a constructor that is asked about through an alias": "struct Log { int n; };\nstruct S { S(Log, int); };\n"
    "using Mine = S;\ntemplate <class T, class = void> struct made { static constexpr int n = 1; };\n"
    "template <class T> struct made<T, decltype((void)T({1}, 1))> { static constexpr int n = 40; };\n"
    + KERNEL % "made<Mine>::n",
    "a constructor of what a member gives": "struct Log { int n; };\n"
    "struct S { S(Log, int); static __device__ S make(); };\n"
    "template <class T, class = void> struct made { static constexpr int n = 1; };\n"
    "template <class T> struct made<T, decltype((void)T({1}, 1))> { static constexpr int n = 40; };\n"
    + KERNEL % "made<decltype(S::make())>::n",
    "an overload that is asked about": "struct Log { int n; Log(int); };\nstruct Big { int a[10]; };\n"
    "__device__ char f(...);\nBig f(Log, int = 0);\n" + KERNEL % "int(sizeof(f(1)))",
    "a function that hides another": "struct Log { int n; Log(int); };\n__device__ int f(int) { return 1; }\n"
    "namespace app { int f(Log); \n" + KERNEL % "f(1)" + "}\n",
    "an operator that is asked about": "struct Log { int n; Log(int); };\nstruct Big { int a[10]; };\nenum E { e };\n"
    "__device__ char operator+(E, E);\nBig operator+(E, Log);\n" + KERNEL % "int(sizeof(e + 1))",
}  # fmt: skip


@pytest.mark.parametrize("text", MAY_DIFFER.values(), ids=MAY_DIFFER)
def test_never_another_meaning(tmp_path: Path, text: str) -> None:
    """Where a function of the host that goes could have been asked about, or hid another one, the file is refused."""
    write(tmp_path, {"k.cu": f"void host() {{ throw 1; }}\n{REFUSED}{text}"})
    try:
        image = compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="none"))
    except CompilationError:
        return
    assert b", 40;" in image.data


def test_refused_names_that_nothing_reaches(tmp_path: Path) -> None:
    """A file that compiles, though with names that host code shares, is looked at again without what is not reached."""
    text = (
        "void host() { throw 1; }\nstruct Log { Log(std::string); int n; };\n"
        "struct Tensor { Tensor(Log); int n; };\n" + KERNEL % "sizeof(decltype(1))"
    )
    write(tmp_path, {"k.cu": "#include <string>\n" + text})
    image = compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="none"))
    assert {"Log", "Tensor"} <= {omission.name for omission in image.passed_over}


def test_members_alone_make_no_object(tmp_path: Path) -> None:
    """A constructor for the host does not matter where only members of its class are named."""
    text = (
        "#include <string>\ntemplate <class T> struct Table {\n"
        "Table(std::string, int); T *all;\nstruct view { T *p; __device__ T at(int n) { return p[n]; } }; };\n"
        "using Plain = Table<int>;\n__global__ void k(Plain::view v, int *x) {\n"
        "decltype(1) n = 3; *x = v.at(n); }\n"
        "void host(Plain p) { std::string s; k<<<1, 1>>>(Plain::view{p.all}, p.all); }\n"
    )
    write(tmp_path, {"k.cu": text})
    assert compile_alone(make_job(tmp_path, arch="compute_80", toolkit_headers="auto")).kernels


PASTING = """
#define KERNEL(n) void n##_kernel()
#define CAT(a, b) a##b
#define PICK(a, b) CAT(a, b)
#define V v1
PICK(x, V) KERNEL(y) PICK(le, ft)
"""


@pytest.mark.parametrize(
    ("macro", "made"),
    [("KERNEL", {"any_kernel"}), ("CAT", {"xv1", "left"}), ("PICK", {"xv1", "left"}), ("V", set()), ("other", set())],
)
def test_pasting(macro: str, made: set[str]) -> None:
    """The names that a macro can make, by a word of its own or by what it is given."""
    around = Surroundings.of([PASTING.encode()])
    names = {"any_kernel", "kernel", "xv1", "left", "rest", "x"}
    assert Pasting([tokenize(PASTING)], around).made(names, [macro]) - {"x"} == made
