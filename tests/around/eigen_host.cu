#include <Eigen/Dense>
#include <Eigen/Sparse>
#include <iostream>

using Eigen::MatrixXf;
using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

__global__ void scale(float *x, float by, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= by;
}

class Solver {
public:
    explicit Solver(int n) : a_(MatrixXf::Random(n, n)), b_(n) {}
    Eigen::VectorXf solve() const { return a_.fullPivLu().solve(b_); }
    void scaleOnDevice(float by) {
        float *x = nullptr;
        cudaMalloc(&x, a_.size() * sizeof(float));
        scale<<<(a_.size() + 127) / 128, 128>>>(x, by, int(a_.size()));
    }
private:
    MatrixXf a_;
    Eigen::VectorXf b_;
};

static Matrix identity(int n) { return Matrix::Identity(n, n); }

int main() {
    Solver solver(4);
    solver.scaleOnDevice(2.0f);
    std::cout << solver.solve().transpose() << identity(3) << std::endl;
}
