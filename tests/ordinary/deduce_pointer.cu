// Kernels as pointers: in variables, in tables, as arguments of launchers, by the type of a target.
// kernels: wave<float, 2>, wave<double, 2>, wave<float, 3>, tick<int>, tick<float>, tick<char>, mark<5>
#include <cuda_runtime.h>

template <typename T, int N>
__global__ void wave(T *x) {
    x[threadIdx.x] *= T(N);
}

template <typename T>
__global__ void tick(T *x) {
    x[0] += T(1);
}

template <int N>
__global__ void mark(int *x) {
    x[0] = N;
}

template <typename... P, typename... A>
void launch(void (*kernel)(P...), int n, A... a) {
    kernel<<<1, n>>>(a...);
}

template <typename K>
void largest(K kernel) {
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536);
}

template <typename T>
void waved(T *x) {
    auto kernel = wave<T, 2>;
    kernel<<<1, 32>>>(x);
}

void run(float *x, double *y, int *z, char *w) {
    waved(x);
    waved(y);
    launch(wave<float, 3>, 32, x);
    void (*pointer)(int *) = tick;
    pointer<<<1, 1>>>(z);
    launch<float *>(tick, 1, x);
    using Tick = void (*)(char *);
    const Tick table[] = {tick};
    table[0]<<<1, 1>>>(w);
    largest(&mark<5>);
}
