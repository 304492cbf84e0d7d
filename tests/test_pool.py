# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Workers of one build: started for work alone, used again, and limited by memory."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from jobs import KERNEL, make_job, write

from hatch_cuda_kernels import nvrtc, pool
from hatch_cuda_kernels.arch import Architecture
from hatch_cuda_kernels.costs import Cost
from hatch_cuda_kernels.errors import CompilationError
from hatch_cuda_kernels.nvrtc import workspace
from hatch_cuda_kernels.plan import CompiledImage, CompileJob
from hatch_cuda_kernels.pool import Pool, compile_all
from hatch_cuda_kernels.worker import Worker

SLOW = "template <int N> struct S {\n"
SLOW += "  static __device__ int f(int x) { return S<N - 1>::f(x * N + 1) ^ S<N - 2>::f(x); } };\n"
SLOW += "template <> struct S<0> { static __device__ int f(int x) { return x; } };\n"
SLOW += "template <> struct S<1> { static __device__ int f(int x) { return x + 1; } };\n"
SLOW += 'extern "C" __global__ void k(int* p) { *p = S<27>::f(*p); }\n'
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def pids(found: Pool) -> list[int]:
    """Processes of a pool that were started."""
    return [worker.pid for worker in found._workers if worker.pid is not None]


def small_jobs(root: Path, count: int) -> list[CompileJob]:
    """Jobs of next to no work."""
    write(root, {f"k{n}.cu": KERNEL for n in range(count)})
    return [make_job(root, f"k{n}.cu") for n in range(count)]


@pytest.mark.slow
def test_no_more_workers_than_work(tmp_path: Path) -> None:
    """A few small kernels take one worker, which is the one that was asked for the toolchain; long ones take more."""
    jobs = small_jobs(tmp_path, 4)
    with workspace() as space, closing(Pool(4)) as found:
        assert pids(found) == []
        assert found.ask_toolchain().release == jobs[0].release
        (first,) = pids(found)
        images = dict(found.compile(jobs, space, lambda job: Cost(0.05, 1 << 20)))
        assert all(isinstance(image, CompiledImage) for image in images.values())
        assert pids(found) == [first]
        write(tmp_path, {f"long{n}.cu": SLOW.replace("27", "14") for n in range(2)})
        long = [make_job(tmp_path, f"long{n}.cu") for n in range(2)]  # the second worker comes before the first is done
        list(found.compile(long, space, lambda job: Cost(5.0, 1 << 20)))
        assert len(pids(found)) == 2
    assert pids(found) == []


def test_workers_start_while_the_toolchain_is_asked_for() -> None:
    """Where NVRTC has to be asked there is no image yet: the others start beside the first, as far as there are any."""
    with closing(Pool(3)) as found:
        found.ask_toolchain(beside=1)
        assert len(pids(found)) == 2
        found.ask_toolchain(beside=9)
        assert len(pids(found)) == 3
    assert pids(found) == []


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "compute_90", "sm_120f"])
def test_flags_without_options(tmp_path: Path, arch: str) -> None:
    """A job without options has the flags that cuda.core would spell, without importing it."""
    job = make_job(write(tmp_path, {"k.cu": KERNEL}), arch=arch)
    assert nvrtc._plain_flags(Architecture.parse(arch)) == nvrtc._option_flags(job)


@linux
def test_short_of_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where memory is for one compile at once, one runs at once, and all are done."""
    monkeypatch.setattr(pool, "available_memory", lambda: 700 << 20)
    at_once, most = 0, 0
    lock = threading.Lock()
    ask = Worker.ask

    def counted(self: Worker, *args: object, **options: object) -> object:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        try:
            return ask(self, *args, **options)  # type: ignore[arg-type]
        finally:
            with lock:
                at_once -= 1

    monkeypatch.setattr(Worker, "ask", counted)
    jobs = small_jobs(tmp_path, 4)
    with workspace() as space, closing(Pool(4)) as found:
        images = dict(found.compile(jobs, space, lambda job: Cost(1.0, 600 << 20)))
    assert all(isinstance(image, CompiledImage) for image in images.values())
    assert len(images) == 4 and most == 1


@linux
@pytest.mark.slow
def test_killed_beside_others_is_tried_again(tmp_path: Path) -> None:
    """A worker that the system kills while others run, as for want of memory, costs its image a second try alone."""
    root = write(tmp_path, {"a.cu": SLOW, "b.cu": SLOW.replace("*p)", "*p + 1)")})
    jobs = [make_job(root, "a.cu"), make_job(root, "b.cu")]
    with workspace() as space, closing(Pool(2, timeout=6)) as found:
        results = found.compile(jobs, space, lambda job: Cost(5.0, 1 << 20))
        killed: list[int] = []

        def kill() -> None:
            while len(pids(found)) < 2:
                time.sleep(0.02)
            time.sleep(1.0)
            killed.append(pids(found)[0])
            os.kill(killed[0], signal.SIGKILL)

        threading.Thread(target=kill).start()
        errors = [str(result) for _, result in results if isinstance(result, CompilationError)]
    assert killed
    # both reach the time limit: neither is reported as killed
    assert len(errors) == 2 and all("took longer than compile-timeout" in error for error in errors), errors


@linux
def test_workers_are_what_the_system_kills_first(tmp_path: Path) -> None:
    """Without any memory left, the system's choice is a worker and not the build."""
    with workspace() as space, closing(Pool(1)) as found:
        list(found.compile(small_jobs(tmp_path, 1), space))
        (worker,) = pids(found)
        assert Path(f"/proc/{worker}/oom_score_adj").read_text().strip() == "1000"
        assert Path("/proc/self/oom_score_adj").read_text().strip() != "1000"


@pytest.mark.slow
def test_what_was_compiled_before_does_not_count(tmp_path: Path) -> None:
    """A header that includes itself can cost a process its trace; the next reads are those of a compile alone."""
    kernel = 'extern "C" __global__ void k(unsigned *p) { unsigned v = 1;\n%s p[0] = v; }\n'
    files = {
        "a/k.cu": kernel % '#define H "b.h"\n#include <d.h>\n',
        "a/base/d.h": '#if __INCLUDE_LEVEL__ < 4\n#include "d.h"\n#define I "c.h"\n#endif\n',
        "b/k.cu": kernel % '#include "b.h"\n',
        "b/base/b.h": '#include "a.h"\n#if __has_include(<sub/b.h>)\nv = v * 3;\n#endif\nv += 1;\n',
        "b/base/a.h": "#define O <absent.h>\n#if __has_include(O)\nv += 1;\n#endif\n",
        "b/base/sub/b.h": "v += 1;\n",
    }
    write(tmp_path, files)
    jobs = [make_job(tmp_path, f"{name}/k.cu", include_dirs=[f"{name}/base"], toolkit_headers="auto") for name in "ab"]
    with workspace() as space:
        together = dict(compile_all(jobs, space, workers=1))
        alone = dict(compile_all(jobs[1:], space, workers=1))
    (one, other) = (results[jobs[1]] for results in (together, alone))
    assert isinstance(one, CompiledImage) and isinstance(other, CompiledImage)
    assert one.reads == other.reads and set(one.reads.files) == {"b/k.cu", "b/base/b.h", "b/base/a.h"}
