// Function templates of the host that are called with deduced arguments, through several of them.
// kernels: add<float, 128>, add<double, 128>, add<int, 256>, add<uint8_t, 64>
#include <cstdint>
#include <iostream>
#include <stdexcept>

template <typename T, int Threads>
__global__ void add(const T *a, const T *b, T *c, int n) {
    int i = blockIdx.x * Threads + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

template <int Threads, typename T>
void launch(const T *a, const T *b, T *c, int n) {
    if (n == 0) throw std::invalid_argument("nothing to add");
    add<T, Threads><<<(n + Threads - 1) / Threads, Threads>>>(a, b, c, n);
}

template <typename T>
void run(T *x, int n) {
    constexpr int threads = sizeof(T) == 4 && T(0.5) == T(0) ? 256 : 128;
    launch<threads>(x, x, x, n);
}

template <typename T>
auto doubled(T x) {
    run(x, 32);
    return x;
}

template <typename T>
void unused(T **x) {
    run(*x, 1);
}

int main() {
    float *x = nullptr;
    double *y = nullptr;
    run(x, 100);
    y = doubled(y);
    run((int *)nullptr, 1);
    launch<64, uint8_t>(nullptr, nullptr, nullptr, 1);
    std::cout << "done" << std::endl;
}
