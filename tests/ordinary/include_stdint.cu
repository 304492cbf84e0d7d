// Fixed-width integers, by both headers.
// kernels: mix
#include <cstdint>
#include <stdint.h>
#include <inttypes.h>

__device__ inline uint32_t rotate(uint32_t x, int8_t by) { return (x << by) | (x >> (32 - by)); }

extern "C" __global__ void mix(const uint64_t *in, std::uint32_t *out, int32_t n) {
    int32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = rotate(static_cast<uint32_t>(in[i] ^ (in[i] >> 32)), 7);
}
