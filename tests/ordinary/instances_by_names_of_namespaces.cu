// Another name of a namespace in a block.
// kernels: y::k<float>
namespace x { template <class T> __global__ void k(T *p) { *p = 1; } }
namespace y { template <class T> __global__ void k(T *p) { *p = 2; } }
void b(float *p) { namespace x = y; x::k<float><<<1, 32>>>(p); }
