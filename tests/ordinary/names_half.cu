// Half precision that a library of the host brought in.
// kernels: to_half
#include <cublas_v2.h>

__global__ void to_half(const float *in, half *out, __nv_bfloat16 *wide, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = __float2half(in[i]), wide[i] = __float2bfloat16(in[i]);
}
