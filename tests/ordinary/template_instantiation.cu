// Explicit instantiations, and what is not one.
// kernels: shift<int>, shift<float>
#include <cstdio>

template <typename T>
__global__ void shift(T *x, T by) { x[threadIdx.x] += by; }

template <typename T>
void shift_all(T *x) { printf("%p\n", (void *)x); }

template __global__ void shift<int>(int *, int);
template __global__ void shift<float>(float *, float);
template void shift_all<int>(int *);
