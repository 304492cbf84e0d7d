# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Headers that other installed packages bring (`include-packages`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jobs import compile_alone, make_job, write
from projects import Project, make_project, manifest_of, names_of
from support import run_python

from hatch_cuda_kernels import installed
from hatch_cuda_kernels.config import Config
from hatch_cuda_kernels.errors import ConfigurationError
from hatch_cuda_kernels.modules import ShippedPackage, find_modules
from hatch_cuda_kernels.sources import ProjectTree

LIBRARY = {
    "wide_math/__init__.py": "raise RuntimeError('a build must not import this')\n",
    "wide_math/include/wide/scale.cuh": '#pragma once\n#include "../detail.cuh"\n#define SCALED(x) (FACTOR * (x))\n',
    "wide_math/include/detail.cuh": "#pragma once\n#define FACTOR 2\n",
    "wide_math/include/unused.cuh": "#error nobody includes this\n",
}
KERNEL = '#include <wide/scale.cuh>\nextern "C" __global__ void k(int *x) { *x = SCALED(x[1]); }\n'
TABLE = 'archs = ["sm_80"]\ninclude-packages = ["wide_math/include"]'


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on `sys.path` with a header-only library, here and in processes that are started."""
    folder = write(tmp_path / "environment", LIBRARY)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    yield folder
    installed._search.cache_clear()


def find(root: Path, *packages: str) -> None:
    (root / "demo").mkdir(exist_ok=True)
    (root / "demo/k.cu").touch()
    config = Config.from_table({"archs": ["90"], "include-packages": list(packages)}, where="hook")
    find_modules(config, root, [ShippedPackage(name="demo", folder="demo")], where="hook")


class TestWheel:
    @pytest.mark.slow
    def test_built_shipped_and_self_contained(self, library: Path, tmp_path: Path) -> None:
        """The package's headers are found without an import, what the source reaches of them is shipped, and the wheel
        verifies where the package is not installed. A changed header compiles anew."""
        project = make_project(tmp_path, TABLE, {"demo/k.cu": KERNEL})
        run = project.build()
        assert run.status == 0, run.output
        shipped = {name for name in names_of(project.wheel()) if "/src/" in name}
        inside = "demo/_cuda_kernels/src"
        assert shipped == {
            f"{inside}/demo/k.cu",
            f"{inside}/site-packages/wide_math/include/wide/scale.cuh",
            f"{inside}/site-packages/wide_math/include/detail.cuh",
        }
        (module,) = manifest_of(project.wheel())["modules"]
        assert module["include_dirs"] == ["site-packages/wide_math/include"]
        assert str(library).encode() not in b"".join(contents(project.wheel()).values())
        assert verify_alone(project) == {"schema": 1, "ok": True, "problems": [], "no_fallback": []}

        assert project.build(out=tmp_path / "again").outcomes == {"k sm_80": "cached"}
        (library / "wide_math/include/detail.cuh").write_text("#define FACTOR 3\n")
        assert project.build(out=tmp_path / "changed").outcomes == {"k sm_80": "compiled"}
        before, after = (contents(project.wheel(out)) for out in (tmp_path / "again", tmp_path / "changed"))
        assert before["demo/_cuda_kernels/k.sm_80.cubin"] != after["demo/_cuda_kernels/k.sm_80.cubin"]

    def test_sdist(self, library: Path, tmp_path: Path) -> None:
        """An sdist need not hold what other packages bring."""
        project = make_project(tmp_path, TABLE, {"demo/k.cu": KERNEL})
        run = project.build("sdist")
        assert run.status == 0, run.output

    def test_place_does_not_count(self, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Keys hold labels and contents: the same package in another environment is the same."""
        options: dict[str, Any] = {"include_dirs": ("site-packages/wide_math/include",)}
        job = make_job(write(tmp_path / "project", {"k.cu": KERNEL}), **options)
        elsewhere = write(tmp_path / "elsewhere", LIBRARY)
        monkeypatch.setattr(sys, "path", [str(elsewhere), *sys.path])
        moved = make_job(tmp_path / "project", **options)
        assert moved.key == job.key
        image = compile_alone(moved)
        assert image.reads == compile_alone(job).reads
        assert set(image.reads.files) == {
            "k.cu",
            "site-packages/wide_math/include/wide/scale.cuh",
            "site-packages/wide_math/include/detail.cuh",
        }
        assert os.fsencode(tmp_path) not in image.data


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def verify_alone(project: Project) -> object:
    """What `verify --jit` says of the wheel where the library is not installed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["HATCH_CUDA_KERNELS_CACHE"] = "0"
    command = [sys.executable, "-m", "hatch_cuda_kernels", "verify", str(project.wheel()), "--jit", "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    return json.loads(done.stdout)


class TestEditable:
    CODE = """
from hatch_cuda_kernels import explain
report(attempt(explain, "k", package="demo", compute_capability="8.0", driver_version="13.5"))
"""

    @pytest.mark.slow
    def test_needs_the_package(self, library: Path, tmp_path: Path) -> None:
        """An editable install compiles against the installed package, and names it where it is missing."""
        project = make_project(tmp_path, f"{TABLE}\n", {"demo/k.cu": KERNEL})
        run = subprocess.run(
            [sys.executable, "-c", "from hatchling.build import build_editable; build_editable('../out')"],
            cwd=project.root,
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert run.returncode == 0, run.stderr
        site = tmp_path / "site"
        with zipfile.ZipFile(project.wheel()) as archive:
            archive.extractall(site)
        variables = {**os.environ, "HATCH_CUDA_KERNELS_CACHE": str(project.cache)}
        assert run_python(self.CODE, variables, site, project.root, library).value == "ok"
        told = run_python(self.CODE, variables, site, project.root).value
        assert told.startswith("ConfigurationError: demo is installed as editable")
        assert "there is no installed package wide_math" in told


class TestMistakes:
    def test_a_library_of_many_folders_is_told_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """`torch` stands for several folders; that it is not there is one mistake."""
        monkeypatch.setattr(sys, "path", [])
        with pytest.raises(ConfigurationError) as caught:
            find(tmp_path, "torch")
        assert str(caught.value).count("there is no installed package torch") == 1

    @pytest.mark.parametrize(
        ("package", "told"),
        [
            ("no_such_package", "hook.include-packages: there is no installed package no_such_package; install the"),
            ("no_such_package/include", "build-system.requires"),
            ("wide_math/inc", "the installed package wide_math has no folder inc"),
            ("wide_math/include/wide/scale.cuh", "has no folder include/wide/scale.cuh"),
            ("demo", "there is no installed package demo"),
        ],
    )
    def test_not_there(
        self, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, told: str
    ) -> None:
        """A package or folder that is not installed is named; the project's own package is not an installed one, even
        when the build runs in the project's folder."""
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "path", ["", *sys.path])
        with pytest.raises(ConfigurationError, match=told.replace("[", r"\[")):
            find(tmp_path, package)

    def test_a_folder_of_that_name(self, library: Path, tmp_path: Path) -> None:
        """A project with a `site-packages` of its own keeps its files, and cannot name packages."""
        write(tmp_path, {"site-packages/own.h": "// own\n", "k.cu": '#include "site-packages/own.h"\n'})
        file = ProjectTree(tmp_path).open("site-packages/own.h")
        assert file is not None
        assert file.data == b"// own\n"
        with pytest.raises(ConfigurationError, match="the project has a folder site-packages of its own"):
            find(tmp_path, "wide_math/include")

    def test_namespace_packages(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Every part of a namespace package is looked into, in the order of the search path."""
        for part, files in (("one", {"space/a/x.cuh": "1"}), ("two", {"space/a/x.cuh": "2", "space/b/y.cuh": "2"})):
            monkeypatch.syspath_prepend(write(tmp_path / part, files))
        tree = ProjectTree(tmp_path / "project")
        found = {label: tree.open(f"site-packages/space/{label}") for label in ("a/x.cuh", "b/y.cuh")}
        assert {label: file.data for label, file in found.items() if file} == {"a/x.cuh": b"2", "b/y.cuh": b"2"}
        assert list(tree.files_below("site-packages/space/b")) == ["site-packages/space/b/y.cuh"]
