// A using-declaration in a namespace hides the kernel outside.
// kernels: k<double>, y::k<float>
template <class T> __global__ void k(T *p) { *p = 1; }
namespace y { template <class T> __global__ void k(T *p) { *p = 2; } }
namespace m { using y::k; void f(float *p) { k<float><<<1, 1>>>(p); } }
void g(double *p) { k<double><<<1, 1>>>(p); }
