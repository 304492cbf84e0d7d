# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""A compile in a process of its own: NVRTC's front end is serialised inside one, and a crash costs one image.

A worker reads pickled requests from its standard input and writes pickled results to its standard output. It ends at
once when its input does, even in the middle of a compile, so that none outlives its build; a build that was killed
cannot remove its temporary folder any more, so its workers do.
"""

from __future__ import annotations

import dataclasses
import errno
import os
import pickle
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO

from .compiler import compile_job
from .errors import CudaKernelsError, ToolchainError
from .machine import forget_peak, offer_to_be_killed, peak_memory
from .nvrtc import Workspace
from .plan import CompileJob
from .precompiled import Precompiled
from .prefix import Prefix
from .toolchain import Toolchain, probe

__all__ = ["Request", "Worker", "ask_toolchain", "ending", "main", "no_room", "no_worker"]

_PROBE = "probe"
_LAST_SECONDS = 30.0
_CLEANUPS = 5
_START = "import sys; sys.path[:] = {path!r}; from hatch_cuda_kernels.worker import main; main()"


@dataclass(frozen=True)
class Request:
    """A job to compile in a workspace, with the prefix to compile first and to use."""

    job: CompileJob
    space: Workspace
    prefix: Prefix | None = None


# -- the worker's side -----------------------------------------------------------------------------------------------


def main() -> None:
    """A worker's life."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where Ctrl-C reaches all of a console's processes, as on Windows
    offer_to_be_killed()
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not end up between the results
    requests: queue.Queue[Any] = queue.Queue()
    try:
        threading.Thread(target=_read_requests, args=(sys.stdin.buffer, requests), daemon=True).start()
    except RuntimeError as error:
        pickle.dump(no_worker(error), results)
        results.flush()
        sys.stdin.buffer.read()
        return
    desk = _Desk()
    while True:
        result = desk.serve(requests.get())
        try:
            pickle.dump(result, results)
            results.flush()
        except OSError:  # the build is gone; the thread that reads its requests is ending this process
            threading.Event().wait(_LAST_SECONDS)
            os._exit(1)


def _read_requests(stream: BinaryIO, requests: queue.Queue[Any]) -> None:
    space: Workspace | None = None
    try:
        while True:
            request = pickle.load(stream)
            space = request.space if isinstance(request, Request) else space
            requests.put(request)
    except BaseException:  # the end of the input, or a parent that died in the middle of a message
        if space is not None:
            for _ in range(_CLEANUPS):
                shutil.rmtree(space.path, ignore_errors=True)
                time.sleep(0.01)  # meanwhile other workers, and NVRTC in this one, may still write there
        os._exit(0)


class _Desk:
    """What a worker keeps from one request to the next: the prefix that it has compiled last."""

    def __init__(self) -> None:
        self._prefix: Prefix | None = None
        self._precompiled: Precompiled | None = None

    def serve(self, request: Request | str) -> object:
        """The result of one request, or the error that is its result."""
        try:
            return self._compile(request) if isinstance(request, Request) else probe()
        except CudaKernelsError as error:
            return error
        except Exception as error:  # a library's own; the build reports it for this image and goes on
            if not isinstance(request, Request):
                return ToolchainError(f"{request}: {type(error).__name__}: {error}")
            full = isinstance(error, OSError) and error.errno == errno.ENOSPC
            why = no_room(request.space) if full else f"{type(error).__name__}: {error}"
            return ToolchainError(f"{request.job}: {why}")

    def _compile(self, request: Request) -> object:
        forget_peak()
        space = dataclasses.replace(request.space, own_process=True)
        os.environ["TMPDIR"] = str(space.path)  # NVRTC's front end lays out gigabytes in a temporary file
        if request.prefix is not None and request.prefix != self._prefix:
            if self._precompiled is not None:
                self._precompiled.remove()
            self._prefix, self._precompiled = request.prefix, Precompiled(request.prefix, space)
        image = compile_job(request.job, space, self._precompiled if request.prefix else None)
        return dataclasses.replace(image, memory=peak_memory())


# -- the build's side ------------------------------------------------------------------------------------------------


class Worker:
    """One worker process, started at its first request."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False
        self._lock = threading.Lock()
        self.prefix: str | None = None
        """Key of the prefix that the process has compiled."""
        self.compiled = 0
        """How many jobs the process has compiled."""

    @property
    def pid(self) -> int | None:
        """The process, where there is one."""
        process = self._process
        return process.pid if process is not None else None

    def ask(self, request: Request | str, timeout: float | None = None) -> object:
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
            result: object = pickle.load(process.stdout)
            self.compiled += isinstance(request, Request)
            if isinstance(request, Request) and request.prefix is not None:
                self.prefix = request.prefix.key
            return result
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

    def start(self) -> None:
        """Start the process ahead of its first request. Raises EOFError where it may not, OSError where it cannot."""
        self._running()

    def _running(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._closed:
                raise EOFError(None)
            if self._process is None:
                path = [entry if entry else os.getcwd() for entry in sys.path]
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _START.format(path=path)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    start_new_session=True,  # Ctrl-C is the build's, which ends its workers
                )
            return self._process

    def close(self) -> None:
        """End the process, and start no other."""
        with self._lock:
            self._closed = True
        self.stop()

    def stop(self) -> None:
        """End the process now."""
        with self._lock:
            process, self._process, self.prefix, self.compiled = self._process, None, None, 0
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                with suppress(OSError, ValueError):
                    if stream is not None:
                        stream.close()


def ask_toolchain(worker: Worker | None = None) -> Toolchain:
    """What NVRTC says of itself, asked in a process of its own, or in that of a worker. Raises ToolchainError."""
    asked = worker or Worker()
    try:
        result = asked.ask(_PROBE)
    except EOFError as error:
        raise ToolchainError(f"loading NVRTC ends the process ({ending(error.args[0])})") from None
    except OSError as error:
        raise no_worker(error) from None
    finally:
        if worker is None:
            asked.close()
    if isinstance(result, CudaKernelsError):
        raise result
    assert isinstance(result, Toolchain)
    return result


def no_worker(error: OSError | RuntimeError) -> ToolchainError:
    """The error where no process, or none of its threads, can be started."""
    return ToolchainError(f"no process can be started to compile in ({error}); set HATCH_CUDA_KERNELS_JOBS lower")


def no_room(space: Workspace) -> str:
    """What is said where a compile cannot write its files."""
    return f"there is no room left on the file system of {space.path}; set TMPDIR to another"


def ending(code: int | None) -> str:
    """How a process ended, in words."""
    return f"signal {-code}" if code is not None and code < 0 else f"exit status {code}"
