from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(
    name="blend",
    version="1.0",
    packages=["blend"],
    ext_modules=[
        CUDAExtension(
            "blend._C",
            ["csrc/blend.cu"],
            include_dirs=["csrc/include"],
            extra_compile_args={
                "nvcc": [
                    "-O3",
                    "-gencode=arch=compute_80,code=sm_80",
                    "-gencode=arch=compute_90,code=[sm_90,compute_90]",
                ]
            },
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
