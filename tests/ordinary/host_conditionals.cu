// Conditionals that cut through functions of the host.
// kernels: work
#include <cstdio>

__global__ void work(int *p) { *p = 4; }

#ifdef WITH_STREAM
void run(int *p, cudaStream_t stream) {
#else
void run(int *p) {
    cudaStream_t stream = 0;
#endif
    work<<<1, 1, 0, stream>>>(p);
#if defined(WITH_STREAM) && \
    !defined(ASYNC)
    cudaStreamSynchronize(stream);
    }
#else
}
#endif

#if 0
this was never { finished
#endif
