# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Images of files that ask for their own names: the same from a process of its own, in one run, as from an app."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from jobs import make_job, write

from hatch_cuda_kernels import nvrtc
from hatch_cuda_kernels.compiler import compile_job
from hatch_cuda_kernels.errors import CompilationError
from hatch_cuda_kernels.nvrtc import Stage, Workspace, workspace

START = '#include <cuda_fp16.h>\n#include "near.h"\n#include <far.h>\nnamespace { __device__ int hidden = 3; }\n'
KERNEL = (
    'extern "C" __global__ void k(int* p) { int unused; assert(*p > hidden); NEAR; FAR; p[1] = sizeof(__FILE__); }\n'
)
FILES: Mapping[str, str] = {
    "demo/k.cu": START + KERNEL,
    "demo/near.h": "#pragma once\n#define NEAR assert(p[2] == 1)\n__device__ const char* where = __FILE__;\n",
    "include/far.h": '#include "deep/own.h"\n#define FAR p[3] = named(__FILE__)\n',
    "include/deep/own.h": "__device__ __noinline__ int named(const char* text) { return text[2]; }\n",
}


@pytest.fixture(scope="module")
def space() -> Iterator[Workspace]:
    """A workspace for all tests here."""
    with workspace() as found:
        yield found


@pytest.mark.parametrize(
    ("files", "options", "runs"),
    [
        ({}, {}, 1),
        ({"demo/k.cu": START + "#if __CUDA_ARCH__ > 900\n#endif\n" + KERNEL}, {"arch": "compute_90"}, 1),
        ({"demo/k.cu": START + KERNEL + "int main() { return 0; }\n"}, {}, 3),
        ({"demo/k.cu": START.replace('"near.h"', '"../demo/near.h"') + KERNEL}, {}, 3),
        ({"demo/k.cu": START.replace('"near.h"', '"./near.h"') + KERNEL}, {}, 3),
        ({}, {"include_dirs": ["./include"]}, 3),
        ({"demo/k.cu": "#line 7\n" + START + KERNEL}, {}, 1),
        ({"demo/k.cu": "#include <toolkit_path.h>\n" + START + KERNEL.replace("NEAR;", "toolkit();")}, {}, 1),
        ({}, {"options": {"lineinfo": True}}, 2),
        ({}, {"options": {"pre-include": "demo/near.h"}}, 2),
    ],
)  # fmt: skip
def test_same_image(
    tmp_path: Path,
    space: Workspace,
    monkeypatch: pytest.MonkeyPatch,
    files: Mapping[str, str],
    options: Mapping[str, Any],
    runs: int,
) -> None:
    """Bytes, reads and warnings are those of files with labels; where names would not be labels, it takes two runs."""
    toolkit = {"include/toolkit_path.h": "#define toolkit() assert(p[4])\n"}
    root = write(tmp_path, {**FILES, **toolkit, **files})
    given = {"source": "demo/k.cu", "include_dirs": ["include"], "toolkit_headers": "auto", **options}
    job = make_job(root, **given)
    assert job.unit.labelled
    folder = os.getcwd()
    calls: list[bool] = []
    run = nvrtc._run

    def counted(*args: Any) -> Any:
        calls.append(os.getcwd() != folder)
        return run(*args)

    monkeypatch.setattr(nvrtc, "_run", counted)
    alone = compile_job(job, space)
    before = len(calls)
    assert not any(calls)
    image = compile_job(job, dataclasses.replace(space, own_process=True))
    assert dataclasses.replace(image, seconds=0) == dataclasses.replace(alone, seconds=0)
    assert os.getcwd() == folder
    assert len(calls) - before == runs
    never = "lineinfo" in str(options) or "pre-include" in str(options) or "#line" in str(files)
    assert any(calls[before:]) is not never


def test_errors_and_the_folder(tmp_path: Path, space: Workspace) -> None:
    """A refusal reads the same, and leaves the process where it was."""
    job = make_job(write(tmp_path, {**FILES, "demo/k.cu": START + KERNEL + "nonsense;\n"}), "demo/k.cu",
                   include_dirs=["include"], toolkit_headers="auto")  # fmt: skip
    folder, messages = os.getcwd(), []
    for own_process in (False, True):
        with pytest.raises(CompilationError) as caught:
            compile_job(job, dataclasses.replace(space, own_process=own_process))
        messages.append(str(caught.value))
    assert messages[0] == messages[1] and os.getcwd() == folder


def test_a_header_s_path_is_noticed(tmp_path: Path, space: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a toolkit header leaves its path in the image, it is compiled once more, with labels."""
    root = write(tmp_path, FILES)
    job = make_job(root, "demo/k.cu", include_dirs=["include"], toolkit_headers="auto")
    leaks, asked = Stage.leaks, []

    def leaky(self: Stage, image: Any) -> bool:
        asked.append(self.inside)
        return self.inside or leaks(self, image)

    alone = compile_job(job, space)
    monkeypatch.setattr(Stage, "leaks", leaky)
    image = compile_job(job, dataclasses.replace(space, own_process=True))
    assert image.data == alone.data and asked[0] and not asked[-1]
