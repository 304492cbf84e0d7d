// The state of a generator, handed to a kernel and unpacked there.
// kernels: seeds
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/PhiloxUtils.cuh>
#include <tuple>

__global__ void seeds(at::PhiloxCudaState state, uint64_t *out) {
    auto seed = at::cuda::philox::unpack(state);
    out[threadIdx.x] = std::get<0>(seed) + std::get<1>(seed);
}

void run(at::CUDAGeneratorImpl *generator, uint64_t *out) {
    seeds<<<1, 32>>>(generator->philox_cuda_state(4), out);
}
