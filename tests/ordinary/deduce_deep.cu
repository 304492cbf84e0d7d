// Types in types in types, as expression templates make them.
// kernels: app::apply<app::Sum<app::Sum<app::Sum<app::Sum<app::Sum<app::Sum<app::Sum<app::Sum<app::Sum<app::One,app::One>,app::One>,app::One>,app::One>,app::One>,app::One>,app::One>,app::One>,app::One>,3,true>, app::apply<app::One,3,true>, app::all<app::One,app::Sum<app::Sum<app::Sum<app::Sum<app::Sum<app::Sum<app::Sum<app::Sum<app::Sum<app::One,app::One>,app::One>,app::One>,app::One>,app::One>,app::One>,app::One>,app::One>,app::One>,int>
#include <cstdio>

namespace app {

template <class... A>
struct Sum {
    __device__ float operator()(float x) const { return x; }
};

template <class A, class... R>
struct Sum<A, R...> {
    A a;
    Sum<R...> r;
    __device__ float operator()(float x) const { return a(x) + r(x); }
};

struct One {
    __device__ float operator()(float x) const { return x * 3 + 1; }
};

template <class A>
Sum<A, One> more(A) {
    return {};
}

template <class F, int N, bool B>
__global__ void apply(float *x, F f) {
    for (int i = 0; i < N; ++i) *x = f(*x) + B;
}

template <class... F>
__global__ void all(float *x, F... f) {
    *x = sizeof...(f);
}

template <class F>
void run(float *x, F f) {
    apply<F, 3, true><<<1, 1>>>(x, f);
}

}  // namespace app

int main() {
    using namespace app;
    float *x;
    cudaMalloc(&x, sizeof(float));
    auto deep = more(more(more(more(more(more(more(more(more(One{})))))))));
    run(x, deep);
    run(x, One{});
    all<<<1, 1>>>(x, One{}, deep, 3);
    printf("done\n");
}
