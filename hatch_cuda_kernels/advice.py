# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What to say when NVRTC refuses a source: its own words, how it got there, and what to do where the cause is known."""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Collection
from pathlib import Path

from .arch import release_version
from .installed import INSTALLED, libraries_of
from .libraries import undefined_macros
from .plan import CompileJob, Unit
from .sources import join_label, walk_files
from .toolkit import carries_headers, installed_roots

__all__ = [
    "NO_LAUNCHES",
    "folders_that_hold",
    "macros_of_libraries",
    "missing_headers",
    "refusal_message",
    "repeat_command",
    "undefined_names",
]
_SHOWN = 100
NO_LAUNCHES = (
    "a kernel that launches kernels (dynamic parallelism) is not supported, since the device runtime is no part of an "
    "image; launch from the host, or call a __device__ function"
)


def refusal_message(job: CompileJob, log: str, absent: Collection[str] = ()) -> str:
    """NVRTC's message with what was being compiled, how it got there, and a hint where the cause is known.

    `absent` are names that the files declare for the host.
    """
    message = f"{job}: NVRTC refuses {job.unit.source}\n{_shortened(log)}"
    if (place := re.search(r"^(.+?)\(\d+\): (?:catastrophic )?error", log, re.MULTILINE)) and (
        chain := _chain(job.unit, place[1])
    ):
        message += f"\n{' <- '.join(chain)} (what includes what)"
    hint = _hint(job, log, absent)
    return f"{message}\nhint: {hint}" if hint else message


def _shortened(log: str) -> str:
    """A log up to its hundredth error: what comes after that mostly follows from these."""
    errors = list(re.finditer(r"^[^\n()]*\(\d+\): (?:catastrophic )?error", log, re.MULTILINE))
    if len(errors) <= _SHOWN:
        return log
    return f"{log[: errors[_SHOWN].start()].rstrip()}\nand {len(errors) - _SHOWN} more errors"


def undefined_names(log: str) -> list[str]:
    """Names that a log says nothing declares."""
    return list(dict.fromkeys(re.findall(r'identifier "(\w+)" is undefined', log)))


def macros_of_libraries(unit: Unit, said: str) -> str:
    """The macros that a library's own builds define, where the compiler finds an operator of one of its types twice."""
    if "more than one" not in said:
        return ""
    return "; ".join(undefined_macros(libraries_of(unit.include_dirs), unit.defines))


def missing_headers(text: str) -> list[str]:
    """Headers that a message says could not be opened."""
    return list(dict.fromkeys(re.findall(r'(?:cannot|could not) open source file "([^"]+)"', text)))


def folders_that_hold(header: str, root: Path) -> list[str]:
    """Folders of a project from which `#include` finds a header, as `include-dirs` would name them."""
    ending = "/" + header.lstrip("./")
    found = [f"/{path}" for path in walk_files(root) if f"/{path}".endswith(ending)]
    return sorted(path[: -len(ending)].lstrip("/") or "." for path in found)


def repeat_command(job: CompileJob) -> str:
    """The command line that compiles one job again, alone, in the project's root."""
    unit = job.unit
    sources = [part.source for part in unit.parts or (unit,)]
    words = ["hatch-cuda-kernels", "compile", *sources, "--arch", str(job.architecture)]
    for folder in unit.include_dirs:
        installed = folder.startswith(f"{INSTALLED}/")
        words += ["--include-package", folder.removeprefix(f"{INSTALLED}/")] if installed else ["-I", folder]
    for name, value in sorted(unit.defines.items()):
        words += ["-D", name if value is True else f"{name}={value}"]
    for option, given in sorted(unit.options.items()):
        words += ["--option", f"{option}={json.dumps(given)}"]
    for expression in unit.name_expressions:
        words += ["--name-expression", expression]
    if unit.toolkit_headers != "auto":
        words += ["--toolkit-headers", unit.toolkit_headers]
    if unit.host_code != "skip":
        words += ["--host-code", unit.host_code]
    return shlex.join(words)


# -- hints -------------------------------------------------------------------------------------------------------


def _hint(job: CompileJob, log: str, absent: Collection[str]) -> str:
    if missing := missing_headers(log):
        return _REMOVED.get(missing[0]) or _header_hint(job, missing[0])
    if log.startswith("__nv_nvrtc_builtin_header.h") and job.unit.defines:
        return (
            f"a macro ({', '.join(sorted(job.unit.defines))}) changes NVRTC's own header; give it a longer name, "
            "which no header uses"
        )
    if match := re.search(r"Instruction '([^']+)' not supported on \.target '(sm_(\d+))'", log):
        return _instruction_hint(match[1], match[2], int(match[3]))
    if match := re.search(r"(?:Feature|Instruction) '([^']+)' requires \.target (sm_(\d+)\w*)", log):
        return (
            f"{match[1]} begins with {match[2]}; put it between #if __CUDA_ARCH__ >= {match[3]}0 and #endif, or leave "
            f"{job.architecture} out of archs"
        )
    if doubled := macros_of_libraries(job.unit, log):
        return doubled
    for pattern, text in _CAUSES.items():
        if re.search(pattern, log):
            return text
    undefined = [name for name in undefined_names(log) if name not in absent]
    if called := [name for name in undefined if name in _DEVICE_RUNTIME]:
        return f"{', '.join(called)} in device code needs the device runtime: {NO_LAUNCHES}"
    for name in undefined:
        if name in _DECLARED_BY:
            return f"{name} is declared by <{_DECLARED_BY[name]}>, which this file does not include"
    settings = [name for name in undefined if not _NO_SETTING.fullmatch(name) and not _is_brought(job.unit, name)]
    macros = [name for name in settings if re.fullmatch(r"_*[A-Z][A-Z0-9_]+", name)]
    named = (macros or settings)[:4]
    line = "defines = { " + ", ".join(f'{name} = "..."' for name in named) + " }"
    if macros:
        return (
            f"{', '.join(named)}: a macro that a program sets when it compiles at run time, or that a build passes "
            f"with -D, goes into the table defines: {line}"
        )
    if settings and settings == undefined:  # a type that is not there takes its variables with it
        return (
            f"nothing here declares {', '.join(named)}; what a program sets when it compiles at run time is written as "
            f"{line}, and text that it puts before the source into a header that options.pre-include names"
        )
    return ""


def _instruction_hint(instruction: str, target: str, number: int) -> str:
    if number < 90:
        return f"{instruction} is of a newer architecture; put it behind a test of __CUDA_ARCH__, or leave {target} out"
    return (
        f"{instruction} may be architecture-specific: it then needs the suffix, {target}a (or {target}f from sm_100 "
        f"on; as PTX compute_{number}a), in archs in place of {target}"
    )


_NO_REFERENCES = (
    "texture and surface references are gone since CUDA 12, from nvcc as well; give the kernel a cudaTextureObject_t "
    "or cudaSurfaceObject_t as a parameter"
)
_REMOVED = {
    **dict.fromkeys(("texture_fetch_functions.h", "surface_functions.h"), _NO_REFERENCES),
    "nvfunctional": "nvstd::function is gone since CUDA 13, from nvcc too; take the callable as a template parameter",
}
"""Headers that the toolkit had once -> what to do."""

_CAUSES = {
    r"(?m)^\S*\bEigen/src/\S+: error": (
        "Eigen's headers need a host compiler, which NVRTC is not. Where host code alone uses them, leave their folder "
        "out of include-dirs, and they are passed over; where kernels do, give these plain arrays or types of cuda::std"
    ),
    r"(?:texture|surface) is not a template|identifier \"(?:texture|surface)\"": _NO_REFERENCES,
    r"--device-int128": "set options.device-int128 = true: nvcc for Linux has 128-bit integers unasked, NVRTC has not",
    r"requires at least C\+\+ ?\d\d": (
        "the C++ library of device code is CUDA's own, which needs a newer standard than the host's library; set "
        'options.std = "c++17", or a later one'
    ),
    r"#error directive: [^\n]*(?:extended[- ]lambda|expt-extended-lambda)": (
        "NVRTC has no --extended-lambda, for which nvcc defines a macro; where the file has such lambdas for host code "
        "alone, define that: defines = { __CUDACC_EXTENDED_LAMBDA__ = true }"
    ),
    r"static and nonstatic member functions with same parameter types cannot be overloaded": (
        "nvcc tells such templates apart by what they are constrained with, and NVRTC does not; give one of them "
        "another template parameter, class = void"
    ),
    r"annotation on lambda is not allowed": (
        "NVRTC has no extended lambdas (nvcc's --extended-lambda); inside a kernel leave the annotation out, for a "
        "lambda there is device code; elsewhere write a struct with a __device__ operator()"
    ),
    r"device-side kernel launch|requires separate compilation mode": NO_LAUNCHES,
    r"ptxas fatal\s*: Unknown option": (
        "ptxas-options takes options of ptxas; those of nvcc are keys of the table options, under cuda.core's names"
    ),
    r"without execution space annotations[^\n]*\n\s*(?:static |inline |template *<[^\n]*> *)*constexpr": (
        "NVRTC has no --expt-relaxed-constexpr; declare the function __host__ __device__, or set "
        "options.device-as-default-execution-space = true"
    ),
    r"execution space|host function|host variable": (
        "this is host code, which NVRTC does not compile; guard it with #ifndef __CUDACC_RTC__, or move the kernels "
        "into a file of their own"
    ),
    r'namespace "cub" has no member "(?:Sum|Max|Min|Difference|Division|Equality|Inequality)"': (
        "CUB has no operators of its own since CUDA 13, with nvcc too; take cuda::std::plus<>, minus<>, divides<>, "
        "equal_to<> and not_equal_to<> of <cuda/std/functional>, cuda::maximum<> and minimum<> of <cuda/functional>, "
        'or compile with cuda = "12"'
    ),
    r'namespace "std" has no member': (
        "device code has the C++ library as cuda::std, from <cuda/std/...>; what is for the host alone has no "
        "counterpart"
    ),
}
"""What a log says -> what to do; the first that is found."""

_DEVICE_RUNTIME = frozenset(
    """
    cudaMalloc cudaFree cudaMemcpyAsync cudaMemsetAsync cudaDeviceSynchronize cudaGetLastError cudaPeekAtLastError
    cudaStreamCreateWithFlags cudaStreamDestroy cudaEventCreateWithFlags cudaEventRecord cudaGetParameterBuffer
    cudaLaunchDevice
    """.split()
)

_DECLARED_BY = {
    **dict.fromkeys(("half", "half2", "__half", "__half2", "__float2half", "__half2float", "__hadd"), "cuda_fp16.h"),
    **dict.fromkeys(("__nv_bfloat16", "__nv_bfloat162", "__float2bfloat16", "__bfloat162float"), "cuda_bf16.h"),
    **dict.fromkeys(("__nv_fp8_e4m3", "__nv_fp8_e5m2"), "cuda_fp8.h"),
    **dict.fromkeys(("curandState", "curandState_t", "curand_init"), "curand_kernel.h"),
    **dict.fromkeys(("cooperative_groups", "cg"), "cooperative_groups.h"),
    **dict.fromkeys(("nvcuda", "wmma"), "mma.h"),
}


_NO_SETTING = re.compile(r"__\w+|FILE|DIR")
"""Names of the compiler and of the host's C library: no program sets one."""


def _is_brought(unit: Unit, name: str) -> bool:
    """Whether a macro of the files may declare a name that is given to it: `MAKE_ENUM(Mode, ...)`."""
    use = re.compile(rb"^[ \t]*(\w+)[ \t]*\([^;{}]*?\b%s\b" % name.encode(), re.MULTILINE)
    texts = [file.data for file in unit.closure.files.values()]
    used = {match[1] for text in texts for match in use.finditer(text)}
    return any(re.search(rb"#[ \t]*define[ \t]+%s\(" % macro, text) for macro in used for text in texts)


def _header_hint(job: CompileJob, name: str) -> str:
    if name in _HOST_HEADERS:
        return (
            f"<{name}> is a header of the host, which device code cannot use; guard its include with "
            "#ifndef __CUDACC_RTC__, or use a counterpart in <cuda/std/...>"
        )
    if job.unit.toolkit_headers == "none":
        return f"toolkit-headers is 'none', so {name} has to be in a folder of include-dirs"
    if not carries_headers(release_version(job.release)) and not installed_roots():
        return (
            f"NVRTC {job.release} carries no headers and none are installed; install the extra "
            f"cu{job.release.split('.')[0]}, or add the folder of {name} to include-dirs"
        )
    if name.startswith(("cuda/", "cub/", "thrust/", "nv/")):
        return f"{name} is of CCCL; install a nvidia-cuda-cccl that has it, or add its folder to include-dirs"
    if re.fullmatch(r"helper_\w+\.h", name):
        return f"{name} is of NVIDIA's samples; copy it into the project, and add its folder to include-dirs"
    if wheel := next((wheel for wheel, names in _WHEELS.items() if names.fullmatch(name)), None):
        major = job.release.split(".")[0]
        wheel = f"{wheel}-cu12" if major == "12" else wheel
        if job.unit.toolkit_headers == "bundled":
            return f"NVRTC carries no {name}; set toolkit-headers to 'auto', which takes it from {wheel}"
        return f"{name} is in the package {wheel}; install it, or name it in build-system.requires"
    return (
        f"add the folder that holds {name} to include-dirs (paths from the project's root), or the installed package "
        "that brings it to include-packages"
    )


_WHEELS = {
    "nvidia-curand": re.compile(r"curand\w*\.h"),
    "nvidia-cuda-crt": re.compile(r"crt/\w+\.hp?p?"),
    "nvidia-cuda-runtime": re.compile(
        r"(?:cuda_runtime(?:_api)?|cuda_device_runtime_api|device_launch_parameters|vector_(?:types|functions)|sm_\d+_\w+"
        r"|device_\w*functions|math_(?:functions|constants)|(?:texture|surface)_\w+|(?:builtin|driver|library)_types"
        r"|channel_descriptor|host_defines|cuComplex)\.hp?p?"
    ),
}
"""Package -> headers of the toolkit that it has and that NVRTC may not carry."""


def _chain(unit: Unit, label: str) -> list[str]:
    """A shortest way of includes from a project header back to the source; empty for the source itself."""
    came: dict[str, str] = {}
    pending = [unit.source]
    for current in pending:
        for include in unit.closure.files[current].scan.includes:
            folders = [posixpath.dirname(current)] if include.quoted else []
            found = (join_label(folder, include.spelling) for folder in (*folders, *unit.include_dirs))
            target = next((name for name in found if name in unit.closure.files), None)
            if target is not None and target not in came and target != unit.source:
                came[target] = current
                pending.append(target)
    chain = [label]
    while chain[-1] in came:
        chain.append(came[chain[-1]])
    return chain if len(chain) > 1 else []


_HOST_HEADERS = frozenset(
    """
    any codecvt condition_variable coroutine csetjmp csignal cstdarg cwchar deque exception execution filesystem format
    forward_list fstream future iomanip ios iosfwd iostream istream list locale map memory memory_resource mutex new
    ostream queue random ranges regex scoped_allocator set shared_mutex sstream stack stdexcept stop_token streambuf
    string strstream syncstream system_error thread typeindex typeinfo unordered_map unordered_set valarray vector
    errno.h fcntl.h pthread.h signal.h sys/time.h sys/types.h unistd.h windows.h cuda.h
    """.split()
)
