# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The first hook table of a project, proposed from what its files tell. What is there already stays as it is."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..config import HOOK
from ..display import print_json
from ..errors import ConfigurationError
from .hints import python_with_cuda, read_hints
from .hooktable import HookTable, comment, quote
from .layout import guess_layout
from .survey import Source, survey_sources, tree_files
from .tomlfile import TomlFile, sub_table

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["Proposal", "propose", "run"]

_BUILD_SYSTEM = '[build-system]\nrequires = ["hatchling", "hatch-cuda-kernels"{}]\nbuild-backend = "hatchling.build"\n'


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """What a file would get, and what its author has to do besides."""

    file: TomlFile
    addition: str
    notes: tuple[str, ...]

    def write(self) -> None:
        """Put it into the file."""
        self.file.write(self.file.with_addition(self.addition))


def run(*, folder: str, dry_run: bool, as_json: bool) -> int:
    """Write the hook table of a project, or print it."""
    proposal = propose(folder)
    if not dry_run:
        proposal.write()
    if as_json:
        value = {"file": str(proposal.file.path), "written": not dry_run, "addition": proposal.addition}
        print_json({"schema": 1, **value, "notes": list(proposal.notes)})
        return 0
    print(proposal.addition if dry_run else f"{proposal.file.path}: wrote\n\n{proposal.addition}")
    for note in proposal.notes:
        print(f"To do: {note}", file=sys.stderr)
    return 0


def propose(folder: str | os.PathLike[str], environ: Mapping[str, str] = os.environ) -> Proposal:
    """Look at a project and propose its hook table. Raises ConfigurationError where there is nothing to propose."""
    root = Path(folder)
    if not root.is_dir():
        raise ConfigurationError(f"{root}: no such folder; name the one that has, or is to have, pyproject.toml")
    files = tree_files(root)
    pyproject, hatch = TomlFile.read(root / "pyproject.toml"), TomlFile.read(root / "hatch.toml")
    target, prefix = (hatch, "build") if "build" in hatch.values else (pyproject, "tool.hatch.build")
    build = sub_table(target.values, prefix)
    _refuse_second(target, build, prefix)
    sources, include_dirs = survey_sources(root, files)
    first = HookTable(prefix, guess_layout({}, build, files), build, sources)
    missing = _missing_tables(pyproject, root, first)
    layout = guess_layout(sub_table({**tomllib.loads(missing), **pyproject.values}, "project"), build, files)
    table = HookTable(prefix, layout, build, sources)
    strings = python_with_cuda(root, files)
    if not table.chosen:
        raise ConfigurationError(_nothing_to_compile(root, sources, strings))
    if not layout.packages:
        raise ConfigurationError(
            f"{root} has no import package, and a wheel's kernels belong to one; make a folder with an __init__.py, "
            "such as my_app/, put the .cu files into it and run this again"
        )
    addition = table.render(include_dirs, read_hints(root, files, environ))
    notes = [*_notes(pyproject, files, strings, list(table.libraries))]
    if missing:
        if target is pyproject:
            addition = f"{missing}\n{addition}"
        else:
            notes.append(f"{pyproject.path} lacks:\n\n{missing}")
    target.with_addition(addition)
    return Proposal(file=target, addition=addition, notes=tuple(notes))


def _refuse_second(target: TomlFile, build: Mapping[str, Any], prefix: str) -> None:
    for path in ("hooks", "targets.wheel.hooks"):
        if HOOK in sub_table(build, path):
            raise ConfigurationError(
                f"{target.path} has a table [{prefix}.{path}.{HOOK}] already, and it stays as it is; remove it to "
                "begin anew"
            )


def _build_system(libraries: Iterable[str]) -> str:
    return _BUILD_SYSTEM.format("".join(f', "{package}"' for package in libraries))


def _missing_tables(pyproject: TomlFile, root: Path, table: HookTable) -> str:
    """`[build-system]` and `[project]`, where there is none."""
    tables = []
    if "build-system" not in pyproject.values:
        tables.append(_build_system(table.libraries))
    if "project" not in pyproject.values:
        name, version, source = _name_and_version(root, [package.name for package in table.layout.packages])
        tables.append(
            comment(f"Guessed from {source}.")
            + f'[project]\nname = {quote(name)}\nversion = {quote(version)}\nrequires-python = ">=3.10"\n'
            + 'dependencies = ["hatch-cuda-kernels[cu13]"]\n'
        )
    return "\n".join(tables)


def _name_and_version(root: Path, packages: Sequence[str]) -> tuple[str, str, str]:
    """What a project without `[project]` is called, and what told it."""
    try:
        setup = (root / "setup.py").read_text("utf-8", "replace")
    except OSError:
        setup = ""
    version = re.search(r"""\bversion\s*=\s*["'](\d[\w.+-]*)["']""", setup)
    named = re.search(r"""\bname\s*=\s*["']([A-Za-z0-9][\w.-]*[A-Za-z0-9])["']""", setup)
    shown = version[1] if version else "0.1.0"
    if named:
        return named[1], shown, "setup.py"
    folder = re.sub(r"[^A-Za-z0-9._-]+", "-", root.resolve().name).strip("-._") or "my-app"
    if len(packages) == 1 and re.sub(r"[-_.]+", "_", folder).lower() != packages[0]:
        return packages[0].replace(".", "-"), shown, "the package's name"
    return folder, shown, "the folder's name"


def _nothing_to_compile(root: Path, sources: Sequence[Source], strings: Sequence[str]) -> str:
    if foreign := [source.label for source in sources if source.has_kernels]:
        return (
            f"the .cu files of {root} with kernels lie in no package, and look like tests, examples or the code of "
            f"others: {', '.join(foreign)}; put into a package what is to be shipped, or name it with the key sources"
        )
    if sources:
        text = f"no .cu file of {root} has a kernel (__global__): {', '.join(source.label for source in sources)}"
    else:
        text = f"{root} has no .cu file"
    if strings:
        return f"{text}; these hold CUDA source as a string, move it into .cu files first: {', '.join(strings)}"
    return f"{text}; write one, such as my_app/saxpy.cu, and run this again"


def _notes(
    pyproject: TomlFile, files: Sequence[str], strings: Sequence[str], libraries: Sequence[str]
) -> Iterable[str]:
    """What this leaves to the author."""
    system = pyproject.values.get("build-system")
    if system is None and "setup.py" in files:
        yield "setup.py: with a [build-system] for hatchling, pip no longer runs it; move what it says into [project]"
    if isinstance(system, dict):
        backend = system.get("build-backend", "setuptools")
        names = {_distribution(text) for text in system.get("requires", [])}
        if backend != "hatchling.build":
            yield (
                f"[build-system]: the build backend is {backend}, and the hook runs in hatchling. It stays as it is; "
                f"where nothing else needs that backend, write:\n\n{_build_system(libraries)}"
            )
        elif lacking := [name for name in ("hatch-cuda-kernels", *libraries) if name not in names]:
            yield f"[build-system]: add {', '.join(map(quote, lacking))} to requires; it was left as it is"
    project = pyproject.values.get("project")
    if isinstance(project, dict):
        if "hatch-cuda-kernels" not in {_distribution(text) for text in project.get("dependencies", [])}:
            yield '[project]: add "hatch-cuda-kernels[cu13]" to dependencies, for load_kernel on the machines of users'
        if "requires-python" not in project:
            yield '[project]: add requires-python = ">=3.10"; without it the wheel is tagged for Python 2 as well'
    if strings:
        yield f"CUDA source in Python strings is not compiled ahead; move it into .cu files: {', '.join(strings)}"


def _distribution(requirement: object) -> str:
    """The normalised name that a requirement begins with."""
    match = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", str(requirement).strip())
    return re.sub(r"[-_.]+", "-", match[0]).lower() if match else ""
