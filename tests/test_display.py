# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Sizes, tables and colours."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hatch_cuda_kernels.display import Ink, columns_of, counted, format_size, markdown_table, printable, table


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (99_949, "99.9 kB"),
        (99_950, "100 kB"),
        (412_345, "412 kB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"),
        (2**40, "1.1 TB"),
        (10**17, "100000 TB"),
    ],
)
def test_sizes(size: int, text: str) -> None:
    """Three digits, and never "1000 kB"."""
    assert format_size(size) == text


def test_counts() -> None:
    """One is one."""
    assert [counted(number, "image") for number in (0, 1, 2)] == ["0 images", "1 image", "2 images"]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Colours on a terminal; none with NO_COLOR, on a dumb one, or into a file."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert Ink(_Terminal())("bold", "x") == "\x1b[1mx\x1b[0m"
    assert Ink(io.StringIO())("bold", "x") == "x"
    monkeypatch.setenv("NO_COLOR", "1")
    assert Ink(_Terminal())("bold", "x") == "x"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert Ink(_Terminal())("bold", "x") == "x"


def test_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are folded for a terminal, or where COLUMNS is given; else they may be of any length."""
    monkeypatch.delenv("COLUMNS", raising=False)
    assert columns_of(io.StringIO()) is None
    monkeypatch.setenv("COLUMNS", "100")
    assert columns_of(io.StringIO()) == 100
    assert columns_of(_Terminal()) == 100


def test_table_in_blocks() -> None:
    """Columns that do not fit follow below, with the first one repeated."""
    rows = [["kernel", "aaaa", "bbbb", "cccc"], ["one", "1", "2", "3"]]
    assert table(rows) == ["kernel  aaaa  bbbb  cccc", "one        1     2     3"]
    assert table(rows, 20) == ["kernel  aaaa  bbbb", "one        1     2", "", "kernel  cccc", "one        3"]
    assert table(rows, 20, left=2) == [
        "kernel  aaaa  bbbb", "one     1        2", "", "kernel  aaaa  cccc", "one     1        3",
    ]  # fmt: skip
    long = [["kernel", "n"], ["a_long_name_of_a_kernel", "1"]]
    assert table(long, 20) == ["kernel             n", "a_long_n…a_kernel  1"]


@given(
    st.lists(st.lists(st.text(max_size=60), min_size=4, max_size=4), min_size=1, max_size=5),
    st.integers(40, 120),
    st.integers(1, 2),
)
def test_any_table_fits(rows: list[list[str]], width: int, left: int) -> None:
    """Whatever the cells hold, no line is longer than the width, and nothing in it steers a terminal."""
    for line in table(rows, width, left=left):
        assert len(line) <= width
        assert line.isprintable()


@given(st.text())
def test_printable(text: str) -> None:
    """One line of visible characters, and the same text where it was one already."""
    shown = printable(text)
    assert shown.isprintable()
    assert shown == text or not text.isprintable()


def test_markdown_cells_mean_themselves() -> None:
    """A kernel's name is no markup, no column, no mention of somebody."""
    (_, _, row) = markdown_table([["kernel", "n"], ["k<a|b>`*_[x](y)@someone\n# h", "1"]])
    assert row.count(" | ") == 1
    for raw in ("<a", "@someone", "\n"):
        assert raw not in row
    assert "k&lt;a\\|b&gt;\\`\\*\\_\\[x\\]" in row
