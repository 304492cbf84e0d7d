# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The includes that a source begins with, where they can be compiled once for several sources.

Two jobs have a prefix in common only where every include of both stands in it and would read the same files with the
same macros: same directives, same folder, same project headers by content, same options and macros, same search path,
same architecture. Whatever makes that doubtful leaves a job without one, and it is compiled on its own.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterable

from .manifest import compact_json
from .plan import CompileJob, Unit
from .sources import SourceFile, scan_text, without_comments

__all__ = ["prefix_of", "shared_prefixes"]

_LEADING = re.compile(rb"[ \t]*\#[ \t]*(?P<name>include|define|undef)\b[^\n]*(?P<end>\n|\Z)|[ \t\r\f\v]*(?:\n|\Z)")


def prefix_of(file: SourceFile) -> bytes | None:
    """The directives of a source up to its last include, without comments; None where it has includes elsewhere."""
    text = without_comments(file.data)
    position = end = 0
    while position < len(text) and (match := _LEADING.match(text, position)):
        position = match.end()
        if match["name"] == b"include":
            end = position
    rest = scan_text(text[end:])
    if not end or rest.includes or rest.computed:
        return None
    return b"\n".join(line.strip() for line in text[:end].splitlines() if line.strip()) + b"\n"


def shared_prefixes(jobs: Iterable[CompileJob]) -> dict[CompileJob, str]:
    """Job -> key of its prefix, which jobs that may share it have in common; other jobs are left out."""
    units: dict[Unit, bytes | None] = {}
    found: dict[CompileJob, str] = {}
    for job in jobs:
        if job.unit not in units:
            units[job.unit] = _shared(job.unit)
        if (shared := units[job.unit]) is not None:
            value = f"{job.architecture} {job.release} ".encode() + shared
            found[job] = hashlib.sha256(value).hexdigest()
    return found


def _shared(unit: Unit) -> bytes | None:
    """What has to be equal in units that share a prefix; None for a unit that shares with none."""
    closure = unit.closure
    files = closure.files.values()
    own_name = posixpath.basename(unit.source)
    includes = [include for file in files for include in file.scan.includes]
    if (
        not closure.external
        or unit.parts
        or unit.relocatable
        or unit.labelled
        or closure.ahead
        or closure.names_time
        or any(file.scan.computed for file in files)
        or any(posixpath.basename(include.spelling) == own_name for include in includes)
        or (prefix := prefix_of(closure.files[unit.source])) is None
    ):
        return None
    value = {
        "folder": posixpath.dirname(unit.source),
        "prefix": prefix.hex(),
        "headers": {label: file.sha256 for label, file in closure.files.items() if label != unit.source},
        "include_dirs": list(unit.include_dirs),
        "options": dict(unit.options),
        "defines": dict(unit.defines),
        "toolkit_headers": unit.toolkit_headers,
    }
    return compact_json(value)
