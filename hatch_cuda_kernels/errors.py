# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Every error that this package raises on purpose, and the one category of its warnings."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable

__all__ = [
    "CompilationError",
    "ConfigurationError",
    "CudaKernelsError",
    "CudaKernelsWarning",
    "DriverError",
    "IntegrityError",
    "KernelNotFoundError",
    "ManifestError",
    "NoCompatibleImageError",
    "ToolchainError",
    "first_line",
    "numbered",
    "warn_once",
]


class CudaKernelsError(Exception):
    """Base of all errors here. The message says what, where and what to do next."""


class ConfigurationError(CudaKernelsError):
    """The hook table, an environment variable or the source tree cannot be used as written."""


class CompilationError(CudaKernelsError):
    """NVRTC refused a source, or produced something that is not what was asked for."""


class ToolchainError(CudaKernelsError):
    """NVRTC or the CUDA Python packages are missing, broken, or not the ones asked for."""


class ManifestError(CudaKernelsError):
    """A package has no manifest, or one that cannot be trusted to be read."""


class IntegrityError(CudaKernelsError):
    """An installed file is not the one that was built, and nothing else can serve."""


class KernelNotFoundError(CudaKernelsError, LookupError):
    """The package declares no kernel of that name, or more than one."""


class NoCompatibleImageError(CudaKernelsError):
    """No image runs on the device and the run-time fallback cannot be used."""


class DriverError(CudaKernelsError):
    """There is no usable NVIDIA driver or device, or the driver refused every image."""


class CudaKernelsWarning(UserWarning):
    """Category of every warning that this package gives."""


_warned: set[str] = set()


def warn_once(message: str) -> None:
    """Warn with CudaKernelsWarning, once per process for one message, at the line that called this package."""
    if message in _warned:
        return
    _warned.add(message)
    level, frame = 1, sys._getframe(0)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith((f"{__package__}.", "contextlib")):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, CudaKernelsWarning, stacklevel=level)


def first_line(error: BaseException) -> str:
    """The first line of what an error says, or its kind: for quoting the errors of libraries."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def numbered(headline: str, problems: Iterable[str], most: int | None = None) -> str:
    """One message out of several problems: a headline and a bullet for each; of `most` and more, how many more."""
    each = list(problems)
    more = [f"and {len(each) - most} more"] if most is not None and len(each) > most else []
    return "\n".join([headline, *(f"  - {problem}" for problem in [*each[:most], *more])])
