# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The one module that calls NVRTC to compile: a job in, an image with its facts out.

NVRTC is called through cuda.bindings, which makes PTX without a driver as well as cubins; options are spelled by
cuda.core.ProgramOptions. A job's project files are laid out in a private folder, under their labels, and only that
folder and the toolkit's headers are on the search path. So what is compiled is what was hashed.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import json
import os
import posixpath
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .advice import refusal_message
from .arch import Architecture, format_capability, release_version
from .errors import CompilationError, ToolchainError
from .headerlist import OWN_HEADER
from .machine import memory_folder
from .options import field_name
from .outcome import image_facts, kernel_names, warnings_in
from .plan import CompiledImage, CompileJob, Reads, Unit
from .scanning import scan_text
from .scratch import Scratch
from .sources import SourceFile
from .standins import FIRST, write_standins
from .texts import facts_of
from .toolchain import INSTALL_HINT, import_nvrtc
from .toolkit import (
    ANY_HEADER,
    HeaderRoot,
    digest_header,
    digest_roots,
    find_header,
    installed_roots,
    wants_bundled,
    wants_installed,
)

__all__ = [
    "AS_WRITTEN",
    "RefusalError",
    "Shown",
    "Stage",
    "Workspace",
    "can_be_traced",
    "check_text",
    "compile_shown",
    "front_end_log",
    "path_warning",
    "read_files",
    "traced_names",
    "unread_files",
    "workspace",
]

_FIRST_TRACED = (13, 0)
"""CUDA 12's NVRTC knows no trace, or one without headers."""
_FIRST_COUNTED = (13, 5)
"""Before, NVRTC had no option for the number of errors that it tells."""
_MOST_ERRORS = 2000
"""Of files that are not as they are written: what has to go there is told by the errors, and by all of them at once."""
_VIRTUAL_ROOT = "/cuda-kernels"
"""Stands for the project's root in line tables, which need an absolute path to be free of the current folder."""


@dataclass(frozen=True)
class Workspace:
    """A private folder for the files of compiles, shared by the workers of one build."""

    path: Path
    own_process: bool = False
    """Whether this process does nothing but compile here, so that its current folder can be changed."""

    def bundled_headers(self, version: tuple[int, int]) -> Path:
        """The headers that NVRTC carries, laid out once; NVRTC itself locks out other processes meanwhile."""
        target = self.path / f"bundled-{version[0]}.{version[1]}"
        if not (target / ".complete").is_file():
            error, log, _ = _run(
                import_nvrtc(),
                b"",
                b"headers.cu",
                [f"--use-bundled-headers={target}".encode(), b"--fdevice-syntax-only"],
                (),
                "ptx",
            )
            if error:
                raise ToolchainError(f"NVRTC cannot lay out the headers that it carries ({log or error})")
            (target / ".complete").touch()
        return target

    def standins(self) -> Path:
        """Our stand-ins for standard headers."""
        return write_standins(self.path / "standins")


_UNREADABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]" if os.name == "nt" else r"[\x00-\x1f\x7f\ud800-\udfff\\]")
"""What NVRTC, or ptxas, or the trace of a compile gets wrong in a path."""


@contextlib.contextmanager
def workspace() -> Iterator[Workspace]:
    """A workspace that is removed at the end. Raises ToolchainError where no temporary folder can be made.

    On some disks NVRTC takes seconds to lay out the 2,400 headers that it carries; in memory it takes a tenth of one.
    """
    try:
        scratch = Scratch(parent=memory_folder())
    except OSError as error:
        raise ToolchainError(
            f"compiling needs a temporary folder, and none can be made ({error}); set TMPDIR"
        ) from None
    try:
        if odd := _UNREADABLE.search(scratch.path):
            raise ToolchainError(
                f"{scratch.path!r}, where temporary files go, has a character that NVRTC cannot read in a path "
                f"({odd[0]!r}); set TMPDIR to another folder"
            )
        yield Workspace(Path(scratch.path))
    finally:
        scratch.remove()


class RefusalError(CompilationError):
    """NVRTC's own refusal, with its log."""

    def __init__(self, message: str, log: str) -> None:
        super().__init__(message)
        self.log = log


@dataclass(frozen=True)
class Shown:
    """What the compiler is shown in place of files as they are written, and what it reads before the source."""

    texts: Mapping[str, bytes]
    prelude: bytes = b""
    expressions: tuple[str, ...] = ()
    """Name expressions besides those of the job."""


AS_WRITTEN = Shown({})


def compile_shown(job: CompileJob, space: Workspace, shown: Shown) -> CompiledImage:
    """Compile one job as it is shown. Raises RefusalError, CompilationError and ToolchainError; see compile_job."""
    unit = job.unit
    check_text(job, unit.closure.files[unit.source])
    if unit.labelled and (found := _compile_inside(job, space, shown)) is not None:
        return found
    stage = Stage(job, space, shown, labelled=False)
    try:
        if unit.labelled:
            reads = stage.preprocess()
        else:
            image = stage.compile()
            reads = stage.reads()
        if unit.labelled or stage.leaks(image):
            traced = stage.traced()
            stage.remove()
            stage = Stage(job, space, shown, labelled=True)
            stage.label_toolkit(traced)
            image = stage.compile()
        return stage.finished(image, reads)
    finally:
        stage.remove()


def _compile_inside(job: CompileJob, space: Workspace, shown: Shown) -> CompiledImage | None:
    """An image of files that ask for their names, compiled in their own folder, where these names are the labels.

    That is the image that labelled files have, in one run of the front end and not in two. None where it cannot be:
    where the image shows the folder as well, the trace names a header in another way, or a toolkit header leaves its
    path.
    """
    if not space.own_process or job.unit.shows_folder or job.unit.closure.ahead:
        return None
    stage = Stage(job, space, shown, labelled=False, inside=True)
    try:
        if not stage.traceable:
            return None
        image = stage.compile()
        traced = stage.traced()
        if traced is None or stage.leaks(image):
            return None
        return stage.finished(image, stage.reads_of(traced))
    finally:
        stage.remove()


def front_end_log(job: CompileJob, space: Workspace, shown: Shown, *, all_device: bool = True) -> str:
    """What NVRTC's front end says of a job as it is shown, errors and all; with `all_device`, all of it is taken for
    device code."""
    try:
        return _front_end(job, space, shown, *([b"--device-as-default-execution-space"] if all_device else []))
    except RefusalError as error:
        return error.log or str(error)


_READ = "hatch_cuda_kernels_read"
_READ_REPORT = re.compile(rf"^(?P<file>[^\n()]*)\(1\): warning [^\n]*{_READ}", re.MULTILINE)


def read_files(job: CompileJob, space: Workspace, shown: Shown) -> set[str]:
    """Labels of the files of which the front end warns that it reads them. Raises RefusalError."""
    files = job.unit.closure.files
    texts = {label: shown.texts.get(label, file.data) for label, file in files.items()}
    marked = {label: b'#warning "%s"\n%s' % (_READ.encode(), text) for label, text in texts.items()}
    log = _front_end(job, space, dataclasses.replace(shown, texts=marked))
    return {posixpath.normpath(match["file"]) for match in _READ_REPORT.finditer(log)} & files.keys()


def unread_files(job: CompileJob, space: Workspace, shown: Shown) -> set[str]:
    """Labels of files that the job as it is shown does not read, where no trace tells that.

    What the front end warns of in none is not read for certain where an error in its place is none.
    """
    files = job.unit.closure.files
    texts = {label: shown.texts.get(label, file.data) for label, file in files.items()}
    try:
        unread = files.keys() - read_files(job, space, shown) - {job.unit.source}
        _front_end(job, space, dataclasses.replace(shown, texts=texts | dict.fromkeys(unread, b"#error it is read\n")))
    except RefusalError:
        return set()
    return unread


def _front_end(job: CompileJob, space: Workspace, shown: Shown, *extra: bytes) -> str:
    """What the front end alone says. Raises RefusalError."""
    stage = Stage(job, space, shown, labelled=False)
    try:
        return stage.front_end(extra)
    finally:
        stage.remove()


def path_warning(job: CompileJob) -> str:
    """What is said of an image that holds a path of this machine."""
    return (
        f"{job}: the image holds the path of the folder that it was compiled in (debug = true does that), so two "
        "builds differ"
    )


def check_text(job: CompileJob, file: SourceFile) -> None:
    """Raise CompilationError for a text that NVRTC would misread."""
    if problem := facts_of(file).problem:
        raise CompilationError(f"{job}: {file.label}: {problem}")


def _foreign_headers(job: CompileJob, reads: Reads, roots: Sequence[HeaderRoot]) -> list[str]:
    """A warning where toolkit headers were read that are of another CUDA release than the compiler."""
    version = release_version(job.release)
    names: dict[tuple[int, int], list[str]] = {}
    for root in roots:
        if root.version not in (None, version):
            found = [n for n in reads.installed if n == ANY_HEADER or find_header(n, roots) == Path(root.path, n)]
            names.setdefault(root.version or version, []).extend(found)
    return [
        f"{job}: headers of CUDA {format_capability(other)} were read ({', '.join(found[:3])}), and NVRTC is "
        f"{job.release}; install those of its own release"
        for other, found in names.items()
        if found
    ]


def _line_directive(shown: str) -> bytes:
    escaped = shown.replace("\\", "\\\\").replace('"', '\\"')
    return f'#line 1 "{escaped}"\n'.encode()


class Stage:
    """The files of one job as the compiler sees them, and the compile itself.

    `labelled` files are shown under names that are free of this machine's paths, by `#line` directives. NVRTC crashes
    when it writes its trace of such a source, so that what is read is learned from an unlabelled run. `inside` their
    own folder, files are named by their labels without that.
    """

    def __init__(
        self, job: CompileJob, space: Workspace, shown: Shown, *, labelled: bool, inside: bool = False
    ) -> None:
        self.job, self.space, self.shown, self.labelled, self.inside = job, space, shown, labelled, inside
        self.start = time.time_ns()
        unit = job.unit
        self.path = Path(tempfile.mkdtemp(prefix="job-", dir=space.path))
        self.root = self.path.joinpath("tree", *["_"] * _height(unit))
        self.trace = self.path / "trace"
        self.traceable = not labelled and can_be_traced(job)
        for file in unit.closure.files.values():
            self._lay(file)
        self._make_detours()
        version = release_version(job.release)
        self.bundled: list[Path] = []
        self.installed: tuple[HeaderRoot, ...] = ()
        self.standins: list[Path] = []
        self.copies: list[Path] = []
        self.prelude = self.path / "prelude.h"
        if shown.prelude:
            self.prelude.write_bytes(
                (_line_directive(f"{_VIRTUAL_ROOT}/prelude.h") if labelled else b"") + shown.prelude
            )
        self.external = unit.closure.external or bool(shown.prelude)
        if self.external:
            if wants_bundled(unit.toolkit_headers, version):
                headers = space.bundled_headers(version)
                self.bundled = [headers, headers / "cccl"]
            if wants_installed(unit.toolkit_headers):
                self.installed = installed_roots()
            if unit.toolkit_headers != "none":
                self.standins = [space.standins()]

    def _place(self, label: str) -> Path:
        return Path(os.path.normpath(self.root / label))

    def _lay(self, file: SourceFile) -> Path:
        path = self._place(file.label)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self._shown(file))
        return path

    def _make_detours(self) -> None:
        """Make the folder `a` for `#include "a/../b.h"`, which may hold none of the files."""
        unit = self.job.unit
        for label, file in unit.closure.files.items():
            for spelling in facts_of(file).detours:
                for folder in (posixpath.dirname(label), *unit.include_dirs):
                    parts = posixpath.join(folder, spelling).split("/")
                    for count, part in enumerate(parts):
                        if part == ".." and not os.path.isabs(spelling):
                            with contextlib.suppress(OSError):
                                self._place("/".join(parts[:count])).mkdir(parents=True, exist_ok=True)

    def remove(self) -> None:
        """Delete the files."""
        shutil.rmtree(self.path, ignore_errors=True)

    def leaks(self, image: CompiledImage) -> bool:
        """Whether the image holds a path of this machine."""
        roots = [os.fsencode(self.space.path), *(os.fsencode(root.path) for root in self.installed)]
        return any(root in image.data for root in roots)

    def _label_shown(self, label: str) -> str:
        absolute = self.job.unit.options.get("lineinfo") or self.job.unit.options.get("debug")
        return posixpath.join(_VIRTUAL_ROOT, label) if absolute else label

    def _shown(self, file: SourceFile) -> bytes:
        data = self.shown.texts.get(file.label, file.data)
        return _line_directive(self._label_shown(file.label)) + data if self.labelled else data

    def _header_folders(self) -> list[Path]:
        installed = [Path(root.path) for root in self.installed]
        first = [path / FIRST for path in self.standins]
        return [*first, *self.copies, *self.bundled, *installed, *self.standins]

    def label_toolkit(self, traced: Sequence[str] | None) -> None:
        """Put labelled copies of toolkit headers first on the search path: of those in the trace, or of all."""
        tops = [(path, "toolkit") for path in self.bundled[:1]]
        tops += [(Path(root.path), f"toolkit/installed-{index}") for index, root in enumerate(self.installed)]
        tops += [(path, "toolkit/standins") for path in self.standins]
        for top, label in tops:
            copy = self.path / "labelled" / label
            self.copies += [copy, copy / "cccl"] if top in self.bundled else [copy]
            names = _files_below(top) if traced is None else [n for n in traced if n.startswith(f"{top}{os.sep}")]
            for name in names:
                inside = os.path.relpath(name, top)
                target = copy / inside
                target.parent.mkdir(parents=True, exist_ok=True)
                shown = posixpath.join(_VIRTUAL_ROOT, label, inside.replace(os.sep, "/"))
                target.write_bytes(_line_directive(shown) + Path(name).read_bytes())

    def _call(self, extra: Sequence[bytes], expressions: Sequence[str]) -> tuple[str, bytes, dict[str, str]]:
        """Run NVRTC: (log, image, expression -> lowered name). Raises CompilationError."""
        job, unit = self.job, self.job.unit
        nvrtc = import_nvrtc()
        name = str if self.inside else self._place
        flags = _flags(job)
        flags += [b"-I" + os.fsencode(name(folder)) for folder in unit.include_dirs]
        flags += [b"-I" + os.fsencode(folder) for folder in self._header_folders()]
        if self.shown.prelude:
            flags.append(b"--pre-include=" + os.fsencode(self.prelude))
        flags += [b"--pre-include=" + os.fsencode(path) for path in self._ahead()]
        if self.shown.texts and release_version(job.release) >= _FIRST_COUNTED:
            flags.append(b"--fmax-errors=%d" % _MOST_ERRORS)
        flags += extra
        form = "ltoir" if unit.optimized_later else job.architecture.format
        text = self._shown(unit.closure.files[unit.source])
        with _folder(self.root) if self.inside else contextlib.nullcontext():
            error, log, result = _run(nvrtc, text, os.fsencode(name(unit.source)), flags, expressions, form)
        log = self._relabel(log)
        if error and any(flag.startswith(b"--fdevice-time-trace") for flag in extra):
            self._end_trace()
        if error == nvrtc.nvrtcResult.NVRTC_ERROR_BUILTIN_OPERATION_FAILURE or "libnvrtc-builtins" in log:
            raise ToolchainError(f"{job}: NVRTC cannot use its libnvrtc-builtins ({log or error}); {INSTALL_HINT}")
        if error or result is None:
            raise RefusalError(refusal_message(job, log or str(error)), log)
        return log, *result

    def _end_trace(self) -> None:
        """Let NVRTC write what it traced of a compile that failed: the next one without a trace would write it into the
        current folder, as `.json`."""
        flags = [b"--fdevice-time-trace=" + os.fsencode(self.path / "failed"), b"--fdevice-syntax-only"]
        _run(import_nvrtc(), b"", b"end.cu", flags, (), "ptx")

    def _ahead(self) -> Iterator[Path]:
        """Where the headers of `pre-include` are: NVRTC itself would look into the current folder first."""
        toolkit = [HeaderRoot(path=str(folder), version=None) for folder in self._header_folders()]
        for name, label in self.job.unit.closure.ahead:
            path = self._place(label) if label is not None else find_header(name, toolkit)
            if path is None:
                raise CompilationError(
                    f"{self.job}: pre-include names {name}, which is in no folder of include-dirs and no toolkit header"
                )
            yield path

    @property
    def _trace_flag(self) -> list[bytes]:
        """There whether or not the trace is read: with it the optimiser chooses otherwise at times."""
        return [b"--fdevice-time-trace=" + os.fsencode(self.trace)] if self.traceable else []

    def finished(self, image: CompiledImage, reads: Reads) -> CompiledImage:
        """The image with what was read, and with what there is to say of both."""
        job = self.job
        warnings = [*image.warnings, *_foreign_headers(job, reads, self.installed)]
        if self.leaks(image):
            warnings.append(path_warning(job))
        if names := [label for label in job.unit.closure.names_time if label in reads.files]:
            warnings.append(f"{job}: {', '.join(names)} asks for the time of compilation, so two builds can differ")
        return dataclasses.replace(image, reads=reads, warnings=tuple(warnings))

    def precompile(self, target: Path, extra: Sequence[bytes]) -> tuple[str, ...]:
        """Write a precompiled header and nothing else, with further flags; the warnings of its headers."""
        log, _, _ = self._call([*self._trace_flag, *extra, *self.precompiling(target)], ())
        return warnings_in(log)

    def precompiling(self, target: Path) -> list[bytes]:
        """Flags of a compile that writes a precompiled header as well."""
        return [b"--create-pch=" + os.fsencode(target), b"--pch-messages=false"]

    @contextlib.contextmanager
    def member(self, job: CompileJob) -> Iterator[Stage | None]:
        """This stage for another job of the same options, whose source stays in memory; None where it has no place.

        Headers that only that job has are beside the files here for as long as this lasts.
        """
        other, added = copy.copy(self), list[Path]()
        other.job = job
        if _height(job.unit) > _height(self.job.unit):
            yield None
            return
        try:
            for label, file in job.unit.closure.files.items():
                if label not in self.job.unit.closure.files:
                    added.append(other._lay(file))
            other._make_detours()
            yield other
        finally:
            for path in added:
                path.unlink()

    def preprocess(self) -> Reads:
        """What a compile would read, from a run of the front end alone."""
        if self.traceable:
            self.front_end(self._trace_flag)
        return self.reads()

    def front_end(self, extra: Sequence[bytes]) -> str:
        """Run the front end alone, with further flags; what it says. Raises RefusalError."""
        return self._call([*extra, b"--fdevice-syntax-only"], ())[0]

    def traced(self) -> list[str] | None:
        """Paths of the headers that were read; None where that is not known."""
        named = traced_names(self.trace.with_suffix(".json")) if self.traceable else None
        # the trace is not a documented interface: one that does not even name NVRTC's own header is not believed
        if named is None or not any(OWN_HEADER in name for name in named):
            return None
        if self.inside and self.misnamed(named):
            return None
        return self.paths_of(named)

    def misnamed(self, named: Sequence[str]) -> list[str]:
        """Of headers as the compiler names them, those of the project that have another name than their label."""
        inside = [name for name in named if not os.path.isabs(name) and OWN_HEADER not in name]
        return [name for name in inside if name not in self.job.unit.closure.files]

    def paths_of(self, named: Sequence[str]) -> list[str]:
        """Paths of headers as the compiler names them."""
        names = [name for name in named if self.inside or os.path.isabs(name)]
        return list(dict.fromkeys(os.path.normpath(self.root / name) for name in names if OWN_HEADER not in name))

    def compile(self, extra: Sequence[bytes] = ()) -> CompiledImage:
        """Run NVRTC, with further flags, and check what comes out."""
        job = self.job
        start = time.perf_counter()
        expressions = (*job.unit.name_expressions, *self.shown.expressions)
        log, data, lowered = self._call([*self._trace_flag, *extra], expressions)
        seconds = time.perf_counter() - start
        entries = image_facts(job, data, log)
        kernels = kernel_names(job, entries, lowered)
        return CompiledImage(
            architecture=job.architecture,
            release=job.release,
            data=data,
            kernels=kernels,
            entries=entries,
            reads=Reads(files={}),
            warnings=warnings_in(log),
            seconds=seconds,
        )

    def _relabel(self, log: str) -> str:
        """Leave the folders of this machine out: a message is the same wherever it is compiled, and is kept."""
        for folder in (os.path.normpath(self.root), _VIRTUAL_ROOT, *self.bundled, *self.standins):
            log = log.replace(f"{folder}{os.sep}", "")
        for root in self.installed:
            log = log.replace(f"{root.path}{os.sep}", "")
        above, height = self.root, 0
        while above.parent != self.path:  # labels that lead above the project's root
            above, height = above.parent, height + 1
            log = log.replace(f"{above}{os.sep}", "../" * height)
        return log.replace(f"{self.space.path}{os.sep}", "")

    def reads(self) -> Reads:
        """What was read, from NVRTC's own trace; everything at hand where it wrote none."""
        traced = self.traced()
        return self._everything() if traced is None else self.reads_of(traced)

    def reads_of(self, traced: Sequence[str], before: Reads | None = None) -> Reads:
        """What was read: headers by their paths, and what had been read `before` them.

        Raises CompilationError for a file that is none of the job's.
        """
        unit = self.job.unit
        files = {unit.source, *(before.files if before else ())}
        installed = set(before.installed if before else ())
        base, private = os.path.normpath(self.root), f"{self.space.path}{os.sep}"
        for path in traced:
            label = os.path.relpath(path, base).replace(os.sep, "/")
            if label in unit.closure.files:
                files.add(label)
            elif not path.startswith(private):
                tops = [root.path for root in self.installed if path.startswith(root.path + os.sep)]
                if not tops:
                    raise self._outside(path)
                installed.add(path[len(max(tops, key=len)) + 1 :].replace(os.sep, "/"))
        return self._reads(files, installed)

    def _everything(self) -> Reads:
        """All files that could be read. A file that an absolute path leads to is none of them, and refused."""
        unit = self.job.unit
        for file in unit.closure.files.values():
            spelled = {include.spelling for include in file.scan.includes}
            if file.scan.computed:
                spelled.update(match[1].decode("utf-8", "surrogateescape") for match in _QUOTED.finditer(file.data))
            for name in sorted(spelled):
                if os.path.isabs(name) and os.path.isfile(name):
                    raise self._outside(name)
        reads = self._reads(set(unit.closure.files), {ANY_HEADER} if self.installed else set())
        return dataclasses.replace(reads, told=not self.traceable)

    def _outside(self, path: str) -> CompilationError:
        return CompilationError(
            f"{self.job}: {path} was read, which is outside the project and its include-dirs; include it by a "
            "relative name and add its folder to include-dirs"
        )

    def _reads(self, files: set[str], installed: set[str]) -> Reads:
        unit = self.job.unit
        for label in sorted(files - {unit.source}):
            check_text(self.job, unit.closure.files[label])
        missing = self._missing(files)
        for label in files:
            for name in facts_of(unit.closure.files[label]).absolute:
                (installed if os.path.isfile(name) else missing).add(name)
        return Reads(
            files={label: unit.closure.files[label].sha256 for label in sorted(files)},
            installed={name: self._digest(name) for name in sorted(installed)},
            missing=tuple(sorted(missing)),
        )

    def _digest(self, name: str) -> str:
        """Digest of an installed header; empty, which nothing ever equals, where it changed since the compile."""
        if name == ANY_HEADER:
            return digest_roots(self.installed)
        path = find_header(name, self.installed)
        try:
            if path is None or path.stat().st_ctime_ns >= self.start:
                return ""
            return digest_header(path)
        except OSError:
            return ""

    def _missing(self, files: set[str]) -> set[str]:
        """Headers asked for by the files read that nobody has: were one to appear, the image could change."""
        unit = self.job.unit
        if not self.external or not wants_installed(unit.toolkit_headers):
            return set()
        labels = unit.closure.files if self.shown.texts else files
        asked = {include.spelling for label in labels for include in unit.closure.files[label].scan.includes}
        asked.update(include.spelling for include in scan_text(self.shown.prelude).includes)
        folders = [HeaderRoot(path=str(path), version=None) for path in self.bundled]
        known = {posixpath.normpath(label) for label in unit.closure.files}
        return {
            name
            for name in asked
            if not os.path.isabs(name)
            and not any(posixpath.normpath(posixpath.join(d, name)) in known for d in unit.include_dirs)
            and find_header(name, [*folders, *self.installed]) is None
        }


def _files_below(top: Path) -> Iterator[str]:
    for folder, _, names in os.walk(top):
        for name in names:
            yield os.path.join(folder, name)


_QUOTED = re.compile(rb'["<]([^"<>\n]+)[">]')


def can_be_traced(job: CompileJob) -> bool:
    """Whether NVRTC can tell what it reads: it crashes when it does so of a source with `#line` directives."""
    files = job.unit.closure.files.values()
    return release_version(job.release) >= _FIRST_TRACED and not any(facts_of(file).numbers_lines for file in files)


def _height(unit: Unit) -> int:
    """How many folders above the project's root an include of this unit could climb."""
    labels = [*unit.closure.files, *(f"{folder}/" for folder in unit.include_dirs)]
    climbs = [facts_of(file).climbs for file in unit.closure.files.values()]
    return max(label.count("../") for label in labels) + max(climbs)


def _flags(job: CompileJob) -> list[bytes]:
    """NVRTC's options for a job, search path and trace aside."""
    unit = job.unit
    flags = _option_flags(job) if unit.options or unit.relocatable else _plain_flags(job.architecture)
    on = {name for name, value in unit.options.items() if value}
    flags += [f"-U{name}".encode() for name, options in _DEFINED_AS_ZERO.items() if not options & on]
    for name, value in sorted(unit.defines.items()):
        flags.append(f"-D{name}".encode() if value is True else f"-D{name}={value}".encode())
    return flags


_DEFINED_AS_ZERO = {"__USE_FAST_MATH__": {"use-fast-math"}, "__CUDA_FTZ": {"use-fast-math", "ftz"}}
"""Macros that NVRTC defines as 0 unless one of these options is on; code that is written for nvcc asks by `#ifdef`."""


def _plain_flags(architecture: Architecture) -> list[bytes]:
    """What `_option_flags` gives for a job without options. Importing cuda.core takes longer than a small kernel."""
    return [f"-arch={architecture}".encode(), *([] if architecture.virtual else [b"--ptxas-options=-v"])]


def _option_flags(job: CompileJob) -> list[bytes]:
    from cuda.core import ProgramOptions

    fields = {field_name(option): value for option, value in job.unit.options.items() if option != "pre-include"}
    if job.unit.relocatable:
        fields["relocatable_device_code"] = True
    if not job.architecture.virtual:
        given = fields.get("ptxas_options", [])
        given = [given] if isinstance(given, str) else list(given)
        fields["ptxas_options"] = given if "-v" in given else [*given, "-v"]
    try:
        return list(ProgramOptions(arch=str(job.architecture), **fields).as_bytes("nvrtc"))
    except TypeError as error:
        raise ToolchainError(f"{job}: this cuda-core does not know an option ({error}); upgrade cuda-core") from None


def _run(
    nvrtc: Any,
    source: bytes,
    name: bytes,
    flags: list[bytes],
    expressions: Sequence[str],
    form: str,
) -> tuple[object, str, tuple[bytes, dict[str, str]] | None]:
    """One NVRTC program from creation to its end: (error or None, log, (image, expression -> lowered name))."""
    error, program = nvrtc.nvrtcCreateProgram(source, name, 0, [], [])
    if error:
        return error, "", None
    try:
        for expression in expressions:
            (error,) = nvrtc.nvrtcAddNameExpression(program, expression.encode())
            if error:
                return error, f"name expression {expression!r} is refused ({error})", None
        (error,) = nvrtc.nvrtcCompileProgram(program, len(flags), flags)
        log = _text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
        shown = log.rstrip(b"\0").decode("utf-8", "replace").strip()
        if error:
            return error, shown, None
        lowered = {}
        for expression in expressions:
            error, symbol = nvrtc.nvrtcGetLoweredName(program, expression.encode())
            if error:
                return error, f"name expression {expression!r} names no kernel ({error})", None
            lowered[expression] = symbol.decode()
        if form == "ltoir":
            data = _text(nvrtc.nvrtcGetLTOIRSize, nvrtc.nvrtcGetLTOIR, program)
        elif form == "ptx":
            data = _text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program).rstrip(b"\0")
        else:
            data = _text(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
        return None, shown, (data, lowered)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _text(size_of: Any, get: Any, program: Any) -> bytes:
    error, size = size_of(program)
    if error:
        return b""
    buffer = b"\0" * size
    (error,) = get(program, buffer)
    return b"" if error else buffer


def traced_names(path: Path) -> list[str] | None:
    """Names of the headers in NVRTC's time trace, as it has them; None where there is no trace that can be read."""
    try:
        events = json.loads(path.read_bytes())["traceEvents"]
        return [str(e["args"]["detail"]) for e in events if e.get("name") == "Processing Header File"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


@contextlib.contextmanager
def _folder(path: Path) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)
