# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Run time: from a kernel's name to a kernel on the device at hand.

The choice is selection.py's. What it chooses is read, checked against the manifest's digest, and handed to
cuda.core; what proves unusable (a damaged file, an image that the driver refuses) is passed over for the next
candidate. Nothing of CUDA is imported before it is needed, and a hit among the shipped images needs no compiler and
no cache.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

from .arch import Architecture, Capability, parse_version
from .catalog import Live, Shipped, Source, calling_package, images_with, lock, source_of, split_name, symbol_in
from .errors import (
    ConfigurationError,
    CudaKernelsError,
    DriverError,
    IntegrityError,
    NoCompatibleImageError,
    ToolchainError,
    warn_once,
)
from .manifest import Image, Module
from .package import InstalledPackage, shipped_unit
from .selection import Selection, fallback_architecture, select

if TYPE_CHECKING:
    from cuda.core import Kernel, ObjectCode

    from .driver import DeviceFacts
    from .plan import CompiledImage

__all__ = ["JIT_VARIABLE", "explain", "explain_installed", "load_kernel", "load_module"]

JIT_VARIABLE = "HATCH_CUDA_KERNELS_JIT"

# -- public functions --------------------------------------------------------------------------------------------


def load_kernel(name: str, *, package: str | None = None, device: Any = None) -> Kernel:
    """Load a kernel for a device.

    Args:
        name: The kernel's name as the source has it; a template's as its listed name expression; `"module:kernel"`
            where two modules share a name.
        package: Import package that carries the kernel; default: the caller's.
        device: A `cuda.core.Device` or its ordinal; default: the current device.

    Raises:
        KernelNotFoundError: the package has no such kernel; known before any driver is asked.
        DriverError: no driver, no device, or the driver refuses every candidate.
        NoCompatibleImageError: nothing in the package serves this device.
        ManifestError, IntegrityError: the installed package is damaged.
        ToolchainError, CompilationError: the run-time fallback was needed and could not compile.
    """
    if package is None:
        package = calling_package()
    kernel = _kernels.get((package, name, device))  # all that a repeated call costs
    if kernel is None:
        kernel = _load_for(_kernels, package, name, device)
    return cast("Kernel", kernel)


def load_module(name: str, *, package: str | None = None, device: Any = None) -> ObjectCode:
    """Load a whole module for a device: for its `__constant__` and `__device__` variables, say.

    `name` is a module's name; the rest is as for load_kernel. In the result, `get_kernel` takes source names.
    """
    if package is None:
        package = calling_package()
    module = _modules.get((package, name, device))
    if module is None:
        module = _load_for(_modules, package, name, device)
    return cast("ObjectCode", module)


def explain(
    name: str,
    *,
    package: str | None = None,
    compute_capability: str | tuple[int, int] | None = None,
    driver_version: str | tuple[int, int] | None = None,
) -> Selection:
    """Say which image a device would get for a kernel, and why. Loads nothing.

    Args:
        name: See load_kernel.
        package: See load_kernel.
        compute_capability: `"9.0"` or `(9, 0)`; default: that of the current device.
        driver_version: Newest CUDA version of the driver, `"13.0"` or `(13, 0)`; default: this machine's driver, and
            without one the CUDA version of the compiler that made the images.

    Raises:
        KernelNotFoundError: the package has no such kernel.
        DriverError: no capability was given and there is no device.
        ConfigurationError: a capability or version that cannot be read.
    """
    if package is None:
        package = calling_package()
    try:
        device = None if compute_capability is None else parse_version(compute_capability, "compute_capability")
        driver = None if driver_version is None else parse_version(driver_version, "driver_version")
    except ValueError as error:
        raise ConfigurationError(str(error)) from None
    return explain_installed(source_of(package), name, device, driver)


_Table = dict[tuple[str, str, Any], Any]
"""(package, name, device) -> what was loaded. The device is an ordinal or what the caller gave; None stands for "the
current one, whichever it is", and is there only where every device gets the same."""

_kernels: _Table = {}
_modules: _Table = {}
_objects: dict[tuple[object, ...], Any] = {}
_refused: dict[tuple[object, ...], str] = {}
_current_ordinal: Callable[[], int | None] | None = None
_abandoned: list[object] = []


def _after_fork() -> None:
    """Start over in a forked child: CUDA's handles are dead there."""
    _abandoned.extend([*_kernels.values(), *_objects.values()])  # to destroy them is to call the driver
    for table in (_kernels, _modules, _objects, _refused):
        table.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


# -- choosing ----------------------------------------------------------------------------------------------------


def _jit_policy() -> Literal["allow", "forbid", "force"]:
    text = os.environ.get(JIT_VARIABLE, "").strip().lower()
    if text == "0":
        return "forbid"
    if text == "force":
        return "force"
    if text not in ("", "1"):
        raise ConfigurationError(
            f"{JIT_VARIABLE}={text!r}: expected 0 (never compile), 1, or force (ignore the images)"
        )
    return "allow"


def explain_installed(
    source: Source | InstalledPackage, name: str, device: Capability | None, driver: tuple[int, int] | None
) -> Selection:
    """See explain; for a package that is already at hand."""
    from .driver import device_facts, driver_version

    if isinstance(source, InstalledPackage):
        source = Shipped(source)
    found = source.find(name) if isinstance(source, Shipped) else None
    if device is None:
        facts = device_facts()
        device, driver = facts.capability, driver or facts.driver
    elif driver is None:
        try:
            driver = driver_version()
        except (DriverError, ToolchainError):
            driver = source.compiler
    images: Sequence[Image] = ()
    if isinstance(source, Shipped) and found is not None:
        images = images_with(*found)
    elif isinstance(source, Live):
        try:
            source.find(name, device, driver)
        except NoCompatibleImageError:  # told by the selection
            source.find(name, None)
    return select(
        kernel=name,
        images=images,
        device=device,
        driver=driver,
        compiler=source.compiler,
        has_sources=source.has_sources,
        jit=_jit_policy(),
    )


def _load_for(table: _Table, package: str, name: str, device: Any) -> Any:
    """Fill `table`, which is that of kernels or that of modules, and return what was asked for."""
    global _current_ordinal
    if device is None and _current_ordinal is not None:
        found = table.get((package, name, _current_ordinal()))
        if found is not None:
            return found
    from .driver import device_facts, in_context_of, ordinal_reader, same_everywhere

    whole_module = table is _modules
    source = source_of(package)
    if isinstance(source, Shipped):
        module, kernel = (source.find_module(name), "") if whole_module else source.find(name)
    elif _jit_policy() == "forbid":
        raise NoCompatibleImageError(
            f"{source.name} is installed as editable, so its kernels are compiled when they are loaded, and "
            f"{JIT_VARIABLE}=0 forbids that"
        )
    try:
        facts = device_facts(device)
    except DriverError:
        if isinstance(source, Live):  # a name that is not there is told first
            source.find_module(name) if whole_module else source.find(name, None)
        raise
    with lock():
        found = table.get((package, name, facts.ordinal))
        if found is None:
            with in_context_of(facts.ordinal):
                if isinstance(source, Shipped):
                    loaded, symbol = _load_shipped(source, module, kernel, name, facts)
                else:
                    loaded, symbol = _load_live(source, name, facts, whole_module)
                found = loaded if whole_module else loaded.get_kernel(symbol)
            table[package, name, facts.ordinal] = found
        if device is not None:
            table[package, name, device] = found
        elif same_everywhere():
            table[package, name, None] = found
        _current_ordinal = _current_ordinal or ordinal_reader()
    return found


def _load_shipped(source: Shipped, module: Module, kernel: str, name: str, facts: DeviceFacts) -> tuple[Any, str]:
    """The best candidate that loads, and the kernel's symbol in it; `kernel` is empty for the module as a whole."""
    from .driver import RefusalError

    policy = _jit_policy()
    images = images_with(module, kernel) if kernel else module.images
    selection = select(
        kernel=name,
        images=images,
        device=facts.capability,
        driver=facts.driver,
        compiler=source.compiler,
        has_sources=source.has_sources,
        jit=policy,
    )
    if selection.choice is None:
        raise NoCompatibleImageError(_nothing_serves(source.name, selection))
    failures: list[CudaKernelsError] = []
    for candidate in selection.candidates:
        if candidate.accepted and candidate.image is not None and policy != "force":
            symbol = module.lowered(kernel, candidate.image) or ""
            try:
                return _load_image(source, module, candidate.image, symbol, facts), symbol
            except (IntegrityError, RefusalError) as error:
                warn_once(f"{error}; trying what comes next")
                failures.append(error)
        elif candidate.accepted and candidate.image is None:
            try:
                from .fallback import fallback_image, supported_target, this_toolchain

                unit = shipped_unit(source.package, module)
                target = fallback_architecture(images or module.images, facts.capability)
                target = supported_target(target, facts.capability, facts.driver, this_toolchain())
                compiled = fallback_image(unit, target)[0]
                symbol = symbol_in(compiled, kernel, name) if kernel else ""
                return _load_compiled(compiled, symbol, facts), symbol
            except CudaKernelsError as error:
                failures.append(error)
    raise _all_failed(source.name, name, selection, failures)


def _load_live(source: Live, name: str, facts: DeviceFacts, whole_module: bool) -> tuple[Any, str]:
    if whole_module:
        module = source.find_module(name)
        image = source.image(module, source.architecture(module, facts.capability, facts.driver))
        return _load_compiled(image, "", facts), ""
    _, image = source.find(name, facts.capability, facts.driver)
    symbol = symbol_in(image, split_name(name)[1], name)
    return _load_compiled(image, symbol, facts), symbol


def _nothing_serves(package: str, selection: Selection) -> str:
    return (
        f"{package} has nothing for this device.\n{selection}\n"
        "Ask its author for that architecture, or allow the run-time fallback "
        f"({JIT_VARIABLE}=1, with the extra cu12 or cu13 installed)"
    )


def _all_failed(
    package: str, name: str, selection: Selection, failures: Sequence[CudaKernelsError]
) -> CudaKernelsError:
    """What to raise when nothing loads: damage first, for its cure is another; else what the last resort met."""
    damage = next((failure for failure in failures if isinstance(failure, IntegrityError)), None)
    kind = type(damage or failures[-1])
    kind = DriverError if issubclass(kind, DriverError) else kind
    if len(failures) == 1:
        return kind(f"{failures[0]}\nNothing else serves {name!r} of {package}:\n{selection}")
    trace = "\n".join(f"  {index}. {failure}" for index, failure in enumerate(failures, 1))
    return kind(f"{package}: every candidate for {name!r} failed:\n{trace}\n{selection}")


# -- loading -----------------------------------------------------------------------------------------------------


def _load_image(source: Shipped, module: Module, image: Image, symbol: str, facts: DeviceFacts) -> Any:
    key = (source.name, image.file, image.sha256, facts.capability)
    names = {name: lowered for name in module.kernels if (lowered := module.lowered(name, image)) is not None}
    what = f"{source.name}: {image.file}"
    return _load_once(key, lambda: source.package.read_image(image), image.architecture, names, symbol, facts, what)


def _load_compiled(image: CompiledImage, symbol: str, facts: DeviceFacts) -> Any:
    key = ("", image.sha256, tuple(image.kernels.items()), facts.capability)
    what = f"the image compiled for {image.architecture}"
    return _load_once(key, lambda: image.data, image.architecture, image.kernels, symbol, facts, what)


def _load_once(
    key: tuple[object, ...],
    read: Callable[[], bytes],
    architecture: Architecture,
    names: Mapping[str, str],
    symbol: str,
    facts: DeviceFacts,
    what: str,
) -> Any:
    """Hand an image to the driver, once per process. Raises IntegrityError or DriverError."""
    from .driver import RefusalError, reach_device

    loaded = _objects.get(key)
    if loaded is not None:
        return loaded
    if key in _refused:
        raise RefusalError(_refused[key])
    from cuda.core import ObjectCode

    make = ObjectCode.from_ptx if architecture.virtual else ObjectCode.from_cubin
    mapping = {name: lowered.encode() for name, lowered in names.items()}  # get_kernel refuses what is not bytes
    loaded = make(read(), name=what, symbol_mapping=mapping)
    try:
        reach_device(loaded, symbol or next(iter(names.values()), ""), facts.ordinal, what)
    except RefusalError as error:
        _refused[key] = str(error)
        raise
    _objects[key] = loaded
    return loaded
