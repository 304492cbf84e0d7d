import numpy as np
import pycuda.autoinit  # noqa: F401
from pycuda import driver
from pycuda.compiler import SourceModule

_module = SourceModule("""
__constant__ float taps[3];

__global__ void smooth(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) out[i] = taps[0] * in[i - 1] + taps[1] * in[i] + taps[2] * in[i + 1];
}
""")
_smooth = _module.get_function("smooth")


def smooth(x, taps):
    x = np.ascontiguousarray(x, np.float32)
    out = x.copy()
    driver.memcpy_htod(_module.get_global("taps")[0], np.asarray(taps, np.float32))
    grid, block = ((x.size + 255) // 256, 1), (256, 1, 1)
    _smooth(driver.In(x), driver.InOut(out), np.int32(x.size), block=block, grid=grid)
    return out
