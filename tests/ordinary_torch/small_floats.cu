// The library's small floating-point types, their arithmetic, and the standard's limits of them.
// kernels: clamp_all<at::Half>, clamp_all<c10::BFloat16>, clamp_all<float>
#include <ATen/ATen.h>

#include <limits>

template <typename T>
__global__ void clamp_all(T *values, int n, T low, T high) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    T value = values[i] * T(2) + static_cast<T>(0.5f);
    if (value < low) value = std::numeric_limits<T>::lowest();
    values[i] = value > high ? std::numeric_limits<T>::max() : -value / high;
}

template __global__ void clamp_all<at::Half>(at::Half *, int, at::Half, at::Half);
template __global__ void clamp_all<c10::BFloat16>(c10::BFloat16 *, int, c10::BFloat16, c10::BFloat16);
template __global__ void clamp_all<float>(float *, int, float, float);

void clamp_halves(at::Tensor values) {
    clamp_all<at::Half><<<1, 256>>>(values.data_ptr<at::Half>(), values.numel(), at::Half(0), at::Half(1));
}
