// A hierarchy of the host around a launch.
// kernels: tanh_all
#include <memory>

struct Layer {
    virtual ~Layer() = default;
    virtual void forward(float *x, int n) const = 0;
};

__global__ void tanh_all(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = tanhf(x[i]);
}

struct Tanh final : Layer {
    void forward(float *x, int n) const override { tanh_all<<<(n + 255) / 256, 256>>>(x, n); }
};

std::unique_ptr<Layer> make() { return std::make_unique<Tanh>(); }
