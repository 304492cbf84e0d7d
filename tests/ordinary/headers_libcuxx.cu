// libcu++ on both sides.
// kernels: first_of
#include <cuda/std/array>
#include <cuda/std/utility>
#include <array>
#include <cstdio>

__global__ void first_of(cuda::std::array<int, 4> in, int *out) {
    auto pair = cuda::std::make_pair(in[0], in[3]);
    *out = pair.first + pair.second;
}

void run(int *out) {
    std::array<int, 4> here = {1, 2, 3, 4};
    cuda::std::array<int, 4> there;
    for (int i = 0; i < 4; ++i) there[i] = here[i];
    first_of<<<1, 1>>>(there, out);
}
