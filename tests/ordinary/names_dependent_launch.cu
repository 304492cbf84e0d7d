// Launches that depend on each other, with names of the device's runtime that nvcc gives unasked.
// kernels: produce, consume
#include <cuda_runtime.h>

__global__ void produce(float *x) {
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
    x[threadIdx.x] = 2.f * threadIdx.x;
}

__global__ void consume(const float *x, float *y) {
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
    y[threadIdx.x] += x[threadIdx.x];
}

int main() {
    float *x = nullptr, *y = nullptr;
    cudaMalloc(&x, 64 * sizeof(float));
    cudaMalloc(&y, 64 * sizeof(float));
    produce<<<1, 64>>>(x);
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = 1;
    config.blockDim = 64;
    config.attrs = &attribute;
    config.numAttrs = 1;
    cudaLaunchKernelEx(&config, consume, (const float *)x, y);
    return cudaDeviceSynchronize() != cudaSuccess;
}
