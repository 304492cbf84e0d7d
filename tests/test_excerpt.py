# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Parts of a large manifest, found where they lie."""

from __future__ import annotations

import io
import json
import os
import random
from dataclasses import replace
from pathlib import Path

import pytest
from support import run_python

from hatch_cuda_kernels import KernelNotFoundError, ManifestError
from hatch_cuda_kernels.arch import Architecture
from hatch_cuda_kernels.catalog import Shipped
from hatch_cuda_kernels.excerpt import find_kernel, find_module, read_outline
from hatch_cuda_kernels.manifest import (
    Fallback,
    Image,
    Manifest,
    Module,
    Resources,
    ShippedFile,
    canonical_json,
    squeeze_name,
)
from hatch_cuda_kernels.package import InstalledPackage

NAMES = [
    "k<'\\\\'>",
    "k<'\"'>",
    'k<"{\\n">',
    "k< float >",
    "ns::k",
    "größe",
    "核",
    "k<'['>",
    "a" * 9000,
    "_Z3fooi",
    "]",
    "{",
]
RESOURCES = Resources(
    registers=8, shared_bytes=0, local_bytes=0, stack_bytes=0, constant_bytes=400, spill_bytes=0
)  # fmt: skip


def make_manifest(modules: int, seed: int = 1, files: int = 3) -> Manifest:
    """Modules with kernels of their own, some odd names, and some names that several modules have."""
    chance = random.Random(seed)
    made = []
    for name in sorted({f"m{index}" for index in range(modules)} | {"zz[T=float,A=2]", "zz[T=half,A=2]", "ä.ö"}):
        kernels = {f"{name}_k": f"{name}_k"}
        if chance.random() < 0.1:
            kernels |= {kernel: f"sym{chance.randrange(9)}" for kernel in chance.sample(NAMES, 2)}
        images = tuple(
            Image(
                architecture=Architecture(number),
                file=f"{name.encode().hex()}.sm_{number}.cubin",
                size=9,
                sha256="0" * 64,
                entries=dict.fromkeys(kernels.values(), RESOURCES),
            )
            for number in (80, 90)
        )
        made.append(
            Module(
                name=name,
                source="k.cu",
                options={"a": {"b": [1]}},
                defines={"{": "["},
                include_dirs=(),
                toolkit_headers="auto",
                host_code="skip",
                name_expressions=(),
                kernels=kernels,
                images=images,
            )
        )
    shipped = {f"d/f{index}.cu": ShippedFile(size=1, sha256="1" * 64) for index in range(files)}
    return Manifest(package="demo", release="13.5.37", modules=tuple(made), fallback=Fallback(files=shipped))


def install(root: Path, data: bytes) -> Path:
    """A package with these bytes as its manifest."""
    (root / "_cuda_kernels").mkdir(parents=True, exist_ok=True)
    (root / "_cuda_kernels/manifest.json").write_bytes(data)
    return root


class Counting(io.BytesIO):
    """Counts the bytes that are read."""

    count = 0

    def read(self, size: int | None = -1) -> bytes:
        found = super().read(size)
        self.count += len(found)
        return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("files", [0, 3, 2000])
def test_same_as_the_whole(seed: int, files: int) -> None:
    """Every kernel and every module is found, as the whole manifest has it; what is not there is not."""
    manifest = make_manifest(120, seed, files)
    data = canonical_json(manifest.to_dict())
    stream = io.BytesIO(data)
    whole = json.loads(data)
    assert read_outline(stream, len(data)) == (1, "13.5.37", True)
    for kernel, modules in manifest.kernels.items():
        assert find_kernel(stream, len(data), kernel) == list(modules)
    for module in whole["modules"]:
        assert find_module(stream, len(data), module["name"]) == module
    for name in ["", "\0", "name", "files", "m", "m0", "m0x", "zzz", "compiler", "\U0010ffff", "package"]:
        assert (find_kernel(stream, len(data), name) or []) == list(manifest.kernels.get(name, []))
        known = {module["name"]: module for module in whole["modules"]}
        assert find_module(stream, len(data), name) == known.get(name)


def test_no_fallback() -> None:
    """That no sources are shipped is told."""
    data = canonical_json(replace(make_manifest(5), fallback=None).to_dict())
    assert read_outline(io.BytesIO(data), len(data)) == (1, "13.5.37", False)


def test_cost_is_flat() -> None:
    """A kernel among 10,000 images costs hardly more reading than one among 200."""
    counts = {}
    for modules in (100, 5000):
        data = canonical_json(make_manifest(modules).to_dict())
        stream = Counting(data)
        assert read_outline(stream, len(data))
        assert find_kernel(stream, len(data), "m77_k") == ["m77"]
        found = find_module(stream, len(data), "m77")
        assert found and found["name"] == "m77"
        counts[modules] = stream.count
    assert len(data) > 4_000_000
    assert counts[5000] < 3 * counts[100] < 2_000_000


class TestInstalled:
    """A package whose manifest is large."""

    def test_found_without_the_whole(self, tmp_path: Path) -> None:
        """Kernels, modules in any spelling, and what the compiler was: the whole is not read for them."""
        manifest = make_manifest(400)
        data = canonical_json(manifest.to_dict())
        source = Shipped(InstalledPackage("demo", install(tmp_path, data), piecemeal=True))
        assert (source.compiler, source.has_sources) == ((13, 5), True)
        module, kernel = source.find("m250_k")
        assert (module, kernel) == (next(m for m in manifest.modules if m.name == "m250"), "m250_k")
        assert source.find_module("zz[T=float,A=2]").name == "zz[T=float,A=2]"
        assert "manifest" not in vars(source.package)
        assert source.find("zz[A=2, T=half]:zz[T=half,A=2]_k")[0].name == "zz[T=half,A=2]"
        shared = next(kernel for kernel, modules in manifest.kernels.items() if len(modules) > 1)
        with pytest.raises(KernelNotFoundError, match=r"in \d+ modules"):
            source.find(shared)
        owner = manifest.kernels[shared][0]
        assert squeeze_name(source.find(f"{owner}:{shared}")[1]) == shared
        with pytest.raises(KernelNotFoundError, match="did you mean 'm250_k'"):
            source.find("m250_kk")

    def test_written_otherwise(self, tmp_path: Path) -> None:
        """JSON that is not laid out, or not sorted, as we write it, or has no index, is read as a whole."""
        value = make_manifest(400).to_dict()
        reverse = {**value, "modules": value["modules"][::-1]}
        reverse.pop("kernels")
        bare = {key: entry for key, entry in value.items() if key != "kernels"}
        texts = [
            json.dumps(value),
            json.dumps(value, indent=2),
            json.dumps(value, indent=1),
            json.dumps(reverse, indent=1, sort_keys=True),
            json.dumps(bare, indent=1, sort_keys=True),
            json.dumps(value, indent=1, sort_keys=True).replace("\n", "\r\n"),
            json.dumps(value, indent="\t", sort_keys=True),
        ]
        for text in texts:
            package = InstalledPackage("demo", install(tmp_path, text.encode()), piecemeal=True)
            source = Shipped(package)
            for name in ("m0", "m399", "m77", "zz[T=half,A=2]"):
                assert source.find(f"{name}_k")[0].name == name
                assert source.find_module(name).name == name
            with pytest.raises(KernelNotFoundError):
                source.find("nothing")

    def test_damage(self, tmp_path: Path) -> None:
        """A damaged module is told of when it is used, damage elsewhere when the whole is read."""
        value = make_manifest(400).to_dict()
        value["modules"][200]["images"][0]["size"] = -1
        name = value["modules"][200]["name"]
        source = Shipped(InstalledPackage("demo", install(tmp_path, canonical_json(value)), piecemeal=True))
        assert source.find("m7_k")[0].name == "m7"
        with pytest.raises(ManifestError, match=r"demo: .*manifest\.json: modules\[m.*\]\.images\[0\]\.size"):
            source.find(f"{name}_k")
        with pytest.raises(ManifestError, match=r"modules\[200\]\.images\[0\]\.size"):
            _ = source.package.manifest

    def test_wrong_index(self, tmp_path: Path) -> None:
        """An index that names a module without that kernel finds nothing; as a whole such a manifest is refused."""
        value = make_manifest(400).to_dict()
        value["kernels"]["m7_k"] = ["m8"]
        source = Shipped(InstalledPackage("demo", install(tmp_path, canonical_json(value)), piecemeal=True))
        with pytest.raises(ManifestError, match="kernels: it is not the index"):
            source.find("m7_k")

    def test_later_schema(self, tmp_path: Path) -> None:
        """A manifest of a later schema is refused at once."""
        value = {**make_manifest(400).to_dict(), "schema": 2}
        with pytest.raises(ManifestError, match="schema 2 is newer"):
            InstalledPackage("demo", install(tmp_path, canonical_json(value)), piecemeal=True)

    def test_torn_text(self, tmp_path: Path) -> None:
        """Cut, overwritten or repeated anywhere: a right answer or a ManifestError."""
        chance = random.Random(5)
        whole = canonical_json(make_manifest(400).to_dict())
        for _ in range(60):
            data = bytearray(whole)
            begin = chance.randrange(len(data))
            end = min(len(data), begin + chance.choice([1, 20, 5000]))
            data[begin:end] = chance.choice([b"", b"\xff", b"\n  {\n", b'\n  "', data[:3000], b"NaN", b"[" * 3000])
            try:
                found = Shipped(InstalledPackage("demo", install(tmp_path, bytes(data)), piecemeal=True)).find("m77_k")
            except (ManifestError, KernelNotFoundError):
                continue
            assert found[0].name == "m77"


@pytest.mark.parametrize("modules", [2, 400])
def test_read_once(tmp_path: Path, modules: int) -> None:
    """A first load opens a small manifest once; of a large one it reads a part at a time."""
    files = install(tmp_path / "site/demo", canonical_json(make_manifest(modules).to_dict()))
    code = f"""
from pathlib import Path
from hatch_cuda_kernels.package import InstalledPackage
opened = []
sys.addaudithook(lambda event, args: event == "open" and opened.append(str(args[0])))
package = InstalledPackage("demo", Path({str(files)!r}), piecemeal=True)
assert package.modules_with("m1_k") and package.module("m1")
report(sum(path.endswith("manifest.json") for path in opened))
"""
    assert run_python(code, dict(os.environ)).value == (1 if modules == 2 else 3)
