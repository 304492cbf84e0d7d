# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What is kept of a compile beside its image, and when it may be believed: pure functions of a record and a job.

A record is JSON, sealed by its own digest, and says under which key it belongs.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from .errors import CudaKernelsError
from .manifest import Omission, Resources, compact_json
from .plan import CompiledImage, CompileJob, Reads, Unit
from .toolkit import ANY_HEADER, Headers

__all__ = [
    "MALFORMED",
    "compiled_image",
    "compiles_in",
    "entry_of",
    "image_named",
    "reads_in",
    "seal",
    "still_holds",
    "unseal",
    "unseal_both",
]

_SCHEMA = 1
_MAX_RECORD = 1 << 25
MALFORMED = (KeyError, TypeError, ValueError, AttributeError, OverflowError, CudaKernelsError)
"""What reading a record raises that says something else than it ought to."""


def seal(key: str, record: Mapping[str, Any], raw: bytes = b"") -> bytes:
    """A record as it is stored under `key`, with bytes that belong to it."""
    body = compact_json({**record, "schema": _SCHEMA, "at": key})
    if raw:
        body = b"\n".join((body, raw))
    return hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def unseal(data: bytes, key: str | None = None) -> dict[str, Any] | None:
    """The record in a sealed entry, or None where its digest fails or it belongs under another key."""
    return unseal_both(data, key)[0]


def unseal_both(data: bytes, key: str | None = None) -> tuple[dict[str, Any] | None, memoryview]:
    """The same, and the bytes that belong to it."""
    nothing = None, memoryview(b"")
    if not 66 <= len(data) <= _MAX_RECORD or data[64:65] != b"\n":
        return nothing
    if hashlib.sha256(memoryview(data)[65:]).hexdigest().encode() != data[:64]:
        return nothing
    end = data.find(b"\n", 65)  # the record is on one line
    end = len(data) if end < 0 else end
    try:
        record = json.loads(data[65:end])
    except (ValueError, RecursionError):
        return nothing
    if not isinstance(record, dict) or record.get("schema") != _SCHEMA or not isinstance(record.get("at"), str):
        return nothing
    return (record, memoryview(data)[end + 1 :]) if key is None or record["at"] == key else nothing


def compiles_in(record: Mapping[str, Any] | None) -> Iterator[tuple[Reads, Mapping[str, Any]]]:
    """The last compiles of a job, newest first: what each read, and its whole entry. Malformed ones are left out."""
    entries = record.get("compiles") if record else None
    for entry in entries if isinstance(entries, list) else []:
        try:
            reads = reads_in(entry["reads"])
        except MALFORMED:
            continue
        yield reads, entry


def reads_in(value: Any) -> Reads:
    """What a record says that was read (plan.Reads.to_dict). Raises one of MALFORMED."""
    return Reads(
        files={str(label): str(digest) for label, digest in value["files"].items()},
        installed={str(name): str(digest) for name, digest in value["installed"].items()},
        missing=tuple(str(name) for name in value["missing"]),
    )


def still_holds(reads: Reads, unit: Unit, headers: Headers) -> bool:
    """Whether a compile of `unit` now would read the same, with `headers` as the installed ones are now."""
    try:
        return _holds(reads, unit, headers)
    except OSError:  # a header that vanished, or may not be read any more
        return False


def _holds(reads: Reads, unit: Unit, headers: Headers) -> bool:
    files = unit.closure.files
    if any(label not in files or files[label].sha256 != digest for label, digest in reads.files.items()):
        return False
    for name, digest in reads.installed.items():
        if digest != (headers.digest_all() if name == ANY_HEADER else headers.digest(name)):
            return False
    return all(headers.digest(name) is None for name in reads.missing)


def entry_of(image: CompiledImage) -> dict[str, Any]:
    """What is kept of a compile beside the image's bytes."""
    return {
        "reads": image.reads.to_dict(),
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


def image_named(entry: Mapping[str, Any], job: CompileJob) -> tuple[str, int] | None:
    """(digest, size) of the image of an entry, if it is this job's."""
    digest, size = entry.get("sha256"), entry.get("size")
    if entry.get("architecture") != str(job.architecture) or entry.get("release") != job.release:
        return None
    return (digest, size) if isinstance(digest, str) and type(size) is int else None


def compiled_image(entry: Mapping[str, Any], job: CompileJob, data: bytes, reads: Reads) -> CompiledImage | None:
    """The image of a job out of its entry and its bytes; None where the entry is malformed."""
    with contextlib.suppress(*MALFORMED):
        return CompiledImage(
            architecture=job.architecture,
            release=job.release,
            data=data,
            kernels={str(name): str(symbol) for name, symbol in entry["kernels"].items()},
            entries={
                str(name): Resources.from_dict(found, "entries") if found else None
                for name, found in entry["entries"].items()
            },
            reads=reads,
            warnings=tuple(str(warning) for warning in entry["warnings"]),
            passed_over=tuple(Omission.from_dict(found, "passed_over") for found in entry["passed_over"]),
            seconds=float(entry["seconds"]),
        )
    return None
