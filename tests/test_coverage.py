# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Whom a package serves: the matrix, and what `verify --require` makes of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from projects import KERNEL, make_project

from hatch_cuda_kernels.arch import CAPABILITIES, Architecture, format_capability
from hatch_cuda_kernels.cli import main
from hatch_cuda_kernels.commands.coverage import cover, default_drivers, group_rows, holes, names_text
from hatch_cuda_kernels.manifest import Fallback, Image, Manifest, Module
from hatch_cuda_kernels.selection import select

ALL = "late:both, late:late, scale:scale"
ONLY_HOPPER = '#if __CUDA_ARCH__ >= 900\nextern "C" __global__ void late(int *x) { *x = 1; }\n#endif\n'


def module(name: str, architectures: list[Architecture], kernel: str = "k") -> Module:
    """A module of a made-up manifest; every image has the kernel."""
    images = tuple(
        Image(architecture=a, file=f"{name}.{a}.{a.format}", size=1, sha256="0" * 64, entries={kernel: None})
        for a in architectures
    )
    return Module(
        name=name, source=f"{name}.cu", options={}, defines={}, include_dirs=(), toolkit_headers="auto",
        host_code="skip", name_expressions=(), kernels={kernel: kernel}, images=images,
    )  # fmt: skip


def manifest(modules: list[Module], *, jit: bool, release: str = "13.5.37") -> Manifest:
    """A made-up manifest."""
    return Manifest(package="demo", release=release, modules=modules, fallback=Fallback(files={}) if jit else None)


architectures = st.lists(
    st.builds(
        Architecture,
        st.sampled_from([major * 10 + minor for major, minor in CAPABILITIES]),
        st.sampled_from(["", "a", "f"]),
        st.booleans(),
    ),
    unique=True,
)


@given(architectures, st.booleans(), st.sampled_from([(12, 9), (13, 0), (13, 5), (14, 0)]))
def test_cells_are_the_selections(found: list[Architecture], jit: bool, driver: tuple[int, int]) -> None:
    """Every cell is the choice of the one rule engine, and a hole is where it chooses nothing."""
    one = module("m", found)
    coverage = cover(manifest([one], jit=jit), CAPABILITIES, driver)
    (row,) = coverage.rows
    for capability, cell in zip(CAPABILITIES, row.cells, strict=True):
        expected = select(
            kernel="k", images=one.images, device=capability, driver=driver, compiler=(13, 5), has_sources=jit
        ).choice
        assert (cell and (cell.kind, cell.arch)) == (expected and (expected.kind, expected.arch))
    bare = [c for _, found in holes(coverage, jit=True) for c in found]
    assert bare == [c for c, cell in zip(CAPABILITIES, row.cells, strict=True) if cell is None]


def test_drivers_where_the_answer_changes() -> None:
    """The last driver of the major before, the first of the compiler's major, and the compiler's version."""
    assert default_drivers(manifest([], jit=True)) == [(12, 9), (13, 0), (13, 5)]
    assert default_drivers(manifest([], jit=True, release="13.0.88")) == [(12, 9), (13, 0)]
    assert default_drivers(manifest([], jit=True, release="12.9.86")) == [(11, 8), (12, 0), (12, 9)]


def test_many_kernels() -> None:
    """Two thousand kernels with eight images each: one row to read."""
    many = [module(f"m{i}", [Architecture(n) for n in (75, 80, 86, 89, 90, 100, 120, 121)]) for i in range(2000)]
    coverage = cover(manifest(many, jit=False), CAPABILITIES, (13, 5))
    ((names, cells),) = group_rows(coverage.rows)
    assert names_text(names) == "m0:k, m1:k, m2:k, and 1997 more"
    assert len(cells) == len(CAPABILITIES)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel for sm_80, sm_90a and compute_90 with a kernel that only sm_90 and newer have."""
    files = {"demo/scale.cu": KERNEL, "demo/late.cu": KERNEL.replace("scale", "both") + ONLY_HOPPER}
    project = make_project(tmp_path_factory.mktemp("coverage"), 'archs = ["sm_80", "sm_90a", "compute_90"]', files)
    run = project.build()
    assert run.status == 0, run.output
    return project.wheel()


@pytest.mark.slow
def test_command(wheel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The matrix in text and as JSON, for all capabilities and the three drivers."""
    assert main(["coverage", str(wheel)]) == 0
    output = capsys.readouterr().out
    assert "demo under a driver of CUDA 12.9" in output
    assert main(["coverage", str(wheel), "--json", "--driver", "13.9"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert value["schema"] == 1
    (found,) = value["coverage"]
    assert (found["package"], found["driver"]) == ("demo", "13.9")
    rows = {row["kernel"]: row["serves"] for row in found["kernels"]}
    assert set(rows["scale"]) == {format_capability(capability) for capability in CAPABILITIES}
    assert rows["scale"]["8.6"] == {"kind": "cubin", "arch": "sm_80"}
    assert rows["scale"]["9.0"] == {"kind": "cubin", "arch": "sm_90a"}
    assert rows["scale"]["12.0"] == {"kind": "ptx", "arch": "compute_90"}
    assert rows["late"]["8.6"] == {"kind": "jit", "arch": "sm_86"}


@pytest.mark.parametrize(
    ("arguments", "problems"),
    [
        ([], []),
        (["--require", "9.0", "12.0"], []),
        (
            ["--require", "9.0", "12.0", "--driver", "13.0"],
            ["late:both, late:late, scale:scale: the run-time", "for 12.0 under a driver of CUDA 13.0"],
        ),
        (
            ["--require", "8.0", "9.0"],
            ["late:late: the run-time fallback, which --allow-jit would accept for 8.0 under"],
        ),
        (["--require", "8.0", "--require", "7.5", "--allow-jit"], []),
        (["--require", "7.5", "8.6"], ["late:both", "late:late", "7.5, 8.6", "scale:scale"]),
    ],
)
def test_require(wheel: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], problems: list[str]) -> None:
    """`verify --require` fails where a kernel would have no image, and names the kernel and the capability."""
    assert main(["verify", str(wheel), "--json", *arguments]) == (1 if problems else 0)
    value = json.loads(capsys.readouterr().out)
    assert value["ok"] is not bool(problems)
    text = "\n".join(found["problem"] for found in value["problems"])
    assert all(problem in text for problem in problems), text


@pytest.mark.slow
def test_require_without_fallback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where no source is shipped, --allow-jit changes nothing."""
    project = make_project(tmp_path, 'archs = ["sm_90a"]\njit = false')
    assert project.build().status == 0
    for more in ([], ["--allow-jit"]):
        assert main(["verify", str(project.wheel()), "--require", "10.0", *more]) == 1
        assert "scale:scale: nothing for 10.0" in capsys.readouterr().out


def test_require_misuse(wheel: Path) -> None:
    """A capability that cannot be read is misuse."""
    with pytest.raises(SystemExit) as caught:
        main(["verify", str(wheel), "--require", "sm_80"])
    assert caught.value.code == 2
