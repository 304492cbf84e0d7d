// Enumerations that both sides read.
// kernels: reduce<Op::Sum>, reduce<Op::Max>
#include <string>

enum class Op { Sum, Max };
enum Status { OK, FAILED = -1 };

template <Op op>
__global__ void reduce(const float *x, float *out, int n) {
    float r = x[0];
    for (int i = 1; i < n; ++i) r = op == Op::Sum ? r + x[i] : fmaxf(r, x[i]);
    *out = r;
}

Status run(const std::string &name, const float *x, float *out, int n) {
    switch (name == "sum" ? Op::Sum : Op::Max) {
    case Op::Sum: reduce<Op::Sum><<<1, 1>>>(x, out, n); break;
    case Op::Max: reduce<Op::Max><<<1, 1>>>(x, out, n); break;
    }
    return cudaGetLastError() ? FAILED : OK;
}
