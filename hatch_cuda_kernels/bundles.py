# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Many small images in one entry of the cache: a large build reads tens of files then, and not thousands.

A bundle has what a build said of up to a hundred and twenty-eight modules that follow one another, and the bytes of
their images. It is found by the modules' names. What decides the images decides here too: each module stands there
under a digest of all that is known of its jobs before they run, with what each of its compiles read, and is taken only
where all of that is as it was. Every other module goes the usual way. A bundle is made from images that the cache gives
out at the end of a build, and nothing is lost with it.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ._version import __version__
from .arch import Architecture
from .assembly import image_file
from .cache import KernelCache
from .documents import Described
from .gathering import Gathering, Wanted, Warnings
from .manifest import Omission, compact_json
from .records import MALFORMED, reads_in, still_holds
from .sbom import Listing
from .toolkit import Headers

__all__ = ["Bundles"]

_FEWEST = 512
"""Images of a build from which on bundles pay."""
_MODULES = 128
_TEXTS = 5
"""Texts of a module ahead of its images: of the manifest, three of the bill of materials, and its inputs."""
_LARGEST = 1 << 17
"""Bytes of all images of a module: larger ones are read one by one in no more time."""


class Bundles:
    """The bundles of one build."""

    def __init__(
        self,
        cache: KernelCache,
        modules: Sequence[Wanted],
        release: str,
        prefixes: Mapping[str, str],
        *,
        used: bool = True,
    ) -> None:
        """`release` is NVRTC's; `prefixes` those of the packages (assembly.Shipment). A report has a row for every
        image, and no bundle has those; a cache of a certain size has no room for images twice: none is `used` then."""
        self._cache = cache
        self._modules = modules
        self._release = release
        self._prefixes = prefixes
        self._used = used and cache.keeps_bundles and sum(len(module.architectures) for module in modules) >= _FEWEST
        self._stale: list[tuple[range, frozenset[int]]] = []
        """Numbers of the modules of each bundle that is to be made anew, and of those that it has."""

    def take(self, gathering: Gathering) -> Iterator[int]:
        """Hand over the modules that the bundles have, and give the numbers of the others."""
        if not self._used:
            yield from range(len(self._modules))
            return
        headers = Headers()
        for begin in range(0, len(self._modules), _MODULES):
            numbers = range(begin, min(begin + _MODULES, len(self._modules)))
            bundle = _Bundle.of(self._cache.bundle(self._name(numbers)))
            had: set[int] = set()
            complete = True
            for number in numbers:
                module = self._modules[number]
                key = self._key(module)
                found = bundle.find(key, module, headers)
                if found is None:
                    complete = complete and bundle.leaves_out(key)
                    yield number
                else:
                    gathering.place_all(number, *found)
                    had.add(number)
            self._cache.count_served(sum(len(self._modules[number].architectures) for number in had))
            if not complete:
                self._stale.append((numbers, frozenset(had)))

    def fill(self, gathering: Gathering) -> None:
        """Make those bundles anew that lacked a module, of what they had and of the images that the cache has now."""
        for numbers, had in self._stale:
            before = _Bundle.of(self._cache.bundle(self._name(numbers)))
            rows: dict[str, Any] = {}
            pieces: list[bytes] = []
            for number in numbers:
                key = self._key(self._modules[number])
                row, raw = (
                    before.copied(key) if number in had and before.rows.get(key) else self._row(number, gathering)
                )
                rows[key] = {**row, "at": sum(map(len, pieces))} if row else None
                pieces.append(raw)
            self._cache.keep_bundle(self._name(numbers), {"modules": rows}, b"".join(pieces))

    def _row(self, number: int, gathering: Gathering) -> tuple[dict[str, Any] | None, bytes]:
        """What is kept of a module in the record, and in the bytes; None where it is read as quickly without."""
        module = self._modules[number]
        if module.unit.parts or module.unit in gathering.absent:
            return None, b""
        found = {job: image for job, image in self._cache.look_again(gathering.jobs_of(module)) if image is not None}
        data = [image.data for image in found.values()]
        described = gathering.documents.described(module.spec.package, number)
        same = all(image.sha256 in described.manifest for image in found.values())  # as the wheel has them
        if len(found) != len(module.architectures) or not same or sum(map(len, data)) > _LARGEST:
            return None, b""
        listing = described.listing
        texts = [described.manifest, listing.components, listing.dependencies, listing.references]
        encoded = [text.encode() for text in (*texts, compact_json(listing.inputs).decode())]
        reads = {compact_json(image.reads.to_dict()): image.reads.to_dict() for image in found.values()}
        row = {
            "reads": list(reads.values()),
            "kernels": list(described.kernels),
            "texts": list(map(len, encoded)),
            "images": [len(image.data) for image in found.values()],
            "warnings": [[text, str(architecture)] for text, architecture in gathering.warnings_of(number)],
            "passed_over": [omission.to_dict() for omission in described.passed_over],
        }
        return row, b"".join([*encoded, *data])

    def _name(self, numbers: range) -> str:
        """Where a bundle stands: not by what it has, so that its successor takes its place."""
        modules = (self._modules[number] for number in numbers)
        named = [[module.spec.package, module.spec.name, *map(str, module.architectures)] for module in modules]
        return hashlib.sha256(compact_json(named)).hexdigest()

    def _key(self, module: Wanted) -> str:
        """Digest of all that is known before it is known which headers are read, and of what texts and names say."""
        unit = module.unit
        value = [
            __version__,
            self._release,
            list(map(str, module.architectures)),
            unit.content.hex(),
            unit.closure.files[unit.source].sha256,
            [unit.package, unit.module, self._prefixes[unit.package]],
        ]
        return hashlib.sha256(compact_json(value)).hexdigest()


@dataclass(frozen=True)
class _Bundle:
    """A bundle as the cache has it."""

    rows: Mapping[str, Any]
    raw: memoryview

    @classmethod
    def of(cls, entry: tuple[Mapping[str, Any], memoryview] | None) -> _Bundle:
        """An empty one where the cache has none."""
        record, raw = entry or ({}, memoryview(b""))
        rows = record.get("modules")
        return cls(rows if isinstance(rows, dict) else {}, raw)

    def leaves_out(self, key: str) -> bool:
        """Whether it is known that a module has no place here."""
        return key in self.rows and self.rows[key] is None

    def copied(self, key: str) -> tuple[dict[str, Any], bytes]:
        """What there is of a module, for another bundle."""
        row = self.rows[key]
        length = sum(row["texts"]) + sum(row["images"])
        return row, bytes(self.raw[row["at"] : row["at"] + length])

    def find(self, key: str, module: Wanted, headers: Headers) -> _Found | None:
        """A module, where what its compiles read is as it was."""
        row = self.rows.get(key)
        with suppress(*MALFORMED):
            if row and all(still_holds(reads_in(reads), module.unit, headers) for reads in row["reads"]):
                return self._read(row, module)
        return None

    def _read(self, row: Mapping[str, Any], module: Wanted) -> _Found:
        names = [image_file(module.spec.name, architecture) for architecture in module.architectures]
        sizes = [row["at"], *row["texts"], *row["images"]]
        if any(type(size) is not int or size < 0 for size in sizes) or len(sizes) != 1 + _TEXTS + len(names):
            raise ValueError(sizes)
        ends = list(itertools.accumulate(sizes))
        if ends[-1] > len(self.raw):
            raise ValueError(ends)
        parts = [bytes(self.raw[begin:end]) for begin, end in itertools.pairwise(ends)]
        manifest, components, dependencies, references, inputs = (part.decode() for part in parts[:_TEXTS])
        described = Described(
            package=module.spec.package,
            name=module.spec.name,
            kernels=tuple(map(_text, row["kernels"])),
            manifest=manifest,
            listing=Listing(components, dependencies, references, json.loads(inputs)),
            passed_over=tuple(Omission.from_dict(omission, "passed_over") for omission in row["passed_over"]),
        )
        images = list(zip(names, parts[_TEXTS:], strict=True))
        return images, described, [(_text(text), Architecture.parse(name)) for text, name in row["warnings"]]


def _text(value: object) -> str:
    """Raises TypeError or ValueError for what is no text that can be written."""
    if not isinstance(value, str):
        raise TypeError(value)
    value.encode()
    return value


_Found = tuple[list[tuple[str, bytes]], Described, Warnings]
