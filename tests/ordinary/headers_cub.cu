// CUB by its umbrella header.
// kernels: block_sum
#include <cub/cub.cuh>
#include <vector>

__global__ void block_sum(const int *in, int *out) {
    using Reduce = cub::BlockReduce<int, 128>;
    __shared__ typename Reduce::TempStorage storage;
    int sum = Reduce(storage).Sum(in[blockIdx.x * 128 + threadIdx.x]);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

void run(const std::vector<int> &v, int *in, int *out) { block_sum<<<v.size() / 128, 128>>>(in, out); }
