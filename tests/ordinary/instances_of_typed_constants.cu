// Local constants as values of any type.
// kernels: k<4UL>
template <auto N> __global__ void k(float *p) { p[0] = sizeof(N) * 10 + N; }
void b(float *p) { const unsigned long n = 4; k<n><<<1, 32>>>(p); }
