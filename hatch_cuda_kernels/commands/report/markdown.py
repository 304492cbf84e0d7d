# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The report as Markdown, short enough for a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from ...arch import format_capability
from ...display import counted, format_size, markdown_table, markdown_text
from ..coverage import cell_text, group_rows, holes, names_text
from ..diff import markdown_lines
from ..inspection import architectures_of
from .summary import PackageSummary, Summary

__all__ = ["markdown"]

_MOST = 60_000
"""Letters: what a comment may have on the common forges, with some room."""
_GROUPS = 30
_KERNELS = 10


def markdown(summary: Summary) -> str:
    """The report; what would not fit is left out, and the end says so."""
    lines = [f"### CUDA kernels of {markdown_text(summary.title)}", ""]
    for found in summary.packages:
        lines += _package(found)
    if summary.build is not None:
        build = summary.build
        counts = f"{counted(len(build['images']), 'image')}, {build['cached']} cached, {build['compiled']} compiled"
        lines += [f"Build: {counts} in {build['seconds']:.1f} s", ""]
    text = "\n".join(lines)
    if len(text) <= _MOST:
        return text
    return text[:_MOST].rpartition("\n")[0] + "\n\n... cut; the HTML report has all of it\n"


def _package(found: PackageSummary) -> Iterator[str]:
    manifest, coverage = found.manifest, found.coverages[0]
    images = [image for module in manifest.modules for image in module.images]
    kernels = sum(len(module.kernels) for module in manifest.modules)
    parts = (len(manifest.modules), "module"), (len(images), "image"), (kernels, "kernel")
    counts = ", ".join(counted(number, noun) for number, noun in parts)
    size = format_size(sum(image.size for image in images))
    yield f"**{markdown_text(manifest.package)}**: {counts}, {size}, NVRTC {manifest.release}"
    yield ""
    if found.difference is not None:
        yield from markdown_lines(found.difference)
    sizes = dict.fromkeys(architectures_of(manifest), 0)
    for image in images:
        sizes[str(image.architecture)] += image.size
    yield from markdown_table([list(sizes), list(map(format_size, sizes.values()))], 0)
    yield from ["", f"Under a driver of CUDA {format_capability(coverage.driver)}:", ""]
    rows = [["kernels", *map(format_capability, coverage.capabilities)]]
    groups = group_rows(coverage.rows)
    rows += [[names_text(names), *map(cell_text, cells)] for names, cells in groups[:_GROUPS]]
    yield from markdown_table(rows)
    if len(groups) > _GROUPS:
        yield f"\n... and {len(groups) - _GROUPS} more kinds of kernels"
    yield ""
    bare = sorted({capability for _, found_ in holes(coverage, jit=True) for capability in found_})
    if bare:
        yield f"Nothing for some kernels on: {' '.join(map(format_capability, bare))}"
        yield ""
    spilling = [needs for needs in found.kernels if needs.resources.spill_bytes]
    if spilling:
        yield from ["Kernels that spill:", ""]
        table = [["kernel", "images", "registers", "spill"]]
        for needs in spilling[:_KERNELS]:
            numbers = [str(needs.resources.registers), format_size(needs.resources.spill_bytes)]
            table.append([f"{needs.module}:{needs.kernel}", " ".join(needs.architectures), *numbers])
        yield from markdown_table(table, 2)
        if len(spilling) > _KERNELS:
            yield f"\n... and {len(spilling) - _KERNELS} more"
        yield ""
