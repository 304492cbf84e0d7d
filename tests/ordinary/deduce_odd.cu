// Launches in odd places, of kernels with odd heads.
// kernels: arm<float, 3>, bounded<float>, plain<float>, plain<int>, later<float>, later<int>, later<char>, later<double>, later<long>, later<unsigned int>, later<unsigned char>
#include <cstdio>
#include <exception>
#include <type_traits>
#include <vector>

#define BOUNDS __launch_bounds__(256, 2)

#ifdef FAST
template <typename T, int N>
__global__ void arm(T *x) {
    if (x) {
#else
template <typename T, int N>
__global__ void arm(T *x) {
    if (!x) {
#endif
        x[0] = N;
    }
}

template <typename T>
BOUNDS __global__ void bounded(T *x, const int (&y)[4]) {
    x[0] = y[0];
}

template <typename T, typename = std::enable_if_t<sizeof(T) == 4>, int = 3>
static __global__ void plain(T *x) {
    x[0] = 2;
}

template <typename T>
__global__ void later(T *x, int n = 3);

template <typename T>
struct Launcher {
    template <typename... A>
    static void go(void (*kernel)(A...), A... a) {
        kernel<<<1, 1>>>(a...);
    }
};

template <typename T>
auto make() {
    return +[](T *x) { later<<<1, 1>>>(x, 3); };
}

struct Friendly {
    float q;
    friend void operator+(Friendly, float *x) { bounded<<<1, 1>>>(x, {1, 2, 3, 4}); }
};

struct Base {
    virtual void run(int *x) { later<<<1, 1>>>(x, 3); }
};

template <typename T>
struct Derived : Base {
    void run(int *) override { later<<<1, 1>>>((T *)nullptr, 4); }
};

template <typename T>
const void *table[] = {(void *)&later<T>};

int main(int argc, char **argv) {
    float *x = nullptr;
    int *y = nullptr;
    arm<float, 3><<<1, 1>>>(x);
    Friendly() + x;
    plain<<<1, 1>>>(y);
    Launcher<int>::go(later, x, 3);
    make<double>()(nullptr);
    Derived<char>().run(y);
    auto entry = table<long>;
    std::vector<std::vector<int>> rows;
    for (auto &row : rows) plain<<<1, row.size()>>>((float *)row.data());
    try {
        later<<<1, 1>>>((unsigned *)y, 2);
    } catch (const std::exception &e) {
        printf("%s %p", e.what(), *entry);
    }
    if (argc < 2) goto end;
end:
    return argc > 3 ? (later<<<1, 1>>>((unsigned char *)y, 2), 0) : 1;
}

template <typename T>
__global__ void later(T *x, int n) {
    x[0] = T(n);
}
