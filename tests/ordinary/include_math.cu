// Mathematical functions, with and without std.
// kernels: waves
#include <cmath>
#include <math.h>
#include <float.h>
#include <limits.h>

__global__ void waves(const float *x, double *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = sinf(x[i]) + std::sqrt(x[i]) + std::fabs(x[i]) + powf(x[i], 2.5f);
    y[i] = s > FLT_EPSILON && i < INT_MAX ? exp(double(s)) + std::floor(s) : 0.0;
}
