# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""From compiled images to what a package gets beside them: its manifest, and the sources that its fallback compiles."""

from __future__ import annotations

import dataclasses
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from .config import Config
from .errors import ConfigurationError, ManifestError, numbered
from .manifest import (
    DIRECTORY,
    SOURCE_DIRECTORY,
    Fallback,
    Image,
    Manifest,
    Module,
    ShippedFile,
    check_relative_path,
)
from .modules import ModuleSpec, match_patterns
from .plan import CompileJob, PlacedImage, Unit
from .sbom import Origin
from .sources import ProjectTree, SourceFile
from .toolchain import Toolchain
from .variants import image_stem

__all__ = ["assemble", "image_file", "origins_of", "shipped_files"]


def shipped_files(config: Config, root: Path, units: Sequence[Unit], where: str) -> dict[str, dict[str, SourceFile]]:
    """Package -> label -> everything that the run-time fallback may compile from."""
    shipped: dict[str, dict[str, SourceFile]] = {}
    for unit in units:
        files = shipped.setdefault(unit.package, {})
        files.update(unit.closure.files)
    problems: list[str] = []
    extra = match_patterns(config.headers, root, f"{where}.headers", problems) if config.headers else []
    if problems:
        raise ConfigurationError(numbered("the hook table does not fit the project:", problems))
    tree = ProjectTree(root)
    for label in extra:
        file = tree.open(label)
        for files in shipped.values():
            if file is not None:
                files.setdefault(label, file)
    return shipped


def _depth(labels: Iterable[str]) -> int:
    """How many folders above the project's root these labels reach."""
    return max((len(label.split("/")) - len(label.replace("../", "").split("/")) for label in labels), default=0)


def assemble(
    specs: Sequence[ModuleSpec],
    units: Sequence[Unit],
    jobs: Sequence[CompileJob],
    images: Mapping[CompileJob, PlacedImage],
    toolchain: Toolchain,
    shipped: Mapping[str, Mapping[str, SourceFile]] | None,
) -> dict[str, tuple[Manifest, dict[str, bytes]]]:
    """Package -> its manifest, and the sources that it lists, by their paths beside it."""
    by_unit: dict[Unit, dict[CompileJob, PlacedImage]] = {}
    for job in jobs:
        by_unit.setdefault(job.unit, {})[job] = images[job]
    modules: dict[str, list[Module]] = {}
    for spec, unit in zip(specs, units, strict=True):
        modules.setdefault(spec.package, []).append(_module(spec, unit, by_unit[unit]))
    found: dict[str, tuple[Manifest, dict[str, bytes]]] = {}
    for package, members in modules.items():
        sources = dict(shipped[package]) if shipped is not None else {}
        dirs = [f"{folder}/" for module in members for folder in module.include_dirs]
        own = [source for module in members for source in (module.source, *module.linked)]
        prefix = "_/" * _depth([*sources, *dirs, *own])
        members = sorted((_relocate(module, prefix) for module in members), key=lambda module: module.name)
        fallback, beside = None, {}
        if shipped is not None:
            sources = {posixpath.normpath(prefix + label): file for label, file in sources.items()}
            _check_shippable(sources)
            beside = {posixpath.join(SOURCE_DIRECTORY, path): file.data for path, file in sources.items()}
            fallback = Fallback(files={path: _shipped(file) for path, file in sorted(sources.items())})
        manifest = Manifest(package=package, release=toolchain.release, modules=tuple(members), fallback=fallback)
        found[package] = (manifest, beside)
    return found


def origins_of(images: Mapping[CompileJob, PlacedImage]) -> list[Origin]:
    """What each image was made of."""
    return [
        Origin(
            path=posixpath.join(job.unit.package.replace(".", "/"), DIRECTORY, image_file(job)),
            sha256=image.sha256,
            module=job.unit.module,
            architecture=str(job.architecture),
            source=job.unit.source,
            linker=job.linker,
            files=image.reads.files,
            installed=image.reads.installed,
        )
        for job, image in images.items()
    ]


def _check_shippable(paths: Iterable[str]) -> None:
    for path in paths:
        try:
            check_relative_path(path, "src")
        except ManifestError:
            raise ConfigurationError(
                f"{path!r} cannot be shipped under that name; rename it, or set jit = false"
            ) from None


def _shipped(file: SourceFile) -> ShippedFile:
    return ShippedFile(size=len(file.data), sha256=file.sha256)


def _relocate(module: Module, prefix: str) -> Module:
    """Paths of a module as they are below `src/`: a project that reaches above its root is moved down."""
    return dataclasses.replace(
        module,
        source=posixpath.normpath(prefix + module.source),
        linked=tuple(posixpath.normpath(prefix + label) for label in module.linked),
        include_dirs=tuple(posixpath.normpath(prefix + folder) for folder in module.include_dirs),
        passed_over=tuple(
            dataclasses.replace(omission, source=posixpath.normpath(prefix + omission.source))
            for omission in module.passed_over
        ),
    )


def image_file(job: CompileJob) -> str:
    """Name of a job's image beside the manifest."""
    return f"{image_stem(job.unit.module)}.{job.architecture}.{job.architecture.format}"


def _module(spec: ModuleSpec, unit: Unit, images: Mapping[CompileJob, PlacedImage]) -> Module:
    kernels: dict[str, str] = {}
    for image in images.values():
        for name, symbol in image.kernels.items():
            kernels.setdefault(name, symbol)
    return Module(
        name=spec.name,
        source=spec.source,
        linked=spec.linked,
        options=unit.options,
        defines=unit.defines,
        include_dirs=spec.include_dirs,
        toolkit_headers=unit.toolkit_headers,
        host_code=unit.host_code,
        name_expressions=unit.name_expressions,
        kernels=dict(sorted(kernels.items())),
        images=tuple(
            Image(
                architecture=image.architecture,
                file=image_file(job),
                size=image.size,
                sha256=image.sha256,
                entries=image.entries,
                kernels={name: symbol for name, symbol in image.kernels.items() if kernels[name] != symbol},
            )
            for job, image in images.items()
        ),
        passed_over=tuple(sorted({omission for image in images.values() for omission in image.passed_over})),
    )
