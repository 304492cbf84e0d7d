# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0

"""Writes 8-bit RGB pictures as PNG (ISO/IEC 15948), and reads back what it wrote."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["decode", "encode", "write"]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_HEADER = struct.Struct(">IIBBBBB")
_RGB_8_BIT = (8, 2, 0, 0, 0)
"""Bit depth, colour type, compression, filter method, no interlace."""


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def encode(picture: NDArray[np.uint8]) -> bytes:
    """A height x width x 3 array as a PNG file."""
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3 or not picture.size:
        raise ValueError(f"need height x width x 3 bytes, got {picture.dtype} of shape {picture.shape}")
    height, width, _ = picture.shape
    # Filter 2 of every row: each byte as its difference from the one above, which compresses well.
    above = np.zeros_like(picture)
    above[1:] = picture[:-1]
    rows = np.empty((height, 1 + 3 * width), dtype=np.uint8)
    rows[:, 0] = 2
    rows[:, 1:] = (picture - above).reshape(height, 3 * width)
    return b"".join(
        [
            _SIGNATURE,
            _chunk(b"IHDR", _HEADER.pack(width, height, *_RGB_8_BIT)),
            _chunk(b"IDAT", zlib.compress(rows.tobytes(), 6)),
            _chunk(b"IEND", b""),
        ]
    )


def decode(data: bytes) -> NDArray[np.uint8]:
    """The picture in a file that `encode` made; any other kind of PNG is a `ValueError`."""
    if not data.startswith(_SIGNATURE):
        raise ValueError("not a PNG file")
    chunks: dict[bytes, bytes] = {}
    position = len(_SIGNATURE)
    while position < len(data):
        (length,) = struct.unpack_from(">I", data, position)
        kind, body = data[position + 4 : position + 8], data[position + 8 : position + 8 + length]
        if data[position : position + 12 + length] != _chunk(kind, body):
            raise ValueError(f"chunk {kind!r} is damaged")
        chunks[kind] = chunks.get(kind, b"") + body
        position += 12 + length
    width, height, *kind_of_picture = _HEADER.unpack(chunks[b"IHDR"])
    if tuple(kind_of_picture) != _RGB_8_BIT:
        raise ValueError("not an 8-bit RGB picture")
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), dtype=np.uint8).reshape(height, 1 + 3 * width)
    if (rows[:, 0] != 2).any():
        raise ValueError("a row filter that encode() does not write")
    return np.cumsum(rows[:, 1:], axis=0, dtype=np.uint8).reshape(height, width, 3)


def write(path: Path, picture: NDArray[np.uint8]) -> None:
    """Writes the picture to a file."""
    path.write_bytes(encode(picture))
