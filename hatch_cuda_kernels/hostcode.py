# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Host code in a source is passed over: what NVRTC refuses and no kernel can reach is blanked out.

nvcc compiles a `.cu` twice, for the host and for the device; NVRTC takes device code only. This module makes the
second out of the first. A text keeps its shape: what goes becomes white space, line ends and preprocessor directives
stay, so that every other token keeps its line and column. A declaration that carries an execution or memory space
stays as it is, and what is not understood stays as well, for the compiler to judge.

The text of a file is cut into declarations by its brackets, for all arms of its conditionals at once. That needs no
table of types and no preprocessor, and unknown macros do it no harm. `pass_over` is a function of a file's content and
of the macros of the files around it (`Surroundings`), nothing else, in time linear in the file's length. `settle`
is the last resort for what cannot be told from the text, such as a type that only a host header declares: it goes by
the compiler's own messages.
"""

from __future__ import annotations

import bisect
import difflib
import functools
import hashlib
import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

__all__ = [
    "PASSING_VERSION",
    "Launch",
    "PassedOver",
    "Passing",
    "Settled",
    "Surroundings",
    "pass_over",
    "prelude",
    "settle",
]

PASSING_VERSION = 1
"""To be raised with every change of what `pass_over`, `settle` or `prelude` give; part of a compile's key."""

_SPACES = frozenset("__global__ __device__ __constant__ __shared__ __managed__".split())
_HOST = "__host__"
_DEVICE_MACRO = re.compile(
    r"[A-Z0-9_]*(?:DEVICE|HOSTDEV|HOST_DEV|_GLOBAL|GLOBAL_|_KERNEL|FUNC_QUALIFIER|FORCEINLINE_FUNCTION|INLINE_FUNCTION"
    r"|FN_ACC|_CCCL_API|_CUDA_HD)[A-Z0-9_]*\Z"
    r"|__hostdev__\Z|__hd__\Z|__device_builtin__\Z"
)
"""Names that libraries give to macros for device code; their headers may not be at hand."""

_ATTRIBUTES = frozenset(
    """
    alignas __align__ __attribute__ __attribute __declspec __launch_bounds__ __cluster_dims__ __block_size__
    __maxnreg__ __builtin_align__ decltype noexcept throw requires explicit _Pragma __pragma sizeof typeof
    __typeof__ asm __asm__ __asm static_assert _Static_assert if while for switch return catch
    """.split()
)
"""Words before a parenthesis that is not a list of parameters."""
_NOT_NAMES = _ATTRIBUTES | frozenset(
    """
    void bool char short int long float double signed unsigned auto const volatile static extern inline constexpr
    consteval constinit virtual friend typedef using namespace template typename class struct union enum public
    private protected operator mutable register thread_local __restrict__ restrict __forceinline__ __inline__
    __noinline__ __host__ final override default delete new this true false nullptr
    """.split()
    + list(_SPACES)
)
_AFTER_PARAMETERS = frozenset("const volatile noexcept override final try requires throw mutable & :".split())

_HOST_NAMESPACES = frozenset(
    "torch at c10 caffe2 aten pybind11 py nb nanobind boost testing benchmark grpc absl Eigen ranges filesystem".split()
)
_HOST_STD = frozenset(
    """
    string wstring vector list forward_list deque map multimap set multiset unordered_map unordered_set
    unordered_multimap unordered_multiset queue stack priority_queue ostream istream iostream ofstream ifstream fstream
    stringstream ostringstream istringstream shared_ptr unique_ptr weak_ptr thread mutex recursive_mutex lock_guard
    unique_lock scoped_lock condition_variable future promise function any runtime_error logic_error exception
    invalid_argument out_of_range exception_ptr mt19937 mt19937_64 random_device default_random_engine
    uniform_real_distribution uniform_int_distribution normal_distribution regex filesystem ios_base cout cerr clog
    endl error_code once_flag make_unique make_shared to_string getline
    """.split()
)
"""What `std` has on the host alone."""
_HOST_TYPES = re.compile(
    r"FILE|DIR|PyObject|pthread_\w+|ostream|istream|glob_t|nvtx\w+|(?:cublas|cudnn|cusparse|cusolver|cufft|nccl|nvml)[A-Z]\w*"
    r"|curandGenerator_t"
)

_MACRO_NAME = re.compile(r"_*[A-Z][A-Z0-9_]{2,}\Z")
_NO_SPACE = frozenset(
    """
    BOOL BYTE WORD DWORD HRESULT HANDLE WINAPI CALLBACK APIENTRY STDMETHODCALLTYPE TORCH_API TORCH_CUDA_CU_API
    TORCH_CUDA_CPP_API TORCH_EXTENSION_NAME CUDARTAPI CUDAAPI CUDA_CB CUBLASWINAPI PYBIND11_EXPORT CUDNNWINAPI
    JNIEXPORT JNICALL
    """.split()
)
"""Types and macros in capitals that put nothing on the device."""

_HOST_MACROS = re.compile(
    r"PYBIND11_MODULE|PYBIND11_EMBEDDED_MODULE|NB_MODULE|TORCH_LIBRARY(?:_IMPL|_FRAGMENT|_EXPAND)?|REGISTER_EXTENSION"
    r"|PyMODINIT_FUNC|TEST(?:_F|_P)?|TYPED_TEST(?:_SUITE)?|TEST_CASE|INSTANTIATE_TEST_(?:SUITE|CASE)_P|BENCHMARK\w*"
    r"|NVBENCH_BENCH\w*|STD_TORCH_LIBRARY\w*|XLA_FFI_DEFINE_HANDLER\w*|REGISTER_(?:OP|KERNEL_BUILDER)|DEFINE_\w*FLAG\w*"
    r"|DEFINE_(?:bool|int32|int64|uint64|double|string)|main|wmain|_tmain"
)
"""Macros of host libraries that stand for declarations."""

_HOST_HEADERS = re.compile(
    r"""
    (?:torch|ATen|c10|caffe2|pybind11|nanobind|THC|TH|boost|gtest|gmock|benchmark|nvbench|opencv2|opencv|absl|grpc|glog
      |gflags|fmt|spdlog|sys|netinet|arpa|linux|GL|GLFW|X11|mpi|tbb|omp|nvtx3|tensorflow|xla|jaxlib|paddle|c10d|range
      |Eigen|npp|EGL|GLES\d*)(?:/.*)?
    |(?:d3d|dxgi|D3D)\w*\.h
    |thrust/(?!(?:tuple|pair|functional)\.h|iterator/|type_traits/|detail/).*
    |cub/(?:cub\.cuh|device/.*)
    |(?:any|charconv|codecvt|condition_variable|coroutine|deque|execution|exception|experimental/.*|filesystem|format
      |forward_list|fstream|future|iomanip|ios|iosfwd|iostream|istream|list|locale|map|memory|memory_resource|mutex
      |ostream|print|queue|random|regex|set|shared_mutex|sstream|stack|stacktrace|stdexcept|stop_token|streambuf
      |string|strstream|syncstream|system_error|thread|typeindex|typeinfo|unordered_map|unordered_set|valarray
      |vector|csignal|csetjmp|clocale|cctype|cerrno|cfenv|cuchar|cwchar|cwctype|cinttypes|cstdarg|bits/.*)
    |(?:aio|alloca|conio|ctype|cpuid|direct|dirent|dlfcn|err|errno|execinfo|fcntl|fenv|getopt|glob|immintrin|intrin|inttypes
      |libgen|locale|malloc|math_constants_host|memory|mm_malloc|mman|netdb|nmmintrin|omp|poll|process|pthread|pwd
      |sched|semaphore|setjmp|signal|stdalign|stdarg|stdbool|iso646|stdnoreturn|strings|syslog|tchar|termios|time_host|unistd|wchar|Windows
      |windows|x86intrin|xmmintrin|emmintrin|zlib)\.h
    |(?:Python|numpy/.*|mex|matrix|gpu/mxGPUArray|structmember|mpi|nccl|nvml|cufile|nvToolsExt\w*|cuda_profiler_api
      |cudaProfiler|cublas\w*|cusparse\w*|cusolver\w*|cufft\w*|curand|cudnn\w*|nvjpeg\w*|npp\w*|nvrtc\w*|cupti\w*
      |cuda_(?:gl|egl|vdpau|d3d\w*)_interop|cuda(?:GL|EGL|VDPAU|D3D\w*)?|nvJitLink|cutensor\w*|nvshmemx?|hip/.*|freeglut|glut)\.h(?:pp)?
    """,
    re.VERBOSE,
)
"""Headers that only host code can use and that NVRTC cannot read."""


@functools.lru_cache(maxsize=1024)
def _misspelt(word: str) -> bool:
    """Whether a reserved word that is none looks like an execution or memory space: it is not taken for the host's."""
    if not word.startswith("__") or word in _NOT_NAMES or word in _ATTRIBUTES:
        return False
    return bool(difflib.get_close_matches(word.strip("_"), [space.strip("_") for space in _SPACES], n=1, cutoff=0.8))


# --- tokens ----------------------------------------------------------------------------------------------------------

_LEXEME = re.compile(
    r"""
    (?P<space>(?:[ \t\r\n\f\v]|\\[ \t]*\r?\n)+)
    |(?P<comment>//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z))
    |(?P<string>(?:u8|[uUL])?R"(?P<mark>[^()\\\s"]{0,16})\(.*?(?:\)(?P=mark)"|\Z)
        |(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"?|(?:u8|[uUL])?'(?:\\.|[^'\\\n])*'?)
    |(?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
    |(?P<word>[A-Za-z_$\x80-\xff][\w$\x80-\xff]*)
    |(?P<sign>\#|%:|::|->|<<<|\.\.\.|.)
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_DIRECTIVE_TEXT = re.compile(
    r"""(?:[^\n"'/\\]+|\\[ \t]*\r?\n|/\*.*?(?:\*/|\Z)|//(?:\\\r?\n|[^\n])*"""
    r"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|[^\n])*""",
    re.DOTALL,
)
_DIRECTIVE_NAME = re.compile(r"(?:#|%:)(?:[ \t\f\v]|\\\r?\n|/\*.*?\*/)*(\w*)", re.DOTALL)
_DEFINE = re.compile(r"(?:#|%:)\s*define[\s\\]+([A-Za-z_]\w*)(\([^()]*\))?(.*)", re.DOTALL)
_INCLUDE = re.compile(r'(?:#|%:)\s*(?:include|include_next|import)\s*(?:<([^>\n]+)>|"([^"\n]+)")')
_KEPT_PRAGMA = re.compile(r"(?:#|%:)\s*pragma\s+(?:once|push_macro|pop_macro|nv_diag\w*|diag_\w*|GCC|pack|hd_\w*)")
_DEAD = re.compile(r"(?:#|%:)\s*if\s+(?:0|false)\s*(?://.*|/\*.*)?\Z", re.DOTALL)

_WORD, _NUMBER, _STRING, _SIGN, _DIRECTIVE = range(5)


class _Token(NamedTuple):
    kind: int
    text: str
    start: int
    end: int


def _tokens(text: str) -> list[_Token]:
    """Words, signs, literals and directives. White space and comments are left out, and so is what `#if 0` hides."""
    found: list[_Token] = []
    position, fresh = 0, True
    dead = 0
    """How many conditionals are open since, and with, an `#if 0`; 0 outside one."""
    size = len(text)
    kinds = {"string": _STRING, "number": _NUMBER, "word": _WORD, "sign": _SIGN}
    while position < size:
        match = _LEXEME.match(text, position)
        assert match is not None
        kind = match.lastgroup
        if kind == "mark":
            kind = "string"
        end = match.end()
        if kind == "space":
            fresh = fresh or "\n" in match[0]
        elif kind == "sign" and fresh and match[0] in ("#", "%:"):
            whole = _DIRECTIVE_TEXT.match(text, position)
            assert whole is not None
            end = max(whole.end(), end)
            shown = text[position:end].rstrip("\r")
            name = _directive_name(shown)
            if dead:
                dead += (name in ("if", "ifdef", "ifndef")) - (name == "endif")
                if dead == 1 and name in ("else", "elif", "elifdef", "elifndef"):
                    dead = 0
                if not dead:
                    found.append(_Token(_DIRECTIVE, shown, position, position + len(shown)))
            else:
                found.append(_Token(_DIRECTIVE, shown, position, position + len(shown)))
                dead = int(bool(_DEAD.match(shown)))
        elif kind != "comment":
            fresh = False
            if not dead:
                found.append(_Token(kinds[kind or "sign"], match[0], position, end))
        position = end
    return found


def _directive_name(shown: str) -> str:
    match = _DIRECTIVE_NAME.match(shown)
    return match[1] if match else ""


# --- what is around a file -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Surroundings:
    """The macros of a source and of all project headers that it could include."""

    macros: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Name of a macro -> words and braces in all of its definitions."""
    namespaces: frozenset[str] = frozenset()
    """Namespaces that the files open themselves; what is in them is not taken for a library of the host."""

    @classmethod
    def of(cls, files: Iterable[bytes], defines: Mapping[str, str | bool] | None = None) -> Surroundings:
        """Gather from the texts of files, and from macros of the command line."""
        macros: dict[str, set[str]] = {}
        for name, value in (defines or {}).items():
            macros.setdefault(name, set()).update(re.findall(r"\w+|[{}]", "" if value is True else str(value)))
        namespaces: set[str] = set()
        for data in files:
            if b"define" not in data and b"namespace" not in data:
                continue
            tokens = _tokens(data.decode("latin-1"))
            for index, token in enumerate(tokens):
                if token.text == "namespace" and [t.text for t in tokens[index + 2 : index + 3]] in (["{"], ["::"]):
                    namespaces.add(tokens[index + 1].text)
                if token.kind == _DIRECTIVE and (match := _DEFINE.match(token.text)):
                    body = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', " ", match[3], flags=re.DOTALL)
                    macros.setdefault(match[1], set()).update(re.findall(r"<<<|\w+|[{}]", body))
        return cls({name: frozenset(words) for name, words in macros.items()}, frozenset(namespaces))

    @cached_property
    def digest(self) -> str:
        """SHA-256 in hex: part of the key of every compile whose files are passed over."""
        state = hashlib.sha256(b"%d\n" % PASSING_VERSION)
        for name in sorted(self.macros):
            state.update(f"{name} {' '.join(sorted(self.macros[name]))}\n".encode())
        state.update(f"namespaces {' '.join(sorted(self.namespaces))}\n".encode())
        return state.hexdigest()

    @cached_property
    def spaces(self) -> frozenset[str]:
        """Words that put a declaration on the device: the keywords, and macros that can stand for one."""
        return frozenset(self._reaching(_SPACES))

    @cached_property
    def hosts(self) -> frozenset[str]:
        """`__host__` and macros that stand for it and for nothing of the device."""
        return frozenset(self._reaching({_HOST}) - self.spaces)

    def _reaching(self, goals: Collection[str]) -> set[str]:
        users: dict[str, list[str]] = {}
        for name, words in self.macros.items():
            for word in words:
                users.setdefault(word, []).append(name)
        found = set(goals)
        pending = list(goals)
        while pending:
            for user in users.get(pending.pop(), ()):
                if user not in found:
                    found.add(user)
                    pending.append(user)
        return found

    def expanded(self, words: Iterable[str]) -> set[str]:
        """`words` with all that macros among them can bring."""
        found = set(words)
        pending = list(found)
        while pending:
            for word in self.macros.get(pending.pop(), ()):
                if word not in found:
                    found.add(word)
                    pending.append(word)
        return found


# --- declarations ----------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Declaration:
    """One declaration at namespace or class level, as a range of tokens."""

    first: int
    last: int
    kind: str
    """"function", "variable", "class", "alias", "macro", "scope", "other"."""
    name: str = ""
    name_at: int = -1
    """Index of the token that is the name, or -1."""
    parent: _Declaration | None = None
    """The class that it is a member of."""
    head_end: int = 0
    """One past the tokens of its head: of a function, all before the body."""
    body: int = -1
    """Index of the brace that opens the body, or -1."""
    erasable: int = -1
    """Index of the first token of the definition: the body, or the list of initialisers before it."""
    specifiers: int = 0
    """Index of the token before which an execution space can be put."""
    template: bool = False
    instantiation: bool = False
    ended: str = ""
    """"default", "delete" or "0" after a function's `=`."""
    device: bool = False
    words: frozenset[str] = frozenset()
    """Specifiers and other words of the head, parameters aside."""

    copies: bool = False
    """Whether it is a constructor that may be the one that copies or moves."""

    @property
    def is_vital(self) -> bool:
        """Whether it is a member that decides how the class is passed and laid out: it copies, destroys, is virtual."""
        return self.parent is not None and (
            self.copies
            or self.name == "operator="
            or self.name.startswith("~")
            or bool(self.words & {"virtual", "override", "final"})
        )


class _Parser:
    """Cuts a file into declarations. What it does not understand becomes no declaration, or one of kind "other"."""

    def __init__(self, text: str, surroundings: Surroundings) -> None:
        self.text, self.surroundings = text, surroundings
        self.tokens = _tokens(text)
        self.limit = len(self.tokens)
        self.match: dict[int, int] = {}
        self.twins: list[int] = []
        self._pair()
        known = surroundings.macros
        spaces = surroundings.spaces
        self.space_before = [0]
        """How many of the tokens before an index put something on the device."""
        for token in self.tokens:
            carries = token.kind == _WORD and (
                token.text in spaces
                or (token.text not in known and (bool(_DEVICE_MACRO.match(token.text)) or _misspelt(token.text)))
            )
            self.space_before.append(self.space_before[-1] + carries)
        self.patience = 100_000 + 50 * len(self.tokens)
        """Steps left for telling template brackets from comparisons: keeps the time linear for any text."""
        self.declarations: list[_Declaration] = []
        pending: list[tuple[int, int, _Declaration | None]] = [(0, self.limit, None)]
        while pending:
            start, end, parent = pending.pop()
            pending += self._scope(start, min(end, self.limit), parent)
        self.declarations.sort(key=lambda d: (d.first, -d.last))

    @cached_property
    def line_starts(self) -> list[int]:
        """Offsets of the lines."""
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    def line(self, token: int) -> int:
        """Line of a token, from 1."""
        return bisect.bisect_right(self.line_starts, self.tokens[token].start)

    def _pair(self) -> None:
        """Pair brackets. Each arm of a conditional starts from the state before it; what follows, from the first's."""
        stack: tuple[int, object] | None = None
        conditionals: list[list[tuple[int, object] | bool | None]] = []
        closing = {")": "(", "]": "[", "}": "{"}
        for index, token in enumerate(self.tokens):
            if token.kind == _DIRECTIVE:
                name = _directive_name(token.text)
                if name in ("if", "ifdef", "ifndef"):
                    conditionals.append([stack, None, bool(_DEAD.match(token.text)), False])
                elif name in ("else", "elif", "elifdef", "elifndef") and conditionals:
                    entry = conditionals[-1]
                    if entry[2]:
                        entry[2] = False
                    elif not entry[3]:
                        entry[1], entry[3] = stack, True
                    stack = entry[0]  # type: ignore[assignment]
                elif name == "endif" and conditionals:
                    entry = conditionals.pop()
                    if entry[3]:
                        first = entry[1]
                        if stack is not first and isinstance(stack, tuple) and stack[0] not in self.match:
                            self.twins.append(stack[0])
                        stack = first  # type: ignore[assignment]
            elif token.kind == _SIGN:
                if token.text in "([{":
                    stack = (index, stack)
                elif token.text in closing:
                    if stack is None or self.tokens[stack[0]].text != closing[token.text]:
                        self.limit = index
                        break
                    self.match.setdefault(stack[0], index)
                    stack = stack[1]  # type: ignore[assignment]
        while stack is not None:  # never closed: from the outermost of them on, nothing is understood
            self.limit = min(self.limit, stack[0])
            stack = stack[1]  # type: ignore[assignment]

    def carries_space(self, first: int, end: int) -> bool:
        """Whether one of the tokens in that range puts something on the device."""
        return self.space_before[end] > self.space_before[first]

    def _next(self, index: int) -> int:
        """The next token after `index` that is no directive."""
        index += 1
        while index < len(self.tokens) and self.tokens[index].kind == _DIRECTIVE:
            index += 1
        return index

    def _is(self, index: int, text: str) -> bool:
        return 0 <= index < self.limit and self.tokens[index].text == text

    def _angle(self, start: int, end: int) -> int | None:
        """The `>` that closes the `<` at `start`, if these are template brackets."""
        depth, index = 0, start
        while index < end:
            token = self.tokens[index]
            if token.kind == _SIGN:
                if token.text == "<":
                    depth += 1
                elif token.text == "<<<":
                    depth += 3
                elif token.text == ">":
                    depth -= 1
                    if depth <= 0:
                        return index
                elif token.text in "([{":
                    closed = self.match.get(index)
                    if closed is None or closed >= end:
                        return None
                    index = closed
                elif token.text in ";)]}":
                    return None
            index += 1
            self.patience -= 1
            if self.patience < 0:
                return None
        return None

    def _scope(
        self, start: int, end: int, parent: _Declaration | None
    ) -> Iterator[tuple[int, int, _Declaration | None]]:
        """Read the declarations in a range; yields the ranges inside them that are to be read in turn."""
        index = start
        while index < end:
            token = self.tokens[index]
            if token.kind == _DIRECTIVE or token.text == ";":
                index += 1
                continue
            if parent and token.text in ("public", "private", "protected") and self._is(self._next(index), ":"):
                index = self._next(index) + 1
                continue
            found = self._declaration(index, end, parent)
            if found is None:
                return
            declaration, inner = found
            self.declarations.append(declaration)
            yield from inner
            index = declaration.last + 1

    def _declaration(
        self, first: int, end: int, parent: _Declaration | None
    ) -> tuple[_Declaration, list[tuple[int, int, _Declaration | None]]] | None:
        tokens = self.tokens
        opened = self._opened_scope(first, end)
        if opened is not None:
            brace = opened
            closed = self.match.get(brace)
            if closed is None or closed >= end:
                return None
            scope = _Declaration(first, closed, "scope", body=brace, head_end=brace, device=True)
            return scope, [(brace + 1, closed, parent)]
        if (alone := self._macro(first, end, parent)) is not None:
            return alone, []
        made = _Declaration(first, -1, "", parent=parent, specifiers=first)
        inner: list[tuple[int, int, _Declaration | None]] = []
        words: set[str] = set()
        index, previous = first, -1
        parameters = -1
        assigned = False
        class_key = -1
        initialisers = -1
        last_word = -1
        while index < end:
            token = tokens[index]
            text = token.text
            if token.kind == _DIRECTIVE:
                index += 1
                continue
            if token.kind == _WORD:
                if not assigned and parameters < 0:
                    if text == "template":
                        following = self._next(index)
                        if self._is(following, "<"):
                            closed = self._angle(following, end)
                            if closed is None:
                                return None
                            made.template = True
                            previous, index = closed, closed + 1
                            made.specifiers = self._next(closed)
                            continue
                        made.instantiation = True
                    elif text == "requires":
                        index = made.specifiers = self._requirement(index, end)
                        continue
                    elif text == "operator":
                        at = self._operator(index, end)
                        if at is None:
                            return None
                        made.name = "operator" + "".join(t.text for t in tokens[index + 1 : at] if t.kind != _DIRECTIVE)
                        made.name_at = index
                        parameters = at
                        index = self.match[at] + 1
                        previous = index - 1
                        words.add(text)
                        continue
                    elif text in ("class", "struct", "union", "enum") and class_key < 0 and not made.kind:
                        class_key = index
                words.add(text)
                last_word = index
            elif token.kind == _STRING and previous == made.specifiers and tokens[previous].text == "extern":
                made.specifiers = self._next(index)
            elif token.kind == _SIGN:
                if text == ";":
                    made.last = index
                    break
                if text == "<" and previous >= 0 and tokens[previous].kind == _WORD and not assigned:
                    closed = self._angle(index, end)
                    if closed is not None:
                        index = closed + 1  # `previous` stays at the name before the arguments
                        continue
                elif text in "([":
                    closed = self.match.get(index)
                    if closed is None or closed >= end:
                        return None
                    if (
                        text == "("
                        and parameters < 0
                        and not assigned
                        and previous >= 0
                        and tokens[previous].kind == _WORD
                        and tokens[previous].text not in _NOT_NAMES
                        and not (class_key >= 0 and previous == class_key + 1 and self._class_goes_on(closed, end))
                    ):
                        parameters = index
                        before = previous - 1
                        tilde = before >= first and tokens[before].text == "~"
                        made.name = ("~" if tilde else "") + tokens[previous].text
                        made.name_at = previous
                    elif text == "(" and parameters < 0 and not assigned and self._is(index + 1, "*"):
                        # a pointer to a function, or something of a longer type that names such a pointer
                        simple = closed == index + 3 and tokens[index + 2].kind == _WORD
                        made.kind = "variable" if simple and not words & {"typedef", "using", "friend"} else "other"
                        made.name, made.name_at = (tokens[index + 2].text, index + 2) if simple else ("", -1)
                    if index == made.specifiers and text == "[":
                        made.specifiers = self._next(closed)
                    previous, index = closed, closed + 1
                    continue
                elif text == "=":
                    if parameters >= 0 and not assigned:
                        made.ended = tokens[min(self._next(index), len(tokens) - 1)].text
                    assigned = True
                elif text == ":" and parameters >= 0 and not assigned and initialisers < 0:
                    initialisers = index
                elif text == "{":
                    closed = self.match.get(index)
                    if closed is None or closed >= end:
                        return None
                    if class_key >= 0 and parameters < 0 and not assigned and not made.kind:
                        made.kind = "class"
                        made.name, made.name_at = self._class_name(class_key, index)
                        made.body = index
                        if tokens[class_key].text != "enum":
                            inner.append((index + 1, closed, made))
                        else:
                            made.kind = "enum"
                    elif assigned:
                        pass
                    elif parameters >= 0:
                        at_item = previous >= 0 and (tokens[previous].kind == _WORD or tokens[previous].text == ">")
                        if not (initialisers >= 0 and at_item and tokens[previous].text != "try"):
                            made.body = index
                            made.erasable = initialisers if initialisers >= 0 else index
                            made.last = closed
                            while self._is(self._next(made.last), "catch"):
                                brace = self._next(self.match.get(self._next(self._next(made.last)), end))
                                made.last = self.match.get(brace, end)
                                made.erasable = -1
                            if made.last >= end:
                                return None
                            break
                    elif previous < 0 or tokens[previous].kind not in (_WORD, _SIGN):
                        made.kind = "other"
                        made.last = closed
                        break
                    previous, index = closed, closed + 1
                    continue
            previous = index
            index += 1
        if made.last < 0:
            return None
        self._finish(made, words, parameters, assigned, last_word)
        return made, inner

    def _finish(self, made: _Declaration, words: set[str], parameters: int, assigned: bool, last_word: int) -> None:
        tokens, first = self.tokens, made.first
        head = tokens[first].text
        made.words = frozenset(words)
        if made.body >= 0 and made.kind not in ("class", "enum"):
            made.head_end = made.body
        else:
            made.head_end = made.last + 1
        if not made.kind:
            if head in ("using", "typedef") or (head == "namespace"):
                made.kind = "alias"
            elif head in ("static_assert", "asm", "__asm__", "_Static_assert"):
                made.kind = "other"
            elif parameters >= 0 and not (assigned and made.ended not in ("default", "delete", "0")):
                initial = tokens[self._next(parameters)]
                value = made.body < 0 and initial.kind in (_NUMBER, _STRING)
                made.kind = "variable" if value else "function"
            elif words & {"friend"} or (
                last_word >= 0
                and words & {"class", "struct", "union", "enum"}
                and len([t for t in tokens[first : made.last] if t.kind == _WORD]) <= 2
            ):
                made.kind = "other"  # `struct S;`, `friend class S;`
            else:
                made.kind = "variable"
        if made.kind in ("alias", "variable") and not made.name:
            made.name, made.name_at = self._declared_name(made)
        made.device = self.carries_space(first, made.head_end)
        if made.kind == "variable" and made.device:  # a guess is not enough: `buffers[MAX_DEVICES]`
            spaces = self.surroundings.spaces
            made.device = any(token.text in spaces for token in tokens[first : made.last])
        if made.parent is not None and made.kind == "function" and made.name == made.parent.name:
            inside = [token.text for token in tokens[made.name_at + 1 : made.head_end]]
            made.copies = made.name in inside and "&" in inside

    def _declared_name(self, made: _Declaration) -> tuple[str, int]:
        """Name of a variable or an alias without parentheses: the last word before `=`, `[`, `{` or the end."""
        tokens = self.tokens
        found = -1
        index = made.first
        if tokens[index].text == "using" and self._is(self._next(self._next(index)), "="):
            return tokens[self._next(index)].text, self._next(index)
        while index < made.last:
            token = tokens[index]
            if token.kind == _WORD:
                found = index
            elif token.text in ("=", "{", "["):
                break
            elif token.text in ("(",):
                index = self.match.get(index, made.last)
            elif token.text == "<":
                closed = self._angle(index, made.last)
                index = closed if closed is not None else index
            index += 1
        return (tokens[found].text, found) if found >= 0 else ("", -1)

    def _opened_scope(self, first: int, end: int) -> int | None:
        """The brace of a namespace or of `extern "C"` that starts at `first`, if one does."""
        tokens = self.tokens
        index = first
        if tokens[index].text == "inline":
            index = self._next(index)
        if index < end and tokens[index].text == "namespace":
            while index < end and tokens[index].text not in ("{", ";", "="):
                closed = self.match.get(index) if tokens[index].text in "([" else None
                index = self._next(index if closed is None else closed)
            return index if index < end and tokens[index].text == "{" else None
        if index < end and tokens[index].text == "extern" and index == first:
            language = self._next(index)
            brace = self._next(language)
            if brace < end and tokens[language].kind == _STRING and tokens[brace].text == "{":
                return brace
        return None

    def _macro(self, first: int, end: int, parent: _Declaration | None) -> _Declaration | None:
        """A use of a macro that stands for declarations of its own."""
        tokens = self.tokens
        token = tokens[first]
        if token.kind != _WORD or token.text in _NOT_NAMES:
            return None
        following = self._next(first)
        if following >= end:
            return None
        known = self.surroundings.macros.get(token.text)
        if tokens[following].text != "(":
            alone = known is not None and bool(known & {"{", "}", "namespace"})
            looks = token.text.isupper() and re.search("(?:^|_)(?:BEGIN|END|OPEN|CLOSE|NAMESPACE)(?:_|$)", token.text)
            if (alone or (looks and known is None)) and tokens[following].text not in ("::", "<"):
                return self._as_macro(first, first)
            return None
        closed = self.match.get(following)
        if closed is None or closed >= end:
            return None
        after = self._next(closed)
        if parent is not None and (token.text == parent.name or known is None):
            return None
        if after >= end:
            return self._as_macro(first, closed)
        shown = tokens[after].text
        if shown == ";":
            return self._as_macro(first, after)
        if shown == "{":
            last = self.match.get(after)
            if last is None or last >= end or parent is not None:
                return None
            made = self._as_macro(first, last)
            made.body, made.head_end = after, after
            made.device = self.carries_space(first, after)
            return made
        broken = "\n" in self.text[tokens[closed].end : tokens[after].start]
        if broken and tokens[after].kind == _WORD and shown not in _AFTER_PARAMETERS:
            return self._as_macro(first, closed)
        if tokens[after].kind == _WORD and shown not in _AFTER_PARAMETERS and known and known & {"{", "}"}:
            return self._as_macro(first, closed)
        return None

    def _as_macro(self, first: int, last: int) -> _Declaration:
        made = _Declaration(first, last, "macro", name=self.tokens[first].text, name_at=first, head_end=last + 1)
        made.device = self.carries_space(first, last + 1)
        return made

    def _requirement(self, index: int, end: int) -> int:
        """One past a requires-clause that starts at `index`."""
        index = self._next(index)
        while index < end:
            token = self.tokens[index]
            if token.text == "(":
                index = self._next(self.match.get(index, end))
            else:
                while index < end and (self.tokens[index].kind == _WORD or self.tokens[index].text == "::"):
                    word = self.tokens[index].text
                    index = self._next(index)
                    if word not in ("::", "requires") and not self._is(index, "::"):
                        break
                if self._is(index, "<"):
                    index = self._next(self._angle(index, end) or end)
                if self._is(index, "{"):
                    index = self._next(self.match.get(index, end))
            signs = [t.text for t in self.tokens[index : index + 2]]
            if signs not in (["&", "&"], ["|", "|"]):
                return index
            index += 2
        return end

    def _operator(self, index: int, end: int) -> int | None:
        """The parenthesis that opens the parameters of the operator function named at `index`."""
        at = self._next(index)
        if self._is(at, "("):
            at = self._next(self.match.get(at, end))
        while at < end and self.tokens[at].text != "(":
            if self.tokens[at].text in (";", "{", "}"):
                return None
            at = self._next(at)
        return at if at < end and at in self.match and self.match[at] < end else None

    def _class_goes_on(self, closed: int, end: int) -> bool:
        """Whether a parenthesis after a class key belongs to an attribute macro: a name or a brace follows."""
        after = self._next(closed)
        return after < end and (self.tokens[after].kind == _WORD or self.tokens[after].text == "{")

    def _class_name(self, key: int, brace: int) -> tuple[str, int]:
        index, found = self._next(key), -1
        while index < brace:
            token = self.tokens[index]
            if token.kind == _WORD and token.text not in _NOT_NAMES:
                found = index
            if token.text == ":":
                break
            if token.text in "([":
                index = self.match.get(index, brace)
            elif token.text == "<":
                index = self._angle(index, brace) or index
            index = self._next(index)
        return (self.tokens[found].text, found) if found >= 0 else ("", -1)


# --- passing over ----------------------------------------------------------------------------------------------------


class Passing(NamedTuple):
    """One thing that was passed over."""

    line: int
    kind: str
    """"function", "body", "variable", "class", "alias", "macro", "include", "instantiation"."""
    name: str
    reason: str = "host code"


class Launch(NamedTuple):
    """A kernel as some host code launches it: `scale<float, 128>` and where."""

    line: int
    kernel: str


@dataclass(frozen=True)
class PassedOver:
    """A file without its host code."""

    data: bytes = field(repr=False)
    passed: tuple[Passing, ...] = ()
    launches: tuple[Launch, ...] = ()


class _Editor:
    """Blanks ranges of tokens out of a text, and puts words in."""

    def __init__(self, parser: _Parser) -> None:
        self.parser = parser
        self.cuts: list[tuple[int, int, str]] = []

    def cut(self, first: int, last: int, instead: str = "") -> None:
        """Blank the tokens from `first` to `last`; `instead` takes the place of the first of them."""
        self.cuts.append((first, last, instead))

    def insert(self, before: int, word: str) -> None:
        """Put a word in front of a token; what follows on its line moves to the right."""
        self.cuts.append((before, before - 1, f"{word} "))

    def result(self) -> str:
        """The text after all changes."""
        parser = self.parser
        tokens, text = parser.tokens, parser.text
        pieces: list[str] = []
        position = 0
        for first, last, instead in sorted(self.cuts, key=lambda cut: (tokens[cut[0]].start, -cut[1])):
            start = tokens[first].start
            if start < position:
                continue
            pieces += [text[position:start], instead]
            position = start
            if last < first:
                continue
            at = start + min(len(instead), tokens[first].end - start)
            for index in range(first, last + 1):
                token = tokens[index]
                if token.kind == _DIRECTIVE and first != last and self._stays(token.text):
                    pieces += [_blank(text[at : token.start]), token.text]
                    at = token.end
            position = tokens[last].end
            pieces.append(_blank(text[at:position]))
        pieces.append(text[position:])
        return "".join(pieces)

    @staticmethod
    def _stays(directive: str) -> bool:
        name = _directive_name(directive)
        return name not in ("include", "include_next", "import", "pragma", "embed", "line") or bool(
            _KEPT_PRAGMA.match(directive)
        )


def _blank(text: str) -> str:
    return re.sub(r"[^\r\n\t]", " ", text)


def _host_only_type(parser: _Parser, first: int, end: int) -> bool:
    """Whether the tokens name a type that exists on the host alone."""
    tokens = parser.tokens
    for index in range(first, end):
        token = tokens[index]
        if token.kind == _WORD:
            if _HOST_TYPES.fullmatch(token.text):
                return True
            if parser._is(index + 1, "::"):
                before = tokens[index - 1].text if index else ""
                if before == "::" and index > 1 and tokens[index - 2].kind == _WORD:
                    continue
                around = parser.surroundings
                if token.text in _HOST_NAMESPACES and token.text not in around.namespaces | around.macros.keys():
                    return True
                if token.text == "std" and index + 2 < end and tokens[index + 2].text in _HOST_STD:
                    return True
    return False


def _is_const(parser: _Parser, declaration: _Declaration) -> bool:
    """Whether a variable is a constant, which device code can use as it is."""
    if declaration.words & {"constexpr", "constinit", "consteval"}:
        return True
    constant = False
    for token in parser.tokens[declaration.first : declaration.last]:
        if token.text == "const":
            constant = True
        elif token.text in ("*", "&"):
            constant = False
        elif token.text in ("=", "{", "["):
            break
    return constant


class _Pass:
    """The state of one `pass_over`."""

    def __init__(self, data: bytes, surroundings: Surroundings, keep_includes: Collection[str]) -> None:
        self.parser = _Parser(data.decode("latin-1"), surroundings)
        self.surroundings = surroundings
        self.keep_includes = keep_includes
        self.passed: list[Passing] = []

    def run(self, further: Mapping[int, str] | None = None) -> PassedOver:
        """Decide about every declaration, and make the new text.

        `further` are the first tokens of declarations and includes that have to go as well, each with the reason.
        """
        parser = self.parser
        more = further or {}
        editor = _Editor(parser)
        self.passed = []
        candidates: list[_Declaration] = []
        erased: list[_Declaration] = []
        gone: list[tuple[int, int]] = []
        inside = -1
        for declaration in parser.declarations:
            if declaration.first < inside:
                continue  # a member of a class that goes
            reason = more.get(declaration.first) if declaration.kind != "scope" else None
            verdict = "cut" if reason is not None else self._verdict(declaration)
            if verdict == "go":
                candidates.append(declaration)
            elif verdict == "cut":
                inside = declaration.last
                editor.cut(declaration.first, declaration.last)
                gone.append((declaration.first, declaration.last))
                self._note(declaration, reason=reason)
            elif verdict == "erase":
                erased.append(declaration)
            elif verdict == "mark":
                self._mark(declaration, editor)
        used = self._used(candidates, erased, gone)
        for declaration in candidates:
            if declaration.name not in used or declaration.name == "main":
                editor.cut(declaration.first, declaration.last)
                self._note(declaration)
            else:
                erased.append(declaration)
        for declaration in erased:
            self._erase(declaration, editor)
        for index, token in enumerate(parser.tokens):
            if token.kind == _DIRECTIVE and (match := _INCLUDE.match(token.text)):
                name = posixpath.normpath(match[1] or match[2])
                if index in more or self._is_host_header(name):
                    editor.cut(index, index)
                    self.passed.append(
                        Passing(parser.line(index), "include", name, more.get(index, "a header of the host"))
                    )
        return PassedOver(
            data=editor.result().encode("latin-1"),
            passed=tuple(sorted(self.passed)),
            launches=tuple(_launches(parser)),
        )

    def _note(self, declaration: _Declaration, kind: str | None = None, reason: str | None = None) -> None:
        line = self.parser.line(declaration.first)
        self.passed.append(
            Passing(line, kind or declaration.kind, declaration.name or "(unnamed)", reason or "host code")
        )

    def _is_host_header(self, name: str) -> bool:
        return name not in self.keep_includes and bool(_HOST_HEADERS.fullmatch(name))

    def _verdict(self, declaration: _Declaration) -> str:
        """One of "stay"; "go" unless the name is used; "cut"; "erase" the definition; "mark"."""
        parser = self.parser
        if declaration in self._host_classes:
            return "cut"
        if declaration.kind in ("scope", "other", "alias", "enum", "class"):
            return "stay"
        if declaration.kind == "macro":
            return "cut" if self._host_macro(declaration) else "stay"
        if declaration.device:
            return "stay"
        if declaration.kind == "function":
            return self._function_verdict(declaration)
        if declaration.parent is None and not declaration.template:
            if _host_only_type(parser, declaration.first, declaration.head_end):
                return "cut"
            return "stay" if _is_const(parser, declaration) or declaration.instantiation else "cut"
        if declaration.parent is not None and "static" in declaration.words and not _is_const(parser, declaration):
            return "cut"
        return "stay"

    def _function_verdict(self, declaration: _Declaration) -> str:
        parser = self.parser
        if declaration.instantiation:
            return "cut" if declaration.name in self._host_names - self._device_names else "stay"
        if self._has_unknown_specifier(declaration):
            return "stay"
        foreign = _host_only_type(parser, declaration.first, declaration.head_end)
        member = declaration.parent is not None
        owner = None if member else self._owner(declaration)
        if owner is not None and not foreign:
            # The space of a member stands at its declaration in the class, which may be in another file.
            here = owner in self._type_names and declaration.name not in self._device_names
            return "cut" if here else "stay"
        if foreign and not declaration.is_vital:
            return "cut"
        if declaration.ended == "default":
            return "stay"
        if declaration.ended in ("delete", "0") or declaration.words & {"constexpr", "consteval"}:
            return "mark"
        if member and declaration.words & {"virtual", "override", "final"}:
            return "mark"
        if member or declaration.name.startswith("operator"):
            return "erase"
        return "go"

    @cached_property
    def _host_classes(self) -> frozenset[_Declaration]:
        """Classes at namespace level without any device code that have a member of a type of the host."""
        parser = self.parser
        found = set()
        for member in parser.declarations:
            if member.kind == "variable" and (top := member.parent) is not None:
                while top.parent is not None:
                    top = top.parent
                if (
                    top not in found
                    and not parser.carries_space(top.first, top.last + 1)
                    and _host_only_type(parser, member.first, member.head_end)
                ):
                    found.add(top)
        return frozenset(found)

    @cached_property
    def _device_names(self) -> frozenset[str]:
        """Names of the functions that are marked as device code somewhere in the file."""
        return frozenset(d.name for d in self.parser.declarations if d.kind == "function" and d.device and d.name)

    @cached_property
    def _host_names(self) -> frozenset[str]:
        """Names of the function templates that have no execution space."""
        return frozenset(
            d.name for d in self.parser.declarations if d.kind == "function" and d.template and not d.device
        )

    @cached_property
    def _type_names(self) -> frozenset[str]:
        tokens = self.parser.tokens
        names = {d.name for d in self.parser.declarations if d.kind in ("class", "enum", "alias")}
        for index, token in enumerate(tokens[:-1]):
            if token.text in ("typename", "class", "struct"):
                names.add(tokens[index + 1].text)
        return frozenset(names)

    def _owner(self, declaration: _Declaration) -> str | None:
        """The class or namespace that the name of a function is qualified with."""
        tokens = self.parser.tokens
        index = declaration.name_at - 1
        if index > 0 and tokens[index].text == "~":
            index -= 1
        if index < 1 or tokens[index].text != "::":
            return None
        index -= 1
        depth = 0
        while index > declaration.first:
            depth += (tokens[index].text == ">") - (tokens[index].text == "<")
            if depth == 0 and tokens[index].kind == _WORD:
                break
            index -= 1
        return tokens[index].text

    def _has_unknown_specifier(self, declaration: _Declaration) -> bool:
        """Whether a word of the head may be a macro of a header that is not at hand, and so put it on the device."""
        return any(
            word not in self.surroundings.macros and word not in self._type_names
            for word in declaration.words - {declaration.name}
            if _MACRO_NAME.match(word) and word not in _NO_SPACE and not _HOST_TYPES.fullmatch(word)
        )

    def _host_macro(self, declaration: _Declaration) -> bool:
        """Whether a use of a macro stands for host code for certain."""
        if declaration.device:
            return False
        name = declaration.name
        known = self.surroundings.macros.get(name)
        if known is None:
            return bool(_HOST_MACROS.fullmatch(name)) or (name.startswith("PYBIND") and declaration.body >= 0)
        words = self.surroundings.expanded([name])
        return "<<<" in words and not words & (_SPACES | {"struct", "class", "constexpr", "typedef", "using"})

    def _used(
        self, candidates: Sequence[_Declaration], erased: Sequence[_Declaration], gone: Sequence[tuple[int, int]]
    ) -> set[str]:
        """Names that what stays can refer to."""
        tokens = self.parser.tokens
        absent = bytearray(len(tokens))
        for declaration in candidates:
            absent[declaration.first : declaration.last + 1] = b"\1" * (declaration.last + 1 - declaration.first)
        for declaration in erased:
            if declaration.erasable >= 0:
                absent[declaration.erasable : declaration.last + 1] = b"\1" * (
                    declaration.last + 1 - declaration.erasable
                )
        for first, last in gone:
            absent[first : last + 1] = b"\1" * (last + 1 - first)
        for declaration in self.parser.declarations:
            if declaration.kind == "function" and declaration.name_at >= 0:
                absent[declaration.name_at] = 1
        words: set[str] = set()
        for index, token in enumerate(tokens):
            if absent[index]:
                continue
            if token.kind == _WORD:
                if tokens[index - 1].text not in (".", "->"):
                    words.add(token.text)
            elif token.kind == _DIRECTIVE and _directive_name(token.text) not in ("define", "include", "undef"):
                words.update(re.findall(r"\w+", token.text))
        return self.surroundings.expanded(words)

    def _erase(self, declaration: _Declaration, editor: _Editor) -> None:
        """Leave the declaration, marked as device code, without its definition."""
        if declaration.erasable >= 0 and not any(
            declaration.body < twin < declaration.last for twin in self.parser.twins
        ):
            editor.cut(declaration.erasable, declaration.last, ";")
            self._note(declaration, "body")
        self._mark(declaration, editor)

    def _mark(self, declaration: _Declaration, editor: _Editor) -> None:
        """Put `__device__` in front of a function, in the place of `__host__` if that is there."""
        marked = False
        for index in range(declaration.first, declaration.head_end):
            if self.parser.tokens[index].text in self.surroundings.hosts:
                editor.cut(index, index, "" if marked else "__device__")
                marked = True
        if not marked:
            editor.insert(declaration.specifiers, "__device__")


def _launches(parser: _Parser) -> Iterator[Launch]:
    """What stands before each `<<<`."""
    tokens = parser.tokens
    opening = {closed: opened for opened, closed in parser.match.items()}
    for index, token in enumerate(tokens):
        if token.text != "<<<" or index == 0:
            continue
        start = index - 1
        if tokens[start].text == ">":
            depth = 0
            while start > 0 and index - start < 512:
                start = opening.get(start, start)
                depth += (tokens[start].text == ">") - (tokens[start].text == "<")
                if depth == 0:
                    break
                start -= 1
            start -= 1
        if start < 0 or tokens[start].kind != _WORD or tokens[start].text == "operator":
            continue
        while start > 1 and tokens[start - 1].text == "::" and tokens[start - 2].kind == _WORD:
            start -= 2
        shown = parser.text[tokens[start].start : tokens[index - 1].end]
        yield Launch(parser.line(start), re.sub(r"\s+", " ", shown))


def pass_over(
    data: bytes, surroundings: Surroundings | None = None, *, keep_includes: Collection[str] = ()
) -> PassedOver:
    """Blank the host code out of a file.

    `surroundings` has the macros of all files that go into the compile, this one among them; without it, those of
    this file alone. `keep_includes` are headers, as directives spell them, that the project itself has.
    """
    around = Surroundings.of([data]) if surroundings is None else surroundings
    return _Pass(data, around, keep_includes).run()


# --- the last resort -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settled:
    """How `settle` ended."""

    files: Mapping[str, PassedOver] = field(repr=False)
    log: str | None = None
    """The compiler's messages where they could not be settled; None where the last attempt succeeded."""
    attempts: int = 0


_MESSAGE = re.compile(
    r"^(?P<file>[^\n()]*)\((?P<line>\d+)\): (?:catastrophic )?error(?: #[\w-]+)?: (?P<text>[^\n]*)", re.MULTILINE
)
_OF_THE_HOST = re.compile(
    r'identifier "[^"]*" is undefined|name followed by "::" must be|must be a (?:class or )?namespace name'
    r"|is considered a host (?:function|variable)|is not a (?:class )?template|has no member|incomplete type"
    r'|not a type name|a host (?:function|variable)|kernel launch|reference to "?[^ ]*"? is ambiguous|is not a type'
)
"""Messages that tell of a name that only a header of the host has, or of host code. Others, a header that is not there
and a mistake of grammar among them, are the author's to mend: what was meant nobody knows."""


def settle(
    files: Mapping[str, bytes],
    attempt: Callable[[Mapping[str, PassedOver]], str | None],
    surroundings: Surroundings,
    *,
    keep_includes: Mapping[str, Collection[str]] | None = None,
    limit: int = 24,
) -> Settled:
    """Pass over the host code of files, compile, pass over what else the compiler complains of, and compile again.

    `files` are the texts as the author has them, by label; `attempt` compiles what they become and returns the log
    where that fails, with files named by their labels. A declaration with an execution or memory space is never passed
    over, nor one for which another of the same name could be taken. Ends when a compile succeeds, when nothing can be
    done about any message, or after `limit` attempts.
    """
    keep = keep_includes or {}
    passes = {label: _Amendment(_Pass(data, surroundings, keep.get(label, ()))) for label, data in files.items()}
    scopes: dict[str, set[str]] = {}
    mentioned: set[str] = set()
    for amendment in passes.values():
        mentioned |= amendment.mentioned
        for name, scope in amendment.declared:
            scopes.setdefault(name, set()).add(scope)
    shared = frozenset(name for name, found in scopes.items() if len(found) > 1 and name in mentioned)
    results = {label: amendment.run() for label, amendment in passes.items()}
    count = 0
    while True:
        log = attempt(results)
        count += 1
        if log is None or count >= limit:
            break
        complaints: dict[str, dict[int, str]] = {}
        for match in _MESSAGE.finditer(log):
            label = posixpath.normpath(match["file"].replace("\\", "/"))
            if label in passes:
                complaints.setdefault(label, {}).setdefault(int(match["line"]), match["text"])
        changed = [label for label, lines in complaints.items() if passes[label].heed(lines, shared)]
        if not changed:
            break
        for label in changed:
            results[label] = passes[label].run()
    return Settled(files=results, log=log, attempts=count)


class _Amendment:
    """A file with what is to go on the compiler's word."""

    def __init__(self, state: _Pass) -> None:
        self.state, self.parser = state, state.parser
        self.further: dict[int, str] = {}

    def run(self) -> PassedOver:
        """The file as it stands."""
        return self.state.run(self.further)

    @cached_property
    def declared(self) -> list[tuple[str, str]]:
        """Names that the file declares, with what tells their declarations apart.

        Two aliases, variables or classes of one scope are arms of a conditional; overloads and specialisations are not.
        """
        found: list[tuple[str, str]] = []
        tokens = self.parser.tokens
        around: list[tuple[int, str]] = []
        for declaration in self.parser.declarations:
            while around and around[-1][0] < declaration.first:
                around.pop()
            if declaration.kind in ("scope", "class"):
                head = [t.text for t in tokens[declaration.first : declaration.body] if t.kind == _WORD]
                shown = declaration.name or "::".join(word for word in head if word not in ("inline", "extern"))
            if declaration.name and declaration.kind in ("class", "alias", "variable", "enum", "function"):
                scope = "/".join(label for _, label in around)
                special = self.parser._is(declaration.name_at + 1, "<")
                if declaration.kind == "function" or special:
                    scope += f" {id(declaration)}"
                found.append((declaration.name, scope))
            if declaration.kind in ("scope", "class"):
                around.append((declaration.last, shown))
        return found

    @cached_property
    def mentioned(self) -> frozenset[str]:
        """Words that the device's code and everything around it has, where they do not declare themselves."""
        tokens = self.parser.tokens
        absent = bytearray(len(tokens))
        for declaration in self.parser.declarations:
            if declaration.name_at >= 0:
                absent[declaration.name_at] = 1
            if declaration.kind == "function" and not declaration.device and "constexpr" not in declaration.words:
                absent[declaration.first : declaration.last + 1] = b"\1" * (declaration.last + 1 - declaration.first)
        words: set[str] = set()
        for index, token in enumerate(tokens):
            if token.kind == _WORD and not absent[index]:
                words.add(token.text)
            elif token.kind == _DIRECTIVE:
                words.update(re.findall(r"\w+", token.text))
        return frozenset(words)

    def heed(self, complaints: Mapping[int, str], shared: Collection[str]) -> bool:
        """Let go what those lines complain of, as far as it can; whether anything new does."""
        before = len(self.further)
        for line, message in complaints.items():
            if not _OF_THE_HOST.search(message):
                continue
            declaration = self._removable(line, shared)
            if declaration is not None:
                self.further.setdefault(declaration.first, message)
        return len(self.further) > before

    def _removable(self, line: int, shared: Collection[str]) -> _Declaration | None:
        """The innermost declaration around a line that can go. `shared` are names that have several declarations."""
        parser = self.parser
        for declaration in reversed(parser.declarations):
            if declaration.kind in ("scope", "enum") or not (
                parser.line(declaration.first) <= line <= parser.line(declaration.last)
            ):
                continue
            inside = parser.carries_space(declaration.first, declaration.last + 1)
            if declaration.device or (inside and declaration.kind != "function"):
                continue
            named = declaration.kind in ("class", "alias", "variable", "function")
            if named and declaration.name in shared and not self._may_uncover(declaration, line):
                return None
            if declaration.parent is not None:
                if (declaration.kind == "function" and not declaration.is_vital) or declaration.kind in (
                    "alias",
                    "other",
                ):
                    return declaration
                continue
            if declaration.instantiation and declaration.name in self.state._device_names:
                continue
            if declaration.kind == "macro" and not self._harmless(declaration):
                continue
            return declaration
        return None

    def _may_uncover(self, declaration: _Declaration, line: int) -> bool:
        """Whether a declaration can go though others of its name would come into sight.

        Not an alias, a variable or a class. A function or a specialisation, if the compiler complains of its head:
        nothing of the device can have a type that is not there; or a function that the device cannot call anyway.
        """
        parser = self.parser
        if declaration.kind == "function" and not declaration.words & {"constexpr", "consteval"}:
            return True
        special = declaration.kind == "class" and parser._is(declaration.name_at + 1, "<")
        if declaration.kind not in ("function", "class") or not (special or declaration.kind == "function"):
            return False
        return (
            declaration.body < 0
            or line < parser.line(declaration.body)
            or (
                line == parser.line(declaration.first) == parser.line(declaration.body)
                and parser.line(declaration.last) > line
            )
        )

    def _harmless(self, declaration: _Declaration) -> bool:
        """Whether a use of a macro brings nothing of the device: it is known, and names no device function."""
        surroundings = self.state.surroundings
        if declaration.name not in surroundings.macros:
            return bool(_HOST_MACROS.fullmatch(declaration.name))
        words = surroundings.expanded([declaration.name])
        return not words & _SPACES and not words & self.state._device_names


# --- what nvcc gives unasked -----------------------------------------------------------------------------------------

_BY_PATTERN = {
    "stdint.h": r"u?int(?:_least|_fast)?(?:8|16|32|64)_t|u?int(?:max|ptr)_t|U?INT(?:8|16|32|64|PTR)_M(?:AX|IN)",
    "limits.h": r"(?:U?(?:CHAR|SHRT|INT|LONG|LLONG)|SCHAR)_(?:MIN|MAX)|CHAR_BIT",
    "float.h": r"(?:FLT|DBL)_(?:MIN|MAX|EPSILON|DIG|MANT_DIG|TRUE_MIN)",
    "math.h": r"M_(?:E|LOG2E|LOG10E|LN2|LN10|PI|PI_2|PI_4|1_PI|2_PI|2_SQRTPI|SQRT2|SQRT1_2)|HUGE_VALF?|INFINITY|NAN"
    r"|(?:a?(?:sin|cos|tan)h?|atan2|exp2?|expm1|pow|sqrt|cbrt|hypot|log(?:10|2|1p)?|floor|ceil|round|trunc|l?l?rint"
    r"|l?l?round|fabs|fmin|fmax|fmod|remainder|copysign|ldexp|frexp|erfc?|[tl]gamma|isnan|isinf|isfinite|signbit)",
    "cuda_fp16.h": r"_*half2?(?:_raw)?|__(?:float|half|low|high|h)\w*2?half2?\w*",
    "cuda_bf16.h": r"(?:__)?nv_bfloat16\w*",
    "cuda_fp8.h": r"(?:__)?nv_fp8\w*",
    "cuComplex.h": r"cu(?:Float|Double)?Complex|make_cu\w*Complex",
}
"""Header -> names that it declares and that device code may use where only a header of the host brings it in."""

_BY_STD_NAME = {
    "algorithm": "min max minmax clamp swap fill fill_n copy copy_n lower_bound upper_bound find all_of any_of none_of",
    "array": "array",
    "cmath": """
        abs fabs sqrt cbrt sin cos tan asin acos atan atan2 sinh cosh tanh exp exp2 log log2 log10 pow fma fmod fmin
        fmax floor ceil round trunc isnan isinf isfinite signbit copysign hypot erf
    """,
    "complex": "complex",
    "cstddef": "size_t ptrdiff_t nullptr_t byte",
    "cstdint": " ".join(f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64, "ptr")),
    "functional": "plus minus multiplies divides less greater equal_to logical_and logical_or bit_and bit_or bit_xor",
    "limits": "numeric_limits",
    "numeric": "accumulate iota gcd lcm inner_product",
    "optional": "optional nullopt",
    "tuple": "tuple make_tuple tie get tuple_size tuple_element tuple_cat apply",
    "type_traits": """
        is_same is_same_v is_integral is_integral_v is_floating_point is_floating_point_v is_arithmetic is_signed
        is_unsigned is_pointer is_void is_void_v is_const is_convertible is_convertible_v is_base_of enable_if
        enable_if_t conditional conditional_t decay decay_t remove_reference remove_reference_t remove_cv remove_cv_t
        remove_const remove_const_t remove_pointer remove_pointer_t integral_constant true_type false_type
        bool_constant make_unsigned make_signed make_unsigned_t make_signed_t common_type common_type_t void_t
        underlying_type aligned_storage is_trivially_copyable conjunction disjunction negation
    """,
    "utility": "pair make_pair declval exchange index_sequence make_index_sequence integer_sequence index_sequence_for",
}
_STD_HEADERS = {name: header for header, names in _BY_STD_NAME.items() for name in names.split()}

_TYPEDEFS = {"uint": "unsigned int", "ulong": "unsigned long", "ushort": "unsigned short", "ssize_t": "long"}
_MACROS = {"__asm__": "asm", "__extension__": "", "__volatile__": "volatile"}
_DRIVER_TYPES = {
    "CUdeviceptr": "typedef unsigned long long CUdeviceptr;",
    "CUtexObject": "typedef unsigned long long CUtexObject;",
    "CUsurfObject": "typedef unsigned long long CUsurfObject;",
    "CUtensorMap": "typedef struct CUtensorMap_st { alignas(64) unsigned long long opaque[16]; } CUtensorMap;",
}
"""What device code takes from `cuda.h`, which NVRTC cannot read."""
_DEPENDENT_LAUNCH = {
    "cudaGridDependencySynchronize": "griddepcontrol.wait;",
    "cudaTriggerProgrammaticLaunchCompletion": "griddepcontrol.launch_dependents;",
}
_FLOATS_FROM_HOST = re.compile(r"cublas|cudnn|cusparse|torch/|ATen/|c10/|nccl|cutensor")
"""Headers of the host that bring in those of CUDA's small floating-point types."""

_CUB_ALWAYS = ("util_type", "util_ptx", "thread/thread_operators", "thread/thread_load", "thread/thread_store")
_PLAIN_WORDS = re.compile(r"(?:(?<![\w.])std\s*::\s*)?[A-Za-z_]\w*")


def prelude(files: Iterable[PassedOver]) -> bytes:
    """What nvcc has from the host's headers unasked, and what the headers that were passed over brought for the
    device: as far as the texts use the names.

    To be read before the translation unit (`--pre-include`), so that no line moves. It includes headers by their
    names; the stand-ins of standard headers have to be on the search path. Empty where nothing is missing.
    """
    words: set[str] = set()
    std_names: set[str] = set()
    absent: set[str] = set()
    for file in files:
        absent.update(passing.name for passing in file.passed if passing.kind == "include")
        text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", file.data.decode("latin-1"), flags=re.DOTALL)
        for match in set(_PLAIN_WORDS.findall(text)):
            word = match.rsplit(":", 1)[-1].strip()
            (std_names if ":" in match else words).add(word)
    wanted: set[str] = set()
    for header, pattern in _BY_PATTERN.items():
        small_floats = header in ("cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h", "cuComplex.h")
        if small_floats and not any(_FLOATS_FROM_HOST.match(name) for name in absent):
            continue
        names = re.compile(pattern)
        if any(names.fullmatch(word) for word in words):
            wanted.add(header)
    wanted.update(_STD_HEADERS[name] for name in std_names if name in _STD_HEADERS)
    lines = [f"#include <{header}>" for header in sorted(wanted)]
    if any(name.startswith("cub/") for name in absent) and "cub" in words:
        lines += [f"#include <{header}>" for header in _cub_headers(words)]
        lines = [line if "<cub/" not in line else _if_there(line) for line in lines]
    lines += [f"typedef {meaning} {name};" for name, meaning in sorted(_TYPEDEFS.items()) if name in words]
    lines += [f"#define {name} {meaning}" for name, meaning in sorted(_MACROS.items()) if name in words]
    if absent & {"cuda.h", "cudaTypedefs.h"}:
        lines += [text for name, text in sorted(_DRIVER_TYPES.items()) if name in words]
    if words & set(_DEPENDENT_LAUNCH):
        lines += ["#if __has_include(<crt/host_defines.h>) && __has_include(<cuda_device_runtime_api.h>)"]
        lines += ["#include <cuda_device_runtime_api.h>", "#else"]
        for name, instruction in _DEPENDENT_LAUNCH.items():
            lines.append(f'static inline __device__ void {name}() {{ asm volatile("{instruction}" ::: "memory"); }}')
        lines.append("#endif")
    return "".join(f"{line}\n" for line in lines).encode()


def _if_there(line: str) -> str:
    return f"#if __has_include({line.removeprefix('#include ')})\n{line}\n#endif"


def _cub_headers(words: Collection[str]) -> list[str]:
    """The headers of CUB's device-side parts that these words can name; not each of them exists."""
    found = {f"cub/{name}.cuh" for name in _CUB_ALWAYS}
    for word in words:
        if match := re.fullmatch(r"(?:(Block|Warp)[A-Z]\w*|\w+(Iterator))", word):
            snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", word).lower()
            found.add(f"cub/{(match[1] or match[2]).lower()}/{snake}.cuh")
    return sorted(found)
