// Headers of C.
// kernels: flags
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <errno.h>
#include <unistd.h>

__global__ void flags(const bool *in, bool *out, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) out[i] = !in[i];
}

int run(const bool *in, bool *out, size_t n) {
    if (n == 0) return errno = 22;
    usleep(1);
    flags<<<1, n>>>(in, out, n);
    return 0;
}
