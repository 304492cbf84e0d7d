# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Results as a Markdown table and as a plot."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

__all__ = ["Measured", "write"]

_TIMED = ("cold", "warm", "kept", "touched")


@dataclass(frozen=True)
class Measured:
    """Times of one way of building one set in one scenario."""

    kernels: str
    way: str
    scenario: str
    seconds: Sequence[float]

    def to_dict(self) -> dict[str, Any]:
        """As the results have it."""
        return {"way": self.way, "scenario": self.scenario, "seconds": [round(s, 4) for s in self.seconds]}


def _middle(row: Mapping[str, Any] | None) -> float | None:
    return statistics.median(row["seconds"]) if row else None


def _by_name(run: Mapping[str, Any]) -> dict[tuple[str, str], Mapping[str, Any]]:
    return {(row["way"], row["scenario"]): row for row in run["rows"]}


def write(results: Mapping[str, Any], folder: Path) -> None:
    """Write `builds.md` and `builds.svg`."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = [f"## Set `{name}`\n\n{_table(run)}" for name, run in results["runs"].items()]
    (folder / "builds.md").write_text(_HEAD + "\n".join(parts), encoding="utf-8")
    (folder / "builds.svg").write_text(_plot(results["runs"]), encoding="utf-8")


_HEAD = """\
# How long builds take

Written by `python benchmarks/builds`. Cold: nothing is there. Warm: a clean checkout, with what earlier builds keep
outside of it. Kept: the same tree once more, with its build folder. Touched: the same after the edit of one header; the
hook compiled exactly the images that read it. Times are seconds, as median (least to most); a ratio is the way's median
to the hook's in the same scenario, so more than one means that the hook is quicker. A way without a cache of its own
builds a clean checkout as it does cold. The hook's images are those of the bare NVRTC loop, byte by byte.

The edit adds a comment. ccache sees through that, since it digests what the preprocessor makes of a source; the hook
digests files, and compiles what reads the header. The set `cute` includes CUTLASS, whose headers the hook knows for the
project's own: it reads and digests them in every build, and remembers what they could include.

![Times of all ways](builds.svg)

"""


def _table(run: Mapping[str, Any]) -> str:
    rows = _by_name(run)
    lines = ["| way | cold | warm: clean checkout | kept: same tree | touched: one header |", "|---|---|---|---|---|"]
    for way in dict.fromkeys(row["way"] for row in run["rows"]):
        cells = []
        for scenario in _TIMED:
            row = rows.get((way, scenario))
            basis = _middle(rows.get(("hook", scenario)))
            shown = row or (
                rows.get((way, "cold")) if scenario == "warm" and way not in ("hook", "packaging") else None
            )
            middle = _middle(shown)
            if shown is None or middle is None:
                cells.append("")
                continue
            ratio = f", {middle / basis:.2f} x" if basis and way != "hook" else ""
            text = f"{middle:.2f} ({min(shown['seconds']):.2f} to {max(shown['seconds']):.2f})" if row else "as cold"
            cells.append(text + ratio)
        lines.append(f"| {way} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n\n" + _measures(run, rows) + "\n"


def _measures(run: Mapping[str, Any], rows: Mapping[tuple[str, str], Mapping[str, Any]]) -> str:
    cold, warm = _middle(rows.get(("hook", "cold"))), _middle(rows.get(("hook", "warm")))
    single = _middle(rows.get(("serial NVRTC", "sum of single compiles")))
    packaging = _middle(rows.get(("packaging", "cold")))
    memory = _middle(rows.get(("hook", "peak memory of a worker, GB")))
    told = []
    if cold and single:
        told.append(
            f"Cold, to the sum of single compiles by {run['cores']} cores: {cold / (single / run['cores']):.2f}."
        )
    if warm and packaging:
        told.append(f"Warm, to packaging the finished files with `import cuda.core`: {warm / packaging:.2f}.")
    if memory:
        told.append(f"Most memory that a worker had: {memory:.2f} GB.")
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    return " ".join(told) + f"\n\n{run['date']}, {run['cores']} cores, {versions}. {run.get('note', '')}\n"


_WIDTH, _BAR, _LEFT = 860, 16, 250


def _plot(runs: Mapping[str, Any]) -> str:
    """Bars on a logarithmic scale, one group for each set and scenario."""
    bars: list[str] = []
    top = 30
    times = [_middle(row) or 0 for run in runs.values() for row in run["rows"] if row["scenario"] in _TIMED]
    low, high = math.log10(min(times) * 0.8), math.log10(max(times) * 1.3)
    for name, run in runs.items():
        for scenario in _TIMED:
            rows = [row for row in run["rows"] if row["scenario"] == scenario]
            if not rows:
                continue
            bars.append(f'<text class="head" x="8" y="{top}">{escape(name)}, {scenario}</text>')
            top += 8
            for row in rows:
                middle = _middle(row) or 0
                length = (math.log10(middle) - low) / (high - low) * (_WIDTH - _LEFT - 70)
                kind = "ours" if row["way"] == "hook" else "other"
                bars.append(
                    f'<text x="{_LEFT - 8}" y="{top + 12}" text-anchor="end">{escape(row["way"])}</text>'
                    f'<rect class="{kind}" x="{_LEFT}" y="{top}" width="{length:.1f}" height="{_BAR - 4}"/>'
                    f'<text x="{_LEFT + length + 5:.1f}" y="{top + 12}">{middle:.2f} s</text>'
                )
                top += _BAR
            top += 26
    style = (
        "text{font:12px sans-serif;fill:#222}.head{font-weight:bold}.ours{fill:#2b7a3d}.other{fill:#8a8f98}"
        "@media(prefers-color-scheme:dark){text{fill:#ddd}.ours{fill:#5cc27a}.other{fill:#7a808a}}"
    )
    title = "Seconds of each way of building each set; logarithmic, shorter is quicker"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top}" role="img" aria-label="{title}">'
        f"<title>{title}</title><style>{style}</style>\n" + "\n".join(bars) + "\n</svg>\n"
    )
