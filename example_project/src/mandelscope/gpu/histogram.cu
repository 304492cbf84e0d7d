// SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
// SPDX-License-Identifier: Apache-2.0

#include <cub/block/block_scan.cuh>

#include <mandelscope/levels.cuh>

namespace mandelscope {

// Adds the escape times to `counts`, which starts at zero.
// Launch with any number of blocks of LEVELS threads.
__global__ void histogram(const float* field, int pixels, float scale, unsigned int* counts)
{
    __shared__ unsigned int local[LEVELS];
    local[threadIdx.x] = 0;
    __syncthreads();
    const int stride = gridDim.x * blockDim.x;
    for (int pixel = blockIdx.x * blockDim.x + threadIdx.x; pixel < pixels; pixel += stride) {
        if (field[pixel] >= 0.0f) {
            atomicAdd(&local[level_of(field[pixel] * scale)], 1u);
        }
    }
    __syncthreads();
    atomicAdd(&counts[threadIdx.x], local[threadIdx.x]);
}

// Turns counts into running totals. Launch with one block of LEVELS threads.
__global__ void cumulative(const unsigned int* counts, unsigned int* totals)
{
    using Scan = cub::BlockScan<unsigned int, LEVELS>;
    __shared__ typename Scan::TempStorage scratch;
    unsigned int total;
    Scan(scratch).InclusiveSum(counts[threadIdx.x], total);
    totals[threadIdx.x] = total;
}

}  // namespace mandelscope
