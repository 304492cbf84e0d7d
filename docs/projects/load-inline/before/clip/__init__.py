from torch.utils.cpp_extension import load_inline

_cuda = r"""
__global__ void clip_kernel(const float *in, float *out, float low, float high, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = fminf(fmaxf(in[i], low), high);
}

torch::Tensor clip(torch::Tensor in, double low, double high) {
    auto out = torch::empty_like(in);
    int n = in.numel();
    clip_kernel<<<(n + 255) / 256, 256>>>(in.data_ptr<float>(), out.data_ptr<float>(), low, high, n);
    return out;
}
"""

_module = load_inline(
    name="clip",
    cpp_sources="torch::Tensor clip(torch::Tensor in, double low, double high);",
    cuda_sources=_cuda,
    functions=["clip"],
    extra_cuda_cflags=["-gencode=arch=compute_80,code=sm_80", "-gencode=arch=compute_90,code=sm_90"],
)
clip = _module.clip
