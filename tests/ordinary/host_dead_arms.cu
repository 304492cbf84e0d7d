// Arms of conditionals that are not for CUDA, with classes of the host by the names of aliases for the device.
// kernels: app::fill, app::width<int>, app::width<float>
#include <memory>
#include <type_traits>
#include <vector>

#define GPU_CUDA 1
#define GPU_OTHER 0

namespace app {

#if GPU_CUDA
template <typename T>
using Buffer = T *;
#elif GPU_OTHER
template <typename T>
class Buffer {
    std::vector<T> values;
    std::unique_ptr<T> more;

  public:
    explicit Buffer(const std::vector<T> &from) : values(from) {}
};
#else
#error no GPU
#endif

template <typename T>
constexpr bool plain = std::is_pointer<Buffer<T>>::value && sizeof(Buffer<T>) == 8;

__global__ void fill(Buffer<int> p, int n) {
    if (threadIdx.x < n) p[threadIdx.x] = plain<int> ? 1 : 2;
}

template <typename T>
__global__ void width(Buffer<T> p) {
    *p = sizeof(Buffer<T>) + std::is_constructible<Buffer<T>, std::nullptr_t>::value;
}

inline void run(std::vector<int> &host) {
    Buffer<int> p = nullptr;
    Buffer<float> q = nullptr;
    fill<<<1, 32>>>(p, static_cast<int>(host.size()));
    width<<<1, 1>>>(p);
    width<<<1, 1>>>(q);
}

}  // namespace app
