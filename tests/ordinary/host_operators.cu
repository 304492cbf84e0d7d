// Operators of the host for a type that kernels use.
// kernels: normalise
#include <iostream>

struct Vec {
    float x, y, z;
    __host__ __device__ Vec operator*(float s) const { return {x * s, y * s, z * s}; }
};
__host__ __device__ inline float dot(const Vec &a, const Vec &b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
std::ostream &operator<<(std::ostream &out, const Vec &v) { return out << v.x << ' ' << v.y << ' ' << v.z; }
bool operator==(const Vec &a, const Vec &b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

__global__ void normalise(Vec *v, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) v[i] = v[i] * rsqrtf(dot(v[i], v[i]));
}

void show(const Vec &v) { std::cout << v << (v == v) << std::endl; }
