# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Run time: from a kernel's name to a kernel on the device at hand.

The choice is selection.py's. What it chooses is read, checked against the manifest's digest, and handed to
cuda.core; what proves unusable (a damaged file, an image that the driver refuses) is passed over for the next
candidate. Nothing of CUDA is imported before it is needed, and a hit among the shipped images needs no compiler and
no cache.
"""

from __future__ import annotations

import difflib
import functools
import os
import re
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from .arch import Architecture, Capability, cubin_verdict, format_capability, parse_version
from .errors import (
    ConfigurationError,
    CudaKernelsError,
    DriverError,
    IntegrityError,
    KernelNotFoundError,
    ManifestError,
    NoCompatibleImageError,
    ToolchainError,
    warn_once,
)
from .manifest import Image, Module, squeeze_name
from .package import InstalledPackage, find_files, shipped_unit
from .selection import Selection, fallback_architecture, select

if TYPE_CHECKING:
    from cuda.core import Kernel, ObjectCode

    from .editable import Editable
    from .plan import CompiledImage, Unit
    from .toolchain import Toolchain

__all__ = ["JIT_VARIABLE", "explain", "fallback_image", "installed_package", "load_kernel", "load_module"]

JIT_VARIABLE = "HATCH_CUDA_KERNELS_JIT"

_MODULE_SEPARATOR = re.compile(r"(?<!:):(?!:)")


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
    package = package or _calling_package()
    ordinal = _ordinal(device)
    if ordinal is not None and (kernel := _kernels.get((package, name, ordinal))) is not None:
        return kernel
    loaded = _load(package, name, device, whole_module=False)
    kernel = loaded.object.get_kernel(loaded.symbol)
    _kernels[(package, name, loaded.ordinal)] = kernel
    return cast("Kernel", kernel)


def load_module(name: str, *, package: str | None = None, device: Any = None) -> ObjectCode:
    """Load a whole module for a device: for its `__constant__` and `__device__` variables, say.

    `name` is a module's name; the rest is as for load_kernel. In the result, `get_kernel` takes source names.
    """
    return cast("ObjectCode", _load(package or _calling_package(), name, device, whole_module=True).object)


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
    package = package or _calling_package()
    try:
        device = None if compute_capability is None else parse_version(compute_capability, "compute_capability")
        driver = None if driver_version is None else parse_version(driver_version, "driver_version")
    except ValueError as error:
        raise ConfigurationError(str(error)) from None
    return explain_installed(_source_of(package), name, device, driver)


# -- packages ----------------------------------------------------------------------------------------------------


def _calling_package() -> str:
    """Import package of the code that called the public function."""
    names = sys._getframe(2).f_globals
    package = names.get("__package__")
    if package is None:
        module = str(names.get("__name__", ""))
        package = module if "__path__" in names else module.rpartition(".")[0]
    if not package:
        raise ConfigurationError(
            f"{names.get('__name__', 'the caller')} is in no package; say whose kernel is meant with package=..."
        )
    return str(package)


class _Shipped:
    """A package with a manifest, as the loader sees it."""

    def __init__(self, package: InstalledPackage) -> None:
        self.package = package
        self.name = package.name
        self.compiler = package.manifest.cuda_version
        self.has_sources = package.manifest.fallback is not None

    @functools.cached_property
    def names(self) -> Mapping[str, list[tuple[Module, str]]]:
        """Kernel's name without white space -> where it is: (module, name as the manifest has it)."""
        found: dict[str, list[tuple[Module, str]]] = {}
        for module in self.package.manifest.modules:
            for kernel in module.kernels:
                found.setdefault(squeeze_name(kernel), []).append((module, kernel))
        return found

    @functools.cached_property
    def modules(self) -> Mapping[str, Module]:
        """Modules by name."""
        return {module.name: module for module in self.package.manifest.modules}

    def find(self, name: str) -> tuple[Module, str]:
        """Module and manifest's name of a kernel. Raises KernelNotFoundError."""
        module_name, kernel = _split(name)
        places = self.names.get(kernel, [])
        if module_name is not None:
            places = [place for place in places if place[0].name == module_name]
        if len(places) == 1:
            return places[0]
        if places:
            choices = ", ".join(f'"{module.name}:{kernel}"' for module, kernel in places)
            raise KernelNotFoundError(f"{self.name} has {kernel!r} in several modules; ask for one of {choices}")
        raise _not_found(self.name, name, [f"{m.name}:{k}" for places in self.names.values() for m, k in places])

    def unit(self, module: Module) -> Unit:
        """What the run-time fallback compiles."""
        return shipped_unit(self.package, module)


class _Live:
    """An editable install, as the loader sees it: everything is compiled from the live sources."""

    has_sources = True

    def __init__(self, name: str, editable: Editable) -> None:
        editable.check_table()
        self.name = name
        self.editable = editable
        self.specs = {spec.name: spec for spec in editable.specs if spec.package == name}

    @functools.cached_property
    def units(self) -> Mapping[str, Unit]:
        """Translation units by module, read once per process."""
        from .plan import make_unit
        from .sources import ProjectTree

        tree = ProjectTree(self.editable.root)
        return {
            spec.name: make_unit(
                tree,
                package=self.name,
                module=spec.name,
                source=spec.source,
                include_dirs=spec.include_dirs,
                options=spec.options,
                defines=spec.defines,
                name_expressions=spec.name_expressions,
                toolkit_headers=self.editable.toolkit_headers,
            )
            for spec in self.specs.values()
        }

    @property
    def compiler(self) -> tuple[int, int]:
        """CUDA version of the NVRTC that compiles."""
        return _toolchain().version

    def architecture(self, module: str, device: Capability | None) -> Architecture:
        """What to compile a module for: the device, or without one the first architecture that it declares."""
        from .arch import expand_architectures

        declared, _ = expand_architectures(self.specs[module].archs, supported=lambda: _toolchain().supported)
        if device is None:
            return declared[0] if declared else Architecture(_toolchain().supported[-1])
        images = [Image(architecture=a, file="-", size=1, sha256="", entries={}) for a in declared]
        return fallback_architecture(images, device)

    def find(self, name: str, device: Capability | None) -> tuple[str, str]:
        """Module and name of a kernel. Compiles modules until one has it, those that mention it first."""
        module_name, kernel = _split(name)
        word = re.findall(r"\w+", kernel.partition("<")[0]) or [kernel]
        chosen = [m for m in self.units if module_name in (None, m)]
        text = {m: any(word[-1].encode() in file.data for file in self.units[m].closure.files.values()) for m in chosen}
        known: dict[str, list[str]] = {}
        for module in sorted(chosen, key=lambda m: not text[m]):
            if known.get(kernel) and not text[module]:
                break
            image, _ = fallback_image(self.units[module], self.architecture(module, device))
            for found in image.kernels:
                known.setdefault(squeeze_name(found), []).append(module)
        places = known.get(kernel, [])
        if len(places) == 1:
            return places[0], kernel
        if places:
            choices = ", ".join(f'"{module}:{kernel}"' for module in places)
            raise KernelNotFoundError(f"{self.name} has {kernel!r} in several modules; ask for one of {choices}")
        hint = ""
        if undeclared := self.editable.undeclared_sources(self.name):
            hint = f" ({', '.join(undeclared)} appeared since {self.name} was installed; reinstall it to declare them)"
        raise _not_found(self.name, name, [f"{m}:{k}" for k, modules in known.items() for m in modules], hint)


_Source = _Shipped | _Live

_sources: dict[str, _Source] = {}
_kernels: dict[tuple[str, str, int], Any] = {}
_objects: dict[tuple[object, ...], Any] = {}
_refused: set[tuple[object, ...]] = set()
_lock = threading.RLock()


def _forget_lock() -> None:
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)


def installed_package(package: str) -> InstalledPackage:
    """The package that carries the manifest for code in `package`: itself or the nearest one above. ManifestError."""
    source = _source_of(package)
    if isinstance(source, _Shipped):
        return source.package
    raise ManifestError(
        f"{package} is installed as editable ({source.editable.root}): its kernels are compiled from the live sources "
        "and there are no images; build a wheel to look at them"
    )


def _source_of(package: str) -> _Source:
    source = _sources.get(package)
    if source is None:
        with _lock:
            source = _sources.get(package) or _find_source(package)
            _sources[package] = source
    return source


def _find_source(package: str) -> _Source:
    candidates = [package]
    while "." in candidates[-1]:
        candidates.append(candidates[-1].rpartition(".")[0])
    for candidate in candidates:
        files = find_files(candidate)
        if files is not None:
            return _sources.get(candidate) or _Shipped(InstalledPackage(candidate, files))
    from .editable import find_editable

    for candidate in candidates:
        editable = find_editable(candidate)
        if editable is not None:
            return _sources.get(candidate) or _Live(candidate, editable)
    raise ManifestError(
        f"{package} has no {_MANIFEST}; is it installed, and was its wheel built with the hook `cuda-kernels`?"
    )


_MANIFEST = "_cuda_kernels/manifest.json"


def _split(name: str) -> tuple[str | None, str]:
    """`"module:kernel"` -> both; a name without module -> (None, kernel). `::` belongs to C++."""
    module, separator, kernel = name, "", ""
    match = _MODULE_SEPARATOR.search(name)
    if match:
        module, separator, kernel = name[: match.start()], ":", name[match.end() :]
    return (module.strip(), squeeze_name(kernel)) if separator else (None, squeeze_name(name))


def _not_found(package: str, name: str, known: Iterable[str], hint: str = "") -> KernelNotFoundError:
    known = sorted(known)
    plain = {entry.partition(":")[2]: entry for entry in known}
    near = difflib.get_close_matches(name, [*plain, *known], n=3, cutoff=0.5)
    if near:
        message = f"did you mean {' or '.join(map(repr, near))}?"
    elif known:
        message = f"it has: {', '.join(sorted(plain)[:10])}{', ...' if len(plain) > 10 else ''}"
    else:
        message = "it has no kernels"
    return KernelNotFoundError(f"{package} has no kernel {name!r}{hint}; {message}")


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
    source: _Source | InstalledPackage, name: str, device: Capability | None, driver: tuple[int, int] | None
) -> Selection:
    """See explain; for a package that is already at hand."""
    from .driver import device_facts, driver_version

    if isinstance(source, InstalledPackage):
        source = _Shipped(source)
    found = source.find(name) if isinstance(source, _Shipped) else None
    if device is None:
        facts = device_facts()
        device, driver = facts.capability, driver or facts.driver
    elif driver is None:
        try:
            driver = driver_version()
        except (DriverError, ToolchainError):
            driver = source.compiler
    images: Sequence[Image] = ()
    if isinstance(source, _Shipped) and found is not None:
        images = _images_with(*found)
    elif isinstance(source, _Live):
        source.find(name, device)
    return select(
        kernel=name,
        images=images,
        device=device,
        driver=driver,
        compiler=source.compiler,
        has_sources=source.has_sources,
        jit=_jit_policy(),
    )


def _images_with(module: Module, kernel: str) -> list[Image]:
    return [image for image in module.images if module.lowered(kernel, image) is not None]


@dataclass(frozen=True)
class _Loaded:
    object: Any
    symbol: str
    ordinal: int


def _ordinal(device: Any) -> int | None:
    """Ordinal of a device where that is known without asking the driver for more; None: not known."""
    if device is None:
        core = sys.modules.get("cuda.core")
        if core is None or not _kernels:
            return None
        return int(core.Device().device_id)
    return device if type(device) is int else int(device.device_id)


def _load(package: str, name: str, device: Any, *, whole_module: bool) -> _Loaded:
    from .driver import device_facts

    source = _source_of(package)
    if isinstance(source, _Live):
        return _load_live(source, name, device, whole_module)
    if whole_module:
        module = source.modules.get(name)
        if module is None:
            raise _not_found(package, name, source.modules)
        kernel, images = "", list(module.images)
    else:
        module, kernel = source.find(name)
        images = _images_with(module, kernel)
    facts = device_facts(device)
    selection = select(
        kernel=name,
        images=images,
        device=facts.capability,
        driver=facts.driver,
        compiler=source.compiler,
        has_sources=source.has_sources,
        jit=_jit_policy(),
    )
    if selection.choice is None:
        raise NoCompatibleImageError(_nothing_serves(source.name, selection))
    forced = _jit_policy() == "force"
    failures: list[CudaKernelsError] = []
    with _lock:
        for candidate in selection.candidates:
            if not candidate.accepted or (forced and candidate.kind != "jit"):
                continue
            try:
                if candidate.image is not None:
                    loaded = _load_image(source, module, candidate.image, facts.capability)
                    symbol = module.lowered(kernel, candidate.image) or ""
                else:
                    image = _compile_for(source.unit(module), images or module.images, facts.capability, facts.driver)
                    loaded = _load_compiled(image, facts.capability)
                    symbol = _symbol_in(image, kernel, name)
                return _Loaded(loaded, symbol, facts.ordinal)
            except (IntegrityError, DriverError) as error:
                if candidate.image is not None:
                    warn_once(f"{error}; trying what comes next for {name!r}")
                failures.append(error)
            except ToolchainError as error:
                raise ToolchainError(f"{error}\nit was needed because no image serves:\n{selection}") from None
    raise _all_failed(source.name, name, selection, failures)


def _symbol_in(image: CompiledImage, kernel: str, name: str) -> str:
    if not kernel:
        return ""
    for found, symbol in image.kernels.items():
        if squeeze_name(found) == squeeze_name(kernel):
            return symbol
    raise KernelNotFoundError(f"the source leaves {name!r} out when it is compiled for {image.architecture}")


def _load_live(source: _Live, name: str, device: Any, whole_module: bool) -> _Loaded:
    from .driver import device_facts

    if _jit_policy() == "forbid":
        raise NoCompatibleImageError(
            f"{source.name} is installed as editable, so its kernels are compiled when they are loaded, and "
            f"{JIT_VARIABLE}=0 forbids that"
        )
    try:
        facts = device_facts(device)
    except DriverError:
        if not whole_module:
            source.find(name, None)  # a name that is not there is told first
        raise
    if whole_module and name not in source.units:
        raise _not_found(source.name, name, source.units)
    module, kernel = (name, "") if whole_module else source.find(name, facts.capability)
    unit, architecture = source.units[module], source.architecture(module, facts.capability)
    with _lock:
        image = _compile_for(unit, (), facts.capability, facts.driver, wanted=architecture)
        loaded = _load_compiled(image, facts.capability)
        return _Loaded(loaded, _symbol_in(image, kernel, name), facts.ordinal)


def _nothing_serves(package: str, selection: Selection) -> str:
    return (
        f"{package} has nothing for this device.\n{selection}\n"
        "Ask its author for that architecture, or allow the run-time fallback "
        f"({JIT_VARIABLE}=1, with the extra cu12 or cu13 installed)"
    )


def _all_failed(
    package: str, name: str, selection: Selection, failures: Sequence[CudaKernelsError]
) -> CudaKernelsError:
    trace = "\n".join(f"  {index}. {failure}" for index, failure in enumerate(failures, 1))
    kind = IntegrityError if any(isinstance(failure, IntegrityError) for failure in failures) else DriverError
    return kind(f"{package}: every candidate for {name!r} failed:\n{trace}\n{selection}")


# -- loading -----------------------------------------------------------------------------------------------------


def _load_image(source: _Shipped, module: Module, image: Image, device: Capability) -> Any:
    key = (source.name, image.file, image.sha256, device)
    names = {kernel: symbol for kernel in module.kernels if (symbol := module.lowered(kernel, image)) is not None}
    return _load_once(key, lambda: source.package.read_image(image), image.architecture.virtual, names, f"{image.file}")


def _load_compiled(image: CompiledImage, device: Capability) -> Any:
    key = ("", image.sha256, tuple(image.kernels.items()), device)
    return _load_once(
        key,
        lambda: image.data,
        image.architecture.virtual,
        image.kernels,
        f"the image compiled for {image.architecture}",
    )


def _load_once(key: tuple[object, ...], read: Any, virtual: bool, names: Mapping[str, str], what: str) -> Any:
    """Hand an image to the driver, once per process. Raises IntegrityError or DriverError."""
    loaded = _objects.get(key)
    if loaded is not None:
        return loaded
    if key in _refused:
        raise DriverError(f"the driver refuses {what}, as before")
    from cuda.core import ObjectCode

    data = read()
    make = ObjectCode.from_ptx if virtual else ObjectCode.from_cubin
    loaded = make(data, name=what, symbol_mapping=dict(names))
    probe = next(iter(names.values()), None)
    try:
        if probe is not None:
            loaded.get_kernel(probe)  # makes the driver take the image now, so that a refusal is met here
    except Exception as error:  # CUDAError, or what the bindings make of it
        _refused.add(key)
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise DriverError(f"the driver refuses {what} ({reason})") from None
    _objects[key] = loaded
    return loaded


# -- the run-time fallback ---------------------------------------------------------------------------------------


def _cache() -> Any:
    from .cache import KernelCache

    return KernelCache.from_environment()


@functools.lru_cache(maxsize=1)
def _toolchain() -> Toolchain:
    from .toolchain import detect, probe

    try:
        return detect(_cache(), probe)
    except ToolchainError as error:
        if "two NVRTC" not in str(error):
            raise
        warn_once(str(error))  # another library was loaded first; what it compiles is kept under its own release
        return probe()


def fallback_image(unit: Unit, architecture: Architecture) -> tuple[CompiledImage, bool]:
    """Compile a unit with this environment's NVRTC through the cache; whether it was cached."""
    from .cache import load_or_compile
    from .nvrtc import compile_job, workspace
    from .plan import CompileJob

    def compile_now(job: CompileJob) -> CompiledImage:
        with workspace() as space:
            return compile_job(job, space)

    cache = _cache()
    job = CompileJob(unit=unit, architecture=architecture, release=_toolchain().release)
    image, cached = load_or_compile(job, cache, compile_now)
    cache.count()
    return image, cached


def _compile_for(
    unit: Unit,
    images: Sequence[Image],
    device: Capability,
    driver: tuple[int, int],
    *,
    wanted: Architecture | None = None,
) -> CompiledImage:
    toolchain = _toolchain()
    architecture = _supported_target(wanted or fallback_architecture(images, device), device, driver, toolchain)
    return fallback_image(unit, architecture)[0]


def _supported_target(
    wanted: Architecture, device: Capability, driver: tuple[int, int], toolchain: Toolchain
) -> Architecture:
    """`wanted` if NVRTC has it; else the nearest that gives something this device runs."""
    release = f"NVRTC {toolchain.release}"
    if driver[0] >= toolchain.version[0]:
        if wanted.number in toolchain.supported:
            return wanted
        nearest = [a for a in map(Architecture, toolchain.supported) if cubin_verdict(a, device)[0]]
        if nearest:
            return nearest[-1]
    lower = [number for number in toolchain.supported if divmod(number, 10) <= device]
    if lower and driver >= toolchain.version:
        return Architecture(lower[-1], virtual=True)
    here = f"compute capability {format_capability(device)}, driver of CUDA {format_capability(driver)}"
    raise NoCompatibleImageError(
        f"no image fits and {release} cannot compile for {here}; install the extra cu{driver[0]}, whose NVRTC this "
        "driver takes, or a newer driver"
    )
