// A using-declaration in a block hides the kernel outside.
// kernels: a::k<float>
template <class T> __global__ void k(T *p) { *p = 1; }
namespace a { template <class T> __global__ void k(T *p) { *p = 2; } }
void b(float *p) { using a::k; k<float><<<1, 32>>>(p); }
