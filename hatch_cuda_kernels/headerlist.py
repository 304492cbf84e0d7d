# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Which headers a precompiled header was made of, as its file says.

Before NVRTC uses such a file, it holds each header that went into it against the time that the file has for it. So
the file has all of them, which a trace of a compile that uses it does not name. The file is no documented interface: a
list that is anything but what is known here, down to the time of each header, is none.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator
from pathlib import Path

__all__ = ["OWN_HEADER", "listed_headers"]

OWN_HEADER = "__nv_nvrtc_builtin_header.h"
"""NVRTC's own, which it reads ahead of every source. No file has it."""
_MAGIC = b"EDG C/C++ version "
_REACH = 4 << 20
"""Bytes among which the list lies: it comes ahead of all that was compiled."""
_LONGEST = 1 << 16


def listed_headers(file: Path, folder: Path) -> list[str] | None:
    """Names of the headers as the compiler spelled them, from `folder`; None where that is not known."""
    try:
        with open(file, "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if data[: len(_MAGIC)] != _MAGIC:
                return None
            lists = list(_lists(data))
    except (OSError, ValueError, struct.error):
        return None
    if len(lists) != 1 or not all(_is_that_old(folder / name, time) for name, time in lists[0]):
        return None
    return list(dict.fromkeys(name for name, _ in lists[0]))


def _lists(data: mmap.mmap) -> Iterator[list[tuple[str, int]]]:
    """What can be read as a list of headers and their times: one begins with NVRTC's own."""
    first = _entry(OWN_HEADER, 0)
    position = data.find(first, 0, _REACH)
    while position >= 0:
        if found := _entries(data, position + len(first)):
            yield found
        position = data.find(first, position + 1, _REACH)


def _entry(name: str, time: int) -> bytes:
    """A header in the list: the length of its name with the NUL at its end, the name, its time."""
    text = os.fsencode(name) + b"\0"
    return struct.pack(f"<Q{len(text)}sQ", len(text), text, time)


def _entries(data: mmap.mmap, position: int) -> list[tuple[str, int]]:
    """The entries from a position to the end of the list, which is a length of 0; none where they are no such list."""
    found: list[tuple[str, int]] = []
    while length := struct.unpack_from("<Q", data, position)[0]:
        if length > _LONGEST:
            return []
        text, time = struct.unpack_from(f"<{length}sQ", data, position + 8)
        if text.find(b"\0") != length - 1:
            return []
        found.append((os.fsdecode(text[:-1]), time))
        position += 8 + length + 8
    return found


def _is_that_old(path: Path, time: int) -> bool:
    try:
        return int(path.stat().st_mtime) == time
    except (OSError, ValueError):
        return False
