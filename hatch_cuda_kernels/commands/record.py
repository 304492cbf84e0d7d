# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""A wheel against its own list of files, RECORD: installers refuse one that does not fit, or should."""

from __future__ import annotations

import base64
import csv
import hashlib
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

__all__ = ["check_record"]

_CHUNK = 1 << 20
_MOST_BYTES = 1 << 28
_ALGORITHMS = ("sha256", "sha384", "sha512")
_UNLISTED = ("", ".jws", ".p7s")
"""RECORD does not list itself, nor its signatures."""
_DAMAGED = (zipfile.BadZipFile, zlib.error, OSError, NotImplementedError, RuntimeError, EOFError)


def check_record(wheel: Path) -> Iterator[tuple[str, str]]:
    """(path, problem) of every file of a wheel that RECORD does not have, or has otherwise."""
    with zipfile.ZipFile(wheel) as archive:
        members = {entry.filename: entry.file_size for entry in archive.infolist() if not entry.is_dir()}
        records = [name for name in members if name.count("/") == 1 and name.endswith(".dist-info/RECORD")]
        if len(records) != 1:
            yield ".dist-info/RECORD", f"a wheel has one, and this has {len(records) or 'none'}"
            return
        (record,) = records
        try:
            listed = _rows(archive, record, members[record])
        except (*_DAMAGED, ValueError, csv.Error) as error:
            yield record, f"cannot be read ({error})"
            return
        exempt = {record + suffix for suffix in _UNLISTED}
        for name in sorted(members.keys() - listed.keys() - exempt):
            yield name, "is not listed in RECORD"
        for name, (digest, size) in sorted(listed.items()):
            if name not in exempt and (problem := _problem(archive, members, name, digest, size)):
                yield name, problem


def _rows(archive: zipfile.ZipFile, record: str, size: int) -> dict[str, tuple[str, str]]:
    """Path -> (digest, size) as RECORD has them. Raises ValueError."""
    if size > _MOST_BYTES:
        raise ValueError(f"{size} bytes are no list of files")
    rows = list(csv.reader(archive.read(record).decode("utf-8").splitlines()))
    if any(len(row) != 3 for row in rows):
        raise ValueError("a line has not three fields")
    return {path: (digest, size) for path, digest, size in rows}


def _problem(archive: zipfile.ZipFile, members: dict[str, int], name: str, digest: str, size: str) -> str | None:
    if name not in members:
        return "is listed in RECORD, and is not there"
    algorithm, _, expected = digest.partition("=")
    if algorithm not in _ALGORITHMS:
        return f"RECORD has no digest of it that counts ({digest or 'none'})"
    if size != str(members[name]):
        return f"has {members[name]} bytes, and {size or 'no size'} in RECORD"
    state = hashlib.new(algorithm)
    try:
        with archive.open(name) as stream:
            while block := stream.read(_CHUNK):
                state.update(block)
    except _DAMAGED as error:
        return f"cannot be read ({error})"
    found = base64.urlsafe_b64encode(state.digest()).rstrip(b"=").decode()
    return None if found == expected else "has another digest than RECORD says"
