// Heads over many lines.
// kernels: scatter
#include <vector>

template <
    typename T,
    typename = void>
static inline
std::vector<T>
gathered(
    const T *values,
    int n
)
{
    return std::vector<T>(values, values + n);
}

__global__
void
scatter(
    const int *__restrict__ index,
    float *__restrict__ out
)
{
    out[index[threadIdx.x]] = 1.0f;
}

int *
allocate
(int n)
{
    int *p;
    cudaMalloc(&p, gathered(&n, 1).size() * n);
    return p;
}
