// A macro that checks every call, and its function.
// kernels: noop
#include <cstdio>
#include <cstdlib>

#define CUDA_CHECK(call) check((call), __FILE__, __LINE__)
#define CUDA_TRY(call)                                                 \
    do {                                                               \
        cudaError_t status = (call);                                   \
        if (status != cudaSuccess) {                                   \
            fprintf(stderr, "%s at %d\n", #call, __LINE__);            \
            exit(EXIT_FAILURE);                                        \
        }                                                              \
    } while (0)

inline void check(cudaError_t status, const char *file, int line, bool fatal = true) {
    if (status != cudaSuccess) {
        fprintf(stderr, "%s: %s %d\n", cudaGetErrorString(status), file, line);
        if (fatal) exit(status);
    }
}

__global__ void noop(int *check) { *check = 0; }

void run(int *p) {
    noop<<<1, 1>>>(p);
    CUDA_CHECK(cudaGetLastError());
    CUDA_TRY(cudaDeviceSynchronize());
}
