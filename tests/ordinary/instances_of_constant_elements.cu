// Elements of containers that are constant.
// kernels: k<const double>, k<const float>, k<const int>
#include <map>
#include <set>
#include <thrust/device_vector.h>
template <class T> __global__ void k(T *p, int *q) { *q = sizeof(*p); }
template <class M> void run(M &m, int *q) { for (auto &e : m) k<<<1, 1>>>(&e.first, q); }
template <class T> void dev(const thrust::device_vector<T> &v, int *q) { k<<<1, 1>>>(thrust::raw_pointer_cast(v.data()), q); }
void b(std::map<int, float> &m, std::set<float> &s, thrust::device_vector<double> &d, int *q) { run(m, q); for (auto &x : s) k<<<1, 1>>>(&x, q); dev(d, q); }
