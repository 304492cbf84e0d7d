# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""From a checked hook table and a project's folder to the modules that it declares."""

from __future__ import annotations

import difflib
import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pathspec import GitIgnoreSpec

from .config import Config, ModuleConfig, check_module_name
from .errors import ConfigurationError, numbered
from .installed import installed_labels, installed_problem
from .manifest import squeeze_name
from .options import LOST_AT_LINK
from .sources import walk_files
from .variants import combinations, image_stem, variant_name

__all__ = ["ModuleSpec", "ShippedPackage", "find_modules", "match_patterns"]


@dataclass(frozen=True, kw_only=True)
class ShippedPackage:
    """An import package of the wheel, and its folder from the project's root."""

    name: str
    folder: str


@dataclass(frozen=True, kw_only=True)
class ModuleSpec:
    """One module as declared: nothing read, nothing compiled yet. Paths are labels from the project's root."""

    package: str
    name: str
    source: str
    linked: tuple[str, ...] = ()
    name_expressions: tuple[str, ...]
    archs: tuple[str, ...]
    include_dirs: tuple[str, ...]
    defines: Mapping[str, str | bool]
    options: Mapping[str, Any]
    toolkit_headers: str
    host_code: str


def find_modules(
    config: Config,
    root: Path,
    packages: Sequence[ShippedPackage],
    *,
    where: str,
    ships_folder: Callable[[str], bool] = lambda folder: True,
) -> list[ModuleSpec]:
    """All modules of a project, sorted by package and name.

    `packages` are those that the wheel ships; `ships_folder` says whether it ships files of a folder inside them.
    `where` is the key path of the hook table. Raises ConfigurationError with every mistake found.
    """
    problems: list[str] = []
    if config.package is not None and config.package not in {package.name for package in packages}:
        names = ", ".join(package.name for package in packages) or "none"
        problems.append(f"{where}.package: the wheel ships no package {config.package!r}; it ships: {names}")
    found: list[tuple[str, ModuleConfig, str]] = []
    spelled_out: set[str] = set()
    for index, module in enumerate(config.modules):
        at = f"{where}.modules[{index}]"
        written = {posixpath.normpath(path): path for path in (module.source, *module.linked)}
        missing = [label for label in written if not (root / label).is_file()]
        for label in missing:
            near = difflib.get_close_matches(label, _all_cu_files(root), n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]}?" if near else "; paths start at the project's root"
            problems.append(f"{at}.source: there is no file {written[label]}{hint}")
        if not missing:
            found.append((posixpath.normpath(module.source), module, f"{at}.name"))
        spelled_out.update(written)
    if config.sources is None:
        labels = _inside(packages, root, ships_folder)
    else:
        labels = match_patterns(config.sources, root, f"{where}.sources", problems, suffix=".cu")
    found.extend(
        (label, ModuleConfig(source=label), f"{where}.sources") for label in labels if label not in spelled_out
    )
    declared = [
        (spec, at)
        for label, module, at in found
        for chosen in combinations(module.variants)
        if (spec := _specify(label, module, chosen, config, packages, where, at, problems))
    ]
    _check_names(declared, where, problems)
    _check_folders(config, root, where, problems)
    if not declared and not problems:
        shipped = ", ".join(package.folder for package in packages) or "no package"
        problems.append(
            f"{where}: nothing to compile; there is no .cu file inside what the wheel ships ({shipped}). "
            "Put one there, or name them with the key sources"
        )
    if problems:
        raise ConfigurationError(numbered("the hook table does not fit the project:", problems))
    return sorted((spec for spec, _ in declared), key=lambda spec: (spec.package, spec.name))


def match_patterns(
    patterns: Iterable[str], root: Path, where: str, problems: list[str], *, suffix: str | None = None
) -> list[str]:
    """Labels of the files that gitignore-style `patterns` select, sorted. A pattern without match is a problem.

    With `suffix`, a folder's pattern selects only files of that suffix; another is taken where a pattern ends with it.
    """
    patterns = list(patterns)
    files = list(walk_files(root))
    if suffix is not None:
        endings = {posixpath.splitext(pattern)[1] for pattern in patterns if not pattern.startswith("!")} - {""}
        files = [label for label in files if label.endswith((suffix, *endings))]
    for pattern in patterns:
        try:
            hit = pattern.startswith("!") or any(True for _ in GitIgnoreSpec.from_lines([pattern]).match_files(files))
        except ValueError as error:
            problems.append(f"{where}: {pattern!r} is no pattern ({error})")
            return []
        if not hit:
            what = "no file" if suffix is None else "no file to compile"
            problems.append(f"{where}: {pattern!r} matches {what}; patterns start at the project's root")
    return sorted(GitIgnoreSpec.from_lines(patterns).match_files(files))


def _label(path: str) -> str:
    return posixpath.normpath(path.replace("\\", "/"))


def _all_cu_files(root: Path) -> list[str]:
    return [label for label in walk_files(root) if label.endswith(".cu")]


def _inside(packages: Sequence[ShippedPackage], root: Path, ships_folder: Callable[[str], bool]) -> list[str]:
    labels: dict[str, None] = {}
    for package in packages:
        for path in walk_files(root / package.folder):
            label = posixpath.join(package.folder, path)
            if path.endswith(".cu") and ships_folder(posixpath.dirname(label)):
                labels[label] = None
    return list(labels)


def _specify(
    label: str,
    module: ModuleConfig,
    chosen: Mapping[str, str | bool],
    config: Config,
    packages: Sequence[ShippedPackage],
    where: str,
    at: str,
    problems: list[str],
) -> ModuleSpec | None:
    holding = [package for package in packages if label.startswith(f"{package.folder}/")]
    holder = max(holding, key=lambda package: len(package.folder), default=None)
    owner = config.package or (holder.name if holder else None)
    if owner is None:
        names = ", ".join(repr(package.name) for package in packages) or "none is shipped"
        problems.append(
            f"{where}.package: {label} lies in no package of the wheel; name the one that gets its kernels ({names})"
        )
        return None
    own = next((package for package in holding if package.name == owner), None)
    inside = label[len(own.folder) + 1 :] if own else label
    name = module.name or posixpath.splitext(inside)[0].replace("/", ".")
    wrong = check_module_name(name)
    if wrong:
        problems.append(f"{at}: {label}: {wrong}; give it a name in [[modules]]")
        return None
    options = {**config.options, **module.options}
    for option in LOST_AT_LINK if options.get("link-time-optimization") else ():
        if option in options:
            problems.append(
                f"{at.removesuffix('.name')}.options: {option} has no effect where link-time-optimization is on; leave "
                "one of them out"
            )
    include_dirs = config.include_dirs if module.include_dirs is None else module.include_dirs
    include_packages = config.include_packages if module.include_packages is None else module.include_packages
    return ModuleSpec(
        package=owner,
        name=variant_name(name, chosen),
        source=label,
        linked=tuple(map(posixpath.normpath, module.linked)),
        name_expressions=tuple(dict.fromkeys(squeeze_name(name) for name in module.name_expressions)),
        archs=config.archs if module.archs is None else module.archs,
        include_dirs=(
            *map(_label, include_dirs),
            *(label for named in include_packages for label in installed_labels(named)),
        ),
        defines={n: v for n, v in {**config.defines, **module.defines, **chosen}.items() if v is not False},
        options=options,
        toolkit_headers=config.toolkit_headers,
        host_code=config.host_code,
    )


def _check_folders(config: Config, root: Path, where: str, problems: list[str]) -> None:
    """Every folder of `include-dirs` and `include-packages` has to be there."""
    written: list[tuple[str, Config | ModuleConfig]] = [(where, config)]
    written += [(f"{where}.modules[{index}]", module) for index, module in enumerate(config.modules)]
    for at, table in written:
        for folder in dict.fromkeys(table.include_dirs or ()):
            if not (root / _label(folder)).is_dir():
                problems.append(f"{at}.include-dirs: there is no folder {folder}; paths start at the project's root")
        for folder in dict.fromkeys(table.include_packages or ()):
            wrong = dict.fromkeys(installed_problem(label, root) for label in installed_labels(folder))
            problems.extend(f"{at}.include-packages: {problem}" for problem in wrong if problem)


def _check_names(declared: Sequence[tuple[ModuleSpec, str]], where: str, problems: list[str]) -> None:
    """Names that differ in case only would be one file on some systems. Each spec comes with its key path."""
    seen: dict[tuple[str, str], tuple[ModuleSpec, str]] = {}
    for spec, at in declared:
        key = (spec.package, image_stem(spec.name).lower())
        if key in seen:
            other, there = seen[key]
            problems.append(
                f"{where}.modules: {other.source} ({there}) and {spec.source} ({at}) are both called {spec.name!r} "
                "(case does not count); give one of them a name in [[modules]]"
            )
        seen[key] = spec, at
