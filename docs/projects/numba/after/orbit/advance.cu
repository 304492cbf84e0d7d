__device__ float step(float x, float v) { return v - 0.01f * x; }

__global__ void advance(float *x, float *v, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        v[i] = step(x[i], v[i]);
        x[i] += 0.01f * v[i];
    }
}
