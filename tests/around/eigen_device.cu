#include <Eigen/Core>
#include <Eigen/Geometry>

__global__ void transform(const Eigen::Vector3f *in, Eigen::Vector3f *out, Eigen::Matrix3f turn, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = turn * in[i] + Eigen::Vector3f::Ones() * in[i].dot(in[i]);
}

int main() {
    Eigen::Matrix3f turn = Eigen::AngleAxisf(0.5f, Eigen::Vector3f::UnitZ()).toRotationMatrix();
    transform<<<1, 1>>>(nullptr, nullptr, turn, 0);
}
