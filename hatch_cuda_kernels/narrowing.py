# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Which files of a large closure a compile reads at all, so that the rest need not be looked at for host code.

A closure has all files that some set of macros could include: of a library of templates many times what a source
reads. NVRTC's own preprocessor tells them apart by the directives alone, before anything is known of the code. What it
may have got wrong shows: in the place of a file that it did not read stands an error.
"""

from __future__ import annotations

import dataclasses
import posixpath
from collections.abc import Collection, Mapping

from .hostcode import HOST_HEADERS, INCLUDE, NOT_TAKEN, as_nvcc_chooses, as_nvcc_sees
from .nvrtc import RefusalError, Shown, Workspace, read_files
from .plan import CompileJob
from .sources import SourceFile

__all__ = ["is_read_after_all", "narrowed"]

_LEAST_FILES, _LEAST_BYTES = 24, 1 << 20
"""What a closure has that is worth it."""


def narrowed(job: CompileJob, space: Workspace, own: Mapping[str, Collection[str]]) -> CompileJob:
    """A job with an error in the place of each file that it does not read, neither as it is compiled nor as a probe
    asks for instances; the job itself where that is not told.

    `own` are the headers of each file, as it spells them, that are files of the project.
    """
    closure = job.unit.closure
    size = sum(len(file.data) for file in closure.files.values())
    if len(closure.files) < _LEAST_FILES and size < _LEAST_BYTES:
        return job
    lines = {label: _without_host(file.directives, own.get(label, ())) for label, file in closure.files.items()}
    read = {closure.source}
    try:
        for choose in (as_nvcc_chooses, as_nvcc_sees):
            shown = {label: choose(text).encode("latin-1") for label, text in lines.items()}
            read |= read_files(job, space, Shown(shown))
    except RefusalError:
        return job
    files = {
        label: file if label in read else SourceFile(label, f"{NOT_TAKEN}\n".encode())
        for label, file in closure.files.items()
    }
    return dataclasses.replace(
        job, unit=dataclasses.replace(job.unit, closure=dataclasses.replace(closure, files=files))
    )


def is_read_after_all(log: str) -> bool:
    """Whether a compile came to a file, or an arm of a conditional, that it was not to read."""
    return NOT_TAKEN.split()[1] in log


def _without_host(lines: bytes, own: Collection[str]) -> str:
    """Directives without the includes of headers of the host that the project does not have."""
    kept = []
    for line in lines.decode("latin-1").split("\n"):
        match = INCLUDE.match(line.lstrip())
        name = posixpath.normpath(match[1] or match[2]) if match else ""
        if name in own or not HOST_HEADERS.fullmatch(name):
            kept.append(line)
    return "\n".join(kept)
