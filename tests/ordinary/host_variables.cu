// Variables that say `__host__`, which NVRTC refuses and nvcc has nothing to do with, and integers that only nvcc has unasked.
// kernels: bound, widest
#include <type_traits>
#include <vector>

#ifdef __CUDACC__
#define SPACES __host__ __device__
#else
#define SPACES
#endif
#define BOTH SPACES

template <typename T>
BOTH static constexpr T largest = T(sizeof(T) == 1 ? 224 : 448);

template <typename T>
__host__ __device__ constexpr T smallest = T(1) / (largest<T> * T(512));

struct Limits {
    static constexpr int steps = 7;
    static constexpr float scale = 0.25f;
};

BOTH static constexpr int offset = 3;

__global__ void bound(float *out) {
    out[threadIdx.x] = largest<float> * Limits::scale + smallest<float> + Limits::steps + offset;
}

__global__ void widest(__int128_t *out, const __int64_t *in, __uint32_t n) {
    extern __shared__ __align__(16) __int128_t staged[];
    staged[threadIdx.x] = __int128_t(in[threadIdx.x]) * in[threadIdx.x + n];
    __syncthreads();
    out[threadIdx.x] = staged[threadIdx.x ^ 1];
}

void run(std::vector<float> &host, float *out, __int128_t *wide, const __int64_t *in) {
    host.push_back(largest<float>);
    bound<<<1, 32>>>(out);
    widest<<<1, 32, 512>>>(wide, in, 32);
}
