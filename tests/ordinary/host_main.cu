// A whole program.
// kernels: saxpy
#include <cstdio>
#include <cstdlib>
#include <cstring>

__global__ void saxpy(int n, float a, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

static void usage(const char *name) {
    printf("usage: %s [--size N] [--help]\n", name);
    exit(2);
}

int main(int argc, char *argv[]) {
    int n = 1 << 20;
    for (int i = 1; i < argc; ++i) {
        if (!strcmp(argv[i], "--size") && i + 1 < argc) n = atoi(argv[++i]);
        else usage(argv[0]);
    }
    float *x, *y, *dx, *dy;
    x = (float *)malloc(n * sizeof(float));
    y = (float *)malloc(n * sizeof(float));
    for (int i = 0; i < n; i++) x[i] = 1.0f, y[i] = 2.0f;
    cudaMalloc((void **)&dx, n * sizeof(float));
    cudaMalloc((void **)&dy, n * sizeof(float));
    cudaMemcpy(dx, x, n * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(dy, y, n * sizeof(float), cudaMemcpyHostToDevice);
    saxpy<<<(n + 255) / 256, 256>>>(n, 2.0f, dx, dy);
    cudaMemcpy(y, dy, n * sizeof(float), cudaMemcpyDeviceToHost);
    printf("%f\n", y[0]);
    cudaFree(dx), cudaFree(dy), free(x), free(y);
}
