// Code that asks for nvcc by its own macro: a space, and a choice in a kernel.
// kernels: shift
#include <string>
#ifdef __NVCC__
#define ON_BOTH __host__ __device__ inline
#else
#define ON_BOTH inline
#endif
#if defined(__NVCC__) && !defined(WITHOUT)
constexpr int step = 3;
#elif defined(OTHER)
constexpr int step = 2;
#else
constexpr int step = 1;
#endif

ON_BOTH int moved(int x) { return x + step; }

__global__ void shift(int *x) {
#ifndef __NVCC__
    x[threadIdx.x] = 0;
#endif
    x[threadIdx.x] = moved(x[threadIdx.x]);
}

std::string run(int *x) {
    shift<<<1, 32>>>(x);
    return std::to_string(moved(1));
}
