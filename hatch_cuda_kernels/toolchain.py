# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Which NVRTC would compile here: its full release, known without loading it where that is safe."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from .arch import release_version
from .errors import ToolchainError, first_line

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "INSTALL_HINT",
    "LINKER_HINT",
    "LINKER_WHEELS",
    "Later",
    "Memory",
    "Toolchain",
    "check_pins",
    "detect",
    "import_nvrtc",
    "installed_release",
    "linker_release",
    "probe",
    "required_distributions",
    "wheel_of",
]

INSTALL_HINT = (
    "install the CUDA Python packages and NVRTC of one CUDA major, for example `pip install 'hatch-cuda-kernels[cu13]'`"
)

_DISTRIBUTIONS = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12")
"""Wheels that hold NVRTC, in the order in which cuda.pathfinder looks at their folders."""


LINKER_HINT = "install the extra `nvjitlink` of cuda-toolkit: `pip install 'cuda-toolkit[nvjitlink]'`"

LINKER_WHEELS = {"12": "nvidia-nvjitlink-cu12", "13": "nvidia-nvjitlink"}
"""CUDA major -> the wheel that holds nvJitLink. Its patch releases are not NVRTC's."""


@dataclass(frozen=True, kw_only=True)
class Toolchain:
    """One NVRTC."""

    release: str
    """Full release, such as 13.5.37: patch releases give different code under one version pair."""
    supported: tuple[int, ...]
    """Base architectures that it compiles for: 75, 80, ..."""
    library: str
    """Path of the library, for messages; empty where it is not known."""

    @property
    def version(self) -> tuple[int, int]:
        """CUDA version, (major, minor)."""
        return release_version(self.release)


class Memory(Protocol):
    """Where small facts about a release are remembered between processes; see cache.py."""

    def recall(self, key: str) -> bytes | None:
        """The remembered bytes, or None."""

    def remember(self, key: str, value: bytes) -> None:
        """Remember; never raises."""


class Later:
    """A memory that remembers at the end: what keeps the facts takes longer to load than NVRTC takes to tell them."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._facts: dict[str, bytes] = {}

    def recall(self, key: str) -> bytes | None:
        """See Memory."""
        return self._memory.recall(key)

    def remember(self, key: str, value: bytes) -> None:
        """See Memory."""
        self._facts[key] = value

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        for key, value in self._facts.items() if kind is None or issubclass(kind, Exception) else ():
            self._memory.remember(key, value)


def import_nvrtc() -> Any:
    """The module `cuda.bindings.nvrtc`, with its library loaded. Raises ToolchainError where either is missing."""
    try:
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise ToolchainError(f"cuda-bindings cannot be imported ({error}); {INSTALL_HINT}") from None
    _load_nvrtc_from_overlay()
    try:
        status, *_ = nvrtc.nvrtcVersion()
    except Exception as error:  # pathfinder and the bindings raise several kinds, RuntimeError among them
        raise ToolchainError(f"NVRTC cannot be loaded ({first_line(error)}); {INSTALL_HINT}") from None
    if status:
        raise ToolchainError(f"NVRTC does not answer ({status}); {INSTALL_HINT}")
    return nvrtc


@functools.lru_cache(maxsize=1)
def _load_nvrtc_from_overlay() -> None:
    installed = installed_release()
    if installed:
        builtins = [path for path in Path(installed[1]).parent.glob("*nvrtc-builtins*") if ".alt" not in path.name]
        _load_from_overlay(*map(str, builtins), installed[1])  # some releases do not find their built-ins by themselves


def _load_from_overlay(*libraries: str) -> None:
    """Load libraries of a wheel that lies outside the interpreter's own site-packages, such as pip's build environment.

    cuda.pathfinder looks into the interpreter's site-packages only, but takes a library that is loaded already.
    """
    import ctypes
    import site

    own = [*site.getsitepackages(), site.getusersitepackages()]
    if not any(Path(libraries[-1]).is_relative_to(folder) for folder in own):
        with contextlib.suppress(OSError):
            for library in libraries:
                ctypes.CDLL(library)


@functools.lru_cache(maxsize=1)
def probe() -> Toolchain:
    """Ask the NVRTC that this process loads.

    Where it is the library of an installed wheel, that wheel tells its release, and every image of CUDA 13 is held
    against it (nvrtc.py); images of CUDA 12 do not all tell theirs. Otherwise the release stands in the head of PTX
    that it writes.
    """
    nvrtc = import_nvrtc()
    error, supported = nvrtc.nvrtcGetSupportedArchs()
    library = _loaded_library()
    release = None
    installed = installed_release()
    if not error and installed and library and release_version(installed[0]) >= (13, 0):
        with contextlib.suppress(OSError):
            release = installed[0] if os.path.samefile(library, installed[1]) else None
    if not error and release is None:
        from .cubin import read_ptx

        text = b'extern "C" __global__ void probe() {}'
        _, program = nvrtc.nvrtcCreateProgram(text, b"probe.cu", 0, [], [])
        options = [f"-arch=compute_{supported[-1]}".encode()]
        (error,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        if not error:
            _, size = nvrtc.nvrtcGetPTXSize(program)
            data = b"\0" * size
            nvrtc.nvrtcGetPTX(program, data)
            release = read_ptx(data).release
        nvrtc.nvrtcDestroyProgram(program)
    if release is None:
        raise ToolchainError(
            f"NVRTC {library or ''} cannot compile an empty kernel ({error}); is its libnvrtc-builtins missing? "
            f"{INSTALL_HINT}"
        )
    return Toolchain(release=release, supported=tuple(supported), library=library)


def _loaded_library() -> str:
    from cuda.pathfinder import load_nvidia_dynamic_lib

    try:
        return str(load_nvidia_dynamic_lib("nvrtc").abs_path or "")
    except Exception:  # only for messages
        return ""


def installed_release() -> tuple[str, str] | None:
    """(release, library) of the NVRTC wheel that would be loaded, from its metadata; None where no wheel has it."""
    return _wheel_library(_DISTRIBUTIONS, ("libnvrtc.so", "nvrtc64_"))


def _wheel_library(distributions: Sequence[str], names: tuple[str, ...]) -> tuple[str, str] | None:
    """(version, path) of the library, by the start of its name, that the first of these distributions installed.

    The library's size has to be the one that the wheel recorded: a file put over it is not trusted to be that version.
    """
    for name in distributions:
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        for file in distribution.files or ():
            if file.name.startswith(names) and ".alt" not in file.name:
                path = Path(str(distribution.locate_file(file)))
                if path.is_file() and file.size == path.stat().st_size:
                    return distribution.version, str(path)
    return None


def detect(memory: Memory, ask: Callable[[], Toolchain]) -> Toolchain:
    """The NVRTC of this environment, without loading it where its wheel and `memory` know enough.

    `ask` gives what NVRTC itself says; in a build it runs in a worker process.
    """
    installed = installed_release()
    if installed is None:
        return _detect_elsewhere(memory, ask)
    release, library = installed
    key = f"toolchain {release}"
    remembered = _parse(memory.recall(key))
    if remembered is not None:
        return Toolchain(release=release, supported=remembered, library=library)
    asked = ask()
    if asked.release != release:
        raise ToolchainError(
            f"two NVRTC: the installed wheel is {release} ({library}), but {asked.release} was loaded "
            f"({asked.library or 'path unknown'}); remove the one that is not wanted from this environment"
        )
    memory.remember(key, json.dumps(asked.supported).encode())
    return asked


def _detect_elsewhere(memory: Memory, ask: Callable[[], Toolchain]) -> Toolchain:
    """An NVRTC that no wheel brought, such as conda's: known again by the digest of its library.

    What was loaded last time in such surroundings is remembered with its path; the file has to be the same still.
    """
    names = ("CONDA_PREFIX", "CUDA_PATH", "CUDA_HOME", "LD_LIBRARY_PATH", "PATH" if os.name == "nt" else "")
    surroundings = hashlib.sha256(repr([sys.prefix, *(os.environ.get(name) for name in names)]).encode()).hexdigest()
    key = f"toolchain at {surroundings}"
    try:
        known = json.loads(memory.recall(key) or b"null")
        if known and _digest(known["library"]) == known["digest"]:
            supported = tuple(int(number) for number in known["supported"])
            return Toolchain(release=str(known["release"]), supported=supported, library=str(known["library"]))
    except (OSError, ValueError, KeyError, TypeError):
        pass
    asked = ask()
    with contextlib.suppress(OSError):
        value = {"library": asked.library, "digest": _digest(asked.library)}
        value |= {"release": asked.release, "supported": list(asked.supported)}  # type: ignore[dict-item]
        memory.remember(key, json.dumps(value).encode())
    return asked


def _digest(library: str) -> str:
    """SHA-256 of a library and of NVRTC's built-ins beside it, in hex."""
    path = Path(library)
    state = hashlib.sha256()
    for file in [path, *sorted(path.parent.glob("*nvrtc-builtins*"))]:
        with file.open("rb") as stream:
            while block := stream.read(1 << 22):
                state.update(block)
    return state.hexdigest()


def _parse(data: bytes | None) -> tuple[int, ...] | None:
    try:
        value = json.loads(data) if data else None
    except ValueError:
        return None
    if isinstance(value, list) and value and all(type(number) is int for number in value):
        return tuple(value)
    return None


@functools.lru_cache(maxsize=1)
def linker_release() -> str:
    """What tells the nvJitLink of this process from others: its wheel's release, else the digest of its library."""
    found = (_wheel_library([name], ("libnvJitLink.so", "nvJitLink_")) for name in LINKER_WHEELS.values())
    wheels = [wheel for wheel in found if wheel is not None]
    for _, library in wheels:
        _load_from_overlay(library)
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        path = str(load_nvidia_dynamic_lib("nvJitLink").abs_path)
        own = [release for release, library in wheels if os.path.samefile(library, path)]
        return own[0] if own else f"sha256 {_digest(path)}"
    except Exception as error:  # pathfinder raises several kinds
        reason = first_line(error)
        raise ToolchainError(f"a module of several sources needs nvJitLink ({reason}); {LINKER_HINT}") from None


def check_pins(toolchain: Toolchain, *, cuda: str | None, nvrtc: str | None, where: str) -> None:
    """Raise ToolchainError where this NVRTC is not the one that the hook table asks for."""
    found = f"this environment has NVRTC {toolchain.release}" + (f" ({toolchain.library})" if toolchain.library else "")
    if nvrtc is not None and toolchain.release != nvrtc:
        raise ToolchainError(
            f'{where}.nvrtc asks for {nvrtc}, but {found}; build in isolation, or `pip install "{wheel_of(nvrtc)}"`'
        )
    if cuda is not None and str(toolchain.version[0]) != cuda:
        raise ToolchainError(
            f"{where}.cuda asks for CUDA {cuda}, but {found}; build in isolation, or install the extra cu{cuda}"
        )


def wheel_of(release: str) -> str:
    """Requirement for the wheel of one exact NVRTC release."""
    name = "nvidia-cuda-nvrtc" if int(release.split(".")[0]) >= 13 else "nvidia-cuda-nvrtc-cu12"
    return f"{name}=={release}"


def required_distributions(cuda: str, nvrtc: str | None, mentions: Mapping[str, bool]) -> list[str]:
    """What an isolated build has to install to compile: the compiler, its bindings, and headers that it lacks.

    NVRTC 13.3 and newer carries most headers; what it lacks (`cuda_runtime.h` and curand) comes from wheels.
    `mentions` says which header families the project's sources name, and whether anything is linked.
    """
    requirements = ["cuda-core>=1.2,<2"]
    minor = ".".join(nvrtc.split(".")[:2]) if nvrtc else None
    extras = ["cudart"]
    if cuda == "12":
        requirements += ["cuda-bindings>=12.9.3,<13", wheel_of(nvrtc) if nvrtc else "nvidia-cuda-nvrtc-cu12>=12.9,<13"]
        extras += ["cccl", "nvcc"]
    else:
        requirements += ["cuda-bindings>=13.0.2,<14", wheel_of(nvrtc) if nvrtc else "nvidia-cuda-nvrtc>=13.3,<14"]
        if nvrtc and tuple(map(int, nvrtc.split(".")[:2])) < (13, 3):
            extras += ["cccl", "crt"]
    if mentions.get("curand"):
        extras.append("curand")
    version = f"=={minor}.*" if minor else ">=12.9,<13" if cuda == "12" else ">=13.3,<14"
    if mentions.get("nvjitlink"):
        requirements.append(f"{LINKER_WHEELS[cuda]}{version}")
    return [*requirements, f"cuda-toolkit[{','.join(sorted(extras))}]{version}"]
