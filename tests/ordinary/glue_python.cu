// A module of the interpreter's own interface.
// kernels: invert
#define PY_SSIZE_T_CLEAN
#include <Python.h>

__global__ void invert(unsigned char *pixels, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) pixels[i] = 255 - pixels[i];
}

static PyObject *run(PyObject *self, PyObject *args) {
    unsigned long long pointer;
    unsigned n;
    if (!PyArg_ParseTuple(args, "KI", &pointer, &n)) return NULL;
    invert<<<(n + 255) / 256, 256>>>(reinterpret_cast<unsigned char *>(pointer), n);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"run", run, METH_VARARGS, "inverts"}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "invert", NULL, -1, methods};

PyMODINIT_FUNC PyInit_invert(void) { return PyModule_Create(&definition); }
