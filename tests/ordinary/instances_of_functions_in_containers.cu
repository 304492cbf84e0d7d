// Function objects that become elements of containers.
// kernels: k<double>, k<float>
#include <functional>
#include <vector>
template <class T> __global__ void k(T *p) { p[threadIdx.x] += T(1); }
void a(float *p) { k<<<1, 32>>>(p); }
std::vector<std::function<void(double *)>> table;
void b() { table.push_back([](auto *p) { k<<<1, 32>>>(p); }); }
