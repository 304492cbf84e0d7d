// Arguments that the launching function declares.
// kernels: smooth<256, float>, smooth<128, double>
template <int THREADS, typename T>
__global__ void smooth(T *x) {
    __shared__ T cache[THREADS];
    cache[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = cache[(threadIdx.x + 1) % THREADS];
}

void run(float *x, double *y) {
    const int threads = 256;
    using Number = float;
    smooth<threads, Number><<<1, threads>>>(x);
}

void wide(double *y) {
    constexpr unsigned threads = 2 * 64;
    smooth<threads, double><<<1, threads>>>(y);
}
