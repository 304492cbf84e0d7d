# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Files on their way into a wheel: in memory as far as is allowed, the others on a disk, all gone at the end."""

from __future__ import annotations

import gc
import os
import tempfile
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest
from projects import KERNEL, make_project
from support import WHERE, Quiet, write_project

from hatch_cuda_kernels import staging
from hatch_cuda_kernels.account import write_report
from hatch_cuda_kernels.build import build_packages
from hatch_cuda_kernels.config import Config
from hatch_cuda_kernels.errors import ConfigurationError, ToolchainError
from hatch_cuda_kernels.modules import ShippedPackage, find_modules
from hatch_cuda_kernels.nvrtc import workspace
from hatch_cuda_kernels.plan import CompiledImage, PlacedImage
from hatch_cuda_kernels.staging import Staging


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """What stands for the memory and the disk of this machine."""
    memory, disk = tmp_path / "memory", tmp_path / "disk"
    memory.mkdir()
    disk.mkdir()
    monkeypatch.setattr(staging, "memory_folder", lambda: str(memory))
    monkeypatch.setattr(tempfile, "tempdir", str(disk))
    return memory, disk


def test_bounded(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies in memory has a limit; what does not fit is on the disk, and what still fits is not."""
    memory, disk = folders
    monkeypatch.setattr(staging, "_MOST_IN_MEMORY", 100)
    files = Staging()
    sizes = [60, 60, 30, 30, 0]
    staged = [Path(files.add(f"demo/_cuda_kernels/{number}", b"x" * size)) for number, size in enumerate(sizes)]
    assert {path.parent for path in staged} == {staged[0].parent}
    found = [path.resolve() for path in staged]
    assert [path.is_relative_to(memory) for path in found] == [True, False, True, False, True]
    assert [path.read_bytes() for path in found] == [b"x" * size for size in sizes]
    assert [path.name for path in found] == ["0", "1", "2", "3", "4"]
    assert all(path.stat().st_mode & 0o777 == 0o644 for path in found)
    assert {path.parents[2].stat().st_mode & 0o777 for path in found} == {0o700}
    files.remove()
    files.remove()
    assert not list(memory.iterdir()) and not list(disk.iterdir())


def test_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where TMPDIR says where temporary files go, all of them go there."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    files = Staging()
    assert Path(files.add("demo/one", b"1")).is_relative_to(tmp_path)
    files.remove()
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_memory_filled_by_others(folders: tuple[Path, Path]) -> None:
    """A file that memory has no room for any more lies on the disk, and so do all that follow."""
    memory, disk = folders
    files = Staging()
    assert Path(files.add("demo/one", b"1")).is_relative_to(memory)
    (next(memory.iterdir()) / "demo/two").symlink_to("/dev/full")
    two, three = (Path(files.add(*file)).resolve() for file in (("demo/two", b"22"), ("demo/three", b"333")))
    assert two.is_relative_to(disk) and three.is_relative_to(disk)
    assert (two.read_bytes(), three.read_bytes()) == (b"22", b"333")
    files.remove()
    assert not list(memory.iterdir()) and not list(disk.iterdir())


def living() -> tuple[int, int]:
    """How many images with bytes there are, and how many of which there are the facts alone."""
    found = [type(each) for each in gc.get_objects()]
    return found.count(CompiledImage), found.count(PlacedImage)


@pytest.mark.slow
def test_build_keeps_no_images(tmp_path: Path) -> None:
    """Images that the cache serves are handed over one by one: the build holds the bytes of none but that one, and what
    there is to say of those of one module."""
    files = {f"demo/k{number}.cu": f'extern "C" __global__ void k{number}() {{}}\n' for number in range(6)}
    root = write_project(tmp_path / "project", {"demo/__init__.py": "", **files})
    table = {"archs": ["sm_80", "compute_80"], "cache": str(tmp_path / "cache")}
    config = Config.from_table(table, where=WHERE)
    specs = find_modules(config, root, [ShippedPackage(name="demo", folder="demo")], where=WHERE)
    for outcome in ("compiled", "cached"):
        names: list[str] = []
        alive: list[tuple[int, int]] = []

        def put(
            package: str,
            name: str,
            pieces: Iterable[bytes],
            names: list[str] = names,
            alive: list[tuple[int, int]] = alive,
        ) -> None:
            names.append(name)
            alive.append(living())

        before = living()
        build_packages(config, root, specs, where=WHERE, reporter=Quiet(), put=put).close()
        assert len([name for name in names if "/k" in name and "src" not in name]) == 12
        bytes_of, facts_of = (max(after) - now for after, now in zip(zip(*alive, strict=True), before, strict=True))
        if outcome == "cached":
            assert bytes_of <= 2
            assert facts_of <= 3  # two of one module, and one that is on its way
        assert alive[-1][0] <= before[0] + 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_no_room_at_all(folders: tuple[Path, Path]) -> None:
    """Where neither has room the error says what waited where, and what to do."""
    memory, disk = folders
    files = Staging()
    files.add("demo/one", b"1")
    (next(memory.iterdir()) / "demo/two").symlink_to("/dev/full")
    files.add("demo/two", b"2")
    (next(disk.iterdir()) / "demo/three").symlink_to("/dev/full")
    with pytest.raises(ToolchainError, match=rf"no room left in {disk}.*files of the wheel.*set TMPDIR"):
        files.add("demo/three", b"3")
    files.remove()
    assert not list(memory.iterdir()) and not list(disk.iterdir())


CHANGER = """\
from pathlib import Path
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

class CustomHook(BuildHookInterface):
    def initialize(self, version, build_data):
        path = Path(self.root, "demo/scale.cu")
        path.write_text("// newer\\n" + path.read_text())
"""


@pytest.mark.slow
def test_a_source_that_changes_meanwhile(tmp_path: Path) -> None:
    """hatchling packs sources after they were compiled: one that is another by then is warned of, and no other."""
    project = make_project(tmp_path, 'archs = ["sm_80"]\n[tool.hatch.build.hooks.custom]')
    project.write({"hatch_build.py": "", "demo/other.cu": KERNEL, "demo/bom.cu": "\ufeff" + KERNEL})
    project.write({"hatch_build.py": CHANGER.replace("// newer\\n", "")})
    run = project.build()
    assert run.status == 0 and "changed while" not in run.output, run.output
    project.write({"hatch_build.py": CHANGER})
    run = project.build()
    assert run.status == 0 and "demo/scale.cu: changed while the wheel was built" in run.output, run.output
    assert run.output.count("changed while") == 1 and "other.cu" not in run.output


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs")
def test_report_to_a_fifo(tmp_path: Path) -> None:
    """A report that nobody reads is an error, not a wait; one that is read arrives."""
    path = tmp_path / "report"
    os.mkfifo(path)
    with pytest.raises(ConfigurationError, match=r"REPORT: .*report cannot be written"):
        write_report(path, {"a": 1})
    found: list[str] = []
    reader = threading.Thread(target=lambda: found.append(path.read_text()), daemon=True)
    reader.start()
    deadline = time.monotonic() + 30
    while not found and time.monotonic() < deadline:
        with suppress(ConfigurationError):
            write_report(path, {"a": "x" * 200_000})
        reader.join(0.05)
    assert len(found[0]) > 200_000


@pytest.mark.skipif(os.name == "nt", reason="these are no names of files")
@pytest.mark.parametrize("name", ["new\nline", "tab\t", "back\\slash", "\x01", "\udcff"])
def test_odd_temporary_folder(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where NVRTC could not read its own files the error says so, and nothing is left."""
    folder = tmp_path / name
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    with pytest.raises(ToolchainError, match=r"temporary files go.*set TMPDIR"), workspace():
        pass
    assert not list(folder.iterdir())


@pytest.mark.slow
def test_a_cache_inside_the_package(tmp_path: Path) -> None:
    """A cache that would be packed is warned of; one beside the package, or left out of the wheel, is not."""
    for cache, extra, told in (
        ("demo/cache", "", True),
        ("sqlite:demo/c.db", "", True),
        ("memory:,cache", "", False),
        ("demo/cache", '[tool.hatch.build.targets.wheel]\nexclude = ["demo/cache"]', False),
    ):
        project = make_project(
            tmp_path / str(told) / cache.replace(":", "-").replace(",", "-") / str(len(extra)), extra=extra
        )
        run = project.build(env={"HATCH_CUDA_KERNELS_CACHE": cache})
        assert run.status == 0 and ("lies in what the wheel ships" in run.output) == told, run.output
