from functools import cache
from importlib.resources import files

import numpy as np
from cuda.core import Device, LaunchConfig, ObjectCode, launch


@cache
def _kernel():
    ptx = files("tally").joinpath("kernels/tally.ptx").read_bytes()
    return ObjectCode.from_ptx(ptx).get_kernel("tally")


def tally(stream, values, counts, n):
    """Add how often each of 64 values occurs, for n bytes on the current device."""
    blocks = min((n + 255) // 256, Device().properties.multiprocessor_count)
    launch(stream, LaunchConfig(grid=blocks, block=256), _kernel(), values, counts, np.int32(n))
