# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What changed from one wheel to another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from projects import KERNEL, make_project

from hatch_cuda_kernels.cli import main

BIGGER = """\
extern "C" __global__ void scale(float *x, float f)
{
    float v[24];
#pragma unroll
    for (int i = 0; i < 24; ++i) v[i] = x[i * 32 + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 24; ++i) x[i * 32 + threadIdx.x] = v[23 - i] * f;
}
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A wheel, and one made after some edits."""
    base = tmp_path_factory.mktemp("diff")
    files = {"demo/scale.cu": KERNEL, "demo/same.cu": KERNEL.replace("scale", "same"), "demo/old.cu": KERNEL}
    project = make_project(base, 'archs = ["sm_80", "sm_90", "compute_80"]', files)
    assert project.build(out=base / "one").status == 0
    (project.root / "demo/old.cu").unlink()
    project.write({"demo/scale.cu": BIGGER, "demo/new.cu": KERNEL})
    text = (project.root / "pyproject.toml").read_text().replace('"sm_90"', '"sm_100"')
    project.write({"pyproject.toml": text + "options = { fma = false }\ndefines = { N = 3 }\n"})
    run = project.build(out=base / "two")
    assert run.status == 0, run.output
    return project.wheel(base / "one"), project.wheel(base / "two")


def difference(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> dict[str, Any]:
    """The one package of `diff --json`."""
    assert main(["diff", *map(str, arguments), "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert value["schema"] == 1
    (found,) = value["packages"]
    return dict(found)


def test_everything_that_moved(wheels: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Kernels, images, resources, settings and sources: each with what it was and what it is."""
    found = difference(capsys, *wheels)
    assert found["status"] == "changed"
    assert [(move["where"], move["old"], move["new"]) for move in found["kernels"]] == [
        ("new:scale", None, "there"),
        ("old:scale", "there", None),
    ]
    images = {(move["where"], move["arch"]): (move["old"], move["new"]) for move in found["architectures"]}
    assert images["same", "sm_90"][1] is None and images["same", "sm_100"][0] is None
    assert ("same", "sm_80") not in images
    resources = {(m["where"], m["arch"], m["what"]): (m["old"], m["new"]) for m in found["resources"]}
    before, after = resources["scale:scale", "sm_80", "registers"]
    assert before < after
    assert ("scale:scale", "compute_80", "registers") not in resources
    assert {(m["where"], m["what"], m["old"], m["new"]) for m in found["settings"]} == {
        ("same", "options.fma", None, False),
        ("same", "defines.N", None, "3"),
        ("scale", "options.fma", None, False),
        ("scale", "defines.N", None, "3"),
    }
    assert {(m["where"], m["old"] is None, m["new"] is None) for m in found["sources"]} == {
        ("demo/new.cu", True, False),
        ("demo/old.cu", False, True),
        ("demo/scale.cu", False, False),
    }
    assert {move["where"] for move in found["images"]} >= {"scale"}


def test_backwards_is_the_mirror(wheels: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """From new to old every move is the same one, turned round."""
    there, back = difference(capsys, *wheels), difference(capsys, *reversed(wheels))
    for part in ("kernels", "architectures", "resources", "images", "settings", "sources"):
        turned = [{**move, "old": move["new"], "new": move["old"]} for move in back[part]]
        assert turned == there[part]


def test_text_and_markdown(wheels: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Both forms tell each part that changed, and none that did not."""
    old, new = map(str, wheels)
    assert main(["diff", old, new]) == 0
    text = capsys.readouterr().out
    for word in ("Kernels", "old:scale  gone", "Images gone or new", "Resources", "Settings", "demo/scale.cu  edited"):
        assert word in text
    assert main(["diff", old, new, "--format", "markdown"]) == 0
    markdown = capsys.readouterr().out
    assert markdown.startswith("**demo: images ")
    assert "| old:scale | gone |" in markdown
    assert "compiler" not in text


def test_nothing_changed(wheels: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """A wheel and itself: nothing changed, and --exit-code says so too."""
    old, new = map(str, wheels)
    assert main(["diff", old, old, "--exit-code"]) == 0
    assert capsys.readouterr().out == "demo: nothing changed\n"
    assert main(["diff", old, new, "--exit-code"]) == 1


@pytest.mark.slow
def test_other_packages(wheels: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A package that only one of them has is gone or new."""
    project = make_project(
        tmp_path, 'archs = ["sm_80"]\npackage = "other"', {"other/__init__.py": "", "other/k.cu": KERNEL}
    )
    text = (project.root / "pyproject.toml").read_text()
    project.write(
        {
            "pyproject.toml": text.replace(
                "[tool.hatch", '[tool.hatch.build.targets.wheel]\npackages = ["other"]\n[tool.hatch', 1
            )
        }
    )
    run = project.build()
    assert run.status == 0, run.output
    assert main(["diff", str(wheels[0]), str(project.wheel())]) == 0
    assert capsys.readouterr().out == "demo: the package is gone\n\nother: the package is new\n"


def test_no_wheel(wheels: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is no wheel is one message, whichever side it is on."""
    bad = tmp_path / "bad.whl"
    bad.write_bytes(wheels[0].read_bytes()[:500])
    for arguments in ((wheels[0], bad), (bad, wheels[0])):
        assert main(["diff", *map(str, arguments)]) == 1
        assert "bad.whl is no wheel" in capsys.readouterr().err
    assert main(["diff", str(wheels[0]), "no/such.whl"]) == 2
