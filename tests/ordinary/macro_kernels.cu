// Kernels made by macros.
// kernels: add_float, add_double, mul_float, mul_double
#define BINARY(name, op, T)                                                \
    __global__ void name##_##T(const T *a, const T *b, T *c, int n) {      \
        int i = blockIdx.x * blockDim.x + threadIdx.x;                     \
        if (i < n) c[i] = a[i] op b[i];                                    \
    }
#define BOTH(name, op) BINARY(name, op, float) BINARY(name, op, double)

BOTH(add, +)
BOTH(mul, *)

#define LAUNCHER(name, T) \
    void launch_##name##_##T(const T *a, const T *b, T *c, int n) { name##_##T<<<1, n>>>(a, b, c, n); }
LAUNCHER(add, float)
LAUNCHER(mul, double)
