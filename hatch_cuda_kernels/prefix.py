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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from .costs import guess
from .manifest import compact_json
from .plan import CompileJob, Unit
from .scanning import Include, Scan, scan_text, without_comments
from .sources import Closure, join_label

__all__ = ["Prefix", "files_of", "in_passing", "includes_more", "leading_directives", "shared_prefixes", "with_stop"]

_LEADING = re.compile(rb"[ \t]*\#[ \t]*(?P<name>include|define|undef)\b[^\n]*(?:\n|\Z)|[ \t\r\f\v]*(?:\n|\Z)")
_DIRECTIVE = re.compile(rb"\s*(?:\#|%:|\?\?=)")
_SPLICED = re.compile(rb"\\[ \t]*\r?\n\Z")
_NAMES_SOURCE = b"__BASE_FILE__"
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
    followed: bool = False
    """Whether any of the jobs includes something after it."""


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


def in_passing(data: bytes, length: int, traced: bool) -> bytes | None:
    """The text that compiles a source and its prefix on the way; None where there is none. NVRTC traces no `#line`."""
    text = None if includes_more(data, length) else with_stop(data, length)
    return None if traced and text != data else text


@lru_cache(maxsize=4096)
def with_stop(data: bytes, length: int) -> bytes | None:
    """The text with the end of its prefix marked for NVRTC, and every line of code with its number.

    A prefix that code follows needs no mark. None where the line after the prefix is no line of its own.
    """
    text = without_comments(data)
    ends = [end for _, end in _leading(text)]
    if length == len(ends) and not _DIRECTIVE.match(text, ends[-1]):
        return data
    lines = data.splitlines(keepends=True)
    end = 1
    while _SPLICED.search(lines[end - 1]) or len(leading_directives(b"".join(lines[:end]))) < length:
        end += 1
    mark = [_STOP, b"#line %d" % (end + 1)]
    marked = b"".join([*lines[:end], b"\n".join([*mark, b""]), *lines[end:]])
    code = _lines_of_code(data)
    return marked if _lines_of_code(marked) == [*code[:length], *mark, *code[length:]] else None


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
    prefixes: dict[CompileJob, Prefix] = {}
    for key, group in alike.items():
        for lines, followed, members in _divide(group)[1]:
            value = compact_json([key.hex(), [line.content for line in lines], followed])
            prefix = Prefix(hashlib.sha256(value).hexdigest(), len(lines), followed)
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


def _divide(group: dict[CompileJob, list[_Line]]) -> tuple[float, list[tuple[list[_Line], bool, list[CompileJob]]]]:
    """Divide jobs that may share: (seconds that are won, each prefix, whether any includes more, who shares it)."""
    columns = enumerate(zip(*group.values(), strict=False))
    length = next((n for n, column in columns if len(set(column)) > 1), min(map(len, group.values())))
    lines = next(iter(group.values()))[:length]
    while lines and not lines[-1].includes:
        lines.pop()
    followed = any(lines and includes_more(_text(job.unit), len(lines)) for job in group)
    first = next((job for job in group if lines and _makes_in_passing(job.unit, len(lines), followed)), None)
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
    return (won, [(lines, followed, members)]) if won > 0 else (0.0, [])


def _text(unit: Unit) -> bytes:
    return unit.closure.files[unit.source].data


def _makes_in_passing(unit: Unit, length: int, followed: bool) -> bool:
    return in_passing(_text(unit), length, followed) is not None


def _beginning(unit: Unit) -> tuple[bytes, list[_Line]] | None:
    """What has to be equal in units that share a prefix, and the lines of it; None for a unit that shares with none."""
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
        or any(_NAMES_SOURCE in file.data for file in files)
        or any("__has_" in str(value) for value in unit.defines.values())
    ):
        return None
    asked = [include for file in files for include in _asked(closure, file.label, file.scan)]
    if any(posixpath.basename(include.spelling) == posixpath.basename(unit.source) for include in asked):
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
