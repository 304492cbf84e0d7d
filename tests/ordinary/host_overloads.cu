// Overloads of which one is for the host.
// kernels: twice_all
#include <string>

__device__ float twice(float x) { return 2 * x; }
__device__ int twice(int x) { return 2 * x; }

static std::string shown(float x) { return std::to_string(x); }

__global__ void twice_all(float *x, int *y) {
    x[threadIdx.x] = twice(x[threadIdx.x]);
    y[threadIdx.x] = twice(y[threadIdx.x]);
}

std::string run(float *x, int *y) {
    twice_all<<<1, 32>>>(x, y);
    return shown(1.0f);
}
