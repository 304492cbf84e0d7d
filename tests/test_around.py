# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Headers of libraries around kernels (`tests/around/`), the real ones: for device code, or for host code alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from jobs import TESTS, make_job
from nvcc import PLACES, WIDE, compile_with_nvcc, differences, install_nvcc

from hatch_cuda_kernels.compiler import compile_job
from hatch_cuda_kernels.errors import CompilationError
from hatch_cuda_kernels.nvrtc import Workspace, workspace

FOLDER = TESTS / "around"
pytestmark = [pytest.mark.isolated, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def space() -> Iterator[Workspace]:
    """A workspace for all tests here."""
    with workspace() as found:
        yield found


@pytest.fixture(scope="module")
def nvcc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """nvcc of NVRTC's own release."""
    return install_nvcc(tmp_path_factory.mktemp("nvcc"))


def run(*command: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """Run a command and expect success; its output."""
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=env, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def of_debian(package: str, folder: Path) -> Path:
    """The include folder of a Debian package, unpacked and not installed."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        pytest.skip("needs Debian's tools")
    folder.mkdir(exist_ok=True)
    run("apt-get", "download", package, cwd=folder)
    run("dpkg-deb", "-x", next(folder.glob("*.deb")), folder)
    return folder / "usr" / "include"


def of_wheel(requirement: str, folder: Path) -> Path:
    """The include folder of one of NVIDIA's wheels."""
    run(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", folder, requirement)
    return next(folder.glob("nvidia/*/include"))


def copied(name: str, root: Path) -> Path:
    """A project that has one of the files."""
    root.mkdir(exist_ok=True)
    shutil.copy(FOLDER / f"{name}.cu", root)
    return root


def check(name: str, root: Path, space: Workspace, nvcc: Path, include: Path | None, *, reads: str = "") -> None:
    """Assert that a file gives the kernels that nvcc makes of it with a library's headers, which the build has only
    where they lie in a folder of the project."""
    target = root / "nvcc.cubin"
    options = ["--expt-relaxed-constexpr", *([f"-I{include}"] if include else [])]
    assert compile_with_nvcc(nvcc, root / f"{name}.cu", "sm_80", target, options) is None
    dirs = [reads] if reads else []
    image = compile_job(make_job(root, f"{name}.cu", toolkit_headers="auto", include_dirs=dirs), space)
    found = differences(image.data, target.read_bytes())
    assert image.entries and not {key: what for key, what in found.items() if what not in (PLACES, WIDE)}
    assert image.passed_over


def test_glm(tmp_path: Path, space: Workspace, nvcc: Path) -> None:
    """Vectors and matrices of glm in kernels, for constants and in arguments; its functions on the host."""
    root = copied("glm", tmp_path / "project")
    shutil.copytree(of_debian("libglm-dev", tmp_path / "debian") / "glm", root / "third_party" / "glm")
    check("glm", root, space, nvcc, root / "third_party", reads="third_party")


def test_nvtx(tmp_path: Path, space: Workspace, nvcc: Path) -> None:
    """Ranges and marks of NVTX in host code."""
    check("nvtx", copied("nvtx", tmp_path / "project"), space, nvcc, of_wheel("nvidia-nvtx", tmp_path / "wheel"))


def test_thrust(tmp_path: Path, space: Workspace, nvcc: Path) -> None:
    """Vectors and algorithms of Thrust in host code; a functor that a kernel uses as well."""
    check("thrust", copied("thrust", tmp_path / "project"), space, nvcc, None)


def test_eigen_in_host_code(tmp_path: Path, space: Workspace, nvcc: Path) -> None:
    """Eigen in host code alone, which the build does not have to find."""
    include = of_debian("libeigen3-dev", tmp_path / "debian") / "eigen3"
    check("eigen_host", copied("eigen_host", tmp_path / "project"), space, nvcc, include)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["eigen_host", "eigen_device"])
def test_eigen_that_nvrtc_reads(tmp_path: Path, space: Workspace, name: str) -> None:
    """Its headers are none for NVRTC: the error names one, what includes it, and the ways out."""
    root = copied(name, tmp_path / "project")
    shutil.copytree(of_debian("libeigen3-dev", tmp_path / "debian") / "eigen3", root / "eigen3")
    job = make_job(root, f"{name}.cu", toolkit_headers="auto", include_dirs=["eigen3"])
    with pytest.raises(CompilationError) as caught:
        compile_job(job, space)
    message = str(caught.value)
    assert "eigen3/Eigen/src/Core/" in message
    assert f"<- {name}.cu (what includes what)" in message
    assert "hint: Eigen" in message and "include-dirs" in message


@pytest.fixture(scope="module")
def cutlass(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with CUTLASS's wheel, and NVRTC, nvcc and headers of the release it goes with."""
    folder = tmp_path_factory.mktemp("cutlass")
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    ours = str(TESTS.parent)
    names = "cuda-nvrtc cuda-cccl cuda-crt cuda-runtime cuda-nvcc nvvm"
    needed = [f"nvidia-{name}==13.0.*" for name in names.split()]
    run(
        python,
        "-m",
        "pip",
        "install",
        "-q",
        ours,
        "hatchling",
        "cuda-core>=1.2,<2",
        "cuda-bindings>=13.0.2,<13.1",
        *needed,
    )
    run(python, "-m", "pip", "install", "-q", "--no-deps", "nvidia-cutlass==4.2.0.0")
    return python


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cute", "cutlass"])
def test_cutlass(cutlass: Path, tmp_path: Path, name: str) -> None:
    """A CuTe kernel whose layout its launch deduces, and a kernel beside a CUTLASS product that host code runs."""
    root = copied(name, tmp_path / "project")
    (root / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "1"\n')
    include = next(cutlass.parent.parent.glob("lib/*/site-packages/cutlass_library/source/include"))
    options = ["--include-package", "cutlass_library/source/include"]
    options += ["--option", "device-as-default-execution-space=true", "-o", "ours.cubin"]
    env = {key: value for key, value in os.environ.items() if not key.startswith(("HATCH_", "PYTHON"))}
    run(cutlass, "-Im", "hatch_cuda_kernels", "compile", f"{name}.cu", "--arch", "sm_80", *options, cwd=root, env=env)
    nvcc = next(cutlass.parent.parent.glob("lib/*/site-packages/nvidia/cu13/bin/nvcc"))
    target = root / "nvcc.cubin"
    assert compile_with_nvcc(nvcc, root / f"{name}.cu", "sm_80", target, ["-std=c++17", f"-I{include}"]) is None
    found = differences((root / "ours.cubin").read_bytes(), target.read_bytes())
    assert not {key: what for key, what in found.items() if what != "only with nvcc" or "7cutlass6Kernel" not in key}
