// Generic lambdas, visitors and integral constants that carry the arguments.
// kernels: fill<float, 4>, fill<int, 4>, fill<float, 8>, fill<int, 8>, twice<short>, twice<long long>
#include <type_traits>
#include <utility>

template <typename T, int N>
__global__ void fill(T *x, T value) {
    for (int i = 0; i < N; ++i) x[threadIdx.x * N + i] = value;
}

template <typename T>
__global__ void twice(T *x) {
    x[threadIdx.x] += x[threadIdx.x];
}

template <typename F>
void with_width(bool wide, F &&launch) {
    if (wide) {
        launch(std::integral_constant<int, 8>{});
    } else {
        launch(std::integral_constant<int, 4>{});
    }
}

void run(float *x, int *y, short *z, bool wide) {
    auto filled = [&](auto *data, auto value) {
        with_width(wide, [&](auto width) { fill<std::remove_pointer_t<decltype(data)>, width()><<<1, 32>>>(data, value); });
    };
    filled(x, 1.0f);
    filled(y, 1);
    auto doubled = [](auto *data) {
        twice<<<1, 32>>>(data);
    };
    doubled(z);
    doubled(static_cast<long long *>(nullptr));
    auto never = [](auto *data) { twice<<<1, 1>>>(data); };
    (void)never;
}
