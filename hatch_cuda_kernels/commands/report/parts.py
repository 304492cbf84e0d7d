# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Parts that several sections of the page are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .markup import Markup, element, join

__all__ = ["bar", "data_table", "folded", "region"]


def data_table(
    caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[int] = ()
) -> Markup:
    """A table with row and column headers; `numbers` are the columns to the right. A cell that is a td is kept."""
    columns = [
        element("th", text, scope="col", class_="n" if index in numbers else None) for index, text in enumerate(head)
    ]
    body = []
    for row in rows:
        cells = (_cell(text, index in numbers) for index, text in enumerate(row[1:], 1))
        body.append(element("tr", element("th", row[0], scope="row"), *cells))
    table = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *columns)),
        element("tbody", *body),
    )
    return region(caption, table)


def _cell(text: str, number: bool) -> Markup:
    if isinstance(text, Markup) and text.startswith("<td"):
        return text
    return element("td", text, class_="n" if number else None)


def region(label: str, *children: str) -> Markup:
    """Something wide: it scrolls on its own, by keyboard too."""
    return element("div", *children, class_="scroll", role="region", aria_label=label, tabindex=0)


def bar(text: str, share: float) -> Markup:
    """A cell with a number, and its share of the most there can be as a bar."""
    width = max(0.0, min(100.0, 100 * share))
    drawn = element("span", element("i", style=f"width:{width:.0f}%"), class_="bar", aria_hidden="true")
    return element("td", text, drawn, class_="n")


def folded(summary: str, *children: str) -> Markup:
    """Something to be opened."""
    return element("details", element("summary", summary), join(children))
