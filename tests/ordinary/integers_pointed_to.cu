// Overloads for pointers to long and to long long.
// kernels: k
#include <cstdint>
#include <vector>
__device__ int tag(const long *) { return 1; }
__device__ int tag(const long long *) { return 2; }
__global__ void k(int64_t *p, int *q) { *q = tag(p); }
void b(int64_t *p, int *q) { std::vector<int> v; k<<<1, 1>>>(p, q); }
