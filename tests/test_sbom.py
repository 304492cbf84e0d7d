# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The bill of materials in a wheel."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from projects import KERNEL, Project, make_project, manifest_of

from hatch_cuda_kernels import __version__
from hatch_cuda_kernels.sbom import Origin, bill_of_materials, list_images

SBOM = "demo-1.0.dist-info/sboms/hatch-cuda-kernels.cdx.json"
FILES = {
    "demo/scale.cu": '#include "value.cuh"\n' + KERNEL,
    "demo/value.cuh": "// a header\n",
    "demo/unread.cuh": "// nobody reads it\n",
    "demo/two.cu": KERNEL.replace("scale", "two"),
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Two modules, one of which reads a header, for two architectures."""
    return make_project(tmp_path_factory.mktemp("sbom"), 'archs = ["sm_80", "compute_80"]', FILES)


@pytest.fixture(scope="module")
def wheel(project: Project) -> Path:
    """Its wheel."""
    run = project.build()
    assert run.status == 0, run.output
    return project.wheel()


def read(wheel: Path) -> dict[str, Any]:
    """The document in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        value = json.loads(archive.read(SBOM))
    assert isinstance(value, dict)
    return value


@pytest.mark.slow
def test_schema(wheel: Path) -> None:
    """The document is CycloneDX 1.6 by the published schema, and RECORD has it."""
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(SBOM).decode()
        assert SBOM in archive.read("demo-1.0.dist-info/RECORD").decode()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    damaged = text.replace('"CycloneDX"', '"something"')
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(damaged) is not None


def test_what_is_in_it(wheel: Path) -> None:
    """Compiler, images and every file that was read, with digests that are those of the files."""
    document, manifest = read(wheel), manifest_of(wheel)
    assert document["metadata"]["component"]["purl"] == "pkg:pypi/demo@1.0"
    (tool,) = document["metadata"]["tools"]["components"]
    assert (tool["name"], tool["version"]) == ("hatch-cuda-kernels", __version__)
    components = {found["bom-ref"]: found for found in document["components"]}
    by_name = {found["name"]: found for found in document["components"]}
    assert by_name["NVRTC"]["version"] == manifest["compiler"]["release"]
    with zipfile.ZipFile(wheel) as archive:
        for module in manifest["modules"]:
            for image in module["images"]:
                path = f"demo/_cuda_kernels/{image['file']}"
                (digest,) = by_name[path]["hashes"]
                assert digest == {"alg": "SHA-256", "content": hashlib.sha256(archive.read(path)).hexdigest()}
    for name in ("demo/scale.cu", "demo/value.cuh", "demo/two.cu"):
        (digest,) = by_name[name]["hashes"]
        assert digest["content"] == hashlib.sha256(FILES[name].encode()).hexdigest()
    assert "demo/unread.cuh" not in by_name
    inputs = {
        found["ref"]: [components[ref]["name"] for ref in found["dependsOn"]] for found in document["dependencies"][:-1]
    }
    assert inputs["image:demo/_cuda_kernels/scale.sm_80.cubin"] == ["NVRTC", "demo/scale.cu", "demo/value.cuh"]
    assert inputs["image:demo/_cuda_kernels/two.compute_80.ptx"] == ["NVRTC", "demo/two.cu"]
    assert len(inputs) == 4


@pytest.mark.slow
def test_toolkit_headers(tmp_path: Path) -> None:
    """Headers that an installed toolkit wheel brought are listed with their digests."""
    source = "#include <cuda_fp16.h>\n" + KERNEL
    project = make_project(tmp_path, 'archs = ["sm_80"]\ntoolkit-headers = "installed"', {"demo/scale.cu": source})
    run = project.build()
    assert run.status == 0, run.output
    headers = {found["name"]: found for found in read(project.wheel())["components"] if "header:" in found["bom-ref"]}
    assert "cuda_fp16.h" in headers
    assert all(len(found["hashes"][0]["content"]) == 64 for found in headers.values())


def test_same_on_a_hit(project: Project, wheel: Path, tmp_path: Path) -> None:
    """The document of a build out of the cache is that of the build that compiled."""
    again = project.build(out=tmp_path)
    assert again.report is not None and again.report["compiled"] == 0
    assert read(project.wheel(tmp_path)) == read(wheel)


def document(*origins: Origin) -> Any:
    """The document of some images."""
    listing = list_images(origins, "13.5.37")
    texts = bill_of_materials(
        "demo",
        "1",
        lambda: [listing.components],
        lambda: [listing.dependencies],
        lambda: [listing.references],
        listing.inputs,
    )
    return json.loads(b"".join(texts))


def test_the_serial_number_is_a_digest() -> None:
    """Another input gives another number, and the same inputs the same one."""
    origin = Origin(
        path="k", sha256="0", module="m", architecture="sm_80", source="k.cu", files={"k.cu": "1"}, installed={}
    )
    one = document(origin)
    assert one == document(origin)
    for other in (
        [origin._replace(files={"k.cu": "2"})],
        [origin._replace(installed={"h.h": "1"})],
        [origin._replace(linker="13.5.37")],
        [origin._replace(sha256="1")],
        [origin, origin._replace(path="l")],
    ):
        assert one["serialNumber"] != document(*other)["serialNumber"]
