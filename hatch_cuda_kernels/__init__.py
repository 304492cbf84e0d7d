# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Ahead-of-time CUDA kernels in ordinary wheels.

This package is the run-time side: `load_kernel` gives an app the right kernel for the device at hand. The build hook
`cuda-kernels` is in `hatch_cuda_kernels.plugin`, the command line in `hatch_cuda_kernels.cli`. Importing this package
imports neither CUDA nor hatchling nor numpy.
"""

from __future__ import annotations

from ._version import __version__
from .arguments import check_arguments
from .errors import (
    CompilationError,
    ConfigurationError,
    CudaKernelsError,
    CudaKernelsWarning,
    DriverError,
    IntegrityError,
    KernelNotFoundError,
    ManifestError,
    NoCompatibleImageError,
    ToolchainError,
)
from .loader import explain, load_kernel, load_module
from .selection import Candidate, Selection

__all__ = [
    "Candidate",
    "CompilationError",
    "ConfigurationError",
    "CudaKernelsError",
    "CudaKernelsWarning",
    "DriverError",
    "IntegrityError",
    "KernelNotFoundError",
    "ManifestError",
    "NoCompatibleImageError",
    "Selection",
    "ToolchainError",
    "__version__",
    "check_arguments",
    "explain",
    "load_kernel",
    "load_module",
]
