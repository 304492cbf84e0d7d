# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0

"""What to draw: a value that the numpy path and the CUDA path both take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["LEVELS", "Accumulator", "Frame"]

Accumulator = Literal["float", "double"]

LEVELS = 256
"""Levels of the histogram, as in include/mandelscope/levels.cuh."""

_MOST_PIXELS = 1 << 26
"""Keeps every index that a kernel computes inside a C int."""


@dataclass(frozen=True)
class Frame:
    """One picture of a part of the complex plane."""

    width: int = 960
    height: int = 640
    centre: tuple[float, float] = (-0.748, 0.124)
    span: float = 0.024
    """Width of the picture on the real axis."""
    iterations: int = 600
    glow: float = 0.25
    """Share of the blurred picture in the result, 0 to 1."""
    radius: int = 12
    """Radius of the blur in pixels."""
    accumulator: Accumulator = "float"
    """Type that the blur sums in."""

    def __post_init__(self) -> None:
        problems = []
        if self.width < 1 or self.height < 1 or self.width * self.height > _MOST_PIXELS:
            problems.append(f"the size has to be at least 1x1 and at most {_MOST_PIXELS} pixels in all")
        if not np.isfinite([*self.centre, self.span]).all() or self.span <= 0:
            problems.append("the centre has to be finite, the span finite and above 0")
        if not 8 <= self.iterations <= 1_000_000:
            problems.append("the iterations have to be from 8 to 1000000")
        if not 0 <= self.glow <= 1:
            problems.append("the glow has to be from 0 to 1")
        if not 0 <= self.radius <= 4096:
            problems.append("the radius has to be from 0 to 4096")
        if problems:
            raise ValueError("; ".join(problems))

    @property
    def pixels(self) -> int:
        return self.width * self.height

    @property
    def pixel(self) -> float:
        """Distance between two neighbouring pixels."""
        return self.span / self.width

    @property
    def scale(self) -> np.float32:
        """Factor from escape times to levels; an escape time is always below the number of iterations."""
        factor: np.float32 = np.float32(LEVELS / self.iterations)
        return factor

    def weights(self) -> NDArray[np.floating[Any]]:
        """A Gaussian of the frame's radius that sums to 1, in the type of the accumulator."""
        offsets = np.arange(-self.radius, self.radius + 1, dtype=np.float64)
        bell = np.exp(-0.5 * (offsets / max(self.radius / 2.5, 1e-3)) ** 2)
        bell /= bell.sum()
        return bell.astype(np.float32) if self.accumulator == "float" else bell
