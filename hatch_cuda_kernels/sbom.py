# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The wheel's bill of materials: which images it has, and what each was made of and by.

CycloneDX JSON for `.dist-info/sboms/` (PEP 770). It is a function of what was compiled: no time stamp, and a serial
number that is a digest of the rest, so that two builds of one tree stay equal byte for byte.
"""

from __future__ import annotations

import hashlib
import itertools
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ._version import __version__
from .manifest import Verbatim, canonical_lines, canonical_pieces, compact_json

__all__ = ["SBOM_FILE", "Listing", "Origin", "bill_of_materials", "list_images", "sources_in"]

SBOM_FILE = "hatch-cuda-kernels.cdx.json"
_NAMESPACE = uuid.UUID("6f1c3a52-8f57-5c0e-9d0b-51d3a6c86a1e")
_PROPERTY = "hatch-cuda-kernels"
_IMAGE = "image:"


class Origin(NamedTuple):
    """One image of a wheel, and what its compile read."""

    path: str
    """Path in the wheel."""
    sha256: str
    module: str
    architecture: str
    source: str
    """Label of the source."""
    files: Mapping[str, str]
    """Project files that were read, the source among them, by label -> SHA-256 in hex."""
    installed: Mapping[str, str]
    """Headers of installed packages that were read, as `#include` names them -> SHA-256 in hex, or "" if unknown."""
    linker: str = ""
    """Release of nvJitLink, where it linked the image."""


class Listing(NamedTuple):
    """What the document says of some images, as its text."""

    components: str
    dependencies: str
    references: str
    """How the dependencies of the whole name them."""
    inputs: Mapping[str, str]
    """Reference of everything that they were made of and by -> its component."""


def list_images(origins: Sequence[Origin], release: str) -> Listing:
    """The texts of some images that NVRTC `release` made."""
    compiler = f"nvrtc@{release}"
    inputs = {compiler: _element(_compiler(compiler, release))}
    for origin in origins:
        if origin.linker:
            inputs[f"nvjitlink@{origin.linker}"] = _element(_linker(origin.linker))
        for kind, files in _read(origin):
            for label, digest in files.items():
                if (reference := _reference(kind, label, digest)) not in inputs:
                    inputs[reference] = _element(_file(reference, label, digest, {"kind": kind}))
    references = [_IMAGE + origin.path for origin in origins]
    depends = ({"ref": _IMAGE + origin.path, "dependsOn": _depends(compiler, origin)} for origin in origins)
    return Listing(
        components=_BETWEEN.join(_element(_image(origin)) for origin in origins),
        dependencies=_BETWEEN.join(map(_element, depends)),
        references=", ".join(map(_element, references)),
        inputs=inputs,
    )


def bill_of_materials(
    name: str,
    version: str,
    components: Callable[[], Iterable[str]],
    dependencies: Callable[[], Iterable[str]],
    references: Callable[[], Iterable[str]],
    inputs: Mapping[str, str],
) -> Iterator[bytes]:
    """The document for the distribution `name`, piece by piece, from the columns of its images' listings."""
    root = f"pkg:pypi/{re.sub(r'[-_.]+', '-', name).lower()}@{version}"
    document: dict[str, Any] = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "tools": {"components": [{"type": "application", "name": "hatch-cuda-kernels", "version": __version__}]},
            "component": {"type": "library", "bom-ref": root, "name": name, "version": version, "purl": root},
        },
    }
    others = [(reference, inputs[reference]) for reference in sorted(inputs)]
    state = hashlib.sha256(compact_json([document, others]))
    for text in itertools.chain(components(), dependencies()):
        state.update(text.encode())
    document["serialNumber"] = uuid.uuid5(_NAMESPACE, state.hexdigest()).urn
    before = (text for reference, text in others if reference < _IMAGE)
    after = (text for reference, text in others if reference >= _IMAGE)
    whole = '{"dependsOn": [' + ", ".join(references()) + f'], "ref": {_element(root)}}}'
    return canonical_pieces(
        {
            **document,
            "components": map(Verbatim, itertools.chain(before, components(), after)),
            "dependencies": map(Verbatim, itertools.chain(dependencies(), [whole])),
        },
        levels=2,
    )


_BETWEEN = ",\n  "
"""Between two elements of the document's lists."""


def _element(value: object) -> str:
    return "".join(canonical_lines(value, "", 0))


def sources_in(inputs: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Label of each source file among the references of a listing, and as much of its digest as these have."""
    for reference in inputs:
        if reference.startswith("source:"):
            label, _, digest = reference.removeprefix("source:").rpartition("@")
            yield label, digest


def _read(origin: Origin) -> tuple[tuple[str, Mapping[str, str]], ...]:
    return ("source", origin.files), ("header", origin.installed)


def _reference(kind: str, label: str, digest: str) -> str:
    return f"{kind}:{label}@{digest[:16]}"


def _depends(compiler: str, origin: Origin) -> list[str]:
    linker = [f"nvjitlink@{origin.linker}"] if origin.linker else []
    read = (_reference(kind, label, digest) for kind, files in _read(origin) for label, digest in files.items())
    return sorted([compiler, *linker, *read])


def _image(origin: Origin) -> dict[str, Any]:
    facts = {"module": origin.module, "architecture": origin.architecture, "source": origin.source}
    return _file(_IMAGE + origin.path, origin.path, origin.sha256, facts)


def _compiler(reference: str, release: str) -> dict[str, Any]:
    return {
        "type": "application",
        "bom-ref": reference,
        "name": "NVRTC",
        "version": release,
        "supplier": {"name": "NVIDIA Corporation"},
        "description": "the compiler of all images; the CUDA headers that it carries belong to its release",
    }


def _linker(release: str) -> dict[str, Any]:
    return {
        "type": "application",
        "bom-ref": f"nvjitlink@{release}",
        "name": "nvJitLink",
        "version": release,
        "supplier": {"name": "NVIDIA Corporation"},
        "description": "the linker of the images that depend on it",
    }


def _file(reference: str, name: str, digest: str, facts: Mapping[str, str]) -> dict[str, Any]:
    component: dict[str, Any] = {"type": "file", "bom-ref": reference, "name": name}
    if digest:
        component["hashes"] = [{"alg": "SHA-256", "content": digest}]
    component["properties"] = [{"name": f"{_PROPERTY}:{key}", "value": value} for key, value in sorted(facts.items())]
    return component
