# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for the C++ standard headers that device code includes and that neither NVRTC nor its headers have.

They come last on the search path, so that any header of that name in the project or the toolkit wins. Most of them
bring names of libcu++ (`cuda::std`) into `std`, one by one: a using-directive would make `sqrt` ambiguous after
`using namespace std`, since NVRTC declares the mathematical functions itself. Every name listed here is in libcu++
of CUDA 12.9 and all newer ones. What NVRTC declares in `std` on its own (`move`, `forward`, `initializer_list`) and
what libcu++ does (`tuple_size`, `tuple_element`) is left to them. `version` and `new` must have no stand-in: libcu++
looks for them to tell NVRTC from a hosted compiler.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

__all__ = ["AS_NVCC", "FIRST", "HIDDEN", "declares_others", "standins", "standins_digest", "write_standins"]

_UNARY_TRAITS = """
    is_abstract is_aggregate is_arithmetic is_array is_bounded_array is_class is_compound is_const
    is_copy_assignable is_copy_constructible is_default_constructible is_destructible is_empty is_enum is_final
    is_floating_point is_function is_fundamental is_integral is_literal_type is_lvalue_reference
    is_member_function_pointer is_member_object_pointer is_member_pointer is_move_assignable is_move_constructible
    is_nothrow_copy_assignable is_nothrow_copy_constructible is_nothrow_default_constructible
    is_nothrow_destructible is_nothrow_move_assignable is_nothrow_move_constructible is_nothrow_swappable
    is_null_pointer is_object is_pod is_pointer is_polymorphic is_reference is_rvalue_reference is_scalar
    is_scoped_enum is_signed is_standard_layout is_swappable is_trivial is_trivially_copy_assignable
    is_trivially_copy_constructible is_trivially_copyable is_trivially_default_constructible
    is_trivially_destructible is_trivially_move_assignable is_trivially_move_constructible is_unbounded_array
    is_union is_unsigned is_void is_volatile has_unique_object_representations has_virtual_destructor
    is_assignable is_base_of is_constructible is_convertible is_invocable is_invocable_r is_nothrow_assignable
    is_nothrow_constructible is_nothrow_convertible is_nothrow_invocable is_nothrow_invocable_r is_same
    is_swappable_with is_trivially_assignable is_trivially_constructible alignment_of conjunction disjunction
    extent negation rank
""".split()
"""Traits with a `_v`."""

_TRANSFORMATIONS = """
    add_const add_cv add_lvalue_reference add_pointer add_rvalue_reference add_volatile aligned_union
    common_reference common_type conditional decay enable_if invoke_result make_signed make_unsigned
    remove_all_extents remove_const remove_cv remove_cvref remove_extent remove_pointer remove_reference
    remove_volatile type_identity underlying_type
""".split()
"""Traits with a `_t`."""

_INTEGERS = [
    f"{sign}int{kind}{bits}_t" for sign in ("", "u") for kind in ("", "_least", "_fast") for bits in (8, 16, 32, 64)
]
_INTEGERS += ["intmax_t", "uintmax_t", "intptr_t", "uintptr_t"]

_LIBCUXX: dict[str, str] = {
    "algorithm": """
        adjacent_find all_of any_of binary_search clamp copy copy_backward copy_if copy_n count count_if equal
        equal_range fill fill_n find find_end find_first_of find_if find_if_not for_each for_each_n generate
        generate_n includes is_heap is_partitioned is_permutation is_sorted is_sorted_until iter_swap
        lexicographical_compare lower_bound make_heap max max_element merge min min_element minmax minmax_element
        mismatch move_backward next_permutation none_of partial_sort partition partition_copy partition_point pop_heap
        prev_permutation push_heap remove remove_copy remove_copy_if remove_if replace replace_copy replace_copy_if
        replace_if reverse reverse_copy rotate rotate_copy search search_n set_difference set_intersection
        set_symmetric_difference set_union shift_left shift_right sort_heap swap swap_ranges transform unique
        unique_copy upper_bound""",
    "array": "array get swap to_array begin end size data",
    "atomic": """
        atomic atomic_ref atomic_flag atomic_thread_fence atomic_signal_fence memory_order memory_order_relaxed
        memory_order_consume memory_order_acquire memory_order_release memory_order_acq_rel memory_order_seq_cst
        atomic_bool atomic_int atomic_uint atomic_long atomic_size_t""",
    "barrier": "barrier",
    "bit": """
        bit_cast bit_ceil bit_floor bit_width byteswap countl_one countl_zero countr_one countr_zero endian
        has_single_bit popcount rotl rotr""",
    "bitset": "bitset",
    "chrono": "",
    "complex": "complex",
    "concepts": """
        same_as derived_from convertible_to common_reference_with common_with integral signed_integral
        unsigned_integral floating_point assignable_from swappable swappable_with destructible constructible_from
        default_initializable move_constructible copy_constructible equality_comparable equality_comparable_with
        totally_ordered totally_ordered_with movable copyable semiregular regular invocable regular_invocable predicate
        relation equivalence_relation strict_weak_order""",
    "cstddef": "byte to_integer",
    "cstdint": " ".join(_INTEGERS),
    "expected": "expected unexpected unexpect unexpect_t",
    "functional": """
        addressof bind_front bit_and bit_not bit_or bit_xor cref divides equal_to greater greater_equal hash identity
        invoke invoke_r less less_equal logical_and logical_not logical_or mem_fn minus modulus multiplies negate
        not_equal_to not_fn plus ref reference_wrapper""",
    "initializer_list": "",
    "iterator": """
        advance back_insert_iterator back_inserter begin bidirectional_iterator_tag cbegin cend
        contiguous_iterator_tag crbegin crend data distance empty end forward_iterator_tag front_insert_iterator
        front_inserter input_iterator_tag insert_iterator inserter iterator iterator_traits make_move_iterator
        make_reverse_iterator move_iterator next output_iterator_tag prev random_access_iterator_tag rbegin rend
        reverse_iterator size""",
    "latch": "latch",
    "limits": """
        float_round_style float_denorm_style round_indeterminate round_to_nearest round_toward_infinity
        round_toward_neg_infinity round_toward_zero denorm_absent denorm_indeterminate denorm_present""",
    "numbers": "",
    "numeric": """
        accumulate adjacent_difference exclusive_scan gcd inclusive_scan inner_product iota lcm midpoint partial_sum
        reduce transform_exclusive_scan transform_inclusive_scan transform_reduce""",
    "optional": "optional nullopt nullopt_t make_optional in_place in_place_t",
    "ratio": """
        ratio ratio_add ratio_subtract ratio_multiply ratio_divide ratio_equal ratio_not_equal ratio_less
        ratio_less_equal ratio_greater ratio_greater_equal atto femto pico nano micro milli centi deci deca hecto
        kilo mega giga tera peta exa""",
    "semaphore": "counting_semaphore binary_semaphore",
    "source_location": "source_location",
    "span": "span dynamic_extent as_bytes as_writable_bytes begin end size data",
    "string_view": "basic_string_view string_view",
    "tuple": """
        apply forward_as_tuple get ignore make_from_tuple make_tuple swap tie tuple tuple_cat tuple_element_t
        tuple_size_v""",
    "type_traits": " ".join(
        [
            *_UNARY_TRAITS,
            *(f"{name}_v" for name in _UNARY_TRAITS),
            *_TRANSFORMATIONS,
            *(f"{name}_t" for name in _TRANSFORMATIONS),
            *("bool_constant", "false_type", "integral_constant", "is_constant_evaluated", "true_type", "void_t"),
        ]
    ),
    "utility": """
        as_const cmp_equal cmp_greater cmp_greater_equal cmp_less cmp_less_equal cmp_not_equal declval exchange
        forward_like get in_place in_place_index in_place_index_t in_place_t in_place_type in_place_type_t in_range
        index_sequence index_sequence_for integer_sequence make_index_sequence make_integer_sequence make_pair
        move_if_noexcept pair piecewise_construct piecewise_construct_t swap to_underlying tuple_element_t
        tuple_size_v unreachable""",
    "variant": """
        get get_if holds_alternative in_place_index in_place_type monostate variant variant_alternative
        variant_alternative_t variant_npos variant_size variant_size_v visit""",
}
"""Header -> names that it brings from `cuda::std` into `std`."""

_OLDER = {
    "algorithm": """\
#if __has_include(<cuda/std/algorithm>)
#include <cuda/std/algorithm>
#else
#include <cuda/std/__algorithm_>
#endif
"""
}
"""Headers that libcu++ of CUDA 13.0 and older has under another name."""
_NEWER = ("numbers", "string_view")
"""Headers that it does not have there: what host code does with them goes, and device code has no such names."""

_COMMON = """\
namespace std {
using ::ptrdiff_t;
using ::size_t;
typedef decltype(nullptr) nullptr_t;
}
"""
"""What every standard header may be relied on to declare."""

_EXTRA: dict[str, str] = {
    "chrono": """\
namespace std {
namespace chrono = ::cuda::std::chrono;
namespace chrono_literals = ::cuda::std::chrono_literals;
}
""",
    "cstddef": """\
using std::nullptr_t;
struct alignas(16) __cuda_kernels_max_align { char bytes[16]; };
typedef __cuda_kernels_max_align max_align_t;
namespace std {
using ::max_align_t;
}
#ifndef offsetof
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif
""",
    "cstdint": "".join(f"using std::{name};\n" for name in _INTEGERS),
    "functional": """\
namespace std {
template <class A, class R> struct unary_function { typedef A argument_type; typedef R result_type; };
template <class A, class B, class R> struct binary_function {
    typedef A first_argument_type;
    typedef B second_argument_type;
    typedef R result_type;
};
}
""",
    "limits": """\
namespace std {
template <class T> class numeric_limits : public ::cuda::std::numeric_limits<T> {};
}
""",
    # As the host's library has it: copied as a whole, and as strictly aligned as anything unless it says so.
    "type_traits": """\
namespace std {
template <size_t Size, size_t Alignment = 16> struct aligned_storage {
  union type {
    unsigned char data[Size];
    struct alignas(Alignment) {} alignment;
  };
};
template <size_t Size, size_t Alignment = 16> using aligned_storage_t = typename aligned_storage<Size, Alignment>::type;
}
""",
    "numbers": """\
namespace std {
namespace numbers = ::cuda::std::numbers;
}
""",
}


def _comparison() -> str:
    """`compare`, which libcu++ has not: the categories that `<=>` gives, and what turns one into another."""
    categories = {
        "partial_ordering": ("less -1", "equivalent 0", "greater 1", "unordered 2"),
        "weak_ordering": ("less -1", "equivalent 0", "greater 1"),
        "strong_ordering": ("less -1", "equal 0", "equivalent 0", "greater 1"),
    }
    of_device = "__host__ __device__ constexpr"
    lines = ["#if defined(__cpp_impl_three_way_comparison)", "namespace std {"]
    for number, (name, values) in enumerate(categories.items()):
        before = list(categories)[:number]
        lines += [
            f"class {name} {{",
            "signed char value;",
            "public:",
            f"{of_device} explicit {name}(signed char v) : value(v) {{}}",
        ]
        lines += [f"static const {name} {value.split()[0]};" for value in values]
        lines += [f"{of_device} operator {other}() const {{ return {other}(value); }}" for other in before]
        lines += [f"friend {of_device} bool operator==({name}, {name}) = default;"]
        for sign, mirrored in {"==": "", "<": ">", ">": "<", "<=": ">=", ">=": "<="}.items():
            known = " && a.value != 2" if sign[0] == ">" else ""
            head = f"friend {of_device} bool operator"
            lines += [f"{head}{sign}({name} a, decltype(nullptr)) {{ return a.value {sign} 0{known}; }}"]
            if mirrored:
                lines += [f"{head}{mirrored}(decltype(nullptr), {name} a) {{ return a {sign} 0; }}"]
        lines += ["};"]
        lines += [f"inline constexpr {name} {name}::{value.split()[0]}({value.split()[1]});" for value in values]
    signs = {"is_eq": "==", "is_neq": "!=", "is_lt": "<", "is_lteq": "<=", "is_gt": ">", "is_gteq": ">="}
    lines += [
        f"{of_device} inline bool {name}(partial_ordering c) {{ return c {sign} 0; }}" for name, sign in signs.items()
    ]
    return "\n".join([*lines, "}", "#endif", ""])


_COMPLEX_FUNCTIONS = """
    abs acos acosh arg asin asinh atan atanh conj cos cosh exp imag log log10 norm proj real sin sinh sqrt tan tanh
""".split()

# A wrapper is less specialised than libcu++'s own function, which argument-dependent lookup finds as well.
_EXTRA["complex"] = (
    """\
#include <cmath>
namespace std {
template <class C, class T> struct __cuda_kernels_if_complex {};
template <class V, class T> struct __cuda_kernels_if_complex<cuda::std::complex<V>, T> { typedef T type; };
"""
    + "".join(
        f"template <class C, class R = typename __cuda_kernels_if_complex<C, decltype(cuda::std::{name}(C()))>::type>\n"
        f"__device__ inline R {name}(const C& z) {{ return cuda::std::{name}(z); }}\n"
        for name in _COMPLEX_FUNCTIONS
    )
    + """\
using ::cuda::std::polar;
template <class C, class P, class R = typename __cuda_kernels_if_complex<C, C>::type>
__device__ inline R pow(const C& z, const P& power) { return cuda::std::pow(z, power); }
}
"""
)

_UNARY = """
    sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp exp2 expm1 log log2 log10 log1p cbrt ceil
    floor trunc round rint nearbyint fabs erf erfc tgamma lgamma logb
""".split()
_UNARY_TO = {"ilogb": "int", "lround": "long", "lrint": "long", "llround": "long long", "llrint": "long long"}
_CLASSIFY = ("isnan", "isinf", "isfinite", "signbit")
_BINARY = "pow atan2 fmod remainder fmin fmax fdim hypot copysign nextafter".split()
_OTHER_MATH = "abs fma frexp ldexp modf nan remquo scalbln scalbn".split()
_COMPARE = {
    "isgreater": "x > y",
    "isgreaterequal": "x >= y",
    "isless": "x < y",
    "islessequal": "x <= y",
    "islessgreater": "x < y || x > y",
    "isunordered": "x != x || y != y",
}
_CONSTANTS = {
    "E": "2.7182818284590452354",
    "LOG2E": "1.4426950408889634074",
    "LOG10E": "0.43429448190325182765",
    "LN2": "0.69314718055994530942",
    "LN10": "2.30258509299404568402",
    "PI": "3.14159265358979323846",
    "PI_2": "1.57079632679489661923",
    "PI_4": "0.78539816339744830962",
    "1_PI": "0.31830988618379067154",
    "2_PI": "0.63661977236758134308",
    "2_SQRTPI": "1.12837916709551257390",
    "SQRT2": "1.41421356237309504880",
    "SQRT1_2": "0.70710678118654752440",
}
_SUFFIXED = [f"{name}f" for name in [*_UNARY, *_UNARY_TO, *_BINARY, "fma", "frexp", "ldexp", "modf", "remquo"]]


def _mathematics() -> str:
    """`math.h`: NVRTC declares the functions for float and double; the standard also wants integers and mixtures."""
    kinds = "bool|char|signed char|unsigned char|short|unsigned short|int|unsigned|long|unsigned long|long long"
    lines = ["template <class T> struct __cuda_kernels_number { enum { rank = 0 }; };"]
    for kind in [*kinds.split("|"), "unsigned long long"]:
        lines.append(f"template <> struct __cuda_kernels_number<{kind}> {{ enum {{ rank = 1 }}; }};")
    for kind in ("float", "double"):
        lines.append(f"template <> struct __cuda_kernels_number<{kind}> {{ enum {{ rank = 2 }}; }};")
    number, when = "__cuda_kernels_number", "typename __cuda_kernels_when"
    both = f"int({number}<A>::rank) * int({number}<B>::rank) != 0"
    lines += [
        "template <bool> struct __cuda_kernels_when {};",
        "template <> struct __cuda_kernels_when<true> { typedef int type; };",
        f"#define __CUDA_KERNELS_INTEGER template <class T, {when}<{number}<T>::rank == 1>::type = 0>",
        f"#define __CUDA_KERNELS_MIXTURE template <class A, class B, {when}<{both}>::type = 0>",
    ]
    device = "__device__ inline"
    for name in _UNARY:
        lines.append(f"__CUDA_KERNELS_INTEGER {device} double {name}(T x) {{ return {name}(double(x)); }}")
    for name, result in _UNARY_TO.items():
        lines.append(f"__CUDA_KERNELS_INTEGER {device} {result} {name}(T x) {{ return {name}(double(x)); }}")
    for name in _CLASSIFY:
        lines.append(f"__CUDA_KERNELS_INTEGER {device} bool {name}(T x) {{ return {name}(double(x)); }}")
    for name in _BINARY:
        call = f"{name}(double(x), double(y))"
        lines.append(f"__CUDA_KERNELS_MIXTURE {device} double {name}(A x, B y) {{ return {call}; }}")
    for name, test in _COMPARE.items():
        lines.append(f"__CUDA_KERNELS_MIXTURE {device} bool {name}(A x, B y) {{ return {test}; }}")
    lines += [
        "#undef __CUDA_KERNELS_INTEGER",
        "#undef __CUDA_KERNELS_MIXTURE",
        f"{device} bool isnormal(float x) {{ return fabsf(x) >= 1.17549435e-38f && !isinf(x); }}",
        f"{device} bool isnormal(double x) {{ return fabs(x) >= 2.2250738585072014e-308 && !isinf(x); }}",
        "typedef float float_t;",
        "typedef double double_t;",
    ]
    # No macros: libcu++ defines them later as it likes, and the compiler would warn of a second definition.
    infinity, nan = "0x7f800000", "0x7fffffff"
    lines.append("#if __cplusplus >= 201703L")
    for name, bits in (("INFINITY", infinity), ("NAN", nan)):
        value = f"[[maybe_unused]] static constexpr float {name} = __builtin_bit_cast(float, {bits});"
        lines += [f"#ifndef {name}", value, "#endif"]
    lines += ["#else", _macros({"INFINITY": f"__int_as_float({infinity})", "NAN": f"__int_as_float({nan})"}) + "#endif"]
    macros = {
        "HUGE_VALF": "__int_as_float(0x7f800000)",
        "HUGE_VAL": "__longlong_as_double(0x7ff0000000000000ll)",
        **{f"M_{name}": value for name, value in _CONSTANTS.items()},
    }
    return "\n".join(lines) + "\n" + _macros(macros)


def _macros(table: Mapping[str, str]) -> str:
    return "".join(f"#ifndef {name}\n#define {name} {value}\n#endif\n" for name, value in table.items())


def _using(names: list[str], source: str = "") -> str:
    return "namespace std {\n" + "".join(f"using {source}::{name};\n" for name in names) + "}\n"


_LIMITS = {
    "CHAR_BIT": "8",
    "SCHAR_MIN": "(-128)",
    "SCHAR_MAX": "127",
    "UCHAR_MAX": "255",
    "CHAR_MIN": "SCHAR_MIN",
    "CHAR_MAX": "SCHAR_MAX",
    "SHRT_MIN": "(-32768)",
    "SHRT_MAX": "32767",
    "USHRT_MAX": "65535",
    "INT_MIN": "(-INT_MAX - 1)",
    "INT_MAX": "2147483647",
    "UINT_MAX": "4294967295u",
    "LONG_MIN": "(-LONG_MAX - 1)",
    "ULONG_MAX": "(LONG_MAX * 2ul + 1ul)",
    "LLONG_MIN": "(-LLONG_MAX - 1)",
    "LLONG_MAX": "9223372036854775807ll",
    "ULLONG_MAX": "18446744073709551615ull",
}


def _limits() -> str:
    """`cuda/std/climits` with the values of `limits.h`, which may be there already: libcu++'s are of other types."""
    names = [*_LIMITS, "LONG_MAX"]
    undefined = "".join(f"#undef {name}\n" for name in names)
    return f"{undefined}#include_next <cuda/std/climits>\n{undefined}{_macros(_LIMITS)}{_LONG_MAX}"


_FLOAT = {
    "FLT_RADIX": "2",
    "FLT_MANT_DIG": "24",
    "FLT_DIG": "6",
    "FLT_MIN_EXP": "(-125)",
    "FLT_MAX_EXP": "128",
    "FLT_MIN_10_EXP": "(-37)",
    "FLT_MAX_10_EXP": "38",
    "FLT_MAX": "3.402823466e+38f",
    "FLT_MIN": "1.175494351e-38f",
    "FLT_EPSILON": "1.192092896e-07f",
    "DBL_MANT_DIG": "53",
    "DBL_DIG": "15",
    "DBL_MIN_EXP": "(-1021)",
    "DBL_MAX_EXP": "1024",
    "DBL_MIN_10_EXP": "(-307)",
    "DBL_MAX_10_EXP": "308",
    "DBL_MAX": "1.7976931348623157e+308",
    "DBL_MIN": "2.2250738585072014e-308",
    "DBL_EPSILON": "2.2204460492503131e-16",
}
"""Those of older libcu++ are missing under NVRTC."""

_LONG_MAX = """\
#ifndef LONG_MAX
#ifdef _WIN32
#define LONG_MAX 2147483647l
#else
#define LONG_MAX 9223372036854775807l
#endif
#endif
"""

_STDLIB = """\
struct div_t { int quot, rem; };
struct ldiv_t { long quot, rem; };
struct lldiv_t { long long quot, rem; };
__device__ inline div_t div(int x, int y) { return {x / y, x % y}; }
__device__ inline ldiv_t div(long x, long y) { return {x / y, x % y}; }
__device__ inline lldiv_t div(long long x, long long y) { return {x / y, x % y}; }
__device__ inline ldiv_t ldiv(long x, long y) { return {x / y, x % y}; }
__device__ inline lldiv_t lldiv(long long x, long long y) { return {x / y, x % y}; }
#ifndef EXIT_SUCCESS
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#endif
"""

_CLOCKS = """\
#ifndef CLOCKS_PER_SEC
#ifdef _WIN32
#define CLOCKS_PER_SEC ((clock_t)1000)
#else
#define CLOCKS_PER_SEC ((clock_t)1000000)
#endif
#endif
"""

_ASSERT = """\
#undef assert
#ifdef NDEBUG
#define assert(e) (static_cast<void>(0))
#else
#define assert(e) ((e) ? static_cast<void>(0) : __assertfail(#e, __FILE__, __LINE__, __PRETTY_FUNCTION__, sizeof(char)))
#endif
"""
"""NVRTC's own `assert` looks at NDEBUG once, before a file begins; the header has to, each time that it is included.
The message has the expression as it is written, which NVRTC's own expands."""
_EACH_TIME = ("assert.h", "cassert")

_STRING = """\
#if __has_include(<cuda/std/cstring>)
#include <cuda/std/cstring>
namespace std {
using ::cuda::std::memchr;
using ::cuda::std::memcmp;
using ::cuda::std::memmove;
}
#endif
"""


def _c_headers() -> dict[str, str]:
    """Both spellings of the headers that C++ has from C, `cmath` and `math.h`; they need little or no libcu++."""
    math = [*_UNARY, *_UNARY_TO, *_CLASSIFY, *_BINARY, *_OTHER_MATH, *_COMPARE, *_SUFFIXED]
    functions = ["abs", "labs", "llabs", "malloc", "free", "div", "div_t", "ldiv", "ldiv_t", "lldiv", "lldiv_t"]
    bodies = {
        "assert": _ASSERT,
        "limits": _macros(_LIMITS) + _LONG_MAX,
        "float": "#include <cuda/std/cfloat>\n" + _macros(_FLOAT),
        "math": _mathematics() + _using([*math, "isnormal", "float_t", "double_t"]),
        "stdio": _using(["printf"]),
        "stdbool": "#ifndef __bool_true_false_are_defined\n#define __bool_true_false_are_defined 1\n#endif\n",
        "stdlib": _STDLIB + _using(functions),
        "string": _STRING + _using(["memcpy", "memset"]),
        "time": _CLOCKS + _using(["clock", "clock_t"]),
    }
    found: dict[str, str] = {}
    for name, body in bodies.items():
        found[f"{name}.h"] = body
        found[f"c{name}"] = f"#include <{name}.h>\n"
    found["iso646.h"] = found["ciso646"] = found["stdalign.h"] = found["cstdalign"] = ""  # keywords of C++
    for name in ("stddef", "stdint"):
        found[f"{name}.h"] = f"#include <c{name}>\n"
    return found


_AS_NVCC = "__CUDA_KERNELS_AS_NVCC__"
AS_NVCC = f"#define {_AS_NVCC}\n".encode()
"""To be read before files with code for the host, which were written for nvcc."""
_OTHERS = re.compile(r'redeclaration of type name "u?int\w*_t" \(declared at line \d+ of [^\n]*cuda/std/cstdint\)')


def declares_others(log: str) -> bool:
    """Whether a header has integers of its own for NVRTC, such as CUDA's `cuda_pipeline.h`: AS_NVCC cannot be read
    before it."""
    return _OTHERS.search(log) is not None


_LONGS = """
    int64_t int_least64_t int_fast16_t int_fast32_t int_fast64_t intptr_t intmax_t
    uint64_t uint_least64_t uint_fast16_t uint_fast32_t uint_fast64_t uintptr_t uintmax_t
""".split()
"""Integers that are `long` or `unsigned long` in the C library of Linux of 64 bits, and other ones in libcu++."""


def _integers() -> str:
    """`cstdint`: after AS_NVCC, its types and the types of its macros are those that nvcc has on Linux."""
    values = {f"INT{n}_C(c)": "c" for n in (8, 16, 32)} | {f"UINT{n}_C(c)": "c" for n in (8, 16)}
    values |= {"UINT32_C(c)": "c##U", "INT64_C(c)": "c##L", "UINT64_C(c)": "c##UL"}
    values |= {"INTMAX_C(c)": "c##L", "UINTMAX_C(c)": "c##UL", "SIZE_MAX": "ULONG_MAX"}
    for name in _LONGS:
        word = name.removesuffix("_t").upper().replace("UINT", "INT")
        values |= (
            {f"U{word}_MAX": "ULONG_MAX"} if name[0] == "u" else {f"{word}_MIN": "LONG_MIN", f"{word}_MAX": "LONG_MAX"}
        )
    values |= {"PTRDIFF_MIN": "LONG_MIN", "PTRDIFF_MAX": "LONG_MAX"}
    lines = [
        "#include <cuda/std/version>",
        "#include <cuda/std/climits>",
        f"#if defined({_AS_NVCC}) && !defined(_WIN32)",
    ]
    lines += [f"#define {name} __cuda_kernels_{name}" for name in _LONGS]
    lines += ["#endif", "#include_next <cuda/std/cstdint>", f"#if defined({_AS_NVCC}) && !defined(_WIN32)"]
    lines += [f"#undef {name}" for name in _LONGS]
    lines += [f"typedef {'unsigned long' if name[0] == 'u' else 'long'} {name};" for name in _LONGS]
    using = [f"using ::{name};" for name in _LONGS]
    opened, closed = "_CCCL_BEGIN_NAMESPACE_CUDA_STD", "_CCCL_END_NAMESPACE_CUDA_STD"
    older, ended = "_LIBCUDACXX_BEGIN_NAMESPACE_STD", "_LIBCUDACXX_END_NAMESPACE_STD"
    lines += [f"#ifdef {opened}", opened, *using, closed, "#else", older, *using, ended, "#endif"]
    for name, value in values.items():
        lines += [f"#undef {name.removesuffix('(c)')}", f"#define {name} {value}"]
    return "\n".join([*lines, "#endif", ""])


FIRST = "first"
"""Folder among the stand-ins that comes before the toolkit's headers on the search path."""
HIDDEN = {
    "cuda_bf16.hpp": "#include <cuda_bf16.h>\n",
    "cuda_fp16.hpp": "#include <cuda_fp16.h>\n",
    "thrust/detail/complex/stream.h": "",
    "cuda/std/cstdint": _integers(),
    "cuda/std/climits": _limits(),
}
"""Headers of the toolkit that NVRTC cannot read -> what is in them for the device. The first two it has built in; they
undefine what they begin with. The third is for the host alone, and headers for both sides include it all the same. The
last has `LONG_MAX` of type `long long`, and the one before integers that nvcc has otherwise."""


@functools.lru_cache(maxsize=1)
def standins() -> Mapping[str, bytes]:
    """Name of a standard header -> text of its stand-in."""
    texts = {}
    for header, names in _LIBCUXX.items():
        texts[header] = _OLDER.get(header, f"#include <cuda/std/{header}>\n") + _COMMON
        if names:
            texts[header] += _using(names.split(), "::cuda::std")
        texts[header] += _EXTRA.get(header, "")
        if header in _NEWER:
            texts[header] = f"#if __has_include(<cuda/std/{header}>)\n{texts[header]}#endif\n"
    texts["compare"] = _comparison()
    texts.update({header: (_COMMON + body if header.endswith(".h") else body) for header, body in _c_headers().items()})
    found = {}
    for header in sorted(texts):
        # One may be included in a block of `extern "C"`, where a header of C would be fine.
        once = f'#pragma once\nextern "C++" {{\n{texts[header]}}}\n'
        found[header] = (texts[header] if header in _EACH_TIME else once).encode()
    return found


@functools.lru_cache(maxsize=1)
def standins_digest() -> str:
    """SHA-256 over all stand-ins, in hex: part of the key of every compile that may read one."""
    state = hashlib.sha256()
    for header, text in [*standins().items(), *((name, text.encode()) for name, text in HIDDEN.items())]:
        state.update(b"%d %s %d " % (len(header), header.encode(), len(text)) + text)
    return state.hexdigest()


def write_standins(target: Path) -> Path:
    """Write the stand-ins into a new folder, unless another process of the same build did."""
    if not target.is_dir():
        staging = Path(tempfile.mkdtemp(prefix="standins-", dir=target.parent))
        for header, text in standins().items():
            (staging / header).write_bytes(text)
        for header, body in HIDDEN.items():
            path = staging / FIRST / header
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"#pragma once\n{body}", encoding="ascii")
        with contextlib.suppress(OSError):
            staging.rename(target)
        shutil.rmtree(staging, ignore_errors=True)
    return target
