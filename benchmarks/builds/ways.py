# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The ways of building a set: each prepares a project and says how it is built. Nothing is timed here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sets import KernelSet

__all__ = ["FailedError", "Tools", "Way", "ways"]

_HERE = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class Tools:
    """Programs that are run."""

    python: str
    """Interpreter that has hatchling and this package."""
    peer_python: str | None
    """Interpreter that has scikit-build-core, CMake and Ninja; None leaves them out."""
    nvcc: str | None
    ccache: str | None
    sccache: str | None
    includes: Sequence[str]
    """Folders with headers that nvcc needs to be told."""
    cores: int

    @property
    def versions(self) -> dict[str, str]:
        """What the figures depend on."""
        script = "import cuda.core, importlib.metadata as m, json, platform; print(json.dumps({'Python': "
        script += "platform.python_version(), **{n: m.version(n) for n in "
        script += "('hatch-cuda-kernels', 'hatchling', 'cuda-core', 'cuda-bindings', 'nvidia-cuda-nvrtc')}}))"
        found: dict[str, str] = json.loads(_output([self.python, "-c", script]))
        if self.nvcc:
            found["nvcc"] = _output([self.nvcc, "--version"]).split(" V")[-1].split()[0]
        if self.peer_python:
            script = "import importlib.metadata as m, json; print(json.dumps({n: m.version(n) for n in "
            script += "('scikit-build-core', 'cmake', 'ninja')}))"
            found |= json.loads(_output([self.peer_python, "-c", script]))
        for name, tool in (("ccache", self.ccache), ("sccache", self.sccache)):
            if tool:
                found[name] = _output([tool, "--version"]).split("\n")[0].split()[-1]
        return found


def _output(command: Sequence[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class FailedError(Exception):
    """A way that cannot build a set."""


@dataclass
class Way:
    """One way of building a set in a folder of its own."""

    name: str
    tools: Tools
    kernels: KernelSet
    root: Path
    extra: Mapping[str, str] = field(default_factory=dict)
    """More of the hook table, or of the environment."""

    keeps_cache = False
    """Whether a clean checkout can be served from what an earlier build left elsewhere."""
    keeps_tree = False
    """Whether a build folder that is kept saves work."""

    def prepare(self) -> None:
        """Write a fresh project."""
        shutil.rmtree(self.project, ignore_errors=True)
        for name, text in {**self.kernels.files, "demo/__init__.py": "", **self.setup()}.items():
            path = self.project / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    @property
    def project(self) -> Path:
        """The project's folder."""
        return self.root / self.name.replace(" ", "-") / "project"

    @property
    def cache(self) -> Path:
        """What is kept outside the project."""
        return self.root / self.name.replace(" ", "-") / "cache"

    def forget(self) -> None:
        """Remove what earlier builds left outside the project."""
        shutil.rmtree(self.cache, ignore_errors=True)

    def touch(self, number: int) -> None:
        """Edit one header, so that its text is another one."""
        path = self.project / self.kernels.touched
        path.write_text(self.kernels.files[self.kernels.touched] + f"// edit {number}\n", encoding="utf-8")

    def setup(self) -> dict[str, str]:
        """Further files of the project."""
        return {}

    def build(self) -> None:
        """Build it once."""
        raise NotImplementedError

    def run(self, command: Sequence[str], **environment: str) -> str:
        """Run a command in the project; its output."""
        # an ordinary environment keeps the bytecode of what is installed
        variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        done = subprocess.run(
            command, cwd=self.project, env={**variables, **environment}, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise FailedError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr


_PROJECT = '[project]\nname = "demo"\nversion = "1.0"\nrequires-python = ">=3.10"\n'
_HATCHLING = f'[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n\n{_PROJECT}'


class Hook(Way):
    """(a) hatchling with the hook of this package."""

    keeps_cache = True

    def setup(self) -> dict[str, str]:
        """The hook table."""
        archs = json.dumps(list(self.kernels.archs))
        extra = "".join(f"{key} = {value}\n" for key, value in {**self.kernels.table, **self.extra}.items())
        return {"pyproject.toml": f"{_HATCHLING}\n[tool.hatch.build.hooks.cuda-kernels]\narchs = {archs}\n{extra}"}

    def build(self) -> None:
        """Build the wheel."""
        command = [self.tools.python, "-m", "hatchling", "build", "-t", "wheel", "-d", str(self.root / "hook-out")]
        report = str(self.root / "hook-report.json")
        self.run(command, HATCH_CUDA_KERNELS_CACHE=str(self.cache), HATCH_CUDA_KERNELS_REPORT=report)

    def report(self) -> dict[str, Any]:
        """The report of the last build."""
        value: dict[str, Any] = json.loads((self.root / "hook-report.json").read_text())
        return value


class Nvcc(Way):
    """(b) nvcc, one process for each source and architecture, as many at once as there are cores."""

    def build(self) -> None:
        """Compile everything."""
        start = [str(self.tools.nvcc), "-std=c++17", "-cubin", *self.kernels.nvcc_flags, *self.tools.includes]
        commands = [
            [*start, f"-arch={arch}", source, "-o", f"{source}.{arch}.cubin"]
            for source in self.kernels.sources
            for arch in self.kernels.archs
        ]
        with ThreadPoolExecutor(self.tools.cores) as pool:
            list(pool.map(self.run, commands))


class ScikitBuild(Way):
    """(c) scikit-build-core and CMake's CUDA language, to a wheel with one library, as extension modules are built."""

    keeps_tree = True
    launcher = ""

    def setup(self) -> dict[str, str]:
        """A CMake project."""
        archs = ";".join(f"{arch.removeprefix('sm_')}-real" for arch in self.kernels.archs)
        text = "cmake_minimum_required(VERSION 3.27)\nproject(demo LANGUAGES CUDA)\n"
        text += f"add_library(kernels MODULE {' '.join(self.kernels.sources)})\n"
        text += f'set_target_properties(kernels PROPERTIES CUDA_STANDARD 17 CUDA_ARCHITECTURES "{archs}")\n'
        flags = " ".join([*self.kernels.nvcc_flags, *self.tools.includes])
        text += f'target_compile_options(kernels PRIVATE "SHELL:{flags}")\n' if flags else ""
        text += "install(TARGETS kernels LIBRARY DESTINATION demo)\n"
        table = '[build-system]\nrequires = ["scikit-build-core"]\nbuild-backend = "scikit_build_core.build"\n\n'
        return {"CMakeLists.txt": text, "pyproject.toml": table + _PROJECT}

    def build(self) -> None:
        """Build the wheel, in the project's folder `build`, which is kept."""
        assert self.tools.peer_python is not None
        config = {"build-dir": "build"}
        if self.launcher:
            config["cmake.define.CMAKE_CUDA_COMPILER_LAUNCHER"] = self.launcher
        code = f"import scikit_build_core.build as b; b.build_wheel({str(self.root / 'sk-out')!r}, {config!r})"
        path = os.pathsep.join([str(Path(self.tools.peer_python).parent), os.environ["PATH"]])
        # ccache leaves out of its digest what a clean checkout elsewhere changes only if it is told the folder
        self.run(
            [self.tools.peer_python, "-c", code],
            PATH=path,
            CUDACXX=str(self.tools.nvcc),
            CMAKE_BUILD_PARALLEL_LEVEL=str(self.tools.cores),
            CCACHE_DIR=str(self.cache),
            CCACHE_BASEDIR=str(self.project),
            CCACHE_NOHASHDIR="1",
            SCCACHE_DIR=str(self.cache),
            SCCACHE_SERVER_PORT="4399",
            SCCACHE_BASEDIRS=str(self.project),
        )


class Ccache(ScikitBuild):
    """(c) with ccache."""

    keeps_cache = True

    @property
    def launcher(self) -> str:  # type: ignore[override]
        """The program in front of nvcc."""
        return str(self.tools.ccache)


class Sccache(ScikitBuild):
    """(c) with sccache."""

    keeps_cache = True

    @property
    def launcher(self) -> str:  # type: ignore[override]
        """The program in front of nvcc."""
        return str(self.tools.sccache)

    def forget(self) -> None:
        """Stop the server too, which keeps things in memory."""
        subprocess.run(
            [str(self.tools.sccache), "--stop-server"],
            env={**os.environ, "SCCACHE_SERVER_PORT": "4399"},
            capture_output=True,
            check=False,
        )
        super().forget()


class Serial(Way):
    """(d) A bare loop over NVRTC in one process, with the same options; each compile is timed by itself."""

    def build(self) -> None:
        """Compile everything, and keep the images."""
        self.run([self.tools.python, str(_HERE / "serial.py"), str(self.project), str(self.root / "serial.json"),
                  *self.kernels.archs, *self.kernels.flags, *self.tools.includes])  # fmt: skip

    def seconds(self) -> list[float]:
        """What each compile of the last build took."""
        value: list[float] = json.loads((self.root / "serial.json").read_text())
        return value


class Packaging(Way):
    """(e) hatchling with the finished files of the hook's wheel."""

    def setup(self) -> dict[str, str]:
        """No hook, and every file in the wheel."""
        return {"pyproject.toml": _HATCHLING}

    def prepare(self) -> None:
        """Take the files out of the hook's wheel."""
        super().prepare()
        (wheel,) = (self.root / "hook-out").glob("*.whl")
        shutil.unpack_archive(str(wheel), self.project, "zip")

    def build(self) -> None:
        """Build the wheel, importing cuda.core as a build that compiles has to."""
        code = "import cuda.core, sys; from hatchling.cli import hatchling; sys.argv[1:] = ['build', '-t', 'wheel', "
        code += f"'-d', {str(self.root / 'packaging-out')!r}]; sys.exit(hatchling())"
        self.run([self.tools.python, "-c", code])


def ways(tools: Tools, kernels: KernelSet, root: Path, options: Mapping[str, str]) -> Iterator[Way]:
    """All ways that the tools allow."""
    yield Hook("hook", tools, kernels, root, options)
    yield Serial("serial NVRTC", tools, kernels, root)
    yield Packaging("packaging", tools, kernels, root)
    if tools.nvcc:
        yield Nvcc("nvcc", tools, kernels, root)
        if tools.peer_python:
            yield ScikitBuild("scikit-build-core", tools, kernels, root)
            if tools.ccache:
                yield Ccache("scikit-build-core + ccache", tools, kernels, root)
            if tools.sccache:
                yield Sccache("scikit-build-core + sccache", tools, kernels, root)
