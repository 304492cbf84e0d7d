#include <cute/tensor.hpp>
#include <vector>
template <class Layout>
__global__ void fill(float *data, Layout layout) {
    auto tensor = cute::make_tensor(cute::make_gmem_ptr(data), layout);
    for (int i = threadIdx.x; i < cute::size(tensor); i += blockDim.x) tensor(i) = float(i);
}
int main() {
    std::vector<float> host(128);
    auto layout = cute::make_layout(cute::make_shape(cute::Int<8>{}, cute::Int<16>{}));
    fill<<<1, 32>>>(host.data(), layout);
}
