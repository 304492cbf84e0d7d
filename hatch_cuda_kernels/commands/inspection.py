# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""`inspect`: what is in a package, as tables that fit a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from ..display import Ink, columns_of, counted, format_size, print_json, printable, table
from ..manifest import Manifest, Module, Resources
from .target import open_packages

__all__ = ["architectures_of", "kernel_resources", "run"]

_SHOWN = 60
"""Rows of kernels that are shown unasked; the heaviest come first where there are more."""


def run(*, target: str, package: str | None, everything: bool, sources: bool, as_json: bool) -> int:
    """Print every package of a target."""
    manifests = [found.manifest for found in open_packages(target, package)]
    if as_json:
        print_json({"schema": 1, "packages": [manifest.to_dict() for manifest in manifests]})
    else:
        limit = None if everything else _SHOWN
        print("\n\n".join("\n".join(_describe(manifest, columns_of(), Ink(), limit)) for manifest in manifests))
        if sources:
            print("\n" + "\n".join(printable(line) for manifest in manifests for line in _passed_over(manifest)))
    return 0


def _describe(manifest: Manifest, width: int | None, ink: Ink, limit: int | None) -> Iterator[str]:
    images = [image for module in manifest.modules for image in module.images]
    kernels = sum(len(module.kernels) for module in manifest.modules)
    parts = (len(manifest.modules), "module"), (len(images), "image"), (kernels, "kernel")
    counts = "".join(f"{counted(number, noun)}, " for number, noun in parts)
    yield ink("bold", printable(manifest.package)) + ": " + counts + format_size(sum(image.size for image in images))
    yield f"compiler: NVRTC {manifest.release}"
    if manifest.fallback is None:
        yield "run-time fallback: none (jit = false)"
    else:
        total = format_size(sum(file.size for file in manifest.fallback.files.values()))
        yield f"run-time fallback: {counted(len(manifest.fallback.files), 'source file')}, {total}"
        if limit is None:
            for path, file in sorted(manifest.fallback.files.items()):
                yield printable(f"  {path}  {format_size(file.size)}")
    yield ""
    yield from table(_sizes(manifest, limit), width, ink=ink)
    yield from _left_out(len(manifest.modules), limit, "modules")
    yield ""
    rows = _resources(manifest)
    if limit is not None and len(rows) > limit:
        rows.sort(key=lambda row: (-row[2].spill_bytes, -row[2].registers))
    head = ["kernel", "image", "registers", "shared", "local", "stack", "constant", "spill"]
    cells = [[name, where, *_numbers(found)] for name, where, found in rows[:limit]]
    heavy = {row[7]: "yellow" for row in cells if row[7] != "0"}
    yield from table([head, *cells], width, left=2, ink=ink, styles=heavy)
    yield from _left_out(len(rows), limit, "rows, those that spill and take registers least")
    if any(image.architecture.virtual for image in images):
        yield ink("dim", "PTX has no resources of its own: the driver decides them.")


def _left_out(count: int, limit: int | None, what: str) -> Iterator[str]:
    if limit is not None and count > limit:
        yield f"... and {count - limit} more {what}; --all shows them, --json has everything"


def _passed_over(manifest: Manifest) -> Iterator[str]:
    for module in manifest.modules:
        yield f"{module.name}: " + ("host code passed over" if module.passed_over else "compiled as written")
        for omission in module.passed_over:
            yield f"  {omission.source}({omission.line}): {omission.kind} {omission.name}: {omission.reason}"


def architectures_of(manifest: Manifest) -> list[str]:
    """Architectures of all images: cubins in order, then PTX."""
    found = {image.architecture for module in manifest.modules for image in module.images}
    return [str(one) for one in sorted(found, key=lambda one: (one.virtual, one))]


def _sizes(manifest: Manifest, limit: int | None) -> list[list[str]]:
    columns = architectures_of(manifest)
    rows = [["module", *columns, "all"]]
    for module in manifest.modules[:limit]:
        sizes = {str(image.architecture): format_size(image.size) for image in module.images}
        total = format_size(sum(image.size for image in module.images))
        rows.append([module.name, *(sizes.get(column, "-") for column in columns), total])
    return rows


def kernel_resources(module: Module, kernel: str) -> dict[str, Resources]:
    """Architecture of each cubin that holds a kernel -> what the kernel needs there."""
    found = {}
    for image in module.images:
        symbol = module.lowered(kernel, image)
        resources = image.entries[symbol] if symbol is not None else None
        if resources is not None:
            found[str(image.architecture)] = resources
    return found


def _resources(manifest: Manifest) -> list[tuple[str, str, Resources]]:
    """(module:kernel, architectures, resources), architectures with the same resources in one row."""
    rows = []
    for module in manifest.modules:
        for kernel in module.kernels:
            alike: dict[Resources, list[str]] = {}
            for architecture, resources in kernel_resources(module, kernel).items():
                alike.setdefault(resources, []).append(architecture)
            rows += [(f"{module.name}:{kernel}", " ".join(where), found) for found, where in alike.items()]
    return rows


def _numbers(found: Resources) -> list[str]:
    shown = (found.registers, found.shared_bytes, found.local_bytes)
    return [*map(str, shown), *map(str, (found.stack_bytes, found.constant_bytes, found.spill_bytes))]
