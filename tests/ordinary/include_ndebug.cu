// Assertions that a file switches off, and on again.
// kernels: quiet, loud
#include <cstdio>
#define NDEBUG
#include <cassert>

__global__ void quiet(const float *x, float *y) {
    assert(x[0] > 0.0f);
    y[0] = x[0];
}

#undef NDEBUG
#include <assert.h>

__global__ void loud(const float *x, float *y) {
    assert(x[0] > 0.0f);
    y[0] = x[0];
}

int main() {
    quiet<<<1, 1>>>(nullptr, nullptr);
    loud<<<1, 1>>>(nullptr, nullptr);
    printf("%d\n", int(cudaDeviceSynchronize()));
}
