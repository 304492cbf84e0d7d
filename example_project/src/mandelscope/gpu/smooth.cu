// SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
// SPDX-License-Identifier: Apache-2.0

// One direction of a separable blur of planes of float; the edge pixels repeat outwards. `Sum` is the type of
// the weighted sum: float is quick, double keeps wide blurs of deep shadows clean. A template has no symbol
// until it is instantiated, so the instances are listed as name-expressions in pyproject.toml.
template <typename Sum>
__global__ void smooth(const float* in, float* out, const Sum* weights, int radius, int width, int height,
                       int vertical)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= width || row >= height) {
        return;
    }
    const long long plane = static_cast<long long>(blockIdx.z) * width * height;
    Sum sum = 0;
    for (int offset = -radius; offset <= radius; ++offset) {
        const int from_column = vertical ? column : min(max(column + offset, 0), width - 1);
        const int from_row = vertical ? min(max(row + offset, 0), height - 1) : row;
        const long long from = plane + static_cast<long long>(from_row) * width + from_column;
        sum += weights[offset + radius] * static_cast<Sum>(in[from]);
    }
    out[plane + static_cast<long long>(row) * width + column] = static_cast<float>(sum);
}
