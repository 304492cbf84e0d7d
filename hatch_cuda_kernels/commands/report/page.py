# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The page: one file, no script, nothing from anywhere else; a policy in it forbids both."""

from __future__ import annotations

from ..._version import __version__
from ...occupancy import SOURCE
from .markup import Markup, element, join
from .sections import (
    coverage_section,
    difference_section,
    glance,
    kernels_section,
    settings_section,
    size_section,
)
from .style import STYLE
from .summary import PackageSummary, Summary
from .timeline import build_section

__all__ = ["page"]

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(summary: Summary) -> str:
    """The report as HTML."""
    sections: list[tuple[str, str, Markup]] = []
    for number, found in enumerate(summary.packages):
        suffix = f"-{number}" if number else ""
        named = f" of {found.manifest.package}" if len(summary.packages) > 1 else ""
        sections += [(f"{key}{suffix}", f"{title}{named}", part) for key, title, part in _package(found, summary.size)]
    if summary.build is not None:
        sections.append(("build", "Build", build_section(summary.build)))
    links = [element("li", element("a", title, href=f"#{key}")) for key, title, _ in sections]
    names = ", ".join(found.manifest.package for found in summary.packages)
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("title", f"CUDA kernels of {summary.title}"),
        element("style", Markup(STYLE)),
    )
    body = element(
        "body",
        element("a", "Skip to the report", href="#report", class_="skip"),
        element(
            "header",
            element("h1", f"CUDA kernels of {summary.title}"),
            element("p", f"Import package: {names}", class_="muted"),
            element("nav", element("ul", *links), aria_label="Sections"),
        ),
        element("main", *(_section(*found) for found in sections), id="report"),
        element(
            "footer",
            element("p", f"Made by hatch-cuda-kernels {__version__}. Limits for occupancy: {SOURCE}."),
        ),
    )
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _section(key: str, title: str, part: Markup) -> Markup:
    return element("section", element("h2", title, id=key), part, aria_labelledby=key)


def _package(found: PackageSummary, wheel_size: int | None) -> list[tuple[str, str, Markup]]:
    parts = [("glance", "At a glance", glance(found, wheel_size))]
    if found.difference is not None:
        parts.append(("changes", "Changes", difference_section(found.difference)))
    return [
        *parts,
        ("coverage", "Coverage", coverage_section(found.coverages)),
        ("sizes", "Sizes", size_section(found.manifest)),
        ("kernels", "Kernels", kernels_section(found.kernels)),
        ("settings", "Settings", join([settings_section(found.manifest)])),
    ]
