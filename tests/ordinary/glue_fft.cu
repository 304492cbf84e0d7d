// Numbers of cuFFT in a kernel, handles of it and registrations of Boost around it.
// kernels: multiply, widen
#include <cufft.h>
#include <boost/serialization/level.hpp>
#include <vector>

struct Spectrum {
    std::vector<float> host;
    cufftHandle plan;
};
BOOST_CLASS_IMPLEMENTATION(Spectrum, object_serializable)

struct Pair {
    cufftComplex a, b;
};

__global__ void multiply(const Pair *in, cufftComplex *out, cufftReal scale) {
    Pair p = in[threadIdx.x];
    out[threadIdx.x] = cuCmulf(p.a, p.b);
    out[threadIdx.x].x *= scale;
}

__global__ void widen(const cufftComplex *in, cufftDoubleComplex *out, cufftDoubleReal scale) {
    out[threadIdx.x].x = in[threadIdx.x].x * scale;
    out[threadIdx.x].y = in[threadIdx.x].y * scale;
}

void run(Spectrum &s, const Pair *in, cufftComplex *middle, cufftDoubleComplex *out) {
    multiply<<<1, 32>>>(in, middle, 0.5f);
    cufftExecC2C(s.plan, middle, middle, CUFFT_FORWARD);
    widen<<<1, 32>>>(middle, out, 2.0);
}
