# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What is shown to people: sizes, tables that fit, colours where there is a terminal for them."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from typing import TextIO

__all__ = [
    "Ink",
    "columns_of",
    "counted",
    "format_size",
    "markdown_table",
    "markdown_text",
    "print_json",
    "printable",
    "table",
]

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_GAP = "  "


def print_json(value: object) -> None:
    """What every `--json` prints."""
    print(json.dumps(value, indent=1, sort_keys=True))


def format_size(size: int) -> str:
    """`412345` -> `"412 kB"`: three digits, in powers of a thousand."""
    amount, unit = float(size), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if amount < 999.5:
            break
        amount, unit = amount / 1000, larger
    return f"{amount:.1f} {unit}" if unit != "B" and amount < 99.95 else f"{amount:.0f} {unit}"


def counted(number: int, noun: str) -> str:
    """`"1 image"`, `"2 images"`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def printable(text: str, keep: str = "") -> str:
    """Text of a stranger's file without what would steer a terminal or break a line, save what is to be kept."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in keep else c.encode("unicode_escape", "backslashreplace").decode() for c in text
    )


class Ink:
    """Colours for one stream: none where it is no terminal, or where `NO_COLOR` is set."""

    def __init__(self, stream: TextIO | None = None) -> None:
        stream = sys.stdout if stream is None else stream
        self.on = stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    def __call__(self, style: str, text: str) -> str:
        """`text` in a style of `_CODES`."""
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self.on and text else text


def columns_of(stream: TextIO | None = None) -> int | None:
    """Width to fit into: that of the terminal, or what `COLUMNS` says; None where lines may be of any length."""
    stream = sys.stdout if stream is None else stream
    if stream.isatty() or os.environ.get("COLUMNS", "").isdigit():
        return max(40, shutil.get_terminal_size().columns)
    return None


def table(
    rows: Sequence[Sequence[str]],
    width: int | None = None,
    *,
    left: int = 1,
    ink: Ink | None = None,
    styles: dict[str, str] | None = None,
) -> list[str]:
    """Lines of a table whose first row is its head: `left` columns to the left, the others to the right.

    Where it is wider than `width`, the first column is shortened, down to three tenths of it; columns that do not fit
    even so follow in further blocks, each with the left columns. `styles` maps the text of a cell to its style.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    if width is not None:
        rows = [[row[0], *(_shortened(cell, width // 4) for cell in row[1:])] for row in rows]
        over = sum(max(map(len, column)) + len(_GAP) for column in zip(*rows, strict=True)) - len(_GAP) - width
        if over > 0:
            first = max(max(len(row[0]) for row in rows) - over, width * 3 // 10)
            rows = [[_shortened(row[0], first), *row[1:]] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines: list[str] = []
    for block in _blocks(widths, width, left):
        if lines:
            lines.append("")
        for number, row in enumerate(rows):
            cells = [row[i].ljust(widths[i]) if i < left else row[i].rjust(widths[i]) for i in block]
            if ink is not None:
                chosen = ["bold" if number == 0 else (styles or {}).get(row[i], "") for i in block]
                cells = [ink(style, cell) if style else cell for style, cell in zip(chosen, cells, strict=True)]
            lines.append(_GAP.join(cells).rstrip())
    return lines


def _blocks(widths: Sequence[int], width: int | None, left: int) -> list[list[int]]:
    """Columns of each block: the left ones, and as many others as fit."""
    start = sum(widths[:left]) + len(_GAP) * (left - 1)
    blocks: list[list[int]] = [list(range(left))]
    taken = start
    for index in range(left, len(widths)):
        needed = len(_GAP) + widths[index]
        if width is not None and taken + needed > width and len(blocks[-1]) > left:
            blocks.append(list(range(left)))
            taken = start
        blocks[-1].append(index)
        taken += needed
    return blocks


def _shortened(text: str, width: int) -> str:
    """Text cut in its middle: the ends tell kernels apart."""
    if len(text) <= width or width < 9:
        return text
    head = (width - 1) // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def markdown_table(rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """The same as a table of Markdown, for a comment on a pull request."""
    head, *body = [[markdown_text(cell) for cell in row] for row in rows]
    rule = ["---" if index < left else "--:" for index in range(len(head))]
    return [f"| {' | '.join(row)} |" for row in (head, rule, *body)]


def markdown_text(text: str) -> str:
    """Text that means itself in Markdown: no markup, no HTML, no mention, no further column."""
    text = printable(text)
    plain = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("@", "&#64;")
    return "".join(f"\\{c}" if c in "\\`*_{}[]#|~!" else c for c in plain)
