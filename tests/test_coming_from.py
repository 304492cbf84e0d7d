# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The projects before and after that the how-tos show: both are what they say, and what comes after builds and runs."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from fake_driver import COMPILER, build, environment, read_log
from projects import Project, manifest_of
from support import Quiet

from hatch_cuda_kernels.build import build_packages
from hatch_cuda_kernels.config import Config
from hatch_cuda_kernels.editable import hook_table
from hatch_cuda_kernels.modules import ShippedPackage, find_modules
from hatch_cuda_kernels.setup.init import propose

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECTS = Path(__file__).parent.parent / "docs/projects"
WHERE = "tool.hatch.build.hooks.cuda-kernels"

KERNELS = {
    "cupy": ("ripple", {"damp<double>", "damp<float>"}),
    "load-inline": ("clip", {"clip_kernel"}),
    "cuda-extension": ("blend", {"blend_kernel"}),
    "cmake": ("tally", {"tally"}),
    "nvcc": ("relax", {"relax<double,256>", "relax<float,256>"}),
    "pycuda": ("stencil", {"smooth"}),
    "numba": ("orbit", {"advance"}),
}


def table_of(pyproject: str) -> dict[str, Any]:
    """The hook table in the text of a `pyproject.toml`."""
    return hook_table(tomllib.loads(pyproject)["tool"]["hatch"]["build"]["hooks"]["cuda-kernels"])


def images(root: Path, table: dict[str, Any], package: ShippedPackage) -> dict[str, bytes]:
    """Name of each kernel -> machine code for sm_80 of the module that has it, compiled here."""
    config = Config.from_table({**table, "archs": ["sm_80"], "cache": False}, where=WHERE)
    specs = find_modules(config, root, [package], where=WHERE)
    built: dict[str, bytes] = {}

    def put(package: str, name: str, pieces: Iterable[bytes]) -> None:
        built[name] = b"".join(pieces)

    build_packages(config, root, specs, where=WHERE, reporter=Quiet(), put=put).close()
    return {name: data for name, data in built.items() if name.endswith(".cubin")}


def strings_of(before: Path) -> list[str]:
    """CUDA source in the strings of Python files."""
    found = []
    for path in before.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "__global__" in node.value:
                found.append(node.value)
    return found


def test_every_project_is_listed() -> None:
    """No project is left out of these tests, and each has its page."""
    assert {path.name for path in PROJECTS.iterdir()} == set(KERNELS)
    for name in KERNELS:
        assert (PROJECTS.parent / "how-to" / f"from-{name}.md").is_file()


@pytest.mark.parametrize("name", ["cupy", "load-inline", "pycuda"])
def test_strings_are_the_same_machine_code(tmp_path: Path, name: str) -> None:
    """The source that stood in a string compiles to the very bytes that the file after compiles to."""
    package, _ = KERNELS[name]
    after = PROJECTS / name / "after"
    table = table_of((after / "pyproject.toml").read_text())
    shutil.copytree(after / package, tmp_path / package)
    (source,) = (tmp_path / package).glob("*.cu")
    shipped = ShippedPackage(name=package, folder=package)
    wanted = images(tmp_path, table, shipped)
    (text,) = strings_of(PROJECTS / name / "before")
    source.write_text(text)
    assert images(tmp_path, table, shipped) == wanted
    assert wanted


@pytest.mark.parametrize("name", ["cuda-extension", "cmake", "nvcc"])
def test_init_writes_the_table(tmp_path: Path, name: str) -> None:
    """`init` on the project before gives the hook table of the one after, and the sources are the same files."""
    before, after = PROJECTS / name / "before", PROJECTS / name / "after"
    shutil.copytree(before, tmp_path / "before")
    proposal = propose(tmp_path / "before", {})
    assert table_of(proposal.file.with_addition(proposal.addition)) == table_of((after / "pyproject.toml").read_text())
    for path in (path for path in before.rglob("*.cu*") if path.is_file()):
        assert path.read_bytes() == (after / path.relative_to(before)).read_bytes()


STAND_INS = {
    "cupy": """
        class Array:
            size, dtype = 1000, numpy.dtype(numpy.float32)
            device, data = types.SimpleNamespace(id=0), types.SimpleNamespace(ptr=4096)
        stream = types.SimpleNamespace(ptr=0)
        module(
            "cupy", float32=numpy.float32, int32=numpy.int32, empty_like=lambda x: Array(),
            cuda=types.SimpleNamespace(get_current_stream=lambda: stream),
        )
        import ripple
        ripple.damp(Array(), 0.5)
    """,
    "load-inline": """
        class Tensor:
            device = types.SimpleNamespace(index=0)
            contiguous, numel, data_ptr = lambda self: self, lambda self: 1000, lambda self: 4096
        stream = types.SimpleNamespace(cuda_stream=0)
        module(
            "torch", empty_like=lambda x: Tensor(),
            cuda=types.SimpleNamespace(current_stream=lambda device: stream),
        )
        import clip
        clip.clip(Tensor(), 0, 1)
    """,
    "cuda-extension": """
        class Tensor:
            device = types.SimpleNamespace(index=0)
            is_cuda, is_contiguous = True, lambda self: True
            numel, data_ptr = lambda self: 1000, lambda self: 4096
        stream = types.SimpleNamespace(cuda_stream=0)
        module(
            "torch", empty_like=lambda x: Tensor(),
            cuda=types.SimpleNamespace(current_stream=lambda device: stream),
        )
        import blend
        blend.blend(Tensor(), Tensor(), 0.5)
    """,
    "cmake": """
        from cuda.core import Device, Stream
        Device().set_current()
        import tally
        tally.tally(Stream.from_handle(0), 4096, 8192, 1000)
    """,
    "nvcc": """
        import relax
        relax.relax(numpy.zeros(1000), 1, 0.5)
    """,
    "pycuda": """
        import stencil
        stencil.smooth(numpy.zeros(1000), [0.25, 0.5, 0.25])
    """,
    "numba": """
        class Array:
            size, __cuda_array_interface__ = 1000, {"data": (4096, False)}
        module("numba", cuda=types.SimpleNamespace(get_current_device=lambda: types.SimpleNamespace(id=0)))
        import orbit
        orbit.advance(Array(), Array())
    """,
}
"""What calls each app: the array libraries are stood in for, the app, the loader and cuda.core are real."""

PRELUDE = """
import sys, types, numpy
def module(name, **names):
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(names)
"""


@pytest.mark.isolated
@pytest.mark.skipif(shutil.which(COMPILER) is None, reason=f"{COMPILER} builds the fake driver, and is not there")
@pytest.mark.parametrize("name", KERNELS)
def test_after(tmp_path: Path, name: str) -> None:
    """Its wheel is built by the real hook, has the kernels, and the app in it launches one with arguments that fit."""
    package, kernels = KERNELS[name]
    project = Project(tmp_path / "project", tmp_path / "cache")
    shutil.copytree(PROJECTS / name / "after", project.root)
    run = project.build()
    assert run.status == 0, run.output
    page = (PROJECTS.parent / "how-to" / f"from-{name}.md").read_text()
    assert all(line in run.output for line in re.findall("`(host code passed over[^`]*)`", page))
    manifest = manifest_of(project.wheel(), package)
    assert {kernel for module in manifest["modules"] for kernel in module["kernels"]} == kernels
    with zipfile.ZipFile(project.wheel()) as wheel:
        wheel.extractall(tmp_path / "site")
    script = PRELUDE + "\n".join(line[8:] for line in STAND_INS[name].splitlines())
    log = tmp_path / "log"
    variables = environment(build(tmp_path), log=log)
    variables["PYTHONPATH"] = os.pathsep.join([str(tmp_path / "site"), variables.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-c", script], env=variables, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    (launched,) = read_log(log, "launch")
    assert launched["result"] == 0
    assert launched["grid"] == "4,1,1"


@pytest.mark.parametrize("name", KERNELS)
def test_before(name: str) -> None:
    """It is valid Python and TOML, and has the kernels that the one after has."""
    before = PROJECTS / name / "before"
    for path in before.rglob("*.py"):
        compile(path.read_text(), str(path), "exec")
    for path in before.rglob("*.toml"):
        tomllib.loads(path.read_text())
    text = "".join(path.read_text() for path in before.rglob("*") if path.suffix in (".py", ".cu", ".txt"))
    if name != "numba":
        assert all(kernel.partition("<")[0] in text for kernel in KERNELS[name][1])


@pytest.mark.isolated
@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not there")
def test_cmake_before_builds(tmp_path: Path) -> None:
    """The project with CMake builds, with the kernel of the same name and parameters."""
    shutil.copytree(PROJECTS / "cmake/before", tmp_path / "before")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path / "out")]
    done = subprocess.run([*command, str(tmp_path / "before")], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "out").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert b".visible .entry tally(" in archive.read("tally/kernels/tally.ptx")
