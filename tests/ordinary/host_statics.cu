// Functions of the host in every dress.
// kernels: touch
#include <cstdio>

inline int rounded(int n, int by) { return (n + by - 1) / by * by; }
static int halved(int n) { return n / 2; }
__host__ int doubled(int n) { return n * 2; }
extern "C" int exported(int n) { return n; }
[[nodiscard]] static inline int odd(int n) noexcept { return n | 1; }
__attribute__((noinline)) int slow(int n) { return n; }
static auto deduced(int n) -> long { return n; }
int declared(int n);
static int (*chosen)(int) = nullptr;

__global__ void touch(int *p) { *p = 1; }

void run(int *p) {
    chosen = &halved;
    int n = rounded(halved(7), 2) + doubled(1) + exported(2) + odd(3) + slow(4) + (int)deduced(5) + declared(6);
    touch<<<chosen(n), 1>>>(p);
}
