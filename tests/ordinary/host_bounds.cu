// Launch bounds and attributes of kernels.
// kernels: bounded, clustered, aligned
#define THREADS 128
__global__ void __launch_bounds__(THREADS, 2) bounded(float *x) { x[threadIdx.x] *= 2.0f; }
__launch_bounds__(THREADS) static __global__ void clustered(float *x) { x[threadIdx.x] *= 3.0f; }
struct __align__(16) Quad { float v[4]; };
extern "C" __global__ void aligned(const __grid_constant__ Quad q, float *x) { x[threadIdx.x] = q.v[threadIdx.x % 4]; }

void run(float *x) {
    bounded<<<1, THREADS>>>(x);
    clustered<<<1, THREADS>>>(x);
    aligned<<<1, THREADS>>>(Quad{{1, 2, 3, 4}}, x);
}
