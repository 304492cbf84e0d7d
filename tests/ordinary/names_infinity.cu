// Values that nvcc has as macros unasked: code that asks whether they are there, before and after the header.
// kernels: clamp_all
#ifndef INFINITY
#define INFINITY 1e30f
#endif
#include <cmath>
#include <vector>
#if defined(NAN) && defined(INFINITY)
#define MISSING NAN
constexpr float most = INFINITY;
#else
#define MISSING 0.0f
constexpr float most = 1e30f;
#endif

__global__ void clamp_all(float *x) {
    float value = x[threadIdx.x];
    x[threadIdx.x] = value == INFINITY ? MISSING : value > most / 2 ? -INFINITY : value;
}

float run(float *x) {
    std::vector<float> host{INFINITY, NAN};
    clamp_all<<<1, 32>>>(x);
    return host[0];
}
