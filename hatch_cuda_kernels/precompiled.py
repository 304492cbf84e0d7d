# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""A prefix compiled once in this process, for the jobs that share it (see prefix.py).

NVRTC keeps a precompiled header good for the process that made it, and makes it on the way of compiling the first job
where that job includes nothing else; otherwise the prefix is compiled by itself first.

A trace of a compile that uses it does not name the headers inside. What such a compile reads is what the prefix read,
by content, and what its trace names of the rest. That is exact because the headers of the prefix are read with the same
macros and among the same files for every job that shares it. A prefix is not kept whose headers warn of something, or
have a pragma that is yet to take effect. A compile that fails, or that has any remark on the
precompiled header, does not count and is done again without. So is one whose source includes something after the
prefix while the trace names no header at all: after some errors NVRTC's trace is empty in that process.
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
from .nvrtc import AS_WRITTEN, Stage, Workspace, check_text, traced_names
from .plan import CompiledImage, CompileJob, Reads
from .prefix import Prefix, files_of, includes_more, leading_directives, with_stop
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
        if not _can_be_made(space):
            self._ways.clear()

    def compile(self, job: CompileJob) -> CompiledImage | None:
        """The image of a job that shares this prefix; None where it has to be compiled without."""
        source = job.unit.closure.files[job.unit.source]
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
        text = with_stop(source.data, self._prefix.length)
        if text is None:
            return None
        with self._stage(job, text) as (stage, file):
            image = stage.compile(stage.precompiling(file))
            if stage.leaks(image) or not self._keep(stage, file, image.warnings):
                return None
            return stage.finished(image, _with_file(stage.reads(), source))

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
        stage = Stage(dataclasses.replace(job, unit=unit), self._space, AS_WRITTEN, labelled=False)
        try:
            yield stage, stage.path / "prefix.pch"
        finally:
            if self._made is None:
                stage.remove()

    def _keep(self, stage: Stage, file: Path, warnings: Sequence[str]) -> bool:
        """Keep what was made, if it can be relied on. A warning of a header would be missing from other images."""
        traced = stage.traced()
        if warnings or traced is None or not file.is_file():
            return False
        private = f"{stage.path}{os.sep}"
        if any(_leaves_pragma(name) for name in traced if name.startswith(private)):
            return False
        reads = stage.reads()
        files = {label: digest for label, digest in reads.files.items() if label != stage.job.unit.source}
        self._made = _Made(stage, file, dataclasses.replace(reads, files=files))
        return True

    def _use(self, made: _Made, job: CompileJob, source: SourceFile) -> CompiledImage | None:
        with made.stage.member(job) as stage:
            if stage is None:
                return None
            trace = stage.trace.with_suffix(".json")
            trace.unlink(missing_ok=True)
            image = stage.compile([b"--use-pch=" + os.fsencode(made.file), b"--pch-messages=false"])
            named = traced_names(trace)
            if (
                named is None
                or any(not os.path.isabs(name) for name in named)
                or (not named and includes_more(source.data, self._prefix.length))
                or any("precompiled" in text for text in image.warnings)
                or stage.leaks(image)
                or _is_named_after(image.data, made.stage.job, job)
            ):
                return None
            return stage.finished(image, stage.reads_of(list(map(os.path.normpath, named)), made.reads))


@dataclass(frozen=True)
class _Made:
    stage: Stage
    file: Path
    reads: Reads
    """What the prefix read."""


_AFTER_SOURCE = re.compile(rb"[0-9a-f]{8}_[0-9]+_(\w+)")
"""How NVRTC begins the names that it gives to symbols of one translation unit: with that of its source."""


def _is_named_after(data: bytes, made_for: CompileJob, job: CompileJob) -> bool:
    """Whether symbols are named after another source: the one whose beginning was compiled defines them."""
    names = [re.sub(rb"\W", b"_", os.fsencode(posixpath.basename(each.unit.source))) for each in (made_for, job)]
    if names[0] == names[1]:
        return False
    return any(match[1].startswith(names[0] + b"_") for match in _AFTER_SOURCE.finditer(data))


def _with_file(reads: Reads, file: SourceFile) -> Reads:
    return dataclasses.replace(reads, files=dict(sorted({**reads.files, file.label: file.sha256}.items())))


def _leaves_pragma(path: str) -> bool:
    """Whether a header of the project has a pragma that could be meant for what comes after the prefix.

    NVRTC loses one that is still to take effect where the prefix ends: `pack` would lay out other classes. The
    toolkit's headers have none of these.
    """
    text = re.sub(rb"\\[ \t]*\r?\n", b"", Path(path).read_bytes())
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
