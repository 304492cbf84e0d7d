import numpy as np
from cuda.core import Buffer, Device, LaunchConfig, launch
from hatch_cuda_kernels import load_kernel

_KERNELS = {"f": "relax<float, 256>", "d": "relax<double, 256>"}


def relax(x, steps, weight):
    x = np.array(x)
    device = Device()
    device.set_current()
    stream = device.default_stream
    a, b = device.allocate(x.nbytes, stream=stream), device.allocate(x.nbytes, stream=stream)
    here = Buffer.from_handle(x.ctypes.data, x.nbytes)
    here.copy_to(a, stream=stream)
    config = LaunchConfig(grid=(x.size + 255) // 256, block=256)
    kernel = load_kernel(_KERNELS[x.dtype.char])
    for _ in range(steps):
        launch(stream, config, kernel, a, b, np.int32(x.size), x.dtype.type(weight))
        a, b = b, a
    a.copy_to(here, stream=stream)
    stream.sync()
    return x
