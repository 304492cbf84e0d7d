# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What this project itself publishes: its wheel and sdist, and the workflows that build them."""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

import hatch_cuda_kernels

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPOSITORY = Path(__file__).parent.parent
PACKAGE = REPOSITORY / "hatch_cuda_kernels"
VERSION = hatch_cuda_kernels.__version__
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))


def build(source: Path, out: Path, target: str) -> Path:
    """Build the wheel or the sdist of a tree of this project."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out)]
    variables = {name: value for name, value in os.environ.items() if not name.startswith("HATCH_")}
    subprocess.run(command, cwd=source, env=variables, check=True, capture_output=True, timeout=120)
    (found,) = out.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree."""
    return build(REPOSITORY, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist of this tree, unpacked."""
    out = tmp_path_factory.mktemp("sdist")
    with tarfile.open(build(REPOSITORY, out, "sdist")) as archive:
        archive.extractall(out / "tree", filter="data")
    (tree,) = (out / "tree").iterdir()
    return tree


def source_files() -> set[str]:
    """Files of the package as they lie in the tree."""
    return {
        path.relative_to(REPOSITORY).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


class TestWheel:
    """Exactly the package, and metadata that says what it needs."""

    @pytest.mark.slow
    def test_files(self, wheel: Path) -> None:
        """Every file of the package, its licence, and nothing else: no tests, no docs, no kernels."""
        information = f"hatch_cuda_kernels-{VERSION}.dist-info"
        names = ["METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"]
        with zipfile.ZipFile(wheel) as archive:
            assert set(archive.namelist()) == source_files() | {f"{information}/{name}" for name in names}

    def test_tag_and_size(self, wheel: Path) -> None:
        """One wheel for every machine and every Python 3, light enough to be in every isolated build."""
        assert wheel.name == f"hatch_cuda_kernels-{VERSION}-py3-none-any.whl"
        assert wheel.stat().st_size < 500_000

    def test_metadata(self, wheel: Path) -> None:
        """Base dependencies are few, none is CUDA; the extras are there; the README is the description."""
        with zipfile.ZipFile(wheel) as archive:
            text = archive.read(f"hatch_cuda_kernels-{VERSION}.dist-info/METADATA").decode()
        metadata = email.message_from_string(text)
        requirements = metadata.get_all("Requires-Dist") or []
        base = {re.split(r"[<>=;\s]", text)[0] for text in requirements if "extra ==" not in text}
        assert base == {"filelock", "pathspec", "platformdirs", "tomli"}
        assert {"cu12", "cu13"} <= set(metadata.get_all("Provides-Extra") or [])
        assert metadata["Requires-Python"] == ">=3.10"
        assert metadata["License-Expression"] == "Apache-2.0"
        assert "## Use it" in metadata.get_payload()

    def test_entry_points(self, wheel: Path) -> None:
        """The hook, and the command."""
        with zipfile.ZipFile(wheel) as archive:
            text = archive.read(f"hatch_cuda_kernels-{VERSION}.dist-info/entry_points.txt").decode()
        assert "[hatch]\ncuda-kernels = hatch_cuda_kernels.hooks" in text
        assert "[console_scripts]\nhatch-cuda-kernels = hatch_cuda_kernels.cli:main" in text


class TestSdist:
    """All that is needed to build, test and document."""

    def test_files(self, sdist: Path) -> None:
        """Tests, documentation, projects and example are there; caches and built pages are not."""
        for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "SECURITY.md", "CITATION.cff"):
            assert (sdist / name).is_file(), name
        for name in ("docs/conf.py", "docs/projects/cupy/after/ripple/damp.cu", "tests/test_distribution.py"):
            assert (sdist / name).is_file(), name
        assert (sdist / "example_project/src/mandelscope/gpu/escape.cu").is_file()
        assert not [path for path in sdist.rglob("*") if path.name in ("__pycache__", "_build", ".git", ".venv")]

    def test_gives_the_same_wheel(self, sdist: Path, wheel: Path, tmp_path: Path) -> None:
        """The wheel built from the sdist is the wheel built from the tree, byte for byte."""
        assert build(sdist, tmp_path, "wheel").read_bytes() == wheel.read_bytes()


def workflow(name: str) -> Any:
    """A workflow, parsed."""
    return yaml.safe_load((REPOSITORY / ".github/workflows" / name).read_text("utf-8"))


class TestWorkflows:
    """They do what the policy says, and no more."""

    def test_matrix(self) -> None:
        """Every Python that the project supports is tested, from the lowest on, and each extra."""
        matrix = workflow("test.yml")["jobs"]["suite"]["strategy"]["matrix"]
        lowest = int(PROJECT["project"]["requires-python"].removeprefix(">=3."))
        numbers = [int(version.removeprefix("3.")) for version in matrix["python"]]
        assert numbers == list(range(lowest, lowest + len(numbers)))
        assert {*matrix["cuda"], *(row["cuda"] for row in matrix["include"])} == {"cu12", "cu13"}
        assert any(row["os"].startswith("windows") for row in matrix["include"])

    def test_only_publishing_may_write(self) -> None:
        """No job has a right beyond reading, but the one that publishes, and that one runs no code of the project."""
        for path in (REPOSITORY / ".github/workflows").glob("*.yml"):
            found = workflow(path.name)
            assert found["permissions"] == {"contents": "read"}
            for name, job in found["jobs"].items():
                assert "permissions" not in job or (path.name, name) == ("publish.yml", "publish")
        publish = workflow("publish.yml")["jobs"]["publish"]
        assert publish["permissions"] == {"id-token": "write", "attestations": "write"}
        assert all("uses" in step for step in publish["steps"])
        assert not [step for step in publish["steps"] if step["uses"].startswith("actions/checkout")]
        assert "secrets." not in (REPOSITORY / ".github/workflows/publish.yml").read_text("utf-8")

    def test_what_is_published_was_tested(self) -> None:
        """The tests run against the built wheel before it is published."""
        jobs = workflow("publish.yml")["jobs"]
        assert jobs["publish"]["needs"] == "test"
        assert jobs["test"]["needs"] == "build"
        commands = [step.get("run", "") for step in jobs["test"]["steps"]]
        assert any("dist/*.whl" in command for command in commands)
        assert any("python -Im pytest" in command for command in commands)


def test_citation() -> None:
    """The citation is of this version, licence and name."""
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == VERSION
    assert citation["title"] == PROJECT["project"]["name"]
    assert citation["license"] == PROJECT["project"]["license"]
