// A module of pybind11 with arrays of numpy.
// kernels: increase
#include <pybind11/pybind11.h>
#include <pybind11/numpy.h>
#include <stdexcept>

namespace py = pybind11;

__global__ void increase(double *x, size_t n, double by) {
    size_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += by;
}

py::array_t<double> increased(py::array_t<double> values, double by) {
    auto view = values.request();
    if (view.ndim != 1) throw std::runtime_error("one dimension, please");
    increase<<<1, view.shape[0]>>>(static_cast<double *>(view.ptr), view.shape[0], by);
    return values;
}

PYBIND11_MODULE(increase_module, m) {
    m.doc() = "increases { } arrays";
    m.def("increased", &increased, py::arg("values"), py::arg("by") = 1.0);
}
