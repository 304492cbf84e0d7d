# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Modules of several sources: what is linked, what is refused, and that every source counts wherever one would."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from fake_driver import COMPILER, environment, read_log
from jobs import compile_alone, make_job, write
from projects import Project, make_project, manifest_of, names_of
from support import run_python

from hatch_cuda_kernels import jobs
from hatch_cuda_kernels.arch import Architecture
from hatch_cuda_kernels.cache import KernelCache
from hatch_cuda_kernels.elf import Elf
from hatch_cuda_kernels.errors import CompilationError, ManifestError, ToolchainError
from hatch_cuda_kernels.manifest import Manifest
from hatch_cuda_kernels.nvrtc import workspace
from hatch_cuda_kernels.plan import CompiledImage, CompileJob
from hatch_cuda_kernels.pool import compile_all
from hatch_cuda_kernels.toolchain import probe

try:
    version("nvidia-nvjitlink")
except PackageNotFoundError as missing:
    pytest.skip(f"{missing.name} is not installed", allow_module_level=True)

MAIN = """\
__device__ float other(float);
__constant__ float scale[4];
template <class T> __global__ void typed(T *x) { x[0] = other(x[0]); }
extern "C" __global__ void k(float *x) {
    float sum = 0;
    for (int i = 0; i < 64; i++) sum += other(x[i * blockDim.x]) / sqrtf(x[i]);
    x[threadIdx.x] = sum * scale[1] + x[3];
}
"""
OTHER = """\
#include "factor.cuh"
static __device__ int calls;
namespace { __device__ __noinline__ float hidden(float x) { calls++; return 1.0f / x; } }
__device__ float other(float x) { return x * FACTOR + hidden(x); }
__global__ void second(float *x) { x[0] = other(x[1]); }
"""
FILES = {"k.cu": MAIN, "lib/other.cu": OTHER, "lib/factor.cuh": "#define FACTOR 2.5f\n"}
OPTIMIZED = {"link-time-optimization": True}


def linked_job(root: Path, files: dict[str, str] = FILES, arch: str = "sm_80", **options: Any) -> CompileJob:
    """The job of `k.cu` linked with every other source of the files."""
    others = tuple(name for name in files if name.endswith(".cu") and name != "k.cu")
    unit = make_job(write(root, files), linked=others, **options).unit
    return jobs.make_job(unit, Architecture.parse(arch), probe())


def code(image: CompiledImage, kernel: str = "k") -> bytes:
    return Elf(image.data).content(f".text.{kernel}")


class TestImage:
    @pytest.mark.parametrize("options", [{}, OPTIMIZED], ids=["plain", "optimized"])
    def test_kernels_of_all_sources(self, tmp_path: Path, options: dict[str, Any]) -> None:
        """Kernels of every source, and name expressions of the first, are in the one image; so is what was read."""
        image = compile_alone(linked_job(tmp_path, options=options, arch="sm_90a", name_expressions=("typed<float>",)))
        assert image.kernels == {"k": "k", "second": "_Z6secondPf", "typed<float>": "_Z5typedIfEvPT_"}
        assert set(image.entries) == set(image.kernels.values())
        assert set(image.reads.files) == {"k.cu", "lib/other.cu", "lib/factor.cuh"}
        assert all(found and found.registers for found in image.entries.values())

    @pytest.mark.parametrize(
        "options",
        [
            {"use-fast-math": True},
            pytest.param({}, marks=pytest.mark.slow),
            pytest.param({"max-register-count": 24}, marks=pytest.mark.slow),
            pytest.param({"use-fast-math": True, "prec-div": True}, marks=pytest.mark.slow),
            pytest.param({"prec-div": False, "ptxas-options": "-O1"}, marks=pytest.mark.slow),
        ],
    )
    def test_optimized_code_is_that_of_one_source(self, tmp_path: Path, options: dict[str, Any]) -> None:
        """With link-time optimization the code is, to the byte, that of the same text in one source: every option that
        decides code reaches the linker."""
        texts = {name: text.replace("__noinline__", "") for name, text in FILES.items()}
        one = OTHER.replace("__noinline__", "").replace("__device__ float other", "static __device__ float other")
        one = one.replace("__global__ void second(float *x) { x[0] = other(x[1]); }", "")
        texts["lib/other.cu"] = (
            texts["lib/other.cu"]
            .replace("calls++;", "")
            .replace("__global__ void second(float *x) { x[0] = other(x[1]); }", "")
        )
        one = one.replace("calls++;", "")
        together = compile_alone(linked_job(tmp_path / "two", texts, options={**options, **OPTIMIZED}))
        source = one.replace("factor.cuh", "lib/factor.cuh") + MAIN.split(";", 1)[1]
        files = {"k.cu": source, "lib/factor.cuh": FILES["lib/factor.cuh"]}
        assert code(together) == code(compile_alone(make_job(write(tmp_path / "one", files), options=options)))
        assert code(together)

    def test_optimized_ptx(self, tmp_path: Path) -> None:
        """PTX comes of link-time optimization, for the architecture asked for."""
        image = compile_alone(linked_job(tmp_path, arch="compute_80", options=OPTIMIZED))
        assert b".target sm_80" in image.data
        assert set(image.kernels) == {"k", "second"}

    @pytest.mark.parametrize(
        "options",
        [{}, OPTIMIZED, *(pytest.param({"lineinfo": True, **way}, marks=pytest.mark.slow) for way in ({}, OPTIMIZED))],
    )
    def test_bytes_do_not_depend_on_the_place(self, tmp_path: Path, options: dict[str, Any]) -> None:
        """Neither the folder nor the process is in the image, statics and unnamed namespaces included."""
        first = compile_alone(linked_job(tmp_path / "a", options=options))
        second = compile_alone(linked_job(tmp_path / "quite" / "elsewhere", options=options))
        assert first.data == second.data
        assert first.warnings == ()

    def test_host_code_of_every_source_is_passed_over(self, tmp_path: Path) -> None:
        """Host code in a source that is not the first is passed over and told, like the first one's."""
        host = "#include <vector>\nint main() { std::vector<int> v; return 0; }\n"
        image = compile_alone(linked_job(tmp_path, {**FILES, "lib/other.cu": host + OTHER}))
        assert {omission.source for omission in image.passed_over} == {"lib/other.cu"}
        assert "k" in image.kernels

    def test_instances_that_host_code_of_any_source_launches(self, tmp_path: Path) -> None:
        """What the host code of a further source instantiates is a kernel of the image by that name."""
        host = "template <class T> __global__ void late(T *x) { x[0] = other(x[1]); }\n"
        host += "void run(float *x) { late<float><<<1, 1>>>(x); }\n"
        image = compile_alone(linked_job(tmp_path, {**FILES, "lib/other.cu": OTHER + host}))
        assert image.kernels["late<float>"] in image.entries
        assert {"k", "second"} <= set(image.kernels)


class TestKey:
    def test_holds_the_linker(self, tmp_path: Path) -> None:
        """Another release of nvJitLink is another key, and is not taken for the one asked for."""
        job = linked_job(tmp_path)
        assert job.linker == version("nvidia-nvjitlink")
        other = dataclasses.replace(job, linker="13.0.1")
        assert other.key != job.key
        with pytest.raises(ToolchainError, match=r"nvJitLink 13\.0\.1 was expected, and .* is loaded"):
            compile_alone(other)

    @pytest.mark.parametrize("edited", list(FILES))
    def test_holds_every_file(self, tmp_path: Path, edited: str) -> None:
        """An edit of any source, or of a header of any, is no hit."""
        cache = KernelCache.open(str(tmp_path / "cache"))
        job = linked_job(tmp_path / "project")
        cache.store(job, compile_alone(job))
        assert cache.lookup(linked_job(tmp_path / "copy")) is not None
        changed = {**FILES, edited: FILES[edited] + "// edited\n"}
        assert cache.lookup(linked_job(tmp_path / "changed", changed)) is None

    def test_holds_the_set_and_the_way(self, tmp_path: Path) -> None:
        """A source more, another option, or a header that comes earlier for the second source, is another job."""
        searched = {**FILES, "lib/other.cu": OTHER.replace('"factor.cuh"', "<factor.cuh>")}
        earlier = {**searched, "first/factor.cuh": "#define FACTOR 1.0f\n"}
        jobs = [
            linked_job(tmp_path / "a"),
            linked_job(tmp_path / "b", {**FILES, "lib/third.cu": "__device__ int third;\n"}),
            linked_job(tmp_path / "c", options=OPTIMIZED),
            linked_job(tmp_path / "d", searched, include_dirs=("first", "lib")),
            linked_job(tmp_path / "e", earlier, include_dirs=("first", "lib")),
            make_job(tmp_path / "a"),
        ]
        assert len({job.key for job in jobs}) == len(jobs)


LAUNCH = '__global__ void c(int *x) { *x = 1; }\nextern "C" __global__ void k(int *x) { c<<<1, 1>>>(x); }\n'
HELPER = "__device__ int helper;\n"
NO_LAUNCH = "hint: a kernel that launches kernels (dynamic parallelism) is not supported"


@pytest.mark.parametrize(
    ("files", "options", "told"),
    [
        pytest.param(
            {**FILES, "x.cu": "__device__ float other(float x) { return x; }"},
            {},
            "_Z5otherf is defined in lib/other.cu and in x.cu",
            id="twice",
        ),
        pytest.param(
            {**FILES, "x.cu": "__device__ float other(float x) { return x; }"},
            OPTIMIZED,
            "'_Z5otherf': symbol multiply defined",
            id="twice-optimized",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {
                "k.cu": MAIN,
                "x.cu": 'extern "C" __global__ void k(float *x) {}\n' + OTHER.partition("\n")[2].replace("FACTOR", "2"),
            },
            {},
            "k is defined in k.cu and in x.cu",
            id="kernel-twice",
            marks=pytest.mark.slow,
        ),
        pytest.param({"k.cu": MAIN, "x.cu": HELPER}, {}, "Undefined reference to '_Z5otherf'", id="undefined"),
        pytest.param(
            {"k.cu": MAIN, "x.cu": HELPER}, OPTIMIZED, "_Z5otherf", id="undefined-optimized", marks=pytest.mark.slow
        ),
        pytest.param(
            {
                "k.cu": 'extern __device__ int a[8];\nextern "C" __global__ void k(int *x) { *x = a[7]; }\n',
                "x.cu": "__device__ int a[2];\n",
            },
            {},
            "Size doesn't match for 'a'",
            id="size",
        ),
        pytest.param(
            {
                "k.cu": 'extern "C" { __device__ float f(float); __global__ void k(float *x) { *x = f(*x); } }\n',
                "x.cu": 'extern "C" __device__ int f(int a, int b) { return a + b; }\n',
            },
            {},
            "Prototype doesn't match for 'f'",
            id="prototype",
            marks=pytest.mark.slow,
        ),
        pytest.param({"k.cu": LAUNCH, "x.cu": HELPER}, {}, NO_LAUNCH, id="launch"),
        pytest.param(
            {"k.cu": LAUNCH, "x.cu": HELPER}, OPTIMIZED, NO_LAUNCH, id="launch-optimized", marks=pytest.mark.slow
        ),
        pytest.param({"k.cu": LAUNCH}, {}, NO_LAUNCH, id="launch-alone", marks=pytest.mark.slow),
        pytest.param(
            {"k.cu": HELPER, "x.cu": HELPER.replace("er", "p")},
            {},
            "compiles to no kernel",
            id="no-kernel",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {**FILES, "x.cu": "__device__ int f( {"}, {}, "NVRTC refuses x.cu", id="syntax", marks=pytest.mark.slow
        ),
    ],
)
def test_refused(tmp_path: Path, files: dict[str, str], options: dict[str, Any], told: str) -> None:
    """What does not fit together is an error, also where nvJitLink only prints it and gives an image all the same."""
    job = linked_job(tmp_path, files, options=options)
    with workspace() as space:  # in a worker, as in a build: nvJitLink can crash after a link that failed
        ((_, result),) = compile_all([job], space, workers=1)
    assert isinstance(result, CompilationError), result
    assert told in str(result)
    assert "m for sm_80" in str(result)


def test_ptx_without_optimization(tmp_path: Path) -> None:
    """PTX cannot be linked otherwise."""
    with pytest.raises(CompilationError, match="PTX of several sources needs link-time optimization"):
        compile_alone(linked_job(tmp_path, arch="compute_80"))


def test_what_others_print_is_passed_on() -> None:
    """Lines of nvJitLink are collected from the standard error, those of others go on to it."""
    script = (
        "import os, sys\n"
        "from hatch_cuda_kernels.linker import _standard_error\n"
        "if sys.argv[1:]: os.close(2)\n"
        "with _standard_error() as lines:\n"
        "    os.write(2, b'mine\\nerror   : theirs\\n')\n"
        "print(lines)\n"
        "os.write(2, b'after\\n')\n"
    )
    for arguments, errors in (([], "mine\nafter\n"), (["closed"], "")):
        command = [sys.executable, "-c", script, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        assert (done.stdout, done.stderr) == ("['error   : theirs']\n", errors)


TABLE = """archs = ["sm_80", "sm_90"]
[[tool.hatch.build.hooks.cuda-kernels.modules]]
source = ["demo/k.cu", "lib/other.cu"]
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with a module of two sources, the second outside the package, built."""
    files = {"demo/k.cu": MAIN, **{name: text for name, text in FILES.items() if name != "k.cu"}}
    project = make_project(tmp_path_factory.mktemp("linked"), TABLE, files)
    run = project.build()
    assert run.status == 0, run.output
    return project


class TestProject:
    @pytest.mark.slow
    def test_the_app_is_told_to_bring_the_linker(self, tmp_path: Path) -> None:
        """A build warns where the fallback would need nvJitLink and no dependency of the app brings it."""
        files = {"demo/k.cu": MAIN, "lib/other.cu": "__device__ float other(float x) { return x; }"}
        told = 'add "cuda-toolkit[nvjitlink]" to the project\'s dependencies'
        project = make_project(tmp_path, TABLE.replace(', "sm_90"', ""), files)
        assert told in project.build(out=tmp_path / "without").output
        table = (project.root / "pyproject.toml").read_text()
        dependency = 'requires-python = ">=3.10"\n[project.optional-dependencies]\ngpu = ["cuda-toolkit[nvjitlink]"]'
        project.write({"pyproject.toml": table.replace('requires-python = ">=3.10"', dependency)})
        run = project.build(out=tmp_path / "with")
        assert run.status == 0, run.output
        assert told not in run.output

    def test_wheel(self, project: Project) -> None:
        """One module with both sources, which are shipped with their headers; the sources are not compiled alone."""
        (module,) = manifest_of(project.wheel())["modules"]
        assert (module["name"], module["source"], module["linked"]) == ("k", "demo/k.cu", ["lib/other.cu"])
        assert set(module["kernels"]) == {"k", "second"}
        shipped = {name.partition("/src/")[2] for name in names_of(project.wheel()) if "/src/" in name}
        assert shipped == {"demo/k.cu", "lib/other.cu", "lib/factor.cuh"}
        with zipfile.ZipFile(project.wheel()) as archive:
            (name,) = (name for name in archive.namelist() if "/sboms/" in name)
            components = {found["name"]: found for found in json.loads(archive.read(name))["components"]}
        assert components["nvJitLink"]["version"] == version("nvidia-nvjitlink")
        assert {"lib/other.cu", "lib/factor.cuh"} <= set(components)

    def test_manifest(self, project: Project) -> None:
        """The manifest satisfies its schema, and a list of sources that leads out of the package is refused."""
        manifest = manifest_of(project.wheel())
        schema = json.loads((Path(__file__).parent.parent / "docs/reference/manifest.schema.json").read_text())
        jsonschema.validate(manifest, schema)
        assert Manifest.from_dict(manifest).modules[0].linked == ("lib/other.cu",)
        for wrong in (["../other.cu"], ["/other.cu"], "lib/other.cu", [1], [""], {"a": 1}):
            manifest["modules"][0]["linked"] = wrong
            with pytest.raises(ManifestError, match=r"modules\[0\]\.linked"):
                Manifest.from_dict(manifest)

    @pytest.mark.slow
    def test_verify_jit(self, project: Project) -> None:
        """The shipped sources compile and link on their own for every architecture; a missing one is a fault."""
        command = [sys.executable, "-m", "hatch_cuda_kernels", "verify", "--jit", "--json"]
        variables = {**os.environ, "HATCH_CUDA_KERNELS_CACHE": str(project.cache)}
        done = subprocess.run(
            [*command, str(project.wheel())], capture_output=True, text=True, env=variables, check=False, timeout=240
        )
        assert json.loads(done.stdout) == {"schema": 1, "ok": True, "problems": [], "no_fallback": []}
        site = project.root.parent / "damaged"
        with zipfile.ZipFile(project.wheel()) as archive:
            archive.extractall(site)
        path = site / "demo/_cuda_kernels/manifest.json"
        manifest = json.loads(path.read_text())
        del manifest["fallback"]["files"]["lib/other.cu"]
        path.write_text(json.dumps(manifest))
        (site / "demo/_cuda_kernels/src/lib/other.cu").unlink()
        done = subprocess.run([*command, str(site)], capture_output=True, text=True, check=False, timeout=240)
        assert done.returncode == 1
        assert "the source of module k, lib/other.cu, is not shipped" in done.stdout

    @pytest.mark.slow
    def test_rebuild(self, project: Project, tmp_path: Path) -> None:
        """The second build compiles nothing; an edit of the second source's header compiles the module again."""
        copy = Project(tmp_path / "project", project.cache)
        shutil.copytree(project.root, copy.root)
        assert set(copy.build(out=tmp_path / "again").outcomes.values()) == {"cached"}
        assert copy.wheel(tmp_path / "again").read_bytes() == project.wheel().read_bytes()
        copy.write({"lib/factor.cuh": "#define FACTOR 3.5f\n"})
        assert set(copy.build(out=tmp_path / "edited").outcomes.values()) == {"compiled"}

    def test_sdist_without_a_header_of_the_second_source(self, tmp_path: Path) -> None:
        """W2 holds for every source."""
        files = {"demo/k.cu": MAIN, **{name: text for name, text in FILES.items() if name != "k.cu"}}
        extra = '[tool.hatch.build.targets.sdist]\nexclude = ["*.cuh"]\n'
        run = make_project(tmp_path, TABLE, files, extra).build("sdist")
        assert run.status == 1
        assert "lib/factor.cuh is reached from lib/other.cu and is left out" in run.output

    @pytest.mark.slow
    def test_ptx_is_refused_before_any_compile(self, tmp_path: Path) -> None:
        """PTX without link-time optimization is told as a matter of the table."""
        table = TABLE.replace('"sm_90"', '"compute_80"')
        run = make_project(tmp_path, table, {"demo/k.cu": MAIN, "lib/other.cu": "__device__ int x;"}).build()
        assert run.status == 1
        assert "archs: module k: compute_80: PTX of several sources needs link-time optimization" in run.output


@pytest.mark.slow
def test_command(tmp_path: Path) -> None:
    """`compile` links several sources, and a build that fails to link names the line that repeats it."""
    project = make_project(
        tmp_path,
        TABLE + "options = { link-time-optimization = true }",
        {"demo/k.cu": MAIN, "lib/other.cu": "__device__ int x;\n"},
    )
    told = project.build().output
    (line,) = {line for line in told.splitlines() if "hatch-cuda-kernels compile" in line and "sm_80" in line}
    words = shlex.split(line)[shlex.split(line).index("compile") :]
    assert words[1:3] == ["demo/k.cu", "lib/other.cu"]
    command = [sys.executable, "-m", "hatch_cuda_kernels", *words]
    done = subprocess.run(command, cwd=project.root, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    assert "_Z5otherf" in done.stderr
    project.write({"lib/other.cu": "__device__ float other(float x) { return x; }\n"})
    done = subprocess.run(
        [*command, "--json"], cwd=project.root, capture_output=True, text=True, check=True, timeout=120
    )
    assert list(json.loads(done.stdout)["kernels"]) == ["k"]


LOAD = """
from hatch_cuda_kernels import explain, load_kernel, load_module
report([attempt(load_kernel, "k", package="demo"), attempt(load_kernel, "k:second", package="demo"),
        attempt(load_module, "k", package="demo"),
        explain("k", package="demo", compute_capability="12.0").choice.kind, caught])
"""


@pytest.mark.skipif(shutil.which(COMPILER) is None, reason=f"{COMPILER} is not there")
@pytest.mark.parametrize("jit", ["0", "force", "editable"])
def test_load(fake_library: Path, project: Project, tmp_path: Path, jit: str) -> None:
    """Shipped images load; the fallback and an editable install compile and link the same sources."""
    site = tmp_path / "site"
    if jit == "editable":
        script = "import sys; from hatchling.build import build_editable; build_editable(sys.argv[1])"
        subprocess.run([sys.executable, "-c", script, str(tmp_path)], cwd=project.root, check=True, timeout=120)
    wheel = next(tmp_path.glob("*.whl")) if jit == "editable" else project.wheel()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    variables = environment(fake_library, log=tmp_path / "log", capabilities=("8.0",), driver="13.5")
    variables["HATCH_CUDA_KERNELS_CACHE"] = str(project.cache)
    if jit != "editable":
        variables["HATCH_CUDA_KERNELS_JIT"] = jit
    path = [site, project.root] if jit == "editable" else [site]
    kind = {"0": None, "force": "jit", "editable": "jit"}[jit]
    code = LOAD if kind else LOAD.replace(".choice.kind", ".choice")
    assert run_python(code, variables, *path).value == ["ok", "ok", "ok", kind, []]
    loads = [entry for entry in read_log(tmp_path / "log") if entry["call"] in ("library_load", "module_load")]
    assert [entry["arch"] for entry in loads] == ["sm_80"]
