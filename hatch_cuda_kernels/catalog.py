# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Which kernels a package has: a shipped package by its manifest, an editable install by its live sources."""

from __future__ import annotations

import functools
import os
import re
import sys
import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .arch import Architecture, Capability
from .errors import ConfigurationError, IntegrityError, KernelNotFoundError, ManifestError
from .manifest import DIRECTORY, MANIFEST_FILE, Image, Module, squeeze_name
from .package import InstalledPackage, find_files, source_folder
from .selection import fallback_architecture
from .variants import module_key

if TYPE_CHECKING:
    from .editable import Editable
    from .plan import CompiledImage, Unit

__all__ = [
    "Live",
    "Shipped",
    "Source",
    "calling_package",
    "image_with",
    "images_with",
    "installed_package",
    "lock",
    "source_of",
    "split_name",
    "symbol_in",
]

_MODULE_SEPARATOR = r"(?<!:):(?!:)"
_SHOWN = 10
"""How many names a message lists."""


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


class Shipped:
    """A package with a manifest, as the loader sees it."""

    def __init__(self, package: InstalledPackage) -> None:
        self.package = package
        self.name = package.name
        self.compiler = package.compiler
        self.has_sources = package.has_sources

    def find(self, name: str) -> tuple[Module, str]:
        """Module and manifest's name of a kernel. Raises KernelNotFoundError."""
        module_name, kernel = split_name(name)
        modules = self.package.modules_with(kernel) if module_name is None else [module_name]
        if len(modules) > 1:
            raise _ambiguous(self.name, kernel, modules)
        module = self.package.module(modules[0]) if modules else None
        for found in module.kernels if module else ():
            if squeeze_name(found) == kernel:
                assert module is not None
                return module, found
        known = self.package.manifest.kernels.items()
        raise _not_found(self.name, name, [f"{module}:{kernel}" for kernel, modules in known for module in modules])

    def find_module(self, name: str) -> Module:
        """A module by its name. Raises KernelNotFoundError."""
        module = self.package.module(name)
        if module is None:
            names = (module.name for module in self.package.manifest.modules)
            raise _not_found(self.name, str(name), names, what="module")
        return module


class Live:
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
        from .cache import KernelCache
        from .installed import installed_problem, is_installed
        from .plan import make_unit
        from .scans import RememberedScans
        from .sources import ProjectTree

        root, specs = self.editable.root, self.specs.values()
        for label in {folder: None for spec in specs for folder in spec.include_dirs}:
            if is_installed(label, root) and (wrong := installed_problem(label, root)):
                raise ConfigurationError(f"{self.name} is installed as editable, and its include-packages: {wrong}")
        shared = ((self.name, *spec.include_dirs) for spec in specs)
        with KernelCache.from_environment() as cache, RememberedScans(cache, shared) as scans:
            tree = ProjectTree(root, scans)
            return {spec.name: make_unit(tree, self.name, spec) for spec in specs}

    @property
    def compiler(self) -> tuple[int, int]:
        """CUDA version of the NVRTC that compiles."""
        from .fallback import this_toolchain

        return this_toolchain().version

    def architecture(self, module: str, device: Capability | None, driver: tuple[int, int] | None) -> Architecture:
        """What to compile a module for: the device, or without one the first architecture that it declares."""
        from .arch import expand_architectures
        from .fallback import supported_target, this_toolchain

        declared, _ = expand_architectures(self.specs[module].archs, supported=lambda: this_toolchain().supported)
        if device is None:
            return declared[0] if declared else Architecture(this_toolchain().supported[-1])
        images = [Image(architecture=a, file="-", size=1, sha256="", entries={}) for a in declared]
        wanted = fallback_architecture(images, device)
        return wanted if driver is None else supported_target(wanted, device, driver, this_toolchain())

    def image(self, module: str, architecture: Architecture) -> CompiledImage:
        """A module compiled, once per process."""
        from .fallback import fallback_image

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
        module_name, kernel = split_name(name)
        word = re.findall(r"\w+", kernel.partition("<")[0]) or [kernel]
        chosen = [m for m in self.units if module_name in (None, module_key(m))]
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
            raise _ambiguous(self.name, kernel, places)
        raise _not_found(
            self.name, name, [f"{m}:{k}" for k, modules in known.items() for m in modules], hint=self._hint()
        )

    def find_module(self, name: str) -> str:
        """A module's name, if there is such a module. Raises KernelNotFoundError."""
        for module in self.units:
            if module_key(module) == module_key(name):
                return module
        raise _not_found(self.name, name, self.units, what="module", hint=self._hint())

    def _hint(self) -> str:
        undeclared = self.editable.undeclared_sources(self.name)
        if not undeclared:
            return ""
        return f" ({', '.join(undeclared)} appeared since {self.name} was installed; reinstall it to declare them)"


Source = Shipped | Live

_sources: dict[str, Source] = {}
_lock = threading.RLock()


def lock() -> Any:
    """The lock of this process, under which packages are opened and images are loaded."""
    return _lock


def _after_fork() -> None:
    """A forked child starts with a lock of its own: the other may be held by a thread that it lacks."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def installed_package(package: str) -> InstalledPackage:
    """The package that carries the manifest for code in `package`: itself or the nearest one above. ManifestError."""
    source = source_of(package)
    if isinstance(source, Shipped):
        return source.package
    raise ManifestError(
        f"{package} is installed as editable ({source.editable.root}): its kernels are compiled from the live sources "
        "and there are no images; build a wheel to look at them"
    )


def source_of(package: str) -> Source:
    source = _sources.get(package)
    if source is None:
        with _lock:
            source = _sources.get(package) or _find_source(package)
            _sources[package] = source
    return source


def _find_source(package: str) -> Source:
    candidates = [package]
    while "." in candidates[-1]:
        candidates.append(candidates[-1].rpartition(".")[0])
    for candidate in candidates:
        files = find_files(candidate)
        if files is not None:
            return _sources.get(candidate) or Shipped(InstalledPackage(candidate, files, piecemeal=True))
    from .editable import find_editable

    for candidate in candidates:
        editable = find_editable(candidate)
        if editable is not None:
            return _sources.get(candidate) or Live(candidate, editable)
    message = f"{package} has no {DIRECTORY}/{MANIFEST_FILE}; is it installed, and was its wheel built with the hook "
    message += "`cuda-kernels`?"
    if folder := source_folder(candidates[-1]):
        message += f" Python finds it in {folder}, a project's own folder: run elsewhere, or install it as editable"
    raise ManifestError(message)


def split_name(name: str) -> tuple[str | None, str]:
    """`"module:kernel"` -> both, in their one spelling; without module -> (None, kernel). `::` belongs to C++."""
    if not isinstance(name, str):
        raise TypeError(f'a kernel is asked for by its name, such as "saxpy", not by {name!r:.80}')
    match = re.search(_MODULE_SEPARATOR, name) if ":" in name else None
    if match is None:
        return None, squeeze_name(name)
    return module_key(name[: match.start()]), squeeze_name(name[match.end() :])


def _ambiguous(package: str, kernel: str, modules: Iterable[str]) -> KernelNotFoundError:
    choices = [f'"{module}:{kernel}"' for module in modules]
    shown = ", ".join(choices[:_SHOWN]) + (", ..." if len(choices) > _SHOWN else "")
    return KernelNotFoundError(f"{package} has {kernel!r} in {len(choices)} modules; ask for one of {shown}")


def _not_found(
    package: str, name: str, known: Iterable[str], *, what: str = "kernel", hint: str = ""
) -> KernelNotFoundError:
    import difflib

    known = sorted(known)
    plain = known if what == "module" else dict.fromkeys(split_name(entry)[1] for entry in known)
    base = re.split(r"[\[:]", name)[0].strip()
    near = [entry for entry in known if entry.startswith(f"{base}[")][:3]
    near = near or difflib.get_close_matches(squeeze_name(name), dict.fromkeys([*plain, *known]), n=3, cutoff=0.5)
    if near:
        message = f"did you mean {' or '.join(map(repr, near))}?"
    elif known:
        message = f"it has: {', '.join(sorted(plain)[:_SHOWN])}{', ...' if len(plain) > _SHOWN else ''}"
    else:
        message = f"it has no {what}s"
    return KernelNotFoundError(f"{package} has no {what} {name!r}{hint}; {message}")


def images_with(module: Module, kernel: str) -> list[Image]:
    return [image for image in module.images if module.lowered(kernel, image) is not None]


def image_with(package: str, name: str) -> tuple[bytes, str, bool]:
    """An image that holds a kernel, the kernel's symbol there, and whether it is PTX. Asks no driver.

    Raises KernelNotFoundError, and IntegrityError where no image is as it was built.
    """
    source = source_of(package)
    if isinstance(source, Live):
        _, compiled = source.find(name, None)
        return compiled.data, symbol_in(compiled, split_name(name)[1], name), compiled.architecture.virtual
    module, kernel = source.find(name)
    failure = IntegrityError(f"{source.name} has no image with {name!r}")
    for image in sorted(images_with(module, kernel), key=lambda image: image.architecture.virtual):
        try:
            return source.package.read_image(image), module.lowered(kernel, image) or "", image.architecture.virtual
        except IntegrityError as error:
            failure = error
    raise failure


def symbol_in(image: CompiledImage, kernel: str, name: str) -> str:
    for found, symbol in image.kernels.items():
        if squeeze_name(found) == squeeze_name(kernel):
            return symbol
    raise KernelNotFoundError(f"the source leaves {name!r} out when it is compiled for {image.architecture}")
