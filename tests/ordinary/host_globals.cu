// Variables of the host beside those of the device.
// kernels: accumulate
#include <cstdio>

int calls;
static float *buffer = NULL, *spare = NULL;
const char *title = "accumulate { and } more";
unsigned int sizes[] = {16, 32, 64};
extern int verbose;
static const char names[][8] = {"one", "two"};
__device__ int done;
__constant__ float weights[16];
__device__ float totals[4] = {0, 0, 0, 0};
const int width = 16;

__global__ void accumulate(const float *x) {
    float sum = 0;
    for (int i = 0; i < width; ++i) sum += weights[i] * x[i];
    totals[threadIdx.x % 4] = sum;
    atomicAdd(&done, 1);
}

int run() {
    ++calls;
    cudaMemcpyToSymbol(weights, buffer, sizeof(weights));
    accumulate<<<1, 4>>>(spare);
    if (verbose) puts(names[0]);
    return sizes[calls % 3];
}
