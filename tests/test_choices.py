# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Code that is chosen by what only a host compiler has is told of."""

from __future__ import annotations

from pathlib import Path

import pytest
from jobs import compile_files

from hatch_cuda_kernels.hostcode import host_choices
from hatch_cuda_kernels.nvrtc import workspace

CODE = "#endif\n__device__ int used() { return FAST; }\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("\n#ifdef __NVCC__\nint a;\n#endif\n", [(2, "__NVCC__")]),
        ("#if 1\n#elif defined(__GNUC__)\nint a;\n#endif\n", [(1, "__GNUC__")]),
        ("#if defined(A) && \\\n  defined(__linux__)\nint a;\n#endif\n", [(1, "__linux__")]),
        ("#ifdef _MSC_VER\n#ifdef B\nint a;\n#endif\n#endif\n", [(1, "_MSC_VER")]),
        ("#if __has_include(<vector>)\nint a;\n#endif\n", [(1, "__has_include(<vector>)")]),
        ("#ifndef NAN\n#define FAST 1\n" + CODE, [(1, "NAN")]),
        ("#ifdef __NVCC__\n#define UNUSED 1\n" + CODE, []),
        ("#ifdef __NVCC__\n#include <vector>\n\n// int a;\n#endif\n", []),
        ("#if __has_include(<cuda/std/array>)\nint a;\n#endif\n", []),
        ("#ifdef __CUDACC__\nint a; // __NVCC__\n#endif\n#endif\n#else\n", []),
        ("#ifdef __NVCC__\nint a;\n", []),
    ],
)
def test_host_choices(text: str, found: list[tuple[int, str]]) -> None:
    """A conditional counts where code is left in it, or a macro that the code has; headers of the host do not."""
    assert list(host_choices(text.encode())) == found


def test_a_build_warns(tmp_path: Path) -> None:
    """The image is made, and the warning has the line and what to ask for in its place."""
    text = "#ifdef __NVCC__\n#define STEP 2\n#else\n#define STEP 1\n#endif\n"
    text += "#include <vector>\n__global__ void k(int *p) { *p = STEP; }\nint main() { return 0; }\n"
    with workspace() as space:
        image = compile_files(tmp_path, {"k.cu": text}, space, toolkit_headers="auto")
    (warning,) = image.warnings
    assert "k.cu(1): __NVCC__" in warning
    assert "ask for __CUDACC__" in warning
