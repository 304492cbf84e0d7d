// Names that mean one thing where a launch is and another outside: what is compiled is what the launch means.
// kernels: take<double, 4>, shift<9, Traits::real>, take<app::real, 3>, take<unsigned int, 77>, take<char, 5>, take<char *, 1>, give<Traits::Inner>, give<app::Inner>, give<char>, mix<Two, true, 'c', -5, 3, -3>, mix<One, false, '0', 1, 18446744073709551615ULL, 7>, any<3U>, any<3>, any<Two>, at<&cell>, at<nullptr>
using real = float;

struct Inner {
    int a;
};

enum Kind { One, Two };

constexpr int N = 3;
__device__ int cell;

template <typename T, unsigned M>
__global__ void take(T *x) {
    x[M] = T();
}

template <typename T>
__global__ void give(T *x) {
    x[0] = x[1];
}

template <int M, typename T>
__global__ void shift(T *x) {
    x[M] = x[0];
}

template <Kind K, bool B, char C, long long L, unsigned long long U, short S>
__global__ void mix(long long *x) {
    x[0] = static_cast<long long>(K + B + C + L + S) + static_cast<long long>(U);
}

template <auto V>
__global__ void any(int *x) {
    x[0] = static_cast<int>(V);
}

template <int *P>
__global__ void at(int *x) {
    x[0] = P ? *P : 1;
}

struct Traits {
    using real = short;
    struct Inner {
        double q;
    };
    static constexpr int N = 9;
    template <typename T>
    void go(T *) {
        shift<N><<<1, 1>>>((real *)nullptr);
        give<<<1, 1>>>((Inner *)nullptr);
    }
};

namespace app {
using real = long long;

struct Inner {
    char c;
};

template <typename T>
void go(T *) {
    take<real, N><<<1, 1>>>((real *)nullptr);
    give<<<1, 1>>>((Inner *)nullptr);
}
}  // namespace app

template <typename T>
struct Pointer {
    using real = T *;
};

template <typename T>
void run(T *x) {
    using real = double;
    constexpr int N = 4;
    take<real, N><<<1, 1>>>((real *)x);
    auto inside = [](auto *p) {
        using real = unsigned;
        take<real, 77><<<1, 1>>>((real *)p);
    };
    inside(x);
}

template <typename real>
void parameter(real *x) {
    take<real, 5><<<1, 1>>>(x);
    give<<<1, 1>>>(x);
}

template <typename T>
void pointer(T *x) {
    using namespace app;
    take<typename Pointer<T>::real, 1><<<1, 1>>>((T **)x);
}

template <Kind K>
void mixed(long long *x) {
    mix<K, K == Two, K == Two ? 'c' : '0', K == Two ? -5 : 1, K == Two ? 3 : -1ULL, K == Two ? -3 : 7><<<1, 1>>>(x);
}

template <auto V>
void anything(int *x) {
    any<V><<<1, 1>>>(x);
}

template <int *P>
void placed(int *x) {
    at<P><<<1, 1>>>(x);
}

void f(char *x, int *y) {
    run(x);
    Traits().go(x);
    app::go(x);
    parameter(x);
    pointer(x);
    mixed<One>((long long *)x);
    mixed<Two>((long long *)x);
    anything<3U>(y);
    anything<3>(y);
    anything<Two>(y);
    placed<&cell>(y);
    placed<nullptr>(y);
}
