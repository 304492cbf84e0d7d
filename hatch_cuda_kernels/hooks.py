# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The entry point of the group `hatch`."""

from __future__ import annotations

from hatchling.plugin import hookimpl

from .plugin import CudaKernelsHook

__all__ = ["hatch_register_build_hook"]


@hookimpl  # type: ignore[untyped-decorator, unused-ignore]
def hatch_register_build_hook() -> type[CudaKernelsHook]:
    """Tell hatchling of the build hook `cuda-kernels`."""
    return CudaKernelsHook
