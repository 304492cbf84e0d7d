# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""A build from declared modules to manifests and files.

Nothing is written here but the cache and the report. An image is handed over as soon as it is there, so that a build
holds the bytes of only those at hand, however many there are.
"""

from __future__ import annotations

import posixpath
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

from .absence import asks_for, outline
from .account import Reporter, all_errors, build_report, show_warnings, write_report
from .arch import Architecture, expand_architectures, unsupported_reason
from .assembly import shipments, shipped_files
from .budgets import kernels_over_budget
from .bundles import Bundles
from .cache import KernelCache
from .config import Config
from .costs import Costs
from .display import counted, format_size
from .documents import Documents
from .errors import CompilationError, ConfigurationError, CudaKernelsError, numbered
from .gathering import Gathering, Put, Wanted
from .jobs import make_job, needs_optimization
from .machine import available_cores
from .manifest import DIRECTORY, MANIFEST_FILE, SOURCE_DIRECTORY
from .modules import ModuleSpec
from .nvrtc import workspace
from .plan import CompiledImage, CompileJob, Unit, make_unit
from .pool import Pool, Result
from .scans import RememberedScans
from .sources import ProjectTree, Scans
from .toolchain import Later, Memory, Toolchain, check_pins, detect

__all__ = ["Put", "Reporter", "build_packages", "make_units"]


def make_units(root: Path, specs: Sequence[ModuleSpec], scans: Scans | None = None) -> list[Unit]:
    """Read every module's source and headers. Raises ConfigurationError with all that cannot be read."""
    tree = ProjectTree(root, scans)
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


def build_packages(
    config: Config, root: Path, specs: Sequence[ModuleSpec], *, where: str, reporter: Reporter, put: Put
) -> Documents:
    """Compile every module for every architecture, through the cache, and hand all files of the wheel to `put`.

    Raises ConfigurationError or ToolchainError before any compile, CompilationError after all of them with every
    module and architecture that failed, or with what is over its budget; what did compile stays in the cache, and what
    `put` has got by then is to be thrown away. Whoever has the documents closes them.
    """
    with (
        closing(Pool(config.jobs or available_cores(), timeout=config.compile_timeout)) as pool,
        ExitStack() as failing,
    ):
        documents = _build(config, root, specs, pool, failing, where=where, reporter=reporter, put=put)
        failing.pop_all()
    return documents


def _build(
    config: Config,
    root: Path,
    specs: Sequence[ModuleSpec],
    pool: Pool,
    failing: ExitStack,
    *,
    where: str,
    reporter: Reporter,
    put: Put,
) -> Documents:
    start = time.perf_counter()
    if config.report is not None and not (root / config.report).parent.is_dir():
        raise ConfigurationError(f"HATCH_CUDA_KERNELS_REPORT: there is no folder {(root / config.report).parent}")
    if config.executor != "processes":
        from .executor import check_executor

        check_executor(config.executor)
    places = config.cache if isinstance(config.cache, bool) else [place.at(root) for place in config.cache]
    with (
        KernelCache.open(places, max_size=config.cache_max_size) as cache,
        RememberedScans(cache, ((spec.package, *spec.include_dirs) for spec in specs)) as scans,
        Later(cache) as facts,
    ):
        asked = _ask(facts, pool, len(specs))
        units = make_units(root, specs, scans)
        toolchain = asked.result()
        check_pins(toolchain, cuda=config.cuda if config.cuda_given else None, nvrtc=config.nvrtc, where=where)
        expanded = {archs: _architectures(archs, toolchain, where) for archs in dict.fromkeys(s.archs for s in specs)}
        targets = [expanded[spec.archs] for spec in specs]
        _check_targets(specs, targets, toolchain, where)
        shipped = shipments(specs, shipped_files(config, root, units, where) if config.jit else None)
        modules = [
            Wanted(spec=spec, unit=unit, architectures=target)
            for spec, unit, target in zip(specs, units, targets, strict=True)
        ]
        gathering = Gathering(modules, toolchain, shipped, put, reported=config.report is not None)
        failing.callback(gathering.documents.close)
        prefixes = {package: shipment.prefix for package, shipment in shipped.items()}
        bundles = Bundles(
            cache, modules, toolchain.release, prefixes, used=config.report is None and config.cache_max_size is None
        )
        compiled = _compile(gathering, bundles, config, root, cache, pool, reporter, start)
        if config.jit:
            _check_fallback(modules, gathering.absent, toolchain, config, cache, pool, reporter)
        for place, count in cache.pending():
            reporter.info(f"{count} images are on their way to {place}")
    show_warnings(gathering.warnings(), targets, toolchain, reporter)
    seconds = time.perf_counter() - start
    documents = gathering.documents
    _check_budgets(config, documents, len(modules), where, reporter)
    for package, shipment in shipped.items():
        put(package, posixpath.join(DIRECTORY, MANIFEST_FILE), documents.manifest(package, shipment.fallback))
        for path, file in (shipment.files or {}).items():
            put(package, posixpath.join(DIRECTORY, SOURCE_DIRECTORY, path), (file.data,))
    if config.report is not None:
        write_report(root / config.report, build_report(gathering.report_rows(), toolchain.release, seconds))
    if passed := gathering.passed_over:
        files_passed = len({omission.source for omission in passed})
        reporter.info(
            f"host code passed over in {files_passed} file{'s'[: files_passed > 1]}: {len(passed)} pieces, which "
            "hatch-cuda-kernels inspect --sources lists"
        )
    names = " ".join(dict.fromkeys(str(architecture) for target in targets for architecture in target))
    reporter.info(
        f"{counted(gathering.wanted, 'image')}: {gathering.wanted - compiled} cached, {compiled} compiled in "
        f"{seconds:.1f} s, {format_size(gathering.size)}, {names}"
    )
    return documents


def _ask(memory: Memory, pool: Pool, modules: int) -> Future[Toolchain]:
    """NVRTC, found out in passing: where it has to be asked, a process is started for that."""
    thread = ThreadPoolExecutor(1)
    asked = thread.submit(detect, memory, partial(pool.ask_toolchain, beside=modules - 1))
    thread.shutdown(wait=False)
    return asked


def _architectures(archs: Sequence[str], toolchain: Toolchain, where: str) -> list[Architecture]:
    def native() -> list[tuple[int, int]]:
        from .driver import device_capabilities

        return device_capabilities()

    found, problems = expand_architectures(archs, supported=lambda: toolchain.supported, native=native)
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


_WRITERS = 4
_MOST_UNWRITTEN = 32
"""Images that may wait for a disk that is slower than the compiler."""


def _compile(
    gathering: Gathering,
    bundles: Bundles,
    config: Config,
    root: Path,
    cache: KernelCache,
    pool: Pool,
    reporter: Reporter,
    start: float,
) -> int:
    """Gather all images, and say how many of them the cache did not serve."""
    same: dict[str, list[CompileJob]] = {}
    for job, image in cache.lookup_each(gathering.jobs(bundles.take(gathering))):
        if image is None:
            same.setdefault(job.key, []).append(job)
        else:
            gathering.place(image, job)
    missing = [twins[0] for twins in same.values()]
    errors: dict[CompileJob, CudaKernelsError] = {}
    if missing:
        reporter.step(0, len(missing), "")
        # a small kernel compiles in less time than a disk takes to have its image for sure
        with ThreadPoolExecutor(_WRITERS) as writers:
            stored: deque[Future[None]] = deque()
            for done, (job, result) in enumerate(_results(missing, config, cache, pool), 1):
                if isinstance(result, CompiledImage):
                    stored.append(writers.submit(cache.store, job, result))
                    if len(stored) > _MOST_UNWRITTEN:
                        stored.popleft().result()
                    gathering.place(result, *same[job.key], seconds=time.perf_counter() - start)
                    took = f"{result.seconds:.2f} s, {format_size(len(result.data))}"
                else:
                    errors.update(dict.fromkeys(same[job.key], result))
                    took = "failed"
                reporter.step(done, len(missing), f"{job}: {took}")
        for future in stored:
            future.result()
    if errors:
        in_order = {job: errors[job] for twins in same.values() for job in twins if job in errors}
        raise all_errors(in_order, gathering.wanted, root)
    bundles.fill(gathering)
    return sum(map(len, same.values()))


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
    modules: Sequence[Wanted],
    absent: Mapping[Unit, set[str]],
    toolchain: Toolchain,
    config: Config,
    cache: KernelCache,
    pool: Pool,
    reporter: Reporter,
) -> None:
    """Raise ConfigurationError where a header is nowhere to be found that some other architecture needs.

    A quoted include that nothing answers is compiled around by the architectures asked for. Whether the fallback would
    stumble over it on another one is told by an outline of the source (see absence.py), or where that does not tell by
    compiling for it. Sources without such an include cost nothing here.
    """
    asked = {
        module.unit: {architecture.number for architecture in module.architectures}
        for module in modules
        if module.unit in absent
    }
    others = [
        make_job(unit, Architecture(number), toolchain)
        for unit in asked
        for number in toolchain.supported
        if number not in asked[unit]
    ]
    outlines = {unit: outline(unit, names) for unit, names in absent.items()}
    quick = {
        make_job(short, job.architecture, toolchain): job for job in others if (short := outlines[job.unit]) is not None
    }
    passed = {quick[job] for job, result in _besides(list(quick), config, cache, pool) if not _failed(result)}
    missed: dict[tuple[str, str], set[Architecture]] = {}
    left = [job for job in others if job not in passed]
    for done, (job, result) in enumerate(_besides(left, config, cache, pool), 1):
        reporter.step(done, len(left), f"{job}: whether it needs {', '.join(sorted(absent[job.unit]))}")
        for name in absent[job.unit] if _failed(result) else ():
            if asks_for(name, str(result)):
                missed.setdefault((job.unit.source, name), set()).add(job.architecture)
    if missed:
        raise ConfigurationError(
            numbered(
                "the run-time fallback would miss headers that are not in this tree (was it unpacked from an sdist "
                "that left them out?); add them, guard the include with __has_include, or set jit = false:",
                [
                    f"{name}, which {source} includes when compiled for {', '.join(map(str, sorted(architectures)))}"
                    for (source, name), architectures in sorted(missed.items())
                ],
            )
        )


def _failed(result: Result) -> bool:
    return not isinstance(result, CompiledImage)


def _besides(
    jobs: Sequence[CompileJob], config: Config, cache: KernelCache, pool: Pool
) -> Iterator[tuple[CompileJob, Result]]:
    """The results of jobs whose images go into no wheel, but into the cache."""
    missing = []
    for job, image in cache.lookup_each(jobs):
        if image is None:
            missing.append(job)
        else:
            yield job, image
    for job, result in _results(missing, config, cache, pool) if missing else ():
        if isinstance(result, CompiledImage):
            cache.store(job, result)
        yield job, result


def _check_budgets(config: Config, documents: Documents, modules: int, where: str, reporter: Reporter) -> None:
    if not config.max_registers and not config.max_spill_bytes:
        return
    over = kernels_over_budget(config, [documents.module(number) for number in range(modules)], where)
    if over:
        text = numbered("kernels that are over their budget:", over)
        if config.over_budget == "error":
            raise CompilationError(text)
        reporter.warning(text)
