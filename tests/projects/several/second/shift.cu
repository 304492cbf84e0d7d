extern "C" __global__ void shift(float *x, float by) { x[threadIdx.x] += by; }
