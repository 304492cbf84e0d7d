# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""A cache on another machine serves every build and fails none, whatever that machine does."""

from __future__ import annotations

import contextlib
import os
import random
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from jobs import KERNEL, TESTS, compile_alone, make_job, write
from projects import make_project
from servers import SERVERS, Served, free_port, odd_server
from support import kill_writers, run_python

from hatch_cuda_kernels import CudaKernelsWarning, errors
from hatch_cuda_kernels.cache import KernelCache
from hatch_cuda_kernels.plan import CompiledImage, CompileJob
from hatch_cuda_kernels.stores import layers, program_cache, remote
from hatch_cuda_kernels.stores.base import key_digest
from hatch_cuda_kernels.stores.layers import Layer
from hatch_cuda_kernels.stores.sealing import SECRET_VARIABLE

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("warn_anew")]
KERNELS = 6


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[CompileJob, CompiledImage]:
    """Some jobs with their images."""
    root = tmp_path_factory.mktemp("project")
    texts = {f"k{number}.cu": KERNEL.replace("1", str(number)) for number in range(KERNELS)}
    jobs = [make_job(write(root, texts), label) for label in texts]
    return {job: compile_alone(job) for job in jobs}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time limits of a tenth, so that what waits for them is soon over. Where an answer is wanted, a busy machine may
    be slower than that."""
    monkeypatch.setattr(remote, "_SECONDS", 0.3)
    monkeypatch.setattr(remote, "_WHOLE_SECONDS", 1.5)
    monkeypatch.setattr(layers, "_STALL_SECONDS", 0.2)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Callable[[str], None], Callable[[], list[str]]]]:
    """A WebDAV server that behaves as it is told."""
    (tmp_path / "server").mkdir()
    with odd_server(tmp_path / "server") as found:
        yield found


Server = tuple[str, Callable[[str], None], Callable[[], list[str]]]


def fill(places: Sequence[str] | str, pairs: dict[CompileJob, CompiledImage]) -> None:
    """Store everything, and wait until it is there."""
    with KernelCache.open(places) as cache:
        for job, image in pairs.items():
            cache.store(job, image)


def miss_and_fill(places: Sequence[str], pairs: dict[CompileJob, CompiledImage]) -> KernelCache:
    """What a build does that finds nothing."""
    with KernelCache.open(places) as cache:
        assert cache.lookup_all(list(pairs)) == {}
        for job, image in pairs.items():
            cache.store(job, image)
    return cache


class TestServed:
    """With a remote that works."""

    def test_warm(self, tmp_path: Path, server: Server, pairs: dict[CompileJob, CompiledImage]) -> None:
        """What one machine stored, another has; and keeps, so that it asks for nothing a second time."""
        url, _, requests = server
        fill([f"{tmp_path}/one", url], pairs)
        with KernelCache.open([f"{tmp_path}/two", url]) as cache:
            assert cache.lookup_all(list(pairs)) == pairs
            assert [layer.take().hits for layer in cache.layers] == [0, KERNELS]
        before = len(requests())
        with KernelCache.open([f"{tmp_path}/two", url]) as cache:
            assert cache.lookup_all(list(pairs)) == pairs
        assert len(requests()) == before
        assert KernelCache.open(f"{tmp_path}/two").lookup_all(list(pairs)) == pairs

    def test_requests(self, tmp_path: Path, server: Server, pairs: dict[CompileJob, CompiledImage]) -> None:
        """A miss is one request, a hit two."""
        url, _, requests = server
        job, image = next(iter(pairs.items()))
        with KernelCache.open([f"{tmp_path}/one", url]) as cache:
            assert cache.lookup(job) is None
            assert [line.split()[1] for line in requests()] == ["GET"]
            cache.store(job, image)
        before = len(requests())
        with KernelCache.open([f"{tmp_path}/two", url]) as cache:
            assert cache.lookup(job) == image
        assert [line.split()[1] for line in requests()[before:]] == ["GET"] * 2

    def test_pending(self, tmp_path: Path, server: Server, pairs: dict[CompileJob, CompiledImage]) -> None:
        """What is still on its way is told, and none is left once the cache is closed."""
        server[1]("slow")
        with KernelCache.open([f"{tmp_path}/one", server[0]]) as cache:
            for job, image in pairs.items():
                cache.store(job, image)
            ((place, count),) = cache.pending()
            assert (place, 0 < count <= KERNELS) == (server[0], True)
        assert not list(cache.pending())

    def test_read_only(self, tmp_path: Path, server: Server, pairs: dict[CompileJob, CompiledImage]) -> None:
        """Behind `read:` nothing is ever written, and what is there still serves."""
        url, _, requests = server
        fill([f"{tmp_path}/one", f"read:{url}"], pairs)
        assert requests() == []
        fill([f"{tmp_path}/one", url], pairs)
        before = len(requests())
        with KernelCache.open([f"{tmp_path}/two", f"read:{url}"]) as cache:
            assert cache.lookup_all(list(pairs)) == pairs
            cache.store(*next(iter(pairs.items())))
        assert {line.split()[1] for line in requests()[before:]} == {"GET"}

    def test_default_folder_before(
        self, tmp_path: Path, server: Server, pairs: dict[CompileJob, CompiledImage], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A remote alone stands behind the user cache directory, in the environment as in the table."""
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        monkeypatch.setenv("HATCH_CUDA_KERNELS_CACHE", server[0])
        with KernelCache.from_environment() as cache:
            assert [layer.name for layer in cache.layers] == [f"{tmp_path}/hatch-cuda-kernels", server[0]]

    def test_no_facts(self, tmp_path: Path, server: Server) -> None:
        """Facts of this machine stay on it."""
        with KernelCache.open([f"{tmp_path}/one", server[0]]) as cache:
            cache.remember("toolchain", b"x")
            assert cache.recall("other") is None
        assert server[2]() == []

    def test_many_at_once(self, tmp_path: Path, server: Server, pairs: dict[CompileJob, CompiledImage]) -> None:
        """A remote is asked for many images at a time: requests overlap."""
        url, behave, _ = server
        fill([f"{tmp_path}/one", url], pairs)
        behave("slow")
        begin = time.monotonic()
        with KernelCache.open([f"{tmp_path}/two", url]) as cache:
            assert cache.lookup_all(list(pairs)) == pairs
        assert time.monotonic() - begin < KERNELS * 3 * 0.05

    def test_alone(self, server: Server) -> None:
        """cuda.core compiles through it: a second process would find what the first compiled."""
        from cuda.core import Program, ProgramOptions

        codes = []
        for _ in range(2):
            with program_cache(server[0]) as cache:
                program = Program(KERNEL, "c++", ProgramOptions(arch="sm_80"))
                codes.append(bytes(program.compile("cubin", cache=cache).code))
                cache.layers[0].flush()
                counts = cache.layers[0].take()
        assert codes[0] == codes[1]
        assert (counts.bytes_read, counts.bytes_written) == (len(codes[0]), 0)

    @pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
    @pytest.mark.skipif(os.name != "posix", reason="fork")
    def test_fork(self, server: Server) -> None:
        """In a process that was forked after it was opened it is a miss at once, and no wait."""
        with program_cache(server[0]) as cache:
            cache["k"] = b"x"
            cache.layers[0].flush()
            child = os.fork()
            if child == 0:
                warnings.simplefilter("ignore")
                os._exit(0 if cache.get("k") is None else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert cache["k"] == b"x"


WRONG = {
    "lie": "fails its digest",
    "swap": "fails its digest",
    "cut": "fails its digest",
    "empty": "fails its digest",
    "truncate": "cannot be read",
    "fail": "cannot be read",
    "deny": "cannot be read",
    "hang-up": "cannot be read",
    "stall": "cannot be read",
    "stall-inside": "cannot be read",
    "trickle": "cannot be read",
    "flood": "cannot be read",
}
QUICK = ("lie", "truncate", "fail", "stall")


@pytest.mark.parametrize("how", ["write-fail", "write-full"])
def test_writes(tmp_path: Path, server: Server, pairs: dict[CompileJob, CompiledImage], how: str) -> None:
    """A remote that takes nothing costs one warning."""
    url, behave, _ = server
    behave(how)
    with pytest.warns(CudaKernelsWarning, match="cannot be written") as caught:
        fill([f"{tmp_path}/one", url], pairs)
    assert len(caught) == 1
    assert KernelCache.open(f"{tmp_path}/one").lookup_all(list(pairs)) == pairs


class TestOdd:
    """With a remote that does not."""

    @pytest.mark.parametrize(
        "how",
        [how if how in QUICK else pytest.param(how, marks=pytest.mark.slow) for how in WRONG],
    )
    def test_reads(
        self,
        tmp_path: Path,
        server: Server,
        pairs: dict[CompileJob, CompiledImage],
        how: str,
        monkeypatch: pytest.MonkeyPatch,
        request: pytest.FixtureRequest,
    ) -> None:
        """Whatever it answers, all are misses, nothing wrong is kept, and it is said once."""
        monkeypatch.setattr(remote, "MAX_REMOTE_ENTRY", 1 << 22)
        url, behave, _ = server
        fill([f"{tmp_path}/one", url], pairs)
        behave(how)
        if WRONG[how] == "cannot be read":
            request.getfixturevalue("impatient")
        with pytest.warns(CudaKernelsWarning, match=WRONG[how]) as caught:
            miss_and_fill([f"{tmp_path}/two", url], pairs)
        assert len(caught) == 1
        assert KernelCache.open(f"{tmp_path}/two").lookup_all(list(pairs)) == pairs
        behave("well")

    @pytest.mark.usefixtures("impatient")
    def test_given_up(
        self, tmp_path: Path, server: Server, pairs: dict[CompileJob, CompiledImage], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """After one stall it is not asked again, by no look-up and no write, until some minutes have passed."""
        url, behave, requests = server
        behave("stall")
        job, image = next(iter(pairs.items()))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for number in range(5):
                with KernelCache.open([f"{tmp_path}/{number}", url]) as cache:
                    assert cache.lookup(job) is None
                    cache.store(job, image)
        assert len(requests()) <= 3  # the library tries again within the limit
        assert len([entry for entry in caught if entry.category is CudaKernelsWarning]) == 1
        behave("well")
        monkeypatch.undo()
        cache.layers[1]._rests_until = time.monotonic() - 1
        fill([f"{tmp_path}/x", url], pairs)
        assert KernelCache.open([f"{tmp_path}/y", url]).lookup_all(list(pairs)) == pairs

    def test_damage_is_repaired(self, tmp_path: Path, server: Server, pairs: dict[CompileJob, CompiledImage]) -> None:
        """A damaged entry does not make the remote a dead one: the next store repairs it."""
        url, _, _ = server
        fill([f"{tmp_path}/one", url], pairs)
        with KernelCache.open([f"{tmp_path}/two", url]) as cache:
            operator = cache.layers[1].store._operator
            for job in pairs:
                path = f"hatch-cuda-kernels-1/{key_digest(f'compiles {job.key}')}"
                cache.layers[1].store._run(lambda path=path: operator.write(path, b"damaged"))
            with pytest.warns(CudaKernelsWarning, match="fails its digest"):
                assert cache.lookup_all(list(pairs)) == {}
            for job, image in pairs.items():
                cache.store(job, image)
        assert KernelCache.open([f"{tmp_path}/three", url]).lookup_all(list(pairs)) == pairs

    @pytest.mark.usefixtures("impatient")
    @pytest.mark.slow
    def test_nobody_there(self, tmp_path: Path, pairs: dict[CompileJob, CompiledImage]) -> None:
        """A host that refuses the connection, or that is not known, costs one warning."""
        for place in (f"http://127.0.0.1:{free_port()}/x", "http://nowhere.invalid/x", "redis://127.0.0.1:1/0"):
            with pytest.warns(CudaKernelsWarning, match="going on without it") as caught:
                fill([f"{tmp_path}/one", place], pairs)
            assert len(caught) == 1

    @pytest.mark.usefixtures("impatient")
    def test_no_password(self, tmp_path: Path, pairs: dict[CompileJob, CompiledImage]) -> None:
        """No warning shows a password."""
        for place in (f"http://me:hunter2@127.0.0.1:{free_port()}/x", "redis://me:hunter2@127.0.0.1:1/0"):
            with pytest.warns(CudaKernelsWarning) as caught:
                fill([f"{tmp_path}/one", place], pairs)
            assert "hunter2" not in "".join(str(warning.message) for warning in caught)


class TestSigned:
    """With a secret."""

    def test_secret(
        self, tmp_path: Path, server: Server, pairs: dict[CompileJob, CompiledImage], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What was signed is believed by who has the secret; what was not, or otherwise, is a miss, and signed anew."""
        url = server[0]

        def found(folder: str, secret: str) -> bool:
            monkeypatch.setenv(SECRET_VARIABLE, secret)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CudaKernelsWarning)
                with KernelCache.open([f"{tmp_path}/{folder}", url]) as cache:
                    return cache.lookup_all(list(pairs)) == pairs

        monkeypatch.setenv(SECRET_VARIABLE, "")
        fill([f"{tmp_path}/unsigned", url], pairs)
        assert found("a", "")
        assert not found("b", "secret")
        monkeypatch.setenv(SECRET_VARIABLE, "secret")
        with pytest.warns(CudaKernelsWarning, match=f"not signed with the secret in {SECRET_VARIABLE}"):
            errors._warned.clear()
            with KernelCache.open([f"{tmp_path}/c", url]) as cache:
                cache.lookup_all(list(pairs))
                for job, image in pairs.items():
                    cache.store(job, image)
        assert found("d", "secret")
        assert found("e", "")
        assert not found("f", "other")


def test_missing_library(tmp_path: Path) -> None:
    """Without its library a place is one warning that names the extra, and the build goes on locally."""
    code = """
sys.modules["opendal"] = None
from hatch_cuda_kernels.cache import KernelCache
for _ in range(2):
    cache = KernelCache.open([sys.argv[1], "s3://bucket/prefix", "redis://host"])
report([len(cache.layers), caught])
"""
    count, caught = run_python(code, os.environ, TESTS, arguments=[str(tmp_path)]).value
    assert count == 1
    assert len(caught) == 2
    assert "hatch-cuda-kernels[s3]" in caught[0]
    assert "hatch-cuda-kernels[redis]" in caught[1]


@pytest.mark.slow
def test_dead_remote(tmp_path: Path) -> None:
    """A build whose remote is dead gives the wheel and says so once, with real time limits."""
    (tmp_path / "server").mkdir()
    project = make_project(tmp_path, 'archs = ["sm_80", "sm_90"]', {"demo/a.cu": KERNEL, "demo/b.cu": KERNEL})
    with odd_server(tmp_path / "server") as (url, behave, _):
        behave("stall")
        run = project.build(env={"HATCH_CUDA_KERNELS_CACHE": f"{project.cache},{url}"})
    assert run.status == 0, run.output
    assert run.report is not None
    assert (run.report["compiled"], run.report["cached"]) == (4, 0)
    assert run.output.count("going on without it") == 1, run.output


# -- against real servers ----------------------------------------------------------------------------------------


@pytest.fixture(params=SERVERS)
def served(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """Each real server, where its program is there."""
    folder = tmp_path / "server"
    folder.mkdir()
    with SERVERS[request.param](folder) as found:
        for name, value in found.environment.items():
            monkeypatch.setenv(name, value)
        yield found


@pytest.mark.slow
class TestServers:
    """Object storage, WebDAV and Redis."""

    def test_entries(self, served: Served, request: pytest.FixtureRequest) -> None:
        """Bytes go in and come out, are replaced and removed."""
        with program_cache(served.url) as cache:
            store = cache.layers[0].store
            assert store.get("k") is None
            big = random.Random(1).randbytes(300_000 if "fake" in request.node.name else 3_000_000)
            store.update({"k": big, b"\xff": b"", "ü": b"two"})
            assert (store["k"], store[b"\xff"], store["ü"]) == (big, b"", b"two")
            store["k"] = b"anew"
            assert store["k"] == b"anew"
            del store["k"]
            with pytest.raises(KeyError):
                del store["k"]
            if "redis" in served.url:
                with pytest.raises(Exception, match="not support"):
                    store.clear()
            else:
                assert len(store) == 2
                store.clear()
                assert (len(store), store.get("ü")) == (0, None)

    def test_builds(self, served: Served, tmp_path: Path) -> None:
        """A build fills it; with the local cache empty another compiles nothing, and the wheels are equal."""
        files = {"demo/a.cu": KERNEL, "demo/b.cu": '#include "x.h"\n' + KERNEL.replace("1", "2"), "demo/x.h": "\n"}
        wheels = []
        for number, (cache, compiled) in enumerate([("no", 4), (served.url, 4), (served.url, 0)]):
            folder = tmp_path / str(number)
            project = make_project(folder, 'archs = ["sm_80", "compute_90"]', files)
            places = str(project.cache) if cache == "no" else f"{project.cache},{cache}"
            run = project.build(env={"HATCH_CUDA_KERNELS_CACHE": places})
            assert run.status == 0, run.output
            assert "the compile cache at" not in run.output
            assert run.report is not None
            assert run.report["compiled"] == compiled, run.output
            wheels.append(project.wheel().read_bytes())
        assert wheels[0] == wheels[1] == wheels[2]

    def test_killed(self, served: Served, tmp_path: Path) -> None:
        """Eight processes write and read at once and are killed: nothing wrong, and it works on."""
        assert "WRONG" not in kill_writers(served.url, [0.2] * 8)
        with program_cache(served.url) as cache:
            store: Any = cache.layers[0].store
            for _ in range(20):  # until the server is done with what the dead asked for
                with contextlib.suppress(OSError):
                    store.get("k0")
                    break
                time.sleep(1)
            found = 0
            for number in range(20):
                key = f"k{number}"
                try:
                    data = store.get(key)
                except ValueError:  # one that a killed process left unfinished, where a server does not prevent it
                    continue
                if data is not None:
                    found += 1
                    assert data == key.encode() * (len(data) // len(key))
            assert found > 3
            store["k1"] = b"anew"
            assert store["k1"] == b"anew"


@pytest.mark.slow
def test_stalls_cost_one_wait(tmp_path: Path, pairs: dict[CompileJob, CompiledImage]) -> None:
    """With the real limits a remote that stalls in whatever way holds a build up once, for seconds."""
    for how in ("stall", "stall-inside", "trickle"):
        (tmp_path / how).mkdir()
        with odd_server(tmp_path / how) as (url, behave, _):
            fill([f"{tmp_path}/{how}-one", url], pairs)
            behave(how)
            begin = time.monotonic()
            with pytest.warns(CudaKernelsWarning):
                cache = miss_and_fill([f"{tmp_path}/{how}-two", url], pairs)
            assert time.monotonic() - begin < 10, how
            assert isinstance(cache.layers[1], Layer)
            assert not cache.layers[1].alive
