# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Bundles of images: what comes out of them is what the cache gives out one by one, or they are passed by."""

from __future__ import annotations

import posixpath
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from support import WHERE, write_project

from hatch_cuda_kernels import bundles, cache
from hatch_cuda_kernels.build import build_packages
from hatch_cuda_kernels.config import Config
from hatch_cuda_kernels.modules import ShippedPackage, find_modules

KERNEL = 'extern "C" __global__ void {name}(float *x) {{ x[0] = {value}; }}\n'
FILES = {
    "demo/__init__.py": "",
    "demo/one.cu": '#include "value.cuh"\n' + KERNEL.format(name="one", value="VALUE"),
    "demo/two.cu": '#include "value.cuh"\n' + KERNEL.format(name="two", value="2.0f + VALUE"),
    "demo/three.cu": KERNEL.format(name="three", value="3.0f"),
    "demo/host.cu": KERNEL.format(name="host", value="4.0f") + "int main() { return 0; }\n",
    "demo/warns.cu": 'extern "C" __global__ void warns(float *x) { int unused; x[0] = 5.0f; }\n',
    "include/value.cuh": "#define VALUE 1.0f\n",
}
TABLE: dict[str, Any] = {"archs": ["sm_80", "compute_80"], "include-dirs": ["include"]}


@dataclass
class Told:
    """A reporter that keeps what it is told."""

    lines: list[str] = field(default_factory=list)

    def info(self, message: str) -> None:
        """See account.Reporter."""
        self.lines.append(message.partition(" compiled in ")[0])  # without seconds

    def step(self, done: int, total: int, what: str) -> None:
        """See account.Reporter."""

    def warning(self, message: str) -> None:
        """See account.Reporter."""
        self.lines.append(message)


@dataclass
class Built:
    """What one build gave."""

    files: dict[str, bytes]
    """Everything of the wheel, the bill of materials among it."""
    lines: list[str]
    looked_up: int
    """How many images were not taken out of a bundle."""

    @property
    def counts(self) -> str:
        """(cached, compiled)."""
        return next(line for line in self.lines if " cached, " in line)


@dataclass
class Project:
    """A project and its cache."""

    root: Path
    cache: Path
    monkeypatch: pytest.MonkeyPatch
    table: dict[str, Any] = field(default_factory=lambda: dict(TABLE))

    def write(self, **texts: str) -> None:
        """Write files of the package, by their names without a suffix."""
        for name, text in texts.items():
            (self.root / f"demo/{name}.cu").write_text(text)

    def build(self, *, bundled: bool = True) -> Built:
        """Build with what the cache has by now; `bundled`: with bundles, however few images there are."""
        self.monkeypatch.setattr(bundles, "_FEWEST", 1 if bundled else 10**9)
        found: dict[str, bytes] = {}
        looked_up: list[str] = []
        find = cache._find

        def count(*arguments: Any) -> Any:
            looked_up.append(str(arguments[1]))
            return find(*arguments)

        def put(package: str, name: str, pieces: Iterable[bytes]) -> None:
            found[posixpath.join(package, name)] = b"".join(pieces)

        self.monkeypatch.setattr(cache, "_find", count)
        told = Told()
        config = Config.from_table({"cache": str(self.cache), **self.table}, where=WHERE)
        specs = find_modules(config, self.root, [ShippedPackage(name="demo", folder="demo")], where=WHERE)
        documents = build_packages(config, self.root, specs, where=WHERE, reporter=told, put=put)
        found["sbom"] = b"".join(documents.bill_of_materials("demo", "1"))
        documents.close()
        self.monkeypatch.setattr(cache, "_find", find)
        return Built(found, told.lines, len(looked_up))

    def bundles(self) -> list[Path]:
        """The entries of the cache that are bundles."""
        return [path for path in (self.cache / "entries").glob("*/*") if b'"at":"bundle ' in path.read_bytes()]


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project and its cache after the first build."""
    folder = tmp_path_factory.mktemp("bundles")
    write_project(folder / "project", FILES)
    with pytest.MonkeyPatch.context() as monkeypatch:
        found = Project(folder / "project", folder / "cache", monkeypatch)
        assert "0 cached, 10" in found.build().counts
        assert len(found.bundles()) == 1
    return folder


@pytest.fixture
def project(first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A project that was built once with bundles."""
    shutil.copytree(first, tmp_path / "one")
    found = Project(tmp_path / "one/project", tmp_path / "one/cache", monkeypatch)
    yield found
    assert found.build().files == found.build(bundled=False).files


def alone(project: Project) -> Built:
    """The same project built without bundles, and with none of their making."""
    shutil.rmtree(project.cache.with_name("another"), ignore_errors=True)
    own = Project(project.root, project.cache.with_name("another"), project.monkeypatch, project.table)
    shutil.copytree(project.cache, own.cache)
    for path in own.bundles():
        path.unlink()
    return own.build(bundled=False)


def test_same_as_without(project: Project) -> None:
    """Files, documents, warnings and counts are those of a build that looks images up one by one; none is looked up."""
    plain, bundled = project.build(bundled=False), project.build()
    assert plain.looked_up == 10 and bundled.looked_up == 0
    own = Project(project.root, project.cache.with_name("own"), project.monkeypatch)
    assert bundled.files == plain.files == own.build(bundled=False).files
    assert bundled.lines == plain.lines
    assert "10 cached, 0" in bundled.counts
    assert any("host code passed over in 1 file: 1 piece" in line for line in bundled.lines)
    assert any("unused" in line and "[sm_80 compute_80]" in line for line in bundled.lines)


CHANGES = {
    "a source": lambda p: p.write(three=FILES["demo/three.cu"].replace("3.0f", "7.0f")),
    "a header": lambda p: (p.root / "include/value.cuh").write_text("#define VALUE 9.0f\n"),
    "a header that comes first": lambda p: (p.root / "demo/value.cuh").write_text("#define VALUE 8.0f\n"),
    "a macro": lambda p: p.table.update(defines={"UNUSED": "1"}),
    "an option": lambda p: p.table.update(options={"fma": False}),
    "architectures": lambda p: p.table.update(archs=["sm_80", "sm_90"]),
    "a new module": lambda p: p.write(four=KERNEL.format(name="four", value="4.0f")),
    "a module that is gone": lambda p: (p.root / "demo/three.cu").unlink(),
    "a module's name": lambda p: p.table.update(modules=[{"source": "demo/three.cu", "name": "drei"}]),
    "the instances": lambda p: p.table.update(modules=[{"source": "demo/three.cu", "name-expressions": ["three"]}]),
    "two that change places": lambda p: p.write(one=FILES["demo/three.cu"], three=FILES["demo/one.cu"]),
    "no fallback": lambda p: p.table.update(jit=False),
    "host code refused": lambda p: (p.table.update({"host-code": "error"}), (p.root / "demo/host.cu").unlink()),
}


QUICK = ("a source", "a header", "a header that comes first", "architectures")


@pytest.mark.parametrize(
    "change",
    [pytest.param(c, id=name, marks=() if name in QUICK else pytest.mark.slow) for name, c in CHANGES.items()],
)
def test_changed(project: Project, change: Any) -> None:
    """After any change a build gives what an empty cache gives, and the next one needs no look-up again."""
    before = project.build().files
    change(project)
    changed = project.build()
    assert changed.files == alone(project).files
    assert changed.files != before
    again = project.build()
    assert again.files == changed.files and again.looked_up == 0


@pytest.mark.slow
def test_only_what_changed_is_looked_up(project: Project) -> None:
    """A touched source costs its own look-ups, and those that make the bundle anew."""
    project.write(three=FILES["demo/three.cu"].replace("3.0f", "7.0f"))
    changed = project.build()
    assert "8 cached, 2" in changed.counts and changed.looked_up == 2 + 2


@pytest.mark.slow
def test_what_a_bundle_has_stays(project: Project) -> None:
    """Images that are gone from the cache, since nothing read them there, stay in the bundle when it is made anew."""
    for path in (project.cache / "entries").glob("*/*"):
        if path not in project.bundles():
            path.unlink()
    project.write(three=FILES["demo/three.cu"].replace("3.0f", "7.0f"))
    assert "8 cached, 2" in project.build().counts
    assert "10 cached, 0" in project.build().counts
    project.write(three=FILES["demo/three.cu"])
    assert "8 cached, 2" in project.build().counts
    assert "10 cached, 0" in project.build(bundled=True).counts
    alone(project)


def test_kept_in_an_earlier_place(project: Project, tmp_path: Path) -> None:
    """A bundle of a later place is kept in the earlier ones, as an image is: these alone serve the next build."""
    own = tmp_path / "own"
    both = Project(project.root, own, project.monkeypatch, {**TABLE, "cache": [str(own), f"read:{project.cache}"]})
    assert "10 cached, 0" in both.build().counts
    alone_now = Project(project.root, own, project.monkeypatch).build()
    assert "10 cached, 0" in alone_now.counts and alone_now.looked_up == 0


def test_a_cap_on_the_cache(project: Project) -> None:
    """Where the cache may have a certain size, nothing is in it twice."""
    for path in project.bundles():
        path.unlink()
    project.table["cache-max-size"] = "10MB"
    assert project.build().looked_up == project.build().looked_up == 10
    assert not project.bundles()


def test_a_change_and_back(project: Project) -> None:
    """The bundle follows; what was compiled before is not compiled again."""
    before = project.build()
    for _ in range(2):
        project.write(three=FILES["demo/three.cu"].replace("3.0f", "7.0f"))
        assert project.build().files != before.files
        project.write(three=FILES["demo/three.cu"])
        back = project.build()
        assert back.files == before.files and "10 cached, 0" in back.counts


@pytest.mark.parametrize("cut", [0, 70, pytest.param(64, marks=pytest.mark.slow), -1])
def test_cut_short(project: Project, cut: int) -> None:
    """A bundle that was cut is none."""
    (path,) = project.bundles()
    data = path.read_bytes()
    path.write_bytes(data[:cut])
    built = project.build()
    assert built.looked_up == 20 and built.files == alone(project).files
    assert project.bundles() == [path] and path.read_bytes() == data


def test_damaged(project: Project) -> None:
    """A bundle with one wrong byte anywhere is none."""
    (path,) = project.bundles()
    data, expected = path.read_bytes(), project.build(bundled=False).files
    for position in range(0, len(data), len(data) // 8):
        path.write_bytes(data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :])
        built = project.build()
        assert built.files == expected and built.looked_up == 20, position


def test_of_another_place(project: Project, tmp_path: Path) -> None:
    """A sealed bundle of another project under this one's name serves nothing that differs."""
    other = Project(tmp_path / "other", tmp_path / "their", project.monkeypatch)
    changed = {"demo/three.cu": FILES["demo/three.cu"].replace("3.0f", "30.0f")}
    write_project(other.root, {**FILES, **changed, "include/value.cuh": "#define VALUE 10.0f\n"})
    shutil.copytree(project.cache, other.cache)
    theirs = other.build()
    (path,), (their,) = project.bundles(), other.bundles()
    assert path.name == their.name
    path.write_bytes(their.read_bytes())
    built = project.build()
    assert built.files == alone(project).files != theirs.files
    assert built.looked_up == 6 + 6  # those of the three modules that differ, and again to make it anew


@pytest.mark.parametrize(
    "row", [None, 1, [], {}, {"reads": []}, {"reads": [1]}, {"reads": [], "at": 0, "texts": [1] * 5, "images": []}]
)
def test_odd_rows(project: Project, row: Any) -> None:
    """A record that says something else than it ought to is passed by."""
    (path,) = project.bundles()
    with cache.KernelCache.open(str(project.cache)) as kept:
        name = _name(path)
        found = kept.bundle(name)
        assert found is not None
        record, raw = found
        kept.keep_bundle(name, {"modules": dict.fromkeys(record["modules"], row)}, bytes(raw))
    built = project.build()
    assert built.looked_up >= 10 and built.files == alone(project).files


ODD: dict[str, Any] = {
    "an image less": {"images": [100]},
    "images of other kinds": {"images": [["../__init__.py", 100], ["x", 100]]},
    "a length below zero": {"images": [-1, 100]},
    "a length that is true": {"images": [True, 100]},
    "a length that is no number": {"texts": ["1", 2, 3, 4, 5]},
    "texts that are cut elsewhere": {"texts": [1, 2, 3, 4, 5]},
    "kernels of no text": {"kernels": [1]},
    "warnings of no text": {"warnings": [[1, "sm_80"]]},
    "warnings of no architecture": {"warnings": [["x", "everywhere"]]},
    "omissions of another kind": {"passed_over": [1]},
}


@pytest.mark.parametrize(
    "part",
    [pytest.param(part, id=name, marks=() if " of " not in name else pytest.mark.slow) for name, part in ODD.items()],
)
def test_odd_parts(project: Project, part: dict[str, Any]) -> None:
    """The same of one part of what is said of a module; what an image is called is no part of it."""
    (path,) = project.bundles()
    with cache.KernelCache.open(str(project.cache)) as kept:
        name = _name(path)
        found = kept.bundle(name)
        assert found is not None
        rows = {key: {**row, **part} for key, row in found[0]["modules"].items()}
        kept.keep_bundle(name, {"modules": rows}, bytes(found[1]))
    built = project.build()
    assert built.looked_up >= 10 and built.files == project.build(bundled=False).files


@pytest.mark.parametrize("value", ["\ud800", 1, None, ["x"]])
def test_no_text(value: Any) -> None:
    """What no document can hold is no text of one, also where JSON has a spelling for it."""
    with pytest.raises((TypeError, ValueError)):
        bundles._text(value)


def test_too_short(project: Project) -> None:
    """A record whose bytes are not all there is passed by."""
    (path,) = project.bundles()
    with cache.KernelCache.open(str(project.cache)) as kept:
        name = _name(path)
        found = kept.bundle(name)
        assert found is not None
        kept.keep_bundle(name, found[0], bytes(found[1][:-1]))
    assert project.build().files == alone(project).files


def _name(path: Path) -> str:
    return path.read_bytes().partition(b'"at":"bundle ')[2].partition(b'"')[0].decode()


def test_large_images_stay_out(project: Project) -> None:
    """What is read as quickly one by one is not written twice, and does not make the bundle look old either."""
    project.monkeypatch.setattr(bundles, "_LARGEST", 4000)
    project.write(three="__device__ int table[4096] = {1};\n" + FILES["demo/three.cu"].replace("3.0f", "table[0]"))
    project.build()
    (path,) = project.bundles()
    written = path.stat().st_mtime_ns
    again = project.build()
    assert again.looked_up == 2 and path.stat().st_mtime_ns == written
    assert again.files == alone(project).files


def test_several(project: Project) -> None:
    """Modules in several bundles are each found in theirs; a change concerns one of them."""
    project.monkeypatch.setattr(bundles, "_MODULES", 2)
    project.build()
    assert project.build().looked_up == 0
    project.write(three=FILES["demo/three.cu"].replace("3.0f", "7.0f"))
    changed = project.build()
    assert changed.looked_up == 2 + 2 and changed.files == alone(project).files


@pytest.mark.slow
def test_a_read_only_cache(project: Project) -> None:
    """Where nothing may be written there are no bundles, and no warning."""
    project.table["cache"] = False
    config = Config.from_table({**project.table, "cache": f"read:{project.cache}"}, where=WHERE)
    assert not isinstance(config.cache, bool)
    with cache.KernelCache.open(config.cache) as kept:
        assert not kept.keeps_bundles


def test_few_images(project: Project) -> None:
    """A small build has none: its images are read as quickly one by one."""
    for path in project.bundles():
        path.unlink()
    project.monkeypatch.undo()
    config = Config.from_table({**project.table, "cache": str(project.cache)}, where=WHERE)
    specs = find_modules(config, project.root, [ShippedPackage(name="demo", folder="demo")], where=WHERE)
    build_packages(config, project.root, specs, where=WHERE, reporter=Told(), put=lambda *file: None).close()
    assert not project.bundles()


def test_counted(project: Project) -> None:
    """What a bundle serves counts as a hit."""
    with cache.KernelCache.open(str(project.cache)) as kept:
        before = kept.totals()
    project.build()
    with cache.KernelCache.open(str(project.cache)) as kept:
        hits, misses = kept.totals()
    assert (hits - before[0], misses - before[1]) == (10, 0)


def test_verifies(project: Project) -> None:
    """`cache verify` knows bundles."""
    with cache.KernelCache.open(str(project.cache)) as kept:
        assert not list(kept.verify())
    (path,) = project.bundles()
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with cache.KernelCache.open(str(project.cache)) as kept:
        assert [name for name, _ in kept.verify()] == [str(path)]
