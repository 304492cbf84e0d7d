// Functions for both sides whose bodies only the host can run, and which no kernel calls.
// kernels: gather
#include <cstdio>
#include <stdexcept>

#define CHECK(call) check((call), __FILE__, __LINE__)

inline void check(cudaError_t status, const char *file, int line) {
    if (status != cudaSuccess) throw std::runtime_error(std::string(file) + ":" + std::to_string(line));
}

struct Split {
    int count = 0;
    unsigned *categories = nullptr;

    __host__ __device__ Split() { count = 0; }
    __host__ __device__ ~Split() {
        if (count > 0) {
            CHECK(cudaFree(categories));
        }
    }
    __host__ __device__ void grow(int wanted);
    __host__ __device__ unsigned last() const { return categories[count - 1]; }
};

__host__ __device__ void Split::grow(int wanted) {
    CHECK(cudaMalloc(&categories, wanted * sizeof(unsigned)));
    count = wanted;
}

__global__ void gather(const Split *splits, unsigned *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = splits[i].last();
}

void run(const Split *splits, unsigned *out, int n) {
    gather<<<(n + 127) / 128, 128>>>(splits, out, n);
    CHECK(cudaGetLastError());
}
