// Brackets that arms of a conditional open, each in its own way, and that others close.
// kernels: k, z
#include <type_traits>
#include <vector>

#define PUSH_WARNINGS() _Pragma("nv_diag_default 177")
#define NODISCARD() [[nodiscard]]

#ifdef FIRST
namespace first { namespace inner {
#elif defined(__CUDACC__)
namespace second { inline namespace inner {
#else
namespace third { namespace other {
#endif
constexpr int value = 3;
static void host() { std::vector<int> v; }
#ifdef FIRST
} }
#else
} }
#endif

#ifdef FIRST
struct Scaled {
#else
struct Scaled : public std::true_type {
#endif
    int by;
    static void host() { std::vector<int> v; }
    __device__ int scaled(int x) const { return x * by + value; }
};

PUSH_WARNINGS()
namespace plain {
NODISCARD()
static int host() { std::vector<int> v; return 0; }
NODISCARD()
__device__ int four() { return 4; }
}

#ifdef FIRST
static int host(int a)
#else
static int host(float a)
#endif
{
    std::vector<int> v;
    return v.size() + a;
}

#ifdef FIRST
__global__ void k(int *p, int a, Scaled s)
#else
__global__ void k(int *p, float a, Scaled s)
#endif
{
    *p = a + s.scaled(second::value);
}

__global__ void z(int *p) { *p = plain::four(); }
