// Namespaces of all kinds.
// kernels: left, app::middle, app::detail::right
namespace {
int hidden = 0;
int next() { return ++hidden; }
}  // namespace

__global__ void left(int *p) { *p = 1; }

namespace app {
static int count;
__global__ void middle(int *p) { *p = 2; }
namespace detail {
__global__ void right(int *p) { *p = 3; }
inline namespace v1 {
int launches() { return count; }
}  // namespace v1
}  // namespace detail
void run(int *p) {
    left<<<1, next()>>>(p);
    middle<<<1, 1>>>(p);
    detail::right<<<1, 1>>>(p);
    count += 3 + detail::launches();
}
}  // namespace app
