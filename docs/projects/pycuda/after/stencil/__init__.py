import numpy as np
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, launch
from hatch_cuda_kernels import load_kernel, load_module


def _checked(result):
    error, *values = result
    if error != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(driver.cuGetErrorName(error)[1].decode())
    return values[0] if len(values) == 1 else values


def smooth(x, taps):
    device = Device()
    device.set_current()
    stream = device.create_stream()
    x, taps = np.ascontiguousarray(x, np.float32), np.asarray(taps, np.float32)
    out = x.copy()
    source = device.allocate(x.nbytes, stream=stream)
    target = device.allocate(x.nbytes, stream=stream)
    stream.sync()
    constant, size = _checked(driver.cuLibraryGetGlobal(load_module("smooth").handle, b"taps"))
    _checked(driver.cuMemcpyHtoD(constant, taps.ctypes.data, size))
    _checked(driver.cuMemcpyHtoD(int(source.handle), x.ctypes.data, x.nbytes))
    _checked(driver.cuMemcpyHtoD(int(target.handle), x.ctypes.data, x.nbytes))
    config = LaunchConfig(grid=(x.size + 255) // 256, block=256)
    launch(stream, config, load_kernel("smooth"), source, target, np.int32(x.size))
    stream.sync()
    _checked(driver.cuMemcpyDtoH(out.ctypes.data, int(target.handle), out.nbytes))
    return out
