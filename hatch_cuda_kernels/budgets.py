# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Limits that an author sets on kernels and on the wheel, and what goes over them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence

from .config import EVERY_KERNEL, Config
from .display import format_size
from .errors import ConfigurationError
from .manifest import Module, Resources, squeeze_name

__all__ = ["kernels_over_budget", "wheel_over_budget"]


def kernels_over_budget(config: Config, modules: Sequence[Module], where: str) -> list[str]:
    """What kernels need beyond the budget, one sentence each. PTX needs nothing yet: the driver decides.

    Raises ConfigurationError where a limit names a kernel that there is not.
    """
    found: list[str] = []
    for key, limits, attribute, unit in (
        ("max-registers", config.max_registers, "registers", "registers"),
        ("max-spill-bytes", config.max_spill_bytes, "spill_bytes", "bytes of spills"),
    ):
        _check_names(limits, modules, f"{where}.{key}")
        for module in modules:
            for kernel in module.kernels:
                limit = _limit(limits, module.name, kernel)
                for needed, architectures in _needs(module, kernel, attribute).items():
                    if limit is not None and needed > limit:
                        on = ", ".join(architectures)
                        found.append(f"{module.name}:{kernel} on {on}: {needed} {unit}; {key} is {limit}")
    return found


def wheel_over_budget(config: Config, size: int) -> str | None:
    """What is to be said of a wheel of `size` bytes, or None where it fits."""
    limit = config.max_wheel_bytes
    if limit is None or size <= limit:
        return None
    return (
        f"the wheel has {size} bytes ({format_size(size)}); max-wheel-bytes is {limit}. `hatch-cuda-kernels inspect` "
        "shows which modules and architectures take the room"
    )


def _limit(limits: Mapping[str, int], module: str, kernel: str) -> int | None:
    for name in (f"{module}:{kernel}", kernel, EVERY_KERNEL):
        if name in limits:
            return limits[name]
    return None


def _needs(module: Module, kernel: str, attribute: str) -> dict[int, list[str]]:
    """What a kernel needs -> architectures where it does."""
    needs: dict[int, list[str]] = {}
    for architecture, resources in _resources(module, kernel):
        needs.setdefault(getattr(resources, attribute), []).append(architecture)
    return needs


def _resources(module: Module, kernel: str) -> Iterator[tuple[str, Resources]]:
    for image in module.images:
        symbol = module.lowered(kernel, image)
        found = image.entries[symbol] if symbol is not None else None
        if found is not None:
            yield str(image.architecture), found


def _check_names(limits: Mapping[str, int], modules: Iterable[Module], where: str) -> None:
    known = {name for module in modules for kernel in module.kernels for name in (kernel, f"{module.name}:{kernel}")}
    for name in limits:
        if name != EVERY_KERNEL and squeeze_name(name) not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ConfigurationError(f"{where}: there is no kernel {name!r}{hint}")
