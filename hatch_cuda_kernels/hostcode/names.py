# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Names by which host code and device code are told apart where no declaration of them is at hand."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Mapping

__all__ = [
    "AFTER_PARAMETERS",
    "CUSTOMIZATIONS",
    "DEVICE_MACRO",
    "HOST",
    "HOST_HEADERS",
    "HOST_LIBRARIES",
    "HOST_MACROS",
    "HOST_MEMBERS",
    "HOST_NAMESPACES",
    "HOST_TYPES",
    "MACRO_NAME",
    "NOT_NAMES",
    "NO_SPACE",
    "SPACES",
    "looks_misspelt",
]

CUSTOMIZATIONS: Mapping[str, int | None] = {
    **dict.fromkeys(("swap", "iter_swap"), 2),
    **dict.fromkeys(("iter_move", "begin", "end", "rbegin", "rend", "size", "data", "empty", "get"), 1),
    "tag_invoke": None,
}
"""Functions that CUDA's libraries, and loops over ranges, look up by the types of arguments -> how many they give."""
SPACES = frozenset("__global__ __device__ __constant__ __shared__ __managed__".split())
HOST = "__host__"
DEVICE_MACRO = re.compile(
    r"(?!CUDA_[A-Z0-9_]+_(?:PARAMS|DESC)(?:_V\d)?\Z)[A-Z0-9_]*(?:DEVICE|HOSTDEV|HOST_DEV|_GLOBAL|GLOBAL_|_KERNEL|FUNC_QUALIFIER|FORCEINLINE_FUNCTION|INLINE_FUNCTION"
    r"|FN_ACC|_CCCL_API|_CUDA_HD)[A-Z0-9_]*\Z"
    r"|__hostdev__\Z|__hd__\Z|__device_builtin__\Z"
)
"""Names that libraries give to macros for device code, whose headers may not be at hand; no type of the driver."""

_ATTRIBUTES = frozenset(
    """
    alignas __align__ __attribute__ __attribute __declspec __launch_bounds__ __cluster_dims__ __block_size__
    __maxnreg__ __builtin_align__ decltype noexcept throw requires explicit _Pragma __pragma sizeof typeof
    __typeof__ asm __asm__ __asm static_assert _Static_assert if while for switch return catch
    """.split()
)
"""Words before a parenthesis that is not a list of parameters."""
NOT_NAMES = _ATTRIBUTES | frozenset(
    """
    void bool char short int long float double signed unsigned auto const volatile static extern inline constexpr
    consteval constinit virtual friend typedef using namespace template typename class struct union enum public
    private protected operator mutable register thread_local __restrict__ restrict __forceinline__ __inline__
    __noinline__ __host__ final override default delete new this true false nullptr
    """.split()
    + list(SPACES)
)
AFTER_PARAMETERS = frozenset("const volatile noexcept override final try requires throw mutable & :".split())

HOST_NAMESPACES = frozenset(
    "torch at c10 caffe2 aten pybind11 py nb nanobind boost testing benchmark grpc absl Eigen ranges filesystem".split()
)
HOST_MEMBERS = {
    "std": frozenset(
        """
        string wstring vector list forward_list deque map multimap set multiset unordered_map unordered_set
        unordered_multimap unordered_multiset queue stack priority_queue ostream istream iostream ofstream ifstream
        fstream stringstream ostringstream istringstream shared_ptr unique_ptr weak_ptr thread mutex recursive_mutex
        lock_guard unique_lock scoped_lock condition_variable future promise function any runtime_error logic_error
        exception invalid_argument out_of_range exception_ptr mt19937 mt19937_64 random_device default_random_engine
        uniform_real_distribution uniform_int_distribution normal_distribution regex filesystem ios_base cout cerr
        clog basic_ostream basic_istream basic_ostringstream basic_string endl error_code once_flag make_unique
        make_shared to_string getline
        """.split()
    ),
    "thrust": frozenset(
        "device_vector host_vector universal_vector device_allocator device_malloc_allocator cuda".split()
    ),
}
"""Namespace -> what it has on the host alone."""
HOST_TYPES = re.compile(
    r"FILE|PyObject|pthread_\w+|ostream|istream|glob_t|nvtx\w+|(?:cublas|cudnn|cusparse|cusolver|nccl|nvml)[A-Z]\w*"
    r"|cufft(?!(?:Double)?(?:Real|Complex)\Z)[A-Z]\w*|curandGenerator_t"
)

MACRO_NAME = re.compile(r"_*[A-Z][A-Z0-9_]{2,}\Z")
NO_SPACE = frozenset(
    """
    BOOL BYTE WORD DWORD HRESULT HANDLE WINAPI CALLBACK APIENTRY STDMETHODCALLTYPE TORCH_API TORCH_CUDA_CU_API
    TORCH_CUDA_CPP_API TORCH_EXTENSION_NAME CUDARTAPI CUDAAPI CUDA_CB CUBLASWINAPI PYBIND11_EXPORT CUDNNWINAPI
    JNIEXPORT JNICALL
    """.split()
)
"""Types and macros in capitals that put nothing on the device."""

HOST_MACROS = re.compile(
    r"PYBIND11_MODULE|PYBIND11_EMBEDDED_MODULE|NB_MODULE|(?:STD_|STABLE_)?TORCH_LIBRARY\w*|REGISTER_EXTENSION"
    r"|PyMODINIT_FUNC|TEST(?:_F|_P)?|TYPED_TEST(?:_SUITE)?|TEST_CASE|INSTANTIATE_TEST_(?:SUITE|CASE)_P|BENCHMARK\w*"
    r"|NVBENCH_BENCH\w*|XLA_FFI_DEFINE_HANDLER\w*|REGISTER_(?:OP|KERNEL_BUILDER)|DEFINE_\w*FLAG\w*"
    r"|BOOST_(?:CLASS|SERIALIZATION|IS_BITWISE|FUSION|PYTHON|GEOMETRY_REGISTER|(?:AUTO|FIXTURE|DATA)_TEST|TEST)_\w+"
    r"|TVM_FFI_[A-Z_]+|DEFINE_(?:bool|int32|int64|uint64|double|string)|main|wmain|_tmain"
)
"""Macros of host libraries that stand for declarations."""

HOST_HEADERS = re.compile(
    r"""
    (?:torch|ATen|c10|caffe2|pybind11|nanobind|THC|TH|boost|gtest|gmock|catch2|benchmark|nvbench|sanitizer|google|opencv2|opencv|absl|grpc|glog
      |gflags|fmt|spdlog|sys|netinet|arpa|linux|GL|GLFW|X11|mpi|tbb|omp|nvtx3|tensorflow|xla|jaxlib|paddle|c10d|range
      |Eigen|nlohmann|tvm|rapidjson|cereal|yaml-cpp|npp|EGL|GLES\d*)(?:/.*)?
    |(?:d3d|dxgi|D3D)\w*\.h
    |thrust/(?!(?:advance|complex|distance|functional|pair|tuple|version|zip_function)\.h|iterator/|type_traits/|detail/(?!vector_base\.h)).*
    |cub/(?:cub\.cuh|util_allocator\.cuh|device/.*)
    |(?:.*/)?\w+\.pb\.h|(?:\w+/)?(?:cblas\w*|lapacke?\w*|mkl\w*|openblas\w*|lmdb|leveldb/.*|hdf5\w*)\.h
    |(?:any|charconv|codecvt|condition_variable|coroutine|deque|execution|exception|experimental/.*|filesystem
      |format|forward_list|fstream|future|iomanip|ios|iosfwd|iostream|istream|list|locale|map|memory|memory_resource
      |mutex|new|ostream|print|queue|random|ranges|regex|scoped_allocator|set|shared_mutex|sstream|stack|stacktrace
      |stdexcept|stop_token|streambuf|string|strstream|syncstream|system_error|thread|typeindex|typeinfo|unordered_map
      |unordered_set|valarray|vector|version|csignal|csetjmp|clocale|cctype|cerrno|cfenv|cuchar|cwchar|cwctype
      |cinttypes|cstdarg|bits/.*)
    |(?:aio|alloca|byteswap|complex|conio|ctype|cpuid|cxxabi|direct|dirent|dlfcn|endian|err|errno|error|execinfo|fcntl|fenv
      |fnmatch|ftw|getopt|glob|iconv|immintrin|intrin|inttypes
      |libgen|locale|malloc|math_constants_host|memory|mm_malloc|mman|netdb|nmmintrin|omp|poll|process|pthread|pwd
      |sched|semaphore|setjmp|signal|stdarg|stdnoreturn|strings|syscall|sysexits|syslog|tchar|termios|tgmath|time_host
      |ucontext|unistd|utime|values|wchar|wordexp|Windows|windows|x86intrin|xmmintrin|emmintrin|zlib)\.h
    |(?:Python|numpy/.*|mex|matrix|gpu/mxGPUArray|structmember|mpi|nccl|nvml|cufile|nvToolsExt\w*|cuda_profiler_api
      |cudaProfiler|cublas\w*|cusparse\w*|cusolver\w*|cufft\w*|curand|cudnn\w*|nvjpeg\w*|npp\w*|nvrtc\w*|cupti\w*
      |cuda_(?:gl|egl|vdpau|d3d\w*)_interop|cuda(?:GL|EGL|VDPAU|D3D\w*|Profiler)?(?:Typedefs)?|nvJitLink|cutensor\w*|nvshmemx?|hip/.*|freeglut|glut)\.h(?:pp)?
    """,
    re.VERBOSE,
)
"""Headers that only host code can use and that NVRTC cannot read."""


HOST_LIBRARIES = re.compile(
    r"fmt/(?:args|base|chrono|color|compile|core|format|format-inl|os|ostream|printf|ranges|std|xchar)\.h"
    r"|(?:.*/)?\w+\.pb\.h|(?:google/protobuf|tvm/ffi|spdlog|nlohmann|gtest|gmock|catch2|pybind11|nanobind|absl|glog|gflags|rapidjson|cereal|yaml-cpp)/.+"
)
"""Headers of the host even where a project has them in its tree: of libraries that have no device code."""


@functools.lru_cache(maxsize=1024)
def looks_misspelt(word: str) -> bool:
    """Whether a reserved word that is none looks like an execution or memory space: it is not taken for the host's."""
    if not word.startswith("__") or word in NOT_NAMES or word in _ATTRIBUTES:
        return False
    return bool(difflib.get_close_matches(word.strip("_"), [space.strip("_") for space in SPACES], n=1, cutoff=0.8))
