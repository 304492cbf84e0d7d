#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/for_each.h>
#include <thrust/transform_reduce.h>
#include <thrust/execution_policy.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/functional.h>
#include <thrust/sort.h>

struct Square {
    __host__ __device__ float operator()(float x) const { return x * x; }
};

struct Mark {
    int *data;
    __device__ void operator()(int i) const { data[i] = i; }
};

__global__ void add(float *x, const float *y, int n) {
    Square square;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += square(y[i]);
}

float norm(const thrust::device_vector<float> &x) {
    return thrust::transform_reduce(x.begin(), x.end(), Square(), 0.0f, thrust::plus<float>());
}

int main() {
    thrust::host_vector<float> h(100, 1.0f);
    thrust::device_vector<float> x = h, y(100);
    thrust::device_vector<int> marks(100);
    thrust::for_each(thrust::device, thrust::counting_iterator<int>(0), thrust::counting_iterator<int>(100),
                     Mark{thrust::raw_pointer_cast(marks.data())});
    add<<<1, 128>>>(thrust::raw_pointer_cast(x.data()), thrust::raw_pointer_cast(y.data()), 100);
    thrust::sort(x.begin(), x.end());
    return norm(x) > 0;
}
