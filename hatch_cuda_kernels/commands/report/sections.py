# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The sections of the page, each from a summary alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from ...arch import format_capability
from ...display import counted, format_size
from ...manifest import Manifest, Module
from ...occupancy import LIMITS, REGISTERS_PER_THREAD, SOURCE
from ...selection import Candidate
from ..coverage import Coverage, cell_text, group_rows, holes, names_text
from ..diff import Difference, headline, sections
from ..inspection import architectures_of
from .markup import Markup, element, join
from .parts import bar, data_table, folded, region
from .style import FILLS
from .summary import KernelNeeds, PackageSummary
from .treemap import Box, squarify

__all__ = ["coverage_section", "difference_section", "glance", "kernels_section", "settings_section", "size_section"]

_ROWS = 30
"""Rows of kernels before the rest is folded away."""
_MOST_ROWS = 5000
_MODULES = 150
"""Modules that the treemap draws; the rest is one of its own."""


def glance(found: PackageSummary, wheel_size: int | None) -> Markup:
    """What a reviewer wants to know first."""
    manifest = found.manifest
    images = [image for module in manifest.modules for image in module.images]
    size = sum(image.size for image in images)
    kernels = sum(len(module.kernels) for module in manifest.modules)
    spilling = {(needs.module, needs.kernel) for needs in found.kernels if needs.resources.spill_bytes}
    shipped = manifest.fallback.files if manifest.fallback else {}
    served, note = _served(found.coverages[0])
    wheel = f"wheel {format_size(wheel_size)}" if wheel_size is not None else ""
    architectures = architectures_of(manifest)
    facts = [
        ("Kernels", str(kernels), f"in {counted(len(manifest.modules), 'module')}"),
        ("Images", format_size(size), "; ".join(filter(None, (counted(len(images), "file"), wheel)))),
        ("Architectures", str(len(architectures)), " ".join(architectures)),
        ("Served by an image", served, note),
        ("Kernels that spill", str(len(spilling)), ""),
        (
            "Run-time fallback",
            counted(len(shipped), "file") if shipped else "none",
            format_size(sum(file.size for file in shipped.values())) if shipped else "",
        ),
        ("Compiler", f"NVRTC {manifest.release}", ""),
    ]
    return element(
        "dl",
        *(
            element("div", element("dt", name), element("dd", value, element("small", more) if more else ""))
            for name, value, more in facts
        ),
        class_="glance",
    )


def _served(coverage: Coverage) -> tuple[str, str]:
    """How many capabilities have an image for every kernel, and which have not."""
    bare = sorted({capability for _, found in holes(coverage, jit=False) for capability in found})
    count = len(coverage.capabilities) - len(bare)
    note = f"not: {' '.join(map(format_capability, bare))}" if bare else "every kernel, everywhere"
    return f"{count} of {len(coverage.capabilities)}", note


# -- coverage ----------------------------------------------------------------------------------------------------


def coverage_section(coverages: Sequence[Coverage]) -> Markup:
    """The matrix under each driver, the compiler's own open."""
    parts = [_coverage(coverages[0])]
    for coverage in coverages[1:]:
        parts.append(folded(f"Under a driver of CUDA {format_capability(coverage.driver)}", _coverage(coverage)))
    meanings = (
        ("cubin", "cubin", "machine code in the package"),
        ("ptx", "PTX", "in the package, compiled by the driver"),
        ("jit", "JIT", "the shipped source, compiled once by NVRTC on the device's machine"),
        ("none", "nothing", "the kernel cannot be loaded"),
    )
    legend = element(
        "ul",
        *(element("li", element("span", name, class_=f"mark {kind}"), f" {text}") for kind, name, text in meanings),
        class_="legend",
    )
    return join([legend, *parts])


def _coverage(coverage: Coverage) -> Markup:
    head = ["Kernels", *map(format_capability, coverage.capabilities)]
    rows = [[_names(names), *map(_cell, cells)] for names, cells in group_rows(coverage.rows)]
    driver = format_capability(coverage.driver)
    return data_table(f"What serves on each compute capability under a driver of CUDA {driver}", head, rows)


def _names(names: Sequence[str]) -> Markup:
    if len(names) < 5:
        return join([names_text(names)])
    items = element("ul", *(element("li", name) for name in names[:_MOST_ROWS]))
    return folded(names_text(names), items)


def _cell(cell: Candidate | None) -> Markup:
    if cell is None:
        return element("td", "nothing", class_="cell none")
    return element("td", cell_text(cell), element("small", cell.arch), class_=f"cell {cell.kind}")


# -- sizes -------------------------------------------------------------------------------------------------------


def size_section(manifest: Manifest) -> Markup:
    """A treemap of modules and architectures, and the same as a table."""
    architectures = architectures_of(manifest)
    colour = {name: FILLS[index % len(FILLS)] for index, name in enumerate(architectures)}
    legend = element(
        "ul",
        *(element("li", element("i", style=f"background:{colour[name]}"), name) for name in architectures),
        class_="legend",
    )
    rows = []
    for module in sorted(manifest.modules, key=_size_of, reverse=True):
        sizes = {str(image.architecture): format_size(image.size) for image in module.images}
        rows.append([module.name, format_size(_size_of(module)), *(sizes.get(name, "-") for name in architectures)])
    table = data_table(
        "Bytes of each image", ["Module", "all", *architectures], rows, numbers=range(1, len(architectures) + 2)
    )
    drawing = _treemap(manifest, colour)
    return join([legend, region("Sizes as a treemap", drawing), folded("The sizes as a table", table)])


def _size_of(module: Module) -> int:
    return sum(image.size for image in module.images)


def _treemap(manifest: Manifest, colour: dict[str, str]) -> Markup:
    modules = sorted((module for module in manifest.modules if module.images), key=_size_of, reverse=True)
    groups = [(module.name, _by_architecture([module])) for module in modules[:_MODULES]]
    if rest := modules[_MODULES:]:
        groups.append((f"{len(rest)} more modules", _by_architecture(rest)))
    groups.sort(key=lambda group: -sum(group[1].values()))
    boxes = squarify([sum(sizes.values()) for _, sizes in groups], Box(0, 0, 1000, 420))
    drawn = [
        tile
        for (name, sizes), box in zip(groups, boxes, strict=True)
        for tile in _module_tiles(name, sizes, box, colour)
    ]
    total = format_size(sum(map(_size_of, modules)))
    title = element("title", f"Sizes of all images by module and architecture, {total} in all")
    return element("svg", title, *drawn, viewBox="0 0 1000 420", role="img")


def _by_architecture(modules: Sequence[Module]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for module in modules:
        for image in module.images:
            sizes[str(image.architecture)] = sizes.get(str(image.architecture), 0) + image.size
    return sizes


def _module_tiles(module: str, sizes: dict[str, int], box: Box, colour: dict[str, str]) -> Iterator[Markup]:
    yield from _tile(box, "frame", None, "", "", "name")
    strip = 18.0 if box.height > 50 and box.width > 60 else 0.0
    if strip:
        yield _label(box.x + 5, box.y + 13, module, box.width - 10, "name")
    images = sorted(sizes.items(), key=lambda found: -found[1])
    tiles = squarify([size for _, size in images], box.inset(strip or 1.0, 1.0))
    for (name, size), tile in zip(images, tiles, strict=True):
        yield from _tile(tile, "tile", colour[name], name, format_size(size), "on", module)


def _tile(
    box: Box, class_: str, fill: str | None, name: str, size: str, ink: str, module: str = ""
) -> Iterator[Markup]:
    title = [element("title", " ".join(filter(None, (module, name, size))))] if name else []
    x, y, width, height = (f"{value:.1f}" for value in box)
    yield element("rect", *title, x=x, y=y, width=width, height=height, class_=class_, fill=fill)
    if name and box.width > 40 and box.height > 18:
        yield _label(box.x + 5, box.y + 13, name, box.width - 10, ink)
        if box.height > 32:
            yield _label(box.x + 5, box.y + 27, size, box.width - 10, ink)


def _label(x: float, y: float, text: str, width: float, class_: str) -> Markup:
    letters = max(1, int(width / 6.2))
    shown = text if len(text) <= letters else text[: max(1, letters - 1)] + "…"
    return element("text", shown, x=f"{x:.1f}", y=f"{y:.1f}", font_size=11, class_=class_)


# -- kernels -----------------------------------------------------------------------------------------------------


def kernels_section(kernels: Sequence[KernelNeeds]) -> Markup:
    """What each kernel needs, as bars, and the occupancy that it can reach."""
    if not kernels:
        return element("p", "PTX alone: the driver decides what its kernels need.", class_="muted")
    parts = [
        element(
            "p",
            "Those that spill and take most registers come first. Occupancy is the best over all block sizes, with the "
            f"threads of the smallest such block, from NVIDIA's limits of each capability ({SOURCE}); launch bounds "
            "and dynamic shared memory are not counted. PTX has no figures: the driver decides them.",
            class_="muted",
        ),
        _kernels(kernels[:_ROWS], "What kernels need"),
    ]
    rest = kernels[_ROWS:_MOST_ROWS]
    if rest:
        parts.append(folded(f"{len(rest)} more rows", _kernels(rest, "What the other kernels need")))
    if len(kernels) > _MOST_ROWS:
        parts.append(element("p", f"{len(kernels) - _MOST_ROWS} rows are left out; report --json has all."))
    return join(parts)


def _kernels(kernels: Sequence[KernelNeeds], caption: str) -> Markup:
    most_shared = max(limits.shared for limits in LIMITS.values())
    head = ["Kernel", "Image", "Registers", "Shared", "Stack", "Local", "Spill", "Occupancy", "Threads", "Limited by"]
    rows = []
    for found in kernels:
        needs, best = found.resources, found.occupancy
        spill = element("span", format_size(needs.spill_bytes), class_="mark none") if needs.spill_bytes else "0"
        rows.append(
            [
                f"{found.module}:{found.kernel}",
                " ".join(found.architectures),
                bar(str(needs.registers), needs.registers / REGISTERS_PER_THREAD),
                bar(_bytes(needs.shared_bytes), needs.shared_bytes / most_shared),
                _bytes(needs.stack_bytes),
                _bytes(needs.local_bytes),
                spill,
                bar(f"{best.percent} %", best.percent / 100) if best else "unknown",
                str(best.threads) if best else "-",
                best.limit if best else "-",
            ]
        )
    return data_table(caption, head, rows, numbers=(2, 3, 4, 5, 6, 7, 8))


def _bytes(size: int) -> str:
    return format_size(size) if size else "0"


# -- changes and settings ----------------------------------------------------------------------------------------


def difference_section(found: Difference) -> Markup:
    """What changed against an older build."""
    parts = [element("p", headline(found))]
    for title, rows in sections(found) if found.status == "changed" else ():
        if len(rows) > 1:
            parts.append(data_table(title, rows[0], rows[1:_MOST_ROWS]))
    return join(parts)


def settings_section(manifest: Manifest) -> Markup:
    """How modules are compiled, alike ones together, and what the fallback ships."""
    alike: dict[str, list[str]] = {}
    for module in manifest.modules:
        settings = {
            "options": dict(module.options),
            "defines": dict(module.defines),
            "include-dirs": list(module.include_dirs),
            "toolkit-headers": module.toolkit_headers,
            "host-code": module.host_code,
        }
        text = "\n".join(f"{key} = {json.dumps(value)}" for key, value in settings.items() if value)
        alike.setdefault(text, []).append(module.name)
    parts: list[Markup] = []
    for text, names in alike.items():
        parts += [element("p", names_text(names)), element("pre", text)]
    if manifest.fallback is not None:
        rows = [[path, format_size(file.size)] for path, file in sorted(manifest.fallback.files.items())]
        table = data_table("Files of the run-time fallback", ["File", "Size"], rows[:_MOST_ROWS], numbers=(1,))
        parts.append(folded(f"{counted(len(rows), 'file')} that the fallback ships", table))
    return join(parts)
