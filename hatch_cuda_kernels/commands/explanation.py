# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""`explain`: which image a device would get, and why."""

from __future__ import annotations

from collections.abc import Sequence

from ..arch import Capability
from ..catalog import Live
from ..display import print_json
from ..errors import KernelNotFoundError
from ..loader import explain_installed
from ..package import InstalledPackage
from ..selection import Selection
from .target import editable_install, open_packages

__all__ = ["run"]


def run(
    *,
    target: str,
    package: str | None,
    kernel: str,
    capabilities: Sequence[Capability],
    driver: tuple[int, int] | None,
    as_json: bool,
) -> int:
    """Print the selection for each capability, or for each device of this machine."""
    live = editable_install(target)
    sources: Sequence[InstalledPackage | Live] = [live] if live else open_packages(target, package)
    if not capabilities:
        from ..driver import device_capabilities

        capabilities = list(dict.fromkeys(device_capabilities()))
    selections = [_selection(sources, kernel, found, driver) for found in capabilities]
    if not as_json:
        print("\n\n".join(map(str, selections)))
    elif len(selections) == 1:
        print_json(selections[0].to_dict())
    else:
        devices = [selection.to_dict() for selection in selections]
        print_json({"schema": 1, "kernel": kernel, "devices": devices})
    return 0 if all(selection.choice for selection in selections) else 1


def _selection(
    sources: Sequence[InstalledPackage | Live], kernel: str, capability: Capability, driver: tuple[int, int] | None
) -> Selection:
    found: dict[str, Selection] = {}
    errors: list[KernelNotFoundError] = []
    for source in sources:
        try:
            found[source.name] = explain_installed(source, kernel, capability, driver)
        except KernelNotFoundError as error:
            errors.append(error)
    if not found:
        raise KernelNotFoundError("\n".join(map(str, errors)))
    if len(found) > 1:
        choices = " or ".join(f"--package {name}" for name in found)
        raise KernelNotFoundError(f"several packages have {kernel!r}; choose one with {choices}")
    return next(iter(found.values()))
