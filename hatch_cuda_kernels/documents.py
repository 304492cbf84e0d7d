# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What a wheel's documents say of each module, as text, from when its images are there to when the wheel is written.

A build has thousands of images, perhaps, and of each there is much to say. None of that is held in memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from .ledger import Ledger
from .manifest import Fallback, Module, Omission, Verbatim, compact_json, kernel_index, manifest_pieces
from .sbom import Listing, bill_of_materials, sources_in

__all__ = ["Described", "Documents"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Described:
    """What the documents say of one module."""

    package: str
    name: str
    kernels: tuple[str, ...]
    manifest: str
    """It as an element of the manifest's modules (manifest.Module.to_text)."""
    listing: Listing
    """Its images in the bill of materials."""
    passed_over: tuple[Omission, ...]


class Documents:
    """The modules of a build by their numbers, which are their order in every document."""

    def __init__(self, release: str) -> None:
        """`release` is NVRTC's."""
        self._release = release
        self._texts = Ledger()
        self._kernels: dict[str, dict[int, tuple[str, tuple[str, ...]]]] = {}
        """Package -> number of each of its modules -> its name and its kernels."""
        self._inputs: dict[str, str] = {}

    def add(self, number: int, module: Described) -> None:
        """Write a module down. Raises ToolchainError where there is no room for it."""
        listing = module.listing
        inputs = compact_json(listing.inputs).decode()
        self._texts.write(
            number, (module.manifest, listing.components, listing.dependencies, listing.references, inputs)
        )
        self._kernels.setdefault(module.package, {})[number] = module.name, module.kernels
        self._inputs.update(listing.inputs)

    def module(self, number: int) -> Module:
        """A module as the manifest has it."""
        return Module.from_dict(json.loads(self._texts.read(number, 0)), "manifest")

    def described(self, package: str, number: int) -> Described:
        """What was written down of a module."""
        name, kernels = self._kernels[package][number]
        manifest, components, dependencies, references, inputs = (self._texts.read(number, c) for c in range(5))
        return Described(
            package=package,
            name=name,
            kernels=kernels,
            manifest=manifest,
            listing=Listing(components, dependencies, references, json.loads(inputs)),
            passed_over=self.module(number).passed_over,
        )

    def manifest(self, package: str, fallback: Fallback | None) -> Iterator[bytes]:
        """The text of a package's manifest, piece by piece."""
        modules = dict(sorted(self._kernels[package].items()))
        texts = (Verbatim(self._texts.read(number, 0)) for number in modules)
        return manifest_pieces(package, self._release, kernel_index(modules.values()), fallback, texts)

    def bill_of_materials(self, name: str, version: str) -> Iterator[bytes]:
        """The text of the bill of materials of the distribution `name`, piece by piece."""
        components, dependencies, references = (partial(self._texts.column, column) for column in (1, 2, 3))
        return bill_of_materials(name, version, components, dependencies, references, self._inputs)

    def sources(self) -> Iterator[tuple[str, str]]:
        """Label of each source file that a compile read, and the beginning of its digest in hex."""
        return sources_in(self._inputs)

    def close(self) -> None:
        """Forget them."""
        self._texts.close()
