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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from .costs import guess
from .manifest import compact_json
from .plan import CompileJob, Unit
from .scanning import scan_text, without_comments
from .sources import join_label

__all__ = ["Prefix", "files_of", "includes_more", "leading_directives", "shared_prefixes", "with_stop"]

_LEADING = re.compile(rb"[ \t]*\#[ \t]*(?P<name>include|define|undef)\b[^\n]*(?:\n|\Z)|[ \t\r\f\v]*(?:\n|\Z)")
_STOP = b"#pragma nv_hdrstop"
_MAKING = 2, 3
"""Jobs from which on nothing is lost by a prefix that is precompiled in passing, and by one that is not."""


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


def includes_more(data: bytes, length: int) -> bool:
    """Whether a text could include anything after its first directives."""
    text = without_comments(data)
    ends = [end for _, end in _leading(text)][:length]
    rest = scan_text(text[ends[-1] :])
    return bool(rest.includes or rest.computed)


@lru_cache(maxsize=4096)
def with_stop(data: bytes, length: int) -> bytes | None:
    """The text with the end of its prefix marked for NVRTC, and every line of code where it was.

    The mark takes the place of an empty line or a comment among the directives that the text begins with, or ahead of
    them; the directives between are one line from where they were, which nothing can ask for. None where there is no
    such line, or where anything is included after the prefix.
    """
    lines = data.splitlines(keepends=True)
    whole = leading_directives(data)
    if includes_more(data, length):
        return None
    code = _lines_of_code(data)
    expected = [*code[:length], _STOP, *code[length:]]
    ends = [_end(lines, count) for count in (length, len(whole))]
    for spare, line in enumerate(lines[: ends[1] + 1]):
        if not line.strip() or line.startswith(b"//"):
            kept = [*lines[:spare], b"", *lines[spare + 1 :]]
            marked = b"".join([*kept[: ends[0]], _STOP, b"\n", *kept[ends[0] :]])
            return marked if _lines_of_code(marked) == expected else None
    return None


def _end(lines: Sequence[bytes], count: int) -> int:
    """How many lines there are up to the end of the first few directives."""
    return next(n for n in range(count, len(lines) + 1) if len(leading_directives(b"".join(lines[:n]))) == count)


def _lines_of_code(data: bytes) -> list[bytes]:
    return [line.strip() for line in without_comments(data).splitlines() if line.strip()]


def shared_prefixes(jobs: Iterable[CompileJob]) -> dict[CompileJob, Prefix]:
    """The prefix of each job that shares one; other jobs are left out.

    Of those that share, one that can be compiled in passing comes first.
    """
    beginnings: dict[Unit, tuple[bytes, list[_Line]] | None] = {}
    alike: dict[bytes, dict[CompileJob, list[_Line]]] = {}
    for job in jobs:
        if job.unit not in beginnings:
            beginnings[job.unit] = _beginning(job.unit)
        if (beginning := beginnings[job.unit]) is not None:
            surroundings, lines = beginning
            key = f"{job.architecture} {job.release} ".encode() + surroundings
            alike.setdefault(key, {})[job] = lines
    return {
        job: Prefix(hashlib.sha256(compact_json([key.hex(), [line.content for line in lines]])).hexdigest(), len(lines))
        for key, group in alike.items()
        for lines, members in _divide(group)[1]
        for job in members
    }


@dataclass(frozen=True)
class _Line:
    """A directive of a prefix."""

    content: str
    """Its text, and the content of all project files that it could read."""
    includes: bool
    weight: float
    """Seconds that its headers are guessed to take."""


def _divide(group: dict[CompileJob, list[_Line]]) -> tuple[float, list[tuple[list[_Line], list[CompileJob]]]]:
    """Divide jobs that may share: (seconds that are won, each prefix with the jobs that share it)."""
    columns = enumerate(zip(*group.values(), strict=False))
    length = next((n for n, column in columns if len(set(column)) > 1), min(map(len, group.values())))
    lines = next(iter(group.values()))[:length]
    while lines and not lines[-1].includes:
        lines.pop()
    first = next((job for job in group if lines and _makes_in_passing(job.unit, len(lines))), None)
    members = sorted(group, key=lambda job: job is not first)
    won = max((line.weight for line in lines), default=0.0) * (len(group) - _MAKING[first is None])
    parts: dict[_Line, dict[CompileJob, list[_Line]]] = {}
    for job, own in group.items():
        if len(own) > length:
            parts.setdefault(own[length], {})[job] = own
    divided = [_divide(part) for part in parts.values() if len(part) > min(_MAKING)]
    won_apart = sum(won for won, _ in divided)
    if won_apart > won:
        return won_apart, [found for _, prefixes in divided for found in prefixes]
    return (won, [(lines, members)]) if won > 0 else (0.0, [])


def _makes_in_passing(unit: Unit, length: int) -> bool:
    return with_stop(unit.closure.files[unit.source].data, length) is not None


def _beginning(unit: Unit) -> tuple[bytes, list[_Line]] | None:
    """What has to be equal in units that share a prefix, and the lines of it; None for a unit that shares with none."""
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
    ):
        return None
    searched = tuple(posixpath.join(posixpath.normpath(folder), "").removeprefix("./") for folder in unit.include_dirs)
    value = {
        "folder": posixpath.dirname(unit.source),
        "searched": _digests(unit, (n for n in closure.files if n != unit.source and n.startswith(searched))),
        "include_dirs": list(unit.include_dirs),
        "options": dict(unit.options),
        "defines": dict(unit.defines),
        "toolkit_headers": unit.toolkit_headers,
    }
    return compact_json(value), [_line(unit, text) for text in leading_directives(closure.files[unit.source].data)]


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
    pending = [(unit.source, include) for include in scan_text(b"\n".join(directives)).includes]
    while pending:
        asking, include = pending.pop()
        names.add(include.spelling)
        for folder in (posixpath.dirname(asking), *unit.include_dirs):
            label = join_label(folder, include.spelling)
            if label is not None and label in unit.closure.files and label not in labels:
                labels.add(label)
                pending += [(label, deeper) for deeper in unit.closure.files[label].scan.includes]
    return labels, names
