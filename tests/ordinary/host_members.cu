// Types, constants and functions of classes that only the host has objects of.
// kernels: render, smooth<float>, smooth<double>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

class Scene {
public:
    static constexpr int kMaxLights = 4;
    enum class Mode : unsigned char { Flat, Smooth };

protected:
    std::vector<std::string> names_;
};

class Renderer : public Scene {
public:
    static const int TILE = 16;
    static constexpr float kEps = 1e-6f;
    typedef float3 Color;
    struct Ray {
        float3 o, d;
        float t = 1e9f;
        Ray() = default;
        Ray(const std::vector<float> &v);
        __host__ __device__ float3 at(float s) const { return make_float3(o.x + s * d.x, o.y + s * d.y, t); }
    };
    enum Flags { None = 0, Shadows = 1, Mirrors = 2 } flags = None;
    static constexpr int blocks(int n, int size) { return (n + size - 1) / size; }
    static __device__ float luma(Color c) { return 0.3f * c.x + 0.6f * c.y + 0.1f * c.z; }

    explicit Renderer(int n) : size_(n), host_(n) {}
    virtual ~Renderer() { printf("%s\n", label_.c_str()); }
    void render(Mode mode);

private:
    struct Rest;
    int size_ = 0;
    std::vector<float> host_;
    std::unique_ptr<Rest> rest_;
    std::string label_;
    float *device_ = nullptr;
    cudaStream_t stream_ = nullptr;
    static int count_;
};

int Renderer::count_ = 0;
struct Renderer::Rest { std::vector<int> order; };
Renderer::Ray::Ray(const std::vector<float> &v) : t(v[0]) {}

__global__ void render(float *out, Renderer::Ray ray, Renderer::Mode mode, Renderer::Flags flags, int n) {
    __shared__ float tile[Renderer::TILE][Renderer::TILE];
    tile[threadIdx.y][threadIdx.x] = Renderer::luma(ray.at(Renderer::kEps));
    __syncthreads();
    if (mode == Renderer::Mode::Smooth && (flags & Renderer::Mirrors)) {
        out[blockIdx.x] = tile[threadIdx.x][0] + Renderer::blocks(n, Renderer::TILE) + Renderer::kMaxLights;
    }
}

void Renderer::render(Mode mode) {
    dim3 block(TILE, TILE);
    ::render<<<blocks(size_, TILE), block, 0, stream_>>>(device_, Ray{}, mode, flags, size_);
    ++count_;
}

template <typename T>
class Solver {
public:
    static const int BLOCK = 64;
    struct Params {
        T weight;
        int n;
    };
    void run(T *x);

private:
    std::vector<T> history_;
    static std::string name_;
};

template <typename T>
std::string Solver<T>::name_ = "solver";

template <>
struct Solver<double>::Params {
    double weight;
    int n, padding;
};

template <typename T>
__global__ void smooth(T *x, typename Solver<T>::Params p) {
    __shared__ T cache[Solver<T>::BLOCK];
    cache[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x + 1 < p.n) x[threadIdx.x] = cache[threadIdx.x] * p.weight + cache[threadIdx.x + 1];
}

template <typename T>
void Solver<T>::run(T *x) {
    smooth<T><<<1, BLOCK>>>(x, Params{T(2), BLOCK});
    history_.clear();
}

template class Solver<float>;
template class Solver<double>;
