// Headers of C inside of a block of extern "C".
// kernels: scale
extern "C" {
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
}

__global__ void scale(float *x, uint32_t n) {
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = sqrtf(x[i]) * abs(int(i) - 4);
}

extern "C" void run(float *x, uint32_t n) {
    scale<<<(n + 255) / 256, 256>>>(x, n);
    printf("%s\n", strerror(0));
}
