# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What a report tells, whatever its form: gathered once, from manifests, the rule engine and the build's own report."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...arch import CAPABILITIES, Architecture
from ...manifest import Manifest, Module, Resources
from ...occupancy import Occupancy, best_occupancy
from ..coverage import Coverage, cover, default_drivers
from ..diff import Difference, compare
from ..inspection import kernel_resources
from ..target import TargetError, open_packages

__all__ = ["KernelNeeds", "PackageSummary", "Summary", "summarise"]


@dataclass(frozen=True, kw_only=True)
class KernelNeeds:
    """What one kernel needs on the architectures where it needs the same."""

    module: str
    kernel: str
    architectures: tuple[str, ...]
    resources: Resources
    occupancy: Occupancy | None

    def to_dict(self) -> dict[str, Any]:
        """As `report --json` has it."""
        return {
            "module": self.module,
            "kernel": self.kernel,
            "architectures": list(self.architectures),
            "resources": self.resources.to_dict(),
            "occupancy": self.occupancy and self.occupancy._asdict(),
        }


@dataclass(frozen=True, kw_only=True)
class PackageSummary:
    """One package."""

    manifest: Manifest
    coverages: tuple[Coverage, ...]
    """Under the compiler's driver first."""
    kernels: tuple[KernelNeeds, ...]
    """Those that spill and that take most registers first."""
    difference: Difference | None


@dataclass(frozen=True, kw_only=True)
class Summary:
    """All packages of a target, and how they were built."""

    title: str
    size: int | None
    """Of the wheel file."""
    packages: tuple[PackageSummary, ...]
    build: Mapping[str, Any] | None
    """The build's report, where it is at hand."""

    def to_dict(self) -> dict[str, Any]:
        """As `report --json` has it."""
        packages = [
            {
                "package": found.manifest.package,
                "coverage": [coverage.to_dict() for coverage in found.coverages],
                "kernels": [needs.to_dict() for needs in found.kernels],
                "difference": found.difference and found.difference.to_dict(),
            }
            for found in self.packages
        ]
        return {"schema": 1, "title": self.title, "size": self.size, "packages": packages, "build": self.build}

    def to_json(self) -> str:
        """The same, as text."""
        return json.dumps(self.to_dict(), indent=1, sort_keys=True) + "\n"


def summarise(target: str, package: str | None, *, against: str | None, build_report: str | None) -> Summary:
    """Gather everything. Raises TargetError and ManifestError."""
    manifests = [found.manifest for found in open_packages(target, package)]
    differences: dict[str, Difference] = {}
    if against is not None:
        before = [found.manifest for found in open_packages(against, package)]
        differences = {found.package: found for found in compare(before, manifests)}
    return Summary(
        title=os.path.basename(os.path.normpath(target)),
        size=os.path.getsize(target) if os.path.isfile(target) else None,
        packages=tuple(_summarise(manifest, differences.get(manifest.package)) for manifest in manifests),
        build=None if build_report is None else _read_build(Path(build_report)),
    )


def _summarise(manifest: Manifest, difference: Difference | None) -> PackageSummary:
    needs = [found for module in manifest.modules for kernel in module.kernels for found in _needs(module, kernel)]
    needs.sort(key=lambda found: (-found.resources.spill_bytes, -found.resources.registers, found.module, found.kernel))
    drivers = sorted(default_drivers(manifest), reverse=True)
    return PackageSummary(
        manifest=manifest,
        coverages=tuple(cover(manifest, CAPABILITIES, driver) for driver in drivers),
        kernels=tuple(needs),
        difference=difference,
    )


def _needs(module: Module, kernel: str) -> list[KernelNeeds]:
    alike: dict[tuple[Resources, Occupancy | None], list[str]] = {}
    for architecture, resources in kernel_resources(module, kernel).items():
        occupancy = best_occupancy(Architecture.parse(architecture), resources)
        alike.setdefault((resources, occupancy), []).append(architecture)
    return [
        KernelNeeds(
            module=module.name,
            kernel=kernel,
            architectures=tuple(architectures),
            resources=resources,
            occupancy=occupancy,
        )
        for (resources, occupancy), architectures in alike.items()
    ]


_IMAGE: Mapping[str, type | tuple[type, ...]] = {
    "module": str,
    "arch": str,
    "outcome": str,
    "seconds": (int, float),
    "bytes": int,
    "warnings": list,
}


def _read_build(path: Path) -> Mapping[str, Any]:
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise TargetError(f"{path}: no build report ({error})") from None
    if not isinstance(value, dict) or value.get("schema") != 1:
        raise TargetError(f"{path}: no build report of schema 1; HATCH_CUDA_KERNELS_REPORT writes one")
    images = value.get("images")
    fine = isinstance(images, list) and all(
        isinstance(image, dict)
        and all(isinstance(image.get(key), kind) for key, kind in _IMAGE.items())
        and all(isinstance(warning, str) for warning in image["warnings"])
        and isinstance(image.get("finished"), (int, float, type(None)))
        for image in images
    )
    if not fine or not all(isinstance(value.get(key), (int, float)) for key in ("compiled", "cached", "seconds")):
        raise TargetError(f"{path}: the build report is damaged; build again")
    return value
