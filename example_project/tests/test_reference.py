# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0

"""The numpy path against values that can be worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mandelscope import reference
from mandelscope.frame import LEVELS, Accumulator, Frame

SMALL = Frame(width=33, height=21, iterations=60, radius=3)


def point(real: float, imaginary: float, iterations: int = 100) -> float:
    """The escape time of one point: a frame of one pixel."""
    frame = Frame(width=1, height=1, centre=(real, imaginary), span=1.0, iterations=iterations)
    return float(reference.escape_time(frame)[0, 0])


@pytest.mark.parametrize(("real", "imaginary"), [(0, 0), (-1, 0), (0, 1), (-2, 0), (0.25, 0), (-0.1, 0.7)])
def test_points_of_the_set_never_escape(real: float, imaginary: float) -> None:
    assert point(real, imaginary) == -1.0


def test_escape_time_of_one() -> None:
    """0, 1, 2, 5, 26, 677: the fifth step is the first beyond 256."""
    assert point(1, 0) == pytest.approx(5 - np.log2(np.log2(677)), rel=1e-6)


def test_escape_time_is_below_the_iterations() -> None:
    """Else the histogram would have no level for it."""
    field = reference.escape_time(replace(SMALL, iterations=8, span=3.0, centre=(-0.5, 0.0)))
    assert -1 <= field.min() < field.max() < 8


def test_the_first_row_is_the_upper_one() -> None:
    """The picture has the imaginary axis upwards and the real axis to the right."""
    frame = Frame(width=3, height=3, centre=(-0.5, 0.7), span=1.5, iterations=200)
    field = reference.escape_time(frame)
    assert field[0, 1] == np.float32(point(-0.5, 1.2, 200))
    assert field[1, 2] == np.float32(point(0.0, 0.7, 200))


def test_the_set_is_symmetric() -> None:
    frame = Frame(width=41, height=31, centre=(-0.6, 0.0), span=3.0, iterations=50)
    field = reference.escape_time(frame)
    np.testing.assert_array_equal(field, field[::-1])


def test_histogram_counts_what_escapes() -> None:
    frame = replace(SMALL, width=5, height=1, iterations=LEVELS)
    field = np.array([[-1.0, 0.0, 0.9, 1.0, 255.5]], dtype=np.float32)
    counts = reference.histogram(frame, field)
    assert counts[[0, 1, 255]].tolist() == [2, 1, 1]
    assert counts.sum() == 4
    assert reference.cumulative(counts)[[0, 1, 254, 255]].tolist() == [2, 3, 3, 4]


def test_equalise_is_black_inside_and_a_rank_outside() -> None:
    frame = replace(SMALL, width=3, height=1, iterations=LEVELS)
    field = np.array([[-1.0, 0.0, 10.5]], dtype=np.float32)
    totals = reference.cumulative(reference.histogram(frame, field))
    image = reference.equalise(frame, field, totals)
    assert image[:, 0, 0].tolist() == [0, 0, 0]
    ranks = np.array([0.0, 0.75], dtype=np.float32)
    np.testing.assert_array_equal(image[:, 0, 1:], reference.palette(ranks))


def test_a_picture_of_nothing_but_the_set_is_black() -> None:
    frame = replace(SMALL, centre=(0.0, 0.0), span=0.01)
    assert not reference.draw(frame).any()


@pytest.mark.parametrize("accumulator", ["float", "double"])
@pytest.mark.parametrize("vertical", [False, True])
def test_smooth_spreads_a_point_along_one_axis(accumulator: Accumulator, vertical: bool) -> None:
    frame = replace(SMALL, width=9, height=9, radius=2, accumulator=accumulator)
    image = np.zeros((3, 9, 9), dtype=np.float32)
    image[1, 4, 4] = 1
    blurred = reference.smooth(frame, image, vertical=vertical)
    line = blurred[1, 2:7, 4] if vertical else blurred[1, 4, 2:7]
    np.testing.assert_allclose(line, frame.weights(), rtol=1e-6)
    assert np.count_nonzero(blurred) == 5


def test_smooth_keeps_a_flat_picture_up_to_its_edges() -> None:
    image = np.full((3, SMALL.height, SMALL.width), 0.5, dtype=np.float32)
    np.testing.assert_allclose(reference.smooth(SMALL, image, vertical=True), image, rtol=1e-6)


def test_no_radius_is_no_blur() -> None:
    image = np.random.default_rng(1).random((3, SMALL.height, SMALL.width), dtype=np.float32)
    np.testing.assert_array_equal(reference.smooth(replace(SMALL, radius=0), image, vertical=False), image)


def test_compose_interleaves_the_planes() -> None:
    frame = replace(SMALL, width=2, height=1, glow=0.5)
    image = np.arange(6, dtype=np.float32).reshape(3, 1, 2)
    film = reference.compose(frame, image, image + 2)
    assert film.dtype == np.float16
    assert film.tolist() == [[[1, 3, 5], [2, 4, 6]]]


def test_develop_knows_black_white_and_middle_grey() -> None:
    """Linear 0.2140 is the middle of the sRGB scale; what is brighter than white is white."""
    film = np.array([0.0, 0.001, 0.2140, 1.0, 3.0], dtype=np.float16)
    assert reference.develop(film).tolist() == [0, 3, 127, 255, 255]


def test_the_same_frame_gives_the_same_picture() -> None:
    picture = reference.draw(SMALL)
    assert picture.shape == (SMALL.height, SMALL.width, 3)
    np.testing.assert_array_equal(picture, reference.draw(SMALL))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"width": 0}, "size"),
        ({"height": 1 << 27}, "size"),
        ({"span": float("nan")}, "span"),
        ({"iterations": 7}, "iterations"),
        ({"glow": 1.5}, "glow"),
        ({"radius": -1}, "radius"),
    ],
)
def test_a_frame_that_cannot_be_drawn_is_refused(change: dict[str, float], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        Frame(**change)  # type: ignore[arg-type]
