# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Reading files that nobody else could have written, without ever following a link or blocking on a FIFO."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from pathlib import Path

from .base import MAX_ENTRY

__all__ = ["POSIX", "check_owner", "read_regular"]

POSIX = os.name == "posix"


_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_CAN_TOUCH = os.utime in os.supports_fd


def read_regular(path: Path | str, private: bool, *, touch: bool = False) -> bytes:
    """The bytes of a regular file of this user's, or root's. Raises OSError."""
    handle = os.open(path, _FLAGS)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_ENTRY:
            raise OSError(f"{path} is not a regular file of a sane size")
        check_owner(path, status, private=private)
        data = os.read(handle, status.st_size + 1)
        while len(data) != status.st_size and (more := os.read(handle, 1 << 20)):  # it is being written, or was cut
            data += more
        if touch and _CAN_TOUCH:  # least recently used goes first, whatever the mount's policy
            with contextlib.suppress(OSError):
                os.utime(handle, ns=(max(status.st_atime_ns, time.time_ns()), status.st_mtime_ns))
    finally:
        os.close(handle)
    return data


def check_owner(path: Path | str, status: os.stat_result, *, private: bool = False) -> None:
    """Raise OSError unless only this user, or root, could have written there.

    `private`: nobody else can reach it, so that modes do not matter; a umask of 002 is common.
    """
    if not POSIX:
        return
    if stat.S_ISLNK(status.st_mode):
        raise OSError(f"{path} is a symbolic link")
    if status.st_uid not in (os.geteuid(), 0):
        raise OSError(f"{path} belongs to another user")
    if not private and status.st_mode & 0o022:
        raise OSError(f"{path} can be written by others")
