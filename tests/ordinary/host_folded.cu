// Constants that are computed from others in floating point, which nvcc folds.
// kernels: blur
#include <cstdio>
#include <vector>

const float sigma = 1.5f;
const float weight = 1.0f / (2.0f * sigma * sigma);
static const double third = 1.0 / 3.0, sixth = third / 2;
namespace filter {
float const edge = weight * (float)third;
const float taps[3] = {edge, 1.0f - 2 * edge, edge};
inline const double ratio = sixth / third;
}
const std::vector<float> table(3, weight);

__global__ void blur(const float *x, float *out) {
    unsigned i = threadIdx.x + 1;
    out[i] = x[i - 1] * filter::edge + x[i] * (1.0f - 2 * filter::edge) + x[i + 1] * filter::edge;
    out[i] += weight + (float)(sixth * filter::ratio);
}

void run(float *x) {
    blur<<<1, 30>>>(x, x);
    printf("%f %f\n", table[0], filter::taps[1]);
}
