// PyTorch's interface that does not change between its releases: dispatches, checks and tensors of it around kernels.
// kernels: clamp<float>, clamp<double>, pick<int>, pick<long>, tagged
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/Dispatch.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/Exception.h>
#include <string>

#define DISPATCH_CASES(...)                                             \
    THO_DISPATCH_CASE(torch::headeronly::ScalarType::Float, __VA_ARGS__) \
    THO_DISPATCH_CASE(torch::headeronly::ScalarType::Double, __VA_ARGS__)
#define DISPATCH(TYPE, NAME, ...) THO_DISPATCH_SWITCH(TYPE, NAME, DISPATCH_CASES(__VA_ARGS__))
#define INDEX_CASE(TYPE, ...) THO_PRIVATE_CASE_TYPE_USING_HINT(TYPE, index_t, __VA_ARGS__)
#define DISPATCH_INDEX(TYPE, NAME, ...)                                                 \
    THO_DISPATCH_SWITCH(TYPE, NAME,                                                     \
                        INDEX_CASE(torch::headeronly::ScalarType::Int, __VA_ARGS__)     \
                        INDEX_CASE(torch::headeronly::ScalarType::Long, __VA_ARGS__))

class Layout {
   public:
    constexpr Layout(int bits, int bias) : bits(bits), bias(bias) {}
    static constexpr Layout of(int bits, int bias = 0) {
        STD_TORCH_CHECK(bits > 0 && bits <= 64, "no layout has ", bits, " bits");
        TORCH_CHECK(bias != -1, "a bias that cannot be");
        return Layout(bits, bias);
    }
    constexpr long id() const { return bits * 256 + bias; }
    std::string str() const { return "layout" + std::to_string(bits); }

   private:
    int bits, bias;
};
static constexpr auto kNarrow = Layout::of(4, 8);

template <typename T>
__global__ void clamp(T *x, T most) {
    if (x[threadIdx.x] > most) x[threadIdx.x] = most;
}

template <typename I>
__global__ void pick(const float *from, float *to, const I *at) {
    to[threadIdx.x] = from[at[threadIdx.x]];
}

__global__ void tagged(long *out) { out[0] = kNarrow.id(); }

void run(torch::stable::Tensor &x, const torch::stable::Tensor &at, float *to, long *out) {
    STD_TORCH_CHECK(x.dim() == 1, "one dimension is wanted");
    DISPATCH(x.scalar_type(), "clamp", [&] { clamp<scalar_t><<<1, 32>>>(x.mutable_data_ptr<scalar_t>(), scalar_t(1)); });
    DISPATCH_INDEX(at.scalar_type(), "pick", [&] {
        pick<<<1, 32>>>(static_cast<const float *>(x.const_data_ptr()), to, at.const_data_ptr<index_t>());
    });
    tagged<<<1, 1>>>(out);
}
