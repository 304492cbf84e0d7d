extern "C" __global__ void scale(float *x, float factor) { x[threadIdx.x] *= factor; }
