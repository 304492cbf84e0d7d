// Launches by members of classes.
// kernels: gather<float>
#include <memory>

template <typename T>
__global__ void gather(const T *in, const int *index, T *out) { out[threadIdx.x] = in[index[threadIdx.x]]; }

class Table {
public:
    void take(const float *in, const int *index, float *out) { gather<float><<<1, 32>>>(in, index, out); }

private:
    std::shared_ptr<float> data_;
};
