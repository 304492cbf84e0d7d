// Classes of the host around tensors, and structures that kernels take.
// kernels: scale
#include <torch/custom_class.h>
#include <torch/torch.h>

#include <string>

struct Range {
    float low, high;
    int64_t count;
};

struct Options : torch::CustomClassHolder {
    std::string name;
    int64_t steps = 1;
};

class Layer {
  public:
    explicit Layer(at::Tensor weight) : weight_(std::move(weight)) {}
    at::Tensor forward(const at::Tensor &input, c10::optional<double> factor) const;

  private:
    at::Tensor weight_;
    std::vector<torch::Tensor> cached_;
};

using Tensors = std::vector<at::Tensor>;

__global__ void scale(float *x, Range range) {
    int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < range.count) x[i] = fminf(fmaxf(x[i], range.low), range.high);
}

at::Tensor Layer::forward(const at::Tensor &input, c10::optional<double> factor) const {
    Range range{0, (float)factor.value_or(1.0), input.numel()};
    scale<<<1, 256>>>(input.data_ptr<float>(), range);
    return input;
}
