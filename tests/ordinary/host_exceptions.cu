// Exceptions of the host.
// kernels: risky
#include <exception>
#include <stdexcept>
#include <string>

struct CudaError : public std::runtime_error {
    explicit CudaError(cudaError_t status) : std::runtime_error(cudaGetErrorString(status)), status(status) {}
    cudaError_t status;
};

__global__ void risky(int *p) {
    if (!p) __trap();
    *p = 1;
}

void run(int *p) try {
    risky<<<1, 1>>>(p);
    auto status = cudaGetLastError();
    if (status) throw CudaError(status);
} catch (const CudaError &error) {
    throw std::logic_error(std::string("run: ") + error.what());
} catch (...) {
    std::terminate();
}
