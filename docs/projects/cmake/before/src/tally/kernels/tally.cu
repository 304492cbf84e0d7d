#include <tally/bins.cuh>

extern "C" __global__ void tally(const unsigned char *values, unsigned *counts, int n) {
    __shared__ unsigned own[bins];
    for (int i = threadIdx.x; i < bins; i += blockDim.x) own[i] = 0;
    __syncthreads();
    int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) atomicAdd(&own[values[i] % bins], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < bins; i += blockDim.x) atomicAdd(&counts[i], own[i]);
}
