# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""A check of a kernel's arguments, for tests and for the hour of need.

A launch copies as many bytes as the kernel takes from wherever an argument lies, and nobody compares sizes: a Python
float, which cuda.core passes as a double, arrives in a C `float` as some other number. The sizes that a kernel takes
stand in its image.
"""

from __future__ import annotations

import functools
import re
import struct
import sys
from collections.abc import Sequence
from typing import NamedTuple

from .catalog import calling_package, image_with
from .errors import IntegrityError

__all__ = ["Parameter", "check_arguments", "read_parameters"]

_KPARAM_INFO, _KPARAM_INFO_V2 = 0x17, 0x45
"""Attributes of `.nv.info.<symbol>`, one for each parameter. Both begin with an index (unused), the ordinal and the
offset; the size stands in the upper 14 bits of the last word, or, for kernels with more than 4 kB of parameters, in
the lower 16 bits. Measured with NVRTC 12.9 to 13.5."""

_POINTER = 8
_TENSOR_MAP = 128


class Parameter(NamedTuple):
    """Where one argument of a kernel lies, in bytes."""

    offset: int
    size: int


def check_arguments(name: str, args: Sequence[object], *, package: str | None = None) -> None:
    """Check arguments before they are given to `cuda.core.launch`: their number, and the size of each.

    cuda.core passes a Python int, a Buffer and a pointer as 8 bytes, a float as 8, a complex as 16, a bool as 1, and
    scalars of numpy and ctypes as what they are. Objects of other types are left for cuda.core to judge. Needs no
    driver, and costs other calls nothing.

    Args:
        name: See load_kernel.
        args: What would be passed to the kernel.
        package: See load_kernel.

    Raises:
        TypeError: an argument has not the size that the kernel takes, or their number is wrong.
        KernelNotFoundError: the package has no such kernel.
    """
    if package is None:
        package = calling_package()
    parameters = _parameters(package, name)
    if len(args) != len(parameters):
        raise TypeError(f"{name} takes {_count(len(parameters), 'argument')}, {len(args)} given")
    for position, (argument, parameter) in enumerate(zip(args, parameters, strict=True), 1):
        size = _passed_size(argument)
        if size is not None and size != parameter.size:
            raise TypeError(
                f"argument {position} of {name} is {_describe(argument)}, which is passed as "
                f"{_count(size, 'byte')}, but the kernel takes {parameter.size} there{_hint(parameter.size)}"
            )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _describe(argument: object) -> str:
    kind = type(argument)
    name = kind.__name__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__name__}"
    return f"a Python {name}" if kind in (bool, int, float, complex) else f"of type {name}"


_SCALARS = {
    1: "numpy.int8, numpy.uint8 or numpy.bool_",
    2: "numpy.int16, numpy.uint16 or numpy.float16",
    4: "numpy.int32, numpy.uint32 or numpy.float32",
    8: "numpy.int64, numpy.float64, or a pointer",
}


def _hint(size: int) -> str:
    return f"; pass {_SCALARS[size]}" if size in _SCALARS else ""


def _passed_size(argument: object) -> int | None:
    """Bytes that cuda.core makes of an argument; None where that is not known."""
    if isinstance(argument, bool):
        return 1
    if isinstance(argument, complex):
        return 16
    if isinstance(argument, (int, float)):
        return 8
    numpy, ctypes = sys.modules.get("numpy"), sys.modules.get("ctypes")
    if numpy is not None and isinstance(argument, numpy.generic):
        return int(argument.nbytes)
    if ctypes is not None and isinstance(argument, (ctypes._SimpleCData, ctypes.Structure, ctypes.Union)):
        return int(ctypes.sizeof(argument))
    for kind in type(argument).__mro__:  # by name: what was not imported cannot be an argument
        if kind.__module__.partition(".")[0] == "cuda":
            if kind.__name__ in ("Buffer", "CUdeviceptr", "CUgraphConditionalHandle"):
                return _POINTER
            if kind.__name__ == "TensorMapDescriptor":
                return _TENSOR_MAP
    return None


@functools.lru_cache(maxsize=1024)
def _parameters(package: str, name: str) -> tuple[Parameter, ...]:
    data, symbol, virtual = image_with(package, name)
    return read_parameters(data, symbol, virtual=virtual)


def read_parameters(data: bytes, symbol: str, *, virtual: bool = False) -> tuple[Parameter, ...]:
    """The parameters of a kernel in a cubin, or in PTX (`virtual`). Raises IntegrityError where they cannot be read."""
    from .elf import ImageFormatError

    try:
        found = _of_ptx(data, symbol) if virtual else _of_cubin(data, symbol)
    except ImageFormatError as error:
        raise IntegrityError(f"the parameters of {symbol} cannot be read ({error})") from None
    if sorted(found) != list(range(len(found))):
        raise IntegrityError(f"the parameters of {symbol} cannot be read (some are missing)")
    return tuple(found[ordinal] for ordinal in range(len(found)))


def _of_cubin(data: bytes, symbol: str) -> dict[int, Parameter]:
    from .cubin import kernel_attributes

    found = {}
    for attribute, payload in kernel_attributes(data, symbol):
        if attribute in (_KPARAM_INFO, _KPARAM_INFO_V2) and len(payload) == 12:
            _, ordinal, offset, word = struct.unpack("<IHHI", payload)
            found[ordinal] = Parameter(offset, word >> 18 if attribute == _KPARAM_INFO else word & 0xFFFF)
    return found


_PTX_PARAMETER = (
    r"\.param\s+(?:\.align\s+(?P<align>\d+)\s+)?\.[a-z]+(?P<bits>\d+)\s+(?:\.ptr\b[^,]*?\s)?(?P<name>[\w$%]+)"
    r"\s*(?:\[(?P<length>\d+)\])?\s*(?:,|$)"
)


def _of_ptx(data: bytes, symbol: str) -> dict[int, Parameter]:
    from .elf import ImageFormatError

    entry = re.search(rf"\.entry\s+{re.escape(symbol)}\s*\(([^)]*)\)", data.decode("latin-1"))
    if entry is None:
        raise ImageFormatError("there is no such kernel")
    found: dict[int, Parameter] = {}
    end = 0
    for match in re.finditer(_PTX_PARAMETER, entry[1].strip()):
        element = int(match["bits"]) // 8
        size = element * int(match["length"] or 1)
        alignment = int(match["align"] or element)
        offset = -(-end // alignment) * alignment
        found[len(found)] = Parameter(offset, size)
        end = offset + size
    if len(found) != entry[1].count(".param"):
        raise ImageFormatError("its PTX has parameters of an unknown form")
    return found
