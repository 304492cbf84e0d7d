# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Compiles on other machines: through a Dask cluster, or any `concurrent.futures.Executor`.

A job travels as a value, with the contents of its files. What comes back carries its digest, and says what it read: an
image counts only where this machine would have read the same.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import importlib
import importlib.util
import os
import pickle
import platform
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ._version import __version__
from .errors import CompilationError, ConfigurationError, CudaKernelsError, ToolchainError, first_line
from .plan import CompiledImage, CompileJob
from .records import still_holds
from .toolkit import Headers

if TYPE_CHECKING:
    from .nvrtc import Workspace
    from .pool import Pool

__all__ = ["check_executor", "compile_elsewhere"]

_ATTEMPTS = 3
_PATIENCE = 60.0
_PULSE = 5.0

Result = CompiledImage | CudaKernelsError


def check_executor(executor: str) -> None:
    """Raise ConfigurationError where `executor` cannot give one, as far as that shows without making it: a build that
    finds everything in the cache makes none, and should not hide a mistake until the day when something is missing."""
    kind, _, rest = executor.partition(":")
    if kind == "dask":
        if importlib.util.find_spec("distributed") is None:
            raise _no_dask("there is no module distributed")
    elif executor != "processes":
        _factory(kind, rest)


def compile_elsewhere(
    executor: str, jobs: Sequence[CompileJob], *, timeout: float | None = None
) -> Iterator[tuple[CompileJob, Result]]:
    """Compile jobs through `executor`, `dask:ADDRESS` or `module:factory`; yields each with its image or its error.

    A pool that broke because a worker died is replaced, and what it had not done is tried again. Raises
    ConfigurationError where there is no such executor, ToolchainError where it cannot be reached.
    """
    left = list(jobs)
    for attempt in range(1, _ATTEMPTS + 1):
        lost: list[CompileJob] = []
        with _opened(executor) as (pool, check):
            futures = {pool.submit(_serve, __version__, pickle.dumps(job), timeout): job for job in left}
            for future in _as_done(futures, check):
                job = futures[future]
                if isinstance(future.exception(), BrokenExecutor) and attempt < _ATTEMPTS:
                    lost.append(job)
                else:
                    yield job, _result(executor, job, future)
        left = lost
        if not left:
            return


def _as_done(futures: dict[Future[Any], CompileJob], check: Callable[[], None]) -> Iterator[Future[Any]]:
    waiting = set(futures)
    while waiting:
        done, waiting = wait(waiting, timeout=_PULSE, return_when=FIRST_COMPLETED)
        yield from done
        if not done:
            check()


def _result(executor: str, job: CompileJob, future: Future[Any]) -> Result:
    error = future.exception()
    if isinstance(error, ModuleNotFoundError) and error.name == __package__:
        return ToolchainError(f"{job}: a worker of {executor} has no hatch-cuda-kernels; install {__version__} there")
    if error is not None:
        return ToolchainError(f"{job}: {executor} gave it up ({type(error).__name__}: {first_line(error)})")
    where, digest, payload = future.result()
    if hashlib.sha256(payload).hexdigest() != digest:
        return ToolchainError(f"{job}: what came back from {where} is not what was sent there; build again")
    result = pickle.loads(payload)
    if isinstance(result, CompiledImage):
        return _checked(job, result, where)
    assert isinstance(result, CudaKernelsError)
    return ToolchainError(f"{result} (on {where})") if isinstance(result, ToolchainError) else result


def _checked(job: CompileJob, image: CompiledImage, where: str) -> Result:
    """The image, if a compile here would have read the same and was asked for the same."""
    if (image.architecture, image.release) != (job.architecture, job.release):
        return ToolchainError(f"{job}: {where} compiled for {image.architecture} with NVRTC {image.release}")
    headers = Headers()
    if still_holds(image.reads, job.unit, headers):
        return image
    nothing = replace(image.reads, files={}, installed={}, missing=())
    others = [
        name
        for name, digest in image.reads.installed.items()
        if not still_holds(replace(nothing, installed={name: digest}), job.unit, headers)
    ]
    others += [
        name for name in image.reads.missing if not still_holds(replace(nothing, missing=(name,)), job.unit, headers)
    ]
    return ToolchainError(
        f"{job}: {where} has other toolkit headers than this machine ({', '.join(others[:5]) or 'project files'}); "
        "install the same NVIDIA wheels there"
    )


# -- on the worker -------------------------------------------------------------------------------------------------


def _serve(version: str, packed: bytes, timeout: float | None) -> tuple[str, str, bytes]:
    """Compile one job in a process of its own; (this machine, digest of the result, the pickled result)."""
    payload = pickle.dumps(_compile(version, packed, timeout))
    return platform.node() or "a worker", hashlib.sha256(payload).hexdigest(), payload


def _compile(version: str, packed: bytes, timeout: float | None) -> Result:
    if version != __version__:
        return ToolchainError(f"a worker has hatch-cuda-kernels {__version__}, the build {version}; install the same")
    job = pickle.loads(packed)
    try:
        pool, space = _own_pool(os.getpid(), threading.get_ident(), timeout)
        ((_, result),) = pool.compile([job], space)
    except CudaKernelsError as error:
        return error
    except Exception as error:  # a library's own; the build reports it for this image and goes on
        return CompilationError(f"{job}: {type(error).__name__}: {first_line(error)}")
    return result


@functools.lru_cache(maxsize=64)
def _own_pool(process: int, thread: int, timeout: float | None) -> tuple[Pool, Workspace]:
    """One compiling process for each thread that serves jobs, which keeps its headers laid out from job to job.

    Both end with this process; where it is killed, the compiling one removes their folder.
    """
    from .nvrtc import workspace
    from .pool import Pool

    ending = contextlib.ExitStack()
    atexit.register(ending.close)
    space = ending.enter_context(workspace())
    return ending.enter_context(contextlib.closing(Pool(1, timeout=timeout))), space


# -- executors -----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _opened(executor: str) -> Iterator[tuple[Executor, Callable[[], None]]]:
    """The executor, and what raises ToolchainError once it is sure that nothing more will come."""
    kind, _, rest = executor.partition(":")
    with _dask(rest) if kind == "dask" else _made(kind, rest) as (pool, check):
        try:
            yield pool, check
        finally:
            with contextlib.suppress(Exception):  # what goes wrong now changes nothing any more
                pool.shutdown(wait=False, cancel_futures=True)


@contextlib.contextmanager
def _made(module: str, name: str) -> Iterator[tuple[Executor, Callable[[], None]]]:
    factory = _factory(module, name)
    try:
        pool = factory()
    except Exception as error:
        raise ConfigurationError(f"executor: {module}:{name} gives none ({type(error).__name__}: {error})") from None
    if not callable(getattr(pool, "submit", None)):
        raise ConfigurationError(
            f"executor: {module}:{name} gave a {type(pool).__name__}, which is no concurrent.futures.Executor"
        )
    yield pool, lambda: None


def _factory(module: str, name: str) -> Callable[[], Executor]:
    try:
        factory: Callable[[], Executor] = getattr(importlib.import_module(module), name)
    except Exception as error:
        raise ConfigurationError(f"executor: {module}:{name} gives none ({type(error).__name__}: {error})") from None
    if not callable(factory):
        raise ConfigurationError(
            f"executor: {module}:{name} is a {type(factory).__name__}, and has to be a function or class that gives a "
            "concurrent.futures.Executor"
        )
    return factory


def _no_dask(reason: object) -> ConfigurationError:
    return ConfigurationError(
        f"executor: dask needs a library that is missing ({reason}); `pip install 'hatch-cuda-kernels[dask]'`, or "
        "name hatch-cuda-kernels[dask] among the build requirements"
    )


@contextlib.contextmanager
def _dask(address: str) -> Iterator[tuple[Executor, Callable[[], None]]]:
    try:
        from distributed import Client
    except ImportError as error:
        raise _no_dask(error) from None
    try:
        client = Client(address, timeout=_PULSE, set_as_default=False)
    except Exception as error:
        raise ToolchainError(
            f"executor: there is no Dask scheduler at {address} ({first_line(error)}); start it, or build with "
            'HATCH_CUDA_KERNELS_EXECUTOR="processes"'
        ) from None
    last = time.monotonic()

    def check() -> None:
        nonlocal last
        if client.scheduler_info()["workers"]:
            last = time.monotonic()
        elif time.monotonic() - last > _PATIENCE:
            raise ToolchainError(f"executor: the Dask scheduler at {address} has had no worker for {_PATIENCE:.0f} s")

    with client:
        yield client.get_executor(pure=False, retries=_ATTEMPTS - 1), check
