from importlib.resources import files

from numba import cuda

_step = cuda.declare_device("step", "float32(float32, float32)", link=str(files("orbit").joinpath("step.cu")))


@cuda.jit
def _advance(x, v):
    i = cuda.grid(1)
    if i < x.size:
        v[i] = _step(x[i], v[i])
        x[i] += 0.01 * v[i]


def advance(x, v):
    _advance[(x.size + 255) // 256, 256](x, v)
