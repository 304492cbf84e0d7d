# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""A type stub with a package's kernel names, so that editors complete them and type checkers know them."""

from __future__ import annotations

from collections.abc import Iterable

from ..display import print_json, printable
from ..manifest import Manifest
from .target import TargetError, open_packages

__all__ = ["run", "stub_for"]


def run(*, target: str, package: str | None, as_json: bool) -> int:
    """Print the stub of one package, or the names alone."""
    manifests = [found.manifest for found in open_packages(target, package)]
    if len(manifests) > 1:
        names = " or ".join(f"--package {manifest.package}" for manifest in manifests)
        raise TargetError(f"{target} has several packages, and a stub is for one; choose with {names}")
    (manifest,) = manifests
    if as_json:
        modules = sorted(module.name for module in manifest.modules)
        print_json({"schema": 1, "package": manifest.package, "kernels": kernel_names(manifest), "modules": modules})
    else:
        print(stub_for(manifest), end="")
    return 0


def kernel_names(manifest: Manifest) -> list[str]:
    """Every name that `load_kernel` takes: that of a kernel where one module alone has it, and with its module."""
    owners: dict[str, list[str]] = {}
    for module in manifest.modules:
        for kernel in module.kernels:
            owners.setdefault(kernel, []).append(module.name)
    names = [kernel for kernel, modules in owners.items() if len(modules) == 1]
    return sorted([*names, *(f"{module}:{kernel}" for kernel, modules in owners.items() for module in modules)])


def stub_for(manifest: Manifest) -> str:
    """Text of a `.pyi` for a module of the app that re-exports `load_kernel` and `load_module`."""
    return "\n".join(
        [
            f"# Made by `hatch-cuda-kernels stubs {printable(manifest.package)}`.",
            "from typing import Literal",
            "",
            "from cuda.core import Device, Kernel, ObjectCode",
            "",
            _literal("KernelName", kernel_names(manifest)),
            _literal("ModuleName", (module.name for module in manifest.modules)),
            "",
            "def load_kernel(",
            "    name: KernelName, *, package: str | None = None, device: Device | int | None = None",
            ") -> Kernel: ...",
            "def load_module(",
            "    name: ModuleName, *, package: str | None = None, device: Device | int | None = None",
            ") -> ObjectCode: ...",
            "",
        ]
    )


def _literal(name: str, values: Iterable[str]) -> str:
    body = "".join(f"    {value!r},\n" for value in sorted(values))
    return f"{name} = Literal[\n{body}]"
