# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""`cache push` and `cache pull`: a project's images from one place to another, to seed a container or a release."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..arch import expand_architectures
from ..build import make_units
from ..cache import KernelCache
from ..config import Config
from ..display import format_size, print_json
from ..errors import ConfigurationError, ToolchainError
from ..jobs import make_job
from ..modules import ModuleSpec
from ..plan import CompileJob
from ..stores.layers import Layer
from ..stores.location import parse_location
from ..stores.opening import open_layers
from ..toolchain import Toolchain, detect
from ..worker import ask_toolchain

__all__ = ["Moved", "move", "run"]


@dataclass(frozen=True)
class Moved:
    """What became of a project's images."""

    moved: int
    already: int
    """Images that were there before."""
    missing: int
    """Images that the source does not have."""
    failed: int
    """Images that the target did not take."""
    bytes: int


def run(*, direction: str, place: str, project: str, as_json: bool) -> int:
    """Move a project's images from its cache to `place` (push), or from there (pull)."""
    root = Path(project).resolve()
    config, specs = _declared(root)
    try:
        there = parse_location(place).at(Path.cwd())
        if there.kind == "memory":
            raise ValueError(f"{there} ends with this command")
        layers = open_layers([there], alone=True)
    except ValueError as error:
        raise ConfigurationError(f"PLACE: {error}") from None
    if not layers:
        return 1  # and it was said why
    places = config.cache if isinstance(config.cache, bool) else [found.at(root) for found in config.cache]
    with KernelCache.open(places, max_size=config.cache_max_size) as own, KernelCache(layers) as other:
        jobs = project_jobs(config, root, specs, detect(own, ask_toolchain))
        done = move(jobs, *((own, other) if direction == "push" else (other, own)))
    if as_json:
        print_json({"schema": 1, "images": len(jobs), **vars(done)})
    else:
        print(
            f"{len(jobs)} images: {done.moved} moved ({format_size(done.bytes)}), {done.already} were there"
            + (f", {done.missing} are not in the cache that they come from" if done.missing else "")
            + (f", {done.failed} could not be written" if done.failed else "")
        )
    return 1 if done.missing or done.failed else 0


def move(jobs: Iterable[CompileJob], source: KernelCache, target: KernelCache) -> Moved:
    """Copy the images of these jobs, each checked on its way, into every layer of `target` that may be written."""
    jobs = list(jobs)
    into = [layer for layer in target.layers if layer.writable]
    known = [_present(layer, jobs) for layer in into]
    wanted = [job for job in jobs if not into or any(job not in there for there in known)]
    sizes: dict[CompileJob, int] = {}
    for job, image in source.lookup_each(wanted):
        if image is None:
            continue
        sizes[job] = len(image.data)
        for layer, there in zip(into, known, strict=True):
            if job not in there:
                KernelCache([layer]).store(job, image)
    for layer in into:
        layer.flush()
    arrived = [_present(layer, list(sizes)) for layer in into]
    kept = [job for job in sizes if into and all(job in there for there in arrived)]
    return Moved(
        moved=len(kept),
        already=len(jobs) - len(wanted),
        missing=len(wanted) - len(sizes),
        failed=len(sizes) - len(kept),
        bytes=sum(sizes[job] for job in kept),
    )


def _present(layer: Layer, jobs: Sequence[CompileJob]) -> set[CompileJob]:
    """Those jobs whose images a layer has."""
    return {job for job, image in KernelCache([layer]).lookup_each(jobs) if image is not None}


def project_jobs(config: Config, root: Path, specs: Iterable[ModuleSpec], toolchain: Toolchain) -> list[CompileJob]:
    """The jobs that a build of the project would look up."""
    specs = list(specs)
    jobs = []
    for spec, unit in zip(specs, make_units(root, specs), strict=True):
        architectures, problems = expand_architectures(spec.archs, supported=lambda: toolchain.supported)
        if problems:
            raise ConfigurationError("\n".join(problems))
        jobs += [make_job(unit, architecture, toolchain) for architecture in architectures]
    return jobs


def _declared(root: Path) -> tuple[Config, list[ModuleSpec]]:
    try:
        from ..plugin import hook_of
    except ImportError as error:
        raise ToolchainError(f"reading a project needs hatchling ({error}); `pip install hatchling`") from None
    return hook_of(root).declared()
