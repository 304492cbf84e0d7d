# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0

"""PNG files: what is written is read back, and is what the format asks for."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from mandelscope import png


@pytest.mark.parametrize("shape", [(1, 1, 3), (2, 3, 3), (37, 61, 3)])
def test_a_picture_comes_back(tmp_path: Path, shape: tuple[int, int, int]) -> None:
    picture = np.random.default_rng(7).integers(0, 256, shape, dtype=np.uint8)
    path = tmp_path / "picture.png"
    png.write(path, picture)
    np.testing.assert_array_equal(png.decode(path.read_bytes()), picture)


def test_the_bytes_of_one_red_pixel() -> None:
    data = png.encode(np.array([[[255, 0, 0]]], dtype=np.uint8))
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert data[8:33] == bytes.fromhex("0000000d4948445200000001000000010802000000907753de")
    (length,) = struct.unpack_from(">I", data, 33)
    assert zlib.decompress(data[41 : 41 + length]) == bytes([2, 255, 0, 0])
    assert data[-12:] == bytes.fromhex("0000000049454e44ae426082")


def test_damage_is_found() -> None:
    data = bytearray(png.encode(np.zeros((4, 4, 3), dtype=np.uint8)))
    data[45] ^= 1
    with pytest.raises(ValueError, match="damaged"):
        png.decode(bytes(data))
    with pytest.raises(ValueError, match="not a PNG"):
        png.decode(b"GIF89a")


@pytest.mark.parametrize("shape", [(4, 4), (4, 4, 4), (0, 4, 3)])
def test_other_arrays_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="height x width x 3"):
        png.encode(np.zeros(shape, dtype=np.uint8))
