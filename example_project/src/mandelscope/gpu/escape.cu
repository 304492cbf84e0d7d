// SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
// SPDX-License-Identifier: Apache-2.0

// The smooth escape time of every pixel, or -1 where the orbit stays bounded.
extern "C" __global__ void escape_time(float* field, int width, int height, double centre_x, double centre_y,
                                       double pixel, int iterations)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= width || row >= height) {
        return;
    }
    const double cx = centre_x + (column - 0.5 * (width - 1)) * pixel;
    const double cy = centre_y - (row - 0.5 * (height - 1)) * pixel;

    float result = -1.0f;
    double x = 0.0;
    double y = 0.0;
    for (int step = 1; step <= iterations; ++step) {
        const double next_x = x * x - y * y + cx;
        y = 2.0 * x * y + cy;
        x = next_x;
        const double norm = x * x + y * y;
        if (norm > 65536.0) {
            result = static_cast<float>(fmax(0.0, step - log2(0.5 * log2(norm))));
            break;
        }
    }
    field[static_cast<long long>(row) * width + column] = result;
}
