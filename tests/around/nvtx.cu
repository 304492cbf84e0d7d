#include <nvtx3/nvtx3.hpp>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>

struct app_domain {
    static constexpr char const *name{"app"};
};
using scoped = nvtx3::scoped_range_in<app_domain>;

__global__ void twice(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;
}

class Range {
public:
    explicit Range(const char *name) { nvtxRangePushA(name); }
    ~Range() { nvtxRangePop(); }
};

void run(float *x, int n, cudaStream_t stream) {
    NVTX3_FUNC_RANGE();
    scoped range{"launch", nvtx3::rgb{127, 255, 0}};
    nvtxNameCudaStreamA(stream, "main");
    Range inner("inner");
    nvtx3::mark_in<app_domain>("before");
    twice<<<(n + 255) / 256, 256, 0, stream>>>(x, n);
}
