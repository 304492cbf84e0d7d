# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Executors for the option `executor`, as a project would bring them; and work that misbehaves in their workers."""

from __future__ import annotations

import dataclasses
import hashlib
import multiprocessing
import os
import pickle
import signal
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any


def processes() -> Executor:
    """Processes of the standard library."""
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))


def threads() -> Executor:
    """Threads, each of which starts a process for each image."""
    return ThreadPoolExecutor(2)


def no_executor() -> int:
    """Something else."""
    return 3


def dying() -> Executor:
    """Processes, the first of which dies at its first job; DYING names a file that says whether one did."""
    return _Dying(2, mp_context=multiprocessing.get_context("spawn"))


class _Dying(ProcessPoolExecutor):
    def submit(self, work: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        """Submit, to a worker that may die of it."""
        return super().submit(_die_once, work, *arguments, **options)


def _die_once(work: Any, *arguments: Any) -> Any:
    try:
        os.close(os.open(os.environ["DYING"], os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return work(*arguments)
    return os.kill(os.getpid(), signal.SIGKILL)


def always_dying() -> Executor:
    """Processes that die at every job."""
    return _AlwaysDying(1, mp_context=multiprocessing.get_context("spawn"))


class _AlwaysDying(ProcessPoolExecutor):
    def submit(self, work: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        """Submit, to a worker that dies of it."""
        return super().submit(os._exit, 3)


def liar() -> Executor:
    """A thread whose results were changed on the way."""
    return _Liar(1)


class _Liar(ThreadPoolExecutor):
    def submit(self, work: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        """Submit, and flip a bit of what comes back."""

        def lie() -> Any:
            where, digest, payload = work(*arguments)
            return where, digest, payload[:-20] + bytes([payload[-20] ^ 1]) + payload[-19:]

        return super().submit(lie)


def older() -> Executor:
    """A thread on a machine that has another release of the package."""
    return _Older(1)


class _Older(ThreadPoolExecutor):
    def submit(self, work: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        """Submit what another release would have sent."""
        return super().submit(work, "0.0", *arguments[1:])


def other_headers() -> Executor:
    """A thread on a machine whose toolkit headers differ."""
    return _OtherHeaders(1)


class _OtherHeaders(ThreadPoolExecutor):
    def submit(self, work: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        """Submit, and read another `cuda_fp16.h` than this machine has."""

        def compile_with_others() -> Any:
            where, _, payload = work(*arguments)
            image = pickle.loads(payload)
            reads = dataclasses.replace(image.reads, installed={"cuda_fp16.h": "0" * 64})
            payload = pickle.dumps(dataclasses.replace(image, reads=reads))
            return where, hashlib.sha256(payload).hexdigest(), payload

        return super().submit(compile_with_others)
