# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""From compiled images to what a package gets beside them: its manifest, and the sources that its fallback compiles."""

from __future__ import annotations

import dataclasses
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .arch import Architecture
from .config import Config
from .documents import Described
from .errors import ConfigurationError, ManifestError, numbered
from .manifest import (
    DIRECTORY,
    Fallback,
    Image,
    Module,
    ShippedFile,
    check_relative_path,
)
from .modules import ModuleSpec, match_patterns
from .plan import CompileJob, PlacedImage, Unit
from .sbom import Origin, list_images
from .sources import ProjectTree, SourceFile
from .variants import image_stem

__all__ = ["Shipment", "describe", "image_file", "shipments", "shipped_files"]


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


@dataclass(frozen=True, kw_only=True)
class Shipment:
    """What a package gets beside its images, and where its paths lead."""

    prefix: str
    """What its labels begin with below `src/`: a project that reaches above its root is moved down."""
    files: Mapping[str, SourceFile] | None
    """Every file of `src/` by its path there, sorted; None without a fallback."""

    @property
    def fallback(self) -> Fallback | None:
        """As the manifest has it."""
        return None if self.files is None else Fallback(files={p: _shipped(file) for p, file in self.files.items()})


def shipments(
    specs: Sequence[ModuleSpec], shipped: Mapping[str, Mapping[str, SourceFile]] | None
) -> dict[str, Shipment]:
    """Package -> what it gets. Raises ConfigurationError for names that cannot be shipped."""
    members: dict[str, list[ModuleSpec]] = {}
    for spec in specs:
        members.setdefault(spec.package, []).append(spec)
    found: dict[str, Shipment] = {}
    for package, modules in members.items():
        sources = shipped[package] if shipped is not None else {}
        dirs = [f"{folder}/" for module in modules for folder in module.include_dirs]
        own = [source for module in modules for source in (module.source, *module.linked)]
        prefix = "_/" * _depth([*sources, *dirs, *own])
        files = {posixpath.normpath(prefix + label): file for label, file in sources.items()}
        _check_shippable(files)
        found[package] = Shipment(prefix=prefix, files=None if shipped is None else dict(sorted(files.items())))
    return found


def describe(
    spec: ModuleSpec, unit: Unit, images: Mapping[CompileJob, PlacedImage], release: str, prefix: str
) -> Described:
    """What a wheel's documents say of a module whose images are all there."""
    module = _relocate(_module(spec, unit, images), prefix)
    return Described(
        package=spec.package,
        name=module.name,
        kernels=tuple(module.kernels),
        manifest=module.to_text(),
        listing=list_images(_origins_of(images), release),
        passed_over=module.passed_over,
    )


def _origins_of(images: Mapping[CompileJob, PlacedImage]) -> list[Origin]:
    """What each image was made of."""
    return [
        Origin(
            path=posixpath.join(
                job.unit.package.replace(".", "/"), DIRECTORY, image_file(job.unit.module, job.architecture)
            ),
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
    """A module with its paths as they are below `src/`."""
    if not prefix:
        return module
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


def image_file(module: str, architecture: Architecture) -> str:
    """Name of a module's image beside the manifest."""
    return f"{image_stem(module)}.{architecture}.{architecture.format}"


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
                file=image_file(job.unit.module, job.architecture),
                size=image.size,
                sha256=image.sha256,
                entries=image.entries,
                kernels={name: symbol for name, symbol in image.kernels.items() if kernels[name] != symbol},
            )
            for job, image in images.items()
        ),
        passed_over=tuple(sorted({omission for image in images.values() for omission in image.passed_over})),
    )
