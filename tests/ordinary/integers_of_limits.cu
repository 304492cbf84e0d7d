// LONG_MAX is a long.
// kernels: k
#include <climits>
#include <cstdint>
__device__ int f(long) { return 1; }
__device__ int f(long long) { return 2; }
__global__ void k(int *p) { p[0] = f(LONG_MAX); }
int main() { k<<<1, 1>>>(nullptr); }
