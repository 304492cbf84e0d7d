// Managed variables that both sides use.
// kernels: next_value
#include <cstdio>

__managed__ int value = 0;
__device__ __managed__ float history[8];

__global__ void next_value() { history[value++ % 8] = value; }

int main() {
    next_value<<<1, 1>>>();
    cudaDeviceSynchronize();
    return printf("%d %f\n", value, history[0]) < 0;
}
