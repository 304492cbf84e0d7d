// A namespace `cuda` of the project's own, in sight where headers of the standard library are included.
// kernels: doubled
namespace project {
namespace cuda {
__device__ inline int twice(int x) { return x + x; }
}
}
using namespace project;
#include <chrono>
#include <limits>
#include <tuple>
#include <vector>

__global__ void doubled(int *x) {
    int value = x[threadIdx.x];
    x[threadIdx.x] = value > std::numeric_limits<int>::max() / 2 ? value : project::cuda::twice(value);
}

double run(int *x) {
    auto start = std::chrono::steady_clock::now();
    doubled<<<1, 32>>>(x);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}
