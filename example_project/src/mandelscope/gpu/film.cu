// SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
// SPDX-License-Identifier: Apache-2.0

#include <cuda_fp16.h>

#include <mandelscope/colour.cuh>

// Mixes the blurred picture into the sharp one, and three planes into one film of interleaved half precision.
__global__ void compose(const float* image, const float* blurred, int pixels, float glow, __half* film)
{
    const int pixel = blockIdx.x * blockDim.x + threadIdx.x;
    if (pixel >= pixels) {
        return;
    }
    for (int channel = 0; channel < 3; ++channel) {
        const long long from = pixel + static_cast<long long>(channel) * pixels;
        film[3LL * pixel + channel] = __float2half_rn(image[from] + glow * (blurred[from] - image[from]));
    }
}

// Film to bytes for a screen, sample by sample.
__global__ void develop(const __half* film, int samples, unsigned char* bytes)
{
    const int sample = blockIdx.x * blockDim.x + threadIdx.x;
    if (sample < samples) {
        bytes[sample] = mandelscope::to_byte(mandelscope::srgb_encode(__half2float(film[sample])));
    }
}
