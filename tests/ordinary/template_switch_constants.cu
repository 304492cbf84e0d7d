// A macro that declares constants in each branch, and launches in it.
// kernels: pack<4, 1>, pack<8, 3>, spread<float, 4, 3>, spread<float, 8, 7>
#include <stdexcept>
#include <vector>

#define BITS_SWITCH(bits, ...)                                     \
    [&] {                                                          \
        if (bits == 4) {                                           \
            constexpr int CONST_BITS = 4, CONST_MASK = 3;          \
            constexpr int CONST_SHIFT = 1;                         \
            __VA_ARGS__();                                         \
        } else if (bits == 8) {                                    \
            constexpr int CONST_BITS = 8, CONST_MASK = 7;          \
            constexpr int CONST_SHIFT = 3;                         \
            __VA_ARGS__();                                         \
        } else {                                                   \
            throw std::invalid_argument("4 or 8 bits, please");    \
        }                                                          \
    }()

template <int BITS, int SHIFT> __global__ void pack(int *x) { x[threadIdx.x] = (x[threadIdx.x] >> SHIFT) & BITS; }
template <typename T, int BITS, int MASK> __global__ void spread(T *x) { x[threadIdx.x] = x[threadIdx.x & MASK] * BITS; }

void run(int bits, int *x) {
    BITS_SWITCH(bits, [&] { pack<CONST_BITS, CONST_SHIFT><<<1, 32>>>(x); });
}

template <typename T> void spread_all(int bits, T *x) {
    BITS_SWITCH(bits, [&] { spread<T, CONST_BITS, CONST_MASK><<<1, 32>>>(x); });
}

template void spread_all<float>(int, float *);
