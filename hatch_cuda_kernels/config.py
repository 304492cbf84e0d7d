# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The hook table, checked: every mistake is reported at once, each with its full key path.

Each option is one field of Config or ModuleConfig; docs/reference/options.md has one row for each.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .arch import expand_architectures, split_list
from .errors import ConfigurationError, numbered
from .manifest import squeeze_name
from .options import check_options
from .stores.location import Location, parse_locations, parse_size
from .toolkit import is_toolkit_folder
from .variants import value_text

__all__ = ["EVERY_KERNEL", "HOOK", "Config", "ModuleConfig", "check_module_name", "parse_size"]

HOOK = "cuda-kernels"
EVERY_KERNEL = "*"
"""Stands for every kernel that a table of limits does not name."""

_HATCHLING_KEYS = frozenset(
    {"dependencies", "require-runtime-dependencies", "require-runtime-features", "enable-by-default"}
)
"""Keys of every hook table that belong to hatchling: left alone."""

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_INSTALLED = re.compile(r"[A-Za-z_]\w*(?:/[^\\:\0]*)?", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)
_EXECUTOR = re.compile(r"processes|dask:[a-z]+://[^\s/]+|(?!dask:)[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
_ABSOLUTE = re.compile(r"[/\\]|[A-Za-z]:")


def cache_switch(text: str) -> bool | str:
    """What HATCH_CUDA_KERNELS_CACHE says: off, on, or a location."""
    if text.lower() in ("0", "false", "no", "off"):
        return False
    return True if text.lower() in ("", "1", "true", "yes", "on") else text


def check_module_name(name: str) -> str | None:
    """What is wrong with a module's name, or None. A name becomes a file's name on every system."""
    if not _NAME.fullmatch(name) or ".." in name or name.endswith("."):
        return f"{name[:60]!r} is no module name: use letters, digits, '_', '-' and single dots"
    if len(name) > 150:
        return f"{name[:60]!r}... is longer than 150 characters"
    if any(_RESERVED.match(part) for part in name.split(".")):
        return f"{name!r} is reserved on Windows"
    return None


@dataclass(frozen=True, kw_only=True)
class ModuleConfig:
    """One `[[modules]]` entry."""

    source: str
    """The file to compile, as a path from the project's root; of several, the first."""
    linked: tuple[str, ...] = ()
    """The other files, where `source` is a list: all are linked to one image."""
    name: str | None = None
    """The module's name; default: the path inside its package without suffix, dots for slashes."""
    name_expressions: tuple[str, ...] = ()
    """Template instances to compile, as NVRTC's name expressions."""
    archs: tuple[str, ...] | None = None
    """Replaces the table's `archs`."""
    include_dirs: tuple[str, ...] | None = None
    """Replaces the table's `include-dirs`."""
    include_packages: tuple[str, ...] | None = None
    """Replaces the table's `include-packages`."""
    defines: Mapping[str, str | bool] = field(default_factory=dict)
    """Extends the table's `defines`."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Extends the table's `options`."""
    variants: Mapping[str, tuple[str | bool, ...]] = field(default_factory=dict)
    """Macros with several values each: every combination is a module of its own, such as `gemm[TILE=16]`."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """The hook table after checks, environment applied."""

    archs: tuple[str, ...]
    """Architectures to compile for, in any accepted spelling."""
    sources: tuple[str, ...] | None = None
    """Gitignore-style patterns from the root; None: every `.cu` inside the shipped packages."""
    include_dirs: tuple[str, ...] = ()
    """Folders searched for headers, in this order."""
    include_packages: tuple[str, ...] = ()
    """Folders of installed packages, searched after `include_dirs`."""
    toolkit_headers: str = "auto"
    """Where CUDA's and CCCL's headers come from: auto, bundled, installed or none."""
    host_code: str = "skip"
    """Whether host code in a source is passed over (skip) or refused (error)."""
    defines: Mapping[str, str | bool] = field(default_factory=dict)
    """Macros; True means a bare -DNAME."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Fields of cuda.core.ProgramOptions, hyphenated."""
    headers: tuple[str, ...] = ()
    """Patterns of further files to ship for the run-time fallback."""
    jit: bool = True
    """Whether sources and headers are shipped for the run-time fallback."""
    package: str | None = None
    """Import package that gets the manifest; None: the package that holds the source."""
    cuda: str = "13"
    """CUDA major that an isolated build installs."""
    cuda_given: bool = False
    """Whether `cuda` was written, so that another NVRTC contradicts it."""
    nvrtc: str | None = None
    """Exact NVRTC release to build with."""
    cache: bool | tuple[Location, ...] = True
    """Compile cache: on at its default place, off, or one or several locations."""
    cache_max_size: int | None = None
    """Soft cap of the cache in bytes."""
    jobs: int = 0
    """Parallel compiles; 0: choose."""
    executor: str = "processes"
    """Where images are compiled: processes of this machine, a Dask cluster, or what a factory gives."""
    compile_timeout: float | None = None
    """Limit for one image in seconds."""
    max_wheel_bytes: int | None = None
    """Budget of the wheel file."""
    max_registers: Mapping[str, int] = field(default_factory=dict)
    """Budget of registers per thread, by kernel."""
    max_spill_bytes: Mapping[str, int] = field(default_factory=dict)
    """Budget of bytes spilled, by kernel."""
    over_budget: str = "error"
    """Whether a budget that is exceeded ends the build (error) or is told (warn)."""
    modules: tuple[ModuleConfig, ...] = ()
    """Modules spelled out."""
    report: str | None = None
    """Where the build writes its report (environment only)."""

    @classmethod
    def from_table(
        cls,
        table: Mapping[str, Any],
        *,
        where: str = f"tool.hatch.build.hooks.{HOOK}",
        environ: Mapping[str, str] | None = None,
    ) -> Config:
        """Check a hook table found at key path `where`. Raises ConfigurationError with every mistake."""
        reader = _Reader(where)
        values = reader.read(table, _FIELDS, extra=_HATCHLING_KEYS)
        values.pop("modules", None)
        modules = reader.modules(table.get("modules", []))
        _apply_environment(values, environ or {}, reader)
        if (environ or {}).get("HATCH_CUDA_KERNELS_ARCHS"):
            modules = [dataclasses.replace(module, archs=None) for module in modules]
        needed = not modules or any(module.archs is None for module in modules)
        if "archs" not in values and needed and not reader.bad("archs"):
            reader.problems.append(
                f'{where}.archs: missing; say which architectures to compile for, such as archs = ["sm_80", "sm_90"], '
                "or set HATCH_CUDA_KERNELS_ARCHS"
            )
        nvrtc, values["cuda_given"] = values.get("nvrtc"), "cuda" in values
        if nvrtc and values.setdefault("cuda", nvrtc.split(".")[0]) != nvrtc.split(".")[0]:
            reader.problems.append(f"{where}.nvrtc: {nvrtc} is not of CUDA {values['cuda']}, which {where}.cuda names")
        if "link-time-optimization" in values.get("options", {}):
            reader.problems.append(f"{where}.options.link-time-optimization: {_ONE_SOURCE}")
        if reader.problems:
            raise ConfigurationError(numbered("the hook table has mistakes:", reader.problems))
        return cls(**{"archs": (), **values, "modules": tuple(modules)})


def _apply_environment(values: dict[str, Any], environ: Mapping[str, str], reader: _Reader) -> None:
    """Let the environment variables win over the table."""
    if text := environ.get("HATCH_CUDA_KERNELS_ARCHS"):
        values["archs"] = _archs(split_list(text) or None, "HATCH_CUDA_KERNELS_ARCHS", reader.problems)
    if text := environ.get("HATCH_CUDA_KERNELS_CACHE"):
        values["cache"] = _location(cache_switch(text), "HATCH_CUDA_KERNELS_CACHE", reader.problems)
    if text := environ.get("HATCH_CUDA_KERNELS_JOBS"):
        parsed = int(text) if text.isascii() and text.isdigit() else text
        values["jobs"] = _jobs(parsed, "HATCH_CUDA_KERNELS_JOBS", reader.problems)
    if text := environ.get("HATCH_CUDA_KERNELS_EXECUTOR"):
        values["executor"] = _executor(text, "HATCH_CUDA_KERNELS_EXECUTOR", reader.problems)
    if text := environ.get("HATCH_CUDA_KERNELS_COMPILE_TIMEOUT"):
        try:
            seconds: object = float(text)
        except ValueError:
            seconds = text
        values["compile_timeout"] = _seconds(seconds, "HATCH_CUDA_KERNELS_COMPILE_TIMEOUT", reader.problems)
    if text := environ.get("HATCH_CUDA_KERNELS_REPORT"):
        values["report"] = text


class _Reader:
    """Reads tables key by key and collects the problems of all of them."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.problems: list[str] = []

    def bad(self, key: str) -> bool:
        """Whether a problem was found at `key` of the hook table itself."""
        return any(problem.startswith((f"{self.where}.{key}:", f"{self.where}.{key}[")) for problem in self.problems)

    def read(
        self, table: object, fields: Mapping[str, _Check], *, at: str = "", extra: frozenset[str] = frozenset()
    ) -> dict[str, Any]:
        """Check each key of `table`; return field name -> value for those that are fine."""
        where = f"{self.where}{at}"
        if not isinstance(table, Mapping):
            self.problems.append(f"{where}: expected a table, found {type(table).__name__}")
            return {}
        values: dict[str, Any] = {}
        for key, value in table.items():
            if key in extra:
                continue
            if key not in fields:
                near = difflib.get_close_matches(str(key).lower().replace("_", "-"), fields, n=1, cutoff=0.6)
                hint = f"; did you mean {near[0]}?" if near else f"; known keys: {', '.join(sorted(fields))}"
                self.problems.append(f"{where}.{key}: unknown key{hint}")
                continue
            before = len(self.problems)
            checked = fields[key](value, f"{where}.{key}", self.problems)
            if len(self.problems) == before:
                values[key.replace("-", "_")] = checked
        return values

    def modules(self, value: object) -> list[ModuleConfig]:
        """Check the array of `[[modules]]`."""
        if not isinstance(value, list):
            self.problems.append(f"{self.where}.modules: expected an array of tables, found {type(value).__name__}")
            return []
        found = []
        for index, table in enumerate(value):
            at = f".modules[{index}]"
            values = self.read(table, _MODULE_FIELDS, at=at)
            if isinstance(table, Mapping) and "source" not in table:
                self.problems.append(f"{self.where}{at}.source: missing; name the .cu file, from the project's root")
            elif "source" in values:
                self.problems.extend(
                    f"{self.where}{at}.variants.{name}: is in defines of the same entry as well; keep one of them"
                    for name in values.get("variants", {})
                    if name in values.get("defines", {})
                )
                first, *linked = values.pop("source")
                if not linked and "link-time-optimization" in values.get("options", {}):
                    self.problems.append(f"{self.where}{at}.options.link-time-optimization: {_ONE_SOURCE}")
                found.append(ModuleConfig(source=first, linked=tuple(linked), **values))
        return found


_Check = Callable[[Any, str, list[str]], Any]


def _strings(value: object, where: str, problems: list[str]) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item and "\0" not in item for item in value):
        problems.append(f"{where}: expected a list of strings, found {value!r}")
        return ()
    return tuple(value)


def _patterns(value: object, where: str, problems: list[str]) -> tuple[str, ...]:
    patterns = _strings(value, where, problems)
    if isinstance(value, list) and not value and where.endswith(".sources"):
        problems.append(f"{where}: an empty list compiles nothing; leave the key out to compile every .cu")
    return patterns


def _folders(value: object, where: str, problems: list[str]) -> tuple[str, ...]:
    folders = _strings(value, where, problems)
    problems.extend(f"{where}: {_not_absolute(folder)}" for folder in folders if _ABSOLUTE.match(folder))
    return folders


def _packages(value: object, where: str, problems: list[str]) -> tuple[str, ...]:
    folders = _strings(value, where, problems)
    for folder in folders:
        if not _INSTALLED.fullmatch(folder) or {"", ".", ".."} & set(folder.rstrip("/").split("/")):
            problems.append(
                f"{where}: expected an import package, or a folder inside one such as 'some_library/include', found "
                f"{folder!r}"
            )
        elif is_toolkit_folder(folder):
            problems.append(f"{where}: {folder} has CUDA's own headers; the key toolkit-headers is about those")
    return folders


def _not_absolute(path: str) -> str:
    return (
        f"{path} is an absolute path, which no other machine has; write it from the project's root (../ may lead "
        "above it)"
    )


def _archs(value: object, where: str, problems: list[str]) -> tuple[str, ...]:
    if not value:
        problems.append(f"{where}: names no architecture")
        return ()
    spellings = _strings(value, where, problems)
    problems.extend(f"{where}: {problem}" for problem in expand_architectures(spellings)[1])
    return spellings


def _boolean(value: object, where: str, problems: list[str]) -> bool:
    if not isinstance(value, bool):
        problems.append(f"{where}: expected true or false, found {value!r}")
    return bool(value)


def _choice(*choices: str) -> _Check:
    def check(value: object, where: str, problems: list[str]) -> Any:
        if value not in choices or not isinstance(value, str):
            near = difflib.get_close_matches(str(value), choices, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            problems.append(f"{where}: expected one of {', '.join(map(repr, choices))}, found {value!r}{hint}")
        return value

    return check


def _defines(value: object, where: str, problems: list[str]) -> dict[str, str | bool]:
    if not isinstance(value, Mapping):
        problems.append(f"{where}: expected a table of macros, found {type(value).__name__}")
        return {}
    defines: dict[str, str | bool] = {}
    for name, given in value.items():
        if not _IDENTIFIER.fullmatch(name):
            problems.append(f"{where}.{name}: {name!r} is no macro name")
        elif given is False:
            problems.append(f"{where}.{name}: false defines nothing; leave the macro out, or write 0")
        elif given is not True and not isinstance(given, (str, int, float)):
            problems.append(f"{where}.{name}: expected a string, a number or true, found {given!r}")
        elif type(given) is int and not -(2**63) <= given < 2**64:
            problems.append(f"{where}.{name}: no integer of C++ has more than 64 bits, and this needs more")
        elif isinstance(given, str) and set(given) & set("\0\n\r"):
            problems.append(f"{where}.{name}: a macro's value is one line")
        elif isinstance(given, float) and not math.isfinite(given):
            problems.append(f"{where}.{name}: {given!r} is no number in C++")
        else:
            defines[name] = True if given is True else str(given)
    return defines


_VARIANT_VALUE = re.compile(r"(?:[\w.+\-<>*& ]|::)+", re.ASCII)
_MOST_VARIANTS = 1024


def _variants(value: object, where: str, problems: list[str]) -> dict[str, tuple[str | bool, ...]]:
    if not isinstance(value, Mapping) or not value:
        problems.append(
            f"{where}: expected a table of macros with a list of values each, such as {{ TILE = [16, 32] }}"
        )
        return {}
    variants: dict[str, tuple[str | bool, ...]] = {}
    for name, given in value.items():
        found: dict[str, str | bool] = {}
        if not isinstance(given, list) or not given:
            problems.append(f"{where}.{name}: expected a list of values, found {given!r}")
            continue
        for item in given:
            checked = False if item is False else _defines({name: item}, where, problems).get(name)
            text = value_text(checked) if checked is not None else ""
            if checked is not None and not _VARIANT_VALUE.fullmatch(text):
                problems.append(
                    f"{where}.{name}: {item!r} cannot be part of a module's name; give the macro a plain value, and "
                    "let the source choose by it"
                )
            elif text in found:
                problems.append(f"{where}.{name}: has {item!r} twice")
            elif checked is not None:
                found[text] = checked
        variants[name] = tuple(found.values())
    if math.prod(map(len, variants.values())) > _MOST_VARIANTS:
        problems.append(f"{where}: more than {_MOST_VARIANTS} combinations; split them into several entries")
    return variants


def _package(value: object, where: str, problems: list[str]) -> str:
    if not isinstance(value, str) or not all(part.isidentifier() for part in value.split(".")):
        problems.append(f"{where}: expected an import package such as 'my_package', found {value!r}")
    return str(value)


def _release(value: object, where: str, problems: list[str]) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"1[23]\.\d+\.\d+", value, re.ASCII):
        problems.append(f"{where}: expected an exact NVRTC release such as '13.0.88', found {value!r}")
    return str(value)


def _location(value: Any, where: str, problems: list[str]) -> bool | tuple[Location, ...]:
    if isinstance(value, bool):
        return value
    listed = isinstance(value, list) and all(isinstance(place, str) for place in value)
    if not (listed or (isinstance(value, str) and value and "\0" not in value)):
        problems.append(f"{where}: expected true, false or a location, found {value!r}")
        return True
    try:
        return parse_locations(value)
    except ValueError as error:
        problems.append(f"{where}: {error}")
        return ()


def _max_size(value: Any, where: str, problems: list[str]) -> int:
    try:
        return parse_size(value)
    except ValueError as error:
        problems.append(f"{where}: {error}")
        return 0


def _jobs(value: object, where: str, problems: list[str]) -> int:
    if type(value) is not int or not 0 <= value <= 4096:
        problems.append(f"{where}: expected a number of parallel compiles (0 = choose), found {value!r}")
        return 0
    return value


def _executor(value: object, where: str, problems: list[str]) -> str:
    if not isinstance(value, str) or not _EXECUTOR.fullmatch(value):
        problems.append(
            f"{where}: expected 'processes', 'dask:ADDRESS' such as 'dask:tcp://host:8786', or 'module:factory', found "
            f"{value!r}"
        )
    return str(value)


def _seconds(value: object, where: str, problems: list[str]) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e9:
        problems.append(f"{where}: expected a number of seconds above zero, found {value!r}")
        return 0.0
    return float(value)


def _limits(value: object, where: str, problems: list[str]) -> dict[str, int]:
    """A limit for every kernel, or a table of kernels with a limit each."""
    table = value if isinstance(value, Mapping) else {EVERY_KERNEL: value}
    limits: dict[str, int] = {}
    for name, limit in table.items():
        at = where if table is not value else f"{where}.{name}"
        if type(limit) is not int or limit < 0:
            problems.append(f"{at}: expected a number, or a table of kernels with a number each, found {limit!r}")
        else:
            limits[squeeze_name(name)] = limit
    return limits


def _modules(value: object, where: str, problems: list[str]) -> object:
    return value  # read on its own, entry by entry


def _module_name(value: object, where: str, problems: list[str]) -> str:
    wrong = check_module_name(value) if isinstance(value, str) else f"expected a string, found {value!r}"
    if wrong:
        problems.append(f"{where}: {wrong}")
    return str(value)


_ONE_SOURCE = "belongs to a [[modules]] entry whose source is a list: only what is linked can be optimised then"


def _source(value: object, where: str, problems: list[str]) -> tuple[str, ...]:
    found: list[str] = []
    for path in value if isinstance(value, list) and len(value) > 1 else [value]:
        if not isinstance(path, str) or not path or "\0" in path:
            problems.append(f"{where}: expected the path of a .cu file, or a list of several to link, found {value!r}")
        elif _ABSOLUTE.match(path):
            problems.append(f"{where}: {_not_absolute(path)}")
        elif posixpath.normpath(label := path.replace("\\", "/")) in map(posixpath.normpath, found):
            problems.append(f"{where}: has {path} twice")
        else:
            found.append(label)
    return tuple(found)


_FIELDS: dict[str, _Check] = {
    "archs": _archs,
    "sources": _patterns,
    "include-dirs": _folders,
    "include-packages": _packages,
    "toolkit-headers": _choice("auto", "bundled", "installed", "none"),
    "host-code": _choice("skip", "error"),
    "defines": _defines,
    "options": check_options,
    "headers": _patterns,
    "jit": _boolean,
    "package": _package,
    "cuda": _choice("12", "13"),
    "nvrtc": _release,
    "cache": _location,
    "cache-max-size": _max_size,
    "jobs": _jobs,
    "executor": _executor,
    "compile-timeout": _seconds,
    "max-wheel-bytes": _max_size,
    "max-registers": _limits,
    "max-spill-bytes": _limits,
    "over-budget": _choice("error", "warn"),
    "modules": _modules,
}

_MODULE_FIELDS: dict[str, _Check] = {
    "source": _source,
    "name": _module_name,
    "name-expressions": _strings,
    "archs": _archs,
    "include-dirs": _folders,
    "include-packages": _packages,
    "defines": _defines,
    "options": check_options,
    "variants": _variants,
}
