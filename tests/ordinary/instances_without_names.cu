// Parameters of templates without names that have defaults.
// kernels: k<float, 8>, q<float, int, 8>
template <class T, int = 4> __global__ void k(T *p) { *p = 1; }
template <class T, class = void, int N = 3> __global__ void q(T *p) { *p = N; }
template <class T> void run(T *p) { k<T, 8><<<1, 1>>>(p); q<T, int, 8><<<1, 1>>>(p); }
void b(float *p) { run(p); }
