#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

#include "blend/weight.cuh"

__global__ void blend_kernel(const float *a, const float *b, float *out, float t, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] + weight(t) * (b[i] - a[i]);
}

torch::Tensor blend(torch::Tensor a, torch::Tensor b, double t) {
    TORCH_CHECK(a.is_cuda() && a.is_contiguous(), "a has to be a contiguous CUDA tensor");
    auto out = torch::empty_like(a);
    int n = a.numel();
    auto stream = at::cuda::getCurrentCUDAStream();
    blend_kernel<<<(n + 255) / 256, 256, 0, stream>>>(
        a.data_ptr<float>(), b.data_ptr<float>(), out.data_ptr<float>(), static_cast<float>(t), n);
    return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("blend", &blend);
}
