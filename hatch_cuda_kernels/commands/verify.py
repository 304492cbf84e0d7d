# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Whether a package is what its manifest says, every digest, every image's own word, every path; and a wheel what its
RECORD says."""

from __future__ import annotations

import os
import posixpath
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..arch import Architecture, Capability, format_capability
from ..cache import KernelCache
from ..costs import Costs
from ..cubin import read_cubin, read_ptx
from ..display import counted, print_json, printable
from ..elf import ImageFormatError
from ..errors import CudaKernelsError, IntegrityError, ManifestError
from ..jobs import make_job
from ..machine import available_cores
from ..manifest import DIRECTORY, MANIFEST_FILE, SOURCE_DIRECTORY, Image, Manifest, Module
from ..nvrtc import workspace
from ..package import InstalledPackage, shipped_unit
from ..plan import CompiledImage, CompileJob
from ..pool import Pool
from ..toolchain import Toolchain, detect
from .coverage import cover, holes, names_text
from .record import check_record
from .target import Place, places

__all__ = ["NoFallback", "Problem", "run", "verify_fallback", "verify_place"]


@dataclass(frozen=True)
class Problem:
    """A fault, and the file that has it."""

    path: str
    problem: str


@dataclass(frozen=True)
class NoFallback:
    """An architecture of this NVRTC that a module's sources do not compile for, outside the module's own."""

    package: str
    module: str
    arch: str
    reason: str


def run(
    *,
    target: str,
    package: str | None,
    jit: bool,
    require: Sequence[Capability],
    driver: tuple[int, int] | None,
    allow_jit: bool,
    as_json: bool,
) -> int:
    """Print every fault of a target."""
    problems: list[Problem] = []
    lacking: list[NoFallback] = []
    images = 0
    for place in places(target, package):
        opened, found = verify_place(place)
        problems += found
        if opened is None:
            continue
        images += sum(len(module.images) for module in opened.manifest.modules)
        manifest = opened.manifest
        problems += _uncovered(manifest, require, driver or manifest.cuda_version, allow_jit, _top(place.name))
        if jit:
            found, missing = verify_fallback(opened, lambda text: print(text, file=sys.stderr))
            problems += found
            lacking += missing
    if os.path.isfile(target):
        told = {problem.path for problem in problems}
        problems += [Problem(path, text) for path, text in check_record(Path(target)) if path not in told]
    if as_json:
        value: dict[str, Any] = {"schema": 1, "ok": not problems, "problems": [vars(found) for found in problems]}
        if jit:
            value["no_fallback"] = [vars(found) for found in lacking]
        print_json(value)
    else:
        for problem in problems:
            print(printable(f"{problem.path}: {problem.problem}", "\n"))
        for one in lacking:
            print(printable(f"no fallback for {one.arch}: {one.package} {one.module}"))
        print(f"{counted(images, 'image')}: {counted(len(problems), 'problem') if problems else 'fine'}")
    return 1 if problems else 0


def verify_place(place: Place) -> tuple[InstalledPackage | None, list[Problem]]:
    """Check a package's manifest, images and sources. The package is None where the manifest cannot be read."""
    top = _top(place.name)
    try:
        package = place.open()
    except ManifestError as error:
        return None, [Problem(f"{top}/{MANIFEST_FILE}", str(error))]
    problems = [Problem(f"{top}/{path}", text) for path, text in _check_files(package, place.members)]
    return package, problems


def _top(package: str) -> str:
    """The folder of a package's kernels in a wheel."""
    return f"{package.replace('.', '/')}/{DIRECTORY}" if package else DIRECTORY


def _uncovered(
    manifest: Manifest, required: Sequence[Capability], driver: tuple[int, int], jit: bool, top: str
) -> Iterator[Problem]:
    """Kernels that a required compute capability would not get. The fallback, where it counts, needs NVRTC there."""
    way = "the run-time fallback, which --allow-jit would accept" if manifest.fallback is not None else "nothing"
    what = "nothing" if jit else way
    alike: dict[str, list[str]] = {}
    for row, bare in holes(cover(manifest, required, driver), jit=jit):
        alike.setdefault(", ".join(map(format_capability, bare)), []).append(f"{row.module}:{row.kernel}")
    for where, names in alike.items():
        text = f"{names_text(names)}: {what} for {where} under a driver of CUDA {format_capability(driver)}"
        yield Problem(f"{top}/{MANIFEST_FILE}", text)


def _check_files(package: InstalledPackage, members: list[str] | None) -> Iterator[tuple[str, str]]:
    listed = {MANIFEST_FILE}
    for module in package.manifest.modules:
        for image in module.images:
            listed.add(image.file)
            try:
                data = package.read_image(image)
            except IntegrityError as error:
                yield image.file, str(error)
                continue
            for text in _check_image(module, image, data):
                yield image.file, text
    for module in package.manifest.modules:
        for kernel in module.kernels:
            if not any(module.lowered(kernel, image) for image in module.images):
                yield MANIFEST_FILE, f"the kernel {kernel} of module {module.name} is in none of its images"
    fallback = package.manifest.fallback
    for path in fallback.files if fallback else ():
        where = posixpath.join(SOURCE_DIRECTORY, path)
        listed.add(where)
        try:
            package.read_source(path)
        except IntegrityError as error:
            yield where, str(error)
    for module in package.manifest.modules if fallback else ():
        for source in (module.source, *module.linked):
            if fallback is not None and source not in fallback.files:
                yield MANIFEST_FILE, f"the source of module {module.name}, {source}, is not shipped"
    for member in members or ():
        if member not in listed:
            yield member, "is not listed in the manifest"


def _check_image(module: Module, image: Image, data: bytes) -> Iterator[str]:
    try:
        if image.architecture.virtual:
            ptx = read_ptx(data)
            matches, entries, same = ptx.matches(image.architecture), set(ptx.entries), True
        else:
            cubin = read_cubin(data)
            matches, entries = cubin.matches(image.architecture), set(cubin.entries)
            # spills are told by the compiler's log alone, not by the image
            same = all(
                found is not None and replace(found, spill_bytes=0) == cubin.entries.get(name)
                for name, found in image.entries.items()
            )
    except ImageFormatError as error:
        yield f"is no {image.architecture.format}: {error}"
        return
    if not matches:
        yield f"is not for {image.architecture}"
    if missing := set(image.entries) - entries:
        yield f"lacks the entries {', '.join(sorted(missing))}"
    elif extra := entries - set(image.entries):
        yield f"has entries that the manifest does not list: {', '.join(sorted(extra))}"
    elif not same:
        yield "needs other resources than the manifest says"
    for kernel in {**module.kernels, **image.kernels}:
        symbol = image.kernels.get(kernel) or module.kernels[kernel]
        if kernel in image.kernels and symbol not in image.entries:
            yield f"the kernel {kernel} is {symbol} in the manifest, which is not in the image"


def verify_fallback(
    package: InstalledPackage, progress: Callable[[str], None]
) -> tuple[list[Problem], list[NoFallback]]:
    """Compile the shipped sources on their own for every architecture that this environment's NVRTC has.

    A missing file, or a failure on an architecture of the module's own, is a fault; another architecture that fails
    is listed. Raises ToolchainError where there is no NVRTC.
    """
    problems: list[Problem] = []
    lacking: list[NoFallback] = []
    if package.manifest.fallback is None:
        return problems, lacking
    with KernelCache.from_environment() as cache, closing(Pool(available_cores())) as pool:
        toolchain = detect(cache, pool.ask_toolchain)
        own: dict[CompileJob, bool] = {}
        for module in package.manifest.modules:
            try:
                unit = shipped_unit(package, module)
            except CudaKernelsError as error:
                problems.append(Problem(posixpath.join(SOURCE_DIRECTORY, module.source), str(error)))
                continue
            declared = {image.architecture for image in module.images}
            for architecture in _targets(toolchain, declared):
                job = make_job(unit, architecture, toolchain)
                own[job] = architecture in declared
        missing = [job for job, image in cache.lookup_each(own) if image is None]
        with workspace() as space:
            for job, result in pool.compile(missing, space, Costs(cache).of):
                if isinstance(result, CompiledImage):
                    cache.store(job, result)
                    progress(f"{job}: {result.seconds:.2f} s")
                    continue
                text = str(result)
                if own[job] or "cannot open source file" in text:
                    problems.append(Problem(posixpath.join(SOURCE_DIRECTORY, job.unit.source), text))
                else:
                    lacking.append(NoFallback(package.name, job.unit.module, str(job.architecture), text))
                progress(f"{job}: failed")
    return problems, lacking


def _targets(toolchain: Toolchain, declared: set[Architecture]) -> list[Architecture]:
    """Every base architecture, and what the module declares as far as this NVRTC has it."""
    bases = {Architecture(number) for number in toolchain.supported}
    return sorted(bases | {found for found in declared if found.number in toolchain.supported})
