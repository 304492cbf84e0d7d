# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Which NVRTC is known without loading it, and what an isolated build installs."""

from __future__ import annotations

import contextlib
import hashlib
import re
import shutil
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from hatch_cuda_kernels import toolchain
from hatch_cuda_kernels.errors import ToolchainError
from hatch_cuda_kernels.toolchain import (
    Later,
    Toolchain,
    check_pins,
    detect,
    installed_release,
    required_distributions,
)
from hatch_cuda_kernels.toolkit import Headers, installed_roots


class Memory:
    """Facts in a dictionary."""

    def __init__(self) -> None:
        self.facts: dict[str, bytes] = {}

    def recall(self, key: str) -> bytes | None:
        """See toolchain.Memory."""
        return self.facts.get(key)

    def remember(self, key: str, value: bytes) -> None:
        """See toolchain.Memory."""
        self.facts[key] = value


class Ask:
    """Answers as NVRTC would, and counts the questions."""

    def __init__(self, answer: Toolchain) -> None:
        self.answer, self.times = answer, 0

    def __call__(self) -> Toolchain:
        self.times += 1
        return self.answer


def installed() -> Toolchain:
    """The NVRTC wheel of this environment."""
    found = installed_release()
    assert found is not None
    return Toolchain(release=found[0], supported=(75, 80), library=found[1])


@pytest.mark.parametrize(("error", "kept"), [(None, 1), (RuntimeError, 1), (KeyboardInterrupt, 0)])
def test_facts_for_later(error: type[BaseException] | None, kept: int) -> None:
    """Facts are remembered at the end, whatever failed by then, but not in the way of an interruption."""
    memory, ask = Memory(), Ask(installed())
    with contextlib.suppress(RuntimeError, KeyboardInterrupt), Later(memory) as later:
        detect(later, ask)
        assert memory.facts == {}
        if error is not None:
            raise error
    assert len(memory.facts) == kept
    assert detect(Later(memory), ask) == installed()
    assert ask.times == 2 - kept


def test_a_wheel_is_asked_once() -> None:
    """The wheel tells the release; NVRTC is asked for its architectures once, and by nobody who remembers."""
    memory, ask = Memory(), Ask(installed())
    assert detect(memory, ask) == detect(memory, ask) == installed()
    assert ask.times == 1
    memory.facts = dict.fromkeys(memory.facts, b"[]")
    assert detect(memory, ask) == installed()
    assert ask.times == 2


def test_another_library_than_the_wheel() -> None:
    """Where another release answers than the wheel's, that is told, with both paths."""
    other = Toolchain(release="13.0.48", supported=(75,), library="/elsewhere/libnvrtc.so.13")
    with pytest.raises(ToolchainError, match=r"/elsewhere/libnvrtc\.so\.13"):
        detect(Memory(), Ask(other))


def test_a_library_without_a_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that no wheel brought is asked once, and again when its bytes or its surroundings changed."""
    monkeypatch.setattr(toolchain, "_DISTRIBUTIONS", ())
    library = tmp_path / "libnvrtc.so.13"
    shutil.copy(__file__, library)
    memory, ask = Memory(), Ask(Toolchain(release="13.1.80", supported=(75, 80), library=str(library)))
    assert detect(memory, ask) == detect(memory, ask) == ask.answer
    assert ask.times == 1
    with library.open("ab") as stream:
        stream.write(b"patched")
    detect(memory, ask)
    assert ask.times == 2
    (tmp_path / "libnvrtc-builtins.so.13.1").write_bytes(b"built-ins")
    detect(memory, ask)
    assert ask.times == 3
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    detect(memory, ask)
    assert ask.times == 4
    library.unlink()
    detect(memory, ask)
    assert ask.times == 5


def test_pins() -> None:
    """An NVRTC that contradicts `cuda` or `nvrtc` is an error that says what to install."""
    found = Toolchain(release="13.1.80", supported=(75,), library="")
    check_pins(found, cuda="13", nvrtc="13.1.80", where="t")
    with pytest.raises(ToolchainError, match=r"t\.nvrtc asks for 12\.9\.86.*nvidia-cuda-nvrtc-cu12==12\.9\.86"):
        check_pins(found, cuda=None, nvrtc="12.9.86", where="t")
    with pytest.raises(ToolchainError, match=r"t\.cuda asks for CUDA 12.*extra cu12"):
        check_pins(found, cuda="12", nvrtc=None, where="t")


@pytest.mark.parametrize(
    ("cuda", "nvrtc", "mentions", "expected"),
    [
        ("13", None, {}, "nvidia-cuda-nvrtc>=13.3,<14 cuda-toolkit[cudart]>=13.3,<14"),
        ("13", None, {"curand": True}, "nvidia-cuda-nvrtc>=13.3,<14 cuda-toolkit[cudart,curand]>=13.3,<14"),
        ("13", "13.0.88", {}, "nvidia-cuda-nvrtc==13.0.88 cuda-toolkit[cccl,crt,cudart]==13.0.*"),
        ("13", "13.4.92", {}, "nvidia-cuda-nvrtc==13.4.92 cuda-toolkit[cudart]==13.4.*"),
        ("12", None, {}, "nvidia-cuda-nvrtc-cu12>=12.9,<13 cuda-toolkit[cccl,cudart,nvcc]>=12.9,<13"),
    ],
)
def test_required_distributions(cuda: str, nvrtc: str | None, mentions: dict[str, bool], expected: str) -> None:
    """An isolated build installs the compiler and the headers that this compiler lacks, and nothing else."""
    found = required_distributions(cuda, nvrtc, mentions)
    assert {Requirement(name) for name in expected.split()} <= {Requirement(name) for name in found}
    assert {Requirement(name).name for name in found} == {
        "cuda-core", "cuda-bindings", "cuda-toolkit", Requirement(expected.split()[0]).name,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("cuda", "nvrtc", "linker"),
    [
        ("13", None, "nvidia-nvjitlink>=13.3,<14"),
        ("13", "13.0.88", "nvidia-nvjitlink==13.0.*"),
        ("12", None, "nvidia-nvjitlink-cu12>=12.9,<13"),
        ("12", "12.9.86", "nvidia-nvjitlink-cu12==12.9.*"),
    ],
)
def test_the_linker_is_installed_where_something_is_linked(cuda: str, nvrtc: str | None, linker: str) -> None:
    """nvJitLink of the compiler's CUDA version comes with it, and only then."""
    without = required_distributions(cuda, nvrtc, {})
    linked = {Requirement(name) for name in required_distributions(cuda, nvrtc, {"nvjitlink": True})}
    assert linked == {*map(Requirement, without), Requirement(linker)}


def test_a_linker_that_no_wheel_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that is not the wheel's, in a conda environment or put over it, is known by its digest."""
    pytest.importorskip("cuda.pathfinder")
    try:
        release = version("nvidia-nvjitlink")
    except PackageNotFoundError:
        pytest.skip("nvidia-nvjitlink is not installed")
    tell = toolchain.linker_release.__wrapped__
    assert tell() == release
    monkeypatch.setattr(toolchain, "LINKER_WHEELS", {"13": "no-such-wheel"})
    assert re.fullmatch(r"sha256 [0-9a-f]{64}", tell())


class TestHeaders:
    def test_each_is_looked_for_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """One look-up of many jobs sees one state of the installed headers; the next one sees what changed since."""
        folder = tmp_path / "nvidia/cu13/include"
        folder.mkdir(parents=True)
        (folder / "cuda_runtime.h").write_text("one")
        monkeypatch.setattr(sys, "path", [str(tmp_path)])
        installed_roots.cache_clear()
        try:
            headers = Headers()
            first = headers.digest("cuda_runtime.h")
            assert first == hashlib.sha256(b"one").hexdigest()
            assert headers.digest("other.h") is None
            (folder / "cuda_runtime.h").write_text("another")
            (folder / "other.h").write_text("new")
            assert (headers.digest("cuda_runtime.h"), headers.digest("other.h")) == (first, None)
            headers = Headers()
            assert headers.digest("cuda_runtime.h") == hashlib.sha256(b"another").hexdigest()
            assert headers.digest("other.h") == hashlib.sha256(b"new").hexdigest()
        finally:
            installed_roots.cache_clear()
