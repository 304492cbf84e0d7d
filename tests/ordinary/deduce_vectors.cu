// Arguments whose types come from containers and smart pointers of the host's libraries.
// kernels: load<float>, load<double>, load<unsigned int>, load<short>, load<long long>, zip<float, int>, each<char>
#include <thrust/device_vector.h>

#include <array>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

template <typename T>
__global__ void load(T *x, size_t n) {
    if (threadIdx.x < n) x[threadIdx.x] = x[0];
}

template <typename A, typename B>
__global__ void zip(const A *a, B *b) {
    b[threadIdx.x] = B(a[threadIdx.x]);
}

template <typename T>
__global__ void each(T value, int *n) {
    *n = value;
}

template <typename T>
struct Buffer {
    explicit Buffer(size_t n) : host(n) {
        if (cudaMalloc(&device, n * sizeof(T)) != cudaSuccess) throw std::runtime_error("no memory for " + std::to_string(n));
    }
    ~Buffer() { cudaFree(device); }
    std::vector<T> host;
    T *device = nullptr;
};

void run(std::vector<float> &a, const std::string &text, thrust::device_vector<short> &d, std::map<int, Buffer<long long>> &table) {
    std::vector<double> b = {1.0, 2.0};
    auto c = std::make_unique<unsigned[]>(32);
    load<<<1, 32>>>(a.data(), a.size());
    load<<<1, 32>>>(&b[0], b.size());
    load<<<1, 32>>>(c.get(), 32);
    load<<<1, 32>>>(thrust::raw_pointer_cast(d.data()), d.size());
    for (auto &entry : table) load<<<1, 32>>>(entry.second.device, entry.second.host.size());
    Buffer<int> out(a.size());
    zip<<<1, 32>>>(a.data(), out.device);
    each<<<1, 1>>>(text[0], out.device);
}
