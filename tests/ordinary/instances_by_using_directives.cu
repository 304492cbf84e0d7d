// Two kernels of one name, told apart by a using-directive and by another name of a namespace.
// kernels: bwd::k<double>, bwd::k<float>, fwd::k<float>
namespace fwd { template <class T> __global__ void k(T *p) { *p = 1; } void go(float *p) { k<float><<<1, 1>>>(p); } }
namespace bwd { template <class T> __global__ void k(T *p) { *p = 3; } }
void b(float *p) { using namespace bwd; k<float><<<1, 1>>>(p); }
namespace B = bwd;
void c(double *p) { B::k<double><<<1, 1>>>(p); }
