// Members of classes and of class templates that launch, and namespaces.
// kernels: app::grow<float>, app::grow<app::Pair<int>>, app::detail::shrink<3, app::Pair<short>>, row<Cell>
#include <memory>

namespace app {

template <typename T>
struct Pair {
    T a, b;
};

template <typename T>
__global__ void grow(T *x, int n) {
    if (threadIdx.x < n) x[threadIdx.x] = x[0];
}

namespace detail {
template <int N, typename T>
__global__ void shrink(T *x) {
    x[N] = x[0];
}
}  // namespace detail

template <typename T>
class Grower {
public:
    explicit Grower(T *x) : x_(x) {}
    void operator()(int n) const { grow<<<1, n>>>(x_, n); }
    void never() { grow<<<1, 1>>>(&x_, 1); }

private:
    T *x_;
};

}  // namespace app

struct Cell {
    int x;
    template <typename T>
    static void launch(T *x) {
        app::detail::shrink<3><<<1, 1>>>(x);
    }
};

template <typename T>
__global__ void row(T *x) {
    x[0].x = 1;
}

void run(float *x) {
    app::Grower<float> grower(x);
    grower(3);
    app::Grower<app::Pair<int>>(nullptr)(4);
    Cell::launch(static_cast<app::Pair<short> *>(nullptr));
    auto cell = std::make_unique<Cell>();
    Cell *cells = nullptr;
    row<<<1, 1>>>(cells);
}
