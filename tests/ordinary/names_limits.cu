// Limits that nvcc knows without an include.
// kernels: low
#include <cstdio>

__global__ void low(int *x, float *y) {
    x[threadIdx.x] = x[threadIdx.x] == INT_MAX ? INT_MIN : x[threadIdx.x];
    y[threadIdx.x] = FLT_MAX;
    if (threadIdx.x == UINT_MAX) printf("never\n");
}
