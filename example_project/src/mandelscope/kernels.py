# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0

"""One typed function per kernel: allocates the result, launches, returns it. Named as in `reference`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mandelscope.device import DeviceArray, Gpu
from mandelscope.frame import LEVELS, Accumulator, Frame

__all__ = [
    "COMPOSE",
    "CUMULATIVE",
    "DEVELOP",
    "EQUALISE",
    "ESCAPE_TIME",
    "HISTOGRAM",
    "KERNELS",
    "SMOOTH",
    "compose",
    "cumulative",
    "develop",
    "draw",
    "equalise",
    "escape_time",
    "histogram",
    "smooth",
]

# The names as the sources have them, and for the template as pyproject.toml lists its instances.
ESCAPE_TIME = "escape_time"
HISTOGRAM = "mandelscope::histogram"
CUMULATIVE = "mandelscope::cumulative"
EQUALISE = "mandelscope::equalise"
SMOOTH: dict[Accumulator, str] = {"float": "smooth<float>", "double": "smooth<double>"}
COMPOSE = "compose"
DEVELOP = "develop"

KERNELS = (ESCAPE_TIME, HISTOGRAM, CUMULATIVE, EQUALISE, *SMOOTH.values(), COMPOSE, DEVELOP)

Floats = DeviceArray[np.float32]
Counts = DeviceArray[np.uint32]
Film = DeviceArray[np.float16]
Bytes = DeviceArray[np.uint8]

_THREADS = 256
_TILE = (32, 8)
_MOST_BLOCKS = 1024
"""Enough for the histogram, whose threads each take many pixels."""


def _blocks(items: int) -> tuple[int, ...]:
    return (-(-items // _THREADS),)


def _tiles(frame: Frame, planes: int) -> tuple[int, ...]:
    return (-(-frame.width // _TILE[0]), -(-frame.height // _TILE[1]), planes)


def escape_time(gpu: Gpu, frame: Frame) -> Floats:
    """The smooth escape time of every pixel, or -1 where the orbit stays bounded."""
    field = gpu.empty((frame.height, frame.width), np.float32)
    gpu.launch(
        ESCAPE_TIME,
        _tiles(frame, 1),
        _TILE,
        field,
        np.int32(frame.width),
        np.int32(frame.height),
        np.float64(frame.centre[0]),
        np.float64(frame.centre[1]),
        np.float64(frame.pixel),
        np.int32(frame.iterations),
    )
    return field


def histogram(gpu: Gpu, frame: Frame, field: Floats) -> Counts:
    """How many escaping pixels fall on each level."""
    counts = gpu.zeros((LEVELS,), np.uint32)
    grid = (min(-(-frame.pixels // LEVELS), _MOST_BLOCKS),)
    gpu.launch(HISTOGRAM, grid, (LEVELS,), field, np.int32(frame.pixels), frame.scale, counts)
    return counts


def cumulative(gpu: Gpu, counts: Counts) -> Counts:
    """Running totals of the histogram."""
    totals = gpu.empty((LEVELS,), np.uint32)
    gpu.launch(CUMULATIVE, (1,), (LEVELS,), counts, totals)
    return totals


def equalise(gpu: Gpu, frame: Frame, field: Floats, totals: Counts) -> Floats:
    """Colours every pixel by the share of the picture that escapes sooner; three planes of linear light."""
    image = gpu.empty((3, frame.height, frame.width), np.float32)
    grid = _blocks(frame.pixels)
    gpu.launch(EQUALISE, grid, (_THREADS,), field, totals, np.int32(frame.pixels), frame.scale, image)
    return image


def smooth(gpu: Gpu, frame: Frame, image: Floats, *, vertical: bool) -> Floats:
    """One direction of the separable blur; the edge pixels repeat outwards."""
    blurred = gpu.empty(image.shape, np.float32)
    weights = gpu.upload(frame.weights())
    gpu.launch(
        SMOOTH[frame.accumulator],
        _tiles(frame, 3),
        _TILE,
        image,
        blurred,
        weights,
        np.int32(frame.radius),
        np.int32(frame.width),
        np.int32(frame.height),
        np.int32(vertical),
    )
    return blurred


def compose(gpu: Gpu, frame: Frame, image: Floats, blurred: Floats) -> Film:
    """Mixes the blurred picture into the sharp one: height x width x 3 samples of half precision."""
    film = gpu.empty((frame.height, frame.width, 3), np.float16)
    grid = _blocks(frame.pixels)
    gpu.launch(
        COMPOSE, grid, (_THREADS,), image, blurred, np.int32(frame.pixels), np.float32(frame.glow), film
    )
    return film


def develop(gpu: Gpu, frame: Frame, film: Film) -> Bytes:
    """Film to bytes for a screen."""
    picture = gpu.empty(film.shape, np.uint8)
    samples = 3 * frame.pixels
    gpu.launch(DEVELOP, _blocks(samples), (_THREADS,), film, np.int32(samples), picture)
    return picture


def draw(gpu: Gpu, frame: Frame) -> NDArray[np.uint8]:
    """The whole picture, height x width x 3. From the first kernel to the last it stays on the device."""
    field = escape_time(gpu, frame)
    image = equalise(gpu, frame, field, cumulative(gpu, histogram(gpu, frame, field)))
    blurred = smooth(gpu, frame, smooth(gpu, frame, image, vertical=False), vertical=True)
    return gpu.download(develop(gpu, frame, compose(gpu, frame, image, blurred)))
