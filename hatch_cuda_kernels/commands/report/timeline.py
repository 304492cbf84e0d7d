# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""How a build went: what was compiled when, what came from the cache, and what the compiler warned of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...display import format_size
from .markup import Markup, element, join
from .parts import data_table, folded, region

__all__ = ["build_section", "lanes"]

_DRAWN = 400
_SLOWEST = 25
_SLACK = 0.05


def build_section(build: Mapping[str, Any]) -> Markup:
    """The timeline, the slowest compiles, and the warnings."""
    images: Sequence[Mapping[str, Any]] = build["images"]
    compiled = sorted((i for i in images if i["outcome"] == "compiled"), key=lambda i: -i["seconds"])
    text = f"{len(images)} images: {build['cached']} cached, {build['compiled']} compiled in {build['seconds']:.1f} s"
    parts = [element("p", text)]
    timed = [image for image in compiled[:_DRAWN] if image.get("finished") is not None]
    if timed:
        parts.append(region("Compiles over time", _drawing(timed, build["seconds"])))
        if len(compiled) > _DRAWN:
            parts.append(element("p", f"The {_DRAWN} longest of {len(compiled)} compiles are drawn.", class_="muted"))
    if compiled:
        rows = [[i["module"], i["arch"], f"{i['seconds']:.2f} s", format_size(i["bytes"])] for i in compiled[:_SLOWEST]]
        head = ["Module", "Architecture", "Compile", "Image"]
        parts.append(folded("The slowest compiles", data_table("The slowest compiles", head, rows, numbers=(2, 3))))
    warnings: dict[str, list[str]] = {}
    for image in images:
        for warning in image["warnings"]:
            warnings.setdefault(warning, []).append(f"{image['module']} {image['arch']}")
    if warnings:
        parts.append(element("h3", f"Warnings ({len(warnings)})"))
        for warning, where in warnings.items():
            parts += [element("p", ", ".join(where)), element("pre", warning)]
    return join(parts)


def lanes(spans: Sequence[tuple[float, float]]) -> list[int]:
    """The lane of each (start, end), so that none overlaps another by more than what the measurement leaves open.

    Spans come in order of their starts. An end is when the build took notice, a little after the compile's own.
    """
    ends: list[float] = []
    taken = []
    for start, end in spans:
        lane = next((index for index, last in enumerate(ends) if last <= start + _SLACK), len(ends))
        if lane == len(ends):
            ends.append(end)
        ends[lane] = end
        taken.append(lane)
    return taken


def _drawing(images: Sequence[Mapping[str, Any]], seconds: float) -> Markup:
    spans = sorted(
        (max(0.0, i["finished"] - i["seconds"]), float(i["finished"]), index) for index, i in enumerate(images)
    )
    rows = lanes([(start, end) for start, end, _ in spans])
    whole = max([seconds, 1e-6, *(end for _, end, _ in spans)])
    height = 22 * (max(rows) + 1)
    drawn = [element("title", f"{len(images)} compiles over {whole:.1f} s")]
    for tick in range(5):
        x = f"{tick * 249 + 2:.0f}"
        drawn.append(element("line", x1=x, x2=x, y1=0, y2=height, class_="axis"))
        anchor = "start" if tick == 0 else "end" if tick == 4 else "middle"
        label = f"{whole * tick / 4:.1f} s"
        drawn.append(element("text", label, x=x, y=height + 14, font_size=11, text_anchor=anchor, class_="tick"))
    for (start, end, index), row in zip(spans, rows, strict=True):
        image = images[index]
        x, width = 2 + 996 * start / whole, max(1.5, 996 * (end - start) / whole)
        title = element("title", f"{image['module']} {image['arch']}: {image['seconds']:.2f} s")
        fill = "#a4560f" if image["warnings"] else "#2f6db3"
        box = {"x": f"{x:.1f}", "y": f"{row * 22 + 2}", "width": f"{width:.1f}", "height": "18"}
        drawn.append(element("rect", title, class_="tile", fill=fill, rx=2, **box))
        letters = int((width - 8) / 6.2)
        name = f"{image['module']} {image['arch']}"
        if letters >= 4:
            shown = name if len(name) <= letters else name[: letters - 1] + "…"
            drawn.append(element("text", shown, x=f"{x + 4:.1f}", y=row * 22 + 15, font_size=11, class_="on"))
    return element("svg", *drawn, viewBox=f"0 0 1000 {height + 20}", role="img")
