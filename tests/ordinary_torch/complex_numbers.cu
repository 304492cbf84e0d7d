// The library's complex numbers; a division takes the branch of the host compiler.
// kernels: rotate
#include <c10/util/complex.h>

__global__ void rotate(c10::complex<float> *z, c10::complex<double> *w, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    z[i] = z[i] * c10::complex<float>(0, 1) / z[i + n];
    w[i] = c10::complex<double>(z[i].real(), -z[i].imag()) + w[i + n] / w[i];
}

int main() {
    rotate<<<1, 1>>>(nullptr, nullptr, 1);
    return 0;
}
