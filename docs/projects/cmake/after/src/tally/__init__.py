import numpy as np
from cuda.core import Device, LaunchConfig, launch
from hatch_cuda_kernels import load_kernel


def tally(stream, values, counts, n):
    """Add how often each of 64 values occurs, for n bytes on the current device."""
    blocks = min((n + 255) // 256, Device().properties.multiprocessor_count)
    launch(stream, LaunchConfig(grid=blocks, block=256), load_kernel("tally"), values, counts, np.int32(n))
