# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The build hook through hatchling itself: layouts, wheels, rebuilds, sdists, editables, mistakes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from projects import KERNEL, Project, make_project, manifest_of, names_of

from hatch_cuda_kernels.manifest import Manifest


def built(project: Project, target: str = "wheel", env: dict[str, str] | None = None) -> Path:
    """Build and expect success."""
    shutil.rmtree(project.root.parent / "out", ignore_errors=True)
    run = project.build(target, env=env)
    assert run.status == 0, run.output
    return project.wheel() if target == "wheel" else next((project.root.parent / "out").glob("*.tar.gz"))


class TestWheel:
    def test_smallest_table(self, tmp_path: Path) -> None:
        """`archs` alone compiles every .cu inside the package; the wheel stays pure and gets nothing else."""
        wheel = built(make_project(tmp_path, 'archs = ["sm_80", "sm_90", "compute_80"]'))
        assert wheel.name == "demo-1.0-py3-none-any.whl"
        inside = "demo/_cuda_kernels"
        assert names_of(wheel) == [
            "demo/__init__.py",
            f"{inside}/manifest.json",
            f"{inside}/scale.compute_80.ptx",
            f"{inside}/scale.sm_80.cubin",
            f"{inside}/scale.sm_90.cubin",
            f"{inside}/src/demo/scale.cu",
            "demo/scale.cu",
        ]
        (module,) = manifest_of(wheel)["modules"]
        assert module["name"] == "scale"
        assert module["kernels"] == {"scale": "scale"}
        assert [image["architecture"] for image in module["images"]] == ["sm_80", "sm_90", "compute_80"]

    @pytest.mark.slow
    def test_names_need_no_configuration(self, tmp_path: Path) -> None:
        """extern "C", plain and namespaced kernels are found by source name, templates by their expression."""
        source = (
            'extern "C" __global__ void c_kernel(int *x) { *x = 1; }\n'
            "__global__ void plain(int *x) { *x = 2; }\n"
            "namespace outer { namespace inner { __global__ void nested(int *x) { *x = 3; } } }\n"
            "template <class T> __global__ void typed(T *x) { *x = T(4); }\n"
        )
        table = 'archs = ["sm_80"]\n[[tool.hatch.build.hooks.cuda-kernels.modules]]\nsource = "demo/names.cu"\n'
        table += 'name-expressions = ["typed< float >", "typed<unsigned   int>"]\n'
        wheel = built(make_project(tmp_path, table, {"demo/names.cu": source}))
        (module,) = manifest_of(wheel)["modules"]
        assert sorted(module["kernels"]) == [
            "c_kernel", "outer::inner::nested", "plain", "typed<float>", "typed<unsigned int>",
        ]  # fmt: skip

    @pytest.mark.slow
    def test_git_ignored_images_are_shipped(self, tmp_path: Path) -> None:
        """W1: what .gitignore names is in the wheel all the same, and nothing is written into the tree."""
        project = make_project(tmp_path)
        project.write({".gitignore": "*.cubin\n_cuda_kernels/\n*.json\n"})
        before = sorted(str(path) for path in project.root.rglob("*"))
        names = names_of(built(project))
        assert "demo/_cuda_kernels/scale.sm_80.cubin" in names
        assert "demo/_cuda_kernels/manifest.json" in names
        assert sorted(str(path) for path in project.root.rglob("*")) == before

    @pytest.mark.slow
    def test_no_jit_ships_no_source(self, tmp_path: Path) -> None:
        """`jit = false` leaves `src/` out, and the manifest says so."""
        wheel = built(make_project(tmp_path, 'archs = ["sm_80"]\njit = false'))
        assert not [name for name in names_of(wheel) if "/src/" in name]
        assert manifest_of(wheel)["fallback"] is None

    @pytest.mark.slow
    def test_header_behind_another_architecture_is_shipped(self, tmp_path: Path) -> None:
        """A header that only an architecture outside the list includes is shipped for the fallback."""
        source = '#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1200\n#include "new.cuh"\n#endif\n' + KERNEL
        project = make_project(tmp_path, files={"demo/scale.cu": source, "demo/new.cuh": "// new\n"})
        assert "demo/_cuda_kernels/src/demo/new.cuh" in names_of(built(project))

    def test_removed_modules_and_architectures_are_gone(self, tmp_path: Path) -> None:
        """W3: a wheel holds nothing of an earlier build."""
        project = make_project(tmp_path, 'archs = ["sm_80", "sm_90"]', {"demo/a.cu": KERNEL, "demo/b.cu": KERNEL})
        assert sum(name.endswith(".cubin") for name in names_of(built(project))) == 4
        (project.root / "demo/b.cu").unlink()
        wheel = built(project, env={"HATCH_CUDA_KERNELS_ARCHS": "sm_90"})
        assert [name for name in names_of(wheel) if name.endswith(".cubin")] == ["demo/_cuda_kernels/a.sm_90.cubin"]

    def test_existing_files_of_ours_are_refused(self, tmp_path: Path) -> None:
        """A wheel that already has a _cuda_kernels folder is an error, never a silent mixture."""
        project = make_project(tmp_path)
        project.write({"demo/_cuda_kernels/manifest.json": "{}"})
        run = project.build()
        assert run.status == 1
        assert "demo/_cuda_kernels" in run.output
        assert "Traceback" not in run.output

    @pytest.mark.parametrize("target", ["demo/_cuda_kernels/scale.sm_80.cubin", "demo/_cuda_kernels"])
    def test_files_forced_among_ours_are_refused(self, tmp_path: Path, target: str) -> None:
        """A file that the author's own table puts among ours is an error; it never takes the place of an image."""
        table = f'[tool.hatch.build.targets.wheel.force-include]\n"other" = "{target}"\n'
        project = make_project(tmp_path, extra=table)
        project.write({"other" if target.endswith("cubin") else "other/x": b"x"})
        run = project.build()
        assert run.status == 1
        assert "demo/_cuda_kernels: the wheel already has files where this hook puts its own" in run.output

    @pytest.mark.parametrize("epoch", ["abc", "99999999999", "-1"])
    def test_bad_source_date_epoch(self, tmp_path: Path, epoch: str) -> None:
        """W6: a time that a wheel cannot hold is one clear message."""
        run = make_project(tmp_path).build(env={"SOURCE_DATE_EPOCH": epoch})
        assert run.status == 1
        assert "SOURCE_DATE_EPOCH" in run.output
        assert "Traceback" not in run.output


class TestLayouts:
    @pytest.mark.slow
    def test_src_layout_and_include_dirs(self, tmp_path: Path) -> None:
        """A src layout: modules are named inside their package, headers come from include-dirs of the root."""
        source = '#include "shared.cuh"\nextern "C" __global__ void k(int *x) { *x = VALUE; }\n'
        project = make_project(
            tmp_path,
            'archs = ["sm_80"]\ninclude-dirs = ["include"]',
            {"src/demo/__init__.py": "", "src/demo/deep/k.cu": source, "include/shared.cuh": "#define VALUE 3\n"},
            extra='[tool.hatch.build.targets.wheel]\npackages = ["src/demo"]\n',
        )
        shutil.rmtree(project.root / "demo")
        wheel = built(project)
        assert manifest_of(wheel)["modules"][0]["name"] == "deep.k"
        assert "demo/_cuda_kernels/src/include/shared.cuh" in names_of(wheel)

    @pytest.mark.slow
    def test_two_packages_in_one_wheel(self, tmp_path: Path) -> None:
        """Each package gets the manifest of the sources that it holds."""
        project = make_project(
            tmp_path,
            files={"demo/a.cu": KERNEL, "other/__init__.py": "", "other/b.cu": KERNEL},
            extra='[tool.hatch.build.targets.wheel]\npackages = ["demo", "other"]\n',
        )
        wheel = built(project)
        assert [module["name"] for module in manifest_of(wheel, "demo")["modules"]] == ["a"]
        assert [module["name"] for module in manifest_of(wheel, "other")["modules"]] == ["b"]

    @pytest.mark.slow
    def test_hatch_toml(self, tmp_path: Path) -> None:
        """The hook table may stand in hatch.toml, and mistakes are named as they stand there."""
        project = make_project(tmp_path)
        text = (project.root / "pyproject.toml").read_text().split("[tool.hatch")[0]
        project.write({"pyproject.toml": text, "hatch.toml": '[build.hooks.cuda-kernels]\narchs = ["sm_80"]\n'})
        built(project)
        project.write({"hatch.toml": '[build.hooks.cuda-kernels]\nacrhs = ["sm_80"]\n'})
        run = project.build()
        assert run.status == 1
        assert "cuda-kernels: " in run.output
        assert "  - build.hooks.cuda-kernels.acrhs: unknown key; did you mean archs?" in run.output

    @pytest.mark.slow
    def test_hook_of_the_wheel_target(self, tmp_path: Path) -> None:
        """The hook table may stand under targets.wheel.hooks."""
        project = make_project(tmp_path)
        text = (project.root / "pyproject.toml").read_text()
        project.write({"pyproject.toml": text.replace("build.hooks.", "build.targets.wheel.hooks.")})
        built(project)
        run = project.build(env={"HATCH_CUDA_KERNELS_ARCHS": "sm_99x"})
        assert "HATCH_CUDA_KERNELS_ARCHS" in run.output
        project.write(
            {"pyproject.toml": text.replace("build.hooks.", "build.targets.wheel.hooks.").replace("archs", "arcs")}
        )
        assert "tool.hatch.build.targets.wheel.hooks.cuda-kernels.arcs" in project.build().output

    @pytest.mark.slow
    def test_sources_outside_the_package(self, tmp_path: Path) -> None:
        """A source that lies in no package is an error that names the choice; `package` makes it."""
        table = 'archs = ["sm_80"]\nsources = ["csrc/*.cu"]'
        project = make_project(tmp_path, table, {"csrc/k.cu": KERNEL})
        run = project.build()
        assert run.status == 1
        assert "csrc/k.cu lies in no package" in run.output
        assert "'demo'" in run.output
        text = (project.root / "pyproject.toml").read_text()
        project.write({"pyproject.toml": text.replace("sources =", 'package = "demo"\nsources =')})
        assert manifest_of(built(project))["modules"][0]["name"] == "csrc.k"

    @pytest.mark.slow
    def test_sources_rewriting(self, tmp_path: Path) -> None:
        """With hatchling's `sources` rewriting the files land in the package as it is in the wheel."""
        project = make_project(
            tmp_path,
            files={"lib/demo/__init__.py": "", "lib/demo/k.cu": KERNEL},
            extra='[tool.hatch.build.targets.wheel]\nonly-include = ["lib/demo"]\nsources = {"lib/demo" = "renamed"}\n',
        )
        assert "renamed/_cuda_kernels/k.sm_80.cubin" in names_of(built(project))

    @pytest.mark.slow
    def test_namespace_package(self, tmp_path: Path) -> None:
        """A package inside a namespace package carries its own manifest."""
        project = make_project(
            tmp_path,
            files={"space/part/__init__.py": "", "space/part/k.cu": KERNEL},
            extra='[tool.hatch.build.targets.wheel]\npackages = ["space"]\n',
        )
        wheel = built(project)
        assert manifest_of(wheel, "space/part")["package"] == "space.part"

    @pytest.mark.slow
    def test_headers_above_the_root(self, tmp_path: Path) -> None:
        """Headers above the project's root compile, and are shipped where the fallback finds them."""
        source = '#include "../../common/value.cuh"\nextern "C" __global__ void k(int *x) { *x = VALUE; }\n'
        project = make_project(tmp_path, 'archs = ["sm_80"]\ninclude-dirs = ["../common"]', {"demo/k.cu": source})
        project.write({"../common/value.cuh": "#define VALUE 3\n"})
        wheel = built(project)
        manifest = manifest_of(wheel)
        assert manifest["modules"][0]["source"] == "_/demo/k.cu"
        assert sorted(manifest["fallback"]["files"]) == ["_/demo/k.cu", "common/value.cuh"]
        done = subprocess.run(
            [sys.executable, "-m", "hatch_cuda_kernels", "verify", "--jit", str(wheel)],
            env={**os.environ, "HATCH_CUDA_KERNELS_CACHE": "0"},
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout

    @pytest.mark.slow
    def test_headers_above_the_root_without_fallback(self, tmp_path: Path) -> None:
        """With `jit = false`, too, the manifest holds no path that leads out of the package."""
        source = '#include "value.cuh"\nextern "C" __global__ void k(int *x) { *x = VALUE; }\n'
        table = 'archs = ["sm_80"]\ninclude-dirs = ["../common"]\njit = false'
        project = make_project(tmp_path, table, {"demo/k.cu": source})
        project.write({"../common/value.cuh": "#define VALUE 3\n#warning from above\n"})
        run = project.build()
        assert "k: ../common/value.cuh(2): warning" in run.output, run.output
        assert Manifest.from_dict(manifest_of(built(project))).modules[0].include_dirs == ("common",)


class TestRebuild:
    def test_second_build_compiles_nothing(self, tmp_path: Path) -> None:
        """The same tree in another directory is served by the cache, byte for byte."""
        first = make_project(tmp_path / "one", 'archs = ["sm_80", "compute_80"]')
        wheel = built(first).read_bytes()
        second = Project(tmp_path / "two" / "elsewhere", first.cache)
        shutil.copytree(first.root, second.root)
        run = second.build()
        assert run.status == 0, run.output
        assert run.report is not None
        assert (run.report["compiled"], run.report["cached"]) == (0, 2)
        assert second.wheel().read_bytes() == wheel

    def test_one_header_edited(self, tmp_path: Path) -> None:
        """Exactly the modules that read an edited header are compiled again; another file's edit compiles none."""
        project = make_project(
            tmp_path,
            files={
                "demo/a.cu": '#include "h.cuh"\n' + KERNEL,
                "demo/b.cu": '#include "h.cuh"\n' + KERNEL.replace("scale", "other"),
                "demo/c.cu": KERNEL.replace("scale", "third"),
                "demo/h.cuh": "// one\n",
            },
        )
        built(project)
        project.write({"demo/h.cuh": "// two\n"})
        run = project.build()
        assert run.outcomes == {"a sm_80": "compiled", "b sm_80": "compiled", "c sm_80": "cached"}
        project.write({"demo/notes.txt": "edited", "demo/__init__.py": "x = 1\n"})
        assert set(project.build().outcomes.values()) == {"cached"}

    def test_warnings_come_back_on_a_hit(self, tmp_path: Path) -> None:
        """A compiler's warning is shown on a hit as on a compile."""
        project = make_project(tmp_path, files={"demo/k.cu": "__global__ void k(int *x) { int unused; *x = 1; }\n"})
        first, second = project.build(), project.build()
        for run in (first, second):
            assert run.status == 0
            assert "unused" in run.output
            assert run.report is not None
            assert "unused" in run.report["images"][0]["warnings"][0]
        assert second.report is not None and second.report["cached"] == 1

    @pytest.mark.parametrize("seed", [pytest.param("0", marks=pytest.mark.slow), "4711"])
    @pytest.mark.slow
    def test_bytes_do_not_depend_on_the_environment(self, tmp_path: Path, seed: str) -> None:
        """Umask, hash seed, time zone and locale leave no trace in a wheel."""
        project = make_project(tmp_path, 'archs = ["sm_80", "sm_90"]\noptions = { lineinfo = true }')
        reference = built(project).read_bytes()
        old = os.umask(0o077 if seed == "0" else 0)
        try:
            env = {"PYTHONHASHSEED": seed, "TZ": "Pacific/Auckland", "LC_ALL": "C", "HATCH_CUDA_KERNELS_CACHE": "0"}
            assert built(project, env=env).read_bytes() == reference
        finally:
            os.umask(old)


class TestSdist:
    def test_wheel_from_sdist(self, tmp_path: Path) -> None:
        """The wheel that is built from the sdist is the wheel that is built from the tree."""
        project = make_project(
            tmp_path,
            'archs = ["sm_80"]\ninclude-dirs = ["include"]',
            {"demo/k.cu": '#include "v.cuh"\n' + KERNEL, "include/v.cuh": "// v\n"},
        )
        wheel = built(project).read_bytes()
        archive = built(project, "sdist")
        with tarfile.open(archive) as tar:
            tar.extractall(tmp_path / "unpacked", filter="data")
        again = Project(tmp_path / "unpacked" / "demo-1.0", project.cache)
        assert again.build().status == 0
        assert again.wheel().read_bytes() == wheel

    def test_header_left_out(self, tmp_path: Path) -> None:
        """W2: an sdist that leaves out a reachable header is refused, the header named."""
        project = make_project(
            tmp_path,
            files={"demo/k.cu": '#if 0\n#include "h.cuh"\n#endif\n' + KERNEL, "demo/h.cuh": "// h\n"},
            extra='[tool.hatch.build.targets.sdist]\nexclude = ["*.cuh"]\n',
        )
        run = project.build("sdist")
        assert run.status == 1
        assert "demo/h.cuh" in run.output
        assert not list((tmp_path / "out").glob("*.tar.gz"))

    @pytest.mark.slow
    def test_header_missing_for_another_architecture(self, tmp_path: Path) -> None:
        """W2: no wheel with a broken fallback from a tree that lacks a header which another architecture reads."""
        source = '#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1200\n#include "new.cuh"\n#endif\n' + KERNEL
        project = make_project(tmp_path, files={"demo/k.cu": source})
        run = project.build()
        assert run.status == 1
        assert "new.cuh, which demo/k.cu includes when compiled for sm_120" in run.output
        text = (project.root / "pyproject.toml").read_text()
        project.write({"pyproject.toml": f"{text}jit = false\n"})
        built(project)
        guarded = source.replace(">= 1200", ">= 1200 && defined(NEVER)")
        project.write({"pyproject.toml": text, "demo/k.cu": guarded})
        built(project)


class TestEditable:
    def test_ships_no_image(self, tmp_path: Path) -> None:
        """An editable wheel holds a note in its .dist-info, no image, and the location nowhere else."""
        project = make_project(tmp_path)
        script = (
            "import os, sys; from hatchling.builders.wheel import WheelBuilder; "
            "print(list(WheelBuilder(os.getcwd()).build(directory=sys.argv[1], versions=['editable'])))"
        )
        subprocess.run([sys.executable, "-c", script, str(tmp_path / "out")], cwd=project.root, check=True, timeout=120)
        with zipfile.ZipFile(project.wheel()) as archive:
            names = archive.namelist()
            assert "demo-1.0.dist-info/extra_metadata/hatch-cuda-kernels/editable.json" in names
            assert not [name for name in names if name.endswith((".cubin", ".ptx")) or "_cuda_kernels/" in name]
            for name in names:
                if str(project.root).encode() in archive.read(name):
                    assert name.startswith("demo-1.0.dist-info/") or name.endswith(".pth")


class TestMistakes:
    @pytest.mark.parametrize(
        ("table", "expected"),
        [
            ("", "archs: missing"),
            ('archs = ["sm_99"]', "sm_99 is not supported by NVRTC"),
            pytest.param('archs = ["sm_70"]', "it has: sm_75", marks=pytest.mark.slow),
            pytest.param('archs = ["sm_90f"]', "the suffix 'f' begins with sm_100f", marks=pytest.mark.slow),
            pytest.param('archs = ["SM_80"]', "Did you mean 'sm_80'?", marks=pytest.mark.slow),
            ('archs = ["sm_80"]\nsources = ["nothing/*.cu"]', "'nothing/*.cu' matches no file"),
            pytest.param('archs = ["sm_80"]\ninclude-dirs = ["inc"]', "there is no folder inc", marks=pytest.mark.slow),
            pytest.param('archs = ["sm_80"]\nunknown = 1', "unknown: unknown key", marks=pytest.mark.slow),
            ('archs = ["sm_80"]\nheaders = ["*.hpp"]', "'*.hpp' matches no file"),
        ],
    )
    def test_table(self, tmp_path: Path, table: str, expected: str) -> None:
        """A mistake in the table is one clear message and exit status 1, before any compile."""
        run = make_project(tmp_path, table).build()
        assert run.status == 1
        assert expected in run.output
        assert "Traceback" not in run.output
        assert run.report is None

    def test_every_failing_image_is_named(self, tmp_path: Path) -> None:
        """All modules and architectures that fail are reported, with the compiler's words; the others are kept."""
        project = make_project(
            tmp_path,
            'archs = ["sm_80", "sm_90"]',
            {
                "demo/bad.cu": 'extern "C" __global__ void k(int *x) { *x = missing_name; }\n',
                "demo/worse.cu": '#include "nowhere.cuh"\n' + KERNEL,
                "demo/good.cu": KERNEL,
            },
        )
        run = project.build()
        assert run.status == 1
        for text in ("bad for sm_80", "bad for sm_90", "worse for sm_80", "worse for sm_90", "4 of 6 images failed"):
            assert text in run.output
        assert 'identifier "missing_name" is undefined' in run.output
        assert "demo/bad.cu(1)" in run.output
        assert "include-dirs" in run.output
        assert "Traceback" not in run.output
        assert not list((tmp_path / "out").glob("*.whl"))
        (project.root / "demo/bad.cu").unlink()
        (project.root / "demo/worse.cu").unlink()
        assert set(project.build().outcomes.values()) == {"cached"}

    def test_nothing_to_compile(self, tmp_path: Path) -> None:
        """A build without any module is an error."""
        run = make_project(tmp_path, files={"demo/readme.txt": ""}).build()
        assert run.status == 1
        assert "nothing to compile" in run.output

    @pytest.mark.slow
    def test_pins_that_this_environment_contradicts(self, tmp_path: Path) -> None:
        """Outside isolation another NVRTC than the table asks for is refused, with what to install."""
        run = make_project(tmp_path, 'archs = ["sm_80"]\nnvrtc = "13.0.48"').build()
        assert run.status == 1
        assert "nvidia-cuda-nvrtc==13.0.48" in run.output
        run = make_project(tmp_path / "b", 'archs = ["sm_80"]\ncuda = "12"').build()
        assert run.status == 1
        assert "asks for CUDA 12" in run.output
