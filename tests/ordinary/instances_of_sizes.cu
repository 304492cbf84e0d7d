// Sizes of types of the host.
// kernels: k<32>, k<8>
#include <map>
#include <string>
template <int N> __global__ void k(float *p) { p[0] = N; }
void b(float *p) { k<sizeof(std::string)><<<1, 1>>>(p); k<sizeof(std::map<int, int>::value_type)><<<1, 1>>>(p); }
