# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Cases that once went wrong, each kept as it was met."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from jobs import compile_alone, make_job, write
from projects import KERNEL, make_project, manifest_of, names_of

from hatch_cuda_kernels.cache import KernelCache, load_or_compile
from hatch_cuda_kernels.catalog import split_name
from hatch_cuda_kernels.cli import main
from hatch_cuda_kernels.config import Config
from hatch_cuda_kernels.errors import ConfigurationError, KernelNotFoundError, ManifestError
from hatch_cuda_kernels.loader import explain
from hatch_cuda_kernels.manifest import squeeze_name

VALUE = 'extern "C" __global__ void k(int *x) { *x = A; }\n'


@pytest.mark.slow
def test_a_computed_include_ships_headers_only(tmp_path: Path) -> None:
    """An include whose operand cannot be told takes headers of the search path, never what else lies there."""
    source = "#define STR(x) #x\n#define X(f) STR(f)\n#include X(bw.h)\n" + VALUE
    project = make_project(tmp_path, 'archs = ["sm_80"]\ninclude-dirs = ["."]', {"demo/k.cu": source})
    project.write({"bw.h": "#define A 1\n", ".env": "secret", "id_rsa": "secret", "data.bin": "x", ".hidden.h": "x"})
    run = project.build()
    assert run.status == 0, run.output
    shipped = [name for name in names_of(project.wheel()) if "/src/" in name]
    assert sorted(shipped) == ["demo/_cuda_kernels/src/bw.h", "demo/_cuda_kernels/src/demo/k.cu"]


def test_pre_include_is_tracked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A header of `pre-include` is found from the project, not from the current folder, and counts as read."""
    root = write(tmp_path / "p", {"app/k.cu": VALUE, "app/a.h": "#define A 1\n"})
    monkeypatch.chdir(write(tmp_path / "elsewhere", {"app/a.h": "#define A 9\n", "a.h": "#define A 9\n"}))
    store = KernelCache.open(str(tmp_path / "cache"))
    images = []
    for name in ("app/a.h", "a.h"):
        job = make_job(root, "app/k.cu", options={"pre-include": name})
        images.append(load_or_compile(job, store, compile_alone)[0])
        assert "app/a.h" in images[-1].reads.files
    assert images[0].data == images[1].data
    write(root, {"app/a.h": "#define A 2\n"})
    job = make_job(root, "app/k.cu", options={"pre-include": "app/a.h"})
    image, cached = load_or_compile(job, store, compile_alone)
    assert not cached and image.data != images[0].data
    with_toolkit = make_job(root, "app/k.cu", options={"pre-include": ["cuda_fp16.h", "a.h"]}, toolkit_headers="auto")
    assert compile_alone(with_toolkit).kernels == {"k": "k"}


@pytest.mark.parametrize(
    ("text", "defines"),
    [
        ("#define HH(x) __has_include(<x>)\n#if HH(opt/e.h)\n", {}),
        ("#if HAS(<opt/e.h>)\n", {"HAS": "__has_include"}),
        ("#define XCAT(a, b) a##b\n#define H XCAT(__has_, include)\n#if H(<opt/e.h>)\n", {}),
        ("#define HI __has_include\n#if HI(<opt/e.h>)\n", {}),
        ('#include "m.h"\n#if HH(opt/e.h)\n', {}),
    ],
)
def test_indirect_has_include(tmp_path: Path, text: str, defines: dict[str, str]) -> None:
    """A `__has_include` behind a macro sees the files that are there, and their coming and going."""
    files = {"k.cu": text + "#define A 2\n#else\n#define A 1\n#endif\n" + VALUE, "inc/opt/e.h": ""}
    files["m.h"] = "#define HH(x) __has_include(<x>)\n"
    root = write(tmp_path / "p", files)
    store = KernelCache.open(str(tmp_path / "cache"))

    def build() -> bytes:
        job = make_job(root, arch="compute_80", include_dirs=["inc"], defines=defines)
        return load_or_compile(job, store, compile_alone)[0].data

    with_header = build()
    (root / "inc/opt/e.h").unlink()
    without = build()
    assert b", 2;" in with_header
    assert b", 1;" in without


@pytest.mark.parametrize(
    ("name", "squeezed"),
    [("k<' a'>", "k<' a'>"), ("k< ' ' >", "k<' '>"), ("k<1 + +1>", "k<1+ +1>"), ("k<X - -1>", "k<X- -1>")],
)
def test_white_space_that_counts(name: str, squeezed: str) -> None:
    """White space in literals, and between operators that would merge, is part of a name."""
    assert squeeze_name(name) == squeezed


def test_options_from_a_file(tmp_path: Path) -> None:
    """ptxas is not given a file that nobody tracks."""
    for value in ("--options-file=/x", "-optf /x", ["-O3", "--options-file /x"]):
        with pytest.raises(ConfigurationError, match="names a file that nobody tracks"):
            Config.from_table({"archs": ["sm_80"], "options": {"ptxas-options": value}})
    Config.from_table(
        {"archs": ["sm_80"], "options": {"ptxas-options": ["-O3", "-v", "--allow-expensive-optimizations=true"]}}
    )


@pytest.mark.parametrize("member", ["demo/_cuda_kernels/scale.sm_80.cubin", "demo/_cuda_kernels/manifest.json"])
def test_damaged_compression(tmp_path: Path, member: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A wheel whose compressed data is damaged is a fault that `verify` tells, not a traceback."""
    project = make_project(tmp_path)
    assert project.build().status == 0
    wheel = project.wheel()
    data = bytearray(wheel.read_bytes())
    with zipfile.ZipFile(wheel) as archive:
        entry = archive.getinfo(member)
    start = entry.header_offset + 30 + len(member)
    data[start + entry.compress_size // 2] ^= 0xFF
    wheel.write_bytes(data)
    assert main(["verify", str(wheel), "--json"]) == 1
    value = json.loads(capsys.readouterr().out)
    assert not value["ok"] and member in value["problems"][0]["path"]
    assert main(["inspect", str(wheel)]) == (1 if member.endswith("json") else 0)


def test_a_huge_header(tmp_path: Path) -> None:
    """A file that is no source by its size is refused at once."""
    write(tmp_path, {"k.cu": '#include "h.h"\n' + KERNEL})
    with (tmp_path / "h.h").open("wb") as stream:
        stream.truncate(2 << 30)
    with pytest.raises(ConfigurationError, match=r"h\.h: has more than 64 MiB"):
        make_job(tmp_path)


def test_a_parent_that_cannot_be_imported(tmp_path: Path) -> None:
    """A package below one that fails to import is one message."""
    write(tmp_path, {"failing/__init__.py": "1 / 0\n"})
    done = subprocess.run(
        [sys.executable, "-m", "hatch_cuda_kernels", "inspect", "failing.sub"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
def test_warm_where_nothing_serves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`warm` does not claim that a device is served when nothing serves it."""
    project = make_project(tmp_path, 'archs = ["sm_90a"]\njit = false')
    assert project.build().status == 0
    assert main(["warm", str(project.wheel()), "--compute-capability", "8.6", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["modules"][0]["outcome"] == "nothing"


@pytest.mark.slow
def test_a_kernel_that_no_image_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`verify` finds a kernel of the manifest that is in no image."""
    project = make_project(tmp_path)
    assert project.build().status == 0
    folder = tmp_path / "unpacked"
    with zipfile.ZipFile(project.wheel()) as archive:
        archive.extractall(folder)
    path = folder / "demo/_cuda_kernels/manifest.json"
    manifest = json.loads(path.read_text())
    manifest["modules"][0]["kernels"]["scale"] = "nowhere"
    path.write_text(json.dumps(manifest))
    assert main(["verify", str(folder)]) == 1
    assert "is in none of its images" in capsys.readouterr().out


@pytest.mark.slow
def test_a_subpackage_that_is_asked_for(tmp_path: Path) -> None:
    """`package` may name a package below the topmost one."""
    files = {"demo/sub/__init__.py": "", "demo/sub/k.cu": KERNEL}
    project = make_project(tmp_path, 'archs = ["sm_80"]\npackage = "demo.sub"', files)
    run = project.build()
    assert run.status == 0, run.output
    assert manifest_of(project.wheel(), "demo/sub")["modules"][0]["name"] == "k"


@pytest.mark.parametrize("value", ["false", "off", "no", "0"])
def test_ways_to_say_no_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str) -> None:
    """Words for off make no folder of that name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HATCH_CUDA_KERNELS_CACHE", value)
    assert KernelCache.from_environment().directory is None
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [None, 3, b"scale"])
def test_a_name_that_is_no_text(name: Any) -> None:
    """What is asked for by something else than a name is told so."""
    with pytest.raises(TypeError, match="by its name"):
        split_name(name)


@pytest.mark.slow
def test_nothing_is_left_in_the_current_folder(tmp_path: Path) -> None:
    """A compile after one that failed writes no trace of it into the current folder."""
    write(tmp_path / "p", {"bad.cu": '#include "nowhere.h"\n' + KERNEL, "k.cu": "#include <cuda_fp16.h>\n" + KERNEL})
    (tmp_path / "here").mkdir()
    code = (
        "import sys\nfrom pathlib import Path\nfrom jobs import compile_alone, make_job\n"
        "from hatch_cuda_kernels.errors import CompilationError\n"
        "for source, lineinfo in [('bad.cu', False), ('k.cu', True), ('bad.cu', True), ('k.cu', False)]:\n"
        "    try:\n"
        "        options = {'lineinfo': lineinfo}\n"
        "        job = make_job(Path(sys.argv[1]), source, options=options, toolkit_headers='auto')\n"
        "        print(len(compile_alone(job).data))\n"
        "    except CompilationError:\n"
        "        print('refused')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "p")],
        cwd=tmp_path / "here", env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.stdout.split().count("refused") == 2 and len(done.stdout.split()) == 4, done.stderr
    assert not list((tmp_path / "here").iterdir())


def test_packages_and_kernels_that_are_not_there() -> None:
    """What is not there is told by the errors made for it."""
    with pytest.raises(ManifestError):
        explain("k", package="no_such_package", compute_capability="8.0")
    assert issubclass(KernelNotFoundError, LookupError)
