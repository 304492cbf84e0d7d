import ctypes
from pathlib import Path

import numpy as np

_library = ctypes.CDLL(str(Path(__file__).parent / "librelax.so"))


def relax(x, steps, weight):
    x = np.array(x)
    run = {"f": _library.relax_float, "d": _library.relax_double}[x.dtype.char]
    if run(x.ctypes.data_as(ctypes.c_void_p), x.size, steps, ctypes.c_double(weight)):
        raise RuntimeError("relax failed")
    return x
