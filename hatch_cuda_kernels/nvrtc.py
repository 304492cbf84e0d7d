# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The one module that calls NVRTC to compile: a job in, an image with its facts out.

NVRTC is called through cuda.bindings, which makes PTX without a driver as well as cubins; options are spelled by
cuda.core.ProgramOptions. A job's project files are laid out in a private folder, under their labels, and only that
folder and the toolkit's headers are on the search path. So what is compiled is what was hashed.
"""

from __future__ import annotations

import contextlib
import json
import os
import posixpath
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .arch import Architecture
from .cubin import ImageFormatError, plain_names, read_cubin, read_ptx, spills_from_log
from .errors import CompilationError, ToolchainError
from .manifest import Resources, squeeze_name
from .options import field_name
from .plan import CompiledImage, CompileJob, Reads
from .sources import SourceFile, text_problem
from .toolchain import import_nvrtc
from .toolkit import (
    HeaderRoot,
    carries_headers,
    digest_header,
    find_header,
    installed_roots,
    wants_bundled,
    wants_installed,
)

__all__ = ["Workspace", "compile_job", "workspace"]

_VIRTUAL_ROOT = "/cuda-kernels"
"""Stands for the project's root in line tables, which need an absolute path to be free of the current folder."""

_PTXAS_REPORT = re.compile(r"^ptxas\s+(?:info\s*:|\.\s).*(?:\n|\Z)", re.MULTILINE)


@dataclass(frozen=True)
class Workspace:
    """A private folder for the files of compiles, shared by the workers of one build."""

    path: Path

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
                Architecture(80, virtual=True),
            )
            if error:
                raise ToolchainError(f"NVRTC cannot lay out the headers that it carries ({log or error})")
            (target / ".complete").touch()
        return target

    def labelled_copy(self, root: Path, label: str) -> Path:
        """A copy of a folder of toolkit headers that call themselves by `label`, not by where they lie."""
        target = self.path / f"labelled-{label.replace('/', '-')}"
        if not target.is_dir():
            staging = Path(tempfile.mkdtemp(prefix="labelling-", dir=self.path))
            for folder, _, names in os.walk(root):
                inside = Path(folder).relative_to(root)
                (staging / inside).mkdir(exist_ok=True)
                for name in names:
                    shown = posixpath.normpath(f"{_VIRTUAL_ROOT}/{label}/{inside.as_posix()}/{name}")
                    data = Path(folder, name).read_bytes()
                    (staging / inside / name).write_bytes(_line_directive(shown) + data)
            with contextlib.suppress(OSError):  # another worker was first
                staging.rename(target)
        return target


@contextlib.contextmanager
def workspace() -> Iterator[Workspace]:
    """A workspace that is removed at the end. Raises ToolchainError where no temporary folder can be made."""
    try:
        path = tempfile.mkdtemp(prefix="hatch-cuda-kernels-")
    except OSError as error:
        raise ToolchainError(
            f"compiling needs a temporary folder, and none can be made ({error}); set TMPDIR"
        ) from None
    try:
        yield Workspace(Path(path))
    finally:
        shutil.rmtree(path, ignore_errors=True)


def compile_job(job: CompileJob, space: Workspace) -> CompiledImage:
    """Compile one job.

    Raises CompilationError where NVRTC refuses the source or the image is not what was asked for, ToolchainError
    where NVRTC is missing or is not the release that the job names.
    """
    unit = job.unit
    _check_text(job, unit.closure.files[unit.source])
    stage = _Stage(job, space, labelled=unit.labelled)
    try:
        image = stage.compile()
        if not unit.labelled and stage.leaks(image):
            stage.remove()
            stage = _Stage(job, space, labelled=True)
            image = stage.compile()
        warnings = list(image.warnings)
        if stage.leaks(image):
            warnings.append(
                f"{job}: the image holds the path of the folder that it was compiled in (debug = true does that), so "
                "two builds differ"
            )
        if names := [label for label in unit.closure.names_time if label in image.reads.files]:
            warnings.append(f"{job}: {', '.join(names)} asks for the time of compilation, so two builds can differ")
        return _replace_warnings(image, warnings)
    finally:
        stage.remove()


def _replace_warnings(image: CompiledImage, warnings: Sequence[str]) -> CompiledImage:
    return CompiledImage(**{**_fields(image), "warnings": tuple(warnings)})


def _fields(image: CompiledImage) -> dict[str, Any]:
    return {name: getattr(image, name) for name in CompiledImage.__dataclass_fields__}


def _check_text(job: CompileJob, file: SourceFile) -> None:
    problem = text_problem(file.data)
    if problem:
        raise CompilationError(f"{job}: {file.label}: {problem}")


def _line_directive(shown: str) -> bytes:
    escaped = shown.replace("\\", "\\\\").replace('"', '\\"')
    return f'#line 1 "{escaped}"\n'.encode()


class _Stage:
    """The files of one job as the compiler sees them, and the compile itself."""

    def __init__(self, job: CompileJob, space: Workspace, *, labelled: bool) -> None:
        self.job, self.space, self.labelled = job, space, labelled
        unit = job.unit
        self.path = Path(tempfile.mkdtemp(prefix="job-", dir=space.path))
        up = max(label.count("../") for label in [*unit.closure.files, *(f"{d}/" for d in unit.include_dirs)])
        self.root = self.path.joinpath("tree", *["_"] * up)
        self.trace = self.path / "trace"
        for label, file in unit.closure.files.items():
            path = Path(os.path.normpath(self.root / label))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self._shown(file))
        version = _version(job.release)
        self.bundled: list[Path] = []
        self.installed: tuple[HeaderRoot, ...] = ()
        if unit.closure.external:
            if wants_bundled(unit.toolkit_headers, version):
                headers = space.bundled_headers(version)
                self.bundled = [headers, headers / "cccl"]
            if wants_installed(unit.toolkit_headers):
                self.installed = installed_roots()

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
        return _line_directive(self._label_shown(file.label)) + file.data if self.labelled else file.data

    def _header_folders(self) -> list[Path]:
        bundled, installed = self.bundled, [Path(root.path) for root in self.installed]
        if self.labelled:
            bundled = [self.space.labelled_copy(bundled[0], "toolkit")] if bundled else []
            bundled = [root for top in bundled for root in (top, top / "cccl")]
            installed = [
                self.space.labelled_copy(root, f"toolkit/installed-{index}") for index, root in enumerate(installed)
            ]
        return [*bundled, *installed]

    def compile(self) -> CompiledImage:
        """Run NVRTC and check what comes out."""
        job, unit = self.job, self.job.unit
        nvrtc = import_nvrtc()
        source = Path(os.path.normpath(self.root / unit.source))
        flags = _flags(job)
        flags += [b"-I" + os.fsencode(os.path.normpath(self.root / folder)) for folder in unit.include_dirs]
        flags += [b"-I" + os.fsencode(folder) for folder in self._header_folders()]
        flags.append(b"--fdevice-time-trace=" + os.fsencode(self.trace))
        start = time.perf_counter()
        error, log, result = _run(
            nvrtc, source.read_bytes(), os.fsencode(source), flags, unit.name_expressions, job.architecture
        )
        seconds = time.perf_counter() - start
        log = self._relabel(log)
        if error or result is None:
            raise CompilationError(_refusal(job, log or str(error)))
        data, lowered = result
        entries = _facts(job, data, log)
        kernels = _kernel_names(job, entries, lowered)
        return CompiledImage(
            architecture=job.architecture,
            release=job.release,
            data=data,
            kernels=kernels,
            entries=entries,
            reads=self._reads(),
            warnings=_warnings(log),
            seconds=seconds,
        )

    def _relabel(self, log: str) -> str:
        root = os.path.normpath(self.root)
        return log.replace(f"{root}{os.sep}", "").replace(f"{_VIRTUAL_ROOT}/", "").replace(str(self.space.path), "")

    def _reads(self) -> Reads:
        """What was read, from NVRTC's own trace; all files at hand where it wrote none."""
        unit = self.job.unit
        files = {unit.source}
        installed: set[str] = set()
        traced = _traced_headers(self.trace.with_suffix(".json"))
        if traced is None:
            files.update(unit.closure.files)
        roots = [(str(Path(root.path)), root) for root in self.installed]
        copies = [(str(self.space.path / f"labelled-toolkit-installed-{i}"), r) for i, r in enumerate(self.installed)]
        base = os.path.normpath(self.root)
        for path in traced or ():
            label = os.path.relpath(path, base).replace(os.sep, "/")
            if label in unit.closure.files:
                files.add(label)
            elif not path.startswith(str(self.space.path)) or "labelled-toolkit-installed-" in path:
                inside = [path[len(top) + 1 :] for top, _ in [*roots, *copies] if path.startswith(top + os.sep)]
                if not inside:
                    raise CompilationError(
                        f"{self.job}: {path} was read, which is outside the project and its include-dirs; include it "
                        "by a relative name and add its folder to include-dirs"
                    )
                installed.add(min(inside, key=len).replace(os.sep, "/"))
        for label in files - {unit.source}:
            _check_text(self.job, unit.closure.files[label])
        digests = {}
        for name in sorted(installed):
            found = find_header(name, self.installed)
            if found is not None:
                digests[name] = digest_header(found)
        return Reads(
            files={label: unit.closure.files[label].sha256 for label in sorted(files)},
            installed=digests,
            missing=self._missing(files),
        )

    def _missing(self, files: set[str]) -> tuple[str, ...]:
        """Headers asked for by the files read that nobody has: were one to appear, the image could change."""
        unit = self.job.unit
        if not unit.closure.external or not wants_installed(unit.toolkit_headers):
            return ()
        asked = {include.spelling for label in files for include in unit.closure.files[label].scan.includes}
        folders = [HeaderRoot(path=str(path), version=None) for path in self.bundled]
        known = {posixpath.normpath(label) for label in unit.closure.files}
        return tuple(
            sorted(
                name
                for name in asked
                if not any(posixpath.normpath(posixpath.join(d, name)) in known for d in unit.include_dirs)
                and find_header(name, [*folders, *self.installed]) is None
            )
        )


def _version(release: str) -> tuple[int, int]:
    major, minor = release.split(".")[:2]
    return int(major), int(minor)


def _flags(job: CompileJob) -> list[bytes]:
    """NVRTC's options for a job, search path and trace aside."""
    from cuda.core import ProgramOptions

    fields = {field_name(option): value for option, value in job.unit.options.items()}
    if not job.architecture.virtual:
        given = fields.get("ptxas_options", [])
        given = [given] if isinstance(given, str) else list(given)
        fields["ptxas_options"] = given if "-v" in given else [*given, "-v"]
    try:
        flags = list(ProgramOptions(arch=str(job.architecture), **fields).as_bytes("nvrtc"))
    except TypeError as error:
        raise ToolchainError(f"{job}: this cuda-core does not know an option ({error}); upgrade cuda-core") from None
    for name, value in sorted(job.unit.defines.items()):
        flags.append(f"-D{name}".encode() if value is True else f"-D{name}={value}".encode())
    return flags


def _run(
    nvrtc: Any,
    source: bytes,
    name: bytes,
    flags: list[bytes],
    expressions: Sequence[str],
    architecture: Architecture,
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
        if architecture.virtual:
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


def _traced_headers(path: Path) -> list[str] | None:
    """Paths of the headers in NVRTC's time trace; None where there is no trace that can be relied on.

    The trace is not a documented interface: one that does not even name NVRTC's own built-in header is not believed.
    """
    try:
        events = json.loads(path.read_bytes())["traceEvents"]
        named = [e["args"]["detail"] for e in events if e.get("name") == "Processing Header File"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not any("nvrtc_builtin" in name for name in named):
        return None
    return list(dict.fromkeys(os.path.normpath(name) for name in named if os.path.isabs(name)))


def _facts(job: CompileJob, data: bytes, log: str) -> dict[str, Resources | None]:
    """Check an image against the job and return its entries. NVRTC gives empty or foreign output without an error."""
    source = job.unit.source
    entries: dict[str, Resources | None]
    if not data:
        raise CompilationError(f"{job}: NVRTC gave no output for {source}")
    try:
        if job.architecture.virtual:
            ptx = read_ptx(data)
            matches, release, entries = ptx.matches(job.architecture), ptx.release, dict.fromkeys(ptx.entries)
        else:
            cubin = read_cubin(data)
            spills = spills_from_log(log)
            matches, release = cubin.matches(job.architecture), cubin.release
            entries = {
                name: Resources(**{**found.to_dict(), "spill_bytes": spills.get(name, 0)})
                for name, found in cubin.entries.items()
            }
    except ImageFormatError as error:
        raise CompilationError(f"{job}: NVRTC gave something that is no {job.architecture.format} ({error})") from None
    if not matches:
        raise CompilationError(f"{job}: NVRTC gave an image for another architecture")
    if release is not None and release != job.release:
        raise ToolchainError(
            f"{job}: compiled by NVRTC {release}, but {job.release} was expected; another NVRTC shadows the one of "
            "this environment (LD_LIBRARY_PATH, CUDA_HOME, or a library loaded earlier)"
        )
    if not entries:
        raise CompilationError(
            f"{job}: {source} compiles to no kernel; it has no __global__ function, only templates that no "
            "name-expressions entry instantiates, or an #if that hides them from this architecture"
        )
    return entries


def _kernel_names(job: CompileJob, entries: dict[str, Resources | None], lowered: dict[str, str]) -> dict[str, str]:
    """Every name that a kernel of this image is loaded by -> its symbol."""
    for expression, symbol in lowered.items():
        if symbol not in entries:
            raise CompilationError(
                f"{job}: the name expression {expression!r} gives {symbol}, which is no kernel of the image"
            )
    names = {squeeze_name(name): symbol for name, symbol in plain_names(list(entries)).items()}
    names.update(lowered)
    named = set(names.values())
    names.update({symbol: symbol for symbol in entries if symbol not in named})
    return dict(sorted(names.items()))


def _warnings(log: str) -> tuple[str, ...]:
    text = _PTXAS_REPORT.sub("", log)
    return tuple(block.strip() for block in re.split(r"\n\s*\n", text) if block.strip())


def _refusal(job: CompileJob, log: str) -> str:
    """NVRTC's message with what was being compiled, and a hint where the cause is known."""
    message = f"{job}: NVRTC refuses {job.unit.source}\n{log}"
    if match := re.search(r'cannot open source file "([^"]+)"', log):
        name = match[1]
        if job.unit.toolkit_headers == "none":
            hint = f"toolkit-headers is 'none', so {name} has to be in a folder of include-dirs"
        elif name in _HOST_HEADERS:
            hint = f"<{name}> is a header of the host; use its counterpart in <cuda/std/...>, or guard the include"
        elif not carries_headers(_version(job.release)) and not installed_roots():
            hint = (
                f"NVRTC {job.release} carries no headers and none are installed; install the extra "
                f"cu{job.release.split('.')[0]}, or add the folder of {name} to include-dirs"
            )
        else:
            hint = f"add the folder that holds {name} to include-dirs (paths from the project's root)"
        message += f"\nhint: {hint}"
    elif "execution space" in log or "host function" in log or "host variable" in log:
        message += (
            "\nhint: this is host code, which NVRTC does not compile; guard it with #ifndef __CUDACC_RTC__, or move "
            "the kernels into a file of their own"
        )
    return message


_HOST_HEADERS = frozenset(
    [
        "algorithm",
        "array",
        "atomic",
        "cassert",
        "cfloat",
        "chrono",
        "climits",
        "cmath",
        "complex",
        "cstddef",
        "cstdint",
        "cstdio",
        "cstdlib",
        "cstring",
        "exception",
        "fstream",
        "functional",
        "future",
        "iomanip",
        "iostream",
        "iterator",
        "limits",
        "map",
        "memory",
        "mutex",
        "numeric",
        "optional",
        "queue",
        "random",
        "set",
        "sstream",
        "stdexcept",
        "string",
        "thread",
        "tuple",
        "type_traits",
        "unordered_map",
        "utility",
        "variant",
        "vector",
        "assert.h",
        "math.h",
        "stddef.h",
        "stdint.h",
        "stdio.h",
        "stdlib.h",
        "string.h",
    ]
)
