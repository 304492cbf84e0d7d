// A parameter with a default that is deduced all the same.
// kernels: fill<float, size_t>
#include <cstddef>
template <class T, class I = int> __global__ void fill(T *p, T v, I n) { if (threadIdx.x < n) p[threadIdx.x] = v; }
void b(float *p, std::size_t n) { fill<float><<<1, 32>>>(p, 1.f, n); }
