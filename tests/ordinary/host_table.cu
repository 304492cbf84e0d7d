// A table of instances that host code chooses from.
// kernels: power<1>, power<2>, power<3>
template <int N>
__global__ void power(float *x) {
    float v = x[threadIdx.x], r = 1.0f;
#pragma unroll
    for (int i = 0; i < N; ++i) r *= v;
    x[threadIdx.x] = r;
}

using Kernel = void (*)(float *);
static const Kernel table[] = {power<1>, power<2>, power<3>};

void run(float *x, int which) { table[which]<<<1, 32>>>(x); }
