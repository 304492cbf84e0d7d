__global__ void clip_kernel(const float *in, float *out, float low, float high, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = fminf(fmaxf(in[i], low), high);
}
