// Arguments that are macros.
// kernels: tiled<TILE_X, TILE_Y>
#include <cstdio>
#define TILE_X 16
#define TILE_Y (TILE_X / 2)

template <int X, int Y>
__global__ void tiled(float *x) { x[blockIdx.x * X * Y + threadIdx.y * X + threadIdx.x] = Y; }

void run(float *x) {
    dim3 block(TILE_X, TILE_Y);
    tiled<TILE_X, TILE_Y><<<1, block>>>(x);
    printf("%d\n", TILE_Y);
}
