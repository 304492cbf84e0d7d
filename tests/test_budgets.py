# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Budgets in the hook table, held by real builds."""

from __future__ import annotations

from pathlib import Path

import pytest
from projects import KERNEL, make_project

SPILLS = """
extern "C" __global__ void heavy(float *x)
{
    float v[64];
#pragma unroll
    for (int i = 0; i < 64; ++i) v[i] = x[i * 32 + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 64; ++i) x[i * 32 + threadIdx.x] = v[63 - i] * v[i];
}
"""
FILES = {"demo/scale.cu": KERNEL, "demo/heavy.cu": SPILLS}


@pytest.mark.parametrize(
    ("budget", "told"),
    [
        ("max-registers = 24", "heavy:heavy on sm_80, sm_90: 32 registers; max-registers is 24"),
        ('max-registers = { "*" = 24, "heavy:heavy" = 31 }', "max-registers is 31"),
        ("max-spill-bytes = 0", "bytes of spills; max-spill-bytes is 0"),
    ],
)
def test_kernel_over_budget(tmp_path: Path, budget: str, told: str) -> None:
    """A kernel that needs more than its budget ends the build; nothing of it is left, and its images are kept."""
    table = f'archs = ["sm_80", "sm_90", "compute_80"]\n{budget}\n[tool.hatch.build.hooks.cuda-kernels.options]'
    project = make_project(tmp_path, f"{table}\nmax-register-count = 32", FILES)
    run = project.build()
    assert run.status == 1
    assert told in run.output
    assert "scale:scale" not in run.output
    assert not list((tmp_path / "out").glob("*.whl"))
    warned = (project.root / "pyproject.toml").read_text().replace(budget, f'{budget}\nover-budget = "warn"')
    project.write({"pyproject.toml": warned})
    run = project.build()
    assert run.status == 0
    assert told in run.output
    assert set(run.outcomes.values()) == {"cached"}


def test_within_budget(tmp_path: Path) -> None:
    """What a kernel is allowed by its own entry is not judged by that of all others."""
    project = make_project(tmp_path, 'archs = ["sm_80"]\nmax-registers = { "*" = 24, "heavy" = 255 }', FILES)
    run = project.build()
    assert run.status == 0, run.output
    assert "over their budget" not in run.output


def test_budget_of_no_kernel(tmp_path: Path) -> None:
    """A limit for a kernel that there is not would guard nothing: it is a mistake."""
    run = make_project(tmp_path, 'archs = ["sm_80"]\nmax-registers = { "scael" = 24 }').build()
    assert run.status == 1
    assert "max-registers: there is no kernel 'scael'; did you mean 'scale'?" in run.output


def test_wheel_over_budget(tmp_path: Path) -> None:
    """A wheel that is larger than its budget is removed and told, or told alone."""
    project = make_project(tmp_path, 'archs = ["sm_80"]\nmax-wheel-bytes = 1000')
    run = project.build()
    assert run.status == 1
    assert "max-wheel-bytes is 1000" in run.output
    assert not list((tmp_path / "out").glob("*.whl"))
    text = (project.root / "pyproject.toml").read_text()
    project.write({"pyproject.toml": f'{text}over-budget = "warn"\n'})
    run = project.build()
    assert run.status == 0
    assert "warning: the wheel has" in run.output
    size = project.wheel().stat().st_size
    project.write({"pyproject.toml": text.replace("1000", str(size))})
    assert project.build().status == 0
