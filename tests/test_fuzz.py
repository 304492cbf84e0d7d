# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Whatever is parsed: any input gives a result or a typed error, in bounded time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jobs import KERNEL, compile_alone, make_job, write

from hatch_cuda_kernels import config
from hatch_cuda_kernels.arch import Architecture, expand_architectures, parse_version, split_list
from hatch_cuda_kernels.cache import KernelCache
from hatch_cuda_kernels.config import Config, parse_size
from hatch_cuda_kernels.editable import hook_table
from hatch_cuda_kernels.errors import ConfigurationError
from hatch_cuda_kernels.manifest import squeeze_name
from hatch_cuda_kernels.plan import CompiledImage
from hatch_cuda_kernels.scanning import scan_text

SETTINGS = settings(
    max_examples=150, derandomize=True, deadline=2000, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12) | st.dates()
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
near_values = st.sampled_from(
    ["sm_80", "13", "13.0.88", "auto", "skip", "2GB", "../x", "a.cu", "", "\0", "1", "k<float>", "0", "std", "c++20"]
)
keys = st.sampled_from(sorted(config._FIELDS)) | st.text(max_size=10)
module_keys = st.sampled_from(sorted(config._MODULE_FIELDS)) | st.text(max_size=10)
modules = st.lists(
    st.dictionaries(module_keys, values | near_values | st.lists(near_values, max_size=3), max_size=5), max_size=3
)
tables = st.dictionaries(keys, values | near_values | st.lists(near_values, max_size=3) | modules, max_size=8)
variables = st.dictionaries(
    st.sampled_from(["ARCHS", "CACHE", "JOBS", "COMPILE_TIMEOUT", "REPORT"]),
    st.text(max_size=12) | near_values,
    max_size=5,
)


@SETTINGS
@given(table=tables, environ=variables)
def test_hook_tables(table: dict[str, Any], environ: dict[str, str]) -> None:
    """A hook table and an environment give a Config or a ConfigurationError with key paths."""
    variables = {f"HATCH_CUDA_KERNELS_{name}": value for name, value in environ.items()}
    try:
        found = Config.from_table(hook_table(table), where="t", environ=variables)
    except ConfigurationError as error:
        lines = str(error).splitlines()[1:]
        assert any(line.startswith(("  - t", "  - HATCH_CUDA_KERNELS_")) for line in lines)
    else:
        assert found.archs or found.modules


@SETTINGS
@given(text=st.text(max_size=30) | st.from_regex(r"(sm|compute)?_?\d{0,4}[af]?(\+PTX|-real|-virtual)?", fullmatch=True))
def test_architectures(text: str) -> None:
    """An architecture's spelling is read or told to be none; what is read is spelled back."""
    found, problems = expand_architectures([text], supported=lambda: [80, 90], native=lambda: [(8, 0)])
    assert bool(found) != bool(problems)
    for architecture in found:
        assert Architecture.parse(str(architecture)) == architecture
    assert all(part and not part.isspace() for part in split_list(text))


@SETTINGS
@given(
    value=st.text(max_size=12)
    | st.integers()
    | st.floats()
    | st.lists(st.integers(), max_size=3)
    | st.binary(max_size=4)
)
def test_versions_and_sizes(value: Any) -> None:
    """Versions and sizes are read, or a ValueError says what is expected."""
    for parse in (lambda: parse_version(value, "it"), lambda: parse_size(value)):
        try:
            parse()
        except ValueError as error:
            assert "expected" in str(error) or "must look like" in str(error)


@SETTINGS
@given(data=st.binary(max_size=400) | st.text(alphabet="#includedf_hs(\")<>/*\\\n 'R", max_size=400).map(str.encode))
def test_sources(data: bytes) -> None:
    """Any text is scanned, and the scan of a text without directives is empty."""
    scan = scan_text(data)
    if b"include" not in data.replace(b"\\\n", b"") and b"__has" not in data and b"import" not in data:
        assert not [include for include in scan.includes if b"embed" not in data]


@SETTINGS
@given(name=st.text(alphabet="abAB_<>:,*&+-'\"() \t1", max_size=30))
def test_names(name: str) -> None:
    """Squeezing a name twice changes nothing more, and loses no character but white space."""
    squeezed = squeeze_name(name)
    assert squeeze_name(squeezed) == squeezed
    assert "".join(squeezed.split()) == "".join(name.split())


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, CompiledImage]:
    """A project, a cache that holds its image, and the image."""
    base = tmp_path_factory.mktemp("fuzz")
    project = write(base / "p", {"k.cu": KERNEL})
    image = compile_alone(make_job(project))
    KernelCache.open(str(base / "cache")).store(make_job(project), image)
    return project, base / "cache", image


@SETTINGS
@given(
    data=st.binary(max_size=200) | values.map(lambda value: json.dumps(value, default=str).encode()),
    which=st.integers(0, 1),
)
def test_cache_entries(stored: tuple[Path, Path, CompiledImage], data: bytes, which: int) -> None:
    """An entry of any content is a miss, and is repaired by the next store."""
    project, folder, image = stored
    entries = sorted(path for path in (folder / "entries").rglob("*") if path.is_file())
    before = entries[which].read_bytes()
    entries[which].write_bytes(data)
    cache, job = KernelCache.open(str(folder)), make_job(project)
    found = cache.lookup(job)
    assert found is None or found.data == image.data
    if data != before:
        assert found is None
        cache.store(job, image)
    repaired = cache.lookup(job)
    assert repaired is not None and repaired.data == image.data
