# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The order of work, and what it is expected to cost."""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jobs import KERNEL, compile_alone, make_job, write

from hatch_cuda_kernels.cache import KernelCache
from hatch_cuda_kernels.costs import Cost, Costs
from hatch_cuda_kernels.plan import CompileJob
from hatch_cuda_kernels.schedule import Schedule, Task

MB = 1 << 20


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> CompileJob:
    """Some job."""
    return make_job(write(tmp_path_factory.mktemp("project"), {"k.cu": KERNEL}))


def jobs_like(job: CompileJob, count: int) -> list[CompileJob]:
    """Jobs that differ in nothing: a schedule knows them by identity."""
    return [dataclasses.replace(job) for _ in range(count)]


def simulate(schedule: Schedule, costs: Mapping[CompileJob, Cost], workers: int) -> tuple[float, list[CompileJob]]:
    """(when the last job ends, jobs in the order of their start) with workers that never fail."""
    free = [(0.0, number) for number in range(workers)]
    loaded: dict[int, str | None] = dict.fromkeys(range(workers))
    started: list[CompileJob] = []
    ends: list[tuple[float, int, Task]] = []
    now = 0.0
    while free or ends:
        while free and (task := schedule.take(loaded[free[0][1]], lambda running: None)):
            _, number = heapq.heappop(free)
            loaded[number] = task.prefix or loaded[number]
            started.append(task.job)
            heapq.heappush(ends, (now + costs[task.job].seconds, number, task))
        if not ends:
            break
        now, number, task = heapq.heappop(ends)
        schedule.done(task)
        heapq.heappush(free, (now, number))
    return now, started


def test_longest_first(job: CompileJob) -> None:
    """The longest job is begun with, and equal ones keep the order of the table."""
    jobs = jobs_like(job, 5)
    seconds = dict(zip(jobs, [1, 2, 9, 2, 3], strict=True))
    schedule = Schedule(jobs, lambda job: Cost(seconds[job], 0))
    taken = [schedule.take(None, lambda running: None) for _ in jobs]
    assert [task and jobs.index(task.job) for task in taken] == [2, 4, 1, 3, 0]
    assert schedule.take(None, lambda running: None) is None


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_job_is_lost_or_done_twice(job: CompileJob, data: st.DataObject) -> None:
    """Whatever the costs, prefixes and workers: every job once, and the end is no later than an even share of the work
    and one longest job."""
    jobs = jobs_like(job, data.draw(st.integers(1, 25)))
    costs = {each: Cost(data.draw(st.floats(0.1, 20)), 0) for each in jobs}
    prefixes = {each: key for each in jobs if (key := data.draw(st.sampled_from([None, "a", "b"]))) is not None}
    workers = data.draw(st.integers(1, 5))
    end, started = simulate(Schedule(jobs, costs.__getitem__, prefixes), costs, workers)
    assert sorted(map(id, started)) == sorted(map(id, jobs))
    total, longest = sum(cost.seconds for cost in costs.values()), max(cost.seconds for cost in costs.values())
    assert end <= total / workers + longest + 1e-6


def keys(tasks: Sequence[Task | None]) -> str:
    """Prefixes of tasks as one word."""
    return "".join("." if task is None or task.prefix is None else task.prefix for task in tasks)


def test_prefixes(job: CompileJob) -> None:
    """Jobs with one prefix stay with the worker that has it; a second worker joins only where enough are left."""
    jobs = jobs_like(job, 14)
    cost = Cost(1.0, 100 * MB)
    prefixes = dict.fromkeys(jobs[:9], "a") | dict.fromkeys(jobs[9:], "b")
    schedule = Schedule(jobs, lambda job: cost, prefixes)
    first, second = schedule.take(None, lambda running: None), schedule.take(None, lambda running: None)
    assert first and second and keys([first, second]) == "ab"
    assert first.memory > cost.memory
    for _ in range(4):
        schedule.done(second)
        second = schedule.take("b", lambda running: None)
        assert second and second.prefix == "b"
    schedule.done(second)
    joined = schedule.take("b", lambda running: None)
    assert joined and joined.prefix == "a" and len(schedule.running) == 2  # eight were left for two
    third = schedule.take(None, lambda running: None)
    assert third and third.prefix is None and third.job in jobs[:9]


def test_few_or_short_jobs_share_nothing(job: CompileJob) -> None:
    """Compiling a prefix costs as much as one of its jobs: two, or many short ones, are compiled as they are."""
    jobs = jobs_like(job, 2)
    schedule = Schedule(jobs, lambda job: Cost(1, 0), dict.fromkeys(jobs, "a"))
    assert keys([schedule.take(None, lambda running: None) for _ in jobs]) == ".."
    jobs = jobs_like(job, 9)
    schedule = Schedule(jobs, lambda job: Cost(0.05, 0), dict.fromkeys(jobs, "a"))
    assert keys([schedule.take(None, lambda running: None) for _ in jobs]) == "." * 9


def test_memory(job: CompileJob) -> None:
    """A job that does not fit waits, a smaller one goes before it, and one always runs."""
    jobs = jobs_like(job, 3)
    memory = dict(zip(jobs, [3000 * MB, 2000 * MB, 100 * MB], strict=True))
    schedule = Schedule(jobs, lambda job: Cost(memory[job] / MB, memory[job]))

    def room(running: Mapping[Task, None]) -> int:
        return 1000 * MB - sum(task.memory for task in running)

    first = schedule.take(None, room)
    assert first and first.job is jobs[0]  # alone, though it is too large
    assert schedule.take(None, room) is None and schedule
    schedule.done(first)
    second = schedule.take(None, room)
    assert second and second.job is jobs[1]
    schedule.done(second)
    schedule = Schedule(jobs[1:], lambda job: Cost(memory[job] / MB, memory[job]))
    small = Task(jobs[0], None, 500 * MB)
    schedule.running[small] = None
    third = schedule.take(None, room)
    assert third and third.job is jobs[2]
    assert schedule.take(None, room) is None
    schedule.done(third)
    schedule.done(small)
    last = schedule.take(None, room)
    assert last and last.job is jobs[1]


def test_killed_ones_are_tried_alone(job: CompileJob) -> None:
    """A task that was killed beside others is done once more, when nothing else runs; then never again."""
    jobs = jobs_like(job, 3)
    schedule = Schedule(jobs, lambda job: Cost(1, 0))
    tasks = [schedule.take(None, lambda running: None) for _ in jobs[:2]]
    assert tasks[0] and tasks[1]
    assert schedule.again(tasks[0])
    schedule.done(tasks[0])
    assert schedule.take(None, lambda running: None) is None and schedule
    schedule.done(tasks[1])
    retried = schedule.take(None, lambda running: None)
    assert retried and retried.job is jobs[0]
    assert not schedule.again(retried)
    schedule.done(retried)
    last = schedule.take(None, lambda running: None)
    assert last and last.job is jobs[2]
    assert not schedule.again(last)


class TestCosts:
    """What is remembered of a compile."""

    def test_remembered(self, tmp_path: Path) -> None:
        """The next build knows what this one took, after an edit too, and beside what it knew."""
        cache = KernelCache.open(str(tmp_path / "cache"))
        root = write(tmp_path, {"k.cu": KERNEL, "other.cu": KERNEL})
        job, other = make_job(root), make_job(root, "other.cu", name="other")
        assert Costs(cache).of(job) == Costs(cache).of(other)
        for each, seconds in ((job, 3.5), (other, 7.0)):
            costs = Costs(cache)
            image = dataclasses.replace(compile_alone(each), seconds=seconds, memory=321 * MB)
            costs.learn(each, image)
            costs.remember()
        edited = make_job(write(tmp_path, {"k.cu": "// edited\n" + KERNEL}))
        assert edited.key != job.key
        assert Costs(cache).of(edited) == Cost(3.5, 321 * MB)
        assert Costs(cache).of(other) == Cost(7.0, 321 * MB)

    @pytest.mark.parametrize(
        "data",
        ["", "[]", "{", '{"m sm_80": 3}', '{"m sm_80": [1]}', '{"m sm_80": ["a", 1]}', '{"m sm_80": [NaN, 1]}',
         '{"m sm_80": [-1, 5]}', '{"m sm_80": [1, 1e400]}', '{"m sm_80": [1e300, 1]}', '{"m sm_80": null}'],
    )  # fmt: skip
    def test_nonsense_is_a_guess(self, tmp_path: Path, data: str) -> None:
        """Whatever stands in the cache, a cost is a sane number."""
        cache = KernelCache.open(str(tmp_path / "cache"))
        job = make_job(write(tmp_path, {"k.cu": KERNEL}))
        cache.remember("costs demo", data.encode())
        assert Costs(cache).of(job) == Costs(KernelCache()).of(job)

    def test_guesses(self, tmp_path: Path) -> None:
        """Headers that are known to be long in compiling tell a guess, through a header of the project too."""
        names = {"plain": "", "cub": "#include <cub/cub.cuh>\n", "deep": '#include "deep.h"\n'}
        files = {f"{name}.cu": text + KERNEL for name, text in names.items()}
        root = write(tmp_path, {**files, "deep.h": "#include <cutlass/gemm/device/gemm.h>\n"})
        guesses = [Costs(KernelCache()).of(make_job(root, f"{name}.cu")) for name in names]
        assert guesses == sorted(guesses, key=lambda cost: (cost.seconds, cost.memory))
        assert len(set(guesses)) == 3
