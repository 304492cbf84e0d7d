// Arguments that follow from the type of a pointer.
// kernels: fill<float, size_t>
#include <cstddef>
template <class T, class I = int> __global__ void fill(T *p, T v, I n) { p[n] = v; }
void b(float *p) { void (*f)(float *, float, std::size_t) = fill<float>; f<<<1, 1>>>(p, 1.f, 3); }
