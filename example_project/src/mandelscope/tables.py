# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0

"""Plain text tables."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["table"]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest cell, under a ruled header."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    ruled = [header, ["-" * width for width in widths], *rows]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in ruled]
    return "\n".join(lines)
