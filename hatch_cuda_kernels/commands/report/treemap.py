# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Rectangles whose areas are sizes, as square as they can be (Bruls, Huizing and van Wijk's squarified treemap)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Box", "squarify"]


class Box(NamedTuple):
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float

    def inset(self, top: float, edge: float) -> Box:
        """What is left of it inside a margin."""
        width, height = max(0.0, self.width - 2 * edge), max(0.0, self.height - top - edge)
        return Box(self.x + edge, self.y + top, width, height)


def squarify(sizes: Sequence[float], box: Box) -> list[Box]:
    """One rectangle inside `box` for each size; sizes come largest first and are above zero."""
    total = sum(sizes)
    if not sizes or box.width <= 0 or box.height <= 0:
        return [Box(box.x, box.y, 0.0, 0.0) for _ in sizes]
    scale = box.width * box.height / total
    areas = [size * scale for size in sizes]
    boxes: list[Box] = []
    while len(boxes) < len(areas):
        rest = areas[len(boxes) :]
        side = min(box.width, box.height)
        count = 1
        while count < len(rest) and _worst(rest[: count + 1], side) <= _worst(rest[:count], side):
            count += 1
        row, box = _lay(rest[:count], box)
        boxes += row
    return boxes


def _worst(row: Sequence[float], side: float) -> float:
    """The greatest ratio of sides in a row of areas laid along `side`."""
    if side <= 0:
        return 0.0
    total = sum(row)
    return max(max(side * side * area / total**2, total**2 / (side * side * area)) for area in (row[0], row[-1]))


def _lay(row: Sequence[float], box: Box) -> tuple[list[Box], Box]:
    """A row of areas along the shorter side, and what is left of the box."""
    total = sum(row)
    if box.width >= box.height:
        width = min(box.width, total / box.height if box.height else 0.0)
        heights = [area / width if width else 0.0 for area in row]
        tops = [box.y + sum(heights[:index]) for index in range(len(row))]
        laid = [Box(box.x, top, width, height) for top, height in zip(tops, heights, strict=True)]
        return laid, Box(box.x + width, box.y, box.width - width, box.height)
    turned, left = _lay(row, Box(box.y, box.x, box.height, box.width))
    return [Box(b.y, b.x, b.height, b.width) for b in turned], Box(left.y, left.x, left.height, left.width)
