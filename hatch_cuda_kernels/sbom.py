# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The wheel's bill of materials: which images it has, and what each was made of and by.

CycloneDX JSON for `.dist-info/sboms/` (PEP 770). It is a function of what was compiled: no time stamp, and a serial
number that is a digest of the rest, so that two builds of one tree stay equal byte for byte.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ._version import __version__
from .manifest import canonical_json, compact_json

__all__ = ["SBOM_FILE", "Origin", "bill_of_materials"]

SBOM_FILE = "hatch-cuda-kernels.cdx.json"
_NAMESPACE = uuid.UUID("6f1c3a52-8f57-5c0e-9d0b-51d3a6c86a1e")
_PROPERTY = "hatch-cuda-kernels"


@dataclass(frozen=True, kw_only=True)
class Origin:
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


def bill_of_materials(name: str, version: str, release: str, origins: Iterable[Origin]) -> bytes:
    """The document for the distribution `name`, whose images NVRTC `release` made."""
    root = f"pkg:pypi/{re.sub(r'[-_.]+', '-', name).lower()}@{version}"
    compiler = f"nvrtc@{release}"
    components: dict[str, dict[str, Any]] = {
        compiler: {
            "type": "application",
            "bom-ref": compiler,
            "name": "NVRTC",
            "version": release,
            "supplier": {"name": "NVIDIA Corporation"},
            "description": "the compiler of all images; the CUDA headers that it carries belong to its release",
        }
    }
    depends: dict[str, list[str]] = {root: []}
    for origin in sorted(origins, key=lambda origin: origin.path):
        image = f"image:{origin.path}"
        facts = {"module": origin.module, "architecture": origin.architecture, "source": origin.source}
        components[image] = _file(image, origin.path, origin.sha256, facts)
        depends[root].append(image)
        inputs = [compiler]
        if origin.linker:
            reference = f"nvjitlink@{origin.linker}"
            components.setdefault(reference, _linker(reference, origin.linker))
            inputs.append(reference)
        for kind, files in (("source", origin.files), ("header", origin.installed)):
            for label, digest in sorted(files.items()):
                reference = f"{kind}:{label}@{digest[:16]}"
                components.setdefault(reference, _file(reference, label, digest, {"kind": kind}))
                inputs.append(reference)
        depends[image] = sorted(inputs)
    document: dict[str, Any] = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "tools": {"components": [{"type": "application", "name": "hatch-cuda-kernels", "version": __version__}]},
            "component": {"type": "library", "bom-ref": root, "name": name, "version": version, "purl": root},
        },
        "components": [components[reference] for reference in sorted(components)],
        "dependencies": [{"ref": reference, "dependsOn": found} for reference, found in sorted(depends.items())],
    }
    document["serialNumber"] = uuid.uuid5(_NAMESPACE, compact_json(document).decode()).urn
    return canonical_json(document)


def _linker(reference: str, release: str) -> dict[str, Any]:
    return {
        "type": "application",
        "bom-ref": reference,
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
