# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The directives that several sources begin with, where what they include can be compiled once for all of them.

Jobs have a prefix in common only where its includes would read the same files with the same macros for each: same
directives, same folder, same project headers by content, same options and macros, same search path, same architecture.
A toolkit header could look for a project's header in include-dirs, so that what lies there is the same for all as well.
Whatever makes that doubtful leaves a job without one, and it is compiled on its own.

The prefix that jobs share is not the longest one: fewer share a longer one, which pays only where it has a header that
is long in compiling and that the shorter one lacks.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from .costs import guess
from .manifest import compact_json
from .plan import CompileJob, Unit
from .scanning import Include, Scan, scan_text, without_comments
from .sources import Closure, join_label

__all__ = [
    "Prefix",
    "files_of",
    "includes_more",
    "leading_directives",
    "shared_prefixes",
    "without_prefix",
]

_LEADING = re.compile(rb"[ \t]*\#[ \t]*(?P<name>include|define|undef)\b[^\n]*(?:\n|\Z)|[ \t\r\f\v]*(?:\n|\Z)")
_SPLICED = re.compile(rb"\\[ \t]*\r?\n\Z")
_TOLD_OF_SOURCE = b"__BASE_FILE__", b"__INCLUDE_LEVEL__"
_MAKING = 2
"""Jobs from which on nothing is lost by a prefix that is precompiled on the way of the first."""


@dataclass(frozen=True)
class Prefix:
    """The directives that some jobs begin with."""

    key: str
    """Equal for the jobs that share it, and for no other."""
    length: int
    """How many directives it has."""


def leading_directives(data: bytes) -> list[bytes]:
    """The directives that a text begins with, without comments: inclusions and macros, under no condition."""
    return [directive for directive, _ in _leading(without_comments(data))]


def _leading(text: bytes) -> Iterator[tuple[bytes, int]]:
    """Directives, and where each ends."""
    position = 0
    while position < len(text) and (match := _LEADING.match(text, position)):
        position = match.end()
        if match["name"]:
            yield match[0].strip(), position


@lru_cache(maxsize=4096)
def includes_more(data: bytes, length: int) -> bool:
    """Whether a text could include anything after its first directives."""
    text = without_comments(data)
    ends = [end for _, end in _leading(text)][:length]
    rest = scan_text(text[ends[-1] :])
    return bool(rest.includes or rest.computed)


@lru_cache(maxsize=4096)
def without_prefix(data: bytes, length: int, *put: bytes) -> bytes | None:
    """A source with other lines in the place of the directives that it begins with, and every line where it was.

    None where more lines are put than there is place for, and where code begins on the last line of the directives.
    """
    lines = data.splitlines(keepends=True)
    end = 1
    while _SPLICED.search(lines[end - 1]) or len(leading_directives(b"".join(lines[:end]))) < length:
        end += 1
    while end < len(lines) and not lines[end].strip():
        end += 1
    if len(put) > end:
        return None
    text = b"".join([*(line + b"\n" for line in put), *[b"\n"] * (end - len(put)), *lines[end:]])
    return text if _lines_of_code(text) == [*put, *_lines_of_code(data)[length:]] else None


def _lines_of_code(data: bytes) -> list[bytes]:
    return [line.strip() for line in without_comments(data).splitlines() if line.strip()]


def shared_prefixes(jobs: Iterable[CompileJob]) -> dict[CompileJob, Prefix]:
    """The prefix of each job that shares one; other jobs are left out."""
    beginnings: dict[Unit, _Beginning | None] = {}
    alike: dict[bytes, dict[CompileJob, _Beginning]] = {}
    for job in jobs:
        if job.unit not in beginnings:
            beginnings[job.unit] = _beginning(job.unit)
        if (beginning := beginnings[job.unit]) is not None:
            key = f"{job.architecture} {job.release} ".encode() + beginning.surroundings
            alike.setdefault(key, {})[job] = beginning
    prefixes: dict[CompileJob, Prefix] = {}
    for key, group in alike.items():
        for lines, members in _divide(group)[1]:
            value = compact_json([key.hex(), [line.content for line in lines]])
            prefix = Prefix(hashlib.sha256(value).hexdigest(), len(lines))
            prefixes.update(dict.fromkeys(members, prefix))
    return prefixes


@dataclass(frozen=True)
class _Line:
    """A directive of a prefix."""

    content: str
    """Its text, and the content of all project files that it could read."""
    includes: bool
    weight: float
    """Seconds that its headers are guessed to take."""


@dataclass(frozen=True)
class _Beginning:
    """How a unit begins."""

    surroundings: bytes
    """What has to be equal in units that share a prefix."""
    lines: list[_Line]


def _divide(group: Mapping[CompileJob, _Beginning]) -> tuple[float, list[tuple[list[_Line], list[CompileJob]]]]:
    """Divide jobs that may share: (seconds that are won, each prefix with the jobs that share it)."""
    columns = enumerate(zip(*(own.lines for own in group.values()), strict=False))
    shortest = min(len(own.lines) for own in group.values())
    length = next((n for n, column in columns if len(set(column)) > 1), shortest)
    lines = next(iter(group.values())).lines[:length]
    while lines and not lines[-1].includes:
        lines.pop()
    won = max((line.weight for line in lines), default=0.0) * (len(group) - _MAKING)
    parts: dict[_Line, dict[CompileJob, _Beginning]] = {}
    for job, own in group.items():
        if len(own.lines) > length:
            parts.setdefault(own.lines[length], {})[job] = own
    divided = [_divide(part) for part in parts.values() if len(part) > _MAKING]
    won_apart = sum(won for won, _ in divided)
    if won_apart > won:
        return won_apart, [found for _, prefixes in divided for found in prefixes]
    return (won, [(lines, list(group))]) if won > 0 else (0.0, [])


def _text(unit: Unit) -> bytes:
    return unit.closure.files[unit.source].data


def _beginning(unit: Unit) -> _Beginning | None:
    """How a unit begins; None for one that shares with none."""
    closure = unit.closure
    files = closure.files.values()
    if (
        not closure.external
        or unit.parts
        or unit.relocatable
        or unit.shows_folder
        or closure.ahead
        or closure.names_time
        or any(file.scan.computed and file.label not in closure.computed for file in files)
        or any(name in file.data for file in files for name in _TOLD_OF_SOURCE)
        or any("__has_" in str(value) for value in unit.defines.values())
    ):
        return None
    asked = [include for file in files for include in _asked(closure, file.label, file.scan)]
    if any(posixpath.basename(include.spelling) == posixpath.basename(unit.source) for include in asked):
        return None
    directives = leading_directives(_text(unit))
    lines = [_line(unit, text) for text in directives]
    searched = tuple(posixpath.join(posixpath.normpath(folder), "").removeprefix("./") for folder in unit.include_dirs)
    value = {
        "folder": posixpath.dirname(unit.source),
        "searched": _digests(unit, (n for n in closure.files if n != unit.source and n.startswith(searched))),
        "include_dirs": list(unit.include_dirs),
        "options": dict(unit.options),
        "defines": dict(unit.defines),
        "toolkit_headers": unit.toolkit_headers,
    }
    return _Beginning(compact_json(value), lines)


def _digests(unit: Unit, labels: Iterable[str]) -> dict[str, str]:
    return {label: unit.closure.files[label].sha256 for label in sorted(labels)}


def _line(unit: Unit, text: bytes) -> _Line:
    labels, names = _reached(unit, [text])
    content = compact_json([text.hex(), _digests(unit, labels)]).decode()
    return _Line(content, bool(names), guess(names).seconds if names else 0.0)


def files_of(unit: Unit, length: int) -> set[str]:
    """Labels of the project files that the prefix of a unit could read."""
    return _reached(unit, leading_directives(unit.closure.files[unit.source].data)[:length])[0]


def _reached(unit: Unit, directives: Iterable[bytes]) -> tuple[set[str], set[str]]:
    """Labels of the project files that directives of the source could lead to, and all headers that are named there."""
    labels, names = set[str](), set[str]()
    closure = unit.closure
    pending = [(unit.source, include) for include in _asked(closure, unit.source, scan_text(b"\n".join(directives)))]
    while pending:
        asking, include = pending.pop()
        names.add(include.spelling)
        for folder in (posixpath.dirname(asking), *unit.include_dirs):
            label = join_label(folder, include.spelling)
            if label is not None and label in closure.files and label not in labels:
                labels.add(label)
                pending += [(label, deeper) for deeper in _asked(closure, label, closure.files[label].scan)]
    return labels, names


def _asked(closure: Closure, label: str, scan: Scan) -> tuple[Include, ...]:
    """All that a text of that label could include."""
    return (*scan.includes, *(closure.computed[label] if scan.computed else ()))
