// Template kernels that macros make, and launches whose kernel a macro pastes together.
// kernels: app::three_k<float,3,true>, four_k, one_k<double,3,true>, one_k<float,3,true>, two_k<long,1,false>, two_k<short,2,false>, five<char>
#include <cstdio>
#include <vector>

#define SIGNATURE(name, ...) __global__ void name(__VA_ARGS__)
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define HEAD template <class T, unsigned N, bool B>
#define DEFINE_KERNEL(name)                    \
    HEAD SIGNATURE(PASTE(name, _k), T *p, int n) { \
        p[N] = B ? n : 2;                      \
    }
#define EACH(X) X(one) X(two)

EACH(DEFINE_KERNEL)

namespace app {
DEFINE_KERNEL(three)
}

#define PLAIN(name)                                \
    __global__ void name##_k(int *p) { p[0] = 1; } \
    void name(int *p) { name##_k<<<1, 1>>>(p); }
PLAIN(four)

template <class T> SIGNATURE(five, T *p) {
    p[threadIdx.x] = 5;
}

#define LAUNCH(name, T) PASTE(name, _k)<T, 3, true><<<dim3(1), 1, 0, cudaStream_t(0)>>>((T *)nullptr, 1)
#define BOTH(name)       \
    LAUNCH(name, float); \
    LAUNCH(name, double)

template <class T> void run(T *p) {
    if constexpr (sizeof(T) == 4) {
        using namespace app;
        LAUNCH(three, T);
    }
}

int main() {
    std::vector<float> values(10);
    BOTH(one);
    two_k<short, 2u, false><<<1, 1>>>(nullptr, 3);
    auto pointer = &two_k<long, 1u, false>;
    pointer<<<1, 1>>>(nullptr, 3);
    run(values.data());
    run((char *)nullptr);
    five<<<1, 1>>>((char *)nullptr);
    four(nullptr);
}
