# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Write the parts of the documentation that are made from the package: `python docs/generate.py`."""

from __future__ import annotations

from pathlib import Path

from hatch_cuda_kernels.arch import (
    CAPABILITIES,
    FAMILIES,
    TEGRA,
    Architecture,
    cubin_verdict,
    format_capability,
    ptx_verdict,
)

PLAIN = [75, 80, 86, 87, 88, 89, 90, 100, 103, 107, 110, 120, 121]


def compatibility() -> str:
    """The page of what runs where."""
    names = " | ".join(format_capability(found) for found in CAPABILITIES)
    rule = "|---" * (len(CAPABILITIES) + 1) + "|"
    lines = [
        "# What runs where",
        "",
        "Made by `docs/generate.py` from the table in `hatch_cuda_kernels/arch.py`, whose source is the CUDA C++",
        "programming guide (compute capabilities; binary and PTX compatibility; family- and architecture-specific",
        "features). Columns are the compute capabilities of devices. What the driver adds is in",
        "[selection](../explanation/selection.md).",
        "",
        "Tegra parts: "
        + ", ".join(format_capability(found) for found in sorted(TEGRA))
        + ". Families of `f`: "
        + "; ".join(
            f"{number}f: " + ", ".join(map(format_capability, sorted(found)))
            for number, found in sorted(FAMILIES.items())
        )
        + ".",
    ]
    groups = {
        "Cubins": [Architecture(number) for number in PLAIN],
        "Architecture-specific cubins": [Architecture(number, "a") for number in PLAIN if number >= 90],
        "Family-specific cubins": [Architecture(number, "f") for number in PLAIN if number >= 100],
        "PTX": [Architecture(number, virtual=True) for number in PLAIN],
    }
    for title, architectures in groups.items():
        lines += ["", f"## {title}", "", f"| | {names} |", rule]
        for architecture in architectures:
            verdict = ptx_verdict if architecture.virtual else cubin_verdict
            cells = ["yes" if verdict(architecture, device)[0] else "" for device in CAPABILITIES]
            lines.append(f"| `{architecture}` | " + " | ".join(cells) + " |")
    lines += ["", "Suffixed PTX (`compute_90a`, `compute_100f`) runs where the cubin of the same suffix does.", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    Path(__file__).with_name("reference").joinpath("compatibility.md").write_text(compatibility(), encoding="utf-8")
