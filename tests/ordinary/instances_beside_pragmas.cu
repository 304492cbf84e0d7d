// Messages that a file silences.
// kernels: k<float>, k<int>, plain
#pragma nv_diag_suppress 959
#include <vector>
template <class T> __global__ void k(T *p) { *p = 1; }
template <class T> void run(T *p) { k<<<1, 1>>>(p); }
void b(float *p, int *q) { run(p); run(q); }
__global__ void plain(int *p) { *p = 1; }
