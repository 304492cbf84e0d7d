// Type traits that a template kernel asks.
// kernels: widen<float, int>, widen<double, long>
#include <type_traits>
#include <utility>

template <typename T, typename I>
__global__ void widen(T *out, const I *in, int n) {
    static_assert(std::is_floating_point<T>::value && std::is_integral<I>::value, "numbers");
    using Common = typename std::common_type<T, I>::type;
    int i = threadIdx.x;
    if (i < n) out[i] = static_cast<T>(static_cast<Common>(in[i]));
}

void run(float *a, const int *b, double *c, const long *d) {
    widen<float, int><<<1, 32>>>(a, b, 32);
    widen<double, long><<<1, 32>>>(c, d, 32);
}
