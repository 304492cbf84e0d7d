// An assertion in a kernel.
// kernels: positive
#include <cassert>
#include <cstdlib>

__global__ void positive(const float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) assert(x[i] > 0.0f);
}

void check(const float *x, int n) {
    assert(n > 0);
    positive<<<n, 1>>>(x, n);
}
