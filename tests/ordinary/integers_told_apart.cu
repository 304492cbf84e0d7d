// Code that tells long from long long in several ways.
// kernels: k
#include <cstdint>
#include <type_traits>
#include <vector>
using L = long;
__device__ int tag(int a, long) { return 1; }
__device__ int tag(int a, long long) { return 2; }
template <class T, int N> struct Q { static constexpr int v = 0; };
template <int N> struct Q<long, N> { static constexpr int v = 5; };
template <int N> struct Q<unsigned long, N> { static constexpr int v = 6; };
__global__ void k(int64_t *p, int *q) { *q = tag(1, *p) + Q<int64_t, 3>::v * 10 + Q<uint64_t, 3>::v * 100 + std::is_same<int64_t, L>::value * 1000; }
void b(int64_t *p, int *q) { std::vector<int> v; k<<<1, 1>>>(p, q); }
