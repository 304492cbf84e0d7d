// Constants that nvcc knows without an include.
// kernels: circle
__global__ void circle(const float *r, double *area, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) area[i] = r[i] < INFINITY ? M_PI * r[i] * r[i] + M_SQRT2 : HUGE_VAL;
}
