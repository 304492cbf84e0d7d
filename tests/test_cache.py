# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The cache never gives a wrong or stale image, never raises and never blocks, whatever state its folder is in."""

from __future__ import annotations

import json
import os
import random
import shutil
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jobs import KERNEL, TESTS, can_mount, compile_alone, in_mounts, make_job, write
from support import run_python

from hatch_cuda_kernels import CompilationError, CudaKernelsWarning, cache, plan, records
from hatch_cuda_kernels.cache import KernelCache, default_directory, load_or_compile
from hatch_cuda_kernels.plan import CompiledImage, CompileJob

pytestmark = pytest.mark.usefixtures("warn_anew")
posix = pytest.mark.skipif(os.name != "posix", reason="POSIX file system")
root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root, to be other users")
mounts = pytest.mark.skipif(not can_mount(), reason="may not mount file systems")
NOBODY = 65534


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with one kernel and a header."""
    files = {"k.cu": '#include "x.h"\n' + KERNEL, "x.h": "// nothing\n", "other.cu": KERNEL.replace("1", "2")}
    return write(tmp_path_factory.mktemp("project"), files)


@pytest.fixture(scope="module")
def job(tree: Path) -> CompileJob:
    """Its job."""
    return make_job(tree)


@pytest.fixture(scope="module")
def image(job: CompileJob) -> CompiledImage:
    """What a compile of it gives."""
    return compile_alone(job)


@pytest.fixture
def warm(tmp_path: Path, job: CompileJob, image: CompiledImage) -> KernelCache:
    """A cache that holds the image."""
    store = KernelCache.open(str(tmp_path / "cache"))
    store.store(job, image)
    assert store.lookup(job) == image
    return store


def entry_files(store: KernelCache) -> list[Path]:
    """Paths of all entries."""
    return [path for path, _ in store.entries()]


def assert_repairs(store: KernelCache, job: CompileJob, image: CompiledImage) -> None:
    """A miss, and a hit after the image was stored again."""
    assert store.lookup(job) is None
    store.store(job, image)
    assert KernelCache.open(str(store.directory)).lookup(job) == image


# -- R1: contents ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize(
    "damage",
    [lambda data: b"", lambda data: data[: len(data) // 2], lambda data: data[:-1], lambda data: data + b"\0"],
    ids=["emptied", "halved", "short", "long"],
)
def test_r1_cut(
    warm: KernelCache, job: CompileJob, image: CompiledImage, which: int, damage: Callable[[bytes], bytes]
) -> None:
    """An entry that lost or gained bytes is a miss, `verify` names it, and the next store repairs it."""
    path = entry_files(warm)[which]
    path.write_bytes(damage(path.read_bytes()))
    assert [found for found, _ in warm.verify()] == [str(path)]
    assert_repairs(warm, job, image)
    assert not list(warm.verify())


def overwrite(path: Path, offset: int, byte: int) -> None:
    """Put another byte into a file where it is: to write it anew is what a disk takes its time for."""
    with path.open("r+b") as stream:
        stream.seek(offset)
        stream.write(bytes([byte]))


def test_r1_every_byte(warm: KernelCache, job: CompileJob) -> None:
    """An entry with any one byte flipped is never believed."""
    for path in entry_files(warm):
        for offset, byte in enumerate(path.read_bytes()):
            overwrite(path, offset, byte ^ 0xFF)
            assert warm.lookup(job) is None, (path, offset)
            overwrite(path, offset, byte)
    assert warm.lookup(job) is not None


def test_r1_random_bits(warm: KernelCache, job: CompileJob) -> None:
    """Random single-bit flips, over all entries: none is believed."""
    draw = random.Random(1)
    contents = {path: path.read_bytes() for path in entry_files(warm)}
    for _ in range(600):
        path = draw.choice(list(contents))
        offset = draw.randrange(len(contents[path]))
        overwrite(path, offset, contents[path][offset] ^ 1 << draw.randrange(8))
        assert warm.lookup(job) is None, path
        overwrite(path, offset, contents[path][offset])
    assert warm.lookup(job) is not None


def test_r1_swapped(warm: KernelCache, tree: Path, job: CompileJob, image: CompiledImage) -> None:
    """Whole entries in each other's places, and those of another job, are misses: an entry says where it belongs."""
    other = make_job(tree, "other.cu")
    warm.store(other, compile_alone(other))
    contents = {path: path.read_bytes() for path in entry_files(warm)}
    assert len(contents) == 4
    for path in contents:
        for foreign in contents:
            if path != foreign:
                path.write_bytes(contents[foreign])
                assert (warm.lookup(job), warm.lookup(other)).count(None) == 1, (path, foreign)
                path.write_bytes(contents[path])
    assert warm.lookup(job) == image


def test_r1_sealed_nonsense(warm: KernelCache, job: CompileJob) -> None:
    """A record with a fitting digest and nonsense in it is a miss, not an exception."""
    key = f"compiles {job.key}"
    record = cache._load(warm.layers[0], key)
    assert record
    (good,) = record["compiles"]
    nonsense_lists: tuple[Any, ...] = (None, 1, {}, [1], [None], ["reads"], [{}], [{"reads": good["reads"]}])
    nonsense_reads: tuple[Any, ...] = (None, 1, [], {"files": 1, "installed": {}, "missing": []}, {"files": {}})
    for entries in (*nonsense_lists, *([{**good, "reads": reads}] for reads in nonsense_reads)):
        cache._save(warm.layers[0], key, {"compiles": entries})
        assert warm.lookup(job) is None
    cache._save(warm.layers[0], key, {"compiles": [{**good, "kernels": None}, good]})
    assert warm.lookup(job) is not None
    for field in ("kernels", "entries", "warnings", "seconds", "sha256", "size", "architecture"):
        values: tuple[Any, ...] = (None, [], {"k": 1}, "x", 10**400, {"k": {"registers": "many"}})
        for nonsense in values:
            if nonsense in ([], "x") and field in ("warnings",):
                continue
            cache._save(warm.layers[0], key, {"compiles": [{**good, field: nonsense}]})
            found = warm.lookup(job)
            assert found is None or field in ("kernels", "entries", "warnings")
    for text in (b"", b"{}", b"[" * 100_000, b'{"a":' * 50_000, b"\xff", b"NaN", b"1" * 10_000):
        import hashlib

        warm.layers[0].write(key, hashlib.sha256(text).hexdigest().encode() + b"\n" + text)
        assert warm.lookup(job) is None


def test_r1_endless(warm: KernelCache, job: CompileJob, image: CompiledImage) -> None:
    """A record that sends a look-up to hundreds of images is left after a few."""
    entry = {**records.entry_of(image), "sha256": "0" * 64, "size": 1000}
    cache._save(warm.layers[0], f"compiles {job.key}", {"compiles": [entry] * 200})
    warm.layers[0].write(f"blob {'0' * 64}", b"x" * 1000)
    size = len(warm.layers[0].store.get(f"compiles {job.key}") or b"")
    assert warm.layers[0].take()
    assert warm.lookup(job) is None
    assert warm.layers[0].take().bytes_read == size + 8 * 1000


# -- R2: kinds of files and owners -------------------------------------------------------------------------------


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def _device(path: Path) -> None:
    path.unlink()
    os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))


def _link(path: Path) -> None:
    elsewhere = path.parent.parent.parent / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def _loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _foreign(path: Path) -> None:
    os.chown(path, NOBODY, NOBODY)


@posix
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("kind", [_fifo, _link, _loop, _folder, pytest.param(_device, marks=root)])
@pytest.mark.timeout(20)
def test_r2_kinds(
    warm: KernelCache, job: CompileJob, image: CompiledImage, which: int, kind: Callable[[Path], None]
) -> None:
    """An entry that is a FIFO, device, link, loop or folder is a miss with a warning; it never blocks."""
    path = entry_files(warm)[which]
    kind(path)
    with pytest.warns(CudaKernelsWarning, match="cannot be read"):
        assert warm.lookup(job) is None
    if kind is _folder:
        return
    assert [found for found, _ in warm.verify()] == [str(path)]
    warm.store(job, image)
    assert warm.lookup(job) == image
    assert stat.S_ISREG(path.lstat().st_mode)


@posix
@pytest.mark.parametrize("level", ["entries", "shard"])
def test_r2_linked_folder(warm: KernelCache, job: CompileJob, tmp_path: Path, level: str) -> None:
    """No link is followed below the configured directory, neither to read nor to write, be it private or not."""
    assert warm.directory
    warm.directory.chmod(0o700)
    warm = KernelCache.open(str(warm.directory))
    assert warm.directory
    path = entry_files(warm)[0]
    folder = warm.directory / "entries" if level == "entries" else path.parent
    folder.rename(tmp_path / "moved")
    folder.symlink_to(tmp_path / "moved")
    before = sorted((tmp_path / "moved").rglob("*"))
    with pytest.warns(CudaKernelsWarning):
        assert warm.lookup(job) is None
        path_of = warm.layers[0].store.path("a key")
        if level == "shard":
            path_of = path
            assert (
                not warm.layers[0].write(f"compiles {job.key}", b"x")
                or warm.layers[0].store.path(f"compiles {job.key}").parent != path.parent
            )
        else:
            assert not warm.layers[0].write("a key", b"x")
    assert not path_of.is_symlink()
    assert [p for p in sorted((tmp_path / "moved").rglob("*")) if p not in before] == []


@posix
def test_r2_configured_link(tmp_path: Path, job: CompileJob, image: CompiledImage) -> None:
    """The configured directory itself may be a link, to a scratch disk say."""
    (tmp_path / "scratch").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("scratch")
    store = KernelCache.open(str(tmp_path / "link"))
    store.store(job, image)
    assert store.directory == (tmp_path / "scratch").resolve()
    assert KernelCache.open(str(tmp_path / "link")).lookup(job) == image


@root
@pytest.mark.parametrize("which", [0, 1])
def test_r2_other_owner(warm: KernelCache, job: CompileJob, image: CompiledImage, which: int) -> None:
    """An entry of another user is not believed, whatever the directory's mode; the next store replaces it."""
    _foreign(entry_files(warm)[which])
    with pytest.warns(CudaKernelsWarning, match="belongs to another user"):
        assert warm.lookup(job) is None
    warm.store(job, image)
    assert warm.lookup(job) == image


@root
def test_r2_other_owners_directory(tmp_path: Path, job: CompileJob, image: CompiledImage) -> None:
    """A directory of another user is not used."""
    (tmp_path / "cache").mkdir(mode=0o755)
    os.chown(tmp_path / "cache", NOBODY, NOBODY)
    with pytest.warns(CudaKernelsWarning, match="belongs to another user"):
        store = KernelCache.open(str(tmp_path / "cache"))
    store.store(job, image)
    assert store.lookup(job) is None
    assert not list((tmp_path / "cache").iterdir())


@posix
@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777])
def test_r2_writable_directory(tmp_path: Path, mode: int) -> None:
    """A directory that others may write to is not used."""
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(mode)
    with pytest.warns(CudaKernelsWarning, match="can be written by others"):
        assert KernelCache.open(str(tmp_path / "cache")).directory is None


@posix
@pytest.mark.parametrize("level", ["entry", "shard", "entries"])
@pytest.mark.parametrize("mode", [0o666, 0o660])
def test_r2_writable_inside(tmp_path: Path, job: CompileJob, image: CompiledImage, level: str, mode: int) -> None:
    """In a directory that others can enter, an entry or folder that they may write to is not believed."""
    (tmp_path / "cache").mkdir(mode=0o755)
    store = KernelCache.open(str(tmp_path / "cache"))
    store.store(job, image)
    store = KernelCache.open(str(tmp_path / "cache"))
    assert store.lookup(job) == image
    path = store.layers[0].store.path(f"blob {image.sha256}")
    target = {"entry": path, "shard": path.parent, "entries": path.parent.parent}[level]
    target.chmod(mode if level == "entry" else mode | 0o111)
    with pytest.warns(CudaKernelsWarning, match="can be written by others"):
        assert store.lookup(job) is None


@posix
def test_r2_umask(tmp_path: Path, job: CompileJob, image: CompiledImage) -> None:
    """A umask of 002, usual where every user has a group, does not make the cache distrust its own entries."""
    before = os.umask(0o002)
    try:
        store = KernelCache.open(str(tmp_path / "cache"))
        store.store(job, image)
    finally:
        os.umask(before)
    (tmp_path / "cache").chmod(0o700)
    for path in (tmp_path / "cache").rglob("*"):
        path.chmod(path.stat().st_mode | 0o020)
    assert KernelCache.open(str(tmp_path / "cache")).lookup(job) == image


AS_NOBODY = """
from pathlib import Path
import filelock, platformdirs, cuda.core.utils
from jobs import *
from hatch_cuda_kernels.cache import *
import hatch_cuda_kernels.cache as cache
job = make_job(Path(sys.argv[1]))
image = compile_alone(job)
os.setgid(65534); os.setuid(65534); os.umask(0o022)
"""


def as_nobody(code: str, *arguments: Path | str, **variables: str) -> Any:
    """Run code as an unprivileged user, with a job and its image at hand."""
    environment = {**os.environ, **variables}
    return run_python(AS_NOBODY + code, environment, TESTS, arguments=[str(a) for a in arguments]).value


def open_to_all(path: Path) -> None:
    """Let every user enter a temporary folder."""
    for folder in (path, *path.parents):
        if folder.owner() == "root" and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)


@root
def test_r2_image_layer(tmp_path: Path, tree: Path, job: CompileJob, image: CompiledImage) -> None:
    """What root warmed in a folder that was asked for serves any user: readable, trusted, without a warning."""
    folder = tmp_path / "layer"
    store = KernelCache.open(str(folder))
    store.store(job, image)
    open_to_all(tmp_path)
    code = """
store = KernelCache.open(sys.argv[2])
hit = store.lookup(job)
store.count()
image2, cached = load_or_compile(job, store, lambda job: 1/0)
report([hit == image or hit is not None and hit.sha256 == image.sha256, cached, caught])
"""
    assert as_nobody(code, tree, folder) == [True, True, []]


@root
def test_r2_layer_miss(tmp_path: Path, tree: Path) -> None:
    """A miss in a layer that cannot be written gives the fresh kernel, with one warning."""
    folder = tmp_path / "layer"
    KernelCache.open(str(folder)).remember("a", b"b")
    open_to_all(tmp_path)
    code = """
image2, cached = load_or_compile(job, KernelCache.open(sys.argv[2]), lambda job: image)
report([image2 == image, cached, caught])
"""
    same, cached, caught = as_nobody(code, tree, folder)
    assert (same, cached, len(caught)) == (True, False, 1)
    assert "cannot be written" in caught[0]


# -- R3: homes ---------------------------------------------------------------------------------------------------


@posix
@pytest.mark.parametrize(
    "variables",
    [
        {"HOME": ""},
        {"HOME": "/"},
        {"HOME": "/nonexistent/home"},
        {"HOME": "relative"},
        {"HOME": "/dev/null"},
        {"XDG_CACHE_HOME": "relative/cache"},
        {"XDG_CACHE_HOME": "/dev/null"},
        {"XDG_CACHE_HOME": "/proc/nonexistent"},
    ],
    ids=str,
)
def test_r3_homes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    job: CompileJob,
    image: CompiledImage,
    variables: dict[str, str],
) -> None:
    """Without a usable home things work, without a cache and with a warning, and nothing is left anywhere."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv(cache.CACHE_VARIABLE, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.warns(CudaKernelsWarning):
        store = KernelCache.from_environment()
        assert load_or_compile(job, store, lambda job: image) == (image, False)
        assert store.lookup(job) is None
    assert store.directory is None
    assert not list(tmp_path.iterdir())


@posix
def test_r3_home_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file where the directory should be means no cache, and the file stays."""
    (tmp_path / "hatch-cuda-kernels").write_text("mine")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(cache.CACHE_VARIABLE, raising=False)
    with pytest.warns(CudaKernelsWarning, match="cannot be opened"):
        assert KernelCache.from_environment().directory is None
    assert (tmp_path / "hatch-cuda-kernels").read_text() == "mine"


@root
def test_r3_unknown_user(tree: Path) -> None:
    """A user without an entry in the password file and without HOME has no cache, and works."""
    code = AS_NOBODY.replace("65534", "54321") + "report([KernelCache.open().directory is None, len(caught)])"
    environment = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")}
    environment.pop(cache.CACHE_VARIABLE, None)
    assert run_python(code, environment, TESTS, arguments=[str(tree)]).value == [True, 1]


@posix
def test_r3_fine_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home, or an absolute XDG_CACHE_HOME that is not there yet, is used, and kept private."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert default_directory() == tmp_path / ".cache" / "hatch-cuda-kernels"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    directory = KernelCache.open().directory
    assert directory == tmp_path / "x" / "hatch-cuda-kernels"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """`0` turns the cache off, without a word."""
    monkeypatch.setenv(cache.CACHE_VARIABLE, "0")
    store = KernelCache.from_environment()
    assert store.directory is None
    assert store.layers == ()
    store.remember("a", b"b")
    assert store.recall("a") is None


# -- R4: errors of the system ------------------------------------------------------------------------------------

STORES = """
from pathlib import Path
import resource, filelock, platformdirs, cuda.core.utils, pickle
from jobs import *
from hatch_cuda_kernels.cache import *
job = make_job(Path(sys.argv[1]))
image = compile_alone(job)
def tries():
    store = KernelCache.open(sys.argv[2])
    result, cached = load_or_compile(job, store, lambda job: image)
    store.count()
    report([result == image, cached, store.lookup(job) is None, caught])
"""


def check_failure(value: Any, message: str = "") -> None:
    """The fresh image was given, nothing was kept, and a warning says why."""
    fresh, cached, missing, caught = value
    assert (fresh, cached, missing) == (True, False, True)
    assert any(message in text for text in caught), caught
    assert all(text.startswith("CudaKernelsWarning") for text in caught)


@root
@pytest.mark.parametrize("mode", [0o500, 0o000, 0o300, 0o600])
def test_r4_eacces(tmp_path: Path, tree: Path, mode: int) -> None:
    """EACCES: a directory without permissions gives the fresh kernel and a warning."""
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    os.chown(folder, NOBODY, NOBODY)
    open_to_all(tmp_path)
    folder.chmod(mode)
    value = as_nobody(STORES.split("image = ")[1].split("\n", 1)[1] + "tries()\n", tree, folder)
    if mode == 0o300:  # may be written, and read by name
        assert value[0] and not value[2]
    else:
        check_failure(value)


@mounts
@pytest.mark.parametrize(
    ("mount", "message"),
    [
        ("mount -t tmpfs -o mode=700,size=4k,nr_inodes=100 none CACHE", "No space left"),
        ("mount -t tmpfs -o mode=700,size=1m,nr_inodes=4 none CACHE", "No space left"),
        ("mount -t tmpfs -o mode=700,ro none CACHE", "Read-only"),
    ],
    ids=["ENOSPC", "ENOSPC-inodes", "EROFS"],
)
def test_r4_file_systems(tmp_path: Path, tree: Path, mount: str, message: str) -> None:
    """ENOSPC, EROFS: on a full or read-only file system the fresh kernel is returned, with a warning."""
    (tmp_path / "cache").mkdir()
    from support import _PRELUDE

    command = [sys.executable, "-c", _PRELUDE + STORES + "tries()\n", str(tree), str(tmp_path / "cache")]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    done = in_mounts(mount.replace("CACHE", str(tmp_path / "cache")), command, env=environment)
    assert done.returncode == 0, done.stderr
    check_failure(json.loads(done.stdout.split("@")[-1]), message)


@posix
@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ("resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))", "File too large"),
        ("resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir('/proc/self/fd')) - 1,) * 2)", "Too many open"),
    ],
    ids=["EFBIG", "EMFILE"],
)
def test_r4_limits(tmp_path: Path, tree: Path, limit: str, message: str) -> None:
    """EFBIG, EMFILE: past a limit of the process the fresh kernel is returned, with a warning."""
    code = f"{STORES}\nKernelCache.open(sys.argv[2]).remember('a', b'b')\n{limit}\ntries()\n"
    value = run_python(code, os.environ, TESTS, arguments=[str(tree), str(tmp_path / "cache")]).value
    check_failure(value, message)


@mounts
def test_r4_read_only_hits(tmp_path: Path, tree: Path, job: CompileJob, image: CompiledImage) -> None:
    """A warm cache on a read-only file system serves hits without a warning."""
    from support import _PRELUDE

    folder = tmp_path / "cache"
    KernelCache.open(str(folder)).store(job, image)
    code = STORES.replace("image = compile_alone(job)", "image = None") + "tries()\n"
    command = [sys.executable, "-c", _PRELUDE + code, str(tree), str(folder)]
    mount = f"mount --bind {folder} {folder} && mount -o remount,ro,bind {folder}"
    done = in_mounts(mount, command, env={**os.environ, "PYTHONPATH": str(TESTS)})
    assert json.loads(done.stdout.split("@")[-1]) == [False, True, False, []], done.stdout + done.stderr


# -- R5, R6: processes -------------------------------------------------------------------------------------------

COLD = """
from pathlib import Path
from jobs import *
from hatch_cuda_kernels.cache import *
def compile_now(job):
    with open(sys.argv[3], "a") as log:
        log.write("compiled\\n")
    return compile_alone(job)
job = make_job(Path(sys.argv[1]))
store = KernelCache.open(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
image, cached = load_or_compile(job, store, compile_now)
report([image.sha256, caught])
"""


def start(code: str, *arguments: Path | str) -> subprocess.Popen[str]:
    """Start a process that runs code."""
    from support import _PRELUDE

    return subprocess.Popen(
        [sys.executable, "-c", _PRELUDE + code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
    )


def line(process: subprocess.Popen[str]) -> str:
    """The next line that a process prints."""
    assert process.stdout
    return process.stdout.readline().strip()


@pytest.mark.parametrize("count", [4, pytest.param(32, marks=pytest.mark.slow)])
def test_r6_cold_processes(tmp_path: Path, tree: Path, image: CompiledImage, count: int) -> None:
    """Many cold processes that want one kernel at once: right bytes everywhere, no warning, one compile."""
    log = tmp_path / "log"
    processes = [start(COLD, tree, tmp_path / "cache", log) for _ in range(count)]
    assert {line(process) for process in processes} == {"ready"}
    for process in processes:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    results = [json.loads(process.communicate(timeout=120)[0].split("@")[-1]) for process in processes]
    assert results == [[image.sha256, []]] * count
    assert log.read_text().count("compiled") == 1


def test_r6_holder_killed(tmp_path: Path, tree: Path, job: CompileJob, image: CompiledImage) -> None:
    """When the process that compiles is killed, the next one goes on at once."""
    holder = start(COLD.replace("return compile_alone(job)", "print('held', flush=True); time.sleep(600)"), tree,
                   tmp_path / "cache", tmp_path / "log")  # fmt: skip
    assert line(holder) == "ready"
    assert holder.stdin
    holder.stdin.write("go\n")
    holder.stdin.flush()
    assert line(holder) == "held"
    threading.Timer(0.5, holder.kill).start()
    begin = time.monotonic()
    store = KernelCache.open(str(tmp_path / "cache"))
    assert load_or_compile(job, store, lambda job: image) == (image, False)
    assert 0.3 < time.monotonic() - begin < 5
    holder.communicate()


def test_r6_holder_hangs(tmp_path: Path, job: CompileJob, monkeypatch: pytest.MonkeyPatch) -> None:
    """A holder that never lets go costs a bounded wait."""
    store, other = KernelCache.open(str(tmp_path / "cache")), KernelCache.open(str(tmp_path / "cache"))
    begin = time.monotonic()
    with store.lock(job.key), other.lock(job.key, timeout=0.3):
        assert 0.2 < time.monotonic() - begin < 5


KILLED = """
from pathlib import Path
from jobs import *
from hatch_cuda_kernels.cache import *
root = Path(sys.argv[1])
store = KernelCache.open(sys.argv[2])
job = make_job(root)
image = compile_alone(job)
print("ready", flush=True)
for number in range(10**6):
    write(root, {"k.cu": f"// {number}\\n" + KERNEL})
    job = make_job(root)
    load_or_compile(job, store, lambda job: image)
"""


@pytest.mark.parametrize("count", [6, pytest.param(200, marks=pytest.mark.slow)])
def test_r5_killed(tmp_path: Path, count: int) -> None:
    """SIGKILL at random moments of writing: every entry verifies, the next process works, no lock stays behind."""
    draw = random.Random(count)
    folder, project = tmp_path / "cache", write(tmp_path / "project", {"k.cu": KERNEL})
    processes: list[subprocess.Popen[str]] = []
    store = KernelCache.open(str(folder))
    for number in range(count):
        processes.append(start(KILLED, write(tmp_path / f"p{number}", {"k.cu": KERNEL}), folder))
        if len(processes) == 4 or number == count - 1:
            for process in processes:
                assert line(process) == "ready"
            for process in processes:
                while number == 3 and not entry_files(store):  # the first ones get to where there is something to lose
                    time.sleep(0.005)
                time.sleep(draw.uniform(0, 0.05))
                process.kill()
                process.communicate()
            processes.clear()
    store = KernelCache.open(str(folder))
    assert not list(store.verify())
    assert entry_files(store)
    job = make_job(project)
    fresh = compile_alone(job)
    begin = time.monotonic()
    assert load_or_compile(job, store, lambda job: fresh)[0].data == fresh.data
    assert time.monotonic() - begin < 5
    for number in range(count):
        leftover = make_job(tmp_path / f"p{number}")
        found = store.lookup(leftover)
        assert found is None or found.data == fresh.data


# -- R7: removal under way ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["clear", "rmtree", "evict"])
def test_r7_removal(tmp_path: Path, job: CompileJob, image: CompiledImage, way: str) -> None:
    """Clearing, `rm -rf` or eviction in a loop under running lookups and stores: hits or misses, nothing else."""
    store = KernelCache.open(str(tmp_path / "cache"))
    assert store.directory
    stop = threading.Event()

    def remove() -> None:
        evictor = KernelCache.open(str(store.directory), max_size=100)
        while not stop.is_set():
            if way == "rmtree":
                shutil.rmtree(tmp_path / "cache", ignore_errors=True)
            elif way == "evict":
                evictor.layers[0].write("something", b"x" * 200)
            else:
                KernelCache.open(str(store.directory)).clear()
            time.sleep(0.0005)

    with ThreadPoolExecutor(1) as pool:
        removal = pool.submit(remove)
        outcomes = []
        end = time.monotonic() + 0.7
        try:
            while time.monotonic() < end:
                if way == "rmtree":
                    import warnings

                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", CudaKernelsWarning)
                        found, _ = load_or_compile(job, store, lambda job: image)
                else:
                    found, _ = load_or_compile(job, store, lambda job: image)
                assert found == image
                outcomes.append(store.lookup(job))
        finally:
            stop.set()
        removal.result()
    assert outcomes
    assert all(found is None or found == image for found in outcomes)
    store.store(job, image)
    assert store.lookup(job) == image


def test_r7_gone(warm: KernelCache, job: CompileJob, image: CompiledImage) -> None:
    """A directory that was removed is a miss, without a warning, and is made again, as private as it was."""
    assert warm.directory
    mode = warm.directory.stat().st_mode
    shutil.rmtree(warm.directory)
    assert warm.lookup(job) is None
    assert load_or_compile(job, warm, lambda job: image) == (image, False)
    assert load_or_compile(job, warm, lambda job: image) == (image, True)
    assert warm.directory.stat().st_mode == mode


@posix
def test_clear(warm: KernelCache, job: CompileJob) -> None:
    """`clear` leaves nothing, odd files included, and follows no link."""
    path = entry_files(warm)[0]
    outside = path.parent.parent.parent.parent / "outside"
    outside.write_text("mine")
    (path.parent / "fifo").unlink(missing_ok=True)
    os.mkfifo(path.parent / "fifo")
    (path.parent / "link").symlink_to(outside)
    warm.clear()
    assert not entry_files(warm)
    assert outside.read_text() == "mine"
    assert warm.lookup(job) is None


# -- R8, R9 ------------------------------------------------------------------------------------------------------


def test_r8_own_bytes(tmp_path: Path, job: CompileJob, image: CompiledImage) -> None:
    """What was compiled is what is returned: nothing is read back that was just written."""
    store = KernelCache.open(str(tmp_path / "cache"))
    result, cached = load_or_compile(job, store, lambda job: image)
    assert result is image
    assert not cached


def test_r9_small_cap(tmp_path: Path, job: CompileJob, image: CompiledImage) -> None:
    """A cap smaller than an entry is harmless: misses, right bytes, and the cap is kept."""
    store = KernelCache.open(str(tmp_path / "cache"), max_size=100)
    for _ in range(3):
        assert load_or_compile(job, store, lambda job: image) == (image, False)
        assert sum(size for _, size in store.entries()) <= 100


def test_r9_least_recently_used(tmp_path: Path, job: CompileJob, image: CompiledImage) -> None:
    """Eviction takes what was not read for longest, whatever the mount does about access times."""
    store = KernelCache.open(str(tmp_path / "cache"), max_size=5000)
    for name in "abcd":
        store.layers[0].write(name, name.encode() * 1000)
        time.sleep(0.01)
    assert store.layers[0].read("a")
    time.sleep(0.01)
    store.layers[0].write("e", b"e" * 2000)
    assert {name for name in "abcde" if store.layers[0].read(name)} >= {"a", "e", "d"}
    assert store.layers[0].read("b") is None


@posix
def test_r9_clock_skew(warm: KernelCache, job: CompileJob, image: CompiledImage) -> None:
    """Time stamps of the far past and future change nothing but the order of eviction."""
    for stamp in (0, 2**33):
        for path in entry_files(warm):
            os.utime(path, (stamp, stamp))
        assert warm.lookup(job) == image
    assert not list(warm.verify())


@posix
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_r9_fork(warm: KernelCache, job: CompileJob, image: CompiledImage) -> None:
    """A cache that was opened and used before a fork works on both sides."""
    child = os.fork()
    if child == 0:
        try:
            warm.store(job, image)
            fine = warm.lookup(job) == image
            with warm.lock("x", timeout=5):
                os._exit(0 if fine else 1)
        finally:
            os._exit(2)
    assert warm.lookup(job) == image
    warm.store(job, image)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_r9_threads(tmp_path: Path, job: CompileJob, image: CompiledImage) -> None:
    """Sixteen threads on one cold key: right bytes, one compile."""
    store = KernelCache.open(str(tmp_path / "cache"))
    compiled = []

    def compile_now(job: CompileJob) -> CompiledImage:
        compiled.append(1)
        time.sleep(0.2)
        return image

    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda _: load_or_compile(job, store, compile_now), range(16)))
    assert [result == image for result, _ in results] == [True] * 16
    assert len(compiled) == 1


# -- R10 to R12 --------------------------------------------------------------------------------------------------


def test_r10_releases(
    warm: KernelCache, tree: Path, image: CompiledImage, job: CompileJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another release of this package does not see these entries, and leaves them alone."""
    monkeypatch.setattr(plan, "__version__", "999.0")
    newer = make_job(tree)
    assert newer.key != job.key
    assert warm.lookup(newer) is None
    warm.store(newer, replace(image, warnings=("of the newer",)))
    assert warm.lookup(job) == image
    found = warm.lookup(newer)
    assert found
    assert found.warnings == ("of the newer",)


def test_r10_schema(warm: KernelCache, job: CompileJob, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record of another schema is a miss."""
    monkeypatch.setattr(records, "_SCHEMA", 99)
    assert warm.lookup(job) is None


def test_r11_broken_source(tmp_path: Path) -> None:
    """A source or header that is broken while the cache is warm gives its error, every time."""
    files = {"k.cu": '#include "x.h"\n' + KERNEL, "x.h": "// fine\n"}
    store = KernelCache.open(str(tmp_path / "cache"))
    project = write(tmp_path / "project", files)
    assert not load_or_compile(make_job(project), store, compile_alone)[1]
    assert load_or_compile(make_job(project), store, compile_alone)[1]
    for label in files:
        write(project, {label: files[label] + "\nthis is no C++;\n"})
        for _ in range(3):
            with pytest.raises(CompilationError, match=f"{label}\\("):
                load_or_compile(make_job(project), store, compile_alone)
        write(project, files)
        assert load_or_compile(make_job(project), store, compile_alone)[1]


def test_r12_inert(warm: KernelCache, image: CompiledImage) -> None:
    """Entries are raw images and JSON: no pickle, nothing executable, and reading them evaluates nothing."""
    warm.hits = 1
    warm.count()
    for path in entry_files(warm):
        data = path.read_bytes()
        assert data == image.data or json.loads(data.partition(b"\n")[2])["schema"] == 1
        assert not path.stat().st_mode & 0o111
    package = Path(cache.__file__).parent
    for source in (package / "cache.py", package / "records.py", *(package / "stores").glob("*.py")):
        text = source.read_text("utf-8")
        assert not [word for word in ("pickle", "marshal", "eval(", "exec(", "shelve") if word in text], source


# -- layout, counters, facts -------------------------------------------------------------------------------------


def test_layout(tmp_path: Path) -> None:
    """Reading goes around cuda.core: its cache and ours find each other's entries under the same keys."""
    from cuda.core.utils import FileStreamProgramCache

    store = KernelCache.open(str(tmp_path / "cache"))
    theirs = FileStreamProgramCache(tmp_path / "cache")
    keys = ["plain", "reads 0123", "with/slash", "ümlaut", "x" * 5000]
    for key in keys:
        theirs[key] = key.encode()
        assert store.layers[0].read(key) == key.encode()
        assert store.layers[0].write(f"ours {key}", b"!" + key.encode())
        assert theirs[f"ours {key}"] == b"!" + key.encode()


def test_read_without_cuda(tmp_path: Path, tree: Path, warm: KernelCache) -> None:
    """A hit imports nothing of CUDA."""
    code = """
from hatch_cuda_kernels.cache import KernelCache
store = KernelCache.open(sys.argv[1])
found = [path for path, _ in store.entries()]
assert store.layers[0].read("nothing") is None
report(["cuda" in sys.modules, len(found), len(list(store.verify()))])
"""
    arguments = [str(warm.directory)]
    assert run_python(code, os.environ, TESTS, arguments=arguments).value == [False, 2, 0]


def test_counters(tmp_path: Path, job: CompileJob, image: CompiledImage) -> None:
    """Hits and misses are counted, per object and, after `count`, for all processes."""
    store = KernelCache.open(str(tmp_path / "cache"))
    load_or_compile(job, store, lambda job: image)
    load_or_compile(job, store, lambda job: image)
    load_or_compile(job, store, lambda job: image)
    assert (store.hits, store.misses) == (2, 1)
    store.count()
    assert (store.hits, store.misses) == (0, 0)
    again = KernelCache.open(str(tmp_path / "cache"))
    again.lookup(job)
    again.count()
    again.count()
    assert KernelCache.open(str(tmp_path / "cache")).totals() == (3, 1)


def test_facts(tmp_path: Path) -> None:
    """Facts are remembered between processes, and a damaged one is none."""
    store = KernelCache.open(str(tmp_path / "cache"))
    assert store.recall("a") is None
    store.remember("a", b"[75]")
    assert KernelCache.open(str(tmp_path / "cache")).recall("a") == b"[75]"
    path = entry_files(store)[0]
    path.write_bytes(path.read_bytes().replace(b"75", b"76"))
    assert store.recall("a") is None


def test_equal_images_share(tmp_path: Path, image: CompiledImage) -> None:
    """Two projects in different folders share entries, and equal images share one blob."""
    files = {"k.cu": '#include "x.h"\n' + KERNEL, "x.h": "// nothing\n"}
    store = KernelCache.open(str(tmp_path / "cache"))
    store.store(make_job(write(tmp_path / "a", files)), image)
    assert store.lookup(make_job(write(tmp_path / "deep/b", files))) == image
    store.store(make_job(write(tmp_path / "c", {**files, "x.h": "// other\n"})), image)
    blobs = [path for path in entry_files(store) if path.read_bytes() == image.data]
    assert len(blobs) == 1


# -- what belongs to others --------------------------------------------------------------------------------------

OTHERS = ["tmp/notes.txt", "entries/2026-01-01.md", "entries/ab/post.md", "statistics"]


def _of_others(folder: Path) -> dict[Path, str]:
    """Files of somebody else, a day old, where a cache keeps its own."""
    found = {folder / name: f"{name} of somebody else\n" for name in OTHERS}
    for path, text in found.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (time.time() - 90_000,) * 2)
    return found


@pytest.mark.filterwarnings("ignore::hatch_cuda_kernels.CudaKernelsWarning")
@pytest.mark.parametrize("names", [[name] for name in OTHERS] + [OTHERS])
@pytest.mark.parametrize("max_size", [None, 1000, 10**9])
def test_files_of_others(
    tmp_path: Path, job: CompileJob, image: CompiledImage, names: list[str], max_size: int | None
) -> None:
    """A folder that holds somebody's files is named in vain, or used beside them: none is changed or goes."""
    found = _of_others(tmp_path)
    for path in [path for path in found if path.relative_to(tmp_path).as_posix() not in names]:
        path.unlink()
        del found[path]
    for _ in range(2):
        with KernelCache.open(str(tmp_path), max_size=max_size) as store:
            store.lookup(job)
            store.store(job, image)
            store.lookup(job)
        with KernelCache.open(str(tmp_path), max_size=max_size) as store:
            assert store.usage()[0] <= 2
            store.clear()
    assert {path: path.read_text() for path in found} == found


def test_others_are_named(tmp_path: Path) -> None:
    """The warning says which file is in the way."""
    _of_others(tmp_path)
    with pytest.warns(CudaKernelsWarning, match=r"2026-01-01\.md is no file of a cache; name a folder of its own"):
        assert not KernelCache.open(str(tmp_path)).layers


@posix
def test_clear_follows_no_link(tmp_path: Path) -> None:
    """Where `entries` is a link nothing is removed behind it."""
    (tmp_path / "theirs/ab").mkdir(parents=True)
    kept = tmp_path / "theirs/ab" / ("0" * 62)
    kept.touch()
    (tmp_path / "cache").mkdir(mode=0o700)
    (tmp_path / "cache/entries").symlink_to(tmp_path / "theirs")
    store = KernelCache.open(str(tmp_path / "cache"))
    assert store.usage() == (0, 0)
    store.clear()
    assert kept.exists()
