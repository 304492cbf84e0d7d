// A list of operations that kernels and host code expand.
// kernels: op_negate, op_twice
#include <cstring>
#define OPERATIONS(X) X(negate, -v) X(twice, v + v)

#define DEFINE(name, expression) \
    __global__ void op_##name(float *x) { float v = x[threadIdx.x]; x[threadIdx.x] = expression; }
OPERATIONS(DEFINE)

void run(const char *which, float *x) {
#define CALL(name, expression) if (!strcmp(which, #name)) op_##name<<<1, 32>>>(x);
    OPERATIONS(CALL)
#undef CALL
}
