# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Temporary folders that end with the process that made them, or with the next one where that was killed.

Whoever has a folder holds a lock on a file inside, which the system lets go of when the last of its processes ends,
however that ends. So a folder whose lock can be had is nobody's, also where its maker was in another container.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from filelock import BaseFileLock

__all__ = ["Scratch"]

_PREFIX = "hatch-cuda-kernels-"
_ALIVE = ".hatch-cuda-kernels-alive"
_YOUNG = 60.0
"""Seconds within which a folder is locked that was just made."""
_swept: set[str] = set()


class Scratch:
    """A folder that nobody else can write to, until `remove` or the end of this process."""

    def __init__(self, purpose: str = "", parent: str | None = None) -> None:
        """Make it in the folder `parent`, or where temporary files go. Raises OSError."""
        parent = parent or tempfile.gettempdir()
        if parent not in _swept:
            _swept.add(parent)
            _sweep(parent)
        self.path = tempfile.mkdtemp(prefix=_PREFIX + purpose, dir=parent)
        lock = _lock(self.path)
        with contextlib.suppress(OSError, NotImplementedError, TimeoutError):
            lock.acquire()
        self._end = weakref.finalize(self, _remove, self.path, lock, os.getpid())

    def remove(self) -> None:
        """Delete it, and all that is in it."""
        self._end()


def _lock(path: str) -> BaseFileLock:
    import filelock

    return filelock.FileLock(os.path.join(path, _ALIVE), timeout=0, thread_local=False)


def _remove(path: str, lock: Any, maker: int) -> None:
    if os.getpid() == maker:  # and not a child that was forked off
        lock.release()
        shutil.rmtree(path, ignore_errors=True)
        with contextlib.suppress(OSError), open(os.path.join(path, _ALIVE), "x"):
            pass  # where something could not be deleted, whoever comes next shall try again


def _sweep(parent: str) -> None:
    """Delete what processes of this user left that were killed."""
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX) and entry.is_dir(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    if _is_nobodys(entry):
                        shutil.rmtree(entry.path, ignore_errors=True)


def _is_nobodys(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder as this module makes them, and its lock can be had."""
    status = entry.stat(follow_symlinks=False)
    own = not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o077)
    if not own or time.time() - status.st_mtime < _YOUNG or not os.path.isfile(os.path.join(entry.path, _ALIVE)):
        return False
    lock = _lock(entry.path)
    try:
        lock.acquire()
    except (OSError, NotImplementedError, TimeoutError):
        return False
    lock.release()
    return True
