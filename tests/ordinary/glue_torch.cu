// A binding of tensors.
// kernels: relu
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

#define CHECK_CUDA(x) TORCH_CHECK(x.device().is_cuda(), #x " must be a CUDA tensor")

__global__ void relu(const float *__restrict__ in, float *__restrict__ out, int64_t n) {
    int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (i < n) out[i] = in[i] > 0 ? in[i] : 0;
}

torch::Tensor forward(torch::Tensor in) {
    CHECK_CUDA(in);
    const at::cuda::OptionalCUDAGuard guard(device_of(in));
    auto out = torch::empty_like(in);
    auto stream = at::cuda::getCurrentCUDAStream();
    relu<<<(in.numel() + 255) / 256, 256, 0, stream>>>(in.data_ptr<float>(), out.data_ptr<float>(), in.numel());
    return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("forward", &forward, "rectifier");
}
