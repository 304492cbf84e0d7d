// Errors that are thrown where __CUDA_ARCH__ is not defined, by macros and in functions for both sides.
// kernels: k<float>, k<double>, j
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>
namespace app {
class Error : public std::runtime_error {
    std::string where_;
public:
    Error(const std::string &what, const std::string &where) : std::runtime_error(what), where_(where) {}
    const std::string &where() const { return where_; }
};
}
#if defined(__CUDA_ARCH__)
#define CHECK(x) do { if (!(x)) __trap(); } while (0)
#else
#define CHECK(x) do { if (!(x)) throw app::Error(#x, __FILE__); } while (0)
#endif
template <class T, class = std::enable_if_t<std::is_floating_point<T>::value>>
__host__ __device__ T half(T x) { CHECK(x > 0); return x / 2; }
template <class T> __global__ void k(T *x) { x[threadIdx.x] = half(x[threadIdx.x]); }
struct Ops { virtual ~Ops() {} virtual void go(std::vector<float> &v) = 0; };
__host__ __device__ inline int index(int i) {
#ifndef __CUDA_ARCH__
    if (i < 0) throw app::Error("negative", std::to_string(i));
#endif
    return i;
}
__global__ void j(int *x) { x[index(threadIdx.x)] = 3; }
void run(float *x, double *y, int *z) { k<<<1, 32>>>(x); k<<<1, 32>>>(y); j<<<1, 32>>>(z); CHECK(cudaGetLastError() == cudaSuccess); }
