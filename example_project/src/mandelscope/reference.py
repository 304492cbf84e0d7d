# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0

"""Every kernel once more in numpy: what the CUDA path is checked against, and the path without a GPU.

The order of operations is that of the kernels, so that all steps without a transcendental function agree bit
for bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mandelscope.frame import LEVELS, Frame

__all__ = [
    "compose",
    "cumulative",
    "develop",
    "draw",
    "equalise",
    "escape_time",
    "histogram",
    "palette",
    "smooth",
    "srgb_encode",
]

Floats = NDArray[np.float32]
Counts = NDArray[np.uint32]
Film = NDArray[np.float16]
Bytes = NDArray[np.uint8]

# Rate and phase of each channel, as in include/mandelscope/colour.cuh.
_CHANNELS = ((0.60, 0.03), (0.70, 0.06), (0.85, 0.15))


def escape_time(frame: Frame) -> Floats:
    """The smooth escape time of every pixel, or -1 where the orbit stays bounded."""
    columns = np.arange(frame.width, dtype=np.float64)
    rows = np.arange(frame.height, dtype=np.float64)
    real = frame.centre[0] + (columns - 0.5 * (frame.width - 1)) * frame.pixel
    imaginary = frame.centre[1] - (rows - 0.5 * (frame.height - 1)) * frame.pixel
    cx = np.tile(real, frame.height)
    cy = np.repeat(imaginary, frame.width)

    field = np.full(frame.pixels, -1.0, dtype=np.float32)
    live = np.arange(frame.pixels)
    x = np.zeros(frame.pixels)
    y = np.zeros(frame.pixels)
    for step in range(1, frame.iterations + 1):
        x, y = x * x - y * y + cx, 2.0 * x * y + cy
        norm = x * x + y * y
        gone = norm > 65536.0
        if gone.any():
            times = np.maximum(0.0, step - np.log2(0.5 * np.log2(norm[gone])))
            field[live[gone]] = times.astype(np.float32)
            stay = ~gone
            live, x, y, cx, cy = live[stay], x[stay], y[stay], cx[stay], cy[stay]
            if not live.size:
                break
    return field.reshape(frame.height, frame.width)


def _levels(position: Floats) -> NDArray[np.int32]:
    return np.minimum(position.astype(np.int32), LEVELS - 1)


def histogram(frame: Frame, field: Floats) -> Counts:
    """How many escaping pixels fall on each level."""
    levels = _levels(field[field >= 0] * frame.scale)
    return np.bincount(levels, minlength=LEVELS).astype(np.uint32)


def cumulative(counts: Counts) -> Counts:
    """Running totals of the histogram."""
    return np.cumsum(counts, dtype=np.uint32)


def palette(t: Floats) -> Floats:
    """Three planes of linear light for positions from 0 to 1."""
    planes = []
    for rate, phase in _CHANNELS:
        turns = np.float32(rate) * t + np.float32(phase)
        wave = np.float32(0.5) - np.float32(0.5) * np.cos(np.float32(6.2831853) * turns)
        planes.append(wave * wave)
    return np.stack(planes)


def equalise(frame: Frame, field: Floats, totals: Counts) -> Floats:
    """Colours every pixel by the share of the picture that escapes sooner; three planes of linear light."""
    image = np.zeros((3, frame.height, frame.width), dtype=np.float32)
    outside = field >= 0
    position = field[outside] * frame.scale
    levels = _levels(position)
    bounds = np.concatenate([np.zeros(1, dtype=np.uint32), totals]).astype(np.float32)
    below, above = bounds[levels], bounds[levels + 1]
    rank = below + (position - levels.astype(np.float32)) * (above - below)
    image[:, outside] = palette(rank / bounds[LEVELS])
    return image


def smooth(frame: Frame, image: Floats, *, vertical: bool) -> Floats:
    """One direction of the separable blur; the edge pixels repeat outwards."""
    weights = frame.weights()
    axis = 1 if vertical else 2
    padding = [(0, 0), (0, 0), (0, 0)]
    padding[axis] = (frame.radius, frame.radius)
    padded = np.pad(image, padding, mode="edge").astype(weights.dtype)
    total = np.zeros(image.shape, dtype=weights.dtype)
    length = image.shape[axis]
    for start, weight in enumerate(weights):
        window = [slice(None)] * 3
        window[axis] = slice(start, start + length)
        total += weight * padded[tuple(window)]
    return total.astype(np.float32)


def compose(frame: Frame, image: Floats, blurred: Floats) -> Film:
    """Mixes the blurred picture into the sharp one: height x width x 3 samples of half precision."""
    mixed = image + np.float32(frame.glow) * (blurred - image)
    return np.ascontiguousarray(np.moveaxis(mixed, 0, 2)).astype(np.float16)


def srgb_encode(light: Floats) -> Floats:
    """Linear light from 0 to 1, encoded for a screen (IEC 61966-2-1, sRGB)."""
    low = np.float32(12.92) * light
    lifted = np.maximum(light, np.float32(0.0031308))
    high = np.float32(1.055) * np.power(lifted, np.float32(1 / 2.4)) - np.float32(0.055)
    encoded: Floats = np.where(light <= np.float32(0.0031308), low, high)
    return encoded


def develop(film: Film) -> Bytes:
    """Film to bytes for a screen."""
    steps = np.float32(255) * srgb_encode(film.astype(np.float32)) + np.float32(0.5)
    levels: Floats = np.clip(steps, 0, 255)
    return levels.astype(np.uint8)


def draw(frame: Frame) -> Bytes:
    """The whole picture, height x width x 3."""
    field = escape_time(frame)
    image = equalise(frame, field, cumulative(histogram(frame, field)))
    blurred = smooth(frame, smooth(frame, image, vertical=False), vertical=True)
    return develop(compose(frame, image, blurred))
