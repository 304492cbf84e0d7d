// A class of the host that keeps structures of the driver, with a pointer to which device code can be given.
// kernels: shift
#include <cuda.h>
#include <cuda_runtime.h>
#include <vector>

class Recording {
public:
    void replay(cudaStream_t stream);
    cudaStream_t stream;

private:
    std::vector<cudaGraphNode_t> nodes_;
    std::vector<CUDA_KERNEL_NODE_PARAMS> parameters_;
    CUDA_MEMCPY3D copies_[4];
};

extern "C" __global__ void shift(const Recording *recording, float *x, float by) {
    if (recording) x[blockIdx.x * blockDim.x + threadIdx.x] += by;
}

void run(float *x, Recording *recording) {
    shift<<<1, 32, 0, recording ? recording->stream : nullptr>>>(nullptr, x, 2.0f);
}
