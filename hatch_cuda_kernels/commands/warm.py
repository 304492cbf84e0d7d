# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Fill the run-time cache ahead of time: in a container layer, before the first user comes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..arch import Architecture, Capability, format_capability
from ..catalog import Live
from ..display import print_json, printable
from ..fallback import fallback_image, supported_target, this_toolchain
from ..loader import explain_installed
from ..manifest import Module
from ..package import InstalledPackage, shipped_unit
from ..plan import Unit
from ..selection import fallback_architecture
from .target import editable_install, open_packages

__all__ = ["run", "warm"]


def run(
    *,
    target: str,
    package: str | None,
    capabilities: Sequence[Capability],
    driver: tuple[int, int] | None,
    as_json: bool,
) -> int:
    """Fill the cache for these capabilities, or for the devices of this machine."""
    if not capabilities:
        from ..driver import device_capabilities

        capabilities = list(dict.fromkeys(device_capabilities()))
    live = editable_install(target)
    sources: Sequence[InstalledPackage | Live] = [live] if live else open_packages(target, package)
    rows = warm(sources, capabilities, driver, lambda text: print(text, file=sys.stderr))
    compiled = sum(row["outcome"] == "compiled" for row in rows)
    cached = sum(row["outcome"] == "cached" for row in rows)
    if as_json:
        print_json({"schema": 1, "compiled": compiled, "cached": cached, "modules": rows})
    else:
        for row in rows:
            took = f" in {row['seconds']:.2f} s" if row["outcome"] == "compiled" else ""
            text = f"{row['module']} for {row['compute_capability']}: {row['outcome']} ({row['arch']}){took}"
            print(printable(text))
        served = sum(row["outcome"] == "image" for row in rows)
        print(f"{compiled} compiled, {cached} cached, {served} served by an image")
    return 1 if any(row["outcome"] == "nothing" for row in rows) else 0


def warm(
    sources: Sequence[InstalledPackage | Live],
    capabilities: Sequence[Capability],
    driver: tuple[int, int] | None,
    progress: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Compile what a load would compile on devices of these capabilities.

    `driver` is the newest CUDA version of the driver to come. Without it no PTX is counted on, since an older driver
    than the compiler refuses it. Returns one row for each module and capability; its `outcome` is compiled, cached,
    image (a shipped image serves every kernel of the module), or nothing (nothing serves, and no source is shipped).
    Raises what a load would raise.
    """
    rows: list[dict[str, Any]] = []
    for source in sources:
        for row, work in _tasks(source, capabilities, driver):
            if work is not None:
                progress(printable(f"{row['module']} for compute capability {row['compute_capability']} ..."))
                image, cached = fallback_image(*work)
                row["outcome"] = "cached" if cached else "compiled"
                row["arch"], row["seconds"] = str(image.architecture), 0.0 if cached else round(image.seconds, 6)
            rows.append(row)
    return rows


def _tasks(
    source: InstalledPackage | Live, capabilities: Sequence[Capability], driver: tuple[int, int] | None
) -> Iterator[tuple[dict[str, Any], tuple[Unit, Architecture] | None]]:
    """A row for each module and capability, and what to compile where something has to be."""
    if isinstance(source, Live):
        for name, unit in source.units.items():
            for capability in capabilities:
                target = source.architecture(name, capability, driver or this_toolchain().version)
                yield _row(source.name, name, capability), (unit, target)
    else:
        for module in source.manifest.modules:
            for capability in capabilities:
                yield _shipped_task(source, module, capability, driver)


def _row(package: str, module: str, capability: Capability) -> dict[str, Any]:
    here = {"package": package, "module": module, "compute_capability": format_capability(capability)}
    return {**here, "outcome": "nothing", "arch": "-", "seconds": 0.0}


def _shipped_task(
    source: InstalledPackage, module: Module, capability: Capability, driver: tuple[int, int] | None
) -> tuple[dict[str, Any], tuple[Unit, Architecture] | None]:
    row = _row(source.name, module.name, capability)
    choices = [
        explain_installed(source, f"{module.name}:{kernel}", capability, driver).choice for kernel in module.kernels
    ]
    found = [choice for choice in choices if choice is not None]
    sure = ("cubin",) if driver is None else ("cubin", "ptx")
    served = [choice for choice in found if choice.kind in sure]
    if len(served) == len(choices) or source.manifest.fallback is None:
        whole = len(found) == len(choices)
        return {**row, "outcome": "image" if whole else "nothing", "arch": found[0].arch if found else "-"}, None
    wanted = fallback_architecture(module.images, capability)
    target = supported_target(wanted, capability, driver or this_toolchain().version, this_toolchain())
    return row, (shipped_unit(source, module), target)
