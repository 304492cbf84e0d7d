# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The documentation says what the code does."""

from __future__ import annotations

import json
import re
import runpy
import shutil
from pathlib import Path

import jsonschema
import pytest
import test_frontends
from projects import make_project, manifest_of

import hatch_cuda_kernels
from hatch_cuda_kernels import config, errors
from hatch_cuda_kernels.cli import _parser

REPOSITORY = Path(__file__).parent.parent
DOCS = REPOSITORY / "docs"


def rows(text: str) -> list[str]:
    """First cells of all table rows that are code."""
    return re.findall(r"^\| `([^`]+)`", text, re.MULTILINE)


def test_every_option_has_its_row() -> None:
    """The reference has one row for each key of the hook table and of [[modules]], and no other."""
    text = (DOCS / "reference/options.md").read_text()
    table, rest = text.split("## `[[tool.hatch", 1)
    modules, rest = rest.split("## Spellings", 1)
    assert rows(table) == list(config._FIELDS)
    assert rows(modules) == list(config._MODULE_FIELDS)
    environment = rest.split("## Environment", 1)[1]
    source = "".join(path.read_text() for path in Path(hatch_cuda_kernels.__file__).parent.rglob("*.py"))
    assert set(rows(environment)) == set(re.findall(r'"(HATCH_CUDA_KERNELS_[A-Z_]+)"', source))


def test_every_error_has_its_row() -> None:
    """The reference has one row for each error."""
    names = {name for name in errors.__all__ if name.endswith("Error")} - {"CudaKernelsError"}
    assert set(rows((DOCS / "reference/api.md").read_text())) == names


def test_every_command_has_its_row() -> None:
    """The reference has one row for each command."""
    text = (DOCS / "reference/commands.md").read_text().split("## JSON")[0]
    commands = {row.split(" TARGET")[0] for row in rows(text)}
    choices = next(action for action in _parser()._actions if action.choices).choices
    assert choices is not None
    assert {command.split()[0] for command in commands} == set(choices)


def test_every_file_is_on_the_map() -> None:
    """CONTRIBUTING's map names every module of the package."""
    text = (REPOSITORY / "CONTRIBUTING.md").read_text()
    for path in Path(hatch_cuda_kernels.__file__).parent.glob("[a-z]*.py"):
        assert f"`{path.name}`" in text, path.name


def test_manifest_schema(tmp_path: Path) -> None:
    """A real manifest satisfies the published schema, and a damaged one does not."""
    project = make_project(tmp_path, 'archs = ["sm_80", "compute_80"]')
    assert project.build().status == 0
    schema = json.loads((DOCS / "reference/manifest.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    manifest = manifest_of(project.wheel())
    jsonschema.validate(manifest, schema)
    manifest["modules"][0]["images"][0]["sha256"] = "0"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(manifest, schema)


def test_readme_example(tmp_path: Path) -> None:
    """The project that the README shows builds as shown."""
    text = (REPOSITORY / "README.md").read_text()
    table, more = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    (source,) = re.findall(r"```cuda\n(.*?)```", text, re.DOTALL)
    (python,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    project = make_project(tmp_path)
    shutil.rmtree(project.root / "demo")
    template = "template <class T> __global__ void axpby(T a, T *x) { *x *= a; }\n"
    project.write({"pyproject.toml": table + more, "my_app/__init__.py": python})
    project.write({"my_app/saxpy.cu": source, "my_app/axpby.cu": template})
    run = project.build()
    assert run.status == 0, run.output
    kernels = {name for module in manifest_of(project.wheel(), "my_app")["modules"] for name in module["kernels"]}
    assert kernels == {"saxpy", "axpby<float>", "axpby<double>"}


def test_generated_pages() -> None:
    """The page of what runs where is the one that the package's table gives."""
    names = runpy.run_path(str(DOCS / "generate.py"))
    assert (DOCS / "reference/compatibility.md").read_text("utf-8") == names["compatibility"]()


def test_every_cell_of_what_is_supported() -> None:
    """The page of what is supported names every case of the matrices, no other, and only tests that exist."""
    text = (DOCS / "reference/support.md").read_text("utf-8")
    sources = "".join(path.read_text("utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    for name in re.findall(r"`(test_\w+)`", text):
        assert f"def {name}(" in sources, name
    sections = dict(part.split("\n", 1) for part in text.split("\n## ")[1:])
    for title, cells in (
        ("Front ends and layouts", test_frontends.LAYOUT_CELLS),
        ("Front ends and toolchains", test_frontends.TOOLCHAIN_CELLS),
        ("Layouts and toolchains", test_frontends.LAYOUT_TOOLCHAIN_CELLS),
    ):
        named = [
            cell.strip("`")
            for row in re.findall(r"^\| .*\|$", sections[title], re.MULTILINE)
            for cell in re.split(r" *\| *", row)
            if re.fullmatch(r"`[\w.]+-[\w.]+`", cell)
        ]
        assert sorted(named) == sorted(str(cell.id) for cell in cells), title


def test_every_promise_has_its_test() -> None:
    """Each test that the page of faults names exists."""
    text = (DOCS / "explanation/faults.md").read_text("utf-8")
    sources = "".join(path.read_text("utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    for name in re.findall(r"`(test_\w+)`", text):
        assert f"def {name}(" in sources, name
