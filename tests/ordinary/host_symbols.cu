// Copies to memory of the device by its name.
// kernels: blur
#include <vector>

#define RADIUS 3
__constant__ float mask[2 * RADIUS + 1];
__device__ unsigned long long hits;

__global__ void blur(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < RADIUS || i >= n - RADIUS) return;
    float sum = 0;
    for (int k = -RADIUS; k <= RADIUS; ++k) sum += in[i + k] * mask[k + RADIUS];
    out[i] = sum;
    atomicAdd(&hits, 1ull);
}

void prepare(const std::vector<float> &weights) {
    cudaMemcpyToSymbol(mask, weights.data(), sizeof(mask));
    unsigned long long zero = 0;
    cudaMemcpyToSymbol(hits, &zero, sizeof(zero));
}
