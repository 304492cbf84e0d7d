# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The job of a unit by the tools of this environment, and what cannot be one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .arch import Architecture
from .plan import CompileJob, Unit
from .toolchain import Toolchain, linker_release

__all__ = ["make_job", "needs_optimization"]


def make_job(unit: Unit, architecture: Architecture, toolchain: Toolchain) -> CompileJob:
    """A unit for an architecture, with the linker that it needs. Raises ToolchainError where that is missing."""
    linker = linker_release() if unit.parts else ""
    return CompileJob(unit=unit, architecture=architecture, release=toolchain.release, linker=linker)


def needs_optimization(architecture: Architecture, options: Mapping[str, Any]) -> str | None:
    """Why several sources cannot be linked for an architecture with these options, or None."""
    if not architecture.virtual or options.get("link-time-optimization"):
        return None
    return (
        f"{architecture}: PTX of several sources needs link-time optimization; set it in the module's options, or give "
        "the module archs without PTX"
    )
