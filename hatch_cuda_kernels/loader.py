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
from collections.abc import Callable, Iterable, Mapping, Sequence
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

    from .driver import DeviceFacts
    from .editable import Editable
    from .plan import CompiledImage, Unit
    from .toolchain import Toolchain

__all__ = [
    "JIT_VARIABLE",
    "calling_package",
    "explain",
    "explain_installed",
    "fallback_image",
    "image_with",
    "installed_package",
    "load_kernel",
    "load_module",
]

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
    return explain_installed(_source_of(package), name, device, driver)


# -- packages ----------------------------------------------------------------------------------------------------


def calling_package() -> str:
    """Import package of the code that called the function that calls this one."""
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

    def find_module(self, name: str) -> Module:
        """A module by its name. Raises KernelNotFoundError."""
        module = self.modules.get(name)
        if module is None:
            raise _not_found(self.name, name, self.modules, what="module")
        return module


class _Live:
    """An editable install, as the loader sees it: everything is compiled from the live sources."""

    has_sources = True

    def __init__(self, name: str, editable: Editable) -> None:
        editable.check_table()
        self.name = name
        self.editable = editable
        self.specs = {spec.name: spec for spec in editable.specs if spec.package == name}
        self._images: dict[tuple[str, Architecture], CompiledImage] = {}

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

    def architecture(self, module: str, device: Capability | None, driver: tuple[int, int] | None) -> Architecture:
        """What to compile a module for: the device, or without one the first architecture that it declares."""
        from .arch import expand_architectures

        declared, _ = expand_architectures(self.specs[module].archs, supported=lambda: _toolchain().supported)
        if device is None:
            return declared[0] if declared else Architecture(_toolchain().supported[-1])
        images = [Image(architecture=a, file="-", size=1, sha256="", entries={}) for a in declared]
        wanted = fallback_architecture(images, device)
        return wanted if driver is None else _supported_target(wanted, device, driver, _toolchain())

    def image(self, module: str, architecture: Architecture) -> CompiledImage:
        """A module compiled, once per process."""
        key = module, architecture
        with _lock:
            if key not in self._images:
                self._images[key] = fallback_image(self.units[module], architecture)[0]
            return self._images[key]

    def find(
        self, name: str, device: Capability | None, driver: tuple[int, int] | None = None
    ) -> tuple[str, CompiledImage]:
        """Module of a kernel, and that module compiled. Compiles modules until one has it, those that mention it first.

        Raises KernelNotFoundError.
        """
        module_name, kernel = _split(name)
        word = re.findall(r"\w+", kernel.partition("<")[0]) or [kernel]
        chosen = [m for m in self.units if module_name in (None, m)]
        text = {m: any(word[-1].encode() in file.data for file in self.units[m].closure.files.values()) for m in chosen}
        known: dict[str, list[str]] = {}
        images: dict[str, CompiledImage] = {}
        for module in sorted(chosen, key=lambda m: not text[m]):
            if known.get(kernel) and not text[module]:
                break
            images[module] = self.image(module, self.architecture(module, device, driver))
            for found in images[module].kernels:
                known.setdefault(squeeze_name(found), []).append(module)
        places = known.get(kernel, [])
        if len(places) == 1:
            return places[0], images[places[0]]
        if places:
            choices = ", ".join(f'"{module}:{kernel}"' for module in places)
            raise KernelNotFoundError(f"{self.name} has {kernel!r} in several modules; ask for one of {choices}")
        raise _not_found(
            self.name, name, [f"{m}:{k}" for k, modules in known.items() for m in modules], hint=self._hint()
        )

    def find_module(self, name: str) -> str:
        """A module's name, if there is such a module. Raises KernelNotFoundError."""
        if name not in self.units:
            raise _not_found(self.name, name, self.units, what="module", hint=self._hint())
        return name

    def _hint(self) -> str:
        undeclared = self.editable.undeclared_sources(self.name)
        if not undeclared:
            return ""
        return f" ({', '.join(undeclared)} appeared since {self.name} was installed; reinstall it to declare them)"


_Source = _Shipped | _Live

_Table = dict[tuple[str, str, Any], Any]
"""(package, name, device) -> what was loaded. The device is an ordinal or what the caller gave; None stands for "the
current one, whichever it is", and is there only where every device gets the same."""

_sources: dict[str, _Source] = {}
_kernels: _Table = {}
_modules: _Table = {}
_objects: dict[tuple[object, ...], Any] = {}
_refused: dict[tuple[object, ...], str] = {}
_current_ordinal: Callable[[], int | None] | None = None
_lock = threading.RLock()
_abandoned: list[object] = []


def _after_fork() -> None:
    """Start over in a forked child: a lock may be held by a thread that it lacks, and CUDA's handles are dead there."""
    global _lock
    _lock = threading.RLock()
    _abandoned.extend([*_kernels.values(), *_objects.values()])  # to destroy them is to call the driver
    for table in (_kernels, _modules, _objects, _refused):
        table.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


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


def _not_found(
    package: str, name: str, known: Iterable[str], *, what: str = "kernel", hint: str = ""
) -> KernelNotFoundError:
    known = sorted(known)
    plain = known if what == "module" else dict.fromkeys(_split(entry)[1] for entry in known)
    near = difflib.get_close_matches(squeeze_name(name), dict.fromkeys([*plain, *known]), n=3, cutoff=0.5)
    if near:
        message = f"did you mean {' or '.join(map(repr, near))}?"
    elif known:
        message = f"it has: {', '.join(sorted(plain)[:10])}{', ...' if len(plain) > 10 else ''}"
    else:
        message = f"it has no {what}s"
    return KernelNotFoundError(f"{package} has no {what} {name!r}{hint}; {message}")


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


def _images_with(module: Module, kernel: str) -> list[Image]:
    return [image for image in module.images if module.lowered(kernel, image) is not None]


def image_with(package: str, name: str) -> tuple[bytes, str, bool]:
    """An image that holds a kernel, the kernel's symbol there, and whether it is PTX. Asks no driver.

    Raises KernelNotFoundError, and IntegrityError where no image is as it was built.
    """
    source = _source_of(package)
    if isinstance(source, _Live):
        _, compiled = source.find(name, None)
        return compiled.data, _symbol_in(compiled, _split(name)[1], name), compiled.architecture.virtual
    module, kernel = source.find(name)
    failure = IntegrityError(f"{source.name} has no image with {name!r}")
    for image in sorted(_images_with(module, kernel), key=lambda image: image.architecture.virtual):
        try:
            return source.package.read_image(image), module.lowered(kernel, image) or "", image.architecture.virtual
        except IntegrityError as error:
            failure = error
    raise failure


def _load_for(table: _Table, package: str, name: str, device: Any) -> Any:
    """Fill `table`, which is that of kernels or that of modules, and return what was asked for."""
    global _current_ordinal
    if device is None and _current_ordinal is not None:
        found = table.get((package, name, _current_ordinal()))
        if found is not None:
            return found
    from .driver import device_facts, in_context_of, ordinal_reader, same_everywhere

    whole_module = table is _modules
    source = _source_of(package)
    if isinstance(source, _Shipped):
        module, kernel = (source.find_module(name), "") if whole_module else source.find(name)
    elif _jit_policy() == "forbid":
        raise NoCompatibleImageError(
            f"{source.name} is installed as editable, so its kernels are compiled when they are loaded, and "
            f"{JIT_VARIABLE}=0 forbids that"
        )
    try:
        facts = device_facts(device)
    except DriverError:
        if isinstance(source, _Live):  # a name that is not there is told first
            source.find_module(name) if whole_module else source.find(name, None)
        raise
    with _lock:
        found = table.get((package, name, facts.ordinal))
        if found is None:
            with in_context_of(facts.ordinal):
                if isinstance(source, _Shipped):
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


def _load_shipped(source: _Shipped, module: Module, kernel: str, name: str, facts: DeviceFacts) -> tuple[Any, str]:
    """The best candidate that loads, and the kernel's symbol in it; `kernel` is empty for the module as a whole."""
    from .driver import RefusalError

    policy = _jit_policy()
    images = _images_with(module, kernel) if kernel else module.images
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
                unit = shipped_unit(source.package, module)
                target = fallback_architecture(images or module.images, facts.capability)
                target = _supported_target(target, facts.capability, facts.driver, _toolchain())
                compiled = fallback_image(unit, target)[0]
                symbol = _symbol_in(compiled, kernel, name) if kernel else ""
                return _load_compiled(compiled, symbol, facts), symbol
            except CudaKernelsError as error:
                failures.append(error)
    raise _all_failed(source.name, name, selection, failures)


def _load_live(source: _Live, name: str, facts: DeviceFacts, whole_module: bool) -> tuple[Any, str]:
    if whole_module:
        module = source.find_module(name)
        image = source.image(module, source.architecture(module, facts.capability, facts.driver))
        return _load_compiled(image, "", facts), ""
    _, image = source.find(name, facts.capability, facts.driver)
    symbol = _symbol_in(image, _split(name)[1], name)
    return _load_compiled(image, symbol, facts), symbol


def _symbol_in(image: CompiledImage, kernel: str, name: str) -> str:
    for found, symbol in image.kernels.items():
        if squeeze_name(found) == squeeze_name(kernel):
            return symbol
    raise KernelNotFoundError(f"the source leaves {name!r} out when it is compiled for {image.architecture}")


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


def _load_image(source: _Shipped, module: Module, image: Image, symbol: str, facts: DeviceFacts) -> Any:
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
