# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Whom a package serves: for every kernel, compute capability and driver the choice that selection.py makes.

There are no rules here: a cell is what `explain` would say, with the fallback allowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..arch import CAPABILITIES, Capability, format_capability
from ..catalog import images_with
from ..display import Ink, columns_of, print_json, printable, table
from ..manifest import Image, Manifest
from ..selection import Candidate, select
from .target import open_packages

__all__ = ["Coverage", "Row", "cell_text", "cover", "default_drivers", "group_rows", "holes", "names_text", "run"]

_LAST_MINOR = {11: 8, 12: 9}
"""Last minor release of the CUDA majors that have one."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One kernel; what serves it on each of the coverage's capabilities."""

    module: str
    kernel: str
    cells: tuple[Candidate | None, ...]


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """One package under one driver."""

    package: str
    driver: tuple[int, int]
    capabilities: tuple[Capability, ...]
    rows: tuple[Row, ...]

    def to_dict(self) -> dict[str, Any]:
        """As `coverage --json` has it."""
        names = [format_capability(capability) for capability in self.capabilities]
        rows = []
        for row in self.rows:
            cells = {
                name: {"kind": cell.kind, "arch": cell.arch} if cell else None
                for name, cell in zip(names, row.cells, strict=True)
            }
            rows.append({"module": row.module, "kernel": row.kernel, "serves": cells})
        return {"package": self.package, "driver": format_capability(self.driver), "kernels": rows}


def run(
    *,
    target: str,
    package: str | None,
    capabilities: Sequence[Capability],
    drivers: Sequence[tuple[int, int]],
    as_json: bool,
) -> int:
    """Print the matrix of every package."""
    manifests = [found.manifest for found in open_packages(target, package)]
    found = [
        cover(manifest, capabilities or CAPABILITIES, driver)
        for manifest in manifests
        for driver in drivers or default_drivers(manifest)
    ]
    if as_json:
        print_json({"schema": 1, "coverage": [one.to_dict() for one in found]})
        return 0
    ink = Ink()
    styles = {"cubin": "green", "PTX": "cyan", "JIT": "yellow", "-": "red"}
    for one in found:
        print(ink("bold", printable(one.package)) + f" under a driver of CUDA {format_capability(one.driver)}")
        rows = [["kernel", *map(format_capability, one.capabilities)]]
        rows += [[names_text(names), *map(cell_text, cells)] for names, cells in group_rows(one.rows)]
        print("\n".join(table(rows, columns_of(), ink=ink, styles=styles)), end="\n\n")
    print("cubin, PTX: an image of the package; JIT: its source, compiled once on the device's machine; -: nothing")
    return 0


def default_drivers(manifest: Manifest) -> list[tuple[int, int]]:
    """The drivers where the answer changes: before the compiler's CUDA major, at its start, and the compiler's own."""
    major = manifest.cuda_version[0]
    before = (major - 1, _LAST_MINOR.get(major - 1, 0))
    return list(dict.fromkeys([before, (major, 0), manifest.cuda_version]))


def cover(manifest: Manifest, capabilities: Iterable[Capability], driver: tuple[int, int]) -> Coverage:
    """What serves each kernel on each capability under a driver."""
    capabilities = tuple(dict.fromkeys(capabilities))
    known: dict[tuple[str, ...], tuple[Candidate | None, ...]] = {}
    rows = []
    for module in manifest.modules:
        for kernel in module.kernels:
            images = images_with(module, kernel)
            alike = tuple(str(image.architecture) for image in images)
            if alike not in known:
                known[alike] = tuple(_choose(manifest, images, device, driver) for device in capabilities)
            rows.append(Row(module=module.name, kernel=kernel, cells=known[alike]))
    return Coverage(package=manifest.package, driver=driver, capabilities=capabilities, rows=tuple(rows))


def _choose(
    manifest: Manifest, images: Sequence[Image], device: Capability, driver: tuple[int, int]
) -> Candidate | None:
    return select(
        kernel="",
        images=images,
        device=device,
        driver=driver,
        compiler=manifest.cuda_version,
        has_sources=manifest.fallback is not None,
    ).choice


def holes(coverage: Coverage, *, jit: bool) -> list[tuple[Row, list[Capability]]]:
    """Kernels with the capabilities where nothing serves them; `jit`: the run-time fallback counts as serving."""
    found = []
    for row in coverage.rows:
        bare = [
            capability
            for capability, cell in zip(coverage.capabilities, row.cells, strict=True)
            if cell is None or (cell.kind == "jit" and not jit)
        ]
        if bare:
            found.append((row, bare))
    return found


def cell_text(cell: Candidate | None) -> str:
    """A cell as people read it."""
    return "-" if cell is None else {"cubin": "cubin", "ptx": "PTX", "jit": "JIT"}[cell.kind]


def group_rows(rows: Sequence[Row]) -> list[tuple[list[str], tuple[Candidate | None, ...]]]:
    """Names of the kernels that are served alike, with what serves them: two hundred kernels in a table to be read."""
    groups: dict[tuple[tuple[str, str] | None, ...], tuple[list[str], tuple[Candidate | None, ...]]] = {}
    for row in rows:
        key = tuple((cell.kind, cell.arch) if cell else None for cell in row.cells)
        groups.setdefault(key, ([], row.cells))[0].append(f"{row.module}:{row.kernel}")
    return list(groups.values())


def names_text(names: Sequence[str]) -> str:
    """A few names, and how many more there are."""
    return ", ".join(names if len(names) < 5 else [*names[:3], f"and {len(names) - 3} more"])
