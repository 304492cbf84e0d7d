// Functions and constants that are evaluated by the compiler.
// kernels: tile
constexpr int tile_width = 32;
constexpr int squared(int n) { return n * n; }
static constexpr float gain = 0.5f;
const unsigned mask = 0xffffffffu;
int runtime_width = tile_width;

__global__ void tile(float *x) {
    __shared__ float cache[squared(tile_width)];
    cache[threadIdx.x] = x[threadIdx.x] * gain;
    __syncthreads();
    x[threadIdx.x] = __shfl_xor_sync(mask, cache[threadIdx.x], 1);
}

void run(float *x) { tile<<<1, squared(tile_width) / runtime_width>>>(x); }
