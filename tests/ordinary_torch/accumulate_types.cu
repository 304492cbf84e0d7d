// The types that sums are made in, and those that operations are made in.
// kernels: mean<double>, mean<float>, mean<c10::Half>, mean<c10::BFloat16>
#include <ATen/AccumulateType.h>
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/core/Tensor.h>

template <typename scalar_t>
__global__ void mean(const scalar_t *in, scalar_t *out, int n) {
    using acc_t = at::acc_type<scalar_t, /*is_cuda=*/true>;
    using opmath_t = at::opmath_type<scalar_t>;
    acc_t sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += static_cast<acc_t>(in[i]);
    out[threadIdx.x] = static_cast<scalar_t>(static_cast<opmath_t>(sum) / static_cast<opmath_t>(n));
}

void run(const at::Tensor &in, at::Tensor &out) {
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, in.scalar_type(), "mean", [&] {
        mean<scalar_t><<<1, 128>>>(in.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), in.numel());
    });
}
