#include "detail/factor.cuh"
extern "C" __global__ void scale(float *x) { x[threadIdx.x] *= FACTOR; }
