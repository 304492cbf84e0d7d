# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Every place of the cache keeps bytes as cuda.core's own caches do, alone, in layers, and among processes."""

from __future__ import annotations

import functools
import os
import random
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jobs import KERNEL, TESTS, compile_alone, make_job, write
from projects import KERNEL as PROJECT_KERNEL
from projects import make_project
from support import kill_writers, run_python

from hatch_cuda_kernels import CudaKernelsWarning, errors
from hatch_cuda_kernels.cache import KernelCache
from hatch_cuda_kernels.plan import CompiledImage, CompileJob
from hatch_cuda_kernels.stores import layers, program_cache
from hatch_cuda_kernels.stores.base import Store
from hatch_cuda_kernels.stores.database import DatabaseStore
from hatch_cuda_kernels.stores.directory import DirectoryStore
from hatch_cuda_kernels.stores.layered import LayeredStore
from hatch_cuda_kernels.stores.layers import Layer
from hatch_cuda_kernels.stores.location import Location, parse_location, parse_locations
from hatch_cuda_kernels.stores.memory import MemoryStore
from hatch_cuda_kernels.stores.sealing import DamagedError, add_seal, check_seal

pytestmark = pytest.mark.usefixtures("warn_anew")
posix = pytest.mark.skipif(os.name != "posix", reason="POSIX file system")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with one kernel."""
    return write(tmp_path_factory.mktemp("project"), {"k.cu": KERNEL})


@pytest.fixture(scope="module")
def job(tree: Path) -> CompileJob:
    """Its job."""
    return make_job(tree)


@pytest.fixture(scope="module")
def image(job: CompileJob) -> CompiledImage:
    """What a compile of it gives."""
    return compile_alone(job)


MAKERS: dict[str, Callable[[Path], Store]] = {
    "directory": lambda path: DirectoryStore(path / "folder"),
    "sqlite": lambda path: DatabaseStore(path / "cache.db"),
    "memory": lambda path: MemoryStore(),
    "layers": lambda path: LayeredStore([Layer(MemoryStore()), Layer(DatabaseStore(path / "cache.db"))]),
}


@pytest.fixture(params=MAKERS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Each place of this machine."""
    with MAKERS[request.param](tmp_path) as store:
        yield store


class TestProgramCacheResource:
    """What cuda.core promises of its caches holds for each place."""

    def test_mapping(self, store: Store) -> None:
        """Bytes in, bytes out; text and bytes are one key; a missing key is a KeyError."""
        assert store.get("k") is None
        assert store.get("k", b"other") == b"other"
        with pytest.raises(KeyError):
            store["k"]
        store["k"] = b"one"
        assert store["k"] == store[b"k"] == store.get("k") == b"one"
        store[b"\xff\x00"] = bytearray(b"two")
        store["ü" * 3000] = memoryview(b"")
        assert (store[b"\xff\x00"], store["ü" * 3000], len(store)) == (b"two", b"", 3)
        store["k"] = b"anew"
        assert (store["k"], len(store)) == (b"anew", 3)
        del store["k"]
        assert store.get("k") is None
        with pytest.raises(KeyError):
            del store["k"]
        store.clear()
        assert (len(store), store.get(b"\xff\x00")) == (0, None)

    def test_update(self, store: Store) -> None:
        """`update` takes a mapping or pairs; what came before a failure stays."""
        store.update({"a": b"1"})
        with pytest.raises(TypeError):
            store.update([("b", b"2"), ("c", 3), ("d", b"4")])
        assert [store.get(key) for key in "abcd"] == [b"1", b"2", None, None]

    @pytest.mark.parametrize("key", [1, None, ("a",), 1.5])
    def test_keys(self, store: Store, key: Any) -> None:
        """A key is bytes or text; anything else is a TypeError, not somebody else's entry."""
        with pytest.raises(TypeError):
            key_of = MemoryStore()
            key_of[key] = b"x"
        if not isinstance(store, LayeredStore):
            with pytest.raises(TypeError):
                store[key] = b"x"

    def test_no_contains(self, store: Store) -> None:
        """There is no `__contains__` to race with."""
        assert not hasattr(type(store), "__contains__")

    def test_object_code(self, store: Store, image: CompiledImage, tmp_path: Path) -> None:
        """An ObjectCode gives its bytes; one that lies in a file is read when it is stored."""
        from cuda.core import ObjectCode

        path = tmp_path / "k.cubin"
        path.write_bytes(image.data)
        store["file"] = ObjectCode.from_cubin(str(path))
        path.unlink()
        store["memory"] = ObjectCode.from_cubin(image.data)
        assert store["file"] == store["memory"] == image.data

    def test_missing_file(self, store: Store, tmp_path: Path) -> None:
        """An ObjectCode whose file is gone is not stored."""
        from cuda.core import ObjectCode

        with pytest.raises(FileNotFoundError):
            store["gone"] = ObjectCode.from_cubin(str(tmp_path / "gone.cubin"))
        assert store.get("gone") is None

    def test_threads(self, store: Store) -> None:
        """Eight threads read and write at once."""

        def work(number: int) -> None:
            for turn in range(15):
                store[f"k{turn % 5}"] = f"{turn % 5}".encode() * 1000
                data = store.get(f"k{(turn + number) % 5}")
                assert data is None or data == f"{(turn + number) % 5}".encode() * 1000

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(store) == 5


PLACES = ["folder", "sqlite:cache.db", "memory:"]
SOURCE = 'extern "C" __global__ void k(int* p) { *p = 1; }'


class TestAlone:
    """`program_cache` gives what `Program.compile(cache=...)` takes."""

    @pytest.mark.parametrize("place", PLACES)
    def test_compile(self, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """cuda.core compiles through each place: a miss stores, a hit reads."""
        from cuda.core import Program, ProgramOptions
        from cuda.core.utils import ProgramCacheResource

        monkeypatch.chdir(tmp_path)
        with program_cache(place) as cache:
            assert isinstance(cache, ProgramCacheResource)
            codes = []
            for _ in range(2):
                program = Program(SOURCE, "c++", ProgramOptions(arch="sm_80"))
                codes.append(bytes(program.compile("cubin", cache=cache).code))
            counts = cache.layers[0].take()
            assert codes[0] == codes[1]
            assert (counts.bytes_written, counts.bytes_read, counts.errors) == (len(codes[0]), len(codes[0]), 0)

    def test_with_theirs(self, tmp_path: Path) -> None:
        """cuda.core's own classes stand in layers beside ours, above and below."""
        from cuda.core.utils import FileStreamProgramCache, InMemoryProgramCache

        memory, files = InMemoryProgramCache(), FileStreamProgramCache(tmp_path / "theirs")
        with program_cache(memory, f"sqlite:{tmp_path}/ours.db", files) as cache:
            files["k"] = b"theirs"
            assert cache["k"] == b"theirs"
            assert memory["k"] == b"theirs"
            assert [layer.store.get("k") for layer in cache.layers] == [b"theirs"] * 3

    def test_their_folder(self, tmp_path: Path) -> None:
        """Our folder and cuda.core's are one layout."""
        from cuda.core.utils import FileStreamProgramCache

        FileStreamProgramCache(tmp_path)["k"] = b"theirs"
        with program_cache(str(tmp_path)) as cache:
            assert cache["k"] == b"theirs"
            cache["j"] = b"ours"
        assert FileStreamProgramCache(tmp_path)["j"] == b"ours"

    def test_misuse(self) -> None:
        """What is neither a spelling nor a cache is refused."""
        with pytest.raises(TypeError, match="ProgramCacheResource"):
            program_cache(3)
        with pytest.raises(ValueError, match=r"ftp:// is no place"):
            program_cache("ftp://example.org/x")

    def test_failures_are_warnings(self, tmp_path: Path) -> None:
        """A place that fails costs a warning and a miss, never the compile."""

        class Broken(MemoryStore):
            name = "broken"

            def get(self, key: bytes | str, default: bytes | None = None) -> bytes | None:
                raise RuntimeError("no\nluck")

            def __setitem__(self, key: bytes | str, value: Any) -> None:
                raise MemoryError

        cache = LayeredStore([Layer(Broken()), Layer(MemoryStore())])
        with pytest.warns(CudaKernelsWarning) as caught:
            cache["k"] = b"x"
            assert cache["k"] == b"x"
        assert {str(warning.message) for warning in caught} == {
            "the compile cache at broken cannot be written (MemoryError); going on without it",
            "the compile cache at broken cannot be read (no); going on without it",
        }


class TestMemory:
    """The memory of the process, above another place."""

    def test_repeated_reads(self, tmp_path: Path, job: CompileJob, image: CompiledImage) -> None:
        """Repeated look-ups touch no disk: they hit when it is gone. Clearing memory leaves the disk alone."""
        folder = tmp_path / "folder"
        KernelCache.open(str(folder)).store(job, image)
        cache = KernelCache.open(["memory:", str(folder)])
        assert cache.lookup(job) == image
        moved = folder.rename(tmp_path / "moved")
        assert cache.lookup(job) == image
        assert not folder.exists()
        cache.layers[0].store.clear()
        assert cache.lookup(job) is None
        moved.rename(folder)
        assert cache.lookup(job) == image

    def test_order(self) -> None:
        """The least recently used goes first, and the cap holds; what is larger than the cap is not kept."""
        store = MemoryStore(max_size=30)
        for key in "abc":
            store[key] = key.encode() * 10
        assert store["a"]
        store["d"] = b"d" * 10
        assert [key for key in "abcd" if store.get(key)] == ["a", "c", "d"]
        store["e"] = b"e" * 31
        assert store.get("e") is None
        store["f"] = b"f" * 30
        assert (store["f"], len(store)) == (b"f" * 30, 1)


class TestDatabase:
    """One file of SQLite."""

    def test_strict_order(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Against a model, with a clock that runs backwards: exactly the least recently used entries go."""
        monkeypatch.setattr(time, "time", lambda: -1.0)
        overhead = len(add_seal(b"", b"", None))
        store, model = DatabaseStore(tmp_path / "c.db", max_size=10 * (100 + overhead)), dict[str, bytes]()
        draw = random.Random(3)
        for _ in range(300):
            key = f"k{draw.randrange(20)}"
            if draw.random() < 0.5:
                assert store.get(key) == model.get(key)
                if key in model:
                    model[key] = model.pop(key)
            else:
                model.pop(key, None)
                model[key] = store_value = os.urandom(100)
                store[key] = store_value
                while len(model) > 10:
                    del model[next(iter(model))]
        assert {key: store.get(key) for key in model} == model
        assert len(store) == len(model)
        store.close()

    def test_hard_cap(self, tmp_path: Path) -> None:
        """Whatever the sizes, the entries never exceed the cap, and the file stays near it."""
        draw, store = random.Random(4), DatabaseStore(tmp_path / "c.db", max_size=200_000)
        for number in range(200):
            store[f"k{number}"] = draw.randbytes(draw.choice([10, 1000, 30_000, 250_000]))
            assert store.usage()[1] <= 200_000
        store.close()
        assert (tmp_path / "c.db").stat().st_size < 400_000

    @pytest.mark.parametrize("damage", ["garbage", "truncated", "header", "middle", "table", "empty"])
    def test_damaged(self, tmp_path: Path, damage: str) -> None:
        """A damaged file is moved aside, or the entry is a miss; nothing wrong comes out, and it works anew."""
        path = tmp_path / "c.db"
        entries = {f"k{number}": os.urandom(3000) for number in range(50)}
        with DatabaseStore(path) as store:
            store.update(entries.items())
        data = bytearray(path.read_bytes())
        if damage == "table":
            connection = sqlite3.connect(path)
            connection.execute("DROP TABLE entries")
            connection.close()
        elif damage == "header":
            path.write_bytes(bytes(100) + data[100:])
        elif damage == "middle":
            for offset in range(4096, len(data), 97):
                data[offset] ^= 0x55
            path.write_bytes(data)
        else:
            path.write_bytes({"garbage": b"no database" * 1000, "truncated": bytes(data[:9000]), "empty": b""}[damage])
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CudaKernelsWarning)
            layer = Layer(DatabaseStore(path))
            found = {key: layer.read(key) for key in entries}
        assert all(data is None or data == entries[key] for key, data in found.items())
        assert sum(data is None for data in found.values()) > 10
        assert layer.write("k", b"anew")
        assert layer.read("k") == b"anew"
        assert bool(list(tmp_path.glob("c.db.damaged"))) == (damage != "empty")
        layer.close()

    @pytest.mark.parametrize("kept", [100, 4096, 10000])
    def test_damaged_without_its_state(self, tmp_path: Path, kept: int) -> None:
        """A database that came here alone, as from a CI cache, is known by its own mark; of the damaged one stays."""
        path = tmp_path / "c.db"
        for _ in range(2):
            with DatabaseStore(path) as store:
                store.update((f"k{number}", os.urandom(3000)) for number in range(50))
            shutil.rmtree(store.state)
            path.write_bytes(path.read_bytes()[:kept])
            with pytest.warns(CudaKernelsWarning, match=r"c\.db was damaged and is begun anew") as told:
                layer = Layer(DatabaseStore(path))
                assert layer.write("k", b"anew") or layer.write("k", b"anew")
            assert layer.read("k") == b"anew"
            layer.close()
            errors._warned.clear()
        assert [each.name for each in tmp_path.glob("c.db.damaged*") if each.suffix == ".damaged"] == ["c.db.damaged"]
        assert len(told) == 1

    def test_any_byte(self, tmp_path: Path) -> None:
        """A byte flipped anywhere in the file never gives wrong bytes, nor an exception."""
        path, draw = tmp_path / "c.db", random.Random(5)
        entries = {f"k{number}": os.urandom(2000) for number in range(8)}
        with DatabaseStore(path) as store:
            store.update(entries.items())
        good = path.read_bytes()
        for _ in range(60):
            for leftover in tmp_path.iterdir():
                if leftover.is_file():
                    leftover.unlink()
            offset = draw.randrange(len(good))
            path.write_bytes(good[:offset] + bytes([good[offset] ^ 1 << draw.randrange(8)]) + good[offset + 1 :])
            import warnings

            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CudaKernelsWarning)
                try:
                    layer = Layer(DatabaseStore(path))
                except OSError:  # the mark that it is ours was hit
                    continue
                for key, data in entries.items():
                    assert layer.read(key) in (None, data), offset
                layer.close()

    def test_not_ours(self, tmp_path: Path) -> None:
        """Another program's database is left as it is."""
        path = tmp_path / "other.db"
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE precious (x)")
        connection.commit()
        connection.close()
        before = path.read_bytes()
        with pytest.warns(CudaKernelsWarning, match="a database of something else"):
            assert KernelCache.open(f"sqlite:{path}").layers == ()
        assert path.read_bytes() == before

    @pytest.mark.parametrize("content", [b"precious", b"SQLite format 3\0" + bytes(range(256)) * 40])
    def test_no_database(self, tmp_path: Path, content: bytes) -> None:
        """A file that is something else, or somebody's damaged database, stays as and where it is."""
        path = tmp_path / "kernel.cu"
        path.write_bytes(content)
        with pytest.warns(CudaKernelsWarning, match="remove it, or name another"):
            assert KernelCache.open(f"sqlite:{path}").layers == ()
        assert path.read_bytes() == content
        assert not list(tmp_path.glob("*damaged*"))

    @posix
    def test_nowhere(self, tmp_path: Path) -> None:
        """A place where no file can be is told at once."""
        begin = time.monotonic()
        with pytest.warns(CudaKernelsWarning, match="cannot be opened"):
            assert KernelCache.open("sqlite:/proc/x.db").layers == ()
        with pytest.warns(CudaKernelsWarning, match="cannot be opened"):
            assert KernelCache.open(f"read:sqlite:{tmp_path}/missing.db").layers == ()
        assert time.monotonic() - begin < 5
        assert not list(tmp_path.iterdir())

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root, to be another user")
    def test_read_only_layer(self, tmp_path: Path, job: CompileJob, image: CompiledImage) -> None:
        """A database of root's serves a user who may write nothing there."""
        folder = tmp_path / "layer"
        with KernelCache.open(f"sqlite:{folder}/c.db") as cache:
            cache.store(job, image)
        for path in (tmp_path, *tmp_path.parents):
            if path != Path("/"):
                path.chmod(path.stat().st_mode | 0o055)
        folder.chmod(0o755)
        (folder / "c.db").chmod(0o644)
        code = """
import filelock, sqlite3
from hatch_cuda_kernels.stores import database, opening, location, layered, memory
os.setgid(65534); os.setuid(65534)
layer, = opening.open_layers([location.parse_location("read:sqlite:" + sys.argv[1])])
report([len(layer.read(sys.argv[2]) or b""), layer.write("k", b"x"), caught])
"""
        arguments = [str(folder / "c.db"), f"blob {image.sha256}"]
        assert run_python(code, os.environ, TESTS, arguments=arguments).value == [len(image.data), False, []]

    @posix
    @pytest.mark.parametrize("kind", ["fifo", "link", "folder"])
    @pytest.mark.timeout(20)
    def test_kinds(self, tmp_path: Path, kind: str) -> None:
        """A FIFO, a link or a folder in its place is not opened."""
        path = tmp_path / "c.db"
        if kind == "fifo":
            os.mkfifo(path, 0o600)
        elif kind == "link":
            (tmp_path / "real").touch(0o600)
            path.symlink_to("real")
        else:
            path.mkdir()
        with pytest.warns(CudaKernelsWarning, match="cannot be opened"):
            assert KernelCache.open(f"sqlite:{path}").layers == ()

    @posix
    def test_private(self, tmp_path: Path) -> None:
        """Nobody else may read the file, whatever the umask, and one that others could write to is not believed."""
        before = os.umask(0)
        try:
            DatabaseStore(tmp_path / "c.db").close()
        finally:
            os.umask(before)
        assert (tmp_path / "c.db").stat().st_mode & 0o777 == 0o600
        (tmp_path / "c.db").chmod(0o666)
        with pytest.warns(CudaKernelsWarning, match="can be written by others"):
            assert KernelCache.open(f"sqlite:{tmp_path}/c.db").layers == ()

    @posix
    @pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
    def test_fork(self, tmp_path: Path) -> None:
        """A database that was opened before a fork works on both sides."""
        store = DatabaseStore(tmp_path / "c.db")
        store["k"] = b"parent"
        child = os.fork()
        if child == 0:
            try:
                fine = store["k"] == b"parent"
                store["j"] = b"child"
                os._exit(0 if fine else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert (store["k"], store["j"]) == (b"parent", b"child")
        store.close()

    def test_sqlite_only_when_used(self, tmp_path: Path) -> None:
        """`sqlite3` is imported by nobody who does not use it."""
        code = """
from hatch_cuda_kernels.cache import KernelCache
KernelCache.open([sys.argv[1], "memory:"]).recall("x")
report([name for name in ("sqlite3", "opendal", "asyncio", "concurrent.futures", "cuda") if name in sys.modules])
"""
        assert run_python(code, os.environ, TESTS, arguments=[str(tmp_path / "folder")]).value == []


class TestSeal:
    """An entry carries its key and its digest."""

    def test_round_trip(self) -> None:
        """What was sealed comes back, signed or not; the seal stands behind the bytes."""
        for secret in (None, b"secret"):
            for data in (b"", b"x", bytes(range(256)) * 100):
                entry = add_seal(b"key", data, secret)
                assert entry.startswith(data)
                assert check_seal(b"key", entry, secret) == data
                assert check_seal(b"key", entry, None) == data

    @pytest.mark.parametrize("secret", [None, b"secret"])
    def test_any_change(self, secret: bytes | None) -> None:
        """Any byte changed, cut or added, or another key, is found."""
        entry = add_seal(b"key", b"some bytes", secret)
        damaged = [entry[:offset] + bytes([entry[offset] ^ 1]) + entry[offset + 1 :] for offset in range(len(entry))]
        damaged += [entry[:length] for length in range(len(entry))] + [entry + b"\n", b"x" + entry]
        for found in damaged:
            with pytest.raises(DamagedError):
                check_seal(b"key", found, secret or (b"x" if found[-2:-1] != b"-" else None))
        with pytest.raises(DamagedError):
            check_seal(b"other", entry, secret)

    def test_forged(self) -> None:
        """Without the secret nobody makes an entry that is believed: unsigned, wrongly signed, or for another key."""
        other = add_seal(b"other", b"evil", b"secret")
        forged = add_seal(b"key", b"evil", None)
        spliced = forged[:-66] + other[-66:]
        for entry in (forged, add_seal(b"key", b"evil", b"guess"), spliced):
            with pytest.raises(DamagedError, match="not signed"):
                check_seal(b"key", entry, b"secret")


class TestLocation:
    """How places are spelled."""

    @pytest.mark.parametrize(
        ("text", "location"),
        [
            ("/a/b c", Location("directory", "/a/b c")),
            ("C:\\cache", Location("directory", "C:\\cache")),
            (" read: ~/x ", Location("directory", "~/x", False)),
            ("sqlite:a.db", Location("sqlite", "a.db")),
            ("read:sqlite:/a.db", Location("sqlite", "/a.db", False)),
            ("memory:", Location("memory", "")),
            ("memory:64MB", Location("memory", "64MB")),
            ("s3://b/p?region=eu-west-1", Location("s3", "s3://b/p?region=eu-west-1")),
            ("read:https://host/p", Location("https", "https://host/p", False)),
            ("REDIS://host", Location("redis", "REDIS://host")),
        ],
    )
    def test_spellings(self, text: str, location: Location) -> None:
        """Each spelling."""
        assert parse_location(text) == location

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "expected a folder"),
            ("read:", "expected a folder"),
            ("read:read:x", "has read: twice"),
            ("read: read:sqlite:x", "has read: twice"),
            ("a\0b", "expected a folder"),
            ("sqlite:", "names no file"),
            ("memory:lots", "expected a size"),
            ("s4://b", "s4:// is no place for a cache; expected a folder"),
            ("ftp://host", "ftp:// is no place for a cache; expected a folder, sqlite:FILE"),
            ("s3:/b/p", "s3: is no place for a cache; expected a folder"),
            ("sqllite:c.db", "sqllite: is no place for a cache; expected a folder, sqlite:FILE"),
            ("SQLITE:c.db", "a folder of that name is ./SQLITE:c.db"),
            ("read:nonsense:foo", "a folder of that name is ./nonsense:foo"),
            ("$HOME/c", "$HOME is no place for a cache"),
            ("0", "0 is no place for a cache"),
            ("s3:///p", "names no bucket"),
            ("redis://", "names no host"),
            ("redis://host:port", "redis://host:port: "),
            ("s3://b?colour=red", "unknown colour; endpoint, region may follow"),
            ("https://user:hunter2@host/p?x=1", "https://host/p?x=1: unknown x; nothing may follow"),
            ("http://[::1", "http://"),
            ("redis://host/main", "redis://host/main: what follows redis://HOST/ is the number of a database"),
        ],
    )
    def test_mistakes(self, text: str, message: str) -> None:
        """Each mistake says what would be right, and shows no password."""
        with pytest.raises(ValueError) as caught:
            parse_location(text)
        assert message in str(caught.value)
        assert "hunter2" not in str(caught.value)

    @pytest.mark.parametrize("text", ["./s3:", "C:/kernels", "a/b:c", "0/1", "10", "a$b"])
    def test_folders(self, text: str) -> None:
        """Names that look like it are those of folders."""
        assert parse_location(text) == Location("directory", text)

    @pytest.mark.parametrize(
        "text", ["~nobody-of-that-name/c", "read:~nobody-of-that-name/c", "sqlite:~nobody-of-that-name/c.db"]
    )
    def test_no_home(self, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Where no home is known the place is warned of, as others that cannot be used, and nothing is made."""
        monkeypatch.chdir(tmp_path)
        with pytest.warns(CudaKernelsWarning, match="no home directory is known"):
            assert not KernelCache.open([parse_location(text).at(tmp_path)]).layers
        assert not list(tmp_path.iterdir())

    def test_several(self) -> None:
        """A text with commas, or a list, in which a comma is a part of a name."""
        assert [place.value for place in parse_locations("a, b,,sqlite:c")] == ["a", "b", "c"]
        assert [place.value for place in parse_locations(["a,b", "c"])] == ["a,b", "c"]
        with pytest.raises(ValueError, match="found nothing"):
            parse_locations(",")
        with pytest.raises(ValueError, match="found nothing"):
            parse_locations([])

    def test_no_password(self) -> None:
        """For people, a URL is without its password."""
        assert str(parse_location("redis://:hunter2@host:1/0")) == "redis://host:1/0"
        assert str(parse_location("https://user:p%40ss@host/x")) == "https://host/x"
        assert str(Location("redis", "redis://:hun/ter2@host")) == "redis://host"
        assert str(parse_location("s3://bucket/a@b")) == "s3://bucket/a@b"


class Slow(MemoryStore):
    """A store on another machine that takes nothing before it is told to."""

    remote = True

    def __init__(self) -> None:
        super().__init__()
        self.ready = threading.Event()

    def __setitem__(self, key: bytes | str, value: Any) -> None:
        self.ready.wait(30)
        super().__setitem__(key, value)


class TestBehind:
    def test_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """What waits to be written to a remote is bounded: one that takes nothing is left alone, and it is said."""
        monkeypatch.setattr(layers, "_MOST_BEHIND", 12)
        monkeypatch.setattr(layers, "_STALL_SECONDS", 0.05)
        store = Slow()
        layer = Layer(store)
        for number in range(100):
            layer.behind(functools.partial(layer.write, str(number), b"x"))
        assert layer.pending == 12 and not layer.alive
        store.ready.set()
        with pytest.warns(CudaKernelsWarning, match="too slow to write to; going on without it"):
            layer.flush()
        assert 0 < len(store) < 12

    def test_all_arrives(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A remote that keeps up gets everything, however much it is."""
        monkeypatch.setattr(layers, "_MOST_BEHIND", 12)
        store = Slow()
        store.ready.set()
        layer = Layer(store)
        for number in range(200):
            layer.behind(functools.partial(layer.write, str(number), b"x"))
            assert layer.pending <= 12
        layer.flush()
        assert len(store) == 200


class TestLayers:
    """A writable place above others."""

    def test_read_only(self, tmp_path: Path, job: CompileJob, image: CompiledImage) -> None:
        """What a read-only layer has is kept above it, and nothing is written to it; it is not even made."""
        system = tmp_path / "system"
        KernelCache.open(str(system)).store(job, image)
        before = sorted(system.rglob("*"))
        cache = KernelCache.open([str(tmp_path / "user"), f"read:{system}"])
        assert cache.lookup(job) == image
        cache.remember("fact", b"x")
        assert cache.layers[0].store.get(f"blob {image.sha256}") == image.data
        assert sorted(system.rglob("*")) == before
        with pytest.warns(CudaKernelsWarning, match="cannot be opened"):
            KernelCache.open(f"read:{tmp_path}/missing")
        assert not (tmp_path / "missing").exists()

    @pytest.mark.parametrize("kind", ["folder", "sqlite:"])
    def test_damage_above(self, tmp_path: Path, job: CompileJob, image: CompiledImage, kind: str) -> None:
        """An entry that is damaged in an upper layer is served by the lower one, and repaired."""
        places = [f"{kind}{tmp_path}/upper" if kind == "sqlite:" else f"{tmp_path}/upper", f"{tmp_path}/lower"]
        KernelCache.open(places).store(job, image)
        for key in (f"compiles {job.key}", f"blob {image.sha256}"):
            cache = KernelCache.open(places)
            cache.layers[0].store[key] = b"damaged"
            assert cache.lookup(job) == image
            assert [layer.take().hits for layer in cache.layers] == [0, 1]
            assert cache.lookup(job) == image
            assert [layer.take().hits for layer in cache.layers] == [1, 0]

    def test_union_of_reads(self, tmp_path: Path) -> None:
        """What two machines know of a job adds up: a set of headers that only the lower layer has seen is a hit."""
        files = {"k.cu": '#include "x.h"\n' + KERNEL, "x.h": "// one\n"}
        one, two = write(tmp_path / "one", files), write(tmp_path / "two", {**files, "x.h": "// two\n"})
        jobs = make_job(one), make_job(two)
        assert jobs[0].key == jobs[1].key
        images = [compile_alone(job) for job in jobs]
        KernelCache.open(f"{tmp_path}/upper").store(jobs[0], images[0])
        KernelCache.open(f"{tmp_path}/lower").store(jobs[1], images[1])
        cache = KernelCache.open([f"{tmp_path}/upper", f"{tmp_path}/lower"])
        assert cache.lookup_all(jobs) == dict(zip(jobs, images, strict=True))
        assert KernelCache.open(f"{tmp_path}/upper").lookup_all(jobs) == dict(zip(jobs, images, strict=True))

    def test_counted(self, tmp_path: Path, job: CompileJob, image: CompiledImage) -> None:
        """Each layer's hits, misses and bytes are counted over processes."""
        places = [f"sqlite:{tmp_path}/upper.db", f"{tmp_path}/lower"]
        KernelCache.open(places[1]).store(job, image)
        for _ in range(2):
            with KernelCache.open(places) as cache:
                cache.lookup(job)
        with KernelCache.open(places) as cache:
            totals = cache.layer_totals()
            assert cache.totals() == (2, 0)
        upper, lower = (totals[layer.name] for layer in cache.layers)
        assert (upper.hits, upper.misses, lower.hits, lower.misses) == (1, 1, 1, 0)
        assert upper.bytes_written > len(image.data) < lower.bytes_read
        assert lower.bytes_written == upper.errors == lower.errors == 0

    def test_locked(self, tmp_path: Path) -> None:
        """A lock is held among processes beside a database, too."""
        one, two = (KernelCache.open(f"sqlite:{tmp_path}/c.db") for _ in range(2))
        begin = time.monotonic()
        with one.lock("x"), two.lock("x", timeout=0.3):
            assert time.monotonic() - begin > 0.2


@pytest.mark.slow
def test_same_wheel(tmp_path: Path) -> None:
    """A build gives the same wheel through every place, cold and warm."""
    files = {"demo/a.cu": PROJECT_KERNEL, "demo/b.cu": '#include "x.h"\n' + PROJECT_KERNEL, "demo/x.h": "// nothing\n"}
    (tmp_path / "system").mkdir()
    places = ["0", "folder", "sqlite:c.db", "memory:", f"memory:,sqlite:d.db,read:{tmp_path}/system"]
    wheels = set()
    for number, place in enumerate(places):
        for state in ("cold", "warm"):
            project = make_project(tmp_path / str(number), 'archs = ["sm_80", "compute_80"]', files)
            run = project.build(env={"HATCH_CUDA_KERNELS_CACHE": place})
            assert run.status == 0, run.output
            assert run.report is not None
            assert run.report["compiled"] == (0 if state == "warm" and ("folder" in place or "sqlite" in place) else 4)
            wheels.add(project.wheel().read_bytes())
    assert len(wheels) == 1


@pytest.mark.parametrize("rounds", [2, pytest.param(20, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", [pytest.param("folder", marks=pytest.mark.slow), "sqlite"])
def test_killed(tmp_path: Path, kind: str, rounds: int) -> None:
    """Processes that read and write one place are killed at random: nothing wrong, no warning, and all works on."""
    place = str(tmp_path / "folder") if kind == "folder" else f"sqlite:{tmp_path}/c.db"
    draw = random.Random(rounds)
    for turn in range(rounds):
        delays = [draw.uniform(0, 0.1) for _ in range(8 if rounds > 2 else 4)]
        assert kill_writers(place, delays, seed=turn * 8) == ""
    with program_cache(place) as cache:
        found = {f"k{number}": cache.get(f"k{number}") for number in range(40)}
        kept = {key: data for key, data in found.items() if data is not None}
        assert kept
        assert all(data == key.encode() * (len(data) // len(key)) for key, data in kept.items())
        cache["k"] = b"works"
        assert cache["k"] == b"works"
    if kind == "sqlite":
        connection = sqlite3.connect(tmp_path / "c.db")
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.close()


@pytest.mark.parametrize("kind", ["folder", "sqlite"])
def test_removed_while_used(tmp_path: Path, kind: str) -> None:
    """Everything below is removed between uses: misses, and it works anew."""
    place = str(tmp_path / "in/folder") if kind == "folder" else f"sqlite:{tmp_path}/in/c.db"
    with program_cache(place) as cache:
        cache["k"] = b"one"
    shutil.rmtree(tmp_path / "in")
    with program_cache(place) as cache:
        assert cache.get("k") is None
        cache["k"] = b"two"
        assert cache["k"] == b"two"
