// Functions that a module is told of, and nothing else names: templates of the host that launch.
// kernels: scale<double>, scale<float>, shift<int>
#include <pybind11/pybind11.h>

template <typename T> __global__ void scale(T *x, T by) { x[threadIdx.x] *= by; }
template <typename T> __global__ void shift(T *x) { x[threadIdx.x] += 1; }

template <typename T> void scaled(long x, T by) { scale<<<1, 32>>>(reinterpret_cast<T *>(x), by); }

PYBIND11_MODULE(kernels, m) {
    m.def("scale_float", &scaled<float>, pybind11::arg("x"));
    m.def("scale_double", scaled<double>, "multiplies")
        .def("shift", [](long x) { shift<<<1, 32>>>(reinterpret_cast<int *>(x)); });
}
