// Kernels in lists in braces, and returned, with arguments that follow from the pointer.
// kernels: k1<float>, k2<float>, plain
template <class T> __global__ void k1(T *p) { *p = 1; }
template <class T> __global__ void k2(T *p) { *p = 2; }
__global__ void plain(float *p) { *p = 3; }
using Fn = void (*)(float *);
Fn table[] = {k1};
Fn pick() { return k2; }
void b(float *p, int i) { table[i]<<<1, 32>>>(p); pick()<<<1, 32>>>(p); plain<<<1, 1>>>(p); }
