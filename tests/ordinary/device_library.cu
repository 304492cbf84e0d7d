// Device code of every kind stays.
// kernels: use_all
#include <vector>

struct Rng {
    unsigned state;
    __device__ explicit Rng(unsigned seed) : state(seed) {}
    __device__ unsigned next() { return state = state * 1664525u + 1013904223u; }
};
template <typename T> struct Traits { static constexpr int lanes = 1; };
template <> struct Traits<float4> { static constexpr int lanes = 4; };
union Bits { float f; unsigned u; };
__device__ __noinline__ float flip(float x) {
    Bits bits;
    bits.f = x;
    bits.u ^= 0x80000000u;
    return bits.f;
}
static __device__ float (*chosen)(float) = flip;
template <typename F> __device__ float apply(F f, float x) { return f(x); }

__global__ void use_all(float *x) {
    Rng rng(threadIdx.x);
    auto local = [=](float v) { return v * Traits<float4>::lanes; };
    x[threadIdx.x] = apply(local, flip(x[threadIdx.x])) + rng.next() % 2;
}

std::vector<float> sizes() { return {sizeof(Rng), Traits<float>::lanes}; }
