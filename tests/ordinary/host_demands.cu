// Operators and a swap of classes of the host beside code of the device that asks for the same operators.
// kernels: count<int>, count<Point>
#include <cuda/std/type_traits>
#include <memory>
#include <string>
#include <utility>

namespace store {
struct Key {
    int id;
    std::string name() const { return std::to_string(id); }
    std::allocator<int> memory;
};
inline bool operator==(const Key &a, const Key &b) { return a.id == b.id; }
inline bool operator!=(const Key &a, const Key &b) { return !(a == b); }
inline void swap(Key &a, Key &b) noexcept { std::swap(a.id, b.id); }
}  // namespace store

template <class T>
struct Pool {
    std::allocator<T> memory;
};
template <class T, class U>
bool operator==(const Pool<T> &, const Pool<U> &) { return true; }
store::Key operator*(const store::Key &key, int n) { return {key.id * n}; }
store::Key operator*(int n, const store::Key &key) { return key * n; }

template <class T, class = void>
struct Compares { static constexpr bool value = false; };
template <class T>
struct Compares<T, decltype(void(cuda::std::declval<T>() == cuda::std::declval<T>() * 1))> {
    static constexpr bool value = true;
};

struct Point { float x; };

template <class T>
__global__ void count(const T *in, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(out, Compares<T>::value ? 2 : 1);
}

void run(const int *a, const Point *b, int *out, int n) {
    store::Key one{1}, two{2};
    swap(one, two);
    count<<<1, 128>>>(a, out, one == two ? n : 0);
    count<<<1, 128>>>(b, out, n);
}
