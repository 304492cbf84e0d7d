# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""`hatch-cuda-kernels init`: a hook table from what is there, after which the project builds."""

from __future__ import annotations

import json
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from projects import KERNEL, Project, manifest_of

from hatch_cuda_kernels.cli import main
from hatch_cuda_kernels.config import Config
from hatch_cuda_kernels.errors import ConfigurationError
from hatch_cuda_kernels.libraries import LIBRARIES
from hatch_cuda_kernels.setup.init import Proposal, propose

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SYSTEM = '[build-system]\nrequires = ["hatchling", "hatch-cuda-kernels"]\nbuild-backend = "hatchling.build"\n'
PROJECT = '[project]\nname = "demo"\nversion = "1"\nrequires-python = ">=3.10"\ndependencies = ["hatch-cuda-kernels"]\n'
TEMPLATE = "template <typename T, int N> __global__ void fill(T *x) { x[threadIdx.x] = N; }\n"


def project(base: Path, files: dict[str, str]) -> Project:
    """A project with these files below `base`."""
    made = Project(base / "project", base / "cache")
    made.root.mkdir(parents=True)
    made.write(files)
    return made


def table(proposal: Proposal) -> Any:
    """The hook table that a file has after the proposal, checked as a build checks it."""
    values = tomllib.loads(proposal.file.with_addition(proposal.addition).replace("\r\n", "\n"))
    found = (values if "build" in values else values["tool"]["hatch"])["build"]["hooks"]["cuda-kernels"]
    Config.from_table(found)
    return found


def look(base: Path, files: dict[str, str], environ: dict[str, str] | None = None) -> Any:
    """The table proposed for a project with these files."""
    return table(propose(project(base, files).root, environ or {}))


NAMED = {"pyproject.toml": SYSTEM + PROJECT, "demo/__init__.py": ""}

LAYOUTS: dict[str, tuple[dict[str, str], dict[str, list[str]]]] = {
    "flat": ({**NAMED, "demo/scale.cu": KERNEL}, {"scale": ["scale"]}),
    "no pyproject.toml": ({"demo/__init__.py": "", "demo/scale.cu": KERNEL}, {"scale": ["scale"]}),
    "src, headers, instances, an odd name": (
        {
            "pyproject.toml": SYSTEM + PROJECT,
            "src/demo/__init__.py": "names = ['fill<double, 8>', \"fill< float,8 >\"]\n",
            "src/demo/fill.cu": f'#include "detail/gain.cuh"\n#include <common/types.h>\n{TEMPLATE}',
            "src/demo/two words.cu": KERNEL,
            "include/common/types.h": "#pragma once\n",
            "csrc/inc/detail/gain.cuh": "#pragma once\n",
        },
        {"fill": ["fill<double,8>", "fill<float,8>"], "two_words": ["scale"]},
    ),
    "another folder name, sources outside, one of them for the host": (
        {
            "pyproject.toml": SYSTEM + PROJECT.replace('"demo"', '"other-name"'),
            "demo/__init__.py": "",
            "csrc/scale.cu": KERNEL,
            "csrc/bindings.cu": "#include <vector>\nint main() { return 0; }\n",
            "csrc/guessed.cu": TEMPLATE,
            "tests/check.cu": KERNEL,
        },
        {"csrc.scale": ["scale"], "csrc.guessed": ["fill<float,32>"]},
    ),
    "hatch.toml": (
        {**NAMED, "hatch.toml": '[build]\nexclude = ["*.md"]\n', "demo/scale.cu": KERNEL},
        {"scale": ["scale"]},
    ),
}


QUICK = ("no pyproject.toml", "src, headers, instances, an odd name")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.isolated) for name in LAYOUTS]
)
def test_round_trip(tmp_path: Path, name: str) -> None:
    """After `init` the project builds with no further edit, with the kernels that it has."""
    files, kernels = LAYOUTS[name]
    made = project(tmp_path, files)
    proposal = propose(made.root, {})
    proposal.write()
    run = made.build(env={"HATCH_CUDA_KERNELS_ARCHS": "sm_90"})
    assert run.status == 0, run.output
    found = manifest_of(made.wheel())["modules"]
    assert {module["name"]: sorted(module["kernels"]) for module in found} == kernels


class TestWhatIsThere:
    """Nothing that a file has is changed, and what cannot be added is said."""

    def test_comments_and_line_ends(self, tmp_path: Path) -> None:
        """Comments, order, line ends and odd spacing stay; a file is only longer."""
        before = f"# first\r\n{SYSTEM}{PROJECT}# ünicode\r\n[tool.other]   # kept\r\nx=1\r\n\r\n\r\n"
        made = project(tmp_path, {"demo/__init__.py": "", "demo/scale.cu": KERNEL})
        path = made.root / "pyproject.toml"
        path.write_bytes(before.encode())
        propose(made.root, {}).write()
        after = path.read_bytes().decode()
        assert after.startswith(before.rstrip().replace("\r\n", "\n").replace("\n", "\r\n"))
        assert "\n" not in after.replace("\r\n", "")

    @pytest.mark.parametrize("where", ["hooks", "targets.wheel.hooks"])
    def test_a_table_is_there(self, tmp_path: Path, where: str) -> None:
        """A second table is refused, even beside an empty one."""
        extra = f"[tool.hatch.build.{where}.cuda-kernels]\n"
        made = project(tmp_path, {**NAMED, "pyproject.toml": SYSTEM + PROJECT + extra, "demo/scale.cu": KERNEL})
        with pytest.raises(ConfigurationError, match="already"):
            propose(made.root, {})

    @pytest.mark.parametrize(
        "extra",
        [
            "[tool]\nhatch = {build = {exclude = []}}\n",
            "[tool.hatch]\nbuild = {hooks = {vcs = {}}}\n",
        ],
    )
    def test_no_place_for_a_table(self, tmp_path: Path, extra: str) -> None:
        """Inline tables and dotted keys take no further table: the error has the text to put in by hand."""
        made = project(tmp_path, {**NAMED, "pyproject.toml": SYSTEM + PROJECT + extra, "demo/scale.cu": KERNEL})
        with pytest.raises(ConfigurationError, match=r"by hand:\n\n\[tool"):
            propose(made.root, {})

    @pytest.mark.parametrize("content", [b"[project\n", b"\xff\xfe", b"\xef\xbb\xbf[project]\n"])
    def test_no_toml(self, tmp_path: Path, content: bytes) -> None:
        """A file that is no TOML is named and left alone."""
        made = project(tmp_path, {"demo/__init__.py": "", "demo/scale.cu": KERNEL})
        (made.root / "pyproject.toml").write_bytes(content)
        with pytest.raises(ConfigurationError, match=r"pyproject\.toml"):
            propose(made.root, {})
        assert (made.root / "pyproject.toml").read_bytes() == content

    def test_another_backend_is_told(self, tmp_path: Path) -> None:
        """A build system that is there stays, and what is to be changed is said."""
        other = '[build-system]\nrequires = ["setuptools>=77"]\nbuild-backend = "setuptools.build_meta"\n'
        made = project(tmp_path, {**NAMED, "pyproject.toml": other + '[project]\nname = "demo"\n', "demo/a.cu": KERNEL})
        proposal = propose(made.root, {})
        assert proposal.file.with_addition(proposal.addition).startswith(other)
        notes = "\n".join(proposal.notes)
        for text in ("setuptools.build_meta", "hatchling.build", "hatch-cuda-kernels[cu13]", "requires-python"):
            assert text in notes

    def test_a_link_stays_one(self, tmp_path: Path) -> None:
        """A `pyproject.toml` that is a symbolic link is written where it leads, with its mode."""
        made = project(tmp_path, {"demo/__init__.py": "", "demo/scale.cu": KERNEL, "real.toml": SYSTEM + PROJECT})
        (made.root / "real.toml").chmod(0o640)
        (made.root / "pyproject.toml").symlink_to("real.toml")
        propose(made.root, {}).write()
        assert (made.root / "pyproject.toml").is_symlink()
        assert "cuda-kernels]" in (made.root / "real.toml").read_text()
        assert (made.root / "real.toml").stat().st_mode & 0o777 == 0o640


class TestOddValues:
    """Values of another kind than hatchling takes are nobody's to mend here: no crash, and the file is whole."""

    @pytest.mark.parametrize(
        "extra",
        [
            "[tool.hatch.build]\ntargets = []\n",
            '[tool.hatch.build.targets]\nwheel = "x"\n',
            '[tool.hatch.build.targets.wheel]\npackages = "demo"\n',
            "[tool.hatch.build.targets.wheel]\npackages = [1]\n",
            '[tool.hatch.build.targets.wheel]\npackages = ["./demo/"]\n',
            '[tool.hatch.build.targets.wheel]\ninclude = ["demo/**/*.py", "*.cu"]\n',
            "[tool.x]\ny = 1\n[[tool.z]]\n",
            '[build-system]\nrequires = [1]\nbuild-backend = 3\n[project]\nname = 5\ndependencies = "x"\n',
        ],
    )
    def test_values(self, tmp_path: Path, extra: str) -> None:
        """A table where it can be had, else an error that names the file."""
        before = extra if "[project]" in extra else SYSTEM + PROJECT + extra
        files = {"pyproject.toml": before, "demo/__init__.py": "", "demo/a.cu": KERNEL, "src/a.cu": KERNEL}
        made = project(tmp_path, files)
        try:
            assert table(propose(made.root, {}))["archs"]
        except ConfigurationError as error:
            assert str(made.root) in str(error)

    @pytest.mark.parametrize(
        "source",
        [
            "template <" * 5000 + " __global__ void k() {}",
            "__global__ " * 100_000,
            "template <typename T> __global__ void k(T *) {}\n" + "k<" * 100_000,
            "namespace {{{{{{ __global__ void k(",
        ],
    )
    def test_sources_without_end(self, tmp_path: Path, source: str) -> None:
        """Brackets that never close cost no more than time in line with the text."""
        files = {"demo/odd.cu": source, "demo/a.cu": KERNEL}
        assert table(propose(project(tmp_path, {**NAMED, **files}).root, {}))["archs"]

    def test_only_tests_have_kernels(self, tmp_path: Path) -> None:
        """What is left out is named, where nothing else is there."""
        with pytest.raises(ConfigurationError, match=r"look like tests.*tests/a\.cu"):
            propose(project(tmp_path, {**NAMED, "tests/a.cu": KERNEL}).root, {})


class TestNoProjectTable:
    """A project without `[project]` gets one, named so that hatchling finds the package."""

    @pytest.mark.parametrize(
        ("folder", "setup", "name", "version"),
        [
            ("demo", "", "demo", "0.1.0"),
            ("De.Mo", "", "demo", "0.1.0"),
            ("checkout", "", "demo", "0.1.0"),
            ("checkout", "setup(name='demo', version='2.5')", "demo", "2.5"),
        ],
    )
    def test_name(self, tmp_path: Path, folder: str, setup: str, name: str, version: str) -> None:
        """From setup.py, else from the folder if it is called as the package is, else from the package."""
        files = {"demo/__init__.py": "", "demo/a.cu": KERNEL, **({"setup.py": setup} if setup else {})}
        root = tmp_path / folder
        Project(root, tmp_path / "cache").write(files)
        proposal = propose(root, {})
        values = tomllib.loads(proposal.addition)
        assert (values["project"]["name"], values["project"]["version"]) == (name, version)
        assert "targets" not in values["tool"]["hatch"]["build"]

    def test_a_name_that_fits_no_package(self, tmp_path: Path) -> None:
        """Where setup.py has another name, hatchling is told of the package."""
        root = tmp_path / "checkout"
        setup = "setup(name='other')"
        Project(root, tmp_path / "cache").write({"demo/__init__.py": "", "demo/a.cu": KERNEL, "setup.py": setup})
        values = tomllib.loads(propose(root, {}).addition)
        assert values["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["demo"]


class TestNothingToPropose:
    """An error says what is missing."""

    @pytest.mark.parametrize(
        ("files", "words"),
        [
            ({}, "has no .cu file"),
            ({"demo/host.cu": "int main() {}\n"}, "demo/host.cu"),
            ({"demo/ops.py": "import cupy\nm = cupy.RawModule(code='')\n"}, "demo/ops.py"),
            ({"demo/.hidden/a.cu": KERNEL, "build/b.cu": KERNEL, "v/pyvenv.cfg": "", "v/c.cu": KERNEL}, "no .cu file"),
            ({"demo/ignored/a.cu": KERNEL, ".gitignore": "ignored/\n"}, "no .cu file"),
            ({"demo/a.cu": "// __global__ void k();\nint x;\n"}, "has a kernel"),
        ],
    )
    def test_no_kernels(self, tmp_path: Path, files: dict[str, str], words: str) -> None:
        """Neither hidden, built nor ignored files count, nor does a comment."""
        with pytest.raises(ConfigurationError, match=words):
            propose(project(tmp_path, {**NAMED, **files}).root, {})

    def test_no_package(self, tmp_path: Path) -> None:
        """Sources alone make no wheel."""
        with pytest.raises(ConfigurationError, match=r"__init__\.py"):
            propose(project(tmp_path, {"scale.cu": KERNEL}).root, {})

    def test_no_folder(self, tmp_path: Path) -> None:
        """A folder that is not there is named."""
        with pytest.raises(ConfigurationError, match="no such folder"):
            propose(tmp_path / "missing", {})


class TestArchitectures:
    """Those that the project was built for so far."""

    @pytest.mark.parametrize(
        ("name", "text", "archs"),
        [
            ("setup.py", 'os.environ["TORCH_CUDA_ARCH_LIST"] = "8.0;9.0a+PTX"\n', ["sm_80", "sm_90a", "compute_90a"]),
            (
                "setup.py",
                'CUDAExtension("x", [], extra_compile_args={"nvcc": ["-gencode", "arch=compute_86,code=sm_86"]})\n',
                ["sm_86"],
            ),
            ("setup.py", "flags = ['-gencode=arch=compute_90,code=[sm_90,compute_90]']\n", ["sm_90", "compute_90"]),
            ("CMakeLists.txt", "set(CMAKE_CUDA_ARCHITECTURES 80-real 90-virtual)\n", ["sm_80", "compute_90"]),
            (
                "CMakeLists.txt",
                'set_target_properties(k PROPERTIES CUDA_ARCHITECTURES "75;native" POSITION_INDEPENDENT_CODE ON)\n',
                ["sm_75", "compute_75"],
            ),
            ("CMakeLists.txt", "set(CMAKE_CUDA_ARCHITECTURES all-major)\n", ["all-major"]),
            ("CMakeLists.txt", "# set(CMAKE_CUDA_ARCHITECTURES 90)\n", None),
            ("Makefile", "k.o: k.cu\n\tnvcc -arch=sm_89 -c $<\n", ["sm_89", "compute_89"]),
            ("Dockerfile", 'ENV TORCH_CUDA_ARCH_LIST="7.0 8.0"\n', ["sm_80"]),
            (
                "demo/ops.py",
                "cupy.RawModule(code='', options=('--gpu-architecture=sm_90',))\n",
                ["sm_90", "compute_90"],
            ),
            ("demo/ops.py", "print('-arch=sm_90')\n", None),
        ],
    )
    def test_files(self, tmp_path: Path, name: str, text: str, archs: list[str] | None) -> None:
        """Lists of PyTorch and CMake, and flags of nvcc, in the files that have them."""
        found = look(tmp_path, {**NAMED, "demo/a.cu": KERNEL, name: text})["archs"]
        assert found == (archs or ["sm_80", "sm_90", "sm_100", "sm_120", "compute_80"])

    def test_environment(self, tmp_path: Path) -> None:
        """A TORCH_CUDA_ARCH_LIST that is set wins, and what CUDA 13 no longer has is named."""
        made = project(tmp_path, {**NAMED, "demo/a.cu": KERNEL, "Makefile": "nvcc -arch=sm_89\n"})
        proposal = propose(made.root, {"TORCH_CUDA_ARCH_LIST": "6.0 8.6"})
        assert table(proposal)["archs"] == ["sm_86"]
        assert "sm_60" in proposal.addition

    def test_options(self, tmp_path: Path) -> None:
        """Flags that change kernels become options; macros are told as a comment."""
        flags = "CUDAExtension('x', ['a.cu'], {'nvcc': ['--use_fast_math', '-std=c++20', '-DTILE=16']})\n"
        made = project(tmp_path, {**NAMED, "demo/a.cu": KERNEL, "setup.py": flags})
        proposal = propose(made.root, {})
        assert table(proposal)["options"] == {"use-fast-math": True, "std": "c++20"}
        assert "# Macros" in proposal.addition
        assert "TILE=16 (setup.py)" in proposal.addition


class TestSources:
    """Templates, instances, headers."""

    @pytest.mark.parametrize(
        ("source", "python", "expressions"),
        [
            ("namespace a { namespace b { " + TEMPLATE + "} }", "'a::b::fill<float, 4>'", ["a::b::fill<float, 4>"]),
            (
                TEMPLATE + "void f(float *x) { fill<float, 4><<<1, 1>>>(x); }\n",
                "'fill<float, 8>'",
                ["fill<float, 4>", "fill<float, 8>"],
            ),
            (TEMPLATE + "// fill<int, 4>\n", "", ["fill<float, 32>"]),
            (TEMPLATE + "template <class T> void f(T *x) { fill<T, 4><<<1, 1>>>(x); }\n", "", None),
            (TEMPLATE + "template <typename T, int N> __global__ void fill(T *, int);\n", "", ["fill<float, 32>"]),
            ("#define KERNEL(name) __global__ void name\n" + TEMPLATE, "", ["fill<float, 32>"]),
            (TEMPLATE + "template __global__ void fill<half, 2>(half *);\n", "", ["fill<half, 2>"]),
            (
                TEMPLATE,
                "'fill<T, 4>', 'fill<float>', 'fill<float, 4, 5>', 'fill<std::vector<int>, 3>'",
                ["fill<float, 32>"],
            ),
            (TEMPLATE + KERNEL, "", None),
            (TEMPLATE.replace("int N", "int N = 4"), "", ["fill<float>"]),
            ("template <typename... T> __global__ void all(T... x) {}\n" + KERNEL, "", None),
            (TEMPLATE.replace("void", "void __launch_bounds__(128, 2)"), "", ["fill<float, 32>"]),
            (TEMPLATE.replace("__global__", "\n#if 1\n__global__\n#endif\n"), "", ["fill<float, 32>"]),
        ],
    )
    def test_templates(self, tmp_path: Path, source: str, python: str, expressions: list[str] | None) -> None:
        """Instances that the project names, else a guess where the module would have no kernel; a comment otherwise."""
        made = project(tmp_path, {**NAMED, "demo/a.cu": source, "demo/use.py": f"x = [{python}]\n"})
        proposal = propose(made.root, {})
        modules = table(proposal).get("modules", [])
        assert [module.get("name-expressions") for module in modules] == [expressions]
        if expressions is None:
            assert "# name-expressions = [" in proposal.addition

    def test_instances_that_the_build_takes(self, tmp_path: Path) -> None:
        """What host code launches is not listed: the build compiles it unasked."""
        source = TEMPLATE + "void f(float *x) { const int n = 4; fill<float, n><<<1, 1>>>(x); }\n"
        made = project(tmp_path, {**NAMED, "demo/a.cu": source})
        proposal = propose(made.root, {})
        assert not table(proposal).get("modules") and "name-expressions" not in proposal.addition

    TORCH = "#include <torch/extension.h>\n"
    HALF = TORCH + "__global__ void k(at::Half *x) { x[0] = x[1]; }\n"
    DISPATCH = TORCH + (
        "template <typename T> __global__ void k(T *x) { x[0] = x[1]; }\nvoid f(torch::Tensor t) {\n"
        'AT_DISPATCH_FLOATING_TYPES_AND_HALF(t.scalar_type(), "f", [&] {\n'
        "k<scalar_t><<<1, 1>>>(t.data_ptr<scalar_t>()); });\n}\n"
    )

    @pytest.mark.parametrize("text", [HALF, DISPATCH], ids=["types", "dispatch"])
    def test_libraries_that_device_code_needs(self, tmp_path: Path, text: str) -> None:
        """The package is in the table, its macros are, and the build's requirements name it."""
        files = {"setup.py": "", "demo/__init__.py": "", "demo/a.cu": text, "demo/b.cu": KERNEL}
        proposal = propose(project(tmp_path, files).root, {})
        found = table(proposal)
        assert found["include-packages"] == ["torch"]
        assert found["defines"] == dict.fromkeys(LIBRARIES["torch"].defines, True)
        assert 'requires = ["hatchling", "hatch-cuda-kernels", "torch"]' in proposal.addition
        assert "# Device code of demo/a.cu needs headers of the installed package torch." in proposal.addition

    def test_macros_that_the_project_undefines(self, tmp_path: Path) -> None:
        """Those of the library's builds that the project's own build takes back are left out."""
        setup = "CUDAExtension(extra_compile_args=['-U__CUDA_NO_HALF_OPERATORS__', '-U__CUDA_NO_HALF2_OPERATORS__'])\n"
        found = look(tmp_path, {"setup.py": setup, "demo/__init__.py": "", "demo/a.cu": self.HALF})
        assert found["defines"] == {"__CUDA_NO_BFLOAT16_CONVERSIONS__": True, "__CUDA_NO_HALF_CONVERSIONS__": True}

    def test_libraries_that_are_to_be_required(self, tmp_path: Path) -> None:
        """Requirements that are there stay, and what is to be added is said."""
        proposal = propose(project(tmp_path, {**NAMED, "demo/a.cu": self.HALF}).root, {})
        assert any('[build-system]: add "torch" to requires' in note for note in proposal.notes)

    def test_libraries_of_the_host_alone(self, tmp_path: Path) -> None:
        """A source whose kernels use none of the library's types is compiled without it."""
        text = self.TORCH + KERNEL + "void f(at::Tensor t) { c10::Half h = t.item<at::Half>(); }\n"
        found = look(tmp_path, {**NAMED, "demo/a.cu": text})
        assert "include-packages" not in found and "defines" not in found

    def test_headers(self, tmp_path: Path) -> None:
        """Folders are found through headers of headers; what the toolkit has is not looked for in the project."""
        files = {
            "demo/a.cu": '#include <first/a.cuh>\n#include <math.h>\n#include "near.h"\n#include <cub/cub.cuh>\n'
            + KERNEL,
            "lib/include/first/a.cuh": "#include <second/b.cuh>\n",
            "other/second/b.cuh": "",
            "tests/second/b.cuh": "",
            "vendored/math.h": "",
        }
        assert look(tmp_path, {**NAMED, **files})["include-dirs"] == ["lib/include", "other"]

    def test_links_and_directories(self, tmp_path: Path) -> None:
        """What cannot be read is passed over: links that lead nowhere or round, a folder called like a header."""
        made = project(tmp_path, {**NAMED, "demo/a.cu": '#include "a.cuh"\n#include "b.cuh"\n' + KERNEL})
        (made.root / "demo/a.cuh").symlink_to("nowhere")
        (made.root / "demo/b.cuh").mkdir()
        (made.root / "demo/c.cuh").symlink_to("c.cuh")
        (made.root / "demo/loop").symlink_to(".")
        (made.root / "demo/bytes.py").write_bytes(b"\xff\xfe\x00")
        assert "modules" not in table(propose(made.root, {}))

    def test_only_declared_is_no_kernel(self, tmp_path: Path) -> None:
        """A source that declares a kernel and defines none is left out, since a build of it would fail."""
        files = {"demo/a.cu": KERNEL, "demo/host.cu": "__global__ void scale(float *, float);\nvoid f() {}\n"}
        assert look(tmp_path, {**NAMED, **files})["sources"] == ["/demo/a.cu"]

    @pytest.mark.parametrize("name", ['a"b', "a#b", "a[1]", "a*", "!a", "ä", "a\nb", "con"])
    def test_odd_names(self, tmp_path: Path, name: str) -> None:
        """Whatever a file is called, the table is TOML that a build accepts, and only that file is meant."""
        made = project(tmp_path, {**NAMED, f"csrc/{name}.cu": KERNEL})
        proposal = propose(made.root, {})
        found = table(proposal)
        assert found["modules"][0]["source"] == f"csrc/{name}.cu"
        assert proposal.addition.isprintable() or "\n" in proposal.addition


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """`--dry-run` prints and writes nothing; without it the file is written; a second time is refused."""
    monkeypatch.delenv("TORCH_CUDA_ARCH_LIST", raising=False)
    made = project(tmp_path, {**NAMED, "demo/scale.cu": KERNEL})
    monkeypatch.chdir(made.root)
    before = (made.root / "pyproject.toml").read_text()
    assert main(["init", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert (made.root / "pyproject.toml").read_text() == before
    assert main(["init", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["addition"].strip() == shown.strip()
    assert (made.root / "pyproject.toml").read_text() == f"{before.rstrip()}\n\n{shown.rstrip()}\n"
    assert main(["init"]) == 1
    assert "already" in capsys.readouterr().err


PROJECTS = Path(__file__).parent / "projects"


def without_table(text: str) -> str:
    """TOML without the tables of the hook."""
    kept, ours = [], False
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("["):
            ours = "cuda-kernels" in line
        kept += [] if ours else [line]
    return "".join(kept)


@pytest.mark.isolated
@pytest.mark.parametrize(
    "name", sorted(path.name for path in PROJECTS.iterdir() if (path / "pyproject.toml").is_file())
)
def test_every_layout_again(tmp_path: Path, name: str) -> None:
    """Every project of the tests, robbed of its hook table, gets one from `init` with which it has the same kernels."""
    requires = tomllib.loads((PROJECTS / name / "pyproject.toml").read_text())["build-system"]["requires"]
    if others := {text.split()[0] for text in requires} - {"hatchling", "hatch-cuda-kernels"}:
        pytest.skip(f"its build needs {', '.join(sorted(others))}")
    kernels = []
    for robbed in (False, True):
        made = Project(tmp_path / str(robbed) / "project", tmp_path / "cache")
        shutil.copytree(PROJECTS / name, made.root)
        if robbed:
            for path in (made.root / "pyproject.toml", made.root / "hatch.toml"):
                if path.is_file():
                    path.write_text(without_table(path.read_text()))
            propose(made.root, {}).write()
        run = made.build(env={"HATCH_CUDA_KERNELS_ARCHS": "sm_90"})
        assert run.status == 0, run.output
        with zipfile.ZipFile(made.wheel()) as wheel:
            manifests = [json.loads(wheel.read(path)) for path in wheel.namelist() if path.endswith("/manifest.json")]
        kernels.append({kernel for found in manifests for module in found["modules"] for kernel in module["kernels"]})
    assert kernels[0] == kernels[1] != set()
