# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What the driver says: devices, their capabilities, the newest CUDA version it supports, and which images it takes.

Without a driver some calls of cuda.core hang the process for ever, `get_kernel()` among them. `Device()` does not:
so it is always asked first, and its failure is a DriverError.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .arch import Capability
from .errors import DriverError, ToolchainError, first_line

__all__ = [
    "DeviceFacts",
    "RefusalError",
    "device_capabilities",
    "device_facts",
    "driver_version",
    "in_context_of",
    "ordinal_reader",
    "reach_device",
    "same_everywhere",
]

_NO_DRIVER = (
    "install the NVIDIA driver, or run where a device is visible (nvidia-smi lists them; in a container it has to be "
    "passed in); `hatch-cuda-kernels explain` works without one"
)
_AFTER_FORK = (
    "this process was forked from one that had used CUDA, which ends CUDA in the child; use multiprocessing's start "
    "method 'spawn', or fork before the first kernel is loaded"
)

_REFUSALS = (
    r"CUDA_ERROR_(NO_BINARY_FOR_GPU|UNSUPPORTED_PTX_VERSION|INVALID_(IMAGE|PTX|SOURCE)|JIT_COMPILER_NOT_FOUND"
    r"|JIT_COMPILATION_DISABLED|UNSUPPORTED_EXEC_AFFINITY|NOT_FOUND|NOT_SUPPORTED)\b"
)
"""What a driver says of an image that it will never take: not, for example, that memory has run out."""


class RefusalError(DriverError):
    """The driver does not take an image on a device, and never will."""


class DeviceFacts(NamedTuple):
    """One device, and the driver that runs it."""

    ordinal: int
    capability: Capability
    driver: tuple[int, int]


_importing = threading.Lock()


def _core() -> Any:
    try:
        with _importing:  # cuda.core is seen half made by a second thread that imports it meanwhile
            from cuda import core
    except ImportError as error:
        from .toolchain import INSTALL_HINT

        raise ToolchainError(f"cuda-core cannot be imported ({error}); {INSTALL_HINT}") from None
    return core


def device_facts(device: Any = None) -> DeviceFacts:
    """Facts of a device: a `cuda.core.Device`, an ordinal, or None for the current one. Raises DriverError."""
    core = _core()
    try:
        found = device if isinstance(device, core.Device) else core.Device(device)
        _check_alive()
        major, minor = found.compute_capability
        return DeviceFacts(ordinal=int(found.device_id), capability=(int(major), int(minor)), driver=driver_version())
    except DriverError:
        raise
    except Exception as error:  # the bindings raise several kinds when the library or a device is missing
        reason = first_line(error)
        what = "device" if device is None else f"device {device!r}"
        hint = _AFTER_FORK if "NOT_INITIALIZED" in reason else _NO_DRIVER
        raise DriverError(f"no usable NVIDIA {what}: {reason}; {hint}") from None


def _check_alive() -> None:
    """Raise DriverError in a process that inherited CUDA by a fork: cuda.core answers from memory there."""
    from cuda.bindings import driver

    status, _ = driver.cuDeviceGetCount()
    if status == driver.CUresult.CUDA_ERROR_NOT_INITIALIZED:
        raise DriverError(f"CUDA cannot be used here: {_AFTER_FORK}")


def ordinal_reader() -> Callable[[], int | None]:
    """A function that tells the ordinal of the calling thread's current device, made to be called often.

    Where no device is current it tells the one that cuda.core takes, the first; None where CUDA is not in use yet.
    """
    from cuda.bindings import driver

    ask, nothing_current = driver.cuCtxGetDevice, driver.CUresult.CUDA_ERROR_INVALID_CONTEXT

    def current_ordinal() -> int | None:
        status, device = ask()
        if device is not None:
            return int(device)
        return 0 if status == nothing_current else None

    return current_ordinal


@functools.lru_cache(maxsize=1)
def same_everywhere() -> bool:
    """Whether all devices that this process sees are of one capability. They are fixed once CUDA is in use."""
    return len(set(device_capabilities())) == 1


@contextlib.contextmanager
def in_context_of(ordinal: int) -> Iterator[None]:
    """Make a device the current one for a while, if another is: the driver loads for the current one.

    Where none is, none is made: the image then reaches the device when it is first used there.
    """
    from cuda.bindings import driver

    status, device = driver.cuCtxGetDevice()
    if status or int(device) == ordinal:
        yield
        return
    # Never released, as cuda.core does not release it either: to end a context is to throw away what it has loaded.
    status, context = driver.cuDevicePrimaryCtxRetain(ordinal)
    if not status:
        (status,) = driver.cuCtxPushCurrent(context)
    if status:
        raise DriverError(f"device {ordinal} cannot be used ({status.name})")
    try:
        yield
    finally:
        driver.cuCtxPopCurrent()


def reach_device(code: Any, symbol: str, ordinal: int, what: str) -> None:
    """Make the driver take an image, a `cuda.core.ObjectCode`, on a device now, by asking about one of its kernels.

    Otherwise a driver that loads lazily would refuse it no sooner than at the first launch. Raises RefusalError, or
    another DriverError where something else is wrong. `what` names the image in errors.
    """
    from cuda.bindings import driver

    if not symbol:
        return
    try:
        kernel = code.get_kernel(symbol)
    except Exception as error:  # CUDAError, or what the bindings make of it
        reason = first_line(error)
        if re.match(_REFUSALS, reason):
            raise RefusalError(f"the driver refuses {what} ({reason})") from None
        raise DriverError(f"the driver cannot load {what} ({reason})") from None
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NUM_REGS
    status, _ = driver.cuKernelGetAttribute(attribute, kernel.handle, ordinal)
    if status and re.match(_REFUSALS, status.name):  # else it tells of the context, not of the image
        raise RefusalError(f"the driver refuses {what} ({status.name})")


def driver_version() -> tuple[int, int]:
    """Newest CUDA version that the driver supports, (major, minor). Raises DriverError where there is no driver."""
    _core()
    try:
        from cuda.bindings import driver

        status, number = driver.cuDriverGetVersion()
    except Exception as error:  # see above
        raise DriverError(f"no NVIDIA driver: {first_line(error)}; {_NO_DRIVER}") from None
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
        raise DriverError(f"no usable NVIDIA device: {first_line(error)}; {_NO_DRIVER}") from None
    return [device_facts(ordinal).capability for ordinal in range(count)]


def _after_fork() -> None:
    global _importing
    _importing = threading.Lock()
    same_everywhere.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
