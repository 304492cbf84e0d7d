// Local constants in braces and parentheses, with const after the type.
// kernels: k<4>, k<5>, k<8>
constexpr int n = 1, m = 2, s = 3;
template <int N> __global__ void k(int *p) { *p = N; }
void b(int *p) { int const n{4}; k<n><<<1, 32>>>(p); auto constexpr m{5}; k<m><<<1, 1>>>(p); constexpr int r(7), s{8}; k<s><<<1, 1>>>(p); }
