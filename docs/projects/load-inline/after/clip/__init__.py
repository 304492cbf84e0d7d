import numpy as np
import torch
from cuda.core import Device, LaunchConfig, Stream, launch
from hatch_cuda_kernels import load_kernel


def clip(x, low, high):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    Device(x.device.index).set_current()
    stream = Stream.from_handle(torch.cuda.current_stream(x.device).cuda_stream)
    config = LaunchConfig(grid=(n + 255) // 256, block=256)
    bounds = np.float32(low), np.float32(high)
    launch(stream, config, load_kernel("clip_kernel"), x.data_ptr(), out.data_ptr(), *bounds, np.int32(n))
    return out
