// One list for a macro that is defined anew between its uses.
// kernels: add_k, sub_k, add_twice, mul_half
#include <string>
#include <vector>

#define OPERATIONS X(add, +) X(sub, -)
#define X(name, op) __global__ void name##_k(float *p, float v) { p[threadIdx.x] = p[threadIdx.x] op v; }
OPERATIONS
#undef X
#define X(name, op) void name##_run(std::vector<float> v) { name##_k<<<1, 32>>>(v.data(), 2.0f); }
OPERATIONS
#undef X

#define X(name, kind, value) \
    __global__ void name##_##kind(float *p) { p[threadIdx.x] *= value; } \
    std::string name##_##kind##_name() { return #name " " #kind; }
X(add, twice, 2.0f)
#undef X
#define X(name, value) \
    __global__ void name##_half(float *p) { p[threadIdx.x] *= value; } \
    std::string name##_half_name() { return std::to_string(value); }
X(mul, 0.5f)
