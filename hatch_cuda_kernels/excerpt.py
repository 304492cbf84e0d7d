# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Parts of a large manifest, found where they lie: what a load costs does not grow with what it does not use.

The text of a manifest is sorted, and its outer levels are indented by one space (manifest.canonical_json). A JSON
string holds no line feed, so that lines are structure. Every entry of `kernels` (`  "saxpy": [`) and of `modules` (`
{`) begins a block at an indentation of two; both lists are sorted, and `kernels` comes first. That is enough for a
binary search. Text that is not so, or lacks what is looked for, gives None: whoever asks then reads the manifest as a
whole.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, BinaryIO, NamedTuple

__all__ = ["Outline", "find_kernel", "find_module", "read_outline"]

_WINDOW = 4096
_STARTS = (b'\n  "', b"\n  {\n")
_KERNEL, _MODULE = 1, 2
"""Order of the blocks; before them are those of the keys `compiler` and `fallback`, whose values are objects too."""


class Outline(NamedTuple):
    """What the ends of a manifest say. `fallback`: whether sources are shipped."""

    schema: object
    release: object
    fallback: bool


def read_outline(stream: BinaryIO, size: int) -> Outline | None:
    """What stands before and behind the lists."""
    head, tail = _read(stream, 0, _WINDOW), _read(stream, max(0, size - _WINDOW), size)
    compiler, separator, rest = head.removeprefix(b'{\n "compiler": ').partition(b'},\n "fallback": ')
    last = tail.rpartition(b"\n ],\n ")[2]
    try:
        found = json.loads(b"{" + last)
        release = json.loads(compiler + b"}")["release"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not separator or set(found) != {"package", "schema"}:
        return None
    return Outline(found["schema"], release, not rest.startswith(b"null,\n"))


def find_kernel(stream: BinaryIO, size: int, kernel: str) -> list[str] | None:
    """Names of the modules that have a kernel, whose name is squeezed."""
    found = _search(stream, size, (_KERNEL, kernel))
    names = found.get(kernel) if found else None
    return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else None


def find_module(stream: BinaryIO, size: int, name: str) -> Mapping[str, Any] | None:
    """A module as the manifest has it."""
    return _search(stream, size, (_MODULE, name))


def _search(stream: BinaryIO, size: int, wanted: tuple[int, str]) -> dict[str, Any] | None:
    low, high = 0, size
    while low < high:
        middle = (low + high) // 2
        begin = _block_before(stream, low, middle)
        end = _block_after(stream, middle + 1, high)
        found = None if begin is None else _parse(_read(stream, begin, end))
        if begin is None or found is None or found[0] < wanted:
            low = end
        elif found[0] > wanted:
            high = begin
        else:
            return found[1]
    return None


def _parse(text: bytes) -> tuple[tuple[int, str], dict[str, Any]] | None:
    """Order and value of the block that `text` begins with; None for one that comes before the lists."""
    module = text.startswith(_STARTS[1])
    entry = text.lstrip().decode("utf-8", "replace")
    try:
        if module:
            value, _ = json.JSONDecoder().raw_decode(entry)
            return (_MODULE, str(value["name"])), value
        key, end = json.JSONDecoder().raw_decode(entry)
        if not entry.startswith(": [\n", end):
            return None
        modules, _ = json.JSONDecoder().raw_decode(entry, end + 2)
        return (_KERNEL, str(key)), {key: modules}
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _block_before(stream: BinaryIO, low: int, middle: int) -> int | None:
    """Where the last block begins that begins in `low`..`middle`."""
    end, window = middle, _WINDOW
    while True:
        begin = max(low, end - window)
        text = _read(stream, begin, end + len(_STARTS[1]))
        found = max(text.rfind(start, 0, end - begin + len(start)) for start in _STARTS)
        if found >= 0:
            return begin + found
        if begin == low:
            return None
        end, window = begin, window * 2


def _block_after(stream: BinaryIO, low: int, high: int) -> int:
    """Where the first block begins that begins in `low`..`high`, else `high`."""
    begin, window = low, _WINDOW
    while begin < high:
        text = _read(stream, begin, begin + window + len(_STARTS[1]))
        found = [position for start in _STARTS if 0 <= (position := text.find(start)) < window]
        if found:
            return min(begin + min(found), high)
        begin, window = begin + window, window * 2
    return high


def _read(stream: BinaryIO, begin: int, end: int) -> bytes:
    stream.seek(begin)
    return stream.read(end - begin)
