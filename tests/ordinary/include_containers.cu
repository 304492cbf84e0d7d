// Containers and streams of the host.
// kernels: fill
#include <algorithm>
#include <iostream>
#include <map>
#include <numeric>
#include <string>
#include <vector>

__global__ void fill(float *data, int n, float value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] = value;
}

static std::map<std::string, std::vector<float>> cache;

std::vector<float> filled(const std::string &name, int n, float value) {
    auto &row = cache[name];
    row.resize(n);
    float *device = nullptr;
    cudaMalloc(&device, n * sizeof(float));
    fill<<<(n + 127) / 128, 128>>>(device, n, value);
    cudaMemcpy(row.data(), device, n * sizeof(float), cudaMemcpyDeviceToHost);
    std::cout << name << ": " << std::accumulate(row.begin(), row.end(), 0.0f) << std::endl;
    return row;
}
