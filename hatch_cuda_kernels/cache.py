# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Compiled images kept between builds and processes: a record and a blob (docs/explanation/caching.md).

Under a job's key stands what it read the last times; those reads, when they still hold, lead to the key of a record;
the record names the image by its digest, and under that digest stands the raw image. Every part is checked when it
is read, and anything odd is a miss. No error of a cache ever reaches a build or a load: it is one warning.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from .arch import Architecture
from .errors import CudaKernelsError, warn_once
from .manifest import Omission, Resources, canonical_json
from .plan import CompiledImage, CompileJob, Reads
from .toolkit import ANY_HEADER, digest_header, digest_roots, find_header, installed_roots

__all__ = ["CACHE_VARIABLE", "KernelCache", "default_directory", "load_or_compile"]

CACHE_VARIABLE = "HATCH_CUDA_KERNELS_CACHE"

_SCHEMA = 1
_READS_KEPT = 8
_MAX_ENTRY = 1 << 32
_MAX_STATISTICS = 1 << 16
_LOCK_SECONDS = 600.0
_POSIX = os.name == "posix"
_ATTEMPTS = 20
_NOT_OURS = (errno.EACCES, errno.EPERM, errno.EROFS)
_MALFORMED = (KeyError, TypeError, ValueError, AttributeError, OverflowError, CudaKernelsError)


def default_directory() -> Path | None:
    """The user cache directory of this package; None, with a warning, where the user has no usable home."""
    import platformdirs

    if _POSIX:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~")
        if not os.path.isabs(base) or base == "/" or not (os.environ.get("XDG_CACHE_HOME") or Path(base).is_dir()):
            warn_once(f"no compile cache: {base!r} is no home for one; set {CACHE_VARIABLE} to a folder, or to 0")
            return None
    return Path(platformdirs.user_cache_dir("hatch-cuda-kernels", appauthor=False))


class KernelCache:
    """Images by content. All methods are safe to call whatever state the directory is in, and none raises."""

    def __init__(self, directory: Path | None, *, max_size: int | None = None) -> None:
        self.directory = directory
        """Where the entries are; None: nothing is kept."""
        self.hits = 0
        self.misses = 0
        self._max_size = max_size
        self._shared = False
        self._private = False

    @property
    def _mode(self) -> int:
        return 0o755 if self._shared else 0o700

    @classmethod
    def open(cls, location: bool | str = True, *, max_size: int | None = None) -> KernelCache:
        """The cache at `location`: a folder, True for the default one, False for none. Creates the folder."""
        if location is False:
            return cls(None)
        if isinstance(location, str) and "://" in location:
            warn_once(f"no compile cache: {location!r} is no folder, and other locations are not supported")
            return cls(None)
        directory = default_directory() if location is True else Path(os.path.expanduser(location))
        cache = cls(directory, max_size=max_size)
        if directory is not None:
            with cache._guarded("opened"):
                # Others may read what root compiles into a folder that was asked for: the layer of an image.
                cache._shared = location is not True and _POSIX and os.geteuid() == 0
                directory.mkdir(mode=cache._mode, parents=True, exist_ok=True)
                cache.directory = Path(os.path.realpath(directory))
                status = cache.directory.stat()
                _check_owner(cache.directory, status)
                cache._private = not _POSIX or status.st_mode & 0o077 == 0
        return cache

    @classmethod
    def from_environment(cls) -> KernelCache:
        """The cache that the environment names: what the run-time loader uses."""
        text = os.environ.get(CACHE_VARIABLE)
        from .config import cache_switch

        return cls.open(cache_switch(text or ""))

    # -- images ------------------------------------------------------------------------------------------------

    def lookup(self, job: CompileJob) -> CompiledImage | None:
        """The image that this job gave before, with everything that was told about it; None is a miss."""
        image = self._lookup(job)
        if image is None:
            self.misses += 1
        else:
            self.hits += 1
        return image

    def _lookup(self, job: CompileJob) -> CompiledImage | None:
        for reads in self._known_reads(job):
            try:
                if not _still_holds(reads, job):
                    continue
            except OSError:  # a header that vanished, or may not be read any more
                continue
            record = self._load(f"result {reads.result_key(job.key)}")
            image = None if record is None else _image_from(record, job)
            if image is None:
                continue
            digest, size = image
            data = self.read(f"blob {digest}")
            if data is not None and len(data) == size and hashlib.sha256(data).hexdigest() == digest:
                with contextlib.suppress(*_MALFORMED):
                    return _compiled(record or {}, job, data, reads)
        return None

    def store(self, job: CompileJob, image: CompiledImage) -> None:
        """Keep an image: the blob first, then its record, then what leads there."""
        key = image.reads.result_key(job.key)
        record = {
            "architecture": str(image.architecture),
            "release": image.release,
            "sha256": image.sha256,
            "size": len(image.data),
            "kernels": dict(image.kernels),
            "entries": {name: found.to_dict() if found else {} for name, found in image.entries.items()},
            "warnings": list(image.warnings),
            "passed_over": [omission.to_dict() for omission in image.passed_over],
            "seconds": image.seconds,
        }
        reads = [image.reads, *(known for known in self._known_reads(job) if known != image.reads)]
        if not self.write(f"blob {image.sha256}", image.data):
            return
        self._save(f"result {key}", record)
        self._save(f"reads {job.key}", {"sets": [found.to_dict() for found in reads[:_READS_KEPT]]})

    def _known_reads(self, job: CompileJob) -> list[Reads]:
        record = self._load(f"reads {job.key}") or {}
        found = []
        sets = record.get("sets")
        for entry in sets if isinstance(sets, list) else []:
            with contextlib.suppress(*_MALFORMED):
                found.append(
                    Reads(
                        files={str(label): str(digest) for label, digest in entry["files"].items()},
                        installed={str(name): str(digest) for name, digest in entry["installed"].items()},
                        missing=tuple(str(name) for name in entry["missing"]),
                    )
                )
        return found

    # -- small facts, see toolchain.Memory -----------------------------------------------------------------------

    def recall(self, key: str) -> bytes | None:
        """A fact remembered by an earlier process."""
        record = self._load(f"fact {key}")
        value = record.get("value") if record else None
        return value.encode() if isinstance(value, str) else None

    def remember(self, key: str, value: bytes) -> None:
        """Remember a fact for later processes."""
        self._save(f"fact {key}", {"value": value.decode()})

    # -- locking and counting ------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def lock(self, name: str, *, timeout: float = _LOCK_SECONDS) -> Iterator[None]:
        """Hold a lock among processes. Goes on without it when it cannot be had: that costs work, not truth."""
        with contextlib.ExitStack() as stack:
            if self.directory is not None:
                with self._guarded("locked"):
                    try:
                        stack.enter_context(self._file_lock(name).acquire(timeout=timeout))
                    except TimeoutError:  # filelock.Timeout is one
                        if timeout == _LOCK_SECONDS:
                            warn_once(f"waited {timeout:.0f} s for another process that compiles the same; going on")
                    except OSError as error:
                        if error.errno not in _NOT_OURS:  # a cache to read only; whoever writes is told
                            raise
            yield

    def _file_lock(self, name: str) -> Any:
        import filelock

        folder = Path(self.directory or "") / "locks"
        self._make_folders(folder)
        return filelock.FileLock(folder / f"{name}.lock")

    def count(self) -> None:
        """Add this object's hits and misses to the totals that `cache info` shows, unless the cache is to read only."""
        if self.directory is None or not (self.hits or self.misses) or not os.access(self.directory, os.W_OK):
            return
        with self._guarded("counted in"):
            path = self.directory / "statistics"
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
            handle = os.open(path, flags, 0o644)
            try:
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    raise OSError(f"{path} is not a regular file")
                if os.fstat(handle).st_size > _MAX_STATISTICS:
                    hits, misses = self.totals()
                    self.hits, self.misses = self.hits + hits, self.misses + misses
                    os.ftruncate(handle, 0)
                # one short line in one write: nobody has to wait for anybody
                os.write(handle, b"%d %d\n" % (self.hits, self.misses))
            finally:
                os.close(handle)
            self.hits = self.misses = 0

    def totals(self) -> tuple[int, int]:
        """(hits, misses) of all processes so far."""
        hits = misses = 0
        if self.directory is not None:
            with self._guarded("read"), contextlib.suppress(FileNotFoundError):
                for line in _read_regular(self.directory / "statistics", self._private).splitlines():
                    if match := re.fullmatch(rb"(\d{1,15}) (\d{1,15})", line):
                        hits, misses = hits + int(match[1]), misses + int(match[2])
        return hits, misses

    # -- housekeeping --------------------------------------------------------------------------------------------

    def entries(self) -> Iterator[tuple[Path, int]]:
        """Path and size of every entry, of whatever kind of file."""
        if self.directory is not None:
            for folder, directories, names in os.walk(self.directory / "entries"):
                directories.sort()
                for name in sorted(names):
                    path = Path(folder, name)
                    with contextlib.suppress(FileNotFoundError):
                        yield path, path.lstat().st_size

    def verify(self) -> Iterator[tuple[Path, str]]:
        """Path and problem of every entry that would not be believed."""
        for path, _ in self.entries():
            try:
                data = self._read_file(path, touch=False)
            except FileNotFoundError:
                continue
            except OSError as error:
                yield path, str(error)
                continue
            if self._path(f"blob {hashlib.sha256(data).hexdigest()}") == path:
                continue
            record = _unseal(data)
            if record is None or self._path(str(record.get("at"))) != path:
                yield path, "fails its digest"

    def clear(self) -> None:
        """Remove every entry; processes that use the cache meanwhile see misses. Raises OSError.

        Folders stay, so that no writer loses the one that it is about to use.
        """
        if self.directory is None:
            return
        for path, _ in list(self.entries()):
            path.unlink(missing_ok=True)
        for path in [*(self.directory / "tmp").glob("*"), *(self.directory / "locks").glob("*.lock")]:
            with contextlib.suppress(OSError):
                if path.suffix == ".lock" or path.lstat().st_mtime < time.time() - _LOCK_SECONDS:
                    path.unlink()

    # -- bytes by key: the layout of cuda.core's FileStreamProgramCache --------------------------------------------

    def _path(self, key: str) -> Path:
        """Where FileStreamProgramCache keeps a key. Reads go there directly, so that they need no cuda.core."""
        digest = hashlib.sha256(key.encode()).hexdigest()
        return Path(self.directory or "") / "entries" / digest[:2] / digest[2:]

    @functools.cached_property
    def _writer(self) -> Any:
        from cuda.core.utils import FileStreamProgramCache

        return FileStreamProgramCache(self.directory, max_size_bytes=self._max_size)

    def read(self, key: str) -> bytes | None:
        """The bytes under `key`, or None."""
        if self.directory is None:
            return None
        with self._guarded("read"), contextlib.suppress(FileNotFoundError):
            return self._read_file(self._path(key))
        return None

    def _read_file(self, path: Path, *, touch: bool = True) -> bytes:
        """Read an entry without following a link, blocking on a FIFO, or believing what others could have written."""
        if _POSIX:
            for folder in (path.parent.parent.parent, path.parent.parent, path.parent):
                _check_owner(folder, folder.lstat(), private=self._private)
        return _read_regular(path, self._private, touch=touch)

    def write(self, key: str, data: bytes) -> bool:
        """Put bytes under `key`; whether that went well."""
        if self.directory is None:
            return False
        with self._guarded("written"):
            path = self._path(key)
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    self._make_folders(path.parent.parent, path.parent, self.directory / "tmp")
                    self._writer[key] = data
                    break
                except (FileNotFoundError, FileExistsError):  # `cache clear` or `rm -rf` between two of its steps
                    if attempt == _ATTEMPTS:
                        raise
            if self._shared and not self._private:
                with contextlib.suppress(FileNotFoundError):
                    path.chmod(0o644)
            return True
        return False

    def _make_folders(self, *folders: Path) -> None:
        """Make folders of the cache that are missing, and refuse those that others could write to."""
        for folder in (Path(self.directory or ""), *folders):
            with contextlib.suppress(FileExistsError):
                folder.mkdir(mode=self._mode)
            if _POSIX:
                _check_owner(folder, folder.lstat(), private=self._private)

    def _load(self, key: str) -> dict[str, Any] | None:
        data = self.read(key)
        record = _unseal(data) if data is not None else None
        return record if record is not None and record.get("at") == key else None

    def _save(self, key: str, record: Mapping[str, Any]) -> bool:
        body = canonical_json({**record, "schema": _SCHEMA, "at": key})
        return self.write(key, hashlib.sha256(body).hexdigest().encode() + b"\n" + body)

    @contextlib.contextmanager
    def _guarded(self, doing: str) -> Iterator[None]:
        """Turn any failure of the store into one warning."""
        try:
            yield
        except Exception as error:  # whatever a store or a file system raises, the work goes on without it
            if doing == "opened":
                where, self.directory = self.directory, None
            else:
                where = self.directory
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            warn_once(f"the compile cache at {where} cannot be {doing} ({reason}); going on without it")


def _read_regular(path: Path, private: bool, *, touch: bool = False) -> bytes:
    flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    handle = os.open(path, os.O_RDONLY | flags)
    with os.fdopen(handle, "rb") as stream:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_ENTRY:
            raise OSError(f"{path} is not a regular file of a sane size")
        _check_owner(path, status, private=private)
        data = stream.read()
        if touch and os.utime in os.supports_fd:  # least recently used goes first, whatever the mount's policy
            with contextlib.suppress(OSError):
                os.utime(handle, ns=(max(status.st_atime_ns, time.time_ns()), status.st_mtime_ns))
    return data


def _check_owner(path: Path, status: os.stat_result, *, private: bool = False) -> None:
    """Raise OSError unless only this user, or root, could have written there.

    `private`: nobody else can reach it, so that modes do not matter; a umask of 002 is common.
    """
    if not _POSIX:
        return
    if stat.S_ISLNK(status.st_mode):
        raise OSError(f"{path} is a symbolic link")
    if status.st_uid not in (os.geteuid(), 0):
        raise OSError(f"{path} belongs to another user")
    if not private and status.st_mode & 0o022:
        raise OSError(f"{path} can be written by others")


def _unseal(data: bytes) -> dict[str, Any] | None:
    """The record in a sealed entry, or None where its digest fails."""
    if len(data) < 66 or hashlib.sha256(data[65:]).hexdigest().encode() != data[:64] or data[64:65] != b"\n":
        return None
    try:
        record = json.loads(data[65:])
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and record.get("schema") == _SCHEMA else None


def _still_holds(reads: Reads, job: CompileJob) -> bool:
    """Whether a compile of `job` now would read the same."""
    files = job.unit.closure.files
    if any(label not in files or files[label].sha256 != digest for label, digest in reads.files.items()):
        return False
    if not reads.installed and not reads.missing:
        return True
    roots = installed_roots()
    for name, digest in reads.installed.items():
        if name == ANY_HEADER:
            if digest_roots(roots) != digest:
                return False
            continue
        path = find_header(name, roots)
        if path is None or digest_header(path) != digest:
            return False
    return all(find_header(name, roots) is None for name in reads.missing)


def _image_from(record: Mapping[str, Any], job: CompileJob) -> tuple[str, int] | None:
    """(digest, size) of the image that a record names, if it is this job's."""
    digest, size = record.get("sha256"), record.get("size")
    if record.get("architecture") != str(job.architecture) or record.get("release") != job.release:
        return None
    return (digest, size) if isinstance(digest, str) and type(size) is int else None


def _compiled(record: Mapping[str, Any], job: CompileJob, data: bytes, reads: Reads) -> CompiledImage:
    return CompiledImage(
        architecture=Architecture.parse(record["architecture"]),
        release=job.release,
        data=data,
        kernels={str(name): str(symbol) for name, symbol in record["kernels"].items()},
        entries={
            str(name): Resources.from_dict(found, "entries") if found else None
            for name, found in record["entries"].items()
        },
        reads=reads,
        warnings=tuple(str(warning) for warning in record["warnings"]),
        seconds=float(record["seconds"]),
        passed_over=tuple(Omission.from_dict(found, "passed_over") for found in record["passed_over"]),
    )


def load_or_compile(
    job: CompileJob, cache: KernelCache, compile_now: Callable[[CompileJob], CompiledImage]
) -> tuple[CompiledImage, bool]:
    """The image of a job, and whether it was cached; among processes that want the same one, one compiles it."""
    image = cache.lookup(job)
    if image is not None:
        return image, True
    with cache.lock(job.key):
        image = cache._lookup(job)
        if image is not None:
            return image, True
        image = compile_now(job)
        cache.store(job, image)
    return image, False
