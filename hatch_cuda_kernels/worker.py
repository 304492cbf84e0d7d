# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Compiles in processes of their own: NVRTC's front end is serialised inside one, and a crash costs one image.

A worker reads pickled jobs from its standard input and writes pickled results to its standard output. It ends at
once when its input does, even in the middle of a compile, so that none outlives its build; a build that was killed
cannot remove its temporary folder any more, so its workers do.
"""

from __future__ import annotations

import os
import pickle
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

from .compiler import compile_job
from .errors import CompilationError, CudaKernelsError, ToolchainError
from .nvrtc import Workspace
from .plan import CompiledImage, CompileJob
from .toolchain import Toolchain, probe

__all__ = ["ask_toolchain", "available_cores", "compile_all", "main"]

_PROBE = "probe"
_LAST_SECONDS = 30.0
_CLEANUPS = 5
_START = "import sys; sys.path[:] = {path!r}; from hatch_cuda_kernels.worker import main; main()"


def main() -> None:
    """A worker's life."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all of a terminal's processes; the build tells us
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not end up between the results
    requests: queue.Queue[Any] = queue.Queue()
    threading.Thread(target=_read_requests, args=(sys.stdin.buffer, requests), daemon=True).start()
    space = requests.get()
    while True:
        result = _serve(requests.get(), space)
        try:
            pickle.dump(result, results)
            results.flush()
        except OSError:  # the build is gone; the thread that reads its requests is ending this process
            threading.Event().wait(_LAST_SECONDS)
            os._exit(1)


def _read_requests(stream: BinaryIO, requests: queue.Queue[Any]) -> None:
    space: Workspace | None = None
    try:
        space = pickle.load(stream)
        requests.put(space)
        while True:
            requests.put(pickle.load(stream))
    except BaseException:  # the end of the input, or a parent that died in the middle of a message
        if space is not None:
            for _ in range(_CLEANUPS):
                shutil.rmtree(space.path, ignore_errors=True)
                time.sleep(0.01)  # meanwhile other workers, and NVRTC in this one, may still write there
        os._exit(0)


def _serve(request: Any, space: Workspace) -> object:
    try:
        return probe() if request == _PROBE else compile_job(request, space)
    except CudaKernelsError as error:
        return error
    except Exception as error:  # a library's own; the build reports it for this image and goes on
        return ToolchainError(f"{request}: {type(error).__name__}: {error}")


class _Worker:
    """The parent's side of one worker process, started at its first request."""

    def __init__(self, space: Workspace | None) -> None:
        self._space = space
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False
        self._lock = threading.Lock()

    def ask(self, request: object, timeout: float | None = None) -> object:
        """Send one request and wait for its result. Raises EOFError where the worker died, TimeoutError past the
        limit, OSError where none can be started; the next request gets a new process."""
        process = self._running()
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            process.kill()

        timer = threading.Timer(timeout, expire) if timeout else None
        if timer:
            timer.start()
        try:
            assert process.stdin is not None and process.stdout is not None
            pickle.dump(request, process.stdin)
            process.stdin.flush()
            return pickle.load(process.stdout)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            self.stop()
            if expired.is_set():
                raise TimeoutError from None
            raise EOFError(process.returncode) from None
        finally:
            if timer:
                timer.cancel()
            if expired.is_set():
                self.stop()

    def _running(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._closed:
                raise EOFError(None)
            if self._process is None:
                path = [entry if entry else os.getcwd() for entry in sys.path]
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _START.format(path=path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
                )
                assert self._process.stdin is not None
                with suppress(OSError):  # one that died already: its answer will be the end of the file
                    pickle.dump(self._space, self._process.stdin)
            return self._process

    def close(self) -> None:
        """End the process, and start no other."""
        with self._lock:
            self._closed = True
        self.stop()

    def stop(self) -> None:
        """End the process now."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                with suppress(OSError, ValueError):
                    if stream is not None:
                        stream.close()


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def ask_toolchain() -> Toolchain:
    """What NVRTC says of itself, asked in a process of its own. Raises ToolchainError."""
    worker = _Worker(None)
    try:
        result = worker.ask(_PROBE)
    except EOFError as error:
        raise ToolchainError(f"loading NVRTC ends the process ({_ending(error.args[0])})") from None
    except OSError as error:
        raise _no_worker(error) from None
    finally:
        worker.close()
    if isinstance(result, CudaKernelsError):
        raise result
    assert isinstance(result, Toolchain)
    return result


def compile_all(
    jobs: Sequence[CompileJob], space: Workspace, *, workers: int, timeout: float | None = None
) -> Iterator[tuple[CompileJob, CompiledImage | CudaKernelsError]]:
    """Compile jobs in up to `workers` processes; yields each with its image or its error as it is done.

    `timeout` is the limit for one image in seconds. Leaving the iteration early ends all workers at once.
    """
    idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
    count = max(1, min(workers, len(jobs)))
    pool = [_Worker(space) for _ in range(count)]
    for worker in pool:
        idle.put(worker)

    def run(job: CompileJob) -> CompiledImage | CudaKernelsError:
        worker = idle.get()
        try:
            result = worker.ask(job, timeout)
            if isinstance(result, CudaKernelsError):
                worker.stop()  # after some errors NVRTC's trace names no header any more in that process
        except TimeoutError:
            return CompilationError(f"{job}: took longer than compile-timeout ({timeout:g} s)")
        except EOFError as error:
            return CompilationError(
                f"{job}: the compiler ended its process ({_ending(error.args[0])}) on {job.unit.source}; "
                f"{_cause(space)}"
            )
        except OSError as error:
            return _no_worker(error)
        finally:
            idle.put(worker)
        assert isinstance(result, (CompiledImage, CudaKernelsError))
        return result

    with _threads(count, pool) as threads:
        futures: dict[Future[CompiledImage | CudaKernelsError], CompileJob] = {
            threads.submit(run, job): job for job in jobs
        }
        while futures:
            for future in wait(futures, return_when=FIRST_COMPLETED).done:
                yield futures.pop(future), future.result()


@contextmanager
def _threads(count: int, pool: Sequence[_Worker]) -> Iterator[ThreadPoolExecutor]:
    threads = ThreadPoolExecutor(count)
    try:
        yield threads
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
        for worker in pool:
            worker.close()
        threads.shutdown(wait=True)


def _no_worker(error: OSError) -> ToolchainError:
    return ToolchainError(f"no process can be started to compile in ({error}); set HATCH_CUDA_KERNELS_JOBS lower")


_LITTLE_ROOM = 1 << 20


def _cause(space: Workspace) -> str:
    """What may have ended a worker. NVRTC aborts, with other words, where it cannot write its trace."""
    with suppress(OSError):
        if shutil.disk_usage(space.path).free < _LITTLE_ROOM:
            return f"there is no room left on the file system of {space.path}; set TMPDIR to another"
    return "a crash of NVRTC, or the machine had no memory left"


def _ending(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"exit status {code}"
