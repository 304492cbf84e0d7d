// A line is numbered anew in the body of a function of the host.
// kernels: k
#include <vector>
void host(std::vector<int> &v) {
  v.push_back(1);
#line 900
  v.push_back(2);
}
__global__ void k(int *p) { *p = __LINE__; }
void b(int *p) { k<<<1, 1>>>(p); }
