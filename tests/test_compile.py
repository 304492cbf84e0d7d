# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""From sources and a compiler, good or bad, to images and errors: nothing wrong, nothing stale, nothing left behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from jobs import (
    KERNEL,
    SLOW,
    TESTS,
    can_mount,
    compile_alone,
    compile_files,
    in_mounts,
    make_job,
    one_unit,
    write,
)
from support import _PRELUDE, run_python

from hatch_cuda_kernels import CompilationError, ConfigurationError, CudaKernelsError, ToolchainError, nvrtc, worker
from hatch_cuda_kernels.arch import Architecture
from hatch_cuda_kernels.cache import KernelCache, load_or_compile
from hatch_cuda_kernels.compiler import compile_job
from hatch_cuda_kernels.cubin import read_cubin, read_ptx
from hatch_cuda_kernels.nvrtc import Workspace, workspace
from hatch_cuda_kernels.plan import CompiledImage, CompileJob
from hatch_cuda_kernels.pool import compile_all
from hatch_cuda_kernels.toolchain import detect, installed_release, probe

posix = pytest.mark.skipif(os.name != "posix", reason="POSIX processes and files")
unprivileged = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
mounts = pytest.mark.skipif(not can_mount(), reason="may not mount file systems")


@pytest.fixture(scope="module")
def space() -> Iterator[Workspace]:
    """A workspace for all tests here, so that NVRTC's headers are laid out once."""
    with workspace() as found:
        yield found


# -- S1 to S4: bytes of a source ---------------------------------------------------------------------------------


@pytest.mark.parametrize("label", ["k.cu", "x.h"])
def test_s1_byte_order_mark(tmp_path: Path, space: Workspace, label: str) -> None:
    """[S1] A UTF-8 byte order mark, in a source or a header, changes nothing."""
    files = {"k.cu": '#include "x.h"\n' + KERNEL, "x.h": "#define X 1\n"}
    plain = compile_files(tmp_path / "a", files, space)
    marked: dict[str, str | bytes] = {**files, label: "\ufeff" + files[label]}
    assert compile_files(tmp_path / "b", marked, space).data == plain.data


def test_s2_line_ends(tmp_path: Path, space: Workspace) -> None:
    """[S2] CRLF gives the same cubin as LF, with a directive that goes on over two lines as well."""
    files = {"k.cu": '#include "x.h"\n#define A \\\n  1\n' + KERNEL.replace("1", "A"), "x.h": "#define X 1\n"}
    crlf = {label: text.replace("\n", "\r\n") for label, text in files.items()}
    assert compile_files(tmp_path / "a", files, space).data == compile_files(tmp_path / "b", crlf, space).data


BAD_BYTES: dict[str, tuple[bytes, str]] = {
    "cr": (b"\r", "a carriage return without a line feed at offset"),
    "nul": (b"\0", "a NUL byte at offset"),
    "utf-16": (KERNEL.encode("utf-16"), "is it UTF-16"),
}


@pytest.mark.parametrize("bad", BAD_BYTES)
@pytest.mark.parametrize("label", ["k.cu", "x.h"])
def test_s2_s3_bytes(tmp_path: Path, space: Workspace, bad: str, label: str) -> None:
    """[S2, S3, S4] A lone CR, a NUL or UTF-16, in a source or a header, is an error that says where."""
    data, message = BAD_BYTES[bad]
    files: dict[str, str | bytes] = {"k.cu": '#include "x.h"\n' + KERNEL, "x.h": "// x\n"}
    broken = files[label]
    assert isinstance(broken, str)
    files[label] = data if bad == "utf-16" else broken.encode() + b"//" + data + b"x\n"
    with pytest.raises(CompilationError) as raised:
        compile_files(tmp_path, files, space)
    assert bad == "utf-16" or message in str(raised.value)
    assert label in str(raised.value)


@pytest.mark.parametrize("label", ["k.cu", "x.h"])
@pytest.mark.parametrize(
    "data", [b"// \xfc\n", b"// caf\xe9\n", b'#define S "\xff"\n'], ids=["umlaut", "accent", "string"]
)
def test_s4_latin_1(tmp_path: Path, space: Workspace, label: str, data: bytes) -> None:
    """[S4] Other encodings are an error with the offset: NVRTC takes a line end after a Latin-1 letter for a part of
    it, and drops the next line without a word."""
    files: dict[str, str | bytes] = {"k.cu": '#include "x.h"\n' + KERNEL, "x.h": "// x\n"}
    text = files[label]
    assert isinstance(text, str)
    files[label] = text.encode() + data + b"#define Z 1\n"
    with pytest.raises(
        CompilationError, match=rf"{label}: not UTF-8 at offset {len(text) + data.find(bytes([max(data)]))}"
    ):
        compile_files(tmp_path, files, space)


@posix
def test_s4_c_locale(tmp_path: Path) -> None:
    """[S4] Non-ASCII names and contents work where the locale is C; where Python is made ASCII, an error."""
    files = {"ordner ü/k.cu": '#include "kö.h"\n' + KERNEL, "ordner ü/kö.h": "// ö\n"}
    write(tmp_path, files)
    code = """
from pathlib import Path
from jobs import *
job = make_job(Path(sys.argv[1]), "ordner \\u00fc/k.cu")
report([len(compile_alone(job).data), sorted(compile_alone(job).reads.files)])
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG"))}
    size, read = run_python(code, {**environment, "LC_ALL": "C"}, TESTS, arguments=[str(tmp_path)]).value
    assert size > 0
    assert sorted(read) == ["ordner ü/k.cu", "ordner ü/kö.h"]
    ascii_only = {**environment, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    code = code.replace("job = make_job(", "report(attempt(make_job, ").replace('k.cu")', 'k.cu"))\nsys.exit()', 1)
    text = run_python(code, ascii_only, TESTS, arguments=[str(tmp_path)]).value
    assert text.startswith("ConfigurationError: ")


# -- S5: nothing to launch ---------------------------------------------------------------------------------------

EMPTY = {
    "empty": "",
    "comment": "// nothing\n",
    "device only": "__device__ int f() { return 1; }\n",
    "template": "template <class T> __global__ void k(T* p) { *p = 1; }\n",
    "hidden": "#if __CUDA_ARCH__ >= 900\n" + KERNEL + "#endif\n",
}


@pytest.mark.parametrize("arch", ["sm_80", "compute_80"])
@pytest.mark.parametrize("kind", EMPTY)
def test_s5_empty(tmp_path: Path, space: Workspace, kind: str, arch: str) -> None:
    """[S5] A result with nothing to launch is an error that names module and architecture."""
    with pytest.raises(CompilationError, match=rf"m for {arch}: k.cu compiles to no kernel"):
        compile_files(tmp_path, {"k.cu": EMPTY[kind]}, space, arch=arch)


def test_s5_per_architecture(tmp_path: Path, space: Workspace) -> None:
    """[S5] A kernel that one architecture leaves out is recorded per image."""
    text = KERNEL + "#if __CUDA_ARCH__ >= 900\n" + KERNEL.replace("k(", "hopper(") + "#endif\n"
    for arch, kernels in (("sm_80", {"k"}), ("sm_90", {"k", "hopper"})):
        assert set(compile_files(tmp_path, {"k.cu": text}, space, arch=arch).kernels) == kernels


@pytest.mark.parametrize("expression", ["nothing", "t<float", "f", "t<int, int>", "1 +", "t", "elsewhere<int>"])
def test_s5_name_expressions(tmp_path: Path, space: Workspace, expression: str) -> None:
    """[S5] A listed name that is no kernel is an error that has the name."""
    text = KERNEL + "template <class T> __global__ void t(T* p) { *p = 1; }\n__device__ int f() { return 1; }\n"
    text += "template <class T> __global__ void elsewhere(T* p);\n"
    with pytest.raises(CompilationError) as raised:
        compile_files(tmp_path, {"k.cu": text}, space, name_expressions=[expression])
    assert expression.split("<")[0].split(" ")[0] in str(raised.value)
    image = compile_files(tmp_path, {"k.cu": text}, space, name_expressions=["t<float>", "t< int >"])
    assert {"t<float>", "k"} <= set(image.kernels)


@pytest.mark.skipif(sys.platform == "win32", reason="nvcc has none there")
def test_integers_of_128_bits(tmp_path: Path, space: Workspace) -> None:
    """Files that name them have them, headers among these, as with nvcc; an author can refuse them."""
    own = "inline __device__ __uint128_t wide(int a) { return (__uint128_t)a << 100; }\n"
    text = '#include "own.cuh"\n' + KERNEL.replace("1", "(int)(wide(3) >> 99)")
    files = {"k.cu": text, "own.cuh": own}
    assert set(compile_files(tmp_path, files, space).kernels) == {"k"}
    with pytest.raises(CompilationError, match="128-bit integer"):
        compile_files(tmp_path, files, space, options={"device-int128": False})
    asks = KERNEL + "#ifdef __SIZEOF_INT128__\n#error there are\n#endif\n"
    assert set(compile_files(tmp_path, {"k.cu": asks}, space).kernels) == {"k"}


# -- S6, S7, S9, S10: includes -----------------------------------------------------------------------------------


def test_s6_missing(tmp_path: Path, space: Workspace) -> None:
    """[S6] A missing header far down is NVRTC's message, the way there, and a hint; no path of this machine."""
    files = {
        "k.cu": '#include "a/x.h"\n' + KERNEL,
        "a/x.h": '#include "y.h"\n',
        "a/y.h": "#include <nowhere/z.h>\n",
    }
    with pytest.raises(CompilationError) as raised:
        compile_files(tmp_path, files, space, toolkit_headers="auto")
    text = str(raised.value)
    for part in (
        "m for sm_80",
        'cannot open source file "nowhere/z.h"',
        "a/y.h <- a/x.h <- k.cu",
        "hint: add the folder",
    ):
        assert part in text
    assert str(tmp_path) not in text
    assert str(space.path) not in text


@pytest.mark.parametrize("files", [{"x.h": '#include "x.h"\n'}, {"x.h": '#include "y.h"\n', "y.h": '#include "x.h"\n'}])
def test_s6_recursive(tmp_path: Path, files: dict[str, str]) -> None:
    """[S6] A header that includes itself, or in a ring, is NVRTC's error, in time. After that NVRTC's trace names
    no header in that process any more: all headers at hand count as read, so that no edit is missed."""
    write(tmp_path, {"k.cu": '#include "x.h"\n' + KERNEL, **files})
    write(tmp_path / "fine", {"k.cu": '#include "a.h"\n' + KERNEL, "a.h": '#include "b.h"\n', "b.h": ""})
    code = """
from pathlib import Path
from jobs import *
root = Path(sys.argv[1])
text = attempt(lambda: compile_alone(make_job(root)))
report([text, sorted(compile_alone(make_job(root / "fine")).reads.files)])
"""
    text, read = run_python(code, os.environ, TESTS, arguments=[str(tmp_path)]).value
    assert text.startswith("CompilationError")
    assert "includes itself" in text
    assert read == ["a.h", "b.h", "k.cu"]


def test_s7_kinds_of_includes(tmp_path: Path, space: Workspace) -> None:
    """[S7] Computed includes, `__has_include`, odd suffixes, neighbours and `..` are found and recorded."""
    files = {
        "src/k.cu": '#define H "computed.inc"\n#include H\n#if __has_include("has.inl")\n#include "has.inl"\n#endif\n'
        '#include "../up/up.h"\n#include <lib/one.h>\n#include "nowhere/../beside.h"\n' + KERNEL,
        "src/computed.inc": "#define A 1\n",
        "src/has.inl": "#define B 2\n",
        "src/beside.h": "",
        "up/up.h": '#include "neighbour.h"\n',
        "up/neighbour.h": "",
        "include/lib/one.h": '#include "two.h"\n#include <lib/three.h>\n',
        "include/lib/two.h": "",
        "include/lib/three.h": "",
        "include/lib/unread.h": "",
    }
    image = compile_files(tmp_path, files, space, source="src/k.cu", include_dirs=["include"])
    assert set(image.reads.files) == set(files) - {"include/lib/unread.h"}


def test_s7_above_the_root(tmp_path: Path, space: Workspace) -> None:
    """[S7] Headers above the project's root are project files like others."""
    write(tmp_path, {"shared/x.h": '#include "y.h"\n', "shared/y.h": "#define X 1\n"})
    files = {"src/k.cu": '#include "../../shared/x.h"\n' + KERNEL}
    image = compile_files(tmp_path / "project", files, space, source="src/k.cu")
    assert set(image.reads.files) == {"src/k.cu", "../shared/x.h", "../shared/y.h"}


@pytest.mark.parametrize(
    "how", ["#include", "#if 1 //\n#endif\n#if __has_include({0})\n#endif\n#include", "#define H {0}\n#include H //"]
)
@pytest.mark.slow
@pytest.mark.parametrize("traced", [True, False])
def test_absolute_include(tmp_path: Path, space: Workspace, how: str, traced: bool) -> None:
    """A file outside the project, by an absolute path, is refused: nothing would record it."""
    write(tmp_path, {"outside/x.h": "#define X 1\n"})
    name = f'"{tmp_path}/outside/x.h"'
    text = f"{how.format(name)} {name}\n" + KERNEL + ("" if traced else '#line 7 "y.y"\n')
    with pytest.raises(CompilationError, match="outside the project"):
        compile_files(tmp_path / "project", {"k.cu": text}, space)


def test_absolute_has_include(tmp_path: Path, space: Workspace) -> None:
    """A question for an absolute path is recorded, so that its answer can change."""
    store = KernelCache.open(str(tmp_path / "cache"))
    question = f'#if __has_include("{tmp_path}/x.h")\n#define A 2\n#else\n#define A 1\n#endif\n'
    project = write(tmp_path / "p", {"k.cu": question + KERNEL.replace("1", "A")})
    images = []
    for there in (False, True, False):
        (tmp_path / "x.h").touch() if there else (tmp_path / "x.h").unlink(missing_ok=True)
        image, _ = load_or_compile(make_job(project), store, compile_alone)
        images.append(image.data)
        assert compile_alone(make_job(project)).data == image.data
    assert images[0] == images[2] != images[1]


def test_climbing_has_include(tmp_path: Path, space: Workspace) -> None:
    """However far `..` climbs, the compiler sees nothing of this machine that is not of the project."""
    text = '#if __has_include("' + "../" * 10 + 'etc/passwd")\n#error it sees the machine\n#endif\n' + KERNEL
    deep = tmp_path.joinpath(*["d"] * 30)
    compile_files(deep, {"k.cu": text}, space)


ODD_FOLDERS = [
    "with space",
    "a,b",
    "a;b",
    "a=b",
    "it's",
    'dou"ble',
    "ünïcode-日本",
    "-Idash",
    "@file",
    "$HOME",
    "back\\slash",
]


@posix
@pytest.mark.parametrize("folder", [*ODD_FOLDERS, "/".join(["long" * 50] * 15)], ids=[*ODD_FOLDERS, "3 kB"])
def test_s9_include_dirs(tmp_path: Path, space: Workspace, folder: str) -> None:
    """[S9] Include folders of any name work."""
    files = {"k.cu": "#include <x.h>\n" + KERNEL, f"{folder}/x.h": '#include "y.h"\n', f"{folder}/y.h": ""}
    image = compile_files(tmp_path, files, space, include_dirs=[folder])
    assert set(image.reads.files) == set(files)


@posix
@pytest.mark.timeout(20)
def test_s9_symlink_loop(tmp_path: Path, space: Workspace) -> None:
    """[S9] A loop of links among the include folders ends, for a computed include as well, which looks everywhere."""
    write(tmp_path, {"include/x.h": ""})
    (tmp_path / "include/loop").symlink_to(".")
    (tmp_path / "include/self.h").symlink_to("self.h")
    text = "#define CAT(a, b) <a.h>\n#include CAT(x, y)\n" + KERNEL
    with pytest.raises(ConfigurationError) as raised:
        compile_files(tmp_path, {"k.cu": text}, space, include_dirs=["include"])
    assert "include/self.h" in str(raised.value)
    (tmp_path / "include/self.h").unlink()
    assert "include/x.h" in compile_files(tmp_path, {"k.cu": text}, space, include_dirs=["include"]).reads.files


@posix
@pytest.mark.timeout(20)
def test_s10_fifo(tmp_path: Path, space: Workspace) -> None:
    """[S10] A header that is a FIFO is an error at once."""
    os.mkfifo(tmp_path / "x.h")
    with pytest.raises(ConfigurationError, match=r"x\.h: is not a regular file"):
        compile_files(tmp_path, {"k.cu": '#include "x.h"\n' + KERNEL}, space)


def test_s10_directory(tmp_path: Path, space: Workspace) -> None:
    """[S10] A folder of a header's name is passed over, as by any compiler; without another there is an error."""
    (tmp_path / "x.h").mkdir()
    files = {"k.cu": '#include "x.h"\n' + KERNEL}
    with pytest.raises(CompilationError, match=r"open source file \"x\.h\""):
        compile_files(tmp_path, files, space)
    image = compile_files(tmp_path, {**files, "include/x.h": ""}, space, include_dirs=["include"])
    assert set(image.reads.files) == {"k.cu", "include/x.h"}


@posix
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="root becomes another user here")
def test_s10_unreadable(tmp_path: Path) -> None:
    """[S10] A header that may not be read is an error that names it."""
    write(tmp_path, {"k.cu": '#include "x.h"\n' + KERNEL, "x.h": ""})
    (tmp_path / "x.h").chmod(0)
    for folder in (tmp_path, *tmp_path.parents):
        if folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    code = """
from pathlib import Path
from jobs import *
make_job
os.setuid(65534)
report(attempt(one_unit, Path(sys.argv[1])))
"""
    text = run_python(code, os.environ, TESTS, arguments=[str(tmp_path)]).value
    assert text.startswith("ConfigurationError")
    assert "x.h: cannot be read (Permission denied)" in text


def test_s11_changes_meanwhile(tmp_path: Path, space: Workspace) -> None:
    """[S11] A header edited, or gone, between hash and compile: what was hashed is what is compiled and kept."""
    files = {"k.cu": '#include "x.h"\n' + KERNEL.replace("1", "X"), "x.h": "#define X 1\n"}
    before = compile_files(tmp_path, files, space)
    store = KernelCache.open(str(tmp_path / "cache"))
    job = make_job(tmp_path)
    write(tmp_path, {"x.h": "#define X 2\n"})
    assert load_or_compile(job, store, compile_alone)[0].data == before.data
    assert store.lookup(make_job(tmp_path)) is None
    job = make_job(tmp_path)
    (tmp_path / "x.h").unlink()
    assert compile_job(job, space).data != before.data


# -- S14: reproducible -------------------------------------------------------------------------------------------

LEAKY = {
    "k.cu": '#include <assert.h>\n#include "x.h"\nextern "C" __global__ void k(const char** p, int n)\n'
    "{ assert(n > 0); *p = X; p[1] = __FILE__; }\n",
    "x.h": "#define X name()\n__device__ inline const char* name() { return __FILE__; }\n",
}


@pytest.mark.parametrize("options", [{}, {"lineinfo": True}], ids=["plain", "lineinfo"])
@pytest.mark.parametrize("toolkit", ["none", pytest.param("auto", marks=pytest.mark.slow)])
def test_s14_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, bool], toolkit: str) -> None:
    """[S14] `__FILE__`, `assert` and line info hold no path of this machine: equal bytes in any folder."""
    files = {**LEAKY, "k.cu": LEAKY["k.cu"].replace("#include <assert.h>\n", "")} if toolkit == "none" else LEAKY
    images = []
    for folder in ("a", "somewhere else/deep"):
        where = tmp_path / folder
        (where / "tmp").mkdir(parents=True)
        monkeypatch.setenv("TMPDIR", str(where / "tmp"))
        monkeypatch.setattr(tempfile, "tempdir", None)
        monkeypatch.chdir(where)
        job = make_job(write(where / "project", files), options=options, toolkit_headers=toolkit)
        images.append(compile_alone(job))
        assert str(tmp_path).encode() not in images[-1].data
        assert not images[-1].warnings
        assert set(images[-1].reads.files) == {"k.cu", "x.h"}
        assert not list((where / "tmp").iterdir())
    assert images[0].data == images[1].data
    assert b"x.h" in images[0].data


def test_s14_line_info_reads(tmp_path: Path, space: Workspace) -> None:
    """With line info, and after an error of another job in that worker, the headers that are read under this
    architecture alone are recorded."""
    files = {
        "k.cu": '#if __CUDA_ARCH__ >= 900\n#include "new.h"\n#else\n#include "old.h"\n#endif\n' + KERNEL,
        "new.h": '#include "deep.h"\n',
        "old.h": "int unused(int);\n".replace("int", "__device__ int", 1),
        "deep.h": "",
    }
    write(tmp_path, {**files, "broken.cu": '#include "deeper.h"\n', "deeper.h": '#include "nowhere.h"\n'})
    expected = {"sm_80": {"k.cu", "old.h"}, "sm_90": {"k.cu", "new.h", "deep.h"}}
    jobs = [make_job(tmp_path, "broken.cu")]
    jobs += [
        make_job(tmp_path, arch=arch, options=options) for arch in expected for options in ({}, {"lineinfo": True})
    ]
    for job, result in compile_all(jobs, space, workers=1):
        if job is jobs[0]:
            assert isinstance(result, CompilationError)
        else:
            assert isinstance(result, CompiledImage)
            assert set(result.reads.files) == expected[str(job.architecture)]


def test_s14_debug_warns(tmp_path: Path, space: Workspace) -> None:
    """[S14] `-G` embeds the current folder, which is said."""
    image = compile_files(tmp_path, {"k.cu": KERNEL}, space, options={"debug": True})
    assert any("two builds differ" in warning for warning in image.warnings)


@pytest.mark.parametrize("name", ["__TIME__", "__DATE__"])
@pytest.mark.parametrize("label", ["k.cu", "x.h"])
def test_s14_time(tmp_path: Path, space: Workspace, name: str, label: str) -> None:
    """[S14] A source or header that asks for the time is told of, by name; one that is not read is not."""
    files = {"k.cu": '#include "x.h"\n' + KERNEL, "x.h": "\n", "unread.h": f"// {name}\n"}
    files[label] += f"__constant__ char time_{label[0]}[] = {name};\n"
    warnings = compile_files(tmp_path, files, space).warnings
    assert any(f"{label} asks for the time of compilation" in warning for warning in warnings)


def test_user_line_directives(tmp_path: Path, space: Workspace) -> None:
    """Generated sources with `#line`, which crash NVRTC's trace, compile; all their headers count as read."""
    files = {
        "k.cu": '#line 5 "x.y"\n#include "a.h"\n#include "b.h"\n#line 3 "x.y"\n' + KERNEL,
        "a.h": '\n#line 7 "gen.y"\n#line 20 "/abs/a.c"\n#include "b.h"\n#line 3 "gen.y"\n__device__ int g();\n',
        "b.h": "#define B\n",
    }
    for options in ({}, {"lineinfo": True}):
        image = compile_files(tmp_path, files, space, options=options)
        assert set(image.reads.files) == set(files)


# -- S15, S16: processes -----------------------------------------------------------------------------------------


def two_jobs(root: Path) -> list[CompileJob]:
    """One job that takes minutes, and one that takes no time."""
    write(root, {"slow.cu": SLOW, "k.cu": KERNEL})
    return [make_job(root, "slow.cu"), make_job(root)]


def outcomes(
    jobs: list[CompileJob], space: Workspace, timeout: float | None
) -> dict[str, CompiledImage | CudaKernelsError]:
    """Source -> image or error."""
    return {job.unit.source: result for job, result in compile_all(jobs, space, workers=2, timeout=timeout)}


@pytest.mark.slow
def test_s15_timeout(tmp_path: Path) -> None:
    """[S15] An image past `compile-timeout` is that image's error, in time; others are done."""
    begin = time.monotonic()
    with workspace() as space:
        results = outcomes(two_jobs(tmp_path), space, 5)
    assert "took longer than compile-timeout (5 s)" in str(results["slow.cu"])
    assert isinstance(results["k.cu"], CompiledImage)
    assert time.monotonic() - begin < 25


def workers_of(pid: int) -> list[int]:
    """Workers that a process started."""
    found = subprocess.run(
        ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(pid)], capture_output=True, text=True, check=False
    )
    return [int(row.split()[0]) for row in found.stdout.splitlines() if "hatch_cuda_kernels.worker import main" in row]


@posix
def test_s15_killed_worker(tmp_path: Path) -> None:
    """[S15] A compiler process that is killed, as for want of memory, costs only its image."""
    jobs = two_jobs(tmp_path)
    done: dict[str, CompiledImage | CudaKernelsError] = {}
    with workspace() as space:
        results = compile_all(jobs, space, workers=2)
        job, result = next(results)
        done[job.unit.source] = result
        assert list(done) == ["k.cu"]
        for pid in workers_of(os.getpid()):
            os.kill(pid, signal.SIGKILL)
        done.update({job.unit.source: result for job, result in results})
    assert "m for sm_80: the compiler ended its process (signal 9) on slow.cu" in str(done["slow.cu"])
    assert isinstance(done["k.cu"], CompiledImage)


@posix
@pytest.mark.slow
def test_s15_memory(tmp_path: Path) -> None:
    """[S15] A compile that runs out of memory is that image's error."""
    code = """
from pathlib import Path
import resource
from jobs import *
from hatch_cuda_kernels.nvrtc import workspace
from hatch_cuda_kernels.pool import compile_all
jobs = [make_job(Path(sys.argv[1]), "slow.cu"), make_job(Path(sys.argv[1]))]
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
with workspace() as space:
    report({job.unit.source: type(result).__name__ for job, result in compile_all(jobs, space, workers=1, timeout=60)})
"""
    two_jobs(tmp_path)
    bomb = "template <int N> struct T { static const int v = T<N - 1>::v + T<N + 1>::v; };\n"
    write(
        tmp_path,
        {"slow.cu": "#define A(x) x x x x x x x x x x\n__constant__ int a[] = {A(A(A(A(A(A(A(1,)))))))};\n" + bomb},
    )
    result = run_python(code, os.environ, TESTS, arguments=[str(tmp_path)], timeout=120)
    assert result.value == {"slow.cu": "CompilationError", "k.cu": "CompiledImage"}, result.output


def test_worker_cannot_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that cannot start another process gives an error for the image, not a traceback."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nothing"))
    with workspace() as space:
        results = outcomes(two_jobs(tmp_path)[1:], space, None)
    assert isinstance(results["k.cu"], ToolchainError)
    with pytest.raises(ToolchainError, match="no process can be started"):
        worker.ask_toolchain()


BUILD = """
from pathlib import Path
from jobs import *
from hatch_cuda_kernels.nvrtc import workspace
from hatch_cuda_kernels.pool import compile_all
root = Path(sys.argv[1])
jobs = [make_job(root), make_job(root, "slow.cu"), make_job(root, "slow.cu", "sm_90")]
with workspace() as space:
    for _ in compile_all(jobs, space, workers=2):
        print("compiling", flush=True)
"""


@posix
@pytest.mark.parametrize(
    "name", ["SIGINT", *(pytest.param(name, marks=pytest.mark.slow) for name in ("SIGTERM", "SIGKILL"))]
)
def test_s16_stopped(tmp_path: Path, name: str) -> None:
    """[S16] Stopped in the middle: at once, no worker left, no temporary file, no noise of workers."""
    two_jobs(tmp_path)
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", _PRELUDE + BUILD, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(TESTS), "TMPDIR": str(scratch)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout
    threading.Timer(20, process.kill).start()
    assert process.stdout.readline() == "compiling\n"
    workers = workers_of(process.pid)
    assert len(workers) == 2
    begin = time.monotonic()
    if name == "SIGINT":
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    else:
        process.send_signal(getattr(signal, name))
    _, errors = process.communicate(timeout=20)
    while any(Path(f"/proc/{pid}").exists() for pid in workers) or list(scratch.iterdir()):
        assert time.monotonic() - begin < 5, (workers, list(scratch.rglob("*"))[:5])
        time.sleep(0.02)
    assert errors.count("Traceback") == (1 if name == "SIGINT" else 0)


def test_left_early(tmp_path: Path) -> None:
    """Leaving the results early ends the workers, and none is started afterwards."""
    with workspace() as space:
        results = compile_all(two_jobs(tmp_path), space, workers=2)
        next(results)
        begin = time.monotonic()
        results.close()  # type: ignore[attr-defined]
        assert time.monotonic() - begin < 5
    assert not workers_of(os.getpid())


def test_workers_same_bytes(tmp_path: Path, space: Workspace) -> None:
    """Workers, this process and threads give the same image."""
    jobs = [make_job(write(tmp_path, {"k.cu": KERNEL}), arch=arch) for arch in ("sm_80", "sm_90", "compute_80")]
    here = [compile_job(job, space).data for job in jobs]
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(lambda job: compile_job(job, space).data, jobs)) == here
    by_worker = {str(job.architecture): result for job, result in compile_all(jobs, space, workers=2)}
    for job, data in zip(jobs, here, strict=True):
        result = by_worker[str(job.architecture)]
        assert isinstance(result, CompiledImage)
        assert result.data == data


@pytest.mark.slow
def test_threads_do_not_mix_reads(tmp_path: Path, space: Workspace) -> None:
    """Compiles at once in threads of one process each record their own headers."""
    jobs = []
    for number in range(8):
        header = f"only{number}.h"
        files = {"k.cu": f'#include "{header}"\n' + KERNEL, header: f"__device__ int f{number}();\n" * 50}
        jobs.append(make_job(write(tmp_path / str(number), files)))
    with ThreadPoolExecutor(8) as pool:
        for number, image in enumerate(pool.map(lambda job: compile_job(job, space), jobs * 4)):
            assert set(image.reads.files) == {"k.cu", f"only{number % 8}.h"}


def test_temporary_folder_by_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A temporary folder that is reached by a link works; one that cannot be made is an error."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "link"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "link"))
    job = make_job(write(tmp_path, {"k.cu": '#include "x.h"\n' + KERNEL, "x.h": ""}))
    assert set(compile_alone(job).reads.files) == {"k.cu", "x.h"}
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(ToolchainError, match="set TMPDIR"):
        compile_alone(job)


def test_temporary_folder_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compile works in memory where there is room, and where TMPDIR says so where it says; nothing stays there."""
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.delenv(name, raising=False)
    roomy = os.path.ismount("/dev/shm") and shutil.disk_usage("/dev/shm").free >= 1 << 31
    with workspace() as space:
        assert (space.path.parent == Path("/dev/shm")) == roomy
        assert space.path.stat().st_mode & 0o777 == 0o700
    assert not space.path.exists()
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    with workspace() as space:
        assert space.path.parent == tmp_path
    assert not list(tmp_path.iterdir())


# -- results -----------------------------------------------------------------------------------------------------

WARNED = 'extern "C" __global__ void k(int* p) { int unused; *p = 1; }\n'


def test_warnings_on_a_hit(tmp_path: Path, space: Workspace) -> None:
    """A compiler's warning comes back on a hit, as do resources and names."""
    store = KernelCache.open(str(tmp_path / "cache"))
    project = write(tmp_path / "p", {"k.cu": WARNED + "template <class T> __global__ void t(T* p) { *p = 1; }\n"})
    jobs = [make_job(project, name_expressions=["t<float>"]) for _ in range(2)]
    first, cached = load_or_compile(jobs[0], store, lambda job: compile_job(job, space))
    assert not cached
    second, cached = load_or_compile(jobs[1], store, lambda job: compile_job(job, space))
    assert cached
    assert second == first
    assert "unused" in second.warnings[0]
    assert "k.cu(1)" in second.warnings[0]
    assert set(second.kernels) == {"k", "t<float>"}
    assert second.entries["k"]


def test_every_architecture(tmp_path: Path, space: Workspace) -> None:
    """Every architecture of this NVRTC gives a cubin and PTX, without a driver."""
    write(tmp_path, {"k.cu": KERNEL})
    for number in probe().supported:
        cubin = compile_job(make_job(tmp_path, arch=f"sm_{number}"), space)
        assert read_cubin(cubin.data).matches(Architecture(number))
        ptx = compile_job(make_job(tmp_path, arch=f"compute_{number}"), space)
        assert read_ptx(ptx.data).matches(Architecture(number, virtual=True))
        assert cubin.kernels == ptx.kernels == {"k": "k"}


@pytest.mark.parametrize("arch", ["sm_90a", "compute_90a", "sm_100f", "sm_120a"])
def test_suffixes(tmp_path: Path, space: Workspace, arch: str) -> None:
    """Architectures with a suffix are compiled for as such."""
    image = compile_files(tmp_path, {"k.cu": KERNEL}, space, arch=arch)
    facts = read_ptx(image.data) if arch.startswith("compute") else read_cubin(image.data)
    assert facts.matches(Architecture.parse(arch))


# -- T1 to T3: toolchains ----------------------------------------------------------------------------------------


def test_t1_release_in_key(tmp_path: Path) -> None:
    """[T1] Another patch release has other keys."""
    unit = one_unit(write(tmp_path, {"k.cu": KERNEL}))
    releases = ["13.2.51", "13.2.78", "13.2.86", "13.5.37"]
    keys = {CompileJob(unit=unit, architecture=Architecture(80), release=release).key for release in releases}
    assert len(keys) == 4


@pytest.mark.parametrize("arch", ["sm_80", "compute_80"])
def test_t1_other_release(tmp_path: Path, space: Workspace, arch: str) -> None:
    """[T1, T2] What another release compiled is refused, not kept under a wrong key."""
    job = make_job(write(tmp_path, {"k.cu": KERNEL}), arch=arch)
    wrong = CompileJob(unit=job.unit, architecture=job.architecture, release="13.5.1")
    with pytest.raises(ToolchainError, match=r"compiled by NVRTC .*, but 13\.5\.1 was expected"):
        compile_job(wrong, space)


def test_t2_shadowed(tmp_path: Path) -> None:
    """[T2] A library that is not the installed wheel's is named when it is asked."""
    installed = installed_release()
    assert installed
    from dataclasses import replace

    store = KernelCache.open(str(tmp_path))
    with pytest.raises(ToolchainError, match=r"two NVRTC: .*" + installed[0].replace(".", r"\.")):
        detect(store, lambda: replace(probe(), release="13.5.1"))
    assert detect(store, probe).release == installed[0]
    asked = []
    assert detect(store, lambda: asked.append(1) or probe()).supported == probe().supported  # type: ignore[func-returns-value]
    assert not asked


@mounts
@pytest.mark.parametrize(
    ("pattern", "message"),
    [("libnvrtc-builtins*", "cannot use its libnvrtc-builtins"), ("libnvrtc.so*", "cannot be loaded")],
)
def test_t2_missing_library(tmp_path: Path, pattern: str, message: str) -> None:
    """[T2] NVRTC, or its builtins, emptied under us: an error that says what to install."""
    installed = installed_release()
    assert installed
    library = next(Path(installed[1]).parent.glob(pattern))
    (tmp_path / "empty").touch()
    write(tmp_path / "tree", {"k.cu": KERNEL})
    code = f"""
from pathlib import Path
sys.path.insert(0, {str(TESTS)!r})
from jobs import *
report(attempt(lambda: compile_alone(make_job(Path({str(tmp_path / "tree")!r})))))
"""
    done = in_mounts(f"mount --bind {tmp_path}/empty {library}", [sys.executable, "-c", _PRELUDE + code])
    assert "ToolchainError" in done.stdout, done.stdout + done.stderr
    assert message in done.stdout
    assert "pip install" in done.stdout


def test_t3_foreign_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """[T3] Headers of another CUDA release than NVRTC's are told of, where they were read."""
    site = write(
        tmp_path / "site",
        {
            "nvidia/cu13/include/cuda_runtime.h": "#pragma once\n",
            "nvidia/cu13/include/cuda_runtime_api.h": "#define CUDART_VERSION 13010\n",
        },
    )
    code = """
from pathlib import Path
from jobs import *
reports = []
for text in ("#include <cuda_runtime.h>\\n", ""):
    write(Path(sys.argv[1]), {"k.cu": text + KERNEL})
    image = compile_alone(make_job(Path(sys.argv[1]), toolkit_headers="installed"))
    reports.append([list(image.warnings), sorted(image.reads.installed)])
report(reports)
"""
    warned, silent = run_python(code, os.environ, TESTS, site, arguments=[str(tmp_path)]).value
    assert "headers of CUDA 13.1 were read (cuda_runtime.h), and NVRTC is" in warned[0][0]
    assert warned[1] == ["cuda_runtime.h"]
    assert silent == [[], []]


INSTALLED = """
from pathlib import Path
from jobs import *
from hatch_cuda_kernels.cache import *
store = KernelCache.open(sys.argv[2])
image, cached = load_or_compile(make_job(Path(sys.argv[1]), toolkit_headers="installed"), store, compile_alone)
report([image.sha256, cached])
"""


@pytest.mark.slow
@pytest.mark.parametrize("traced", [True, False])
def test_installed_headers_change(tmp_path: Path, traced: bool) -> None:
    """A header of an installed wheel that changes, comes or goes is a rebuild, with NVRTC's trace and without it."""
    include = tmp_path / "site/nvidia/cu13/include"
    write(include, {"cuda_runtime.h": "#include <inner.h>\n", "inner.h": "#define X 1\n", "unread.h": "1"})
    tail = "" if traced else '#line 1 "k.y"\n'
    write(tmp_path, {"k.cu": "#include <cuda_runtime.h>\n" + KERNEL.replace("1", "X") + tail})

    def build() -> tuple[str, bool]:
        found = run_python(INSTALLED, os.environ, TESTS, tmp_path / "site",
                           arguments=[str(tmp_path), str(tmp_path / "cache")]).value  # fmt: skip
        return found[0], found[1]

    first, cached = build()
    assert not cached
    assert build() == (first, True)
    write(include, {"unread.h": "2"})
    assert build() == (first, traced)
    write(include, {"inner.h": "#define X 2\n"})
    second, cached = build()
    assert (second != first, cached) == (True, False)
    write(include, {"inner.h": "#define X 1\n"})
    write(
        tmp_path, {"k.cu": "#if __has_include(<late.h>)\n#include <late.h>\n#endif\n" + (tmp_path / "k.cu").read_text()}
    )
    build()
    write(include, {"late.h": "#include <inner.h>\n#undef X\n#define X 3\n#undef X\n#define inner\n"})
    _, cached = build()
    assert not cached


def python_with(release: str, folder: Path) -> str:
    """An interpreter whose environment has that release of NVRTC."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=120)
    python = str(folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    packages = ["cuda-core>=1.2,<2", "cuda-bindings>=13,<14", f"nvidia-cuda-nvrtc=={release}"]
    packages += ["filelock", "pathspec", "platformdirs"]
    subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=True, timeout=600)
    return python


@pytest.mark.isolated
@pytest.mark.timeout(900)
def test_t1_patch_releases_apart(tmp_path: Path) -> None:
    """[T1] Two patch releases, which cuda.core's keys do not tell apart, share a cache and keep to their own images."""
    write(tmp_path, {"k.cu": KERNEL})
    code = _PRELUDE + INSTALLED.replace("image.sha256", "image.release, image.sha256")
    ours = tmp_path / "ours"  # alone: what else lies beside the package is not to be seen
    shutil.copytree(Path(nvrtc.__file__).parent, ours / "hatch_cuda_kernels")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), str(ours)])}

    def build(python: str) -> list[str]:
        command = [python, "-c", code, str(tmp_path), str(tmp_path / "cache")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
        return done.stdout.split("@")[-1].strip().strip("[]").split(", ")

    pythons = [python_with(release, tmp_path / release) for release in ("13.2.78", "13.2.86")]
    cold = [build(python) for python in pythons]
    warm = [build(python) for python in reversed(pythons)]
    assert len({release for release, *_ in cold}) == len(cold)
    assert {cached for *_, cached in cold} == {"false"}
    assert {cached for *_, cached in warm} == {"true"}
    assert sorted(found[:2] for found in cold) == sorted(found[:2] for found in warm)
