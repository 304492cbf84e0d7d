// A class template that owns memory of the device.
// kernels: scale
#include <cstddef>
#include <utility>

template <typename T>
class Buffer {
public:
    explicit Buffer(std::size_t n) : size_(n) { cudaMalloc(&data_, n * sizeof(T)); }
    Buffer(const Buffer &) = delete;
    Buffer(Buffer &&other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
    Buffer &operator=(const Buffer &) = delete;
    ~Buffer() { cudaFree(data_); }
    T *get() { return data_; }
    std::size_t size() const { return size_; }

private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

__global__ void scale(float *x, std::size_t n, float by) {
    std::size_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= by;
}

void run() {
    Buffer<float> buffer(256);
    scale<<<2, 128>>>(buffer.get(), buffer.size(), 0.5f);
}
