# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What nvcc has from the headers of the host unasked, as far as a file uses it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from .passing import PassedOver
from .tokens import DEFINE, DIRECTIVE, directive_name, tokenize

__all__ = ["INTEGER_POWER", "prelude"]

_BY_PATTERN = {
    "stddef.h": r"offsetof|max_align_t",
    "stdint.h": r"u?int(?:_least|_fast)?(?:8|16|32|64)_t|u?int(?:max|ptr)_t|U?INT(?:8|16|32|64|PTR)_M(?:AX|IN)",
    "limits.h": r"(?:U?(?:CHAR|SHRT|INT|LONG|LLONG)|SCHAR)_(?:MIN|MAX)|CHAR_BIT",
    "limits": r"numeric_limits",
    "time.h": r"CLOCKS_PER_SEC",
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
    "functional": "plus minus multiplies divides less greater equal_to logical_and logical_or bit_and bit_or bit_xor"
    " addressof",
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
    "concepts": "same_as derived_from convertible_to common_reference_with common_with integral signed_integral"
    " unsigned_integral floating_point assignable_from swappable swappable_with destructible constructible_from"
    " default_initializable move_constructible copy_constructible equality_comparable equality_comparable_with"
    " totally_ordered totally_ordered_with movable copyable semiregular regular invocable regular_invocable predicate"
    " relation equivalence_relation strict_weak_order",
    "utility": "pair make_pair declval exchange index_sequence make_index_sequence integer_sequence index_sequence_for",
}
_STD_HEADERS = {name: header for header, names in _BY_STD_NAME.items() for name in names.split()}

_BITS = {8: "char", 16: "short", 32: "int", 64: "long"}
_TYPEDEFS = {
    "uint": "unsigned int",
    "ulong": "unsigned long",
    "ushort": "unsigned short",
    "ssize_t": "long",
    **{f"__int{bits}_t": f"signed {kind}" for bits, kind in _BITS.items()},
    **{f"__uint{bits}_t": f"unsigned {kind}" for bits, kind in _BITS.items()},
}
_MACROS = {
    "__asm__": "asm",
    "__extension__": "",
    "__volatile__": "volatile",
    "RAND_MAX": "2147483647",
    "BUFSIZ": "8192",
    "EOF": "(-1)",
}
_DRIVER_TYPES = {
    "CUdeviceptr": "typedef unsigned long long CUdeviceptr;",
    "CUtexObject": "typedef unsigned long long CUtexObject;",
    "CUsurfObject": "typedef unsigned long long CUsurfObject;",
    "CUdevice": "typedef int CUdevice;",
    **{
        f"CU{name}": f"typedef struct CU{tag}_st *CU{name};"
        for name, tag in {
            "context": "ctx",
            "module": "mod",
            "function": "func",
            "library": "lib",
            "kernel": "kern",
            "array": "array",
            "mipmappedArray": "mipmappedArray",
            "event": "event",
            "stream": "stream",
            "graph": "graph",
            "graphNode": "graphNode",
            "graphExec": "graphExec",
            "memoryPool": "memPoolHandle",
        }.items()
    },
    "CUtensorMap": "typedef struct alignas(__CUDACC_VER_MAJOR__ < 13 ? 64 : 128) CUtensorMap_st {"
    " unsigned long long opaque[16]; } CUtensorMap;",
}
"""What `cuda.h` has that a class or a parameter of the files may be declared with; NVRTC cannot read it."""
_FFT_TYPES = {
    "cufftReal": "float",
    "cufftDoubleReal": "double",
    "cufftComplex": "cuComplex",
    "cufftDoubleComplex": "cuDoubleComplex",
}
"""The numbers of `cufft.h`, which NVRTC cannot read."""
_CUDA_VERSION = "#define CUDA_VERSION (__CUDACC_VER_MAJOR__ * 1000 + __CUDACC_VER_MINOR__ * 10)"
_DEPENDENT_LAUNCH = {
    "cudaGridDependencySynchronize": "griddepcontrol.wait;",
    "cudaTriggerProgrammaticLaunchCompletion": "griddepcontrol.launch_dependents;",
}
_ASSERT_FAIL = (
    'extern "C" __host__ __device__ void __assert_fail(const char *, const char *, unsigned, const char *) noexcept;'
)
"""The C library's, which the compiler takes for its own where it is called."""
INTEGER_POWER = "hatch_cuda_kernels: integer power"
"""What the compiler says of each `pow(x, n)` that is a multiplication with NVRTC, and with nvcc the host library's
template, which computes in double."""
_POWERS = [
    f'__device__ __attribute__((deprecated("{INTEGER_POWER}"))) {kind} pow({kind}, int);'
    for kind in ("float", "double")
]
_FLOATS_FROM_HOST = re.compile(r"cublas|cudnn|cusparse|torch/|ATen/|c10/|nccl|cutensor")
"""Headers of the host that bring in those of CUDA's small floating-point types."""

_CUB_BY_NAME = {
    "block/block_load": "LoadDirect\\w*|BLOCK_LOAD_\\w+|InternalLoadDirect\\w*",
    "block/block_store": "StoreDirect\\w*|BLOCK_STORE_\\w+",
    "block/block_reduce": "BLOCK_REDUCE_\\w+",
    "block/block_scan": "BLOCK_SCAN_\\w+",
    "block/block_histogram": "BLOCK_HISTO_\\w+",
    "block/block_radix_rank": "RADIX_RANK_\\w+|RadixRank\\w*|BlockRadixRank\\w+",
    "thread/thread_reduce": "ThreadReduce",
    "thread/thread_scan": "Thread(?:In|Ex)clusiveScan",
    "thread/thread_search": "MergePathSearch|LowerBound|UpperBound|StaticUpperBound",
    "thread/thread_sort": "StableOddEvenSort",
}
"""Headers of CUB -> what they declare besides a class that they are named after."""
_CUB_ALWAYS = ("util_type", "util_ptx", "thread/thread_operators", "thread/thread_load", "thread/thread_store")
_CONFIGURES = re.compile(r"__CUDA_NO_\w+|_*(?:CUB|THRUST|CCCL|LIBCUDACXX|CUDA_STD)_\w+|NDEBUG")
"""Macros that the toolkit's headers ask for, and that a file defines before it includes them."""
_BEFORE_OTHERS = {
    '"cutlass/floating_point_nvrtc.h"': ("stdint.h", "cutlass/platform/platform.h", "cutlass/floating_point_nvrtc.h"),
}
"""Headers that declare, under NVRTC, what libcu++ has as macros where it is read first (`FP_NAN`), as files include
them -> what is read before all else."""
_DEFINES_ONE = re.compile(r"(?:#|%:)\s*define[\s\\]+(\w+)")
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
    files = list(files)
    for file in files:
        absent.update(passing.name for passing in file.passed if passing.kind == "include")
        text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", file.data.decode("latin-1"), flags=re.DOTALL)
        for match in set(_PLAIN_WORDS.findall(text)):
            word = match.rsplit(":", 1)[-1].strip()
            (std_names if ":" in match else words).add(word)
    asked = _asked([file.data.decode("latin-1") for file in files])
    wanted: set[str] = set()
    for header, pattern in _BY_PATTERN.items():
        small_floats = header in ("cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h", "cuComplex.h")
        if small_floats and not any(_FLOATS_FROM_HOST.match(name) for name in absent):
            continue
        names = re.compile(pattern)
        used = {word for word in words if names.fullmatch(word)}
        if used - asked and not (header == "float.h" and used & asked):
            wanted.add(header)
    wanted.update(_STD_HEADERS[name] for name in std_names if name in _STD_HEADERS)
    early = [
        f"#include <{header}>"
        for last, headers in _BEFORE_OTHERS.items()
        if any(last.encode() in file.data for file in files)
        for header in headers
    ]
    lines = [f"#include <{header}>" for header in _before_a_namespace(files)]
    if any(_ASKS_FOR_VALUES.search(file.data) for file in files):
        lines += _VALUES
    lines += [f"typedef {meaning} {name};" for name, meaning in sorted(_TYPEDEFS.items()) if name in words]
    lines += [f"#define {name} {meaning}" for name, meaning in sorted(_MACROS.items()) if name in words]
    lines += [_ASSERT_FAIL] if "__assert_fail" in words else []
    lines += [f"#include <{header}>" for header in sorted(wanted)]
    if any(name.startswith("cub/") for name in absent) and "cub" in words:
        lines += [f"#include <{header}>" for header in _cub_headers(words)]
        lines = [line if "<cub/" not in line else _if_there(line) for line in lines]
    if absent & {"cuda.h", "cudaTypedefs.h"}:
        if "CUDA_VERSION" in words:
            lines += ["#ifndef CUDA_VERSION", _CUDA_VERSION, "#endif"]
        lines += [text for name, text in sorted(_DRIVER_TYPES.items()) if name in words]
    if absent & {"cufft.h", "cufftXt.h", "cufftw.h"} and words & _FFT_TYPES.keys():
        lines += ["#include <cuComplex.h>"]
        lines += [f"typedef {meaning} {name};" for name, meaning in _FFT_TYPES.items() if name in words]
    lines += _POWERS if "pow" in words | std_names else []
    if words & set(_DEPENDENT_LAUNCH):
        lines += ["#if __has_include(<crt/host_defines.h>) && __has_include(<cuda_device_runtime_api.h>)"]
        lines += [f"#define {_INTERNAL}", "#include <cuda_device_runtime_api.h>", f"#undef {_INTERNAL}", "#else"]
        for name, instruction in _DEPENDENT_LAUNCH.items():
            lines.append(f'static inline __device__ void {name}() {{ asm volatile("{instruction}" ::: "memory"); }}')
        lines.append("#endif")
    if any("#include" in line for line in lines):
        lines = [*_configuration(file.data.decode("latin-1") for file in files), *lines]
    return "".join(f"{line}\n" for line in [*early, *lines]).encode("latin-1")


_INTERNAL = "__CUDA_INCLUDE_COMPILER_INTERNAL_HEADERS__"
"""What `cuda_runtime.h` defines around such headers, which warn otherwise."""


def _before_a_namespace(files: Sequence[PassedOver]) -> list[str]:
    """Headers of libcu++ that files include where `cuda` could mean a namespace of theirs: `using namespace at;`, where
    there is an `at::cuda`. With nvcc these are the host's, which name no such namespace."""
    texts = [file.data for file in files]
    if not (any(map(_OPENS_CUDA.search, texts)) and any(map(_USES_A_NAMESPACE.search, texts))):
        return []
    return sorted({match[1].decode() for text in texts for match in _INCLUDES_STANDARD.finditer(text)})


_ASKS_FOR_VALUES = re.compile(rb"^[ \t]*(?:#|%:)[ \t]*(?:el)?if(?:\\\r?\n|[^\n])*?\b(?:INFINITY|NAN)\b", re.MULTILINE)
_VALUES = (
    *("#if __has_include(<cuda/std/cmath>)", "#include <cuda/std/cmath>", "#endif"),
    *("#ifndef INFINITY", "#define INFINITY __int_as_float(0x7f800000)", "#endif"),
    *("#ifndef NAN", "#define NAN __int_as_float(0x7fffffff)", "#endif"),
)
"""Where a conditional asks for them: macros, which nvcc has unasked. Where none does, constants do (see standins)."""
_OPENS_CUDA = re.compile(rb"\bnamespace\s+(?:\w+\s*::\s*)*cuda\b\s*(?:::\s*\w+\s*)*\{")
_USES_A_NAMESPACE = re.compile(rb"\busing\s+namespace\s+(?!std\b|cuda\b)")
_INCLUDES_STANDARD = re.compile(
    rb"^[ \t]*#[ \t]*include[ \t]*<(algorithm|array|atomic|barrier|bit|bitset|chrono|cmath|complex|concepts|cstddef"
    rb"|cstdint|expected|functional|iterator|latch|limits|numeric|optional|ratio|semaphore|span|tuple|type_traits"
    rb"|utility|variant)>",
    re.MULTILINE,
)
"""Those that every compiler of the time has; a file that includes one behind a condition may not mean it."""
_NOT_UNASKED = re.compile(f"{_BY_PATTERN['float.h']}|U?INT\\w+_M(?:AX|IN)")
"""Macros that nvcc does not have without an include: where a file has a definition of its own, it is the file's."""


def _asked(texts: Sequence[str]) -> set[str]:
    """Those of these macros that files define, or ask for in a conditional."""
    found: set[str] = set()
    for text in texts if any(map(_NOT_UNASKED.search, texts)) else ():
        for token in tokenize(text):
            name = directive_name(token.text) if token.kind == DIRECTIVE else None
            if name in ("if", "ifdef", "ifndef", "elif"):
                found.update(re.findall(r"\w+", token.text))
            elif name == "define" and (match := DEFINE.match(token.text)):
                found.add(match[1])
    return {name for name in found if _NOT_UNASKED.fullmatch(name)}


def _configuration(texts: Iterable[str]) -> list[str]:
    """What files define for the headers that they include after it, which are read before the files here.

    Whatever is asked for by `#ifndef` may be an include guard, and stays where it is.
    """
    found: dict[str, str] = {}
    asked: set[str] = set()
    read = list(texts)
    names = {match[1] for text in read for match in _DEFINES_ONE.finditer(text) if _CONFIGURES.fullmatch(match[1])}
    for text in read:
        if not any(name in text for name in names):
            continue
        defined: dict[str, str] = {}
        depth, includes = 0, 0
        for token in tokenize(text):
            name = directive_name(token.text) if token.kind == DIRECTIVE else None
            depth += (name in ("if", "ifdef", "ifndef")) - (name == "endif")
            if name in ("if", "ifndef", "elif"):
                asked.update(re.findall(r"\w+", token.text))
            elif name == "include":
                found.update(defined)
                includes += 1
            elif name == "define" and depth <= 1:
                match = DEFINE.match(token.text)
                if match and match[2] is None and _CONFIGURES.fullmatch(match[1]):
                    defined[match[1]] = f"#define {match[1]}{' '.join(['', *match[3].split()])}"
        if not includes:
            found.update(defined)
    return [line for name, line in found.items() if name not in asked]


def _if_there(line: str) -> str:
    return f"#if __has_include({line.removeprefix('#include ')})\n{line}\n#endif"


def _cub_headers(words: Collection[str]) -> list[str]:
    """The headers of CUB's device-side parts that these words can name; not each of them exists."""
    found = {f"cub/{name}.cuh" for name in _CUB_ALWAYS}
    for header, names in _CUB_BY_NAME.items():
        if any(re.fullmatch(names, word) for word in words):
            found.add(f"cub/{header}.cuh")
    for word in words:
        if match := re.fullmatch(r"(?:(Block|Warp|Grid)[A-Z]\w*|\w+(Iterator))", word):
            snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", word).lower()
            found.add(f"cub/{(match[1] or match[2]).lower()}/{snake}.cuh")
    return sorted(found)
