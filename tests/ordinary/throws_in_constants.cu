// Constant functions of the host that throw, and classes that are only thrown.
// kernels: k
#include <stdexcept>
#include <string>
#include <vector>
namespace app { struct Error : std::logic_error { using std::logic_error::logic_error; }; }
struct Config { int v; constexpr Config(int n) : v(n > 0 ? n : throw ::app::Error{"n"}) {} constexpr int get(int i) const { return i ? v : i > 2 ? throw app::Error("a, b") : 7; } };
template <class T> constexpr T clampd(T x, T lo) { return x < lo ? throw std::invalid_argument(std::string("x") + "y"), lo : x; }
constexpr int pick(int i) {
    switch (i) {
    case 0: return 3;
    case 1: { if (i > 4) { throw app::Error("deep"); } return 5; }
    default: throw std::out_of_range(
        "pick");
    }
}
constexpr int both(int i) { return i > 0 ? (i > 5 ? 5 : i) : (i == 0 ? throw 1 : throw 2, 3); }
constexpr Config config(4);
template <int N> struct A { static constexpr int v = N; };
__global__ void k(int *o) { *o = A<config.v>::v + A<config.get(0)>::v + A<clampd(3, 1)>::v + A<pick(1)>::v + A<both(9)>::v; }
void run(int *z) { std::vector<int> v; k<<<1, 32>>>(z); }
