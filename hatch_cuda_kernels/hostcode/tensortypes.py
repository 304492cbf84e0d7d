# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Declarations for a probe (see `probing`) of what PyTorch has for the host: tensors, and dispatches over their types.

What its headers for device code declare is theirs wherever they are among the files.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["MEMBERS", "METHODS", "tensor_members", "tensor_types"]

_METHODS = """
    to contiguous view reshape flatten clone detach transpose permute squeeze unsqueeze select slice narrow t
    expand expand_as cpu cuda type_as zero_ fill_ copy_ add add_ sub mul mul_ div div_ sum mean max min abs index
    index_select gather repeat toType view_as new_empty new_zeros empty_like zeros_like resize_ set_requires_grad
    masked_select nonzero sort argsort cumsum matmul mm bmm round floor ceil exp log sqrt pow clamp grad
"""
METHODS = frozenset(_METHODS.split())
"""Members of tensors; some functions are called like them."""
MEMBERS = "_MEMBERS_OF_TENSORS"
"""A macro that declares other members of tensors, which the compiler asks for."""
_TYPES = {
    "Byte": "uint8_t",
    "Char": "int8_t",
    "Short": "int16_t",
    "Int": "int",
    "Long": "_LONG_OF_TENSORS",
    "Half": "c10::Half",
    "Float": "float",
    "Double": "double",
    "ComplexHalf": "c10::complex<c10::Half>",
    "ComplexFloat": "c10::complex<float>",
    "ComplexDouble": "c10::complex<double>",
    "Bool": "bool",
    "BFloat16": "c10::BFloat16",
    "Float8_e5m2": "c10::Float8_e5m2",
    "Float8_e4m3fn": "c10::Float8_e4m3fn",
    "Float8_e5m2fnuz": "c10::Float8_e5m2fnuz",
    "Float8_e4m3fnuz": "c10::Float8_e4m3fnuz",
    "UInt16": "uint16_t",
    "UInt32": "uint32_t",
    "UInt64": "uint64_t",
}
_OTHER_NAMES = {
    "Float32": "Float",
    "Float64": "Double",
    "Float16": "Half",
    "Int32": "Int",
    "Int64": "Long",
    "Int16": "Short",
    "Int8": "Char",
    "UInt8": "Byte",
}
_SMALL = [name for name in _TYPES if name in ("Half", "BFloat16") or name.startswith("Float8_")]


def _unless_there(headers: str, text: str) -> str:
    """A text that is read where the library's own headers are not among the files."""
    first, *others = [f"<{header}>" for header in headers.split()]
    included = "".join(f"#include {header}\n" for header in (first, *others))
    return f"#if __has_include({first})\n{included}#else\n{text}#endif\n"


def _in_either(name: str, text: str) -> str:
    """The same for a header that newer releases of the library have among those which need nothing else of it, too."""
    moved = f"torch/headeronly/{name}"
    return f"#if __has_include(<{moved}>)\n#include <{moved}>\n#else\n{_unless_there(f'c10/{name}', text)}#endif\n"


def _small(name: str) -> str:
    text = f"struct {name} {{ {name}(); template <class A> {name}(A); operator float() const; unsigned short x; }};"
    return _in_either(f"util/{name}.h", f"namespace c10 {{ {text} }}\n")


_LONG = (
    "#if __has_include(<c10/macros/Macros.h>)\n#define _LONG_OF_TENSORS int64_t\n#else\n"
    "#define _LONG_OF_TENSORS long\n#endif\n"
)
"""64 bits are `long` with nvcc on Linux; where device code has the library's own functions, instances are called as it
calls that."""
_DEVICE_TYPES = [
    _LONG,
    _unless_there(
        "cstdint",
        "typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;\n"
        "typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned uint32_t;\n"
        "typedef unsigned long uint64_t;\n",
    ),
    *map(_small, _SMALL),
    _in_either(
        "util/complex.h",
        "namespace c10 { template <class T> struct complex { template <class... A> complex(A...); T x, y; }; }\n",
    ),
    _in_either(
        "core/DeviceType.h",
        "namespace c10 { enum class DeviceType : int8_t { CPU, CUDA };\n"
        "constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA; }\n",
    ),
    _unless_there(
        "ATen/AccumulateType.h",
        """namespace at {
template <class T, bool> struct accumulated { using type = decltype(T() + 0L); };
template <bool B> struct accumulated<float, B> { using type = float; };
template <bool B> struct accumulated<c10::Half, B> { using type = float; };
template <bool B> struct accumulated<c10::BFloat16, B> { using type = float; };
template <class T, bool B> using acc_type = typename accumulated<T, B>::type;
}
""",
    ),
    _unless_there(
        "ATen/OpMathType.h",
        """namespace at {
template <class T> struct computed { using type = T; };
template <> struct computed<c10::Half> { using type = float; };
template <> struct computed<c10::BFloat16> { using type = float; };
template <class T> using opmath_type = typename computed<T>::type;
}
""",
    ),
    _unless_there(
        "ATen/core/TensorAccessor.h",
        """namespace at {
template <class T> struct DefaultPtrTraits { using PtrType = T *; };
template <class T> struct RestrictPtrTraits { using PtrType = T *; };
template <class T, size_t N, template <class> class P = DefaultPtrTraits, class I = int64_t>
struct TensorAccessor { TensorAccessor<T, N - 1, P, I> operator[](I) const; I size(I) const; T *data() const; };
template <class T, template <class> class P, class I>
struct TensorAccessor<T, 1, P, I> { T &operator[](I) const; I size(I) const; T *data() const; };
template <class T, size_t N, template <class> class P = DefaultPtrTraits, class I = int64_t>
struct GenericPackedTensorAccessor : TensorAccessor<T, N, P, I> {};
template <class T, size_t N, template <class> class P = DefaultPtrTraits, class I = int64_t>
using PackedTensorAccessor = GenericPackedTensorAccessor<T, N, P, I>;
template <class T, size_t N, template <class> class P = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, P, int32_t>;
template <class T, size_t N, template <class> class P = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, P, int64_t>;
}
""",
    ),
]


_TENSOR_INFO = """#if __has_include(<ATen/cuda/detail/TensorInfo.cuh>)
#include <ATen/cuda/detail/TensorInfo.cuh>
namespace at { namespace cuda { namespace detail {
template <class T, class I> TensorInfo<T, I> getTensorInfo(const Tensor &);
} } }
#endif
"""


def _namespaces(anything: str, host: str, braced: str) -> str:
    streams = "getCurrentCUDAStream getStreamFromPool getDefaultCUDAStream getCurrentHIPStream"
    cast = "template <class... A>"
    constants = {name: name for name in _TYPES} | _OTHER_NAMES
    return f"""
namespace c10 {{
enum class ScalarType : int8_t {{ {", ".join(_TYPES)}, Undefined }};
struct Device {{
    {cast} Device(A &&...);
    int index() const;
    bool is_cuda() const, is_cpu() const;
    DeviceType type() const;
}};
struct TensorOptions {{
    {cast} TensorOptions(A &&...);
    {" ".join(f"{cast} TensorOptions {name}(A &&...) const;" for name in "dtype device layout requires_grad".split())}
}};
{" ".join(f"constexpr ScalarType k{name} = ScalarType::{kind};" for name, kind in constants.items())}
template <class T> struct optional : {host}::owner<T> {{
    {cast} optional(A &&...);
    bool has_value() const;
    T &value() const;
    template <class A> T value_or(A &&) const;
}};
template <class T> class ArrayRef : public {host}::sequence<T> {{
public:
    {cast} ArrayRef(A &&...);
    {host}::sequence<T> vec() const;
}};
using IntArrayRef = ArrayRef<int64_t>;
namespace cuda {{
struct CUDAStream {{ operator cudaStream_t() const; cudaStream_t stream() const; }};
{" ".join(f"{cast} CUDAStream {name}(A &&...);" for name in streams.split())}
struct CUDAGuard {{ {cast} CUDAGuard(A &&...); }};
struct OptionalCUDAGuard {{ {cast} OptionalCUDAGuard(A &&...); }};
}}
}}
namespace at {{
using namespace c10;
struct Scalar {{ {cast} Scalar(A &&...); template <class T> T to() const; }};
struct Tensor {{
    {cast} Tensor(A &&...);
    {" ".join(f"template <class T> T *{name}() const;" for name in "data_ptr data mutable_data_ptr".split())}
    template <class T> const T *const_data_ptr() const;
    void *data_ptr() const, *mutable_data_ptr() const;
    const void *const_data_ptr() const;
    _LONG_OF_TENSORS size(long) const, stride(long) const, numel() const, dim() const, ndimension() const;
    _LONG_OF_TENSORS storage_offset() const;
    size_t nbytes() const, element_size() const, itemsize() const;
    signed char get_device() const;
    IntArrayRef sizes() const, strides() const;
    {MEMBERS}
    ScalarType scalar_type() const, dtype() const;
    {anything} type() const, storage() const;
    TensorOptions options() const;
    Device device() const;
    bool is_cuda() const, is_contiguous() const, defined() const, requires_grad() const, is_cpu() const;
    bool is_floating_point() const;
    {cast} bool is_contiguous(A &&...) const;
    template <class T> T item() const;
    template <class T, size_t N> TensorAccessor<T, N> accessor() const;
    {_packed("GenericPackedTensorAccessor<T, N, P, I>", "packed_accessor", ", class I = int64_t")}
    {_packed("PackedTensorAccessor32<T, N, P>", "packed_accessor32", "")}
    {_packed("PackedTensorAccessor64<T, N, P>", "packed_accessor64", "")}
    {" ".join(f"{cast} Tensor {name}(A &&...) const; Tensor {name}({braced}) const;" for name in _METHODS.split())}
    Tensor operator[](long) const;
}};
{" ".join(f"template <class A> Tensor operator{sign}(const Tensor &, A &&);" for sign in _OPERATORS)}
using TensorList = ArrayRef<Tensor>;
using DeviceGuard = c10::cuda::CUDAGuard;
namespace cuda {{
using namespace c10::cuda;
cudaDeviceProp *getCurrentDeviceProperties(), *getDeviceProperties(int64_t);
}}
}}
namespace torch {{
using namespace at;
namespace headeronly {{ using namespace c10; }}
namespace stable {{
using at::Tensor; using c10::Device; using c10::DeviceType;
namespace accelerator {{ using c10::cuda::CUDAStream; using DeviceGuard = c10::cuda::CUDAGuard; }}
}}
}}
namespace {host} {{
struct tensor : at::Tensor {{ {cast} tensor(A &&...); template <class A> operator A() const; }};
template <c10::ScalarType> struct scalar;
{" ".join(f"template <> struct scalar<c10::k{kind}> {{ using type = {name}; }};" for kind, name in _TYPES.items())}
}}
"""


_OPERATORS = "+ - * / == != < > <= >= & |".split()


def tensor_members(names: Iterable[str], host: str, braced: str) -> str:
    """Declarations of further members of tensors, each of which gives a tensor or whatever else is needed."""
    result = f"{host}::tensor"
    each = [f"template <class... A> {result} {name}(A &&...) const; {result} {name}({braced}) const;" for name in names]
    return f"namespace {host} {{ struct tensor; }}\n#define {MEMBERS} {' '.join(each)}\n"


def _packed(result: str, name: str, index: str) -> str:
    return f"template <class T, size_t N, template <class> class P = DefaultPtrTraits{index}> {result} {name}() const;"


_FLOATING = "Double Float"
_COMPLEX = "ComplexDouble ComplexFloat"
_INTEGRAL = "Byte Char Int Long Short"
_FLOAT8 = "Float8_e5m2 Float8_e5m2fnuz Float8_e4m3fn Float8_e4m3fnuz"
_UNSIGNED = "UInt16 UInt32 UInt64"
_KINDS = {
    "FLOATING_TYPES": _FLOATING,
    "FLOATING_TYPES_AND_HALF": f"{_FLOATING} Half",
    "REDUCED_FLOATING_TYPES": "Half BFloat16",
    "COMPLEX_TYPES": _COMPLEX,
    "INTEGRAL_TYPES": _INTEGRAL,
    "ALL_TYPES": f"{_INTEGRAL} {_FLOATING}",
    "ALL_TYPES_AND_HALF": f"{_INTEGRAL} {_FLOATING} Half",
    "FLOATING_AND_COMPLEX_TYPES": f"{_FLOATING} {_COMPLEX}",
    "ALL_TYPES_AND_COMPLEX": f"{_INTEGRAL} {_FLOATING} {_COMPLEX}",
}
"""Part of a dispatch's name -> the types that it runs its code for."""
_LISTS = {
    "AT_FLOATING_TYPES": _FLOATING,
    "AT_INTEGRAL_TYPES": _INTEGRAL,
    "AT_COMPLEX_TYPES": _COMPLEX,
    "AT_ALL_TYPES": f"{_INTEGRAL} {_FLOATING}",
    "AT_ALL_TYPES_AND_COMPLEX": f"{_INTEGRAL} {_FLOATING} {_COMPLEX}",
    "AT_FLOAT8_TYPES": _FLOAT8,
    "AT_BAREBONES_UNSIGNED_TYPES": _UNSIGNED,
    "AT_INTEGRAL_TYPES_V2": f"{_INTEGRAL} {_UNSIGNED}",
}
"""The lists of types that the second form of dispatch takes."""
_MOST = 8
"""Types that a dispatch takes besides those of its name, at most."""
_MOST_LISTED = 24


_HEADER_ONLY = (
    "#define THO_DISPATCH_CASE AT_DISPATCH_CASE",
    "#define THO_PRIVATE_CASE_TYPE_USING_HINT AT_DISPATCH_CASE_AS",
    "#define THO_PRIVATE_CASE_TYPE_USING_HINT_TMPL(prelude, ...) AT_DISPATCH_CASE_AS(__VA_ARGS__)",
    "#define THO_DISPATCH_CASE_TMPL(with, kind, ...) with(kind, scalar_t, __VA_ARGS__)",
    "#define THO_DISPATCH_SWITCH AT_DISPATCH_SWITCH",
    "#define THO_DISPATCH_SWITCH_TMPL(prelude, check, ...) AT_DISPATCH_SWITCH(__VA_ARGS__)",
    "#define THO_DISPATCH_V2 AT_DISPATCH_V2",
)
"""Dispatches of `torch/headeronly`, for extensions that keep to PyTorch's stable interface."""


def _dispatches(host: str) -> str:
    """The dispatches, as macros that run their code for each of the types."""
    scalar = f"typename {host}::scalar<(kind)>::type"
    index = " ".join(f"AT_DISPATCH_CASE_AS(c10::k{kind}, index_t, __VA_ARGS__)" for kind in ("Int", "Long"))
    lines = [
        f"#define AT_DISPATCH_CASE_AS(kind, name, ...) {{ using name = {scalar}; (void)(__VA_ARGS__)(); }}",
        "#define AT_DISPATCH_CASE(kind, ...) AT_DISPATCH_CASE_AS(kind, scalar_t, __VA_ARGS__)",
        "#define AT_PRIVATE_CASE_TYPE_USING_HINT(kind, name, ...) AT_DISPATCH_CASE_AS(kind, name, __VA_ARGS__)",
        "#define AT_PRIVATE_CASE_TYPE(name, kind, type, ...) { using scalar_t = type; (void)(__VA_ARGS__)(); }",
        "#define AT_DISPATCH_SWITCH(type, name, ...) [&] { (void)(type); __VA_ARGS__ }()",
        f"#define AT_DISPATCH_INDEX_TYPES(type, name, ...) AT_DISPATCH_SWITCH(type, name, {index})",
        *_HEADER_ONLY,
    ]
    for kind, names in _KINDS.items():
        cases = " ".join(f"AT_DISPATCH_CASE(c10::ScalarType::{name}, __VA_ARGS__)" for name in names.split())
        call = f"AT_DISPATCH_CASE_{kind}(__VA_ARGS__)"
        lines.append(f"#define AT_DISPATCH_CASE_{kind}(...) {cases}")
        lines.append(f"#define AT_DISPATCH_{kind}(type, name, ...) AT_DISPATCH_SWITCH(type, name, {call})")
        for count in range(1, _MOST + 1):
            more = [f"more{each}" for each in range(count)]
            also = " ".join(f"AT_DISPATCH_CASE({each}, __VA_ARGS__)" for each in more)
            for suffix in ("_AND", "_AND1") if count == 1 else (f"_AND{count}",):
                head = f"{kind}{suffix}({', '.join(more)}"
                lines.append(f"#define AT_DISPATCH_CASE_{head}, ...) {call} {also}")
                lines.append(
                    f"#define AT_DISPATCH_{head}, type, name, ...) AT_DISPATCH_SWITCH(type, name, {call} {also})"
                )
    return "".join(f"{line}\n" for line in [*lines, *_listed()])


def _listed() -> list[str]:
    """The second form, `AT_DISPATCH_V2(type, name, AT_WRAP(...), AT_EXPAND(AT_ALL_TYPES), kHalf)`."""
    counts = range(_MOST_LISTED, 0, -1)
    pick = f"#define AT_COUNTED({', '.join(f'a{count}' for count in counts)}, n, ...) AT_CASES_##n"
    lines = [f"#define {name} {', '.join(f'c10::k{kind}' for kind in kinds.split())}" for name, kinds in _LISTS.items()]
    lines += ["#define AT_WRAP(...) __VA_ARGS__", "#define AT_EXPAND(...) __VA_ARGS__", pick]
    lines += ["#define AT_CASES_1(code, kind) AT_DISPATCH_CASE(kind, AT_EXPAND code)"]
    lines += [
        f"#define AT_CASES_{count}(code, kind, ...) AT_DISPATCH_CASE(kind, AT_EXPAND code) "
        f"AT_CASES_{count - 1}(code, __VA_ARGS__)"
        for count in range(2, _MOST_LISTED + 1)
    ]
    listed = f"AT_COUNTED(__VA_ARGS__, {', '.join(map(str, counts))}, 0)(code, __VA_ARGS__)"
    lines += [
        f"#define AT_CASES(code, ...) {listed}",
        "#define AT_DISPATCH_V2(type, name, body, ...) AT_DISPATCH_SWITCH(type, name, AT_CASES((body), __VA_ARGS__))",
    ]
    return lines


def tensor_types(anything: str, host: str, braced: str) -> str:
    """All of it; the arguments are the names of what `hosttypes` declares, and its parameters for lists in braces."""
    return "".join([*_DEVICE_TYPES, _namespaces(anything, host, braced), _TENSOR_INFO, _dispatches(host)])
