# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""A prefix compiled once in this process, for the jobs that share it (see prefix.py).

NVRTC keeps a precompiled header good for the process that made it. Its trace of a compile that uses one does not name
the headers inside, so that what such a compile reads is what the prefix read, by content, and its own source. That is
exact because the prefix has every include of the source; a compile whose trace names any header after all, which has
any remark on the precompiled header, or which fails, does not count and is done again without.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
from contextlib import suppress
from pathlib import Path

from .errors import CudaKernelsError
from .nvrtc import AS_WRITTEN, Stage, Workspace, check_text, traced_names
from .plan import CompiledImage, CompileJob, Reads
from .prefix import prefix_of
from .sources import SourceFile
from .toolchain import import_nvrtc

__all__ = ["Precompiled"]

_HEAP = 1 << 30
"""Address space for the headers, of which NVRTC takes what it needs: CUB and all below it needs 0.3 GB."""
_ROOM = 2 << 30
"""Free space that the file of them should find."""


class Precompiled:
    """A prefix as NVRTC has compiled it in this process. Making another one ends this one."""

    def __init__(self, stage: Stage, file: Path, reads: Reads) -> None:
        self._stage, self._file, self._reads = stage, file, reads

    @classmethod
    def make(cls, job: CompileJob, space: Workspace) -> Precompiled | None:
        """Compile the prefix of a job; None where that cannot be, or where its headers have something to say."""
        source = job.unit.closure.files[job.unit.source]
        prefix = prefix_of(source)
        if prefix is None or _limited() or shutil.disk_usage(space.path).free < _ROOM:
            return None
        (error,) = import_nvrtc().nvrtcSetPCHHeapSize(_HEAP)
        if error:
            return None
        stage = Stage(_with_source(job, SourceFile(source.label, prefix)), space, AS_WRITTEN, labelled=False)
        file = stage.path / "prefix.pch"
        try:
            if stage.traceable and stage.precompile(file) and stage.traced() is not None:
                return cls(stage, file, stage.reads())
        except CudaKernelsError:  # the compile of the job itself will tell
            pass
        stage.remove()
        return None

    def compile(self, job: CompileJob) -> CompiledImage | None:
        """The image of a job that shares this prefix; None where it has to be compiled without."""
        source = job.unit.closure.files[job.unit.source]
        stage = self._stage.member(job)
        trace = stage.trace.with_suffix(".json")
        trace.unlink(missing_ok=True)
        try:
            check_text(job, source)
            image = stage.compile([b"--use-pch=" + os.fsencode(self._file), b"--pch-messages=false"])
        except CudaKernelsError:
            return None
        if traced_names(trace) != [] or stage.leaks(image) or any("precompiled" in text for text in image.warnings):
            return None
        files = {label: digest for label, digest in self._reads.files.items() if label != self._stage.job.unit.source}
        files = dict(sorted({**files, source.label: source.sha256}.items()))
        return stage.finished(image, dataclasses.replace(self._reads, files=files))

    def remove(self) -> None:
        """Delete the files."""
        self._stage.remove()


def _with_source(job: CompileJob, source: SourceFile) -> CompileJob:
    closure = job.unit.closure
    closure = dataclasses.replace(closure, files={**closure.files, source.label: source})
    return dataclasses.replace(job, unit=dataclasses.replace(job.unit, closure=closure, name_expressions=()))


def _limited() -> bool:
    """Whether this process may be short of address space, which NVRTC takes in one piece."""
    with suppress(ImportError):
        import resource

        return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
    return False
