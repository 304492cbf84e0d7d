# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Types of the C++ library that are not the same with libcu++ as with the library that nvcc uses on Linux."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .tokens import code_of

__all__ = ["other_layouts"]

_LAYOUT = re.compile(
    r"(?<![\w:])(?:::\s*)?std\s*::\s*"
    r"(complex|tuple|variant|string_view|max_align_t|array\s*<[^;<>{}()]{0,200},\s*0\s*>)(?!\w)"
    r"|(?<=[:,])\s*(?:(?:public|private|protected|virtual)\s+)*(?:::\s*)?std\s*::\s*(?P<base>optional|expected)(?!\w)"
)
"""Of the last two, a class that is derived may begin in their last bytes with one library alone."""


def other_layouts(data: bytes) -> Iterator[tuple[int, str]]:
    """Line and name where a text first uses each type of the library whose size, alignment or order differs."""
    text, seen = code_of(data.decode("latin-1")), set()
    for match in _LAYOUT.finditer(text):
        name = re.sub(r"\s+", " ", match[1] or match["base"])
        if name not in seen:
            seen.add(name)
            yield text.count("\n", 0, match.start()) + 1, f"std::{name}"
