# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""HTML that cannot be broken out of: whatever is no Markup is text, and is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable

from ...display import printable

__all__ = ["Markup", "element", "join"]


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


_VOID = frozenset({"meta"})


def element(tag: str, /, *children: str, **attributes: str | float | None) -> Markup:
    """`element("td", "a < b", class_="n")`. An attribute of None is left out; `aria_label` is `aria-label`."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = join(children)
    return Markup(f"<{tag}{written}>" if tag in _VOID else f"<{tag}{written}>{inside}</{tag}>")


def join(children: Iterable[str]) -> Markup:
    """Children one after the other."""
    return Markup("".join(child if isinstance(child, Markup) else _escape(child) for child in children))


def _escape(text: str) -> str:
    return html.escape(printable(text, "\n"), quote=True)
