// A function of the host that CUDA's libraries look up by its arguments, of which nothing in device code has a type.
// kernels: largest
#include <cub/block/block_reduce.cuh>
#include <memory>
#include <utility>

namespace app {
template <typename T> class Owner {
public:
    explicit Owner(T *held) : held_(held) {}
    ~Owner() { delete held_; }
    void swap(Owner &other) noexcept { std::swap(held_, other.held_); }

private:
    T *held_;
};
template <typename T> void swap(Owner<T> &one, Owner<T> &other) noexcept { one.swap(other); }
}

__global__ void largest(const int *x, int *found) {
    using Reduce = cub::BlockReduce<int, 128>;
    __shared__ typename Reduce::TempStorage storage;
    int sum = Reduce(storage).Sum(x[threadIdx.x]);
    if (threadIdx.x == 0) *found = sum;
}

void run(int *x) {
    app::Owner<int> one(new int(1)), other(new int(2));
    swap(one, other);
    largest<<<1, 128>>>(x, x);
}
