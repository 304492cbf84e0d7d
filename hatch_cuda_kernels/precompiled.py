# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""A prefix compiled once in this process, for the jobs that share it (see prefix.py).

NVRTC keeps a precompiled header good for the process that made it. The prefix is a header of its own, which is read
ahead of each source, and its directives are blank lines there. So it ends where it ends for all, and is compiled on the
way of the first job whatever that goes on with. All of it happens in the stage's own folder, where the compiler knows
the project's files by their labels: what `__FILE__` gives in a header is the same for all who share.

What a compile with a precompiled header reads is what the prefix read, by content, and what the compile's trace names
of the rest. That is exact because the headers of the prefix are read with the same macros and among the same files for
every job that shares it. What the prefix read is listed in the precompiled header itself (see headerlist.py). A trace
is taken all the same where no job has a rest to read, since the optimiser chooses otherwise without, at times.

A prefix is not kept whose headers warn of something, or have a pragma that is yet to take effect. A compile that fails,
or that has any remark on the precompiled header, does not count and is done again without. So is one whose source
includes something after the prefix while the trace names no header at all: after some errors NVRTC's trace is empty in
that process.
"""

from __future__ import annotations

import dataclasses
import os
import posixpath
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from .errors import CudaKernelsError
from .headerlist import listed_headers
from .nvrtc import AS_WRITTEN, Stage, Workspace, can_be_traced, check_text, traced_names
from .plan import CompiledImage, CompileJob, Reads
from .prefix import Prefix, files_of, includes_more, leading_directives, without_prefix
from .sources import SourceFile
from .toolchain import import_nvrtc

__all__ = ["Precompiled"]

_HEADER = "cuda-kernels-prefix.h"
_STOP = b"#pragma nv_hdrstop"
_HEAP = 1 << 30
"""Address space for the headers, of which NVRTC takes what it needs: CUB and all below it needs 0.3 GB."""
_ROOM = 2 << 30
"""Free space that the file of them should find."""


_PRAGMA = re.compile(
    rb"^[ \t\f\v]*(?:\#|%:)(?:[ \t]|/\*.*?\*/)*pragma\b(?P<line>[^\r\n]*)"
    rb"|\b(?:_Pragma\b|__pragma\b|_CCCL_PRAGMA\b)(?P<operator>[^\r\n]*)",
    re.MULTILINE,
)
_PASSING = re.compile(
    rb"[ \t(L\"]*(?:(?:GCC |clang )?system_header|(?:GCC|clang|nv_|)[ ]?diag\w*|GCC poison|(?:GCC )?unroll"
    rb"|once|warning|message|(?:push|pop)_macro)\b"
)
"""Pragmas that have had all their effect where they stand."""


class Precompiled:
    """A prefix as NVRTC has compiled it in this process. Another one that is made ends this one."""

    def __init__(self, prefix: Prefix, space: Workspace) -> None:
        self._prefix, self._space = prefix, space
        self._made: _Made | None = None
        self._ways = [self._make_beside, self._make_alone]
        if not space.own_process or not _can_be_made(space):
            self._ways.clear()

    def compile(self, job: CompileJob) -> CompiledImage | None:
        """The image of a job that shares this prefix; None where it has to be compiled without."""
        source = job.unit.closure.files[job.unit.source]
        if not can_be_traced(job) or any(posixpath.basename(label) == _HEADER for label in job.unit.closure.files):
            return None
        try:
            check_text(job, source)
            while self._made is None and self._ways:
                if (image := self._ways.pop(0)(job, source)) is not None:
                    return image
            return self._use(self._made, job, source) if self._made is not None else None
        except CudaKernelsError:  # the compile of the job itself will tell
            return None

    def remove(self) -> None:
        """Delete the files."""
        if self._made is not None:
            self._made.stage.remove()

    def _make_beside(self, job: CompileJob, source: SourceFile) -> CompiledImage | None:
        """Compile the prefix on the way of compiling the first job."""
        text = without_prefix(source.data, self._prefix.length, _STOP)
        if text is None:
            return None
        with self._stage(job) as (stage, file), stage.member(self._shown(job, text)) as member:
            if member is None:
                return None
            image = member.compile([*self._ahead(stage), *stage.precompiling(file)])
            made = self._keep(stage, file, image.warnings, source)
            return self._checked(member, image, made, job, source) if made is not None else None

    def _make_alone(self, job: CompileJob, source: SourceFile) -> None:
        """Compile the prefix by itself."""
        with self._stage(job) as (stage, file):
            self._keep(stage, file, stage.precompile(file, self._ahead(stage)), source)

    def _use(self, made: _Made, job: CompileJob, source: SourceFile) -> CompiledImage | None:
        text = without_prefix(source.data, self._prefix.length)
        if text is None or not self._has_prefix(made, job, source):
            return None
        with made.stage.member(self._shown(job, text)) as stage:
            if stage is None:
                return None
            stage.trace.with_suffix(".json").unlink(missing_ok=True)
            use = [b"--use-pch=" + os.fsencode(made.file), b"--pch-messages=false"]
            image = stage.compile([*self._ahead(made.stage), *use])
            if any("precompiled" in text for text in image.warnings):
                return None
            return self._checked(stage, image, made, job, source)

    def _has_prefix(self, made: _Made, job: CompileJob, source: SourceFile) -> bool:
        """Whether a job begins as the one does that the prefix was made of, and has the same headers."""
        files = job.unit.closure.files
        return self._directives(source) == made.directives and all(
            label in files and files[label].sha256 == digest for label, digest in made.reads.files.items()
        )

    def _directives(self, source: SourceFile) -> list[bytes]:
        return leading_directives(source.data)[: self._prefix.length]

    def _shown(self, job: CompileJob, text: bytes, labels: Iterable[str] | None = None) -> CompileJob:
        """A job whose source reads as given, among those files or all."""
        source, closure = job.unit.source, job.unit.closure
        files = {label: closure.files[label] for label in (closure.files if labels is None else sorted(labels))}
        closure = dataclasses.replace(closure, files={**files, source: SourceFile(source, text)})
        return dataclasses.replace(job, unit=dataclasses.replace(job.unit, closure=closure))

    @contextmanager
    def _stage(self, job: CompileJob) -> Iterator[tuple[Stage, Path]]:
        """A stage with the files that the prefix could read, the prefix as a header, and a file to make."""
        unit = dataclasses.replace(job.unit, name_expressions=())
        alone = self._shown(dataclasses.replace(job, unit=unit), _STOP + b"\n", files_of(unit, self._prefix.length))
        stage = Stage(alone, self._space, AS_WRITTEN, labelled=False, inside=True)
        directives = self._directives(job.unit.closure.files[unit.source])
        (stage.root / self._header(stage)).write_bytes(b"\n".join([*directives, b""]))
        try:
            yield stage, stage.path / "prefix.pch"
        finally:
            if self._made is None:
                stage.remove()

    def _header(self, stage: Stage) -> str:
        """Name of the header that has the prefix: it lies where the sources lie."""
        return posixpath.join(posixpath.dirname(stage.job.unit.source), _HEADER)

    def _ahead(self, stage: Stage) -> list[bytes]:
        return [b"--pre-include=" + os.fsencode(self._header(stage))]

    def _keep(self, stage: Stage, file: Path, warnings: Sequence[str], source: SourceFile) -> _Made | None:
        """Keep what was made, if it can be relied on. A warning of a header would be missing from other images."""
        listed = listed_headers(file, stage.root)
        if warnings or listed is None or self._header(stage) not in listed:
            return None
        named = [name for name in listed if name != self._header(stage)]
        paths = stage.paths_of(named)
        reads = stage.reads_of(paths)
        files = {label: digest for label, digest in reads.files.items() if label != stage.job.unit.source}
        if any(_leaves_pragma(stage.job.unit.closure.files[label].data) for label in files):
            return None
        self._made = _Made(
            stage, file, self._directives(source), dataclasses.replace(reads, files=files), stage.misnamed(named)
        )
        return self._made

    def _checked(
        self, stage: Stage, image: CompiledImage, made: _Made, job: CompileJob, source: SourceFile
    ) -> CompiledImage | None:
        """An image with what it read, if it is that of the job alone."""
        stage.job = job  # with its source as it is written
        named: list[str] | None = []
        if includes_more(source.data, self._prefix.length):
            named = traced_names(stage.trace.with_suffix(".json"))
            if not named:
                return None
        named = [name for name in named or () if name != self._header(stage)]
        if self._tells_of(stage, image, [*made.odd, *stage.misnamed(named)]):
            return None
        if _is_named_after(image.data, made.stage.job, job):
            return None
        return stage.finished(image, stage.reads_of(stage.paths_of(named), made.reads))

    def _tells_of(self, stage: Stage, image: CompiledImage, odd: Sequence[str]) -> bool:
        """Whether an image may tell of more than its job: a path of this machine, a header's name that is no label,
        the header that has the prefix."""
        return (
            bool(odd and stage.job.unit.labelled)
            or any(_HEADER in warning for warning in image.warnings)
            or stage.leaks(image)
            or any(os.fsencode(name) in image.data for name in odd)
        )


@dataclass(frozen=True)
class _Made:
    stage: Stage
    file: Path
    directives: Sequence[bytes]
    reads: Reads
    """What the prefix read."""
    odd: Sequence[str]
    """Names of the project's headers, as the compiler has them, that are not their labels."""


_AFTER_SOURCE = re.compile(rb"[0-9a-f]{8}_[0-9]+_(\w+)")
"""How NVRTC begins the names that it gives to symbols of one translation unit: with that of its source."""


def _is_named_after(data: bytes, made_for: CompileJob, job: CompileJob) -> bool:
    """Whether the image tells of another source, as symbols do that are named after the one that defines them."""
    labels = [os.fsencode(each.unit.source) for each in (made_for, job)]
    names = [re.sub(rb"\W", b"_", posixpath.basename(label)) for label in labels]
    if labels[0] != labels[1] and re.search(rb"(?<![\w./-])" + re.escape(labels[0]) + rb"(?![\w./-])", data):
        return True
    if names[0] == names[1]:
        return False
    return any(match[1].startswith(names[0] + b"_") for match in _AFTER_SOURCE.finditer(data))


def _leaves_pragma(data: bytes) -> bool:
    """Whether a header of the project has a pragma that could be meant for what comes after the prefix.

    NVRTC loses one that is still to take effect where the prefix ends: `pack` would lay out other classes. The
    toolkit's headers have none of these.
    """
    text = re.sub(rb"\\[ \t]*\r?\n", b"", data)
    return not all(_PASSING.match(found["line"] or found["operator"] or b"") for found in _PRAGMA.finditer(text))


def _can_be_made(space: Workspace) -> bool:
    """Whether there is room, and address space, which NVRTC takes in one piece."""
    if _limited() or shutil.disk_usage(space.path).free < _ROOM:
        return False
    (error,) = import_nvrtc().nvrtcSetPCHHeapSize(_HEAP)
    return not error


def _limited() -> bool:
    """Whether this process may be short of address space."""
    with suppress(ImportError):
        import resource

        return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
    return False
