// A class that holds what the driver's interface has, in names that look like macros for the device among them.
// kernels: replayed
#include <cuda.h>
#include <vector>

struct Recorded {
    std::vector<CUDA_KERNEL_NODE_PARAMS> nodes;
    CUmodule module;
    CUfunction function;
    void add(const CUDA_KERNEL_NODE_PARAMS &node) { nodes.push_back(node); }
};

struct Step {
    CUgraphNode node;
    CUdevice device;
    float factor;
    __host__ __device__ float operator()(float x) const { return x * factor; }
};

__global__ void replayed(Step step, float *x) { x[threadIdx.x] = step(x[threadIdx.x]); }

void run(Recorded &recorded, float *x) {
    recorded.add({});
    replayed<<<1, 32>>>(Step{nullptr, 0, 2.0f}, x);
}
