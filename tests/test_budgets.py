# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Budgets in the hook table, held by real builds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from projects import KERNEL, make_project
from support import nowhere, write_project

from hatch_cuda_kernels.budgets import wheel_over_budget
from hatch_cuda_kernels.build import build_packages
from hatch_cuda_kernels.config import Config
from hatch_cuda_kernels.errors import CompilationError, ConfigurationError
from hatch_cuda_kernels.modules import ShippedPackage, find_modules

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


class Told:
    """A reporter that keeps its warnings."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def info(self, message: str) -> None:
        """See account.Reporter."""

    def step(self, done: int, total: int, what: str) -> None:
        """See account.Reporter."""

    def warning(self, message: str) -> None:
        """See account.Reporter."""
        self.warnings.append(message)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a kernel that takes all the registers it is given, and one that takes few."""
    return write_project(tmp_path_factory.mktemp("budgets"), FILES)


def build(root: Path, **budgets: Any) -> list[str]:
    """Build with these budgets, through one cache; the warnings about them."""
    table = {
        "archs": ["sm_80", "sm_90", "compute_80"],
        "options": {"max-register-count": 32},
        "cache": str(root / "cache"),
        **{key.replace("_", "-"): value for key, value in budgets.items()},
    }
    config = Config.from_table(table, where="hook")
    packages = [ShippedPackage(name="demo", folder="demo")]
    told = Told()
    specs = find_modules(config, root, packages, where="hook")
    build_packages(config, root, specs, where="hook", reporter=told, put=nowhere).close()
    return [message for message in told.warnings if "budget" in message]


@pytest.mark.parametrize(
    ("budgets", "message"),
    [
        ({"max_registers": 24}, "heavy:heavy on sm_80, sm_90: 32 registers; max-registers is 24"),
        ({"max_registers": {"*": 24, "heavy:heavy": 31}}, "max-registers is 31"),
        ({"max_spill_bytes": 0}, "bytes of spills; max-spill-bytes is 0"),
    ],
)
def test_kernel_over_budget(root: Path, budgets: dict[str, Any], message: str) -> None:
    """A kernel that needs more than its budget ends the build, or is told alone; others are not named."""
    with pytest.raises(CompilationError, match=re.escape(message)) as caught:
        build(root, **budgets)
    assert "scale:scale" not in str(caught.value)
    (told,) = build(root, **budgets, over_budget="warn")
    assert message in told


def test_within_budget(root: Path) -> None:
    """What a kernel is allowed by its own entry is not judged by that of all others."""
    assert build(root, max_registers={"*": 24, "heavy": 255}) == []


def test_budget_of_no_kernel(root: Path) -> None:
    """A limit for a kernel that there is not would guard nothing: it is a mistake."""
    message = "hook.max-registers: there is no kernel 'scael'; did you mean 'scale'?"
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        build(root, max_registers={"scael": 24})


@pytest.mark.slow
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
    assert wheel_over_budget(Config(archs=(), max_wheel_bytes=size), size) is None
    assert wheel_over_budget(Config(archs=(), max_wheel_bytes=size - 1), size) is not None
