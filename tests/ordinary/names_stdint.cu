// Integers that nvcc knows without an include.
// kernels: pack
__global__ void pack(const uint8_t *bytes, uint32_t *words, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) words[i] = uint32_t(bytes[4 * i]) | uint32_t(bytes[4 * i + 1]) << 8 | int64_t(bytes[4 * i + 2]) << 16;
}
