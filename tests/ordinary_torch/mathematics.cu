// Mathematical functions of the library for both sides, and macros for functions.
// kernels: activate
#include <ATen/NumericUtils.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAMathCompat.h>

namespace {

C10_HOST_DEVICE C10_ALWAYS_INLINE float gelu(float x) {
    return 0.5f * x * (1.0f + c10::cuda::compat::tanh(0.79788456f * (x + 0.044715f * x * x * x)));
}

C10_DEVICE float keep(float x) { return at::_isnan(x) ? 0.0f : c10::cuda::compat::copysign(x, -1.0f); }

}  // namespace

__global__ void activate(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = gelu(keep(x[i]));
}

void launch(float *x, int n) { activate<<<1, 32, 0, at::cuda::getCurrentCUDAStream()>>>(x, n); }
