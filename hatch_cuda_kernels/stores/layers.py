# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""One place of a cache as a build sees it: it never raises, never blocks for long, and is counted."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ..errors import first_line, warn_once
from .base import Store
from .sealing import DamagedError
from .state import Counts

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

__all__ = ["Layer"]

_STALL_SECONDS = 1.0
_FAILURES = 3
_WRITERS = 8
_MOST_BEHIND = 256
_FLUSH_SECONDS = 60.0
_REST_SECONDS = 300.0


class Layer:
    """A store with a guard: any failure is one warning and a miss.

    A remote one is left alone for minutes once it stalled, or failed several times in a row: a dead remote costs one
    short wait. What is written to it is written behind the caller's back, until `flush`.
    """

    def __init__(self, store: Any, *, writable: bool = True) -> None:
        """`store` speaks ProgramCacheResource; a Store, or one of cuda.core's."""
        self.store = store
        self.name: str = getattr(store, "name", type(store).__name__)
        self.remote: bool = getattr(store, "remote", False)
        self.writable = writable
        self._counts = Counts()
        self._bytes_read = 0
        self._lock = threading.Lock()
        self._failures = 0
        self._rests_until = 0.0
        self._problem: str | None = None
        self._writers: ThreadPoolExecutor | None = None
        self._behind: list[Future[object]] = []

    @property
    def alive(self) -> bool:
        """Whether it is asked at the moment."""
        return not self._rests_until or time.monotonic() >= self._rests_until

    def read(self, key: bytes | str) -> bytes | None:
        """The bytes under `key`; None where there are none, or something went wrong."""
        if not self.alive:
            return None
        begin = time.monotonic()
        try:
            data: bytes | None = self.store.get(key)
        except Exception as error:
            self._failed(error, "read", begin)
            return None
        self._failures = 0
        if data is not None:
            with self._lock:
                self._bytes_read += len(data)
        return data

    def write(self, key: bytes | str, data: Any) -> bool:
        """Put bytes under `key`; whether that went well."""
        if not self.writable or not self.alive:
            return False
        with self.guarded("written"):
            self.store[key] = data
            self.add(Counts(bytes_written=len(data)))
            return True
        return False

    def usage(self) -> tuple[int, int] | None:
        """(entries, their bytes), where the store tells."""
        with self.guarded("read"):
            return self.store.usage() if isinstance(self.store, Store) else None
        return None

    def behind(self, work: Callable[[], object]) -> None:
        """Do `work` now, or, where it waits for another machine, meanwhile."""
        if not self.remote:
            work()
            return
        if not self.alive:
            return
        if self._writers is None:
            from concurrent.futures import ThreadPoolExecutor

            self._writers = ThreadPoolExecutor(_WRITERS, thread_name_prefix="cache")
        if len(self._behind) >= _MOST_BEHIND and not self._make_room():
            return
        self._behind.append(self._writers.submit(work))

    def _make_room(self) -> bool:
        """Wait until something of what is written behind is there; what waits for its turn is held in memory."""
        from concurrent.futures import FIRST_COMPLETED, wait

        done, late = wait(self._behind, timeout=_STALL_SECONDS, return_when=FIRST_COMPLETED)
        self._behind = list(late)
        if not done:
            self._problem = f"the compile cache at {self.name} is too slow to write to; going on without it"
            self._rests_until = time.monotonic() + _REST_SECONDS
        return bool(done)

    @property
    def pending(self) -> int:
        """How many images are still to be written behind."""
        return sum(not future.done() for future in self._behind)

    def flush(self) -> None:
        """Wait, for a bounded time, until what was written behind is there."""
        if self._behind:
            from concurrent.futures import wait

            late = wait(self._behind, timeout=_FLUSH_SECONDS).not_done
            if late:
                self.drop()
                warn_once(f"the compile cache at {self.name} is too slow to write to; {len(late)} images are left out")
        self.report()

    def drop(self) -> None:
        """Write nothing more of what is still to be written behind."""
        if self._writers is not None:
            self._writers.shutdown(wait=False, cancel_futures=True)
            self._writers = None
        self._behind.clear()

    def report(self) -> None:
        """Say what went wrong with another machine, if anything did: once, and not from a thread of its own."""
        if self._problem:
            warn_once(self._problem)

    def close(self) -> None:
        """Let go of the store."""
        with self.guarded("closed"):
            self.store.close()

    # -- counting ------------------------------------------------------------------------------------------------

    def add(self, counts: Counts) -> None:
        """Count."""
        with self._lock:
            self._counts += counts

    def take(self) -> Counts:
        """The counts so far, to be counted from nothing again."""
        with self._lock:
            counts = self._counts + Counts(bytes_read=self._bytes_read)
            self._counts, self._bytes_read = Counts(), 0
        return counts

    # -- failures ------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def guarded(self, doing: str) -> Iterator[None]:
        """Turn any failure of the store into one warning."""
        begin = time.monotonic()
        try:
            yield
            self._failures = 0
        except Exception as error:
            self._failed(error, doing, begin)

    def _failed(self, error: Exception, doing: str, begin: float) -> None:
        """Whatever a store or a file system raises, the work goes on without it."""
        self.add(Counts(errors=1))
        reason = error.strerror if isinstance(error, OSError) and error.strerror else first_line(error)
        problem = f"the compile cache at {self.name} cannot be {doing} ({reason}); going on without it"
        if not self.remote:
            warn_once(problem)
            return
        self._problem = self._problem or problem
        if isinstance(error, DamagedError):
            return
        self._failures += 1
        if self._failures >= _FAILURES or time.monotonic() - begin >= _STALL_SECONDS:
            self._rests_until = time.monotonic() + _REST_SECONDS
