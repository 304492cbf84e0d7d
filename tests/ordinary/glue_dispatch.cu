// A dispatch over types around launches.
// kernels: double_it<double>, double_it<float>, zero
#include <ATen/ATen.h>
#include <ATen/Dispatch.h>

template <typename scalar_t>
__global__ void double_it(scalar_t *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] + x[i];
}

__global__ void zero(float *x) { x[threadIdx.x] = 0.0f; }

void run(at::Tensor x) {
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "double_it", ([&] {
        double_it<scalar_t><<<1, 256>>>(x.data_ptr<scalar_t>(), x.numel());
    }));
    zero<<<1, 32>>>(x.data_ptr<float>());
}
