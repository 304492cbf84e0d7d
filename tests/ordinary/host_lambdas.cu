// Closures of the host.
// kernels: one
#include <functional>

__global__ void one(int *p) { *p = 1; }

static auto launch = [](int *p) { one<<<1, 1>>>(p); };
static const std::function<void(int *)> later = [](int *p) {
    auto inner = [&] { launch(p); };
    inner();
};

void run(int *p) {
    later(p);
    [p] { launch(p); }();
}
