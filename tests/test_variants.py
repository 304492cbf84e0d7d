# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Variants: one source over a matrix of macros, from the hook table to the kernel that is loaded."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from fake_driver import COMPILER, environment, read_log
from hypothesis import given
from hypothesis import strategies as st
from projects import Project, make_project, manifest_of, names_of
from support import run_python

from hatch_cuda_kernels.catalog import split_name
from hatch_cuda_kernels.config import Config
from hatch_cuda_kernels.cubin import read_cubin
from hatch_cuda_kernels.errors import ConfigurationError
from hatch_cuda_kernels.manifest import check_relative_path
from hatch_cuda_kernels.modules import ShippedPackage, find_modules
from hatch_cuda_kernels.variants import image_stem, module_key, variant_name

GEMM = """\
#ifdef SWIZZLED
#define FACTOR 3
#else
#define FACTOR 1
#endif
extern "C" __global__ void gemm(ELEMENT *x) {
    __shared__ ELEMENT tile[TILE * FACTOR];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = tile[TILE * FACTOR - 1 - threadIdx.x];
}
"""
TABLE = 'archs = ["sm_80"]\n[[tool.hatch.build.hooks.cuda-kernels.modules]]\nsource = "demo/gemm.cu"\n'
MATRIX = TABLE + 'variants = { TILE = [16, 32], ELEMENT = ["float", "unsigned   char"], SWIZZLED = [true, false] }\n'


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with a matrix of eight variants, built."""
    project = make_project(tmp_path_factory.mktemp("variants"), MATRIX, {"demo/gemm.cu": GEMM})
    run = project.build()
    assert run.status == 0, run.output
    return project


@pytest.fixture(scope="module")
def site(project: Project) -> Path:
    """The project's wheel, unpacked."""
    site = project.root.parent / "site"
    with zipfile.ZipFile(project.wheel()) as archive:
        archive.extractall(site)
    return site


def tool(site: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "hatch_cuda_kernels", *arguments]
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"}  # lines of any length
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=site, env=env)
    return done.stdout + done.stderr


class TestBuild:
    @pytest.mark.slow
    def test_every_combination_is_a_module(self, project: Project) -> None:
        """Each combination has its name, its macros, and an image that was compiled with them."""
        modules = {module["name"]: module for module in manifest_of(project.wheel())["modules"]}
        assert set(modules) == {
            f"gemm[TILE={tile},ELEMENT={kind},SWIZZLED={swizzled}]"
            for tile, kind, swizzled in itertools.product([16, 32], ["float", "unsigned char"], ["true", "false"])
        }
        for name, module in modules.items():
            (image,) = module["images"]
            swizzled = "SWIZZLED=true" in name
            assert module["defines"].get("SWIZZLED") is (True if swizzled else None)
            size = (32 if "TILE=32" in name else 16) * (3 if swizzled else 1) * (4 if "float" in name else 1)
            assert image["entries"]["gemm"]["shared_bytes"] == size, name

    def test_files_are_portable_and_hold_what_the_manifest_says(self, project: Project) -> None:
        """Every variant has files of its own, named as every system takes it."""
        names = [name for name in names_of(project.wheel()) if name.endswith(".cubin")]
        assert len({name.lower() for name in names}) == 8
        for name in names:
            assert not set(name) - set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/"), name
        with zipfile.ZipFile(project.wheel()) as archive:
            for module in manifest_of(project.wheel())["modules"]:
                facts = read_cubin(archive.read(f"demo/_cuda_kernels/{module['images'][0]['file']}"))
                (entry,) = facts.entries.values()
                assert entry.shared_bytes == module["images"][0]["entries"]["gemm"]["shared_bytes"]

    @pytest.mark.slow
    def test_one_value_more_compiles_one_more(self, tmp_path: Path) -> None:
        """A value that is added costs its own compiles only; the others come from the cache."""
        project = make_project(
            tmp_path, TABLE + "defines = { ELEMENT = 'int' }\nvariants = { TILE = [16] }", {"demo/gemm.cu": GEMM}
        )
        assert project.build().status == 0
        table = (project.root / "pyproject.toml").read_text()
        project.write({"pyproject.toml": table.replace("[16]", "[16, 64]")})
        shutil.rmtree(tmp_path / "out")
        assert project.build().outcomes == {"gemm[TILE=16] sm_80": "cached", "gemm[TILE=64] sm_80": "compiled"}

    @pytest.mark.slow
    def test_a_failing_variant_is_named(self, tmp_path: Path) -> None:
        """An error says which combination it is of. A macro that breaks NVRTC's own header is told to do so: `T` does,
        which many a header calls its template parameter."""
        source = GEMM + '\nstatic_assert(TILE < 64, "tile too large");\n'
        table = f"{TABLE}defines = {{ ELEMENT = 'int' }}\nvariants = {{ TILE = [16, 64] }}\n"
        table += "[[tool.hatch.build.hooks.cuda-kernels.modules]]\nsource = 'demo/t.cu'\nvariants = { T = ['int'] }"
        files = {"demo/gemm.cu": source, "demo/t.cu": 'extern "C" __global__ void k(T *x) { *x = 1; }\n'}
        run = make_project(tmp_path, table, files).build()
        assert run.status == 1
        assert "2 of 3 images failed" in run.output
        assert "gemm[TILE=64] for sm_80" in run.output
        assert "tile too large" in run.output
        assert "t[T=int] for sm_80" in run.output
        assert "hint: a macro (T) changes NVRTC's own header; give it a longer name" in run.output


class TestCommands:
    def test_inspect_verify_stubs(self, site: Path) -> None:
        """The commands take and show variants as they are called; the shipped sources compile for each of them."""
        assert '"gemm[TILE=16,ELEMENT=float,SWIZZLED=true]"' in tool(site, "inspect", "demo", "--json")
        assert json.loads(tool(site, "verify", "demo", "--json"))["ok"]
        assert "'gemm[TILE=32,ELEMENT=unsigned char,SWIZZLED=false]:gemm'" in tool(site, "stubs", "demo")

    @pytest.mark.parametrize(
        "name",
        [
            "gemm[TILE=16,ELEMENT=float,SWIZZLED=true]:gemm",
            "gemm[ELEMENT=float,TILE=16,SWIZZLED=true]:gemm",
            " gemm [ SWIZZLED = true , ELEMENT = float , TILE = 16 ] : gemm ",
        ],
    )
    def test_explain_takes_every_spelling(self, site: Path, name: str) -> None:
        """Neither the order of the macros nor white space counts."""
        shown = tool(site, "explain", "demo", name, "--compute-capability", "8.6")
        assert "cubin sm_80" in shown

    @pytest.mark.parametrize(
        ("name", "told"),
        [
            ("gemm", 'in 8 modules; ask for one of "gemm[TILE=16,ELEMENT=float,SWIZZLED=false]:gemm", '),
            ("gemm:gemm", "did you mean 'gemm[TILE=16,ELEMENT=float,SWIZZLED=false]:gemm' or "),
            ("gemm[TILE=64]:gemm", "did you mean 'gemm[TILE=16,ELEMENT=float,SWIZZLED=false]:gemm' or "),
        ],
    )
    def test_a_name_that_leaves_it_open(self, site: Path, name: str, told: str) -> None:
        """A kernel without its variant, or with one that is not there, is answered with what there is."""
        assert told in tool(site, "explain", "demo", name, "--compute-capability", "8.6")


LOAD = """
from hatch_cuda_kernels import load_kernel, load_module
names = ["gemm[ELEMENT=float,TILE=16,SWIZZLED=true]", "gemm[TILE=32, ELEMENT=unsigned char, SWIZZLED=false]"]
report([[attempt(load_kernel, f"{name}:gemm", package="demo") for name in names],
        [attempt(load_module, name, package="demo") for name in names],
        attempt(load_module, "gemm", package="demo")])
"""


@pytest.mark.skipif(shutil.which(COMPILER) is None, reason=f"{COMPILER} is not there")
@pytest.mark.parametrize("jit", ["0", "force"])
def test_load(fake_library: Path, site: Path, tmp_path: Path, jit: str) -> None:
    """A variant is loaded by its name, as a kernel and as a module; the fallback compiles the same variant."""
    variables = environment(fake_library, log=tmp_path / "log", capabilities=("8.0",), driver="13.5")
    variables |= {"HATCH_CUDA_KERNELS_JIT": jit, "HATCH_CUDA_KERNELS_CACHE": str(tmp_path / "cache")}
    kernels, modules, missing = run_python(LOAD, variables, site).value
    assert (kernels, modules) == (["ok", "ok"], ["ok", "ok"])
    assert "KernelNotFoundError" in missing
    assert "did you mean 'gemm[TILE=16,ELEMENT=float,SWIZZLED=false]'" in missing
    loads = [entry for entry in read_log(tmp_path / "log") if entry["call"] in ("library_load", "module_load")]
    assert [entry["arch"] for entry in loads] == ["sm_80", "sm_80"]


class TestNames:
    @given(
        st.dictionaries(
            st.from_regex(r"[A-Z_][A-Z0-9_]{0,5}", fullmatch=True),
            st.one_of(st.booleans(), st.from_regex(r"(?:[\w.+\-<>*&]|::| (?=\w))+", fullmatch=True)),
            min_size=1,
            max_size=4,
        ),
        st.randoms(),
    )
    def test_a_name_leads_back_to_its_module(self, chosen: dict[str, Any], random: Any) -> None:
        """Whatever a variant's values are, its name is one spelling of itself in any order, apart from the kernel."""
        name = variant_name("a.b", chosen)
        shuffled = list(chosen.items())
        random.shuffle(shuffled)
        assert module_key(variant_name("a.b", dict(shuffled))) == module_key(name)
        assert split_name(f"{name}:k<int>") == (module_key(name), "k<int>")
        assert check_relative_path(image_stem(name), "x") == image_stem(name)
        assert image_stem(name) == image_stem(variant_name("a.b", dict(shuffled)))

    @pytest.mark.parametrize(
        ("one", "other"),
        [({"T": "int*"}, {"T": "int&"}), ({"T": "Half"}, {"T": "half"}), ({"T": "a b"}, {"T": "a-b"})],
    )
    def test_files_of_different_variants_differ(self, one: dict[str, str], other: dict[str, str]) -> None:
        """Values that only an unportable character, or case, tells apart have files of their own."""
        assert image_stem(variant_name("k", one)).lower() != image_stem(variant_name("k", other)).lower()

    def test_long_names(self) -> None:
        """However long its name, a variant's file has a name that file systems take."""
        assert len(image_stem(variant_name("k" * 150, {f"M{i}": "x" * 50 for i in range(20)}))) < 120


def test_not_in_the_way_of_other_modules(tmp_path: Path) -> None:
    """Two entries may share a source and a name as long as no variant is there twice."""
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo/gemm.cu").touch()
    packages = [ShippedPackage(name="demo", folder="demo")]

    def find(*variants: dict[str, list[Any]]) -> list[str]:
        entries = [{"source": "demo/gemm.cu", **({"variants": found} if found else {})} for found in variants]
        config = Config.from_table({"archs": ["sm_80"], "modules": entries}, where="hook")
        return [spec.name for spec in find_modules(config, tmp_path, packages, where="hook")]

    assert find({"A": [1], "B": [2]}, {"A": [3]}, {}) == ["gemm", "gemm[A=1,B=2]", "gemm[A=3]"]
    with pytest.raises(ConfigurationError, match="are both called"):
        find({"A": [1], "B": [2]}, {"B": [2], "A": [1]})


def test_table_defines_give_way(tmp_path: Path) -> None:
    """A variant's value replaces the table's; `false` takes the table's macro away."""
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo/a.cu").touch()
    entries = [{"source": "demo/a.cu", "variants": {"A": [5, False]}}]
    table = {"archs": ["80"], "defines": {"A": 1, "B": 2}, "modules": entries}
    packages = [ShippedPackage(name="demo", folder="demo")]
    five, none = find_modules(Config.from_table(table, where="hook"), tmp_path, packages, where="hook")
    assert (five.defines, none.defines) == ({"A": "5", "B": "2"}, {"B": "2"})
    assert dataclasses.replace(five, name="", defines={}) == dataclasses.replace(none, name="", defines={})
