// SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
// SPDX-License-Identifier: Apache-2.0

#include <mandelscope/colour.cuh>
#include <mandelscope/levels.cuh>

namespace mandelscope {

// Histogram equalisation: colours every pixel by the share of the picture that escapes sooner. `image` is
// three planes of linear light; the set itself stays black.
__global__ void equalise(const float* field, const unsigned int* totals, int pixels, float scale,
                         float* image)
{
    const int pixel = blockIdx.x * blockDim.x + threadIdx.x;
    if (pixel >= pixels) {
        return;
    }
    Colour colour = {0.0f, 0.0f, 0.0f};
    if (field[pixel] >= 0.0f) {
        const float position = field[pixel] * scale;
        const int level = level_of(position);
        const float below = level > 0 ? static_cast<float>(totals[level - 1]) : 0.0f;
        const float above = static_cast<float>(totals[level]);
        const float rank = below + (position - level) * (above - below);
        colour = palette(rank / static_cast<float>(totals[LEVELS - 1]));
    }
    image[pixel] = colour.red;
    image[pixel + pixels] = colour.green;
    image[pixel + 2LL * pixels] = colour.blue;
}

}  // namespace mandelscope
