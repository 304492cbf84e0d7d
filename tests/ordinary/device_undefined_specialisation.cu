// A function of which there are specialisations alone, and a call of another one in a branch that is never taken.
// kernels: copy<1>, copy<4>
#include <vector>
#define ON_DEVICE __device__ __forceinline__

namespace memory {
template <int BYTES> ON_DEVICE void move(void *target, const void *source);
template <int BYTES> __device__ inline int least();
template <> ON_DEVICE void move<4>(void *target, const void *source) {
    *static_cast<int *>(target) = *static_cast<const int *>(source);
}
template <> ON_DEVICE void move<8>(void *target, const void *source) {
    *static_cast<long long *>(target) = *static_cast<const long long *>(source);
}
template <> __device__ inline int least<4>() { return 4; }
}

template <int COUNT> __global__ void copy(char *x) {
    constexpr int words = COUNT / 4;
    for (int i = 0; i < words; i++) memory::move<COUNT>(x + 64 + i * memory::least<COUNT>(), x + i * 4);
    if (COUNT < 4) x[threadIdx.x] = x[threadIdx.x + 32];
}

void run(char *x) {
    copy<1><<<1, 32>>>(x);
    copy<4><<<1, 1>>>(x);
    std::vector<char> host(32);
}
