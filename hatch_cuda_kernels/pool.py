# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Many jobs at once, in as many workers as pay: no more than cores, than memory, or than there is work for.

A worker takes 0.3 s to start; one that dies costs the image it was at. One that was killed beside others, as the system
does when no memory is left, is given another try when nothing else runs.
"""

from __future__ import annotations

import math
import queue
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress

from .costs import Cost
from .errors import CompilationError, CudaKernelsError, ToolchainError
from .machine import available_memory, resident_memory
from .nvrtc import Workspace
from .plan import CompiledImage, CompileJob
from .prefix import Prefix, shared_prefixes
from .schedule import Schedule, Task
from .toolchain import Toolchain
from .worker import Request, Worker, ask_toolchain, ending, no_room, no_worker

__all__ = ["Pool", "Result", "compile_all"]

Result = CompiledImage | CudaKernelsError

_WORTH_A_WORKER = 0.3
"""Seconds of work from which on another worker pays."""
_PULSE = 0.25
_MARGIN = 0.9
"""Share of the machine's free memory that compiles may fill."""
_LITTLE_ROOM = 1 << 20
_UNKNOWN = Cost(1.0, 450 << 20)


class Pool:
    """Workers that are started as they are needed; see contextlib.closing."""

    def __init__(self, workers: int, *, timeout: float | None = None) -> None:
        self._workers = [Worker() for _ in range(max(1, workers))]
        self._timeout = timeout

    def close(self) -> None:
        """End all workers, and start no other."""
        for worker in self._workers:
            worker.close()

    def ask_toolchain(self, beside: int = 0) -> Toolchain:
        """What NVRTC says of itself, asked in the first worker. Raises ToolchainError.

        Who has to ask has no image yet, so that as many workers `beside` it as there will be work for start meanwhile.
        """
        with suppress(OSError, EOFError):  # the first one tells, and who needs another
            for worker in self._workers[: beside + 1]:
                worker.start()
        return ask_toolchain(self._workers[0])

    def compile(
        self, jobs: Sequence[CompileJob], space: Workspace, cost: Callable[[CompileJob], Cost] = lambda job: _UNKNOWN
    ) -> Iterator[tuple[CompileJob, Result]]:
        """Compile jobs; yields each with its image or its error as it is done.

        Leaving the iteration early ends all workers at once.
        """
        prefixes = shared_prefixes(jobs)
        ordered = [*prefixes, *(job for job in jobs if job not in prefixes)]
        schedule = Schedule(ordered, cost, {job: prefix.key for job, prefix in prefixes.items()})
        run = _Run(schedule, prefixes, space, self._timeout)
        count = min(len(self._workers), len(jobs), max(1, math.ceil(run.schedule.seconds / _WORTH_A_WORKER)))
        workers = self._workers[:count]
        threads = [threading.Thread(target=run.serve, args=(worker, workers), daemon=True) for worker in workers]
        for thread in threads:
            thread.start()
        try:
            for _ in jobs:
                yield run.next_result()
        except BaseException:
            run.stop()
            self.close()
            raise
        finally:
            for thread in threads:
                thread.join()


def compile_all(
    jobs: Sequence[CompileJob], space: Workspace, *, workers: int, timeout: float | None = None
) -> Iterator[tuple[CompileJob, Result]]:
    """Compile jobs in workers of their own, which end with the iteration; see Pool.compile."""
    with closing(Pool(workers, timeout=timeout)) as pool:
        yield from pool.compile(jobs, space)


class _Run:
    """One batch of jobs among the threads that wait for workers."""

    def __init__(
        self, schedule: Schedule, prefixes: Mapping[CompileJob, Prefix], space: Workspace, timeout: float | None
    ) -> None:
        self.schedule = schedule
        self._prefixes = prefixes
        self.results: queue.SimpleQueue[tuple[CompileJob, Result]] = queue.SimpleQueue()
        self._space = space
        self._timeout = timeout
        self._changed = threading.Condition()
        self._stopped = False

    def next_result(self) -> tuple[CompileJob, Result]:
        """The next job that is done; looks up at times, since a signal just before an endless wait is lost in it."""
        while True:
            with suppress(queue.Empty):
                return self.results.get(timeout=_PULSE)

    def stop(self) -> None:
        """Take no further job."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def serve(self, worker: Worker, workers: Sequence[Worker]) -> None:
        """Let one worker do jobs until none is left."""

        def room(running: Mapping[Task, None]) -> int | None:
            free = available_memory()
            if free is None:
                return None
            present = sum(resident_memory(each.pid) for each in workers if each.pid is not None)
            return int(free * _MARGIN) + present - sum(task.memory for task in running)

        while (task := self._take(worker, room)) is not None:
            try:
                result = self._result(task, worker)
            except Exception as error:  # a thread that ended without a word would leave the build waiting
                result = ToolchainError(f"{task.job}: {type(error).__name__}: {error}")
            with self._changed:
                again = result is None and self.schedule.again(task)
                self.schedule.done(task)
                self._changed.notify_all()
            if not again:
                self.results.put((task.job, result or self._died(task.job, -signal.SIGKILL)))

    def _take(self, worker: Worker, room: Callable[[Mapping[Task, None]], int | None]) -> Task | None:
        with self._changed:
            while not self._stopped:
                task = self.schedule.take(worker.prefix, room)
                if task is not None or not (self.schedule or self.schedule.running):
                    return task
                self._changed.wait()
        return None

    def _result(self, task: Task, worker: Worker) -> Result | None:
        """What a task comes to; None where the worker was killed.

        A task that fails with the prefix that it shares is done again without: it is not the prefix's to fail it.
        """
        job = task.job
        try:
            prefix = self._prefixes[job] if task.prefix is not None else None
            result = worker.ask(Request(job, self._space, prefix), self._timeout)
        except TimeoutError:
            if task.prefix is not None and not self._stopped:
                return self._result(Task(job, None, task.memory), worker)
            return CompilationError(f"{job}: took longer than compile-timeout ({self._timeout:g} s)")
        except EOFError as error:
            if task.prefix is not None and not self._stopped:
                return self._result(Task(job, None, task.memory), worker)
            return None if error.args[0] == -signal.SIGKILL else self._died(job, error.args[0])
        except OSError as error:
            return no_worker(error)
        if isinstance(result, CudaKernelsError):
            worker.stop()  # after some errors NVRTC's trace names no header any more in that process
            return result
        if not isinstance(result, CompiledImage):
            return ToolchainError(f"{job}: a worker gave {type(result).__name__} for an image")
        if not result.reads.told and worker.compiled > 1 and not self._stopped:
            worker.stop()  # what it compiled before can cost the trace; what was read must not depend on that
            return self._result(task, worker)
        return result

    def _died(self, job: CompileJob, code: int | None) -> CompilationError:
        return CompilationError(
            f"{job}: the compiler ended its process ({ending(code)}) on {job.unit.source}; {_cause(self._space)}"
        )


def _cause(space: Workspace) -> str:
    """What may have ended a worker. NVRTC aborts, with other words, where it cannot write its trace."""
    with suppress(OSError):
        if shutil.disk_usage(space.path).free < _LITTLE_ROOM:
            return no_room(space)
    return "a crash of NVRTC, or the machine had no memory left"
