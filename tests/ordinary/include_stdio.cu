// Host input and output around a kernel that prints.
// kernels: hello
#include <stdio.h>
#include <stdlib.h>

__global__ void hello(int n) {
    if (threadIdx.x < n) printf("thread %d of %d\n", threadIdx.x, n);
}

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 4;
    hello<<<1, 32>>>(n);
    if (cudaDeviceSynchronize() != cudaSuccess) fprintf(stderr, "failed\n");
    return EXIT_SUCCESS;
}
