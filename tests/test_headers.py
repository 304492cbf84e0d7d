# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The toolkit's headers, one by one: with those that NVRTC carries alone, and with those of installed packages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from jobs import compile_files, make_job, write

from hatch_cuda_kernels.advice import refusal_message
from hatch_cuda_kernels.errors import CompilationError
from hatch_cuda_kernels.nvrtc import Workspace, workspace
from hatch_cuda_kernels.toolchain import probe
from hatch_cuda_kernels.toolkit import carries_headers

CARRIED = {
    "vector_types.h": ("float4 *p", "p->x = 1;"),
    "cuda_fp16.h": ("__half *p", "*p = __float2half(1);"),
    "cuda_bf16.h": ("__nv_bfloat16 *p", "*p = __float2bfloat16(1);"),
    "cuda_fp8.h": ("__nv_fp8_e4m3 *p", "*p = __nv_fp8_e4m3(1.0f);"),
    "cuda_fp6.h": ("__nv_fp6_e2m3 *p", "*p = __nv_fp6_e2m3(1.0f);"),
    "cuda_fp4.h": ("__nv_fp4_e2m1 *p", "*p = __nv_fp4_e2m1(1.0f);"),
    "cuda_pipeline.h": (
        "int4 *p",
        (
            "__shared__ int4 s; __pipeline_memcpy_async(&s, p, 16); __pipeline_commit(); "
            "__pipeline_wait_prior(0); p[1] = s;"
        ),
    ),
    "cuda_awbarrier.h": ("int *p", "__shared__ __mbarrier_t b; if (!threadIdx.x) __mbarrier_init(&b, 32); *p = 1;"),
    "cooperative_groups.h": ("int *p", "*p = cooperative_groups::this_grid().thread_rank();"),
    "cooperative_groups/reduce.h": (
        "int *p",
        (
            "namespace cg = cooperative_groups; *p = "
            "cg::reduce(cg::tiled_partition<32>(cg::this_thread_block()), *p, cg::plus<int>());"
        ),
    ),
    "cooperative_groups/scan.h": (
        "int *p",
        (
            "namespace cg = cooperative_groups; *p = "
            "cg::inclusive_scan(cg::tiled_partition<32>(cg::this_thread_block()), *p);"
        ),
    ),
    "cooperative_groups/memcpy_async.h": (
        "int *p",
        (
            "namespace cg = cooperative_groups; __shared__ int s[32]; auto g = cg::this_thread_block(); "
            "cg::memcpy_async(g, s, p, 128); cg::wait(g); p[32] = s[0];"
        ),
    ),
    "mma.h": (
        "__half *p",
        (
            "nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, __half, nvcuda::wmma::row_major> a; "
            "nvcuda::wmma::load_matrix_sync(a, p, 16); p[0] = a.x[0];"
        ),
    ),
    "cuda/pipeline": ("int *p", "auto q = cuda::make_pipeline(); q.producer_acquire(); q.producer_commit(); *p = 1;"),
    "cuda/barrier": (
        "int *p",
        (
            "__shared__ cuda::barrier<cuda::thread_scope_block> b; if (!threadIdx.x) init(&b, blockDim.x); "
            "__syncthreads(); b.arrive_and_wait(); *p = 1;"
        ),
    ),
    "cuda/ptx": ("unsigned *p", "*p = cuda::ptx::get_sreg_laneid();"),
    "cuda/atomic": ("int *p", "cuda::atomic_ref<int>(*p).fetch_add(1);"),
    "cuda/annotated_ptr": ("int *p", "*p = 1;"),
    "nv/target": ("int *p", "NV_IF_TARGET(NV_PROVIDES_SM_80, (*p = 1;), (*p = 2;))"),
    "math_constants.h": ("float *p", "*p = CUDART_INF_F;"),
    "cuComplex.h": ("cuFloatComplex *p", "*p = cuCmulf(*p, make_cuFloatComplex(1, 2));"),
    "cub/cub.cuh": (
        "int *p",
        "__shared__ cub::BlockReduce<int, 128>::TempStorage s; *p = cub::BlockReduce<int, 128>(s).Sum(*p);",
    ),
    "cub/block/block_reduce.cuh": (
        "int *p",
        "__shared__ cub::BlockReduce<int, 128>::TempStorage s; *p = cub::BlockReduce<int, 128>(s).Sum(*p);",
    ),
    "thrust/complex.h": ("thrust::complex<float> *p", "*p = *p * thrust::exp(p[1]);"),
    "thrust/tuple.h": ("int *p", "*p = thrust::get<0>(thrust::make_tuple(1, 2.0f));"),
    "thrust/pair.h": ("int *p", "*p = thrust::make_pair(1, 2.0f).first;"),
    "thrust/functional.h": ("int *p", "*p = thrust::plus<int>()(1, *p);"),
    "thrust/iterator/counting_iterator.h": ("int *p", "*p = thrust::make_counting_iterator(3)[2];"),
    "thrust/iterator/zip_iterator.h": ("int *p", "*p = 1;"),
    "cuda/std/complex": ("cuda::std::complex<float> *p", "*p = *p * p[1];"),
    "cuda/std/array": ("int *p", "*p = cuda::std::array<int, 2>{1, 2}[1];"),
}
"""Header -> parameters and body of a kernel that uses it; NVRTC carries these."""
INSTALLED = {
    "cuda_runtime.h": ("float4 *p", "p->x = 1;"),
    "cuda_runtime_api.h": ("float4 *p", "p->x = 1;"),
    "device_launch_parameters.h": ("int *p", "*p = threadIdx.x;"),
    "vector_functions.h": ("float4 *p", "*p = make_float4(1, 2, 3, 4);"),
    "sm_20_intrinsics.h": ("float *p", "*p = __fmul_rn(*p, 2.0f); *p += __ballot_sync(~0u, 1);"),
    "sm_30_intrinsics.h": ("float *p", "*p = __shfl_sync(~0u, *p, 0);"),
    "sm_32_intrinsics.h": ("float *p", "*p = __ldg(p + 1);"),
    "sm_35_intrinsics.h": ("float *p", "*p = __ldg(p + 1);"),
    "sm_60_atomic_functions.h": ("double *p", "atomicAdd(p, 1.0);"),
    "sm_61_intrinsics.h": ("int *p", "*p = __dp4a(*p, 1, 2);"),
    "device_atomic_functions.h": ("int *p", "atomicAdd(p, 1);"),
    "texture_indirect_functions.h": ("cudaTextureObject_t t, float *p", "*p = tex2D<float>(t, 0, 0);"),
    "surface_indirect_functions.h": ("cudaSurfaceObject_t t, float *p", "*p = surf2Dread<float>(t, 0, 0);"),
    "texture_types.h": ("cudaTextureObject_t t, float *p", "*p = tex2D<float>(t, 0, 0);"),
    "builtin_types.h": ("float4 *p", "p->x = 1;"),
    "driver_types.h": ("int *p", "*p = cudaSuccess;"),
    "library_types.h": ("int *p", "*p = CUDA_R_16F;"),
}
"""The same for headers that only packages have."""
HOST = "#include <vector>\nstd::vector<int> all;\nint main() { return 0; }\n"
FEW = ("cuda_fp16.h", "cuda_runtime.h", "mma.h", "nv/target", "texture_types.h")
"""Those of the default run."""


def source(header: str, *, host: bool) -> str:
    """A file with a kernel that uses a header, and host code beside it if asked for."""
    parameters, body = (CARRIED | INSTALLED)[header]
    return f"#include <{header}>\n__global__ void k({parameters}) {{ {body} }}\n{HOST if host else ''}"


@pytest.fixture(scope="module")
def space() -> Iterator[Workspace]:
    """A workspace for all tests here."""
    with workspace() as found:
        yield found


def check(header: str, mode: str, tmp_path: Path, space: Workspace) -> None:
    """Assert that a kernel that uses a header compiles, alone and with host code around it."""
    if mode == "bundled" and not carries_headers(probe().version):
        pytest.skip("this NVRTC carries no headers")
    for host in (False, True):
        image = compile_files(tmp_path, {"k.cu": source(header, host=host)}, space, toolkit_headers=mode)
        assert set(image.kernels) == {"k"}


MATRIX = [(header, mode) for header in CARRIED for mode in ("bundled", "auto")]
MATRIX += [(header, "auto") for header in INSTALLED]


@pytest.mark.parametrize(("header", "mode"), [cell for cell in MATRIX if cell[0] in FEW and cell != ("mma.h", "auto")])
def test_compiles(header: str, mode: str, tmp_path: Path, space: Workspace) -> None:
    """A kernel that uses a header of the toolkit compiles."""
    check(header, mode, tmp_path, space)


@pytest.mark.slow
@pytest.mark.parametrize(("header", "mode"), [cell for cell in MATRIX if cell[0] not in FEW])
def test_each_compiles(header: str, mode: str, tmp_path: Path, space: Workspace) -> None:
    """The same for all others."""
    check(header, mode, tmp_path, space)


@pytest.mark.parametrize("header", [*INSTALLED])
def test_says_which_package_has_it(header: str, tmp_path: Path, space: Workspace) -> None:
    """What NVRTC does not carry is an error that names the package and the key."""
    if not carries_headers(probe().version):
        pytest.skip("this NVRTC carries no headers")
    with pytest.raises(
        CompilationError, match=r"set toolkit-headers to 'auto', which takes it from nvidia-cuda-runtime"
    ):
        compile_files(tmp_path, {"k.cu": source(header, host=False)}, space, toolkit_headers="bundled")


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("curand_kernel.h", "is in the package nvidia-curand"),
        ("crt/mma.h", "is in the package nvidia-cuda-crt"),
        ("helper_cuda.h", "is of NVIDIA's samples"),
        ("texture_fetch_functions.h", "are gone since CUDA 12"),
        ("cub/block/none.cuh", "is of CCCL"),
        ("other.h", "add the folder that holds other.h to include-dirs"),
    ],
)
def test_hint(header: str, said: str, tmp_path: Path) -> None:
    """For every header that is not there, what to do about it."""
    job = make_job(write(tmp_path, {"k.cu": f"#include <{header}>\n"}), toolkit_headers="auto")
    assert said in refusal_message(job, f'k.cu(1): catastrophic error: cannot open source file "{header}"')


THRUST = """
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/sort.h>
#include <thrust/pair.h>
namespace app {
using Values = thrust::device_vector<float>;
class Sorter {
  public:
    explicit Sorter(const thrust::host_vector<float> &start) : values_(start) {}
    void run() { thrust::sort(values_.begin(), values_.end()); }
  private:
    thrust::device_vector<float> values_;
};
struct Pool { thrust::universal_vector<int> free; };
__global__ void halves(float *x, thrust::pair<float, float> by) { x[threadIdx.x] *= by.first + by.second; }
Values sorted(const Values &in, thrust::device_vector<int> &order) { return in; }
}
"""


@pytest.mark.slow
def test_containers_of_thrust_are_the_hosts(tmp_path: Path, space: Workspace) -> None:
    """Classes, aliases and functions with vectors of Thrust go; pairs stay."""
    image = compile_files(tmp_path, {"k.cu": THRUST}, space, toolkit_headers="auto")
    assert set(image.kernels) == {"app::halves"}


@pytest.mark.slow
def test_macros_that_a_library_declares_as_well(tmp_path: Path, space: Workspace) -> None:
    """CUTLASS has `FP_NAN` as an enumerator under NVRTC, where libcu++ has it as a macro, if it is read first."""
    categories = "FP_NAN FP_INFINITE FP_ZERO FP_SUBNORMAL FP_NORMAL".split()
    enumerators = "".join(f"{name} =\n#define {name} {at}\n{name},\n" for at, name in enumerate(categories))
    files = {
        "include/cutlass/platform/platform.h": "#pragma once\n#include <cuda/std/cstdint>\n",
        "include/cutlass/floating_point_nvrtc.h": "#pragma once\n#include <cutlass/platform/platform.h>\n"
        f"namespace cutlass {{\nenum {{\n{enumerators}}};\n}}\n",
        "k.cu": """
            #include <cuda/std/cmath>
            #include <vector>
            #include "cutlass/floating_point_nvrtc.h"
            std::vector<int> all;
            __global__ void k(float x, int *p) {
                p[0] = FP_NORMAL;
                p[1] = cuda::std::fpclassify(x) == FP_NORMAL;
            }
        """,
    }
    compile_files(tmp_path, files, space, toolkit_headers="auto", include_dirs=["include"])
