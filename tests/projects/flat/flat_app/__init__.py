from hatch_cuda_kernels import load_kernel


def scale():
    return load_kernel("scale")
