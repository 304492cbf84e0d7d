# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Scans of source files remembered between processes, by the digest of what was scanned.

A library of headers is large, and seldom another one: to read and digest it takes a fraction of the time that it takes
to find out again what its files could include. A scan is a function of a file's bytes and of the scanner, and both are
in the key. Where the files are, and which are missing, is remembered nowhere: every process looks.

All scans of one set of modules are one entry, since one is read in less time than a hundred.
"""

from __future__ import annotations

import functools
import hashlib
import json
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import scanning
from ._version import __version__
from .manifest import compact_json
from .scanning import Include, Scan
from .sources import SourceFile
from .toolchain import Memory

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["RememberedScans"]

_WORTH = 1 << 19
"""Bytes whose scan takes longer than an entry of the cache does. To scan a file takes as long as some bytes more."""
_FILE = 1 << 10
_MOST = 1 << 24


class RememberedScans:
    """Scans by digest: those that an earlier process made for the same `places`, and those that are made now.

    The places of a module are its package and the folders of its headers, as far as these are likely to be shared. What
    a later process has a use for is remembered at the end, unless it is sooner made than remembered.
    """

    def __init__(self, memory: Memory, places: Iterable[tuple[str, ...]]) -> None:
        self._memory = memory
        self._key = _key(places)
        self._known = _decoded(memory.recall(self._key)) if self._key else {}
        self._used: dict[str, Scan] = {}
        self._scanned = 0

    def of(self, file: SourceFile) -> Scan:
        """See sources.Scans."""
        scan = self._known.get(file.sha256)
        if scan is None:
            scan = file.scan
            self._scanned += _FILE + len(file.data)
        self._used[file.sha256] = scan
        return scan

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if self._key and self._scanned >= _WORTH and (kind is None or issubclass(kind, Exception)):
            data = _encoded(self._used)
            if len(data) <= _MOST:
                self._memory.remember(self._key, data)


def _key(places: Iterable[tuple[str, ...]]) -> str | None:
    """Where scans are remembered; None where it cannot be told which scanner this is."""
    scanner = _scanner()
    value = compact_json([scanner, sorted(set(places))])
    return None if scanner is None else f"scans {hashlib.sha256(value).hexdigest()}"


@functools.lru_cache(maxsize=1)
def _scanner() -> list[str] | None:
    """What tells this scanner from others: its text, and how bytes become names here."""
    try:
        code = Path(scanning.__file__).read_bytes()
    except OSError:
        return None
    return [__version__, hashlib.sha256(code).hexdigest(), sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()]


def _encoded(scans: Mapping[str, Scan]) -> bytes:
    """In ASCII, since a name may have bytes that are no text. What would not come back as it went is left out."""
    rows = {digest: _row(scan) for digest, scan in scans.items()}
    return json.dumps({digest: row for digest, row in rows.items() if _same(row, scans[digest])}).encode()


def _same(row: list[Any], scan: Scan) -> bool:
    return _scan(json.loads(json.dumps(row))) == scan


def _decoded(data: bytes | None) -> dict[str, Scan]:
    with suppress(ValueError, TypeError, AttributeError, RecursionError):
        return {digest: _scan(row) for digest, row in json.loads(data or b"{}").items()}
    return {}


def _row(scan: Scan) -> list[Any]:
    return [scan.includes, scan.computed, scan.objects, scan.functions, scan.names_file, scan.names_time]


def _scan(row: list[Any]) -> Scan:
    """Raises TypeError or ValueError for what is no row."""
    includes, computed, objects, functions, names_file, names_time = row
    return Scan(
        includes=tuple(Include(_text(spelling), _flag(quoted), _flag(every)) for spelling, quoted, every in includes),
        computed=tuple(map(_text, computed)),
        objects=tuple((_text(name), _text(body)) for name, body in objects),
        functions=tuple((_text(name), _text(parameters), _text(body)) for name, parameters, body in functions),
        names_file=_flag(names_file),
        names_time=_flag(names_time),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(value)
    return value
