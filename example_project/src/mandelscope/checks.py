# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0

"""Runs every kernel on a small frame and compares it with numpy.

Each step of the reference gets what the kernel before it gave, so that an error shows where it arises.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mandelscope import kernels, reference
from mandelscope.device import Gpu
from mandelscope.frame import Accumulator, Frame

__all__ = ["FRAME", "Check", "largest_error", "run"]

# Neither side is a multiple of a block's, and the blur is wider than a tile is high.
FRAME = Frame(width=251, height=163, iterations=300, radius=9)


@dataclass(frozen=True)
class Check:
    """How far a kernel was from its reference."""

    kernel: str
    error: float
    tolerance: float

    @property
    def passed(self) -> bool:
        # Written so that an error that is not a number fails.
        return self.error <= self.tolerance


def largest_error(actual: NDArray[Any], expected: NDArray[Any]) -> float:
    """The largest difference: absolute for values up to 1, relative for larger ones."""
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return float("inf")
    wanted = expected.astype(np.float64)
    difference = np.abs(actual.astype(np.float64) - wanted) / np.maximum(1.0, np.abs(wanted))
    return float(difference.max())


def run(gpu: Gpu, frame: Frame = FRAME) -> Iterator[Check]:
    """One check per kernel, in the order of the pipeline."""
    device_field = kernels.escape_time(gpu, frame)
    field = gpu.download(device_field)
    # The orbits are equal bit for bit; log2 is not.
    yield Check(kernels.ESCAPE_TIME, largest_error(field, reference.escape_time(frame)), 1e-6)

    device_counts = kernels.histogram(gpu, frame, device_field)
    counts = gpu.download(device_counts)
    yield Check(kernels.HISTOGRAM, largest_error(counts, reference.histogram(frame, field)), 0.0)

    device_totals = kernels.cumulative(gpu, device_counts)
    totals = gpu.download(device_totals)
    yield Check(kernels.CUMULATIVE, largest_error(totals, reference.cumulative(counts)), 0.0)

    device_image = kernels.equalise(gpu, frame, device_field, device_totals)
    image = gpu.download(device_image)
    yield Check(kernels.EQUALISE, largest_error(image, reference.equalise(frame, field, totals)), 1e-5)

    accumulators: tuple[Accumulator, ...] = ("float", "double")
    for accumulator in accumulators:
        blur = replace(frame, accumulator=accumulator)
        errors = []
        device_blurred, blurred = device_image, image
        for vertical in (False, True):
            device_blurred = kernels.smooth(gpu, blur, device_blurred, vertical=vertical)
            expected = reference.smooth(blur, blurred, vertical=vertical)
            blurred = gpu.download(device_blurred)
            errors.append(largest_error(blurred, expected))
        yield Check(kernels.SMOOTH[accumulator], float(np.max(errors)), 1e-6)

    device_film = kernels.compose(gpu, frame, device_image, device_blurred)
    film = gpu.download(device_film)
    # One step of half precision just below 1 is 0.0005.
    yield Check(kernels.COMPOSE, largest_error(film, reference.compose(frame, image, blurred)), 1e-3)

    picture = gpu.download(kernels.develop(gpu, frame, device_film))
    # Bytes are compared as whole steps.
    difference = np.abs(picture.astype(np.int16) - reference.develop(film).astype(np.int16))
    yield Check(kernels.DEVELOP, float(difference.max()), 1.0)
