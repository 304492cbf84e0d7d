// Instructions written by hand.
// kernels: lanes
#include <cstdint>
#include <iostream>

__device__ __forceinline__ uint32_t lane() {
    uint32_t id;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(id));
    return id;
}
__device__ void fence() { __asm__ __volatile__("membar.gl;" ::: "memory"); }

__global__ void lanes(uint32_t *out) {
    out[threadIdx.x] = lane();
    fence();
}

int main() { lanes<<<1, 32>>>(nullptr); }
