// A pack of which some arguments are written and the others deduced.
// kernels: k<float, double>
template <class... T> __global__ void k(int *p, T... t) { *p = (0 + ... + (int)sizeof(t)); }
void b(int *p) { k<float><<<1, 32>>>(p, 1.f, 2.0); }
