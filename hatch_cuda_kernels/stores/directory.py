# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""A folder of files, laid as cuda.core's `FileStreamProgramCache` lays them, and read without it."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .base import Store, key_digest, value_bytes
from .files import POSIX, check_owner, read_regular

__all__ = ["DirectoryStore"]

_FOLDER = re.compile(r"[0-9a-f]{2}|\.DS_Store")
_ENTRY = re.compile("[0-9a-f]{62}")
_UNFINISHED = re.compile(r"entry-.*|\.nfs[0-9a-f]+|\.DS_Store")
"""Names that cuda.core gives: of the folders in `entries`, of the files there, and of those in `tmp`."""
_ATTEMPTS = 20
_STALE_SECONDS = 600.0


class DirectoryStore(Store):
    """A directory that only this user, or root, can write to. No link below it is followed."""

    def __init__(
        self, directory: Path, *, shared: bool = False, max_size: int | None = None, make: bool = True
    ) -> None:
        """Make the directory where it is missing, if it may be made. `shared`: others may read what is written.

        Raises OSError.
        """
        self._mode = 0o755 if shared else 0o700
        self._max_size = max_size
        self.name = str(directory)
        if make:
            directory.mkdir(mode=self._mode, parents=True, exist_ok=True)
        self.directory = Path(os.path.realpath(directory))
        status = self.directory.stat()
        check_owner(self.directory, status)
        self.private = not POSIX or status.st_mode & 0o077 == 0
        """Whether nobody else can even enter it."""
        self._shared = shared and not self.private
        if make:
            self._refuse_others("entries", _FOLDER)
            self._refuse_others("tmp", _UNFINISHED)
        self._top = str(self.directory)
        self._entries = os.path.join(self._top, "entries")
        self._trusted: set[str] = set()
        """Folders that were looked at, which nobody else can reach."""

    def _refuse_others(self, name: str, own: re.Pattern[str]) -> None:
        """Raise OSError where a folder here has what no cache put there: cuda.core's would delete it some day."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(self.directory / name) as found:
            for entry in found:
                if not own.fullmatch(entry.name):
                    raise OSError(f"{entry.path} is no file of a cache; name a folder of its own")

    def path(self, key: bytes | str) -> Path:
        """Where FileStreamProgramCache keeps a key. Reads go there directly, so that they need no cuda.core."""
        return Path(*self._place(key))

    def _place(self, key: bytes | str) -> tuple[str, str]:
        digest = key_digest(key)
        return os.path.join(self._entries, digest[:2]), digest[2:]

    def get(self, key: bytes | str, default: bytes | None = None) -> bytes | None:
        """The bytes under `key`, or `default`. Raises OSError for what could be another's."""
        try:
            return self._read(*self._place(key), touch=True)
        except FileNotFoundError:
            return default

    def read_file(self, path: Path) -> bytes:
        """Read an entry as `get` does, which does not count as a use of it."""
        return self._read(*os.path.split(path), touch=False)

    def _read(self, folder: str, name: str, *, touch: bool) -> bytes:
        """Read an entry without following a link, blocking on a FIFO, or believing what others could have written."""
        if POSIX and folder not in self._trusted:
            for each in (self._top, self._entries, folder):
                check_owner(each, os.lstat(each), private=self.private)
            if self.private:
                self._trusted.add(folder)
        return read_regular(os.path.join(folder, name), self.private, touch=touch)

    @functools.cached_property
    def _writer(self) -> Any:
        from cuda.core.utils import FileStreamProgramCache

        if self._max_size is not None:
            with contextlib.suppress(FileNotFoundError), os.scandir(self._entries) as folders:
                for folder in folders:
                    self._refuse_others(f"entries/{folder.name}", _ENTRY)
        return FileStreamProgramCache(self.directory, max_size_bytes=self._max_size)

    def __setitem__(self, key: bytes | str, value: Any) -> None:
        data, path = value_bytes(value), self.path(key)
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self.make_folders(path.parent.parent, path.parent, self.directory / "tmp")
                self._writer[key] = data
                break
            except (FileNotFoundError, FileExistsError):  # `cache clear` or `rm -rf` between two of its steps
                if attempt == _ATTEMPTS:
                    raise
        if self._shared:
            with contextlib.suppress(FileNotFoundError):
                path.chmod(0o644)

    def make_folders(self, *folders: Path) -> None:
        """Make folders of the cache that are missing, and refuse those that others could write to."""
        for folder in (self.directory, *folders):
            with contextlib.suppress(FileExistsError):
                folder.mkdir(mode=self._mode)
            if POSIX:
                check_owner(folder, folder.lstat(), private=self.private)

    def __delitem__(self, key: bytes | str) -> None:
        try:
            self.path(key).unlink()
        except FileNotFoundError:
            raise KeyError(key) from None

    def __len__(self) -> int:
        return sum(1 for _ in self.entries())

    def entries(self) -> Iterator[tuple[Path, int]]:
        """Path and size of every entry, of whatever kind of file."""
        if os.path.islink(self._entries):
            return
        for folder, directories, names in os.walk(self._entries):
            directories[:] = sorted(filter(_FOLDER.fullmatch, directories)) if folder == self._entries else []
            for name in sorted(filter(_ENTRY.fullmatch, names)) if folder != self._entries else ():
                path = Path(folder, name)
                with contextlib.suppress(FileNotFoundError):
                    yield path, path.lstat().st_size

    def usage(self) -> tuple[int, int]:
        """(entries, their bytes)."""
        sizes = [size for _, size in self.entries()]
        return len(sizes), sum(sizes)

    def clear(self) -> None:
        """Remove every entry, and nothing else; processes that use the cache meanwhile see misses. Raises OSError.

        Folders stay, so that no writer loses the one that it is about to use.
        """
        for path, _ in list(self.entries()):
            path.unlink(missing_ok=True)
        for path in (self.directory / "tmp").glob("entry-*"):
            with contextlib.suppress(OSError):
                if path.lstat().st_mtime < time.time() - _STALE_SECONDS:
                    path.unlink()
