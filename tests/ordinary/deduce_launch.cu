// Arguments that a launch deduces, all of them or those after the given ones.
// kernels: scale<float>, scale<double>, shift<4, float>, shift<8, short>, blend<float, int, 2>, gather<int>
#include <cstdio>

template <typename T>
__global__ void scale(T *x, T factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= factor;
}

template <int N, typename T>
__global__ void shift(T *x) {
    for (int i = 0; i < N; ++i) x[threadIdx.x * N + i] += T(1);
}

template <typename A, typename B, int N = 2>
__global__ void blend(A *x, const B *y) {
    x[threadIdx.x] += A(y[threadIdx.x * N]);
}

template <typename T>
__global__ void gather(T (*table)[4], const T *at) {
    table[threadIdx.x][0] = *at;
}

void run(float *x, int *y, int n) {
    double *wide = nullptr;
    cudaMalloc(&wide, n * sizeof(double));
    scale<<<(n + 255) / 256, 256>>>(x, 2.0f, n);
    scale<<<dim3(n / 64, 1, 1), dim3(64), 0, nullptr>>>(wide, 0.5, n);
    shift<4><<<1, n / 4>>>(x);
    shift<8><<<1,
               n / 8>>>(reinterpret_cast<short *>(y));
    blend<<<1, n>>>(x, y);
    int (*table)[4] = nullptr;
    gather<<<1, 4>>>(table, y);
    printf("%d\n", n);
}
