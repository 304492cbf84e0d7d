# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""One file of SQLite: a hard cap on what it holds, and a strict order of use that no clock decides."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import warn_once
from .base import MAX_ENTRY, Store, key_bytes, value_bytes
from .files import POSIX, check_owner
from .sealing import add_seal, check_seal

if TYPE_CHECKING:
    import sqlite3

__all__ = ["DatabaseStore"]

_SECONDS = 10.0
_SQLITE = b"SQLite format 3\0"
_APPLICATION = 0x48434B31
_HEADER, _MARK = 100, 68
"""Bytes of the header of a database, and where `application_id` stands there (sqlite.org/fileformat2.html)."""
_SCHEMA = """
CREATE TABLE entries (key BLOB NOT NULL UNIQUE, data BLOB NOT NULL, used INTEGER NOT NULL);
CREATE INDEX by_use ON entries (used);
CREATE TABLE total (bytes INTEGER NOT NULL);
INSERT INTO total VALUES (0);
CREATE TRIGGER more AFTER INSERT ON entries BEGIN UPDATE total SET bytes = bytes + length(new.data); END;
CREATE TRIGGER less AFTER DELETE ON entries BEGIN UPDATE total SET bytes = bytes - length(old.data); END;
"""
_NEXT = "(SELECT coalesce(max(used), 0) + 1 FROM entries)"
_T = TypeVar("_T")


class DatabaseStore(Store):
    """A database in WAL mode. A file that SQLite finds damaged is moved aside and begun anew."""

    def __init__(self, path: Path, *, max_size: int | None = None, make: bool = True) -> None:
        """Make the file where it is missing, if it may be made. Raises OSError or sqlite3.Error."""
        self._max_size = max_size
        self._make = make
        self.name = f"sqlite:{path}"
        if make:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = Path(os.path.realpath(path.parent)) / path.name
        self.state = Path(f"{self.path}.state")
        """A folder beside it, which shows like the mark in the file itself that a damaged one once was ours."""
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._process = 0
        self._inode = 0
        self._marked = False
        self._work(lambda connection: None)

    def get(self, key: bytes | str, default: bytes | None = None) -> bytes | None:
        """The bytes under `key`, or `default`."""
        key = key_bytes(key)
        row = self._work(lambda connection: self._read(connection, key))
        return default if row is None else check_seal(key, row, None)

    def _read(self, connection: sqlite3.Connection, key: bytes) -> bytes | None:
        import sqlite3

        row = connection.execute("SELECT data, used FROM entries WHERE key = ?", (key,)).fetchone()
        if row is None or not isinstance(row[0], bytes):
            return None
        if self._max_size is not None:
            with contextlib.suppress(sqlite3.OperationalError):  # read-only, or busy for long: the order suffers
                connection.execute(
                    f"UPDATE entries SET used = {_NEXT} WHERE key = ? AND used < (SELECT max(used) FROM entries)",
                    (key,),
                )
        return row[0]

    def __setitem__(self, key: bytes | str, value: Any) -> None:
        key = key_bytes(key)
        entry = add_seal(key, value_bytes(value), None)
        self._work(lambda connection: self._write(connection, key, entry))

    def _write(self, connection: sqlite3.Connection, key: bytes, entry: bytes) -> None:
        with _transaction(connection):
            connection.execute("DELETE FROM entries WHERE key = ?", (key,))
            if len(entry) > min(self._max_size or MAX_ENTRY, MAX_ENTRY):
                return
            connection.execute(f"INSERT INTO entries (key, data, used) VALUES (?, ?, {_NEXT})", (key, entry))
            while self._max_size is not None and _total(connection) > self._max_size:
                connection.execute("DELETE FROM entries WHERE used = (SELECT min(used) FROM entries)")

    def __delitem__(self, key: bytes | str) -> None:
        query = "DELETE FROM entries WHERE key = ?"
        if not self._work(lambda connection: connection.execute(query, (key_bytes(key),)).rowcount):
            raise KeyError(key)

    def __len__(self) -> int:
        return int(self._work(lambda connection: connection.execute("SELECT count(*) FROM entries").fetchone()[0]))

    def usage(self) -> tuple[int, int]:
        """(entries, their bytes)."""
        return len(self), self._work(_total)

    def clear(self) -> None:
        """Remove every entry, and give its room back."""

        def remove(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM entries")
            connection.execute("VACUUM")

        self._work(remove)

    def entries(self) -> Iterator[tuple[bytes, str | None]]:
        """Key of every entry, and what is wrong with it."""
        for (key,) in self._work(lambda connection: connection.execute("SELECT key FROM entries").fetchall()):
            problem: str | None = None
            try:
                self.get(key)
            except ValueError as error:
                problem = str(error)
            yield key, problem

    def close(self) -> None:
        """Close the file; a later use opens it again."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None and self._process == os.getpid():
                connection.close()

    # -- the file ------------------------------------------------------------------------------------------------

    def _work(self, do: Callable[[sqlite3.Connection], _T]) -> _T:
        """Do something with the database; once more, with a new one, where it is damaged."""
        import sqlite3

        with self._lock:
            try:
                return do(self._open())
            except sqlite3.DatabaseError as error:
                # damage has no class of its own; a lost table is damage, too
                if type(error) is not sqlite3.DatabaseError and not str(error).startswith("no such"):
                    raise
                self._move_aside()
                return do(self._open())

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None and self._process == os.getpid():
            return self._connection
        if self._connection is not None:
            _inherited.append(self._connection)  # the parent's; closing it here would drop the parent's locks
        import sqlite3

        self._check_file()
        with self._locked():
            if os.access(self.path, os.W_OK):
                connection = sqlite3.connect(self.path, timeout=_SECONDS, isolation_level=None, check_same_thread=False)
            else:  # a layer to read only, where SQLite could not even make its index of the log
                connection = sqlite3.connect(f"{self.path.as_uri()}?immutable=1", uri=True, check_same_thread=False)
            self._inode = self.path.stat().st_ino
            self._prepare(connection)
        self._connection, self._process = connection, os.getpid()
        return connection

    def _check_file(self) -> None:
        """Make the file, and refuse one that others could have written, or that never was a database of ours."""
        flags = os.O_RDONLY | (os.O_CREAT if self._make else 0)
        flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        with os.fdopen(os.open(self.path, flags, 0o600), "rb") as file:
            if POSIX:
                check_owner(self.path.parent, self.path.parent.stat())
                check_owner(self.path, os.fstat(file.fileno()))
            begin = file.read(_HEADER)
            self._marked = begin[_MARK : _MARK + 4] == _APPLICATION.to_bytes(4, "big")
            if begin[: len(_SQLITE)] not in (b"", _SQLITE) and not self._is_ours:
                raise OSError(f"{self.path} is no database; remove it, or name another file")

    @property
    def _is_ours(self) -> bool:
        return self._marked or self.state.is_dir()

    def _prepare(self, connection: sqlite3.Connection) -> None:
        try:
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            if application != _APPLICATION:
                if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,):
                    raise OSError(f"{self.path} is a database of something else")
                self.state.mkdir(mode=0o700, exist_ok=True)
                connection.execute("PRAGMA journal_mode = WAL")
                with _transaction(connection):
                    for statement in _SCHEMA.strip().split(";\n"):
                        connection.execute(statement)
                    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            connection.close()
            raise

    def _move_aside(self) -> None:
        self.close()
        if not self._is_ours:
            raise OSError(
                f"{self.path} is damaged, and nothing shows that it is a cache; remove it, or name another file"
            )
        with self._locked():
            with contextlib.suppress(FileNotFoundError):
                if self.path.stat().st_ino != self._inode:
                    return  # another process was first
            aside = f"{self.path}.damaged"  # of several the last one, so that they do not pile up
            warn_once(f"{self.path} was damaged and is begun anew; what it was is {aside} now, which nothing needs")
            for suffix in ("-wal", "-shm", ""):  # a new file must not meet the old one's log
                with contextlib.suppress(FileNotFoundError):
                    os.replace(f"{self.path}{suffix}", f"{aside}{suffix}")

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Alone among those that open the file or move it; without a lock where this user may write none."""
        import filelock

        with contextlib.ExitStack() as stack:
            if os.access(self.path, os.W_OK):
                stack.enter_context(filelock.FileLock(f"{self.path}.lock", timeout=_SECONDS))
            yield


_inherited: list[sqlite3.Connection] = []
"""Connections of a parent process, never to be closed in this one."""


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise


def _total(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT bytes FROM total").fetchone()[0])
