# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The manifest: it comes back as it was written, and anything else is a ManifestError that names the place."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hatch_cuda_kernels import ManifestError
from hatch_cuda_kernels.arch import Architecture
from hatch_cuda_kernels.manifest import (
    Fallback,
    Image,
    Manifest,
    Module,
    Resources,
    ShippedFile,
    canonical_json,
    check_relative_path,
    squeeze_name,
)
from hatch_cuda_kernels.package import InstalledPackage

WHERE = "pkg: _cuda_kernels/manifest.json"
RESOURCES = Resources(registers=32, shared_bytes=4096, local_bytes=0, stack_bytes=8, constant_bytes=552, spill_bytes=16)
MANIFEST = Manifest(
    package="pkg.sub",
    release="13.5.37",
    modules=(
        Module(
            name="saxpy",
            source="pkg/saxpy.cu",
            options={"std": "c++20", "diag-suppress": [177]},
            defines={"N": "4", "BARE": True},
            include_dirs=(".", "include"),
            toolkit_headers="auto",
            host_code="skip",
            name_expressions=("k<float>",),
            kernels={"k<float>": "_Z1kIfEvv", "saxpy": "saxpy"},
            images=(
                Image(
                    architecture=Architecture.parse("sm_90a"),
                    file="saxpy.sm_90a.cubin",
                    size=4096,
                    sha256="ab" * 32,
                    entries={"_Z1kIfEvv": RESOURCES, "saxpy": RESOURCES},
                    kernels={"k<float>": "other"},
                ),
                Image(
                    architecture=Architecture.parse("compute_90"),
                    file="saxpy.compute_90.ptx",
                    size=1,
                    sha256="cd" * 32,
                    entries={"saxpy": None},
                ),
            ),
        ),
        Module(
            name="empty",
            source="pkg/sub/empty.cu",
            options={},
            defines={},
            include_dirs=(),
            toolkit_headers="none",
            host_code="error",
            name_expressions=(),
            kernels={},
            images=(),
        ),
    ),
    fallback=Fallback(files={"pkg/saxpy.cu": ShippedFile(size=10, sha256="ef" * 32)}),
)


def parse(value: object) -> Manifest:
    """Read a manifest that holds `value`."""
    return Manifest.from_bytes(json.dumps(value).encode(), WHERE)


def message(data: bytes) -> str:
    """What is said of bytes that are no manifest, without the file's name."""
    with pytest.raises(ManifestError) as caught:
        Manifest.from_bytes(data, WHERE)
    assert str(caught.value).startswith(f"{WHERE}: ")
    return str(caught.value).removeprefix(f"{WHERE}: ")


def changed(path: str, value: object) -> Any:
    """The good manifest with one value replaced, or dropped where `value` is DROP."""
    tree: Any = copy.deepcopy(MANIFEST.to_dict())
    *parents, last = [int(part) if part.isdigit() else part for part in path.split("/")]
    node = tree
    for part in parents:
        node = node[part]
    if value is DROP:
        del node[last]
    else:
        node[last] = value
    return tree


DROP = object()


def test_round_trip() -> None:
    """A manifest comes back equal, and is written with the same bytes again."""
    data = canonical_json(MANIFEST.to_dict())
    assert Manifest.from_bytes(data, WHERE) == MANIFEST
    assert canonical_json(Manifest.from_bytes(data, WHERE).to_dict()) == data
    without = Manifest(package="p", release="12.9.86", modules=(), fallback=None)
    assert Manifest.from_bytes(canonical_json(without.to_dict()), WHERE) == without


def test_canonical_json() -> None:
    """Keys are sorted, text is UTF-8, and the order of insertion leaves no trace."""
    assert canonical_json({"b": "\u00e4", "a": 1}) == canonical_json({"a": 1, "b": "\u00e4"})
    assert canonical_json({"b": "\u00e4", "a": [1]}) == '{\n "a": [\n  1\n ],\n "b": "\u00e4"\n}\n'.encode()


@pytest.mark.parametrize("levels", range(7))
def test_canonical_json_in_lines(levels: int) -> None:
    """Whatever is on lines of its own, it is the same value; what lies deeper is on one line, and sorted as well."""
    value: Any = {
        "b": [],
        "a": {"z": [{"y": {"q": [1, [2.5, None]], "p": {}}}, [], True]},
        "c": "\n",
        "long": [0] * 9999,
    }
    text = canonical_json(value, levels=levels)
    assert json.loads(text) == value
    assert text == canonical_json(json.loads(text), levels=levels)
    assert max(len(line) - len(line.lstrip(b" ")) for line in text.splitlines()) == levels
    assert b'{"p": {}, "q": [1, [2.5, null]]}' in text or levels > 4


@pytest.mark.parametrize("items", [[], [1], [{"b": 2, "a": [3]}, [], "x"] * 3000])
def test_canonical_json_of_an_iterator(items: list[Any]) -> None:
    """A list that is made as it is written gives the text of one that was there."""
    assert canonical_json({"a": iter(items)}) == canonical_json({"a": items})
    assert MANIFEST.to_bytes() == canonical_json(MANIFEST.to_dict())


def test_lowered_name_of_an_image() -> None:
    """An image's own lowered name wins over its module's; a kernel that it leaves out has none."""
    module = MANIFEST.modules[0]
    cubin, ptx = module.images
    assert module.lowered("saxpy", cubin) == module.lowered("saxpy", ptx) == "saxpy"
    assert module.lowered("k<float>", cubin) is None
    assert module.lowered("k<float>", ptx) is None
    assert module.lowered("nothing", cubin) is None


def test_cuda_version() -> None:
    """The compiler's release tells the CUDA version that its PTX needs."""
    assert MANIFEST.cuda_version == (13, 5)


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("schema", DROP, "schema: expected 1, found None"),
        ("schema", 2, "schema 2 is newer than this hatch-cuda-kernels reads (1); upgrade it"),
        ("schema", 0, "schema: expected 1, found 0"),
        ("schema", -1, "schema: expected 1, found -1"),
        ("schema", "1", "schema: expected 1, found '1'"),
        ("schema", True, "schema: expected 1, found True"),
        ("schema", 1.0, "schema: expected 1, found 1.0"),
        ("package", DROP, "manifest.package: expected a string, found None"),
        ("package", "", "manifest.package: expected a string"),
        ("compiler", DROP, "compiler: expected an object"),
        ("compiler/release", 13, "compiler.release: expected a string"),
        ("compiler/release", "13", "compiler.release: '13' is no NVRTC release"),
        ("compiler/release", "13.5.37 ", "compiler.release: "),
        ("compiler/release", "13.\u0665", "compiler.release: "),
        ("compiler/release", "9999.1", "compiler.release: "),
        ("modules", {}, "manifest.modules: expected an array, found dict"),
        ("modules/1", [], "modules[1]: expected an object, found list"),
        ("modules/1/name", "saxpy", "modules: two have the same name"),
        ("modules/0/name", DROP, "modules[0].name: expected a string"),
        ("modules/0/name", "a\0b", "modules[0].name: expected a string"),
        ("modules/0/source", 1, "modules[0].source: expected a string"),
        ("modules/0/source", "../x.cu", "modules[0].source: '../x.cu' is not a path inside the package"),
        ("modules/0/options", [], "modules[0].options: expected an object"),
        ("modules/0/defines", DROP, "modules[0].defines: expected an object"),
        ("modules/0/defines/N", 4, "modules[0].defines: values must be strings or true"),
        ("modules/0/defines/N", False, "modules[0].defines: values must be strings or true"),
        ("modules/0/include_dirs", "include", "modules[0].include_dirs: expected an array"),
        ("modules/0/include_dirs/1", 1, "modules[0].include_dirs: expected strings"),
        ("modules/0/include_dirs/1", "..", "modules[0].include_dirs: '..' is not a path inside the package"),
        ("modules/0/host_code", "all", "modules[0].host_code: unknown value 'all'"),
        ("modules/0/toolkit_headers", "all", "modules[0].toolkit_headers: unknown value 'all'"),
        ("modules/0/name_expressions", [1], "modules[0].name_expressions: expected strings"),
        ("modules/0/kernels", [], "modules[0].kernels: expected an object"),
        ("modules/0/kernels/saxpy", None, "modules[0].kernels: expected strings"),
        ("modules/0/images", None, "modules[0].images: expected an array, found NoneType"),
        ("modules/0/images/1", 1, "modules[0].images[1]: expected an object, found int"),
        ("modules/0/images/1/architecture", "sm_9", "modules[0].images[1].architecture: 'sm_9' is no architecture"),
        ("modules/0/images/1/architecture", DROP, "modules[0].images[1].architecture: expected a string"),
        ("modules/0/images/1/format", "cubin", "modules[0].images[1].format: compute_90 is ptx, not 'cubin'"),
        ("modules/0/images/1/format", DROP, "modules[0].images[1].format: compute_90 is ptx, not None"),
        ("modules/0/images/1/file", "a/b.ptx", "modules[0].images[1].file: 'a/b.ptx' is not the name of an image"),
        ("modules/0/images/1/file", "manifest.json", "modules[0].images[1].file: 'manifest.json' is not the name"),
        ("modules/0/images/1/file", "SAXPY.sm_90a.cubin", "modules: two images have the same file"),
        ("modules/0/images/1/size", 0, "modules[0].images[1].size: 0 is not the size of an image"),
        ("modules/0/images/1/size", 2**62, "modules[0].images[1].size: "),
        ("modules/0/images/1/size", 10**30, "modules[0].images[1].size: expected a count"),
        ("modules/0/images/1/size", -1, "modules[0].images[1].size: expected a count, found -1"),
        ("modules/0/images/1/size", True, "modules[0].images[1].size: expected a count, found True"),
        ("modules/0/images/1/size", 4096.0, "modules[0].images[1].size: expected a count, found 4096.0"),
        ("modules/0/images/1/sha256", "AB" * 32, "modules[0].images[1].sha256: "),
        ("modules/0/images/1/sha256", "ab" * 31, "modules[0].images[1].sha256: "),
        ("modules/0/images/1/sha256", "ab" * 32 + "\n", "modules[0].images[1].sha256: "),
        ("modules/0/images/1/sha256", DROP, "modules[0].images[1].sha256: expected a string"),
        ("modules/0/images/1/entries", DROP, "modules[0].images[1].entries: expected an object"),
        ("modules/0/images/1/kernels", {"k": 1}, "modules[0].images[1].kernels: expected strings"),
        ("modules/0/images/0/entries/saxpy", [], "modules[0].images[0].entries.saxpy: expected an object"),
        ("modules/0/images/0/entries/saxpy/registers", "8", "modules[0].images[0].entries.saxpy.registers: expected"),
        ("modules/0/images/0/entries/saxpy/spill_bytes", DROP, "modules[0].images[0].entries.saxpy.spill_bytes: "),
        ("modules/0/images/0/entries/saxpy/stack_bytes", 2**63, "modules[0].images[0].entries.saxpy.stack_bytes: "),
        ("fallback", 0, "fallback: expected an object, found int"),
        ("fallback", {}, "fallback.files: expected an object"),
        ("fallback/files/y.cu", {}, "fallback.files.y.cu.size: expected a count"),
        ("fallback/files/..", {}, "fallback.files...: '..' is not a path inside the package"),
        ("fallback/files/x", [], "fallback.files.x: expected an object"),
        ("fallback/files/x", {"size": 1, "sha256": "x"}, "fallback.files.x.sha256: 'x' is no SHA-256 digest in hex"),
    ],
)
def test_an_error_names_its_path(path: str, value: object, told: str) -> None:
    """Whatever is wrong, the error names the file and the place in it."""
    assert message(json.dumps(changed(path, value)).encode()).startswith(told)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "not JSON ("),
        (b"{", "not JSON ("),
        (b"\xff\xfe", "not JSON ("),
        (b"\xef\xbb\xbf{}", "not JSON ("),
        (b'{"schema": 1} x', "not JSON ("),
        (b'{"schema": NaN}', "not JSON (NaN is not allowed)"),
        (b'{"schema": -Infinity}', "not JSON (-Infinity is not allowed)"),
        (b'{"schema": 1e999}', "schema: expected 1, found inf"),
        (b'{"schema": ' + b"9" * 5000 + b"}", ""),
        (b"[]", "manifest: expected an object, found list"),
        (b"null", "manifest: expected an object, found NoneType"),
        (b'"schema"', "manifest: expected an object, found str"),
        (b"[" * 100_000, "not JSON ("),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "not JSON ("),
    ],
)
def test_no_manifest_at_all(data: bytes, told: str) -> None:
    """Damaged, absurd and deeply nested files are refused in one line."""
    assert message(data).startswith(told)


def test_every_truncation() -> None:
    """A manifest that was cut off anywhere is refused."""
    data = canonical_json(MANIFEST.to_dict()).rstrip()
    for length in range(len(data)):
        with pytest.raises(ManifestError):
            Manifest.from_bytes(data[:length], WHERE)


OUTSIDE = [
    "",
    ".",
    "..",
    "./a",
    "../a",
    "a/..",
    "a/../b",
    "a/./b",
    "a//b",
    "a/",
    "/a",
    "//a/b",
    "\\a",
    "..\\a",
    "a\\..\\b",
    "C:a",
    "C:/a",
    "c:\\a",
    "a:stream",
    "\\\\server\\share",
    "a\0b",
    "a\nb",
    "a\x1fb",
    "... /a",
    ".. /a",
    "a/.. ",
    "a/...",
    "a.",
    "a ",
    "\ud800",
    "x" * 5000,
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_paths_that_leave_the_package(path: str) -> None:
    """A path that leaves the package on any system, or is none there, is refused wherever it stands."""
    with pytest.raises(ManifestError, match="is not a path inside the package"):
        check_relative_path(path, "where")
    for place in ("modules/0/source", "modules/0/images/1/file", "modules/0/include_dirs/1"):
        if path == "." and place.endswith("dirs/1"):
            continue  # the folder of the shipped sources itself
        with pytest.raises(ManifestError):
            parse(changed(place, path))
    tree = MANIFEST.to_dict()
    tree["fallback"]["files"][path] = {"size": 1, "sha256": "ab" * 32}
    with pytest.raises(ManifestError):
        parse(tree)


@pytest.mark.parametrize(
    "path", ["a", "a/b.cuh", "..a", "a..b/c", ".hidden", "a b/c,d;e=f", "\u00e4/\u4e2d.cuh", "-x", "~"]
)
def test_paths_inside_the_package(path: str) -> None:
    """Odd names that mean the same file on every system are let through."""
    assert check_relative_path(path, "where") == path


@pytest.mark.parametrize(
    ("name", "squeezed"),
    [
        ("k", "k"),
        ("  k\t", "k"),
        ("k< float >", "k<float>"),
        ("k<unsigned  int>", "k<unsigned int>"),
        ("k < a::b , 3 >", "k<a::b,3>"),
        ("ns :: k<const float *>", "ns::k<const float*>"),
        ("k<long\nlong>", "k<long long>"),
    ],
)
def test_squeeze_name(name: str, squeezed: str) -> None:
    """White space that C++ does not need does not distinguish kernels; what it needs stays."""
    assert squeeze_name(name) == squeezed
    assert squeeze_name(squeezed) == squeezed


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(OUTSIDE[:-1]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def places(node: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value in a tree."""
    keys: Any = node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    return [at, *(place for key in keys for place in places(node[key], (*at, key)))]


PLACES = places(MANIFEST.to_dict())[1:]


def survives(read: Callable[[], Manifest]) -> None:
    """Whatever was read is a manifest that can be written and read again, or was refused as one."""
    try:
        manifest = read()
    except ManifestError as error:
        assert str(error).startswith(f"{WHERE}: ")
        return
    assert parse(manifest.to_dict()) == manifest
    for module in manifest.modules:
        for image in module.images:
            assert "/" not in image.file
            assert "\\" not in image.file
            assert image.file.encode()


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PLACES), JSON), min_size=1, max_size=3))
def test_fuzzed_values(mutations: list[tuple[tuple[Any, ...], Any]]) -> None:
    """A manifest with any values replaced is a manifest or a ManifestError, never another exception."""
    tree = copy.deepcopy(MANIFEST.to_dict())
    for (*parents, last), value in mutations:
        node: Any = tree
        try:
            for part in parents:
                node = node[part]
            node[last] = value
        except (LookupError, TypeError):
            continue
    survives(lambda: parse(tree))


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=4))
def test_fuzzed_bytes(flips: list[tuple[int, int]]) -> None:
    """A manifest with any bytes replaced is a manifest or a ManifestError, never another exception."""
    data = bytearray(canonical_json(MANIFEST.to_dict()))
    for position, value in flips:
        data[position % len(data)] = value
    survives(lambda: Manifest.from_bytes(bytes(data), WHERE))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    """Any bytes at all are a ManifestError."""
    with pytest.raises(ManifestError):
        Manifest.from_bytes(data, WHERE)


def test_missing(tmp_path: Path) -> None:
    """A manifest that is not there, or is a folder, is a ManifestError that names the file and the cure."""
    told = r"pkg: _cuda_kernels/manifest\.json cannot be read \(.+\); reinstall the package"
    with pytest.raises(ManifestError, match=told):
        InstalledPackage("pkg", tmp_path)
    (tmp_path / "_cuda_kernels/manifest.json").mkdir(parents=True)
    with pytest.raises(ManifestError, match=told):
        InstalledPackage("pkg", tmp_path)


@pytest.mark.parametrize("depth", [10, 200, sys.getrecursionlimit() // 2, 10_000])
def test_nested_options(depth: int) -> None:
    """Options nested however deeply are read or refused."""
    data = json.dumps(changed("modules/0/options", {"x": "HERE"})).encode()
    survives(lambda: Manifest.from_bytes(data.replace(b'"HERE"', b"[" * depth + b"]" * depth), WHERE))
