# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Compile jobs as values: everything that decides an image's bytes, and nothing else.

A job can run in this process, in a worker or on another machine, and its keys are digests of its content: labels
and bytes, never an absolute path.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Protocol

from ._version import __version__
from .arch import Architecture
from .manifest import Omission, Resources, compact_json
from .sources import Closure, Tree, close_over, merge_closures
from .standins import standins_digest

__all__ = [
    "PASSING_VERSION",
    "CompileJob",
    "CompiledImage",
    "Declared",
    "ImageFacts",
    "PlacedImage",
    "Reads",
    "Unit",
    "make_unit",
]

PASSING_VERSION = 71
"""Version of what the package `hostcode` makes of a text. Here, so that a key is made without that package."""
_WIDE_INTEGERS = re.compile(rb"\b__u?int128(?:_t)?\b")


@dataclass(frozen=True, kw_only=True, eq=False)
class Unit:
    """A module's sources with its options: what the jobs of all architectures have in common."""

    package: str
    module: str
    closure: Closure
    include_dirs: tuple[str, ...]
    options: Mapping[str, Any]
    defines: Mapping[str, str | bool]
    name_expressions: tuple[str, ...]
    toolkit_headers: str
    host_code: str
    parts: tuple[Unit, ...] = ()
    """The translation units that are linked to the image, where there are several. `closure` is then all of theirs."""
    relocatable: bool = False
    """Whether this is one of those."""

    @property
    def source(self) -> str:
        """Label of the source."""
        return self.closure.source

    @property
    def labelled(self) -> bool:
        """Whether the image may embed paths, so that the compiler has to be shown logical ones."""
        return self.shows_folder or self.closure.names_file

    @property
    def shows_folder(self) -> bool:
        """Whether it may embed the folder that it is compiled in, and not only the names of files."""
        return bool(self.options.get("lineinfo") or self.options.get("debug") or self.optimized_later)

    @property
    def optimized_later(self) -> bool:
        """Whether this is compiled to LTO-IR, which does not show the paths that it embeds."""
        return self.relocatable and bool(self.options.get("link-time-optimization"))

    @cached_property
    def content(self) -> bytes:
        """Digest of what the jobs of this unit share: names of the files at hand, options, macros."""
        value = {
            "source": self.source,
            "files": sorted(self.closure.files),
            "external": self.closure.external,
            "include_dirs": list(self.include_dirs),
            "options": dict(self.options),
            "defines": dict(self.defines),
            "name_expressions": list(self.name_expressions),
            "toolkit_headers": self.toolkit_headers,
            "standins": standins_digest(),
            "host_code": self.host_code,
            "passing_over": PASSING_VERSION,
            "parts": [part.content.hex() for part in self.parts],
        }
        return hashlib.sha256(compact_json(value)).digest()


class Declared(Protocol):
    """A module as the hook table or a manifest declares it; paths are labels (see sources.py)."""

    @property
    def name(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def linked(self) -> tuple[str, ...]: ...
    @property
    def include_dirs(self) -> tuple[str, ...]: ...
    @property
    def options(self) -> Mapping[str, Any]: ...
    @property
    def defines(self) -> Mapping[str, str | bool]: ...
    @property
    def name_expressions(self) -> tuple[str, ...]: ...
    @property
    def toolkit_headers(self) -> str: ...
    @property
    def host_code(self) -> str: ...


def make_unit(tree: Tree, package: str, declared: Declared) -> Unit:
    """Read a module's sources and close them over their headers. Raises ConfigurationError for unreadable files."""
    pre_include = declared.options.get("pre-include", [])
    closures = [
        close_over(
            tree,
            source,
            declared.include_dirs,
            defines=declared.defines,
            pre_includes=[pre_include] if isinstance(pre_include, str) else pre_include,
        )
        for source in (declared.source, *declared.linked)
    ]
    whole = Unit(
        package=package,
        module=declared.name,
        closure=closures[0],
        include_dirs=declared.include_dirs,
        options=_with_wide_integers(declared.options, closures),
        defines=declared.defines,
        name_expressions=declared.name_expressions,
        toolkit_headers=declared.toolkit_headers,
        host_code=declared.host_code,
    )
    if not declared.linked:
        return whole
    parts = [dataclasses.replace(whole, closure=closure, relocatable=True) for closure in closures]
    parts[1:] = [dataclasses.replace(part, name_expressions=()) for part in parts[1:]]
    return dataclasses.replace(whole, closure=merge_closures(closures), parts=tuple(parts))


def _with_wide_integers(options: Mapping[str, Any], closures: Iterable[Closure]) -> Mapping[str, Any]:
    """Options by which files that name integers of 128 bits have them, as with nvcc for Linux unasked."""
    if sys.platform == "win32" or "device-int128" in options:
        return options
    named = any(_WIDE_INTEGERS.search(file.data) for closure in closures for file in closure.own)
    return {**options, "device-int128": True} if named else options


@dataclass(frozen=True, kw_only=True, eq=False)
class CompileJob:
    """One module for one architecture, by one NVRTC release."""

    unit: Unit
    architecture: Architecture
    release: str
    linker: str = ""
    """What links the image: the full release of nvJitLink; empty where nothing is linked."""

    def __str__(self) -> str:
        return f"{self.unit.module} for {self.architecture}"

    @cached_property
    def key(self) -> str:
        """In hex: all that is known before it is known which headers are read."""
        return _digest(
            "job",
            __version__.encode(),
            self.release.encode(),
            self.linker.encode(),
            str(self.architecture).encode(),
            self.unit.content,
            self.unit.closure.files[self.unit.source].sha256.encode(),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Reads:
    """What one compile read, by content: a later compile that would read the same gives the same image."""

    files: Mapping[str, str]
    """Label of each project file that was read -> its SHA-256 in hex."""
    installed: Mapping[str, str] = field(default_factory=dict)
    """Toolkit headers that came from installed wheels, as `#include` names them -> SHA-256 in hex."""
    missing: tuple[str, ...] = ()
    """Headers that a read project file asks for and that neither project nor toolkit has."""
    told: bool = field(default=True, compare=False)
    """Whether the compiler said what it read; else this is all that it could have."""

    def to_dict(self) -> dict[str, Any]:
        """As a cache record has it."""
        return {"files": dict(self.files), "installed": dict(self.installed), "missing": list(self.missing)}


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageFacts:
    """Everything that is told about an image."""

    architecture: Architecture
    release: str
    kernels: Mapping[str, str]
    """Name as asked for -> lowered name."""
    entries: Mapping[str, Resources | None]
    reads: Reads
    warnings: tuple[str, ...]
    seconds: float
    memory: int = 0
    """Most bytes of memory that the compile had; 0 where that is not known, as for an image out of a cache."""
    passed_over: tuple[Omission, ...] = ()
    """The host code that was passed over; empty where the source was compiled as written."""


@dataclass(frozen=True, kw_only=True)
class CompiledImage(ImageFacts):
    """What a compile gives: the image and everything that is told about it."""

    data: bytes = field(repr=False)

    @cached_property
    def sha256(self) -> str:
        """Digest of the image, in hex."""
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacedImage(ImageFacts):
    """An image of a build whose bytes are where they belong: a build keeps this of each, and the bytes of none."""

    size: int
    sha256: str

    @classmethod
    def of(cls, image: CompiledImage) -> PlacedImage:
        """What is kept of an image."""
        facts = {each.name: getattr(image, each.name) for each in fields(ImageFacts)}
        return cls(**facts, size=len(image.data), sha256=image.sha256)


def _digest(label: str, *parts: bytes) -> str:
    """SHA-256 over parts with their lengths, so that no two lists of parts look alike."""
    state = hashlib.sha256(f"hatch-cuda-kernels {label}\0".encode())
    for part in parts:
        state.update(len(part).to_bytes(8, "big") + part)
    return state.hexdigest()
