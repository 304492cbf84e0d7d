// A parameter of a template that is called like a type of the host.
// kernels: k
#include <vector>
template <int DIR> struct B { template <typename C> static __device__ void run(C *v) { v[0] = v[DIR]; } };
__global__ void k(float *v) { B<2>::run(v); }
int main() { k<<<1, 1>>>(nullptr); }
