// Handles of libraries that only the host calls.
// kernels: bias
#include <cublas_v2.h>
#include <cusparse.h>
#include <nvtx3/nvToolsExt.h>
#include <nccl.h>

static cublasHandle_t handle = nullptr;

__global__ void bias(float *c, const float *b, int rows, int columns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * columns) c[i] += b[i % columns];
}

cublasStatus_t linear(const float *a, const float *w, const float *b, float *c, int m, int n, int k) {
    nvtxRangePushA("linear");
    const float one = 1.0f, none = 0.0f;
    if (!handle) cublasCreate(&handle);
    auto status = cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, w, n, a, k, &none, c, n);
    bias<<<(m * n + 255) / 256, 256>>>(c, b, m, n);
    nvtxRangePop();
    return status;
}
