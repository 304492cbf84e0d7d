// Shared memory that the launch sizes.
// kernels: reversed
#include <cstdio>

extern __shared__ unsigned char scratch[];

__global__ void reversed(int *x, int n) {
    int *cache = reinterpret_cast<int *>(scratch);
    cache[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = cache[n - 1 - threadIdx.x];
}

void run(int *x, int n) {
    size_t bytes = n * sizeof(int);
    reversed<<<1, n, bytes>>>(x, n);
}
