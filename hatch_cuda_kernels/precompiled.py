# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""A prefix compiled once in this process, for the jobs that share it (see prefix.py).

NVRTC keeps a precompiled header good for the process that made it, and makes it on the way of compiling the first job
where that job includes nothing else; otherwise the prefix is compiled by itself first. All of it happens in the stage's
own folder, where the compiler knows the project's files by their labels: what `__FILE__` gives in a header is the same
for all who share.

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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from .errors import CudaKernelsError
from .headerlist import listed_headers
from .nvrtc import AS_WRITTEN, Stage, Workspace, can_be_traced, check_text, traced_names
from .plan import CompiledImage, CompileJob, Reads
from .prefix import Prefix, files_of, in_passing, includes_more, leading_directives
from .sources import SourceFile
from .toolchain import import_nvrtc

__all__ = ["Precompiled"]

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
        if not can_be_traced(job):
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
        """Compile the prefix on the way of compiling the first job, where that includes nothing else."""
        text = in_passing(source.data, self._prefix.length, self._prefix.followed)
        if text is None:
            return None
        with self._stage(job, text) as (stage, file):
            image = stage.compile(stage.precompiling(file))
            made = self._keep(stage, file, image.warnings)
            if made is None or _tells_of(stage, image, made.odd):
                return None
            reads = stage.reads_of([], made.reads)
            return stage.finished(image, dataclasses.replace(reads, files={**reads.files, source.label: source.sha256}))

    def _make_alone(self, job: CompileJob, source: SourceFile) -> None:
        """Compile the prefix by itself."""
        prefix = b"\n".join([*leading_directives(source.data)[: self._prefix.length], b""])
        job = dataclasses.replace(job, unit=dataclasses.replace(job.unit, name_expressions=()))
        with self._stage(job, prefix) as (stage, file):
            self._keep(stage, file, stage.precompile(file))

    @contextmanager
    def _stage(self, job: CompileJob, text: bytes) -> Iterator[tuple[Stage, Path]]:
        """A stage where the source reads as given, among the files that the prefix could read; and a file to make."""
        closure = job.unit.closure
        files = {label: closure.files[label] for label in sorted(files_of(job.unit, self._prefix.length))}
        files[closure.source] = SourceFile(closure.source, text)
        unit = dataclasses.replace(job.unit, closure=dataclasses.replace(closure, files=files))
        stage = Stage(dataclasses.replace(job, unit=unit), self._space, AS_WRITTEN, labelled=False, inside=True)
        try:
            yield stage, stage.path / "prefix.pch"
        finally:
            if self._made is None:
                stage.remove()

    def _keep(self, stage: Stage, file: Path, warnings: Sequence[str]) -> _Made | None:
        """Keep what was made, if it can be relied on. A warning of a header would be missing from other images."""
        named = listed_headers(file, stage.root)
        if warnings or named is None:
            return None
        reads = stage.reads_of(stage.paths_of(named))
        files = {label: digest for label, digest in reads.files.items() if label != stage.job.unit.source}
        if any(_leaves_pragma(stage.job.unit.closure.files[label].data) for label in files):
            return None
        self._made = _Made(stage, file, dataclasses.replace(reads, files=files), stage.misnamed(named))
        return self._made

    def _use(self, made: _Made, job: CompileJob, source: SourceFile) -> CompiledImage | None:
        more = includes_more(source.data, self._prefix.length)
        if more and not self._prefix.followed:
            return None
        with made.stage.member(job) as stage:
            if stage is None:
                return None
            trace = stage.trace.with_suffix(".json")
            trace.unlink(missing_ok=True)
            image = stage.compile([b"--use-pch=" + os.fsencode(made.file), b"--pch-messages=false"])
            named = traced_names(trace) if more else []
            if (
                named is None
                or (more and not named)
                or any("precompiled" in text for text in image.warnings)
                or _tells_of(stage, image, [*made.odd, *stage.misnamed(named)])
                or _is_named_after(image.data, made.stage.job, job)
            ):
                return None
            return stage.finished(image, stage.reads_of(stage.paths_of(named), made.reads))


@dataclass(frozen=True)
class _Made:
    stage: Stage
    file: Path
    reads: Reads
    """What the prefix read."""
    odd: Sequence[str]
    """Names of the project's headers, as the compiler has them, that are not their labels."""


def _tells_of(stage: Stage, image: CompiledImage, odd: Sequence[str]) -> bool:
    """Whether an image may hold a path: one of this machine, or a name of a header that is not its label."""
    return (
        bool(odd and stage.job.unit.labelled)
        or stage.leaks(image)
        or any(os.fsencode(name) in image.data for name in odd)
    )


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
