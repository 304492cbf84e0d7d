// Functions of the host that hide those of an outer namespace, where device code calls them.
// kernels: n::k
#include <vector>
#include <ostream>
struct P { int v; template <class T> struct R {}; };
__device__ int f(P) { return 1; }
__device__ int f(long) { return 40; }
__device__ int operator==(P a, int b) { return a.v + b; }
struct Q { int v; };
namespace m { struct E { int v; __host__ __device__ operator P() const { return P{v}; } }; __device__ int g(E e) { return e.v + 7; } }
namespace n {
struct C { std::vector<int> h; };
void f(const C &);
template <class T> T f(const std::vector<T> &x) { return x[0]; }
std::ostream &operator==(std::ostream &o, const C &);
template <class T> bool operator<(const std::vector<T> &a, int);
__device__ int g(P p) { return f(p) + (p == 1); }
__device__ int g(long p) { return ::f(p); }
__global__ void k(P p, int *o) { *o = g(p) + g(3L); }
}
void run(int *o) { n::C c; n::f(c); n::k<<<1, 1>>>(P{1}, o); }
