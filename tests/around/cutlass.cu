#include <iostream>
#include <vector>
#include <cutlass/gemm/device/gemm.h>

using ColumnMajor = cutlass::layout::ColumnMajor;
using Gemm = cutlass::gemm::device::Gemm<float, ColumnMajor, float, ColumnMajor, float, ColumnMajor>;

__global__ void fill(float *x, int n, float value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = value;
}

cudaError_t sgemm(int m, int n, int k, float alpha, const float *a, int lda, const float *b, int ldb, float beta,
                  float *c, int ldc) {
    Gemm gemm;
    typename Gemm::Arguments arguments({m, n, k}, {a, lda}, {b, ldb}, {c, ldc}, {c, ldc}, {alpha, beta});
    cutlass::Status status = gemm(arguments);
    return status == cutlass::Status::kSuccess ? cudaSuccess : cudaErrorUnknown;
}

int main() {
    std::vector<float> host(128 * 128);
    float *x = nullptr;
    cudaMalloc(&x, host.size() * sizeof(float));
    fill<<<64, 256>>>(x, int(host.size()), 1.0f);
    if (sgemm(128, 128, 128, 1.0f, x, 128, x, 128, 0.0f, x, 128) != cudaSuccess) std::cerr << "failed" << std::endl;
}
