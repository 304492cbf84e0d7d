// std::min and std::max in device code.
// kernels: clamp
#include <algorithm>
#include <limits>

__global__ void clamp(float *x, int n, float low, float high) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = std::min(std::max(x[i], low), high);
    if (i == 0 && n == 0) x[0] = std::numeric_limits<float>::max();
}

void run(float *x, int n) { clamp<<<std::max(1, n / 64), 64>>>(x, n, 0.0f, 1.0f); }
