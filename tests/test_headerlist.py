# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The headers that a precompiled header lists are those that NVRTC's trace names; what is no such list is none."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from jobs import KERNEL, make_job, write

from hatch_cuda_kernels.headerlist import OWN_HEADER, listed_headers
from hatch_cuda_kernels.nvrtc import AS_WRITTEN, Stage, traced_names, workspace

FILES = {
    "k.cu": '#include "a.h"\n#include "a.h"\n#include <sub/b.h>\n#include "./empty.h"\n#include <cuda_fp16.h>\n'
    + KERNEL,
    "a.h": '#if __has_include("asked.h")\n#endif\n#include "macros.h"\n#ifdef NEVER\n#include "never.h"\n#endif\n',
    "asked.h": "",
    "macros.h": "#pragma once\n#define VALUE 1\n",
    "never.h": "",
    "include/sub/b.h": '#include "../c.h"\n#include_next <sub/b.h>\n',
    "more/sub/b.h": "// b\n",
    "include/c.h": "#ifndef C\n#define C\nstruct S { int x; };\n#endif\n",
    "empty.h": "",
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stage, Path]]:
    """A stage with a precompiled header, which was traced when it was made."""
    root = write(tmp_path_factory.mktemp("project"), FILES)
    job = make_job(root, "k.cu", toolkit_headers="auto", include_dirs=["include", "more"])
    with workspace() as space:
        own = dataclasses.replace(space, own_process=True)
        stage = Stage(job, own, AS_WRITTEN, labelled=False, inside=True)
        file = stage.path / "prefix.pch"
        stage.compile(stage.precompiling(file))
        yield stage, file


def test_the_headers_of_the_trace(made: tuple[Stage, Path]) -> None:
    """All that are read, once each, under the names that the compiler has for them, and no other."""
    stage, file = made
    traced = traced_names(stage.trace.with_suffix(".json"))
    listed = listed_headers(file, stage.root)
    assert traced is not None
    assert listed is not None
    assert {*listed, OWN_HEADER} == set(traced)
    assert len(listed) == len(set(listed))
    mine = {os.path.normpath(name) for name in listed if not os.path.isabs(name)}
    assert mine == {"a.h", "macros.h", "include/sub/b.h", "include/c.h", "more/sub/b.h", "empty.h"}


def test_a_header_that_changed(made: tuple[Stage, Path]) -> None:
    """Where a header is not as old as the list says, the list is not believed."""
    stage, file = made
    header = stage.root / "macros.h"
    before = header.stat()
    os.utime(header, (before.st_atime, before.st_mtime + 2))
    assert listed_headers(file, stage.root) is None
    os.utime(header, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert listed_headers(file, stage.root) is not None


@pytest.mark.parametrize("kind", ["none", "empty", "another", "cut", "twice", "long", "halved name"])
def test_no_such_list(made: tuple[Stage, Path], tmp_path: Path, kind: str) -> None:
    """A file that is not as known has no list."""
    stage, file = made
    with open(file, "rb") as stream:
        data = stream.read(2 << 20)
    place = data.index(b"a.h\0") - 8
    copy = tmp_path / "copy.pch"
    changed = {
        "empty": b"",
        "another": data.replace(b"EDG", b"GCC", 1),
        "cut": data[: place + 20],
        "twice": data + data[data.rindex(OWN_HEADER.encode(), 0, place) - 8 :],
        "long": data[:place] + b"\xff" + data[place + 1 :],
        "halved name": data.replace(b"a.h\0", b"a\0h\0", 1),
    }
    if kind != "none":
        copy.write_bytes(changed[kind])
        copy_whole = tmp_path / "whole.pch"
        copy_whole.write_bytes(data)
        assert listed_headers(copy_whole, stage.root) is not None
    assert listed_headers(copy, stage.root) is None
