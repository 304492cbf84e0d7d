#include <cstdio>
#include <vector>
#include <glm/glm.hpp>
#include <glm/gtc/matrix_transform.hpp>
#include <glm/gtc/type_ptr.hpp>

struct Ray {
    glm::vec3 origin, direction;
};

__constant__ glm::mat4 view;

__device__ glm::vec3 reflected(const Ray &ray, const glm::vec3 &normal) {
    return glm::normalize(glm::reflect(ray.direction, normal));
}

template <int N>
__global__ void trace(const Ray *rays, glm::vec4 *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    glm::vec3 sum(0.0f);
    for (int k = 0; k < N; ++k) sum += reflected(rays[i], glm::vec3(0, 1, k));
    out[i] = view * glm::vec4(glm::clamp(sum, 0.0f, 1.0f), glm::dot(sum, sum));
}

__global__ void rotate(glm::mat3 *m, float angle) {
    glm::mat3 turn(glm::cos(angle), glm::sin(angle), 0, -glm::sin(angle), glm::cos(angle), 0, 0, 0, 1);
    m[threadIdx.x] = glm::transpose(turn) * m[threadIdx.x] * turn;
}

int main() {
    std::vector<Ray> rays(64);
    glm::mat4 camera = glm::lookAt(glm::vec3(0, 0, 5), glm::vec3(0), glm::vec3(0, 1, 0));
    cudaMemcpyToSymbol(view, glm::value_ptr(camera), sizeof(camera));
    Ray *device = nullptr;
    glm::vec4 *out = nullptr;
    cudaMalloc(&device, rays.size() * sizeof(Ray));
    cudaMalloc(&out, rays.size() * sizeof(glm::vec4));
    trace<4><<<1, 64>>>(device, out, int(rays.size()));
    rotate<<<1, 1>>>(nullptr, glm::radians(30.0f));
    std::printf("%f\n", camera[0][0]);
    return 0;
}
