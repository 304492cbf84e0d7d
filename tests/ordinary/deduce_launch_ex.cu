// Launches by functions of the runtime: cudaLaunchKernelEx, cudaLaunchKernel, cudaLaunchCooperativeKernel.
// kernels: step<float, 4>, step<double, 4>, halo<int>, halo<float>
#include <cuda_runtime.h>

template <typename T, int N>
__global__ void step(T *x, int n) {
    if (threadIdx.x < n) x[threadIdx.x * N] += T(1);
}

template <typename T>
__global__ void halo(T *x) {
    x[threadIdx.x] = x[threadIdx.x + 1];
}

template <typename T>
void stepped(T *x, int n, cudaStream_t stream) {
    cudaLaunchConfig_t config = {};
    config.gridDim = 1;
    config.blockDim = n;
    config.stream = stream;
    cudaLaunchKernelEx(&config, step<T, 4>, x, n);
}

template <typename T>
void haloed(T *x) {
    void *arguments[] = {&x};
    if (sizeof(T) == 4) cudaLaunchKernel((const void *)halo<T>, dim3(1), dim3(32), arguments, 0, nullptr);
}

void run(float *x, double *y, int *z) {
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    stepped(x, 32, stream);
    stepped(y, 32, stream);
    haloed(z);
    haloed(x);
    void *arguments[] = {&x};
    cudaLaunchCooperativeKernel((void *)halo<float>, 1, 32, arguments);
    cudaStreamDestroy(stream);
}
