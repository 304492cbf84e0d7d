// Functions of the device that no kernel calls, which take a class of the host.
// kernels: scale
#include <memory>
#include <vector>

struct Weights : std::vector<float> {
    static constexpr int most = 16;
    explicit Weights(float factor) : factor(factor) {}
    float factor = 1.0f;
};

struct Pair {
    float low, high;
};

inline __device__ auto range(const Weights &weights, float middle) -> Pair {
    return {middle - weights.factor * Weights::most, middle + weights.factor * Weights::most};
}

template <class T>
inline __device__ T width(const Weights &weights, T middle) {
    const auto [low, high] = range(weights, middle);
    return high - low;
}

struct Bounds {
    float low, high;
};

inline __device__ auto bounds(float middle) -> Bounds { return {middle - 1.0f, middle + 1.0f}; }

extern "C" __global__ void scale(float *x, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const Bounds found = bounds(x[i]);
    if (i < n) x[i] *= found.high - found.low;
}

void run(float *x, int n, const std::unique_ptr<Weights> &weights) {
    scale<<<(n + 255) / 256, 256>>>(x, n * int(weights->factor));
}
