# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Compiles elsewhere give what compiles here give, or an error that names who could not."""

from __future__ import annotations

import dataclasses
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from jobs import KERNEL, TESTS, compile_alone, make_job, write
from projects import make_project
from servers import free_port, started
from support import WHERE, Quiet, nowhere

from hatch_cuda_kernels import CompilationError, ConfigurationError, ToolchainError
from hatch_cuda_kernels.build import build_packages
from hatch_cuda_kernels.config import Config
from hatch_cuda_kernels.executor import compile_elsewhere
from hatch_cuda_kernels.modules import ShippedPackage, find_modules
from hatch_cuda_kernels.plan import CompileJob

pytestmark = pytest.mark.timeout(200)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> list[CompileJob]:
    """Jobs whose sources read a header of the project's own, which no other machine has."""
    files = {f"k{n}.cu": f'#include "private/x.h"\n{KERNEL}// {n}\n' for n in range(2)} | {"private/x.h": "// mine\n"}
    root = write(tmp_path_factory.mktemp("project"), files)
    jobs = [make_job(root, f"k{n}.cu") for n in range(2)]
    for label in files:  # what is compiled travels with the job
        (root / label).unlink()
    return jobs


@pytest.fixture(autouse=True)
def pools_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module `pools` is importable, here and in processes that are started."""
    monkeypatch.setenv("PYTHONPATH", str(TESTS))


@pytest.mark.parametrize("factory", [pytest.param("processes", marks=pytest.mark.slow), "threads"])
def test_same_images(jobs: list[CompileJob], factory: str) -> None:
    """Every image comes back, with the bytes that a compile here gives."""
    found = dict(compile_elsewhere(f"pools:{factory}", jobs))
    assert set(found) == set(jobs)
    for job, image in found.items():
        assert not isinstance(image, Exception), image
        assert (image.data, image.reads) == ((own := compile_alone(job)).data, own.reads)


def test_errors_come_back(jobs: list[CompileJob], tmp_path: Path) -> None:
    """A source that NVRTC refuses is its own error; the others are compiled."""
    write(tmp_path, {"bad.cu": "this is no C++;\n"})
    bad = make_job(tmp_path, "bad.cu")
    found = dict(compile_elsewhere("pools:threads", [jobs[0], bad]))
    assert isinstance(found[bad], CompilationError)
    assert "bad.cu(1)" in str(found[bad])
    assert not isinstance(found[jobs[0]], Exception)


def test_timeout(jobs: list[CompileJob]) -> None:
    """The limit for one image holds there, too."""
    (found,) = dict(compile_elsewhere("pools:threads", jobs[:1], timeout=0.001)).values()
    assert "took longer than compile-timeout" in str(found)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills itself")
@pytest.mark.slow
def test_lost_worker(jobs: list[CompileJob], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that dies breaks a pool of the standard library; another pool does what it had not done."""
    monkeypatch.setenv("DYING", str(tmp_path / "died"))
    found = dict(compile_elsewhere("pools:dying", jobs))
    assert (tmp_path / "died").exists()
    assert set(found) == set(jobs)
    assert not [image for image in found.values() if isinstance(image, Exception)]


def test_lost_again_and_again(jobs: list[CompileJob]) -> None:
    """Workers that die at a job each time are an error for it, not an endless build."""
    ((_, error),) = compile_elsewhere("pools:always_dying", jobs[:1])
    assert isinstance(error, ToolchainError)
    assert "pools:always_dying gave it up (BrokenProcessPool" in str(error)


def test_other_release(jobs: list[CompileJob]) -> None:
    """A worker whose NVRTC is another release refuses the job by name."""
    other = dataclasses.replace(jobs[0], release="13.0.1")
    ((_, error),) = compile_elsewhere("pools:threads", [other])
    assert isinstance(error, ToolchainError)
    assert re.search(r"13\.0\.1.*\(on [^)]+\)", str(error), re.DOTALL)
    assert jobs[0].release in str(error)


def test_other_package(jobs: list[CompileJob]) -> None:
    """A worker with another release of this package takes no job."""
    ((_, error),) = compile_elsewhere("pools:older", jobs[:1])
    assert re.search(r"a worker has hatch-cuda-kernels \S+, the build 0\.0; install the same", str(error))


def test_changed_on_the_way(jobs: list[CompileJob]) -> None:
    """A result that is not what was sent is not used."""
    ((_, error),) = compile_elsewhere("pools:liar", jobs[:1])
    assert isinstance(error, ToolchainError)
    assert "is not what was sent there" in str(error)


def test_other_headers(jobs: list[CompileJob]) -> None:
    """An image that was made of other toolkit headers than this machine has is refused, and the header named."""
    ((_, error),) = compile_elsewhere("pools:other_headers", jobs[:1])
    assert isinstance(error, ToolchainError)
    assert "has other toolkit headers than this machine (cuda_fp16.h)" in str(error)


@pytest.mark.parametrize(
    ("executor", "message"),
    [
        ("no_such_module:f", "no_such_module:f gives none (ModuleNotFoundError"),
        ("pools:no_such", "pools:no_such gives none (AttributeError"),
        ("pools:no_executor", "gave a int, which is no concurrent.futures.Executor"),
    ],
)
def test_no_executor(jobs: list[CompileJob], executor: str, message: str) -> None:
    """What gives no executor is named."""
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        list(compile_elsewhere(executor, jobs))


@pytest.mark.parametrize(
    ("executor", "message"),
    [
        ("no_such_module:f", "no_such_module:f gives none (ModuleNotFoundError"),
        ("pools:no_such", "pools:no_such gives none (AttributeError"),
        ("os:path", "os:path is a module, and has to be a function or class"),
        ("os:sep", "os:sep is a str, and has to be a function or class"),
    ],
)
def test_mistake_told_on_a_hit(tmp_path: Path, executor: str, message: str) -> None:
    """What can give no executor is refused where nothing has to be compiled, too."""
    root = write(tmp_path / "project", {"demo/__init__.py": "", "demo/k.cu": KERNEL})
    config = Config.from_table({"archs": ["sm_80"], "cache": str(tmp_path / "cache")}, where=WHERE)
    specs = find_modules(config, root, [ShippedPackage(name="demo", folder="demo")], where=WHERE)
    build_packages(config, root, specs, where=WHERE, reporter=Quiet(), put=nowhere).close()
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        config = dataclasses.replace(config, executor=executor)
        build_packages(config, root, specs, where=WHERE, reporter=Quiet(), put=nowhere).close()
    config = dataclasses.replace(config, executor="pools:no_executor")  # which only making it would tell
    build_packages(config, root, specs, where=WHERE, reporter=Quiet(), put=nowhere).close()


# -- a real cluster ------------------------------------------------------------------------------------------------


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[int]]]:
    """A Dask scheduler and two workers, separate processes: (its address, the workers' process ids)."""
    pytest.importorskip("distributed", reason="distributed is not installed (pip install --group servers)")
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=str(tmp_path)
        ) as local,
        Client(local) as client,
    ):
        yield local.scheduler_address, list(client.run(os.getpid).values())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
class TestDask:
    """Dask's own scheduler and workers."""

    def test_same_images(self, cluster: tuple[str, list[int]], jobs: list[CompileJob]) -> None:
        """Every image comes back, with the bytes that a compile here gives."""
        found = dict(compile_elsewhere(f"dask:{cluster[0]}", jobs))
        assert {job: image.data for job, image in found.items() if not isinstance(image, Exception)} == {
            job: compile_alone(job).data for job in jobs
        }

    def test_killed_worker(self, cluster: tuple[str, list[int]], tmp_path: Path) -> None:
        """One of two workers is killed during the build: it costs a retry, and no image."""
        address, workers = cluster
        count = 12
        files = {f"k{n}.cu": f"{KERNEL}// {n}\n" for n in range(count)}
        root = write(tmp_path / "project", files)
        jobs = [make_job(root, label) for label in files]
        found: dict[CompileJob, object] = {}
        for job, image in compile_elsewhere(f"dask:{address}", jobs):
            if not found:
                os.kill(workers[0], signal.SIGKILL)
            found[job] = image
        assert len(found) == count
        assert not [image for image in found.values() if isinstance(image, Exception)]

    def test_build(self, cluster: tuple[str, list[int]], tmp_path: Path) -> None:
        """A wheel that was built through a cluster is the wheel that is built here, byte for byte."""
        files = {"demo/a.cu": KERNEL, "demo/b.cu": '#include "x.h"\n' + KERNEL, "demo/x.h": "// mine\n"}
        wheels = []
        for name, executor in (("here", "processes"), ("there", f"dask:{cluster[0]}")):
            project = make_project(tmp_path / name, 'archs = ["sm_80", "compute_80"]', files)
            run = project.build(env={"HATCH_CUDA_KERNELS_EXECUTOR": executor})
            assert run.status == 0, run.output
            assert run.report is not None
            assert run.report["compiled"] == 4
            wheels.append(project.wheel().read_bytes())
        assert wheels[0] == wheels[1]


@pytest.mark.slow
def test_no_scheduler(jobs: list[CompileJob]) -> None:
    """A scheduler that is not there is named, with what to do."""
    pytest.importorskip("distributed", reason="distributed is not installed (pip install --group servers)")
    port = free_port()
    with pytest.raises(ToolchainError, match=f"no Dask scheduler at tcp://127.0.0.1:{port} .*processes"):
        list(compile_elsewhere(f"dask:tcp://127.0.0.1:{port}", jobs))


@pytest.mark.slow
def test_no_worker(jobs: list[CompileJob], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler without workers is an error after a while, not a build without an end."""
    pytest.importorskip("distributed", reason="distributed is not installed (pip install --group servers)")
    from hatch_cuda_kernels import executor

    monkeypatch.setattr(executor, "_PATIENCE", 1.0)
    monkeypatch.setattr(executor, "_PULSE", 2.0)
    port = free_port()
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port)]
    with started([*command, "--no-dashboard"], port, tmp_path / "log"):
        begin = time.monotonic()
        with pytest.raises(ToolchainError, match="has had no worker for 1 s"):
            list(compile_elsewhere(f"dask:tcp://127.0.0.1:{port}", jobs))
        assert time.monotonic() - begin < 30


def test_missing_library(jobs: list[CompileJob]) -> None:
    """Without its library a cluster is an error that names the extra."""
    code = """
import sys
sys.modules["distributed"] = None
from hatch_cuda_kernels.executor import compile_elsewhere
try:
    list(compile_elsewhere("dask:tcp://127.0.0.1:1", [1]))
except Exception as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith("ConfigurationError executor: dask needs a library")
    assert "hatch-cuda-kernels[dask]" in done.stdout
