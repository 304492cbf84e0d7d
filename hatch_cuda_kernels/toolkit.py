# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""CUDA's and CCCL's own headers: where they are, and what of the installed ones a compile may depend on.

NVRTC 13.3 and newer carries a set of them, always of its own version. Those of installed NVIDIA wheels are found by
cuda.pathfinder; a toolkit of the system is not used, so that a build does not depend on what else the machine has.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import ToolchainError

__all__ = [
    "ANY_HEADER",
    "HeaderRoot",
    "Headers",
    "carries_headers",
    "digest_header",
    "digest_roots",
    "find_header",
    "installed_roots",
    "is_toolkit_folder",
    "wants_bundled",
    "wants_installed",
]

ANY_HEADER = "*"
"""Stands for all headers of the installed wheels, where it is not known which of them were read."""

_FIRST_WITH_HEADERS = (13, 3)
_LIBRARIES = ("cudart", "cccl", "nvcc", "curand")
_WHEEL_FOLDERS = (
    ("nvidia/cu13/include", "cuda_runtime.h"),
    ("nvidia/cu13/include/cccl", "cub/cub.cuh"),
    ("nvidia/cuda_runtime/include", "cuda_runtime.h"),
    ("nvidia/cuda_cccl/include", "cub/cub.cuh"),
    ("nvidia/cuda_nvcc/include", "crt/host_defines.h"),
    ("nvidia/curand/include", "curand_kernel.h"),
)
"""Folder of a wheel, and a header that tells it from one that only shares the name."""
_WHEELS = ("site-packages", "conda")


@dataclass(frozen=True, kw_only=True)
class HeaderRoot:
    """A folder of toolkit headers, and the CUDA version that it says it is of, if it does."""

    path: str
    version: tuple[int, int] | None


def carries_headers(version: tuple[int, int]) -> bool:
    """Whether an NVRTC of that CUDA version carries headers."""
    return version >= _FIRST_WITH_HEADERS


def wants_bundled(mode: str, version: tuple[int, int]) -> bool:
    """Whether a module with this `toolkit-headers` is shown the headers that NVRTC carries."""
    if mode == "bundled" and not carries_headers(version):
        raise ToolchainError(
            f"toolkit-headers = 'bundled' needs NVRTC 13.3 or newer, and this is {version[0]}.{version[1]}; "
            "use 'auto' or 'installed'"
        )
    return mode == "bundled" or (mode == "auto" and carries_headers(version))


def wants_installed(mode: str) -> bool:
    """Whether a module with this `toolkit-headers` is shown the headers of installed wheels."""
    return mode in ("auto", "installed")


def is_toolkit_folder(path: str) -> bool:
    """Whether a path in site-packages is one of a wheel of the toolkit's."""
    return any(f"{path.rstrip('/')}/".startswith(f"{folder}/") for folder, _ in _WHEEL_FOLDERS)


@functools.lru_cache(maxsize=1)
def installed_roots() -> tuple[HeaderRoot, ...]:
    """Header folders of installed NVIDIA wheels (or of the conda environment), in the order they are searched.

    cuda.pathfinder does not see wheels outside the interpreter's own site-packages, such as those of pip's build
    environment: these are found along sys.path, first.
    """
    paths: dict[str, None] = {}
    for entry in sys.path:
        for folder, header in _WHEEL_FOLDERS:
            if Path(entry, folder, header).is_file():
                paths[str(Path(entry, folder))] = None
    if not paths:
        with contextlib.suppress(ImportError):
            from cuda.pathfinder import locate_nvidia_header_directory

            for name in _LIBRARIES:
                found = locate_nvidia_header_directory(name)
                if found is not None and found.found_via in _WHEELS and found.abs_path:
                    paths[found.abs_path] = None
    return tuple(HeaderRoot(path=path, version=_version(Path(path))) for path in paths)


def _version(root: Path) -> tuple[int, int] | None:
    for name, macro in (("cuda_runtime_api.h", "CUDART_VERSION"), ("cuda.h", "CUDA_VERSION")):
        try:
            text = (root / name).read_text("utf-8", "replace")
        except OSError:
            continue
        if match := re.search(rf"^#define\s+{macro}\s+(\d+)", text, re.MULTILINE):
            return int(match[1]) // 1000, int(match[1]) % 1000 // 10
    return None


def find_header(name: str, roots: Sequence[HeaderRoot]) -> Path | None:
    """The file that `#include <name>` finds in `roots`, or None. An absolute name needs no root."""
    for folder in [""] if os.path.isabs(name) else [root.path for root in roots]:
        if os.path.isfile(path := os.path.join(folder, name)):
            return Path(path)
    return None


@functools.lru_cache(maxsize=8192)
def _digest(path: str, size: int, modified: int) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def digest_header(path: Path) -> str:
    """SHA-256 of a header, in hex. Computed once per process as long as the file does not change."""
    status = os.stat(path)
    return _digest(str(path), status.st_size, status.st_mtime_ns)


@functools.lru_cache(maxsize=4)
def digest_roots(roots: Sequence[HeaderRoot]) -> str:
    """SHA-256 over names and contents of everything below `roots`, in hex. Computed once per process."""
    state = hashlib.sha256()
    for index, root in enumerate(roots):
        for folder, directories, names in os.walk(root.path):
            directories.sort()
            for name in sorted(names):
                path = Path(folder, name)
                with contextlib.suppress(OSError):
                    inside = f"{index} {path.relative_to(root.path).as_posix()} {digest_header(path)}\n"
                    state.update(inside.encode("utf-8", "surrogateescape"))
    return state.hexdigest()


class Headers:
    """The installed headers as they are now, for what asks for the same ones many times: each is looked for once."""

    def __init__(self) -> None:
        self._digests: dict[str, str | None] = {}

    def digest(self, name: str) -> str | None:
        """SHA-256 of what `#include <name>` finds, in hex; None where it finds nothing. Raises OSError."""
        if name not in self._digests:
            path = find_header(name, installed_roots())
            self._digests[name] = None if path is None else digest_header(path)
        return self._digests[name]

    def digest_all(self) -> str:
        """See digest_roots."""
        return digest_roots(installed_roots())
