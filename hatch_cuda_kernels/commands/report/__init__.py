# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""`report`: a package as a page for reviewers, as Markdown for a pull request, and as JSON."""

from __future__ import annotations

import sys
from pathlib import Path

from ...display import print_json
from .markdown import markdown
from .page import page
from .summary import summarise

__all__ = ["run"]


def run(
    *,
    target: str,
    package: str | None,
    output: str | None,
    form: str | None,
    against: str | None,
    build_report: str | None,
    as_json: bool,
) -> int:
    """Write the report to `output`, or print it."""
    form = "json" if as_json else form or ("markdown" if (output or "").endswith(".md") else "html")
    summary = summarise(target, package, against=against, build_report=build_report)
    if form == "json" and output is None:
        print_json(summary.to_dict())
        return 0
    text = summary.to_json() if form == "json" else page(summary) if form == "html" else markdown(summary)
    if output is None:
        print(text, end="")
    else:
        Path(output).write_text(text, encoding="utf-8")
        print(f"wrote {output}", file=sys.stderr)
    return 0
