// A view for the device in a class of the host that delegates constructors.
// kernels: k<float>
#include <vector>
template <typename T> class buffer {
  public:
    explicit buffer(std::size_t n) : n_(n) { cudaMalloc(&p_, n); }
    buffer(const std::vector<T> &h) : buffer(h.size()) {}
    ~buffer() { cudaFree(p_); }
    struct span { T *p; std::size_t n; __device__ T &operator[](std::size_t i) const { return p[i]; } };
    span view() { return {p_, n_}; }
  private:
    T *p_ = nullptr;
    std::size_t n_ = 0;
};
template <typename T> struct point { T c[3]; };
template <typename T> __global__ void k(typename buffer<point<T>>::span s, T v) { s[threadIdx.x].c[0] = v; }
int main() { buffer<point<float>> b(std::vector<point<float>>(3)); k<float><<<1, 1>>>(b.view(), 1.f); }
