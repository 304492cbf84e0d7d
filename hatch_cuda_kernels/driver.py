# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What the driver says: devices, their capabilities, the newest CUDA version it supports.

Without a driver some calls of cuda.core hang the process for ever, `get_kernel()` among them. `Device()` does not:
so it is always asked first, and its failure is a DriverError.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .arch import Capability
from .errors import DriverError, ToolchainError
from .toolchain import INSTALL_HINT

__all__ = ["DeviceFacts", "device_capabilities", "device_facts", "driver_version"]

_NO_DRIVER = (
    "install the NVIDIA driver, or run where a device is visible (nvidia-smi lists them; in a container it has to be "
    "passed in); `hatch-cuda-kernels explain` works without one"
)


@dataclass(frozen=True, kw_only=True)
class DeviceFacts:
    """One device, and the driver that runs it."""

    ordinal: int
    capability: Capability
    driver: tuple[int, int]


def _core() -> Any:
    try:
        import cuda.core
    except ImportError as error:
        raise ToolchainError(f"cuda-core cannot be imported ({error}); {INSTALL_HINT}") from None
    return cuda.core


def device_facts(device: Any = None) -> DeviceFacts:
    """Facts of a device: a `cuda.core.Device`, an ordinal, or None for the current one. Raises DriverError."""
    core = _core()
    try:
        found = device if isinstance(device, core.Device) else core.Device(device)
        major, minor = found.compute_capability
        return DeviceFacts(ordinal=int(found.device_id), capability=(int(major), int(minor)), driver=driver_version())
    except DriverError:
        raise
    except Exception as error:  # the bindings raise several kinds when the library or a device is missing
        what = "device" if device is None else f"device {device!r}"
        raise DriverError(f"no usable NVIDIA {what}: {_reason(error)}; {_NO_DRIVER}") from None


def driver_version() -> tuple[int, int]:
    """Newest CUDA version that the driver supports, (major, minor). Raises DriverError where there is no driver."""
    _core()
    try:
        from cuda.bindings import driver

        status, number = driver.cuDriverGetVersion()
    except Exception as error:  # see above
        raise DriverError(f"no NVIDIA driver: {_reason(error)}; {_NO_DRIVER}") from None
    if status or not number:
        raise DriverError(f"no NVIDIA driver ({status}); {_NO_DRIVER}")
    return number // 1000, number % 1000 // 10


def device_capabilities() -> list[Capability]:
    """Capabilities of this machine's devices, in order. Raises DriverError where there are none."""
    core = _core()
    try:
        from cuda.bindings import driver

        core.Device(0)  # initialises the driver, or fails cleanly
        status, count = driver.cuDeviceGetCount()
        if status:
            raise RuntimeError(str(status))
    except Exception as error:  # see above
        raise DriverError(f"no usable NVIDIA device: {_reason(error)}; {_NO_DRIVER}") from None
    return [device_facts(ordinal).capability for ordinal in range(count)]


def _reason(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
