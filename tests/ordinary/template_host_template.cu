// Arguments that come through a function template of the host.
// kernels: fill<float, 4>, fill<int, 4>, fill<double, 8>
#include <vector>

template <typename T, int N>
__global__ void fill(T *x, T value) {
    for (int i = 0; i < N; ++i) x[threadIdx.x * N + i] = value;
}

template <typename T, int N = 4>
std::vector<T> filled(int n, T value) {
    T *device;
    cudaMalloc(&device, n * sizeof(T));
    fill<T, N><<<1, n / N>>>(device, value);
    std::vector<T> result(n);
    cudaMemcpy(result.data(), device, n * sizeof(T), cudaMemcpyDeviceToHost);
    return result;
}

template std::vector<double> filled<double, 8>(int, double);

void run() {
    auto a = filled<float>(32, 1.0f);
    auto b = filled<int>(32, 1);
}
