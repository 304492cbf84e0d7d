# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0

"""Pictures of the Mandelbrot set, drawn by CUDA kernels that were compiled when the wheel was built."""

__all__ = ["__version__"]

__version__ = "0.1.0"
