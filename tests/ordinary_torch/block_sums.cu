// Helpers of the library's own kernels: sums over a block, and atomic additions of halves in pairs.
// kernels: total
#include <ATen/native/cuda/KernelUtils.cuh>
#include <ATen/native/cuda/block_reduce.cuh>
#include <torch/extension.h>

__global__ void total(const float *in, float *out, at::Half *halves, int n) {
    __shared__ float shared[32];
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += in[i];
    sum = at::native::cuda_utils::BlockReduceSum(sum, shared);
    if (threadIdx.x == 0) {
        *out = sum;
        at::native::fastAtomicAdd(halves, static_cast<size_t>(3), static_cast<size_t>(n), at::Half(sum), true);
    }
}

void launch(torch::Tensor in, torch::Tensor out) {
    total<<<1, 256>>>(in.data_ptr<float>(), out.data_ptr<float>(), nullptr, in.numel());
}
