# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Fill the run-time cache ahead of time: in a container layer, before the first user comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .arch import Capability, format_capability
from .fallback import fallback_image, supported_target, this_toolchain
from .loader import explain_installed
from .package import shipped_unit
from .selection import fallback_architecture
from .target import open_packages

__all__ = ["warm"]


def warm(
    where: str,
    capabilities: Sequence[Capability],
    driver: tuple[int, int] | None,
    progress: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Compile what the fallback would compile for devices of these capabilities.

    `driver` is the newest CUDA version of the driver to come. Without it no PTX is counted on, since an older driver
    than the compiler refuses it. Returns one row for each module and capability; its `outcome` is compiled, cached,
    image (a shipped image serves every kernel of the module), or nothing (nothing serves, and no source is shipped).
    Raises what a load would raise.
    """
    rows: list[dict[str, Any]] = []
    for package in open_packages(where):
        for module in package.manifest.modules:
            for capability in capabilities:
                row: dict[str, Any] = {
                    "package": package.name,
                    "module": module.name,
                    "compute_capability": format_capability(capability),
                }
                choices = [
                    explain_installed(package, f"{module.name}:{kernel}", capability, driver).choice
                    for kernel in module.kernels
                ]
                sure = ("cubin",) if driver is None else ("cubin", "ptx")
                served = [choice.arch for choice in choices if choice is not None and choice.kind in sure]
                if len(served) == len(choices) or package.manifest.fallback is None:
                    whole = all(choice is not None for choice in choices)
                    arch = next((choice.arch for choice in choices if choice is not None), "-")
                    rows.append({**row, "outcome": "image" if whole else "nothing", "arch": arch, "seconds": 0.0})
                    continue
                toolchain = this_toolchain()
                wanted = fallback_architecture(module.images, capability)
                target = supported_target(wanted, capability, driver or toolchain.version, toolchain)
                progress(f"{module.name} for compute capability {format_capability(capability)} ...")
                image, cached = fallback_image(shipped_unit(package, module), target)
                rows.append(
                    {
                        **row,
                        "outcome": "cached" if cached else "compiled",
                        "arch": str(image.architecture),
                        "seconds": 0.0 if cached else round(image.seconds, 6),
                    }
                )
    return rows
