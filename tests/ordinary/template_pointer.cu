// Instances by their addresses.
// kernels: wave<float>, wave<double>
template <typename T>
__global__ void wave(T *x) { x[threadIdx.x] = sin(x[threadIdx.x]); }

int occupancy(float *x) {
    auto kernel = &wave<float>;
    int blocks = 0;
    cudaFuncSetAttribute(wave<double>, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024);
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, wave<double>, 128, 0);
    kernel<<<blocks, 128>>>(x);
    return blocks;
}
