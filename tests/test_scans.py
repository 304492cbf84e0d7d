# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Scans of headers are remembered between builds: never a wrong one, and never what lies where."""

from __future__ import annotations

import hashlib
import json
import os
import random
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from jobs import KERNEL, write
from projects import make_project

from hatch_cuda_kernels import scanning, scans, sources
from hatch_cuda_kernels.cache import KernelCache
from hatch_cuda_kernels.package import InstalledPackage, shipped_unit
from hatch_cuda_kernels.scanning import scan_text
from hatch_cuda_kernels.scans import RememberedScans
from hatch_cuda_kernels.sources import Closure, ProjectTree, close_over

FILLER = "// text that takes its time\n" * 20_000
"""Enough for a scan to be worth remembering."""
FILES: Mapping[str, str] = {
    "k.cu": '#include "a.h"\n#include NAME\n' + KERNEL,
    "a.h": FILLER + '#include <b.h>\n#define NAME "c.h"\n#if __has_include("d.h")\n#endif\n#define PICK(x) <x>\n',
    "inc/b.h": "#pragma once\n#include PICK(e.h)\n",
    "c.h": "f(__FILE__);\n",
    "inc/e.h": "g(__TIME__);\n",
}


@dataclass(frozen=True)
class Module:
    """As much of a module as scans are remembered by."""

    package: str = "demo"
    include_dirs: tuple[str, ...] = ("inc",)

    @property
    def places(self) -> tuple[str, ...]:
        """By which they are."""
        return (self.package, *self.include_dirs)


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The texts that are scanned, as they are."""
    texts: list[bytes] = []

    def scan(data: bytes) -> scanning.Scan:
        texts.append(data)
        return scan_text(data)

    monkeypatch.setattr(sources, "scan_text", scan)
    return texts


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[KernelCache]:
    """An empty cache."""
    with KernelCache.open(str(tmp_path / "cache")) as found:
        yield found


def close(cache: KernelCache, root: Path, module: Module | None = None) -> Closure:
    """The closure of `k.cu`, with what the cache remembers."""
    module = module or Module()
    with RememberedScans(cache, [module.places]) as remembered:
        return close_over(ProjectTree(root, remembered), "k.cu", module.include_dirs)


def entry(cache: KernelCache) -> Path:
    """The one entry of a cache."""
    ((path, _),) = cache.entries()
    return path


def test_nothing_is_scanned_twice(tmp_path: Path, cache: KernelCache, scanned: list[bytes]) -> None:
    """Another process, in another checkout, scans nothing, and comes to the same closure."""
    first = close(cache, write(tmp_path / "one", FILES))
    assert len(scanned) == len(FILES) == len(first.files)
    scanned.clear()
    other = close(cache, write(tmp_path / "other", FILES))
    assert not scanned
    assert other == first
    assert [file.scan for file in other.files.values()] == [scan_text(file.data) for file in first.files.values()]


def test_an_edit(tmp_path: Path, cache: KernelCache, scanned: list[bytes]) -> None:
    """A file that was edited is scanned, and no other; what it includes now is what counts."""
    root = write(tmp_path / "p", FILES)
    close(cache, root)
    scanned.clear()
    write(root, {"inc/b.h": '#include "new.h"\n', "inc/new.h": ""})
    assert set(close(cache, root).files) == {"k.cu", "a.h", "inc/b.h", "c.h", "inc/new.h"}
    assert scanned == [b'#include "new.h"\n', b""]


def test_files_that_come_and_go(tmp_path: Path, cache: KernelCache, scanned: list[bytes]) -> None:
    """S8: a file that comes earlier on the search path, or that was asked for in vain, is found though nothing that
    asks for it is scanned; one that went is not."""
    root = write(tmp_path / "p", FILES)
    close(cache, root)
    scanned.clear()
    write(root, {"d.h": "", "e.h": "int other;\n"})
    assert {"d.h", "inc/e.h"} <= set(close(cache, root).files)
    (root / "inc/e.h").unlink()
    assert not {"e.h", "inc/e.h"} & set(close(cache, root).files)
    assert set(close(cache, root, Module(include_dirs=("inc", "."))).files) >= {"e.h"}
    write(root, {"a.h": '#define NAME "a.h"\n'})
    assert set(close(cache, root).files) == {"k.cu", "a.h"}


def test_random_trees(tmp_path: Path, cache: KernelCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what is remembered of trees that change all the time, every closure is the one that a fresh scan gives."""
    monkeypatch.setattr(scans, "_WORTH", 1)
    draw = random.Random(3)
    lines = ['#include "{}.h"', "#include <{}.h>", "#include M{}", '#define M{} "{}.h"', "#define M{} <{}.h>"]
    lines += ["#define F{}(x) <x>", "#include F{}({}.h)", "#if __has_include(<{}.h>)", "#include_next <{}.h>", "// {}"]
    root, folders = tmp_path / "p", ("", "inc/", "late/")
    for round_number in range(40):
        for _ in range(6):
            text = "\n".join(draw.choice(lines).replace("{}", str(draw.randrange(4))) for _ in range(4))
            write(root, {f"{draw.choice(folders)}{draw.randrange(4)}.h": text})
        (root / f"{draw.choice(folders)}{draw.randrange(4)}.h").unlink(missing_ok=True)
        write(root, {"k.cu": f'// {round_number}\n#include "0.h"\n#include <1.h>\n#include M2\n'})
        module = Module(include_dirs=("inc", "late"))
        assert close(cache, root, module) == close_over(ProjectTree(root), "k.cu", module.include_dirs)


def test_little_is_not_remembered(tmp_path: Path, cache: KernelCache) -> None:
    """What is scanned in no time makes no entry."""
    close(cache, write(tmp_path / "p", {"k.cu": '#include "a.h"\n' + KERNEL, "a.h": ""}))
    assert not list(cache.entries())


def test_many_small_files_are_remembered(tmp_path: Path, cache: KernelCache, scanned: list[bytes]) -> None:
    """A thousand small files take as long as a large one."""
    files = {f"h{n}.h": f"// {n}\n" for n in range(600)}
    root = write(tmp_path / "p", {"k.cu": "".join(f'#include "{name}"\n' for name in files), **files})
    close(cache, root)
    scanned.clear()
    close(cache, root)
    assert not scanned


@pytest.mark.parametrize("kind", ["flipped", "halved", "emptied", "gone", "fifo"])
def test_damage(tmp_path: Path, cache: KernelCache, scanned: list[bytes], kind: str) -> None:
    """An entry that is damaged, or not there, costs the scan and nothing else, and is written anew."""
    root = write(tmp_path / "p", FILES)
    expected = close(cache, root)
    path = entry(cache)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.unlink()
    if kind == "fifo":
        os.mkfifo(path)
    elif kind != "gone":
        path.write_bytes({"flipped": bytes(data), "halved": bytes(data[:100]), "emptied": b""}[kind])
    scanned.clear()
    if kind == "fifo":
        with pytest.warns(match="is not a regular file"):
            assert close(cache, root) == expected
    else:
        assert close(cache, root) == expected
    assert len(scanned) == len(FILES)
    scanned.clear()
    assert close(cache, root) == expected
    assert not scanned


@pytest.mark.parametrize(
    "value",
    [
        "[]", "3", "null", "x", "", '{"D": []}', '{"D": null}', '{"D": [[], [], [], [], 0, false]}',
        '{"D": [[[1, true, false]], [], [], [], false, false]}', '{"D": [["abc"], [], [], [], false, false]}',
        '{"D": [[], "ab", [], [], false, "x"]}', '{"D": [[], [], [["a"]], [], false, false]}', "[" * 90_000,
    ],
)  # fmt: skip
def test_entries_that_make_no_sense(tmp_path: Path, cache: KernelCache, scanned: list[bytes], value: str) -> None:
    """Whatever stands in an entry whose seal holds, the worst is a scan."""
    root = write(tmp_path / "p", FILES)
    expected = close(cache, root)
    digest = hashlib.sha256((root / "a.h").read_bytes()).hexdigest()
    (key,) = {json.loads(path.read_bytes()[65:])["at"] for path, _ in cache.entries()}
    cache.remember(key.removeprefix("fact "), value.replace("D", digest).encode())
    scanned.clear()
    assert close(cache, root) == expected
    assert len(scanned) == len(FILES)


def test_another_scanner(
    tmp_path: Path, cache: KernelCache, scanned: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another scanner found, or the same one with other names for bytes, is not believed; nor is anything
    remembered where it cannot be told which one this is."""
    root = write(tmp_path / "p", FILES)
    close(cache, root)
    code = tmp_path / "scanning.py"
    code.write_bytes(Path(str(scanning.__file__)).read_bytes() + b"# edited\n")
    changes: list[Callable[[], None]] = [
        lambda: monkeypatch.setattr(scanning, "__file__", str(code)),
        lambda: monkeypatch.setattr(scans, "__version__", "0.0"),
        lambda: monkeypatch.setattr("sys.getfilesystemencoding", lambda: "latin-1"),
        code.unlink,
    ]
    for number, change in enumerate(changes):
        change()
        scans._scanner.cache_clear()
        scanned.clear()
        close(cache, root)
        assert len(scanned) == len(FILES), number
    close(cache, root)
    assert len(list(cache.entries())) == len(changes)
    monkeypatch.undo()
    scans._scanner.cache_clear()


def test_names_that_are_no_text(tmp_path: Path, cache: KernelCache) -> None:
    """A name in other bytes than UTF-8 comes back as it is."""
    root = write(
        tmp_path / "p",
        {"k.cu": FILLER.encode() + b'#include "\xe4\xff.h"\n#include "\xc3\xa4.h"\n#define M \xed\xa0\x80\n'},
    )
    before, after = close(cache, root), close(cache, root)
    assert before == after
    assert after.files["k.cu"].scan == scan_text(after.files["k.cu"].data)
    assert len(list(cache.entries())) == 1


def test_what_does_not_come_back_is_left_out(
    tmp_path: Path, cache: KernelCache, scanned: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two halves of a character, as names can have them on Windows, would come back as one: they are scanned again."""
    monkeypatch.setattr(os, "fsdecode", lambda data: data.decode("utf-8", "surrogatepass"))
    root = write(
        tmp_path / "p", {"k.cu": FILLER.encode() + b'#include "a.h"\n', "a.h": b"#define M \xed\xa0\x80\xed\xb0\x80\n"}
    )
    close(cache, root)
    scanned.clear()
    closure = close(cache, root)
    assert scanned == [closure.files["a.h"].data]
    assert closure.files["a.h"].scan.objects == (("M", "\ud800\udc00"),)


def test_endings(tmp_path: Path, cache: KernelCache, scanned: list[bytes]) -> None:
    """A build that fails remembers; one that is interrupted ends at once."""
    root = write(tmp_path / "p", FILES)
    for error, scans_again in ((KeyboardInterrupt, True), (SystemExit, True), (ValueError, False)):
        with pytest.raises(error), RememberedScans(cache, [Module().places]) as remembered:
            ProjectTree(root, remembered).open("a.h")
            raise error
        scanned.clear()
        with RememberedScans(cache, [Module().places]) as remembered:
            ProjectTree(root, remembered).open("a.h")
            assert bool(scanned) == scans_again
            remembered._scanned = 0


def test_no_cache(tmp_path: Path) -> None:
    """Without a cache everything is scanned."""
    root = write(tmp_path / "p", FILES)
    for _ in range(2):
        assert close(KernelCache.open(False), root) == close_over(ProjectTree(root), "k.cu", ["inc"])


@pytest.mark.slow
def test_builds(tmp_path: Path) -> None:
    """A build remembers what it scanned, and after the edit of a header compiles what reads it."""
    files = {"demo/k.cu": '#include "a.h"\nextern "C" __global__ void k(int *p) { *p = A; }\n'}
    files |= {"demo/a.h": FILLER + '#include "b.h"\n', "demo/b.h": "#define A 1\n"}
    project = make_project(tmp_path, 'archs = ["compute_80"]', files)
    assert project.build().status == 0
    digests = [hashlib.sha256(text.encode()).hexdigest().encode() for text in files.values()]
    kept = [path.read_bytes() for path, _ in KernelCache.open(str(project.cache)).entries()]
    assert [data for data in kept if b'"at":"fact scans ' in data and all(digest in data for digest in digests)]
    assert "1 cached, 0 compiled" in project.build().output
    project.write({"demo/b.h": "#define A 2\n"})
    assert "0 cached, 1 compiled" in project.build().output


@pytest.mark.slow
def test_shipped_sources(tmp_path: Path, scanned: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """The sources that a package ships are not scanned by each process that compiles one of them."""
    monkeypatch.setenv("HATCH_CUDA_KERNELS_CACHE", str(tmp_path / "run-time"))
    files = {"demo/k.cu": '#include "a.h"\n' + KERNEL, "demo/a.h": FILLER}
    project = make_project(tmp_path, 'archs = ["compute_80"]', files)
    assert project.build().status == 0
    with zipfile.ZipFile(project.wheel()) as archive:
        archive.extractall(tmp_path / "site")
    for expected in (2, 0):
        package = InstalledPackage("demo", tmp_path / "site/demo")
        unit = shipped_unit(package, package.manifest.modules[0])
        assert {label: file.data.decode() for label, file in unit.closure.files.items()} == files
        assert len(scanned) == expected
        scanned.clear()
