# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The kernels that are built: the same files for every way of building them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["SETS", "KernelSet"]


@dataclass(frozen=True, kw_only=True)
class KernelSet:
    """Sources below `demo/`, the real architectures they are built for, and a header that some of them read."""

    name: str
    archs: tuple[str, ...]
    files: Mapping[str, str]
    touched: str
    """Header that the scenario `touched` edits."""
    table: Mapping[str, str] = field(default_factory=dict)
    """More of the hook table."""
    flags: tuple[str, ...] = ()
    """The same for a bare NVRTC."""
    nvcc_flags: tuple[str, ...] = ()
    """The same for nvcc."""

    @property
    def sources(self) -> list[str]:
        """Labels of the sources."""
        return [name for name in self.files if name.endswith(".cu")]

    @property
    def readers(self) -> int:
        """Images that have to be made anew after the edit."""
        header = f'"{self.touched.rpartition("/")[2]}"'
        return sum(header in self.files[name] for name in self.sources) * len(self.archs)


_GAIN = "#pragma once\n#define GAIN 2.0f\n"
_SMALL = """\
{include}extern "C" __global__ void small{n}(float a, const float* x, float* y, int n)
{{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i] * {factor};
}}
"""

_CUB_START = """\
#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
"""
_CUB_BODIES = {
    "reduce": """\
    using Reduce = cub::BlockReduce<T, THREADS>;
    __shared__ typename Reduce::TempStorage storage;
    T sum = Reduce(storage).Sum(x[blockIdx.x * THREADS + threadIdx.x]);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
""",
    "scan": """\
    using Scan = cub::BlockScan<T, THREADS>;
    __shared__ typename Scan::TempStorage storage;
    T value = x[blockIdx.x * THREADS + threadIdx.x];
    Scan(storage).InclusiveSum(value, value);
    y[blockIdx.x * THREADS + threadIdx.x] = value;
""",
    "sort": """\
    using Sort = cub::BlockRadixSort<T, THREADS, 4>;
    __shared__ typename Sort::TempStorage storage;
    T keys[4];
    for (int i = 0; i < 4; ++i) keys[i] = x[(blockIdx.x * THREADS + threadIdx.x) * 4 + i];
    Sort(storage).Sort(keys);
    for (int i = 0; i < 4; ++i) y[(blockIdx.x * THREADS + threadIdx.x) * 4 + i] = keys[i];
""",
}


def _cub(shared: bool) -> dict[str, str]:
    """Nine kernels; `shared`: they all begin with the same includes, else each includes what it needs."""
    own = {"reduce": "block_reduce", "scan": "block_scan", "sort": "block_radix_sort"}
    files = {}
    for body, text in _CUB_BODIES.items():
        for kind in ("int", "float", "double"):
            start = _CUB_START if shared else f"#include <cub/block/{own[body]}.cuh>\n"
            start += '#include "threads.h"\n' if kind == "int" else "#define THREADS 128\n"
            files[f"demo/{body}_{kind}.cu"] = (
                f'{start}using T = {kind};\nextern "C" __global__ void {body}_{kind}(const T* x, T* y)\n{{\n{text}}}\n'
            )
    return {**files, "demo/threads.h": "#pragma once\n#define THREADS 128\n"}


_CUTE = """\
#include <cute/tensor.hpp>

extern "C" __global__ void axpby{n}(float a, const float* x, float* y, int n)
{{
    using namespace cute;
    auto all_x = make_tensor(make_gmem_ptr(x), make_shape(n));
    auto all_y = make_tensor(make_gmem_ptr(y), make_shape(n));
    auto tile_x = local_tile(all_x, make_shape(Int<{tile}>{{}}), make_coord(int(blockIdx.x)));
    auto tile_y = local_tile(all_y, make_shape(Int<{tile}>{{}}), make_coord(int(blockIdx.x)));
    auto threads = make_layout(make_shape(Int<32>{{}}));
    auto my_x = local_partition(tile_x, threads, threadIdx.x);
    auto my_y = local_partition(tile_y, threads, threadIdx.x);
    for (int i = 0; i < size(my_x); ++i) my_y(i) += a * my_x(i);
}}
"""

SETS = {
    found.name: found
    for found in (
        KernelSet(
            name="small",
            archs=("sm_80", "sm_90"),
            files={
                **{
                    f"demo/small{n}.cu": _SMALL.format(
                        n=n, include='#include "gain.h"\n' if n < 2 else "", factor="GAIN" if n < 2 else f"{n}.0f"
                    )
                    for n in range(10)
                },
                "demo/gain.h": _GAIN,
            },
            touched="demo/gain.h",
        ),
        KernelSet(
            name="cub", archs=("sm_80", "sm_90", "sm_100", "sm_120"), files=_cub(shared=False), touched="demo/threads.h"
        ),
        KernelSet(
            name="cub-shared",
            archs=("sm_80", "sm_90", "sm_100", "sm_120"),
            files=_cub(shared=True),
            touched="demo/threads.h",
        ),
        KernelSet(
            name="cute",
            archs=("sm_80", "sm_90"),
            files={
                **{f"demo/axpby{n}.cu": _CUTE.format(n=n, tile=128 << n) for n in range(3)},
                "demo/late.cu": '#include "gain.h"\n' + _SMALL.format(n=9, include="", factor="GAIN"),
                "demo/gain.h": _GAIN,
            },
            touched="demo/gain.h",
            table={
                "include-packages": '["cutlass_library/source/include"]',
                "options": '{std = "c++17", device-as-default-execution-space = true}',
                "toolkit-headers": '"installed"',
            },
            flags=("--std=c++17", "--device-as-default-execution-space"),
            nvcc_flags=("--expt-relaxed-constexpr",),
        ),
    )
}
