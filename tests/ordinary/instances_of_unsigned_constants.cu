// Local constants of an unsigned type in arithmetic.
// kernels: k<2147483647>
template <int N> __global__ void k(float *p) { p[0] = N; }
void b(float *p) { const unsigned a = 3; const int c = (a - 4) / 2; k<c><<<1, 32>>>(p); }
