# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Several translation units linked to one image: the one module that calls nvJitLink.

nvJitLink needs no driver. It reports what it refuses in its log, but for some mistakes, a function that two sources
define among them, it only prints a line to the standard error and gives an image all the same, in which one of the two
was taken. So what it prints is read as well. After a link that failed, a later one can crash: linked jobs are compiled
in workers, which end at the first error, and never in the process of an app.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from .advice import NO_LAUNCHES
from .arch import format_capability, release_version
from .elf import Elf
from .errors import CompilationError, ToolchainError, first_line, numbered
from .jobs import needs_optimization
from .options import field_name
from .outcome import image_facts, kernel_names
from .plan import CompiledImage, CompileJob, Reads
from .toolchain import LINKER_HINT, LINKER_WHEELS, linker_release

__all__ = ["link"]

_DEVICE_RUNTIME = re.compile(r"_*cudaCDP\d\w*|cudaGetParameterBuffer\w*|cudaLaunchDevice\w*")


def link(job: CompileJob, parts: Sequence[CompiledImage]) -> CompiledImage:
    """Link what the job's parts were compiled to.

    Raises CompilationError where they do not fit together, ToolchainError where nvJitLink is not the job's or does not
    fit NVRTC.
    """
    start = time.perf_counter()
    if reason := needs_optimization(job.architecture, job.unit.options):
        raise CompilationError(f"{job}: {reason}")
    optimize = bool(job.unit.options.get("link-time-optimization"))
    if not optimize:
        _check_definitions(job, parts)
    nvjitlink = _import(job)
    inputs = [(part.source, image.data) for part, image in zip(job.unit.parts, parts, strict=True)]
    data, log = _run(nvjitlink, job, inputs, _flags(job), optimize)
    entries = image_facts(job, data, log)
    for image in parts:
        for name, found in image.entries.items():
            linked = entries.get(name)
            if found is not None and linked is not None:  # what spills was told when the part was compiled
                entries[name] = dataclasses.replace(linked, spill_bytes=found.spill_bytes)
    lowered: dict[str, str] = {}
    for image in parts:
        lowered = {**image.kernels, **lowered}
    warnings = [warning for image in parts for warning in image.warnings]
    warnings += [line.strip() for line in log.splitlines() if re.match(r"(?:ptxas |nvlink )?warning\b", line)]
    return CompiledImage(
        architecture=job.architecture,
        release=job.release,
        data=data,
        kernels=kernel_names(job, entries, lowered),
        entries=entries,
        reads=_reads(parts),
        warnings=tuple(dict.fromkeys(warnings)),
        seconds=sum(image.seconds for image in parts) + time.perf_counter() - start,
        passed_over=tuple(sorted({omission for image in parts for omission in image.passed_over})),
    )


def _reads(parts: Sequence[CompiledImage]) -> Reads:
    files: dict[str, str] = {}
    installed: dict[str, str] = {}
    for image in parts:
        files |= image.reads.files
        for name, digest in image.reads.installed.items():  # one that changed meanwhile is unknown (nvrtc.py)
            installed[name] = digest if installed.get(name, digest) == digest else ""
    missing = {name for image in parts for name in image.reads.missing}
    return Reads(
        files=dict(sorted(files.items())), installed=dict(sorted(installed.items())), missing=tuple(sorted(missing))
    )


def _check_definitions(job: CompileJob, parts: Sequence[CompiledImage]) -> None:
    """Refuse what two sources define: nvJitLink takes one of the two."""
    owners: dict[str, str] = {}
    problems = []
    for part, image in zip(job.unit.parts, parts, strict=True):
        for name in sorted(Elf(image.data).definitions()):
            if name in owners:
                problems.append(f"{name} is defined in {owners[name]} and in {part.source}")
            owners.setdefault(name, part.source)
    if problems:
        raise CompilationError(
            numbered(f"{job}: the sources do not fit together; make one of each static, or remove it:", problems)
        )


def _import(job: CompileJob) -> Any:
    """cuda.bindings.nvjitlink, whose library is the job's and fits NVRTC."""
    release = linker_release()
    if release != job.linker:
        raise ToolchainError(f"{job}: nvJitLink {job.linker} was expected, and {release} is loaded in this process")
    try:
        from cuda.bindings import nvjitlink

        version = tuple(nvjitlink.version())
    except Exception as error:  # the bindings raise several kinds
        raise ToolchainError(f"{job}: nvJitLink cannot be used ({first_line(error)}); {LINKER_HINT}") from None
    compiler = release_version(job.release)
    fits = version == compiler if job.architecture.virtual else version[0] == compiler[0] and version >= compiler
    if not fits:
        raise ToolchainError(
            f"{job}: nvJitLink is of CUDA {format_capability(version)}, and NVRTC of {format_capability(compiler)}; "
            f"install {LINKER_WHEELS.get(str(compiler[0]), 'nvJitLink')}=={format_capability(compiler)}.*"
        )
    return nvjitlink


def _flags(job: CompileJob) -> list[str]:
    """nvJitLink's options: those of the module that decide code, for what is optimised here is compiled here."""
    from cuda.core import LinkerOptions

    options = {field_name(option): value for option, value in job.unit.options.items()}
    known = {field.name for field in dataclasses.fields(LinkerOptions)}
    fields = {name: value for name, value in options.items() if name in known}
    if options.get("use_fast_math"):
        fields = {"ftz": True, "prec_div": False, "prec_sqrt": False, "fma": True, **fields}
    if not job.architecture.virtual:
        given = fields.get("ptxas_options", [])
        given = [given] if isinstance(given, str) else list(given)
        fields["ptxas_options"] = given if "-v" in given else [*given, "-v"]
    fields["ptx"] = job.architecture.virtual or None
    flags = LinkerOptions(arch=str(job.architecture), **fields).as_bytes("nvjitlink")
    return [re.sub(r"=(true|false)$", lambda match: _SWITCHES[match[1]], flag.decode()) for flag in flags]


_SWITCHES = {"true": "=1", "false": "=0"}
"""cuda.core spells switches as NVRTC does; nvJitLink takes numbers."""


def _run(
    nvjitlink: Any, job: CompileJob, inputs: Sequence[tuple[str, bytes]], flags: list[str], optimize: bool
) -> tuple[bytes, str]:
    """One link from beginning to end: (image, log)."""
    kind = nvjitlink.InputType.LTOIR if optimize else nvjitlink.InputType.CUBIN
    try:
        handle = nvjitlink.create(len(flags), flags)
    except nvjitlink.nvJitLinkError as error:
        raise ToolchainError(f"{job}: nvJitLink does not take {' '.join(flags)} ({error})") from None
    failure, data = "", bytearray()
    try:
        with _standard_error() as printed:
            try:
                for label, content in inputs:
                    nvjitlink.add_data(handle, kind, content, len(content), label)
                nvjitlink.complete(handle)
                form = "ptx" if job.architecture.virtual else "cubin"
                data = bytearray(getattr(nvjitlink, f"get_linked_{form}_size")(handle))
                getattr(nvjitlink, f"get_linked_{form}")(handle, data)
            except nvjitlink.nvJitLinkError as error:
                failure = str(error)
        log = "\n".join([_log(nvjitlink, handle, "info"), _log(nvjitlink, handle, "error"), *printed]).strip()
    finally:
        nvjitlink.destroy(handle)
    if failure or any(re.match(r"error\b", line) for line in log.splitlines()):
        raise CompilationError(_refusal(job, log or failure))
    return bytes(data).rstrip(b"\0") if job.architecture.virtual else bytes(data), log


def _log(nvjitlink: Any, handle: int, name: str) -> str:
    buffer = bytearray(getattr(nvjitlink, f"get_{name}_log_size")(handle))
    if buffer:
        getattr(nvjitlink, f"get_{name}_log")(handle, buffer)
    return bytes(buffer).rstrip(b"\0").decode("utf-8", "replace").strip()


def _refusal(job: CompileJob, log: str) -> str:
    message = f"{job}: nvJitLink refuses {', '.join(part.source for part in job.unit.parts)}\n{log}"
    if _DEVICE_RUNTIME.search(log):
        message += f"\nhint: {NO_LAUNCHES}"
    elif "Undefined reference" in log:
        message += "\nhint: name every source that defines what the others use in the module's source"
    return message


_redirecting = threading.Lock()
_LINE = re.compile(rb"(?:error|warning|info)\s*:")


@contextlib.contextmanager
def _standard_error() -> Iterator[list[str]]:
    """Collect the lines that nvJitLink itself prints meanwhile; what others print is passed on."""
    lines: list[str] = []
    with _redirecting:
        try:
            before = os.dup(2)
        except OSError:  # a process without a standard error; the file below must not become it
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            before = os.dup(2)
        with tempfile.TemporaryFile() as file:
            os.dup2(file.fileno(), 2)
            try:
                yield lines
            finally:
                os.dup2(before, 2)
                os.close(before)
                file.seek(0)
                for line in file:
                    if _LINE.match(line):
                        lines.append(line.decode("utf-8", "replace").strip())
                    else:
                        os.write(2, line)
