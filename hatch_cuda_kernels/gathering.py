# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The modules of a build between their first image and their last one.

An image is handed over as soon as it is there, and what there is to say of a module is written down as soon as it has
all of its images. So a build holds neither the bytes nor the facts of more than those that are on their way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from .absence import suspects
from .account import report_row
from .arch import Architecture
from .assembly import Shipment, describe, image_file
from .documents import Described, Documents
from .jobs import make_job
from .manifest import DIRECTORY, Omission
from .modules import ModuleSpec
from .plan import CompiledImage, CompileJob, PlacedImage, Unit
from .toolchain import Toolchain

__all__ = ["Gathering", "Put", "Wanted", "Warnings"]

Put = Callable[[str, str, Iterable[bytes]], None]
"""Takes a file that a build adds to a wheel: import package, path inside it, its bytes in pieces."""

_T = TypeVar("_T")

Warnings = list[tuple[str, Architecture]]
"""Texts, each with the architecture that it was given for."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Wanted:
    """One module that a build is to compile."""

    spec: ModuleSpec
    unit: Unit
    architectures: Sequence[Architecture]


class Gathering:
    """What a build has so far."""

    def __init__(
        self,
        modules: Sequence[Wanted],
        toolchain: Toolchain,
        shipments: Mapping[str, Shipment],
        put: Put,
        *,
        reported: bool,
    ) -> None:
        """`reported`: whether a report is asked for, which has a row for every image."""
        self.documents = Documents(toolchain.release)
        self.wanted = sum(len(module.architectures) for module in modules)
        """How many images there are to be."""
        self.size = 0
        """Bytes of all images."""
        self.passed_over: set[Omission] = set()
        self.absent: dict[Unit, set[str]] = {}
        """See absence.suspects."""
        self._warnings: dict[int, Warnings] = {}
        self._rows: dict[int, list[dict[str, Any]]] = {}
        self._reported = reported
        self._modules = modules
        self._toolchain = toolchain
        self._shipments = shipments
        self._put = put
        self._open: dict[Unit, _Open] = {}

    def jobs(self, numbers: Iterable[int]) -> Iterator[CompileJob]:
        """What is to be looked up or compiled for modules by their numbers, one after the other."""
        for number in numbers:
            module = self._modules[number]
            jobs = self.jobs_of(module)
            self._open[module.unit] = _Open(number, dict.fromkeys(jobs))
            yield from jobs

    def jobs_of(self, module: Wanted) -> list[CompileJob]:
        """The jobs of a module."""
        return [make_job(module.unit, architecture, self._toolchain) for architecture in module.architectures]

    def place(self, image: CompiledImage, *jobs: CompileJob, seconds: float | None = None) -> None:
        """Hand over an image, which is that of some jobs: `seconds` after the start, where it was compiled for them."""
        placed = PlacedImage.of(image)
        for job in jobs:
            self._put(job.unit.package, f"{DIRECTORY}/{image_file(job.unit.module, job.architecture)}", (image.data,))
            self.size += placed.size
            module = self._open[job.unit]
            module.images[job] = placed
            if seconds is not None:
                module.compiled[job] = seconds
            if None not in module.images.values():
                self._finish(job.unit, module)

    def place_all(
        self, number: int, images: Iterable[tuple[str, bytes]], module: Described, warnings: Warnings
    ) -> None:
        """Hand over all images of a module, by their names, with what there is to say of them."""
        for name, data in images:
            self._put(module.package, f"{DIRECTORY}/{name}", (data,))
            self.size += len(data)
        self._write_down(number, module)
        if warnings:
            self._warnings[number] = warnings

    def _write_down(self, number: int, module: Described) -> None:
        self.documents.add(number, module)
        self.passed_over.update(module.passed_over)

    def warnings_of(self, number: int) -> Warnings:
        """What the compiles of one module warned of."""
        return self._warnings.get(number, [])

    def warnings(self) -> Warnings:
        """What compiles warned of, and for which architecture, module by module."""
        return list(_in_order(self._warnings))

    def report_rows(self) -> list[dict[str, Any]]:
        """The rows of the report, module by module."""
        return list(_in_order(self._rows))

    def _finish(self, unit: Unit, module: _Open) -> None:
        """A module has all of its images."""
        del self._open[unit]
        images = {job: image for job, image in module.images.items() if image is not None}
        spec, number = self._modules[module.number].spec, module.number
        prefix = self._shipments[spec.package].prefix
        self._write_down(number, describe(spec, unit, images, self._toolchain.release, prefix))
        for job, image in images.items():
            for warning in image.warnings:
                self._warnings.setdefault(number, []).append((f"{unit.module}: {warning}", job.architecture))
        if names := suspects(unit, images.values()):
            self.absent[unit] = names
        if self._reported:
            self._rows[number] = [report_row(job, image, module.compiled.get(job)) for job, image in images.items()]


def _in_order(lists: Mapping[int, Iterable[_T]]) -> Iterator[_T]:
    return (each for number in sorted(lists) for each in lists[number])


@dataclass(frozen=True, slots=True)
class _Open:
    """A module that lacks images."""

    number: int
    images: dict[CompileJob, PlacedImage | None]
    compiled: dict[CompileJob, float] = field(default_factory=dict)
    """When those images were there that were compiled."""
