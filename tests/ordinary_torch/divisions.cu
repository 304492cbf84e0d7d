// Helpers of the library that are for both sides: rounded divisions, as dispatched kernels and their launches use them.
// kernels: tile_sums<double>, tile_sums<float>
#include <torch/extension.h>

#include <ATen/ceil_div.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/ApplyGridUtils.cuh>

template <typename scalar_t>
__global__ void tile_sums(const scalar_t *values, scalar_t *sums, int count, int tile) {
    const int tiles = at::cuda::ATenCeilDiv(count, tile);
    const int padded = at::round_up(count, 32);
    for (int index = blockIdx.x; index < tiles; index += gridDim.x) {
        scalar_t sum = 0;
        for (int item = index * tile; item < min((index + 1) * tile, padded); ++item)
            sum += item < count ? values[item] : scalar_t(0);
        sums[index] = sum;
    }
}

at::Tensor sum_tiles(at::Tensor values, int64_t tile) {
    auto sums = at::empty({at::ceil_div(values.numel(), tile)}, values.options());
    AT_DISPATCH_FLOATING_TYPES(values.scalar_type(), "sum_tiles", [&] {
        tile_sums<scalar_t><<<at::cuda::ATenCeilDiv<int64_t>(values.numel(), tile), 1>>>(
            values.data_ptr<scalar_t>(), sums.data_ptr<scalar_t>(), static_cast<int>(values.numel()),
            static_cast<int>(tile));
    });
    return sums;
}

TORCH_LIBRARY(tiles, m) { m.def("sum_tiles", &sum_tiles); }
