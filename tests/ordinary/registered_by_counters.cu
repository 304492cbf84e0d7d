// Registrations whose names __COUNTER__ tells apart.
// kernels: k
#include <cub/block/block_reduce.cuh>
#include <map>
#include <string>
struct Registry {
  static Registry &instance() { static Registry r; return r; }
  bool add(const std::string &n, void (*f)()) { return fns_.emplace(n, f).second; }
  std::map<std::string, void (*)()> fns_;
};
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define REGISTER(name, ...) static const bool CAT(registered_, __COUNTER__) = Registry::instance().add(name, __VA_ARGS__)
struct Least { __device__ float operator()(float a, float b) const { return a < b ? a : b; } };
__global__ void k(float *p) {
  using Reduce = cub::BlockReduce<float, 256>;
  __shared__ typename Reduce::TempStorage temp;
  p[0] = Reduce(temp).Reduce(p[threadIdx.x], Least());
}
static void Sample() { k<<<1, 256>>>(nullptr); }
REGISTER("sample", &Sample);
