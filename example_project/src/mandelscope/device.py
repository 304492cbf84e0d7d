# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0

"""Device memory as typed arrays, and launches on one stream: all that the app needs of cuda.core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from cuda.core import Buffer, Device, LaunchConfig, LegacyPinnedMemoryResource, launch
from hatch_cuda_kernels import load_kernel
from numpy.typing import NDArray

__all__ = ["PACKAGE", "DeviceArray", "Gpu"]

PACKAGE = "mandelscope"
"""The import package whose wheel carries the kernels."""

Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True)
class DeviceArray(Generic[Scalar]):
    """A C-contiguous array in device memory."""

    buffer: Buffer
    shape: tuple[int, ...]
    dtype: np.dtype[Scalar]


class Gpu:
    """The current device and a stream of its own. Everything happens in the order of the calls."""

    def __init__(self) -> None:
        self.device = Device()
        self.device.set_current()
        self._stream = self.device.create_stream()
        self._pinned = LegacyPinnedMemoryResource()

    @property
    def description(self) -> str:
        major, minor = self.device.compute_capability
        return f"{self.device.name}, compute capability {major}.{minor}"

    def empty(self, shape: tuple[int, ...], dtype: type[Scalar]) -> DeviceArray[Scalar]:
        """Memory with nothing in it yet."""
        data_type = np.dtype(dtype)
        size = int(np.prod(shape, dtype=np.int64)) * data_type.itemsize
        return DeviceArray(self.device.allocate(size, stream=self._stream), shape, data_type)

    def zeros(self, shape: tuple[int, ...], dtype: type[Scalar]) -> DeviceArray[Scalar]:
        """Memory filled with zeros."""
        array = self.empty(shape, dtype)
        array.buffer.fill(0, stream=self._stream)
        return array

    def upload(self, array: NDArray[Scalar]) -> DeviceArray[Scalar]:
        """A copy of a numpy array."""
        device_array = self.empty(array.shape, array.dtype.type)
        staging = self._pinned.allocate(array.nbytes, stream=self._stream)
        np.from_dlpack(staging).view(array.dtype)[:] = array.ravel()
        device_array.buffer.copy_from(staging, stream=self._stream)
        self._stream.sync()
        return device_array

    def download(self, array: DeviceArray[Scalar]) -> NDArray[Scalar]:
        """A copy as a numpy array; waits for all that was launched before."""
        staging = self._pinned.allocate(array.buffer.size, stream=self._stream)
        array.buffer.copy_to(staging, stream=self._stream)
        self._stream.sync()
        copy: NDArray[Scalar] = np.from_dlpack(staging).view(array.dtype).reshape(array.shape).copy()
        return copy

    def launch(
        self,
        kernel: str,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        *arguments: DeviceArray[Any] | np.int32 | np.float32 | np.float64,
    ) -> None:
        """Launches a kernel of this package. The loader keeps each image: asking again costs a look-up."""
        values = [a.buffer if isinstance(a, DeviceArray) else a for a in arguments]
        config = LaunchConfig(grid=grid, block=block)
        launch(self._stream, config, load_kernel(kernel, package=PACKAGE), *values)
