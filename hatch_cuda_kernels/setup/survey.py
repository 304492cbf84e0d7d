# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What a project's files tell about its kernels, before there is a hook table: all of it read, nothing run.

Everything here is a guess that an author can check, made from the text of sources and headers.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

from ..errors import ConfigurationError
from ..libraries import LIBRARIES, used_libraries
from ..scanning import Include, scan_text, without_comments
from ..sources import ProjectTree, SourceFile, join_label, walk_files
from ..standins import standins
from .templates import Kernel, defines_kernel_macro, find_instances, find_kernels

__all__ = ["Source", "Template", "survey_sources", "tree_files"]

_SKIPPED = frozenset({"build", "dist", "site-packages", "venv"})
_NOT_SHIPPED = frozenset(
    "bench benchmark benchmarks demo demos doc docs example examples extern external script scripts submodules test "
    "testing tests third_party third-party thirdparty tools vendor".split()
)
_HEADERS = (".h", ".hh", ".hpp", ".cuh", ".inl", ".inc", ".ipp")
_TEXTS = (".py", ".cu", ".cpp", ".cc", ".cxx", ".c", *_HEADERS)
_LARGEST = 1 << 20
"""Files beyond that are data: only what a source includes is read whatever its size."""
_HOST = re.compile(rb"<<<|\bint\s+main\s*\(|#\s*include\s*<(?:iostream|vector|string|torch/|pybind11/)")


@dataclass(frozen=True, kw_only=True)
class Template:
    """A kernel template as a source sees it."""

    name: str
    instances: tuple[str, ...]
    """Instances that the project names anywhere."""
    used: bool
    """Whether the source itself, or a header of it, names an instance of some kind: host code that launches it."""
    guess: str | None
    """An instance for its parameters; None where there is nothing to guess from."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """One `.cu` file that could be compiled."""

    label: str
    has_kernels: bool
    own: bool
    """Whether it looks like the project's own code, not like a test, an example or somebody else's."""
    plain_kernels: bool
    """Whether it has kernels that are no templates."""
    host_code: bool
    templates: tuple[Template, ...]
    """Those of its kernels that are templates; none where the build compiles all instances unasked."""
    libraries: tuple[str, ...]
    """Packages whose headers its device code needs, of those that are known (see libraries.py)."""


def tree_files(root: Path) -> list[str]:
    """Labels of the project's files: what the root's `.gitignore` names, virtual environments and builds left out."""
    try:
        ignored = GitIgnoreSpec.from_lines((root / ".gitignore").read_text("utf-8", "replace").splitlines())
    except (OSError, ValueError):
        ignored = GitIgnoreSpec([])
    found = [label for label in walk_files(root) if _encodable(label) and not ignored.match_file(label)]
    environments = {posixpath.dirname(label) for label in found if posixpath.basename(label) == "pyvenv.cfg"}
    return [
        label
        for label in found
        if not _SKIPPED & set(label.split("/")[:-1])
        and not any(label.startswith(f"{folder}/") for folder in environments if folder)
    ]


def _encodable(label: str) -> bool:
    return label.encode("utf-8", "replace").decode() == label


def survey_sources(root: Path, files: Sequence[str]) -> tuple[list[Source], list[str]]:
    """The `.cu` files among `files`, and the include dirs that their includes need, in the order of a search."""
    survey = _Survey(root, files)
    reads = {label: survey.reads(label) for label in files if label.endswith(".cu")}
    instances = survey.instances()
    return [survey.source(label, found, instances) for label, found in reads.items()], list(survey.folders)


class _Survey:
    """What is known of a project's files so far. Each file is read and understood once."""

    def __init__(self, root: Path, files: Sequence[str]) -> None:
        self.root, self.files = root, files
        self.folders: dict[str, None] = {}
        self._tree = ProjectTree(root)
        self._includes: dict[str, list[str]] = {}
        self._kernels: dict[str, list[Kernel]] = {}
        self._mentions: dict[str, dict[str, set[str]]] = {}
        self._headers: dict[str, list[str]] = {}
        for label in files:
            if label.endswith(_HEADERS) or "." not in posixpath.basename(label):
                self._headers.setdefault(posixpath.basename(label), []).append(label)

    def _open(self, label: str) -> SourceFile | None:
        try:
            return self._tree.open(label)
        except ConfigurationError:  # unreadable, or no regular file: a build says so where it matters
            return None

    # -- headers -------------------------------------------------------------------------------------------------

    def reads(self, source: str) -> list[str]:
        """A source and the headers of the project that it reads, one through another."""
        found, pending = {source: None}, [source]
        while pending:
            for label in self._includes_of(pending.pop()):
                if label not in found:
                    found[label] = None
                    pending.append(label)
        return list(found)

    def _includes_of(self, label: str) -> list[str]:
        if label not in self._includes:
            file = self._open(label)
            includes = file.scan.includes if file else ()
            found = (self._resolve(label, include) or self._search(label, include) for include in includes)
            self._includes[label] = [header for header in found if header]
        return self._includes[label]

    def _resolve(self, label: str, include: Include) -> str | None:
        near = [posixpath.dirname(label)] if include.quoted else []
        for folder in [*near, *self.folders]:
            candidate = join_label(folder, include.spelling)
            if candidate and not candidate.startswith("../") and self._open(candidate):
                return candidate
        return None

    def _search(self, label: str, include: Include) -> str | None:
        """The header of the project that an include can mean; its folder joins those that are searched."""
        spelling = include.spelling
        if ".." in spelling.split("/") or (not include.quoted and (spelling in standins() or "." not in spelling)):
            return None
        found = [
            candidate
            for candidate in self._headers.get(posixpath.basename(spelling), ())
            if candidate == spelling or candidate.endswith(f"/{spelling}")
        ]
        if not found:
            return None
        prefixes = {candidate: candidate[: -len(spelling)].rstrip("/") or "." for candidate in found}

        def likeness(candidate: str) -> tuple[bool, bool, int, str]:
            prefix = prefixes[candidate]
            named = posixpath.basename(prefix) in ("include", "inc")
            return (label.split("/")[0] != candidate.split("/")[0], not named, prefix.count("/"), candidate)

        best = min(found, key=likeness)
        self.folders[prefixes[best]] = None
        return best

    # -- kernels -------------------------------------------------------------------------------------------------

    def _kernels_of(self, label: str) -> list[Kernel]:
        if label not in self._kernels:
            file = self._open(label)
            self._kernels[label] = list(find_kernels(file.data)) if file else []
        return self._kernels[label]

    def instances(self) -> dict[str, set[str]]:
        """Name of each template in what the sources read -> its instances that the project names anywhere."""
        kernels = {kernel.name: kernel for label in self._includes for kernel in self._kernels_of(label)}
        found: dict[str, set[str]] = {name: set() for name in kernels}
        for label, text in self._texts():
            self._mentions[label] = find_instances(text, kernels.values())
            for name, instances in self._mentions[label].items():
                found[name] |= instances
        return found

    def _texts(self) -> Iterator[tuple[str, str]]:
        """Files that may name an instance: launches, calls, lists of name expressions."""
        for label in self.files:
            if not label.endswith(_TEXTS):
                continue
            try:
                size = (self.root / label).stat().st_size
            except OSError:  # a link that leads nowhere
                continue
            if (label in self._includes or size <= _LARGEST) and (file := self._open(label)):
                text = file.data if label.endswith(".py") else without_comments(file.data)
                yield label, text.decode("utf-8", "replace")

    def source(self, label: str, reads: Sequence[str], instances: dict[str, set[str]]) -> Source:
        """All that is known of a source that reads these files."""
        kernels = {kernel.name: kernel for name in reads for kernel in self._kernels_of(name)}
        plain = any(kernel.parameters is None for kernel in kernels.values())
        own = {kernel.name for kernel in self._kernels_of(label)}
        opened = [file for name in reads if (file := self._open(name))]
        host_code = any(_HOST.search(file.data) for file in opened[:1])
        texts = {file.label: file.data for file in opened}
        asked = _asked_by_host_code(texts) if host_code else {}
        templates, unasked = [], False
        for kernel in kernels.values():
            if kernel.parameters is not None and (kernel.name in own or not plain):
                given = asked.get(kernel.name, {})
                named = {instance.replace(" ", ""): instance for instance in instances[kernel.name]}
                unasked |= not given or bool(named.keys() - given.keys())
                templates.append(
                    Template(
                        name=kernel.name,
                        instances=tuple(sorted({**named, **given}.values())),
                        used=any(kernel.name in self._mentions.get(name, ()) for name in reads),
                        guess=kernel.guess,
                    )
                )
        return Source(
            label=label,
            has_kernels=bool(kernels) or any(defines_kernel_macro(file.data) for file in opened),
            own=not _NOT_SHIPPED & set(label.split("/")[:-1]),
            plain_kernels=plain,
            host_code=host_code,
            templates=tuple(templates) if unasked else (),
            libraries=tuple(_used_libraries(texts, asked)),
        )


def _used_libraries(texts: Mapping[str, bytes], asked: Mapping[str, Iterable[str]]) -> Iterable[str]:
    """Packages of libraries that a file includes, and that device code names, or the instances that it asks for."""
    includes = {include.spelling for text in texts.values() for include in scan_text(text).includes}
    if not any(library.own.fullmatch(name) for library in LIBRARIES.values() for name in includes):
        return ()
    from ..hostcode import Surroundings, pass_over

    around = Surroundings.of(texts.values())
    left = [without_comments(pass_over(text, around).data).decode("utf-8", "replace") for text in texts.values()]
    return used_libraries(includes, [*left, *(instance for each in asked.values() for instance in each)])


def _asked_by_host_code(texts: Mapping[str, bytes]) -> dict[str, dict[str, str]]:
    """Kernel template -> the instances that a build compiles unasked: without white space -> as they are listed."""
    from ..hostcode import Surroundings, mentions

    found: dict[str, dict[str, str]] = {}
    for mention in mentions(texts, Surroundings.of(texts.values())):
        for text in mention.expressions:
            found.setdefault(text.partition("<")[0], {})[text.replace(" ", "")] = text
    return found
