# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""A build from declared modules to manifests and files. Nothing is written here but the cache and the report."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import posixpath
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from .advice import folders_that_hold, missing_headers, repeat_command
from .arch import Architecture, expand_architectures, format_capability, unsupported_reason
from .budgets import kernels_over_budget
from .cache import KernelCache
from .config import Config
from .costs import Costs
from .display import format_size
from .errors import CompilationError, ConfigurationError, CudaKernelsError, ManifestError, numbered
from .jobs import make_job, needs_optimization
from .machine import available_cores
from .manifest import (
    DIRECTORY,
    MANIFEST_FILE,
    SOURCE_DIRECTORY,
    Fallback,
    Image,
    Manifest,
    Module,
    ShippedFile,
    canonical_json,
    check_relative_path,
)
from .modules import ModuleSpec, match_patterns
from .nvrtc import workspace
from .plan import CompiledImage, CompileJob, Unit, make_unit
from .pool import Pool, Result
from .sbom import Origin
from .sources import ProjectTree
from .toolchain import Toolchain, check_pins, detect
from .variants import image_stem

__all__ = ["Built", "Reporter", "build_packages", "make_units"]


class Reporter(Protocol):
    """Where a build's messages go."""

    def info(self, message: str) -> None:
        """Something that was done."""

    def step(self, done: int, total: int, what: str) -> None:
        """`done` of `total` images are there, `what` last."""

    def warning(self, message: str) -> None:
        """Something that the author should read."""


@dataclass(frozen=True, kw_only=True)
class Built:
    """What a build adds to a wheel."""

    files: Mapping[str, Mapping[str, bytes]]
    """Import package -> path inside it -> bytes."""
    report: Mapping[str, Any]
    release: str
    """Full NVRTC release."""
    origins: Sequence[Origin]
    """Every image, and what it was made of."""


def make_units(config: Config, root: Path, specs: Sequence[ModuleSpec]) -> list[Unit]:
    """Read every module's source and headers. Raises ConfigurationError with all that cannot be read."""
    tree = ProjectTree(root)
    units: list[Unit] = []
    problems: dict[str, None] = {}
    for spec in specs:
        try:
            units.append(make_unit(tree, spec.package, spec))
        except ConfigurationError as error:
            problems[str(error)] = None
    if problems:
        raise ConfigurationError(numbered("sources that cannot be compiled:", problems))
    return units


def build_packages(config: Config, root: Path, specs: Sequence[ModuleSpec], *, where: str, reporter: Reporter) -> Built:
    """Compile every module for every architecture, through the cache.

    Raises ConfigurationError or ToolchainError before any compile, CompilationError after all of them with every
    module and architecture that failed, or with what is over its budget; what did compile stays in the cache.
    """
    with closing(Pool(config.jobs or available_cores(), timeout=config.compile_timeout)) as pool:
        return _build(config, root, specs, pool, where=where, reporter=reporter)


def _build(
    config: Config, root: Path, specs: Sequence[ModuleSpec], pool: Pool, *, where: str, reporter: Reporter
) -> Built:
    start = time.perf_counter()
    if config.report is not None and not (root / config.report).parent.is_dir():
        raise ConfigurationError(f"HATCH_CUDA_KERNELS_REPORT: there is no folder {(root / config.report).parent}")
    units = make_units(config, root, specs)
    places = config.cache if isinstance(config.cache, bool) else [place.at(root) for place in config.cache]
    with KernelCache.open(places, max_size=config.cache_max_size) as cache:
        toolchain = detect(cache, pool.ask_toolchain)
        check_pins(toolchain, cuda=config.cuda if config.cuda_given else None, nvrtc=config.nvrtc, where=where)
        targets = [_architectures(spec, toolchain, where) for spec in specs]
        _check_targets(specs, targets, toolchain, where)
        shipped = _shipped_files(config, root, units, where) if config.jit else {}
        jobs = [
            make_job(unit, architecture, toolchain)
            for unit, target in zip(units, targets, strict=True)
            for architecture in target
        ]
        images, finished = _compile(jobs, config, root, cache, pool, reporter, start)
        if config.jit:
            _check_fallback(jobs, images, toolchain, config, cache, pool)
    _show_warnings(images, targets, toolchain, reporter)
    seconds = time.perf_counter() - start
    report = _report(jobs, images, finished, toolchain, seconds)
    manifests = _manifests(specs, units, jobs, images, toolchain, shipped if config.jit else None)
    _check_budgets(config, [manifest for manifest, _ in manifests.values()], where, reporter)
    files: dict[str, dict[str, bytes]] = {}
    for package, (manifest, contents) in manifests.items():
        files[package] = {
            posixpath.join(DIRECTORY, MANIFEST_FILE): canonical_json(manifest.to_dict()),
            **{posixpath.join(DIRECTORY, name): data for name, data in sorted(contents.items())},
        }
    _write_report(config, report, root)
    size = sum(len(image.data) for image in images.values())
    names = " ".join(dict.fromkeys(str(architecture) for target in targets for architecture in target))
    reporter.info(
        f"{len(jobs)} images: {report['cached']} cached, {report['compiled']} compiled in {seconds:.1f} s, "
        f"{format_size(size)}, {names}"
    )
    if passed := {omission for image in images.values() for omission in image.passed_over}:
        files_passed = len({omission.source for omission in passed})
        reporter.info(
            f"host code passed over in {files_passed} file{'s'[: files_passed > 1]}: {len(passed)} pieces, which "
            "hatch-cuda-kernels inspect --sources lists"
        )
    return Built(files=files, report=report, release=toolchain.release, origins=_origins(specs, units, jobs, images))


def _architectures(spec: ModuleSpec, toolchain: Toolchain, where: str) -> list[Architecture]:
    def native() -> list[tuple[int, int]]:
        from .driver import device_capabilities

        return device_capabilities()

    found, problems = expand_architectures(spec.archs, supported=lambda: toolchain.supported, native=native)
    if problems:
        raise ConfigurationError(numbered(f"{where}.archs:", problems))
    return found


def _check_targets(
    specs: Sequence[ModuleSpec], targets: Sequence[Sequence[Architecture]], toolchain: Toolchain, where: str
) -> None:
    problems: dict[str, None] = {}
    for target in targets:
        for architecture in target:
            reason = unsupported_reason(architecture, toolchain.supported, toolchain.release)
            if reason:
                problems[f"{where}.archs: {reason}"] = None
    for spec, target in zip(specs, targets, strict=True):
        for architecture in target if spec.linked else ():
            if reason := needs_optimization(architecture, spec.options):
                problems[f"{where}.archs: module {spec.name}: {reason}"] = None
        if not target:
            problems[f"{where}.archs: {spec.archs!r} names no architecture for module {spec.name}"] = None
    if problems:
        raise ConfigurationError(numbered("architectures that cannot be compiled for:", problems))


def _compile(
    jobs: Sequence[CompileJob],
    config: Config,
    root: Path,
    cache: KernelCache,
    pool: Pool,
    reporter: Reporter,
    start: float,
) -> tuple[dict[CompileJob, CompiledImage], dict[CompileJob, float]]:
    """Images by job, and the seconds after `start` at which those were there that the cache did not serve."""
    images = cache.lookup_all(jobs)
    finished: dict[CompileJob, float] = {}
    same: dict[str, list[CompileJob]] = {}
    for job in jobs:
        if job not in images:
            same.setdefault(job.key, []).append(job)
    missing = [twins[0] for twins in same.values()]
    errors: dict[CompileJob, CudaKernelsError] = {}
    if missing:
        reporter.step(0, len(missing), "")
        for done, (job, result) in enumerate(_results(missing, config, cache, pool), 1):
            if isinstance(result, CompiledImage):
                cache.store(job, result)
                images.update(dict.fromkeys(same[job.key], result))
                finished.update(dict.fromkeys(same[job.key], time.perf_counter() - start))
                took = f"{result.seconds:.2f} s, {format_size(len(result.data))}"
            else:
                errors.update(dict.fromkeys(same[job.key], result))
                took = "failed"
            reporter.step(done, len(missing), f"{job}: {took}")
    if errors:
        raise _all_errors(jobs, errors, root)
    return {job: images[job] for job in jobs}, finished


def _results(
    jobs: Sequence[CompileJob], config: Config, cache: KernelCache, pool: Pool
) -> Iterator[tuple[CompileJob, Result]]:
    """Each job with its image or its error, as it is done where the table says."""
    if config.executor != "processes":
        from .executor import compile_elsewhere

        yield from compile_elsewhere(config.executor, jobs, timeout=config.compile_timeout)
        return
    costs = Costs(cache)
    with workspace() as space:
        for job, result in pool.compile(jobs, space, costs.of):
            if isinstance(result, CompiledImage):
                costs.learn(job, result)
            yield job, result
    costs.remember()


def _check_fallback(
    jobs: Sequence[CompileJob],
    images: Mapping[CompileJob, CompiledImage],
    toolchain: Toolchain,
    config: Config,
    cache: KernelCache,
    pool: Pool,
) -> None:
    """Raise ConfigurationError where a header is nowhere to be found that some other architecture needs.

    A quoted include that nothing answers is compiled around by the architectures asked for; whether the fallback would
    stumble over it on another one is found by compiling for those. Sources without such an include cost nothing here.
    """
    suspects: dict[Unit, set[str]] = {}
    for job in jobs:
        names = {name for _, name in job.unit.closure.unresolved} & set(images[job].reads.missing)
        if names:
            suspects.setdefault(job.unit, set()).update(names)
    others = [
        make_job(unit, Architecture(number), toolchain)
        for unit in suspects
        for number in toolchain.supported
        if number not in {job.architecture.number for job in jobs if job.unit is unit}
    ]
    known = cache.lookup_all(others)
    others = [job for job in others if job not in known]
    problems: dict[str, None] = {}
    if others:
        for job, result in _results(others, config, cache, pool):
            if isinstance(result, CompiledImage):
                cache.store(job, result)
                continue
            for name in suspects[job.unit]:
                if f'cannot open source file "{name}"' in str(result):
                    problems[f"{name}, which {job.unit.source} includes when compiled for {job.architecture}"] = None
    if problems:
        raise ConfigurationError(
            numbered(
                "the run-time fallback would miss headers that are not in this tree (was it unpacked from an sdist "
                "that left them out?); add them, guard the include with __has_include, or set jit = false:",
                problems,
            )
        )


def _check_budgets(config: Config, manifests: Sequence[Manifest], where: str, reporter: Reporter) -> None:
    over = kernels_over_budget(config, manifests, where)
    if over:
        text = numbered("kernels that are over their budget:", over)
        if config.over_budget == "error":
            raise CompilationError(text)
        reporter.warning(text)


def _all_errors(
    jobs: Sequence[CompileJob], errors: Mapping[CompileJob, CudaKernelsError], root: Path
) -> CudaKernelsError:
    """One error for all images that failed; of their kind, where they are of one kind."""
    alike: dict[str, list[CompileJob]] = {}
    for job in jobs:
        if job in errors:
            alike.setdefault(str(errors[job]).removeprefix(f"{job}: "), []).append(job)
    texts = [_told(text, failed, errors[failed[0]], root) for text, failed in alike.items()]
    kinds = {type(error) for error in errors.values()}
    kind = kinds.pop() if len(kinds) == 1 else CompilationError
    return kind(f"{len(errors)} of {len(jobs)} images failed:\n\n" + "\n\n".join(texts))


def _told(text: str, failed: Sequence[CompileJob], error: CudaKernelsError, root: Path) -> str:
    """What is said of images that failed alike, with what only the project's tree can tell."""
    lines = [f"{', '.join(map(str, failed))}: {text}"]
    for header in missing_headers(text):
        folders = folders_that_hold(header, root)
        lines += [f'hint: the project has {header} in {folder}: include-dirs = ["{folder}"]' for folder in folders[:3]]
    if isinstance(error, CompilationError):
        lines.append(f"repeat: {repeat_command(failed[0])}")
    return "\n".join(lines)


def _show_warnings(
    images: Mapping[CompileJob, CompiledImage],
    targets: Sequence[Sequence[Architecture]],
    toolchain: Toolchain,
    reporter: Reporter,
) -> None:
    seen: dict[str, list[str]] = {}
    for job, image in images.items():
        for warning in image.warnings:
            seen.setdefault(f"{job.unit.module}: {warning}", []).append(str(job.architecture))
    for text, architectures in seen.items():
        reporter.warning(f"[{' '.join(architectures)}] {text}")
    kinds = {architecture.virtual for target in targets for architecture in target}
    if kinds == {True, False} and toolchain.version[1] > 0:
        major, version = toolchain.version[0], format_capability(toolchain.version)
        reporter.warning(
            f"the PTX of this build needs a driver of CUDA {version} or newer, its cubins only one of CUDA {major}.0; "
            f'for PTX that older drivers take, pin an older compiler, such as nvrtc = "{major}.0.{_FIRST_PATCH[major]}"'
        )


_FIRST_PATCH = {12: "140", 13: "88"}
"""Newest patch of each major's first release."""


def _report(
    jobs: Sequence[CompileJob],
    images: Mapping[CompileJob, CompiledImage],
    finished: Mapping[CompileJob, float],
    toolchain: Toolchain,
    seconds: float,
) -> dict[str, Any]:
    rows = [
        {
            "package": job.unit.package,
            "module": job.unit.module,
            "arch": str(job.architecture),
            "outcome": "compiled" if job in finished else "cached",
            "seconds": round(images[job].seconds, 6) if job in finished else 0.0,
            "finished": round(finished[job], 6) if job in finished else None,
            "memory": images[job].memory if job in finished else 0,
            "bytes": len(images[job].data),
            "warnings": list(images[job].warnings),
            "passed_over": [omission.to_dict() for omission in images[job].passed_over],
        }
        for job in jobs
    ]
    return {
        "schema": 1,
        "nvrtc": toolchain.release,
        "compiled": len(finished),
        "cached": len(jobs) - len(finished),
        "seconds": round(seconds, 6),
        "images": rows,
    }


def _write_report(config: Config, report: Mapping[str, Any], root: Path) -> None:
    if config.report is None:
        return
    path = root / config.report
    try:
        path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"HATCH_CUDA_KERNELS_REPORT: {path} cannot be written ({error.strerror})") from None


def _shipped_files(config: Config, root: Path, units: Sequence[Unit], where: str) -> dict[str, dict[str, bytes]]:
    """Package -> label -> bytes of everything that the run-time fallback may compile from."""
    shipped: dict[str, dict[str, bytes]] = {}
    for unit in units:
        files = shipped.setdefault(unit.package, {})
        files.update({label: file.data for label, file in unit.closure.files.items()})
    problems: list[str] = []
    extra = match_patterns(config.headers, root, f"{where}.headers", problems) if config.headers else []
    if problems:
        raise ConfigurationError(numbered("the hook table does not fit the project:", problems))
    tree = ProjectTree(root)
    for label in extra:
        file = tree.open(label)
        for files in shipped.values():
            if file is not None:
                files.setdefault(label, file.data)
    return shipped


def _depth(labels: Iterable[str]) -> int:
    """How many folders above the project's root these labels reach."""
    return max((len(label.split("/")) - len(label.replace("../", "").split("/")) for label in labels), default=0)


def _manifests(
    specs: Sequence[ModuleSpec],
    units: Sequence[Unit],
    jobs: Sequence[CompileJob],
    images: Mapping[CompileJob, CompiledImage],
    toolchain: Toolchain,
    shipped: Mapping[str, Mapping[str, bytes]] | None,
) -> dict[str, tuple[Manifest, dict[str, bytes]]]:
    """Package -> its manifest and the files that it lists."""
    by_unit: dict[Unit, list[CompiledImage]] = {}
    for job in jobs:
        by_unit.setdefault(job.unit, []).append(images[job])
    modules: dict[str, list[Module]] = {}
    contents: dict[str, dict[str, bytes]] = {}
    for spec, unit in zip(specs, units, strict=True):
        compiled = by_unit[unit]
        files = contents.setdefault(spec.package, {})
        for image in compiled:
            files[_image_file(spec, image)] = image.data
        modules.setdefault(spec.package, []).append(_module(spec, unit, compiled))
    found: dict[str, tuple[Manifest, dict[str, bytes]]] = {}
    for package, members in modules.items():
        sources = dict(shipped[package]) if shipped is not None else {}
        dirs = [f"{folder}/" for module in members for folder in module.include_dirs]
        own = [source for module in members for source in (module.source, *module.linked)]
        prefix = "_/" * _depth([*sources, *dirs, *own])
        members = sorted((_relocate(module, prefix) for module in members), key=lambda module: module.name)
        fallback = None
        if shipped is not None:
            sources = {posixpath.normpath(prefix + label): data for label, data in sources.items()}
            _check_shippable(sources)
            contents[package].update({posixpath.join(SOURCE_DIRECTORY, path): data for path, data in sources.items()})
            fallback = Fallback(files={path: _shipped(data) for path, data in sorted(sources.items())})
        manifest = Manifest(package=package, release=toolchain.release, modules=tuple(members), fallback=fallback)
        found[package] = (manifest, contents[package])
    return found


def _origins(
    specs: Sequence[ModuleSpec],
    units: Sequence[Unit],
    jobs: Sequence[CompileJob],
    images: Mapping[CompileJob, CompiledImage],
) -> list[Origin]:
    by_unit = dict(zip(units, specs, strict=True))
    return [
        Origin(
            path=posixpath.join(job.unit.package.replace(".", "/"), DIRECTORY, _image_file(by_unit[job.unit], image)),
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


def _shipped(data: bytes) -> ShippedFile:
    return ShippedFile(size=len(data), sha256=hashlib.sha256(data).hexdigest())


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


def _image_file(spec: ModuleSpec, image: CompiledImage) -> str:
    return f"{image_stem(spec.name)}.{image.architecture}.{image.architecture.format}"


def _module(spec: ModuleSpec, unit: Unit, compiled: Sequence[CompiledImage]) -> Module:
    kernels: dict[str, str] = {}
    for image in compiled:
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
                file=_image_file(spec, image),
                size=len(image.data),
                sha256=image.sha256,
                entries=image.entries,
                kernels={name: symbol for name, symbol in image.kernels.items() if kernels[name] != symbol},
            )
            for image in compiled
        ),
        passed_over=tuple(sorted({omission for image in compiled for omission in image.passed_over})),
    )
