// Execution spaces behind macros.
// kernels: squares
#if defined(__CUDACC__)
#define HD __host__ __device__
#else
#define HD
#endif
#define KERNEL extern "C" __global__
#define FORCE_INLINE __forceinline__

HD FORCE_INLINE int square(int x) { return x * x; }
FORCE_INLINE int cube(int x) { return x * x * x; }

KERNEL void squares(int *x) { x[threadIdx.x] = square(x[threadIdx.x]); }

int run(int *x) {
    squares<<<1, 32>>>(x);
    return cube(3);
}
