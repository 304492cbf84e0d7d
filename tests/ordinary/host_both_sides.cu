// Functions for both sides, and for one each by the compiler's macro.
// kernels: spread
#include <cstdio>

__host__ __device__ inline unsigned hash(unsigned x) {
#ifdef __CUDA_ARCH__
    return __brev(x) * 2654435761u;
#else
    unsigned r = 0;
    for (int i = 0; i < 32; ++i) r |= ((x >> i) & 1u) << (31 - i);
    return r * 2654435761u;
#endif
}

__global__ void spread(unsigned *x) { x[threadIdx.x] = hash(x[threadIdx.x]); }

void verify(const unsigned *x, int n) {
    for (int i = 0; i < n; ++i) printf("%u\n", hash(x[i]));
}
