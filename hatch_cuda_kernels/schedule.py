# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Which job a free worker takes next: a pure matter of what is left, what runs, and what memory there is.

Longest first, so that no long compile is left for the end. Jobs that share a prefix count as one piece of work, and a
worker that has compiled a prefix stays with it; where many workers are free, they share the piece between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from .costs import Cost
from .plan import CompileJob

__all__ = ["Schedule", "Task"]

_WORTHWHILE = 3
"""Jobs from which on it pays for one worker to compile their prefix first; see benchmarks/builds/profiles.md."""
_LONG = 0.2
"""Seconds of a compile below which its headers are not worth it."""
_PREFIX_MEMORY = 700 << 20
"""What a prefix takes beside its process, where temporary files are in memory: while NVRTC makes it, twice its size."""


@dataclass(frozen=True)
class Task:
    """One job for one worker."""

    job: CompileJob
    prefix: str | None
    """Key of the prefix to compile first, if the worker has not, and to use."""
    memory: int
    """Bytes that it is expected to take."""


class Schedule:
    """The jobs that are left. Not safe for threads; see pool.py."""

    def __init__(
        self,
        jobs: Iterable[CompileJob],
        cost: Callable[[CompileJob], Cost],
        prefixes: Mapping[CompileJob, str] | None = None,
    ) -> None:
        groups: dict[str | CompileJob, list[CompileJob]] = {}
        self._costs: dict[CompileJob, Cost] = {}
        for job in jobs:
            self._costs[job] = cost(job)
            groups.setdefault((prefixes or {}).get(job, job), []).append(job)
        self._shared: dict[str, list[CompileJob]] = {}
        alone: list[CompileJob] = []
        for key, members in groups.items():
            if isinstance(key, str) and len(members) >= _WORTHWHILE and self._seconds(members[0]) >= _LONG:
                self._shared[key] = sorted(members, key=self._seconds, reverse=True)
            else:
                alone += members
        self._alone = sorted(alone, key=self._seconds, reverse=True)
        self._left = {key: sum(map(self._seconds, members)) for key, members in self._shared.items()}
        self.running: dict[Task, None] = {}
        self._again: list[CompileJob] = []
        self._tried: set[CompileJob] = set()

    def __bool__(self) -> bool:
        return bool(self._alone or self._again or any(self._shared.values()))

    @property
    def seconds(self) -> float:
        """What all jobs that are left are expected to take, one after the other."""
        return sum(map(self._seconds, self._alone)) + sum(self._left.values())

    def _seconds(self, job: CompileJob) -> float:
        return self._costs[job].seconds

    def take(self, loaded: str | None, room: Callable[[Mapping[Task, None]], int | None]) -> Task | None:
        """The next task of a worker that has the prefix `loaded`; None where no job is left, or none fits by now.

        `room`: bytes of memory that are left beside the running tasks, None for any number. One job always runs.
        """
        if self._again:
            if self.running:
                return None
            job = self._again.pop()
            return self._start(Task(job, None, self._costs[job].memory))
        limit = room(self.running) if self.running else None
        for key in self._candidates(loaded):
            members = self._alone if key is None else self._shared[key]
            share = key is not None and (key == loaded or len(members) >= _WORTHWHILE * (self._workers(key) + 1))
            for index, job in enumerate(members):
                memory = self._costs[job].memory + (_PREFIX_MEMORY if share else 0)
                if limit is None or memory <= limit:
                    del members[index]
                    if key is not None:
                        self._left[key] -= self._seconds(job)
                    return self._start(Task(job, key if share else None, memory))
        return None

    def _start(self, task: Task) -> Task:
        self.running[task] = None
        return task

    def again(self, task: Task) -> bool:
        """Put a task back whose worker was killed, to be done when nothing else runs; False where nothing else did."""
        if len(self.running) == 1 or task.job in self._tried:
            return False
        self._tried.add(task.job)
        self._again.append(task.job)
        return True

    def done(self, task: Task) -> None:
        """Note that a task has ended."""
        self.running.pop(task, None)

    def _candidates(self, loaded: str | None) -> list[str | None]:
        """Pieces of work, the one to begin with first: keys of prefixes, and None for the jobs without one."""
        if loaded is not None and self._shared.get(loaded):
            return [loaded]
        load: dict[str | None, float] = {
            key: self._left[key] / (self._workers(key) + 1) for key, members in self._shared.items() if members
        }
        if self._alone:
            load[None] = self._seconds(self._alone[0])
        return sorted(load, key=lambda key: load[key], reverse=True)

    def _workers(self, key: str) -> int:
        return sum(task.prefix == key for task in self.running)
