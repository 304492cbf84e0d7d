// Atomic operations of the library, and its loop over a grid.
// kernels: scatter<float>, scatter<c10::Half>, scatter<int64_t>
#include <ATen/cuda/Atomic.cuh>
#include <ATen/cuda/detail/KernelUtils.h>
#include <torch/types.h>

using namespace at;
using namespace at::cuda::detail;

template <typename T>
C10_LAUNCH_BOUNDS_1(256)
__global__ void scatter(const T *values, const int64_t *where, T *out, const int n) {
    CUDA_KERNEL_LOOP(i, n) {
        CUDA_KERNEL_ASSERT(where[i] >= 0);
        gpuAtomicAdd(out + where[i], values[i]);
    }
}

template __global__ void scatter<float>(const float *, const int64_t *, float *, const int);
template __global__ void scatter<c10::Half>(const c10::Half *, const int64_t *, c10::Half *, const int);
template __global__ void scatter<int64_t>(const int64_t *, const int64_t *, int64_t *, const int);

void scatter_all(const Tensor &values, const Tensor &where, Tensor &out) {
    int blocks = GET_BLOCKS(values.numel());
    scatter<float><<<blocks, 256>>>(values.data_ptr<float>(), where.data_ptr<int64_t>(), out.data_ptr<float>(), 9);
}
