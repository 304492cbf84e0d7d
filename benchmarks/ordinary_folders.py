# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The `.cu` files of a folder that is taken for a project, and what its author's build would say of each.

Where includes lead is found by looking. What no look can tell, the author's own build or run-time compile does; it is
written down in a TOML file, one table for each folder:

    [nbody]
    style = "run-time"                   # a word to group folders by
    sources = ["kernels/*.cu"]           # gitignore-style; every .cu unless given
    include-dirs = ["include"]           # before those that are found
    include-packages = ["cutlass_library/source/include"]
    defines = { REAL = "float" }
    options = { std = "c++20" }
    archs = ["sm_90a"]                   # in place of those of the command line
    name-expressions = ["step<float>"]

    [[nbody.files]]                      # more for some of them
    match = ["kernels/pairs_*.cu"]
    defines = { CUTOFF = true }
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import posixpath
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pathspec import GitIgnoreSpec

from hatch_cuda_kernels.hostcode.names import HOST_HEADERS
from hatch_cuda_kernels.installed import installed_labels
from hatch_cuda_kernels.modules import ModuleSpec
from hatch_cuda_kernels.scanning import scan_text
from hatch_cuda_kernels.standins import standins
from hatch_cuda_kernels.toolkit import installed_roots

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["Folder", "Settings", "read_settings"]

_COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)
_HEADERS = re.compile(r"\.(?:cuh?|hh?|hpp|hxx|inl|inc|ipp|tpp|def)\Z|\A\w+\Z")


@dataclass(frozen=True)
class Settings:
    """What a build would say of a file; keys as in the TOML file."""

    style: str = ""
    sources: tuple[str, ...] = ("*.cu",)
    include_dirs: tuple[str, ...] = ()
    include_packages: tuple[str, ...] = ()
    defines: Mapping[str, str | bool] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    archs: tuple[str, ...] = ()
    name_expressions: tuple[str, ...] = ()
    files: tuple[Mapping[str, Any], ...] = ()

    def with_more(self, table: Mapping[str, Any]) -> Settings:
        """These with those of a table: tables are extended, lists and words replaced."""
        given = {key.replace("-", "_"): value for key, value in table.items() if key != "match"}
        known = {each.name for each in dataclasses.fields(self)}
        if unknown := given.keys() - known:
            raise SystemExit(
                f"the settings have no key {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}"
            )
        for key, value in given.items():
            before = getattr(self, key)
            given[key] = {**before, **value} if isinstance(before, Mapping) else value
            if isinstance(value, list):
                given[key] = tuple(value)
        return dataclasses.replace(self, **given)

    def of(self, source: str) -> Settings:
        """Those of one file."""
        found = self
        for table in self.files:
            if GitIgnoreSpec.from_lines(table["match"]).match_file(source):
                found = found.with_more(table)
        return found


def read_settings(path: Path | None) -> dict[str, Settings]:
    """Name of a folder -> its settings."""
    tables = tomllib.loads(path.read_text(encoding="utf-8")) if path else {}
    return {name: Settings().with_more(table) for name, table in tables.items()}


class Folder:
    """The files of one project, and where its includes lead."""

    def __init__(self, root: Path, settings: Settings) -> None:
        self.root, self.settings = root, settings
        self.by_name: dict[str, list[str]] = {}
        self.sources: list[str] = []
        wanted = GitIgnoreSpec.from_lines(settings.sources)
        for folder, _, names in os.walk(root):
            for name in sorted(names):
                label = Path(folder, name).relative_to(root).as_posix()
                if not Path(folder, name).is_file():
                    continue  # a link that leads nowhere
                if _HEADERS.search(name):
                    self.by_name.setdefault(name, []).append(label)
                if wanted.match_file(label) and b"__global__" in _COMMENT.sub(b" ", Path(folder, name).read_bytes()):
                    self.sources.append(label)
        parts = self._parts()
        self.sources = sorted(label for label in self.sources if posixpath.basename(label) not in parts)

    def _parts(self) -> set[str]:
        """Names of the `.cu` files that other files include."""
        found = set()
        for labels in self.by_name.values():
            for label in labels:
                for include in scan_text(self.root.joinpath(label).read_bytes()).includes:
                    if include.spelling.endswith(".cu"):
                        found.add(posixpath.basename(include.spelling))
        return found

    def some(self, most: int | None) -> list[str]:
        """At most that many of the sources, evenly spaced."""
        count = len(self.sources)
        if most is None or count <= most:
            return self.sources
        return [self.sources[index * count // most] for index in range(most)]

    def spec(self, source: str, std: str | None) -> ModuleSpec:
        """The module that a hook table would declare for a source."""
        settings = self.settings.of(source)
        packages = [label for name in settings.include_packages for label in installed_labels(name)]
        return ModuleSpec(
            package="files",
            name=posixpath.splitext(source)[0].replace("/", "."),
            source=source,
            include_dirs=(*self._include_dirs(source, settings.include_dirs), *packages),
            options={**({"std": std} if std else {}), **settings.options},
            defines=settings.defines,
            name_expressions=settings.name_expressions,
            archs=settings.archs,
            toolkit_headers="auto",
            host_code="skip",
        )

    def _include_dirs(self, source: str, given: tuple[str, ...]) -> list[str]:
        """The folders from which includes of a source are found; for a name found in several, the nearest."""
        found: dict[str, None] = dict.fromkeys(given)
        seen, pending = {source}, [source]
        for label in pending:
            for include in scan_text(self.root.joinpath(label).read_bytes()).includes:
                target = self._target(include.spelling, include.quoted, label, found)
                if target is not None and target not in seen:
                    seen.add(target)
                    pending.append(target)
        return list(found)

    def _target(self, spelling: str, quoted: bool, label: str, dirs: dict[str, None]) -> str | None:
        if not quoted and (spelling in standins() or HOST_HEADERS.fullmatch(spelling)):
            return None  # the standard's, though the tree may have a file of that name
        known = self.by_name.get(posixpath.basename(spelling), [])
        here = [posixpath.dirname(label)] if quoted else []
        for folder in (*here, *dirs):
            if (joined := posixpath.normpath(posixpath.join(folder, spelling))) in known:
                return joined
        if any(Path(root.path, spelling).is_file() for root in installed_roots()):
            return None  # the toolkit's, for the same reason
        fits = [name for name in known if name == spelling or name.endswith(f"/{spelling}")]
        fits = [name for name in fits if name != label]  # a header of the same name as the one that it includes
        if not fits or ".." in spelling:
            return None
        nearest = max(fits, key=lambda name: (_shared(name, label), -len(name)))
        dirs[nearest[: -len(spelling)].rstrip("/") or "."] = None
        return nearest


def _shared(one: str, other: str) -> int:
    """How many leading folders two labels have in common."""
    pairs = zip(one.split("/"), other.split("/"), strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
