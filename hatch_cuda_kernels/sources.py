# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Source files: read once, scanned for what they could include, closed over their project headers.

A file is known by its label: its path from the project's root with forward slashes. The closure of a source is every
project file that any of its directives could reach, whatever the macros say; the compiler is shown these files and
no other file of the project (see nvrtc.py), so what is outside cannot have an influence that nobody recorded.
Toolkit headers are not project files: a directive that finds nothing in the project is left to the toolkit.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol

from .errors import ConfigurationError
from .installed import find_installed, is_installed, is_of_library, narrowed_installed
from .scanning import ASKED_INDIRECTLY, Include, Scan, directives_of, scan_text, without_comments

__all__ = [
    "Closure",
    "ProjectTree",
    "Scans",
    "SourceFile",
    "Tree",
    "close_over",
    "join_label",
    "known_file",
    "merge_closures",
    "source_text",
    "text_problem",
    "walk_files",
]

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LOOSE_SPLICE = re.compile(rb"\\[ \t\f\v]+(?=\r?\n)")
_MAX_COMPUTED = 8192
_MAX_FILE = 64 << 20
_HEADER_SUFFIXES = tuple(".h .hh .hpp .hxx .h++ .cuh .cu .inl .inc .ipp .tpp .txx .impl .def .ixx".split())
"""What an include whose operand cannot be told may read: other files are never taken, staged or shipped for it."""
_SKIPPED_DIRECTORIES = frozenset({"__pycache__", "node_modules"})
_CALL = re.compile(r"([A-Za-z_]\w*)[ \t]*\([ \t]*([\w./-]+)[ \t]*\)")


@dataclass(frozen=True)
class SourceFile:
    """The text of one file (see source_text), under its label."""

    label: str
    data: bytes = field(repr=False)

    @cached_property
    def sha256(self) -> str:
        """Digest of the bytes, in hex."""
        return hashlib.sha256(self.data).hexdigest()

    @cached_property
    def code(self) -> bytes:
        """The text without its comments."""
        return without_comments(self.data)

    @cached_property
    def directives(self) -> bytes:
        """Its directives, one on each line, without the code between them."""
        return directives_of(self.code)

    @cached_property
    def scan(self) -> Scan:
        """What it could include."""
        return scan_text(self.data)


def source_text(data: bytes) -> bytes:
    """What a compiler is shown of the bytes of a file.

    A UTF-8 byte order mark is dropped: NVRTC refuses it. So is white space between a backslash and the end of its line,
    which GCC, nvcc's preprocessor, joins to the next one all the same and NVRTC does not; where there are raw strings,
    it may be part of one and stays.
    """
    data = data.removeprefix(_BYTE_ORDER_MARK)
    return data if b'R"' in data else _LOOSE_SPLICE.sub(rb"\\", data)


def text_problem(data: bytes) -> str | None:
    """Why NVRTC would misread these bytes in silence, or None."""
    if (offset := data.find(b"\0")) >= 0:
        hint = "; is it UTF-16? Save it as UTF-8" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
        return f"a NUL byte at offset {offset}: the compiler would drop all that follows{hint}"
    if match := re.search(rb"\r(?!\n)", data):
        return (
            f"a carriage return without a line feed at offset {match.start()}: the compiler would read one long line; "
            "save it with LF or CRLF line ends"
        )
    return None


class Tree(Protocol):
    """Where source files come from: a project's folder, or a package that ships its sources."""

    def open(self, label: str) -> SourceFile | None:
        """The file of that label, or None where there is no file (a folder is none)."""

    def files_below(self, label: str) -> Iterator[str]:
        """Labels of all files in that folder and below it."""


class Scans(Protocol):
    """Where scans are remembered between processes; see scans.py."""

    def of(self, file: SourceFile) -> Scan:
        """The scan of a file, which is not made anew where its bytes were scanned before."""


def known_file(label: str, data: bytes, scans: Scans | None) -> SourceFile:
    """A file, with the scan that is remembered of its bytes."""
    file = SourceFile(label, data)
    if scans is not None:
        vars(file)["scan"] = scans.of(file)  # where its cached property keeps it
    return file


class ProjectTree:
    """The files of a project's folder and of installed packages (see installed.py), each read at most once."""

    def __init__(self, root: Path, scans: Scans | None = None) -> None:
        self.root = root
        self._scans = scans
        self._files: dict[str, SourceFile | None] = {}

    def path(self, label: str) -> Path:
        """Where the file of that label lies."""
        return find_installed(label, self.root) if is_installed(label, self.root) else self.root / label

    def open(self, label: str) -> SourceFile | None:
        """See Tree. Raises ConfigurationError for a file that exists and cannot be read as one."""
        if label not in self._files:
            narrowed = narrowed_installed(label, self.root) if is_installed(label, self.root) else None
            data = narrowed or _read_regular(self.path(label), label)
            self._files[label] = None if data is None else known_file(label, source_text(data), self._scans)
        return self._files[label]

    def files_below(self, label: str) -> Iterator[str]:
        """See Tree."""
        for path in walk_files(self.path(label)):
            yield posixpath.normpath(posixpath.join(label, path))


def _read_regular(path: Path, label: str) -> bytes | None:
    """Bytes of a regular file; None where there is none. Never blocks on a FIFO or a device."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        if isinstance(error, IsADirectoryError) or os.path.isdir(path):
            return None
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise ConfigurationError(f"{label}: cannot be read ({reason})") from None
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            return None
        if not stat.S_ISREG(mode):
            raise ConfigurationError(f"{label}: is not a regular file; headers and sources have to be")
        if os.fstat(handle).st_size > _MAX_FILE:
            raise ConfigurationError(f"{label}: has more than {_MAX_FILE >> 20} MiB, which is no source or header")
        with os.fdopen(handle, "rb", closefd=False) as stream:  # fdopen refuses a folder, and leaves it open
            return stream.read()
    except OSError as error:
        raise ConfigurationError(f"{label}: cannot be read ({error.strerror})") from None
    finally:
        os.close(handle)


def walk_files(top: Path) -> Iterator[str]:
    """Paths of all files below `top`, relative, with forward slashes, sorted; hidden folders and symbolic links to
    folders are not entered."""
    for folder, directories, names in os.walk(top):
        directories[:] = sorted(d for d in directories if not d.startswith(".") and d not in _SKIPPED_DIRECTORIES)
        relative = os.path.relpath(folder, top).replace(os.sep, "/")
        for name in sorted(names):
            yield name if relative == "." else f"{relative}/{name}"


def join_label(folder: str, spelling: str) -> str | None:
    """Label of `spelling` seen from `folder`, or None for an absolute path: those are not project files."""
    spelling = spelling.replace("\\", "/") if os.name == "nt" else spelling
    if spelling.startswith("/") or re.match(r"[A-Za-z]:", spelling) or "\0" in spelling:
        return None
    return posixpath.normpath(posixpath.join(folder, spelling))


@dataclass(frozen=True, kw_only=True)
class Closure:
    """A source with every project file that it could include."""

    source: str
    files: Mapping[str, SourceFile]
    external: bool
    """Whether some directive finds no project file, so that toolkit headers have to be at hand."""
    unresolved: tuple[tuple[str, str], ...]
    """(file, header in quotes) for quoted includes that find no project file."""
    ahead: tuple[tuple[str, str | None], ...] = ()
    """Headers to be read before the source, with the label of each that is a project file."""
    computed: Mapping[str, tuple[Include, ...]] = field(default_factory=dict)
    """Label of a file with includes whose operand is a macro -> what they can stand for, where all of that is known."""

    @property
    def own(self) -> Iterator[SourceFile]:
        """The files but for those of libraries that are known by their headers for device code."""
        return (file for label, file in self.files.items() if not is_of_library(label))

    @property
    def names_file(self) -> bool:
        """Whether some file can embed its own path."""
        return any(file.scan.names_file for file in self.files.values())

    @property
    def names_time(self) -> list[str]:
        """Labels of the files that ask for the time of compilation."""
        return sorted(label for label, file in self.files.items() if file.scan.names_time)


def merge_closures(closures: Sequence[Closure]) -> Closure:
    """All files of several sources, as what is linked of them may depend on any; the first one's source."""
    return Closure(
        source=closures[0].source,
        files=dict(sorted((label, file) for closure in closures for label, file in closure.files.items())),
        external=any(closure.external for closure in closures),
        unresolved=tuple(dict.fromkeys(entry for closure in closures for entry in closure.unresolved)),
        ahead=closures[0].ahead,
    )


def close_over(
    tree: Tree,
    source: str,
    include_dirs: Sequence[str],
    *,
    defines: Mapping[str, str | bool] | None = None,
    pre_includes: Iterable[str] = (),
) -> Closure:
    """Close `source` over its headers: for quotes the including file's folder first, then `include_dirs` in order.

    An include whose operand is a macro is resolved where that macro only ever stands for literals, and reads nothing
    where nobody defines it, such as a library's place for plugins; otherwise every header below the search path is
    taken, by its suffix. `pre_includes` are searched from the project's root as well,
    last. Raises ConfigurationError for unreadable files and for too many of them.
    """
    first = tree.open(source)
    if first is None:
        raise ConfigurationError(f"{source}: no such file")
    walk = _Walk(tree, include_dirs, files={source: first})
    ahead = tuple((name, walk.find(name, [posixpath.dirname(source), *include_dirs, "."])) for name in pre_includes)
    while walk.pending:
        file = walk.pending.pop()
        walk.follow((file.label, include) for include in file.scan.includes)
        if not walk.pending:
            walk.follow_computed(defines or {})
    return Closure(
        source=source,
        files=dict(sorted(walk.files.items())),
        external=walk.external,
        unresolved=tuple(walk.unresolved),
        ahead=ahead,
        computed=walk.computed,
    )


class _Walk:
    """The state of one closure: files found, and those of them that were not followed yet."""

    def __init__(self, tree: Tree, include_dirs: Sequence[str], files: dict[str, SourceFile]) -> None:
        self.tree, self.include_dirs, self.files = tree, include_dirs, files
        self.pending = list(files.values())
        self.external = False
        self.unresolved: dict[tuple[str, str], None] = {}
        self.computed: dict[str, tuple[Include, ...]] = {}

    def add(self, label: str) -> bool:
        """Take the file of that label, if there is one."""
        if label in self.files:
            return True
        file = self.tree.open(label)
        if file is None:
            return False
        try:
            label.encode()
        except UnicodeEncodeError:
            raise ConfigurationError(f"{label!r}: the file's name is not UTF-8; rename it") from None
        self.files[label] = file
        self.pending.append(file)
        return True

    def find(self, name: str, folders: Iterable[str]) -> str | None:
        """Take the first file called `name` in `folders`, and return its label; None leaves it to the toolkit."""
        for folder in folders:
            candidate = join_label(folder, name)
            if candidate is not None and self.add(candidate):
                return candidate
        self.external = True
        return None

    def follow(self, includes: Iterable[tuple[str, Include]]) -> None:
        """Find what each include, seen from the file of that label, stands for in the project."""
        for label, include in includes:
            folders = [posixpath.dirname(label), *self.include_dirs] if include.quoted else self.include_dirs
            found = False
            for folder in folders:
                candidate = join_label(folder, include.spelling)
                if candidate is not None and self.add(candidate):
                    found = True
                    if not include.every:
                        break
            if not found or include.every:
                self.external = True
            if not found and include.quoted:
                self.unresolved[(label, include.spelling)] = None

    def follow_computed(self, defines: Mapping[str, str | bool]) -> None:
        """Follow includes whose operand is a macro, now that all other files are known."""
        computed = [(file.label, operand) for file in self.files.values() for operand in file.scan.computed]
        if any("__has_" in str(value) for value in defines.values()):
            computed.append((next(iter(self.files)), ASKED_INDIRECTLY))
        if not computed:
            return
        macros = _Macros(self.files.values(), defines)
        self.computed = {label: () for label, _ in computed}
        untold = set[str]()
        for label, operand in computed:
            literals = macros.literals(operand)
            if literals is None and macros.nowhere(operand):
                literals = []
            if literals is not None:
                self.computed[label] += tuple(literals)
                self.follow((label, literal) for literal in literals)
                continue
            untold.add(label)
            self.external = True
            for folder in sorted({posixpath.dirname(name) for name in self.files} | set(self.include_dirs)):
                for candidate in self.tree.files_below(folder or "."):
                    name = posixpath.basename(candidate)
                    if not name.startswith(".") and name.endswith(_HEADER_SUFFIXES):
                        self.add(candidate)
                    if len(self.files) > _MAX_COMPUTED:
                        raise ConfigurationError(
                            f"{label}: cannot tell what `#include {operand}` may read, and there are more than "
                            f"{_MAX_COMPUTED} files on its search path; define the macro as one quoted name, or "
                            "narrow include-dirs"
                        )
        for label in untold:
            del self.computed[label]


class _Macros:
    """Every body that a macro is given anywhere, and the parameters of function-like ones."""

    def __init__(self, files: Iterable[SourceFile], defines: Mapping[str, str | bool]) -> None:
        self.objects: dict[str, set[str]] = {
            name: {"1" if value is True else str(value)} for name, value in defines.items()
        }
        self.functions: dict[str, set[tuple[str, str]]] = {}
        for file in files:
            for name, body in file.scan.objects:
                self.objects.setdefault(name, set()).add(body)
            for name, parameters, body in file.scan.functions:
                self.functions.setdefault(name, set()).add((parameters, body))

    def nowhere(self, operand: str) -> bool:
        """Whether an operand is a macro that nothing defines: none of the files, nor the command line, a compiler or
        CUDA's own headers."""
        plain = re.fullmatch(r"(?!__|_[A-Z]|CUB_|CUDA|CCCL_|LIBCUDACXX_|NV|THRUST_)[A-Za-z_]\w*", operand)
        return plain is not None and operand not in self.objects and operand not in self.functions

    def literals(self, operand: str, depth: int = 0) -> list[Include] | None:
        """All header names that `operand` can stand for, or None where that cannot be told."""
        literal = re.fullmatch(r'<([^>]+)>|"([^"]+)"', operand)
        if literal:
            return [Include(literal[1] or literal[2], literal[1] is None)]
        call = _CALL.fullmatch(operand)
        bodies = self._called(call[1], call[2]) if call else self.objects.get(operand, set())
        found: list[Include] = []
        for body in sorted(bodies) if depth <= 8 else ():
            names = self.literals(body, depth + 1)
            if names is None:
                return None
            found.extend(names)
        return found or None

    def _called(self, name: str, argument: str) -> set[str]:
        """What `name(argument)` can stand for; nothing where more than putting the argument in place is needed."""
        bodies = set()
        for parameters, body in self.functions.get(name, ()) if name not in self.objects else ():
            if not re.fullmatch(r"[A-Za-z_]\w*", parameters) or set(body) & set("#\"'"):
                return set()
            text = re.sub(rf"\b{parameters}\b", argument, body)
            if any(word in self.objects or word in self.functions for word in re.findall(r"[A-Za-z_]\w*", text)):
                return set()
            bodies.add(text)
        return bodies
