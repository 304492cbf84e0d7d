// Dispatch at run time to arguments that are known when it is compiled: macros with lambdas, switch, if constexpr.
// kernels: norm<float, true, 1>, norm<float, false, 1>, norm<double, true, 1>, norm<double, false, 1>, norm<float, true, 2>, norm<float, false, 2>, norm<double, true, 2>, norm<double, false, 2>, sum<32, float>, sum<64, float>, sum<128, float>, pick<int>, pick<char>
#include <cstdlib>

#define BOOL_SWITCH(CONDITION, NAME, ...)     \
    [&] {                                     \
        if (CONDITION) {                      \
            constexpr static bool NAME = true;  \
            return __VA_ARGS__();             \
        } else {                              \
            constexpr static bool NAME = false; \
            return __VA_ARGS__();             \
        }                                     \
    }()

template <typename T, bool Mean, int Vector>
__global__ void norm(T *x, int n) {
    if (threadIdx.x < n / Vector) x[threadIdx.x] /= Mean ? T(n) : T(2);
}

template <int Block, typename T>
__global__ void sum(T *x) {
    for (int i = Block / 2; i > 0; i /= 2) x[threadIdx.x] += x[threadIdx.x + i];
}

template <typename T>
__global__ void pick(T *x) {
    x[0] = x[1];
}

template <typename T>
void normalise(T *x, int n, bool mean) {
    BOOL_SWITCH(mean, kMean, [&] {
        if (n % 2 == 0) {
            norm<T, kMean, 2><<<1, n>>>(x, n);
        } else {
            auto kernel = &norm<T, kMean, 1>;
            kernel<<<1, n>>>(x, n);
        }
    });
}

template <int Block>
void block(float *x) {
    sum<Block><<<1, Block>>>(x);
}

void summed(float *x, int n) {
    switch (n) {
    case 32: block<32>(x); break;
    case 64: block<64>(x); break;
    case 128: {
        const int size = 128;
        sum<size><<<1, size>>>(x);
        break;
    }
    default: exit(1);
    }
}

template <typename T>
void picked(T *x) {
    if constexpr (sizeof(T) == 8) {
        pick<<<1, 1>>>((long *)x);
    } else if constexpr (sizeof(T) == 4) {
        pick<<<1, 1>>>((int *)x);
    } else {
        pick<<<1, 1>>>(x);
    }
}

void run(float *x, double *y, char *z, int n) {
    normalise(x, n, n > 3);
    normalise(y, n, n > 3);
    summed(x, n);
    picked(x);
    picked(z);
}
