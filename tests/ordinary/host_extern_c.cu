// Blocks of C linkage that hold both sides.
// kernels: invert
#ifdef __cplusplus
extern "C" {
#endif

__global__ void invert(int *x, int n) {
    int i = threadIdx.x;
    if (i < n) x[i] = ~x[i];
}

int invert_all(int *x, int n) {
    invert<<<1, n>>>(x, n);
    return 0;
}

#ifdef __cplusplus
}
#endif
