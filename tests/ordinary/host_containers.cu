// Constructors and overloads that take containers, beside code that asks what can be made.
// kernels: pick
#include <initializer_list>
#include <type_traits>
#include <vector>

template <typename T, int Most> struct Extents {
    __host__ __device__ Extents() : count(0) {}
    __host__ __device__ Extents(std::initializer_list<T> list) : count(0) {
        for (T each : list) values[count++] = each;
    }
    Extents(const std::vector<T> &list) : count(0) {
        for (T each : list) values[count++] = each;
    }
    __host__ __device__ Extents(const Extents &other) : count(other.count) {
        for (int i = 0; i < Most; ++i) values[i] = other.values[i];
    }
    __host__ __device__ T operator[](int i) const { return values[i]; }
    T values[Most];
    int count;
};

__host__ __device__ inline int offset(std::vector<int> &shape, std::vector<int> &at) {
    int found = 0;
    for (size_t i = 0; i < shape.size(); ++i) found = found * shape[i] + at[i];
    return found;
}

template <typename... Indices> __host__ __device__ int offset(const Extents<int, 4> &shape, Indices... at) {
    int indices[] = {at...}, found = 0;
    for (int i = 0; i < int(sizeof...(at)); ++i) found = found * shape[i] + indices[i];
    return found;
}

template <typename T> struct Cost {
    static const int value = std::is_constructible<T, int>::value ? 1 : 8;
};

__global__ void pick(Extents<int, 4> shape, const float *x, float *y) {
    int i = threadIdx.x;
    y[i] = x[offset(shape, i, i + 1)] * Cost<Extents<int, 4>>::value;
}

void run(const std::vector<int> &shape, const float *x, float *y) { pick<<<1, 32>>>(Extents<int, 4>(shape), x, y); }
