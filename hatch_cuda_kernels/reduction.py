# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""A job compiled with the host code of its files passed over, which is the second try after NVRTC's refusal."""

from __future__ import annotations

import contextlib
import dataclasses
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from .advice import refusal_message, undefined_names
from .caveats import caveats
from .deduction import deduce
from .errors import CompilationError, numbered
from .hostcode import (
    HOST_LIBRARIES,
    INTEGER_POWER,
    Includes,
    PassedOver,
    Settled,
    Surroundings,
    conditions_of_kernels,
    device_functions,
    global_variables,
    mark_fragments,
    pass_over,
    prelude,
    settle,
    uncovering,
    with_lists,
)
from .installed import INSTALLED
from .instances import Instances
from .libraries import wanted_libraries
from .manifest import Omission
from .narrowing import is_read_after_all, narrowed
from .nvrtc import RefusalError, Shown, Workspace, can_be_traced, compile_shown, unread_files
from .outcome import NoKernelError, UndefinedKernelsError
from .plan import CompiledImage, CompileJob, Reads, Unit
from .preprocessing import preprocessed
from .refusals import (
    check_attributes,
    check_customizations,
    check_externals,
    check_names,
    check_pragmas,
    found_unasked,
)
from .scanning import without_comments
from .sources import SourceFile, join_label
from .standins import AS_NVCC, declares_others

__all__ = ["compile_asked", "compile_passing", "refuse_host_code"]


def compile_asked(job: CompileJob, space: Workspace, found: CompiledImage | NoKernelError) -> CompiledImage:
    """Compile a source that NVRTC takes as it is written with the instances that it asks for, where nvcc alone sees it.

    `found` is what comes out without them; it stays where there are none.
    """
    unit = job.unit
    texts = {label: file.data for label, file in unit.closure.files.items()}
    own = _own_headers(unit)
    around = _surroundings(unit, own)
    asked = Instances.asked(unit, around)
    if asked.unknown and asked.mentions and unit.host_code != "error":
        passed = {label: pass_over(text, around, keep_includes=own.get(label, ())) for label, text in texts.items()}
        asked = deduce(job, space, asked, around, passed, as_written=True)
    trial = _Trial(job, space, asked, as_written=True)
    written = {label: PassedOver(text) for label, text in texts.items()}
    with contextlib.suppress(NoKernelError):  # none of the instances compiles
        if asked.taken:
            trial.attempt_with_fewer_instances(written, trial.attempt(written))
    image = trial.image
    if image is None and isinstance(found, NoKernelError):
        raise CompilationError(f"{found}{trial.instances.how_to_list(unit)}{_conditions(unit, around)}")
    if image is None:
        assert isinstance(found, CompiledImage)
        image = found
    warnings = [*image.warnings, *trial.instances.left_open(job, image.reads.files)]
    warnings += caveats(job, {label: texts[label] for label in image.reads.files}, as_written=True)
    reads = _reads_all(unit, image) if asked.mentions else image.reads
    return dataclasses.replace(image, reads=reads, warnings=tuple(warnings))


def _conditions(unit: Unit, around: Surroundings) -> str:
    """What to say of a source whose kernels all stand on conditions that do not hold."""
    found = conditions_of_kernels(unit.closure.files[unit.source].data, around)
    if not found:
        return ""
    message = numbered(
        "\nits kernels are there on these conditions:", [f"{unit.source}({each.line}): {each.text}" for each in found]
    )
    macros = dict.fromkeys(name for each in found for name in each.macros)
    if settings := [name for name in macros if not name.startswith("__") and name not in around.macros]:
        line = ", ".join(f"{name} = true" for name in settings)
        message += f"\na macro that a build passes with -D goes into the table defines: defines = {{ {line} }}"
    if "__CUDA_ARCH__" in macros:
        message += "\nan architecture that has none of them is left out of archs"
    return message


def _reads_all(unit: Unit, image: CompiledImage) -> Reads:
    """What an image was made of whose instances, and what was passed over, depend on every file's text."""
    return dataclasses.replace(image.reads, files={label: file.sha256 for label, file in unit.closure.files.items()})


def _surroundings(unit: Unit, own: Includes) -> Surroundings:
    return _surroundings_of({label: file.data for label, file in unit.closure.files.items()}, unit, own)


def _surroundings_of(files: Mapping[str, bytes], unit: Unit, own: Includes) -> Surroundings:
    around = Surroundings.of(files.values(), unit.defines)
    mark_fragments(files, around, own)
    return around


class _ReadAfterAllError(Exception):
    """A compile came to a file that it was not to read."""


def compile_passing(job: CompileJob, space: Workspace, refusal: RefusalError) -> CompiledImage:
    """Compile with the host code of all project files passed over (see hostcode) that the compile reads; what it reads
    depends on all of them."""
    try:
        image = _compile_passing(*_narrowed(job, space), space, refusal)
    except _ReadAfterAllError:
        image = _compile_passing(
            *_with_macros(job, job.unit.closure.files.values(), *_headers(job.unit)), space, refusal
        )
    return dataclasses.replace(image, reads=_reads_all(job.unit, image))


def _narrowed(job: CompileJob, space: Workspace) -> tuple[CompileJob, Includes]:
    """The job with the files that it reads, and which headers are the project's own.

    What files ask for that are not read, such as the tests of a library in the tree, is nothing to it: libraries of
    the host stay out until a file that is read without them asks for their macros.
    """
    own, libraries = _headers(job.unit)
    narrow = narrowed(job, space, own)
    bare, more = _with_macros(job, narrow.unit.closure.files.values(), own, libraries)
    return (narrow, own) if bare is job else (narrowed(bare, space, more), more)


def _with_macros(
    job: CompileJob, asking: Iterable[SourceFile], own: _Headers, libraries: _Headers
) -> tuple[CompileJob, Includes]:
    """The job with nothing but the directives of libraries of the host whose macros `asking` ask for, and which headers
    are the project's own then; the job itself where none is asked for."""
    closure = job.unit.closure
    theirs = _files_of(libraries, closure.files)
    if not _asks_for(theirs, closure.files, asking):
        return job, own
    files = {
        label: SourceFile(label, file.directives) if label in theirs else file for label, file in closure.files.items()
    }
    unit = dataclasses.replace(job.unit, closure=dataclasses.replace(closure, files=files))
    return dataclasses.replace(job, unit=unit), _joined(own, libraries)


def _compile_passing(job: CompileJob, own: Includes, space: Workspace, refusal: RefusalError) -> CompiledImage:
    unit = job.unit
    around = _surroundings(unit, own)
    texts = with_lists({label: file.data for label, file in unit.closure.files.items()}, around, own)
    first = {label: pass_over(text, around, keep_includes=own.get(label, ())) for label, text in texts.items()}
    if not any(map(_is_host_code, first.values())):
        return _compile_with_prelude(job, space, refusal)
    asked = Instances.asked(unit, around)
    if asked.unknown:
        asked = deduce(job, space, asked, around, first)
    try:
        return _compile_texts(job, space, refusal, _Texts(texts, own, around), asked)
    except CompilationError:
        expanded = preprocessed(job, space, texts, around, own, AS_NVCC + prelude(first.values()))
        if expanded is None:
            raise
        with contextlib.suppress(CompilationError, _ReadAfterAllError):
            found = _Texts(expanded, own, _surroundings_of(expanded, unit, own))
            return _compile_texts(job, space, refusal, found, asked)
        raise


class _Texts(NamedTuple):
    """The files of a job, each with the headers of the project that it includes, and the macros of all."""

    files: Mapping[str, bytes]
    own: Includes
    around: Surroundings


def _compile_texts(
    job: CompileJob, space: Workspace, refusal: RefusalError, found: _Texts, asked: Instances
) -> CompiledImage:
    unit, kept, sliced = job.unit, set[str](), False
    texts, own, around = found
    while True:
        trial = _Trial(job, space, dataclasses.replace(asked, refused={}))
        try:
            asked_for = (*unit.name_expressions, *asked.taken)
            settled = settle(
                texts,
                trial.attempt,
                around,
                keep_includes=own,
                keep_names=kept,
                expressions=asked_for,
                sliced=sliced,
                linked=unit.relocatable,
            )
            if trial.image is None:
                trial.attempt_with_fewer_instances(settled.files, settled.log)
        except NoKernelError as error:
            raise CompilationError(f"{error}{trial.instances.how_to_list(unit)}{_conditions(unit, around)}") from None
        if trial.image is None:
            raise CompilationError(_refused_in_the_end(job, refusal, settled))
        read = {label: found for label, found in settled.files.items() if label in trial.image.reads.files}
        expressions = (*unit.name_expressions, *trial.instances.taken)
        unsafe = list(uncovering(read, around, expressions=expressions, linked=unit.relocatable))
        if unsafe and not can_be_traced(job):
            unread = unread_files(job, space, trial.shown(settled.files))
            read = {label: found for label, found in read.items() if label not in unread}
            unsafe = list(uncovering(read, around, expressions=expressions, linked=unit.relocatable))
        unasked = found_unasked(job, read, around)
        functions = {passing.name for _, passing in unsafe if passing.kind == "function"} - kept
        kept |= functions  # another file names them: their declarations stay
        if not functions:
            if sliced or settled.sliced or not (unsafe or unasked):
                break
            sliced = True  # what nothing reaches is in nobody's way
    check_names(job, unsafe)
    check_pragmas(job, texts, read)
    check_customizations(job, unasked)
    check_externals(job, trial.image)
    check_attributes(job, trial.image, read)
    return dataclasses.replace(
        trial.image,
        passed_over=tuple(_omissions(settled.files)),
        warnings=(
            *_of_what_stays(_with_powers(job, trial.image.warnings), read.values(), texts.values(), around),
            *trial.instances.left_open(job, trial.image.reads.files),
            *caveats(job, {label: found.data for label, found in read.items()}, expressions=expressions),
        ),
    )


_POWER = re.compile(rf'^(.*)\((\d+)\): warning [^\n]*function "(pow\(\w+, int\))"[^\n]*\("{INTEGER_POWER}"\)')


def _with_powers(job: CompileJob, warnings: Iterable[str]) -> list[str]:
    """Warnings with one about all powers that nvcc computes otherwise."""
    others, places = list[str](), dict[str, None]()
    for warning in warnings:
        if match := _POWER.match(warning):
            places[f"{match[1]}({match[2]}): {match[3]}"] = None
        else:
            others.append(warning)
    if places:
        others = [] if all(warning.startswith(_REMARK) for warning in others) else others
        others.append(
            numbered(
                f"{job}: powers with an integer for the exponent are multiplications here, and with nvcc pow(double, "
                "double), of another value in the last digits; write a floating exponent, pow(x, 2.0) or powf(x, 2.f):",
                places,
                6,
            )
        )
    return others


_UNUSED = re.compile(r'warning #177-D: (?:variable "(\w+)"|function) ?')
_REMARK = "Remark: The warnings can be suppressed"


_SPACES_DIFFER = re.compile(r'warning #200(?:35|37)-D: [^"\n]*"(?:[^"\n]*::)?([^":\n(]+)')
"""A function is declared with an execution space once, and once without: the mark may be ours."""


def _of_what_stays(
    warnings: Sequence[str], files: Collection[PassedOver], texts: Iterable[bytes], around: Surroundings
) -> list[str]:
    """Warnings without those of unused functions and global variables: what used them may be what was passed over; and
    of execution spaces that the author did not write."""
    unused = {match[1].encode() for warning in warnings if (match := _UNUSED.search(warning)) and match[1]}
    marked = {match[1].encode() for warning in warnings if (match := _SPACES_DIFFER.search(warning))}
    outside = {name for text in _having(unused, (f.data for f in files)) for name in global_variables(text, around)}
    written = {name for text in _having(marked, texts) for name in device_functions(text, around)}
    others = [
        warning
        for warning in warnings
        if not ((match := _UNUSED.search(warning)) and (match[1] or "") in {"", *outside})
        and not ((match := _SPACES_DIFFER.search(warning)) and match[1] not in written)
    ]
    return [] if all(warning.startswith(_REMARK) for warning in others) else others


def _having(names: Collection[bytes], texts: Iterable[bytes]) -> Iterator[bytes]:
    return (text for text in texts if any(name in text for name in names))


class _Trial:
    """Attempts to compile one job, until one succeeds."""

    def __init__(self, job: CompileJob, space: Workspace, instances: Instances, *, as_written: bool = False) -> None:
        self.job, self.space, self.instances, self.as_written = job, space, instances, as_written
        self.image: CompiledImage | None = None
        self.first = b"" if as_written else AS_NVCC

    def shown(self, passed: Mapping[str, PassedOver]) -> Shown:
        """Files as they are passed over, after what nvcc has unasked."""
        ahead = b"" if self.as_written else self.first + prelude(passed.values())
        return Shown({label: found.data for label, found in passed.items()}, ahead)

    def attempt(self, passed: Mapping[str, PassedOver]) -> str | None:
        """Compile files as they are passed over; the log where NVRTC refuses them."""
        shown = self.shown(passed)
        while True:
            try:
                shown = dataclasses.replace(shown, expressions=tuple(self.instances.taken))
                image = compile_shown(self.job, self.space, shown)
                self.image = dataclasses.replace(image, kernels=self.instances.without_twins(image.kernels))
            except RefusalError as error:
                if is_read_after_all(error.log):
                    raise _ReadAfterAllError from None
                if self.first and declares_others(error.log):
                    self.first = b""
                    shown = self.shown(passed)
                    continue
                if not self.instances.refuse(error.log):
                    return error.log
            except UndefinedKernelsError as error:
                if not self.instances.drop(error.expressions, (f.data for f in self.job.unit.closure.files.values())):
                    raise
            else:
                return None

    def attempt_with_fewer_instances(self, passed: Mapping[str, PassedOver], log: str | None) -> None:
        """Compile what there is besides the instances that do not compile; where that is nothing, there is no image."""
        with contextlib.suppress(NoKernelError):
            while log is not None and self.instances.refuse(log, others=True):
                log = self.attempt(passed)
            taken, self.instances.taken = self.instances.taken, self.instances.taken if log is None else []
            if log is not None and taken and self.attempt(passed) is None:
                self.instances.refused.update(dict.fromkeys(taken, "it, or another instance, does not compile"))


def _refused_in_the_end(job: CompileJob, refusal: RefusalError, settled: Settled) -> str:
    """What NVRTC says of the device code, and which headers that code may be asking for."""
    if not settled.log or settled.log == refusal.log:
        return str(refusal)
    gone = {
        name: f"{name} of {label}({passing.line}): {passing.reason}"
        for label, found in settled.files.items()
        for passing in found.passed
        if passing.kind not in ("include", "body", "definition")
        for name in passing.name.split(", ")
    }
    message = refusal_message(job, settled.log, gone)
    missed = dict.fromkeys([*undefined_names(settled.log), *_INCOMPLETE.findall(settled.log)])
    if told := [gone[name] for name in missed if name in gone][:6]:
        message += numbered("\nwhat device code misses there is declared for the host:", told)
    hollow = [
        f"{passing.name} of {label}({passing.line}): {passing.reason}"
        for label, found in settled.files.items()
        for passing in found.passed
        if passing.kind in ("body", "definition") and passing.reason != "host code"
    ]
    if hollow and _UNRESOLVED in settled.log:
        message += numbered("\nbodies of functions for both sides that only the host can run:", hollow[:6])
    absent = {
        passing.name: f"{label}({passing.line})"
        for label, found in settled.files.items()
        for passing in found.passed
        if passing.kind == "include"
    }
    left = [without_comments(found.data).decode("latin-1") for found in settled.files.values()]
    wanted = [*wanted_libraries(absent, left)]
    message += "".join(f"\n{what}" for what in wanted)
    message += "\n(this is what is left once the host code is passed over"
    if absent and not wanted and _NAMES_MISSING.search(settled.log):
        went = [f"<{header}> of {where}" for header, where in absent.items()]
        message += (
            f"; {', '.join(went[:4])} went with it: where device code needs one of them, add the folder that holds "
            "it to include-dirs, or its installed package to include-packages"
        )
    return f"{message})"


_UNRESOLVED = "Unresolved extern function"
_INCOMPLETE = re.compile(r'(?:incomplete type "(?:[\w:]*::)?|has no member (?:class )?")(\w+)')
_NAMES_MISSING = re.compile(r'is undefined|followed by "::"|has no member|not a type name|qualified name')


def _omissions(files: Mapping[str, PassedOver]) -> Iterator[Omission]:
    for label, found in sorted(files.items()):
        for passing in found.passed:
            yield Omission(source=label, line=passing.line, kind=passing.kind, name=passing.name, reason=passing.reason)


_EVIDENCE = ("include", "function", "definition", "body", "macro")


def _is_host_code(found: PassedOver) -> bool:
    """Whether a file has what only host code has. A stray variable may be a slip of the author's."""
    return bool(found.launches) or any(p.kind in _EVIDENCE for p in found.passed)


def _compile_with_prelude(job: CompileJob, space: Workspace, refusal: RefusalError) -> CompiledImage:
    """Compile files as they are written, after the names that nvcc has unasked."""
    ahead = prelude(PassedOver(file.data) for file in job.unit.closure.files.values())
    if not ahead:
        raise CompilationError(str(refusal))
    try:
        image = compile_shown(job, space, Shown({}, AS_NVCC + ahead))
    except RefusalError:
        raise CompilationError(str(refusal)) from None
    return dataclasses.replace(image, warnings=tuple(_with_powers(job, image.warnings)))


_Headers = dict[str, dict[str, list[str]]]
"""Label of each file -> headers, as it spells them -> their labels."""


def _own_headers(unit: Unit) -> _Headers:
    """The headers that are files of the project. Those of libraries of the host in its tree are none of them, unless a
    conditional of another file asks for a macro that they define."""
    found, libraries = _headers(unit)
    files = unit.closure.files
    return _joined(found, libraries) if _asks_for(_files_of(libraries, files), files, files.values()) else found


def _joined(own: _Headers, libraries: _Headers) -> _Headers:
    return {label: {**own.get(label, {}), **libraries.get(label, {})} for label in {**own, **libraries}}


def _headers(unit: Unit) -> tuple[_Headers, _Headers]:
    """The headers that are in the project's tree, without those of libraries of the host, and these."""
    found: _Headers = {}
    libraries: _Headers = {}
    for label, file in unit.closure.files.items():
        for include in file.scan.includes:
            folders = [posixpath.dirname(label), *unit.include_dirs] if include.quoted else unit.include_dirs
            labels = [join_label(folder, include.spelling) for folder in folders]
            if there := [each for each in labels if each is not None and each in unit.closure.files]:
                of_host = HOST_LIBRARIES.fullmatch(posixpath.normpath(include.spelling))
                (libraries if of_host else found).setdefault(label, {})[include.spelling] = there
    return found, libraries


def _files_of(libraries: _Headers, files: Mapping[str, SourceFile]) -> set[str]:
    """The files in the folders of these headers."""
    there = {label for spelled in libraries.values() for labels in spelled.values() for label in labels}
    folders = {posixpath.dirname(label) for label in there}
    return {label for label in files if label in there or posixpath.dirname(label) in folders} if there else set()


_DEFINED = re.compile(rb"^[ \t]*(?:#|%:)[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_ASKED = re.compile(rb"^[ \t]*(?:#|%:)[ \t]*(?:el)?if[^\n]*", re.MULTILINE)


def _asks_for(inside: Collection[str], files: Mapping[str, SourceFile], asking: Iterable[SourceFile]) -> bool:
    """Whether a conditional of `asking` asks for a macro that the files inside of a library define."""
    defined = {name for label in inside for name in _DEFINED.findall(files[label].directives)}
    outside = (file.directives for file in asking if file.label not in inside) if defined else ()
    asked = {word for text in outside for line in _ASKED.findall(text) for word in re.findall(rb"\w+", line)}
    return not asked.isdisjoint(defined)


def refuse_host_code(job: CompileJob, refusal: RefusalError | None = None) -> None:
    """Raise CompilationError with all host code of the project's files where the source has some, or where NVRTC
    refused it and a header has some."""
    unit = job.unit
    own = _own_headers(unit)
    around = _surroundings(unit, own)
    source, *headers = sorted(unit.closure.files, key=lambda label: (label != unit.source, label))
    found = []
    for label in (source, *headers):
        passed = pass_over(unit.closure.files[label].data, around, keep_includes=own.get(label, ()))
        if not label.startswith(f"{INSTALLED}/"):
            found += [f"{label}({passing.line}): {passing.kind} {passing.name}" for passing in passed.passed]
        if not found and refusal is None:
            return
    if found:
        message = numbered(f"{job}: {unit.source} has host code, and host-code is 'error':", found)
        raise CompilationError(message if refusal is None else f"{message}\n{refusal}")
