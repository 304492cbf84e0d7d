// Another name of a namespace of the host, and parameters and variables of a kernel that are called like it.
// kernels: blend
#include <filesystem>
#include <vector>
namespace fs = std::filesystem;
namespace app {
namespace in = std::filesystem;
}

__global__ void blend(const float *fs, float *out) {
    float in = fs[threadIdx.x];
    out[threadIdx.x] = in * 0.5f + fs[0];
}

bool run(const char *path, float *x) {
    blend<<<1, 32>>>(x, x);
    return fs::exists(path) && app::in::exists(path);
}
