// Elements that containers and owners make and destroy.
// kernels: k<double>, k<float>
#include <vector>
template <class T> __global__ void k(T *p) { p[threadIdx.x] += T(1); }
void a(float *p) { k<<<1, 32>>>(p); }
template <class T> struct Layer { T *p = nullptr; Layer() { k<T><<<1, 32>>>(p); } };
void b() { std::vector<Layer<double>> v(3); }
