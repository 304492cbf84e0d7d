# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The manifest: what a package's images are. It is the authority for the loader and for the command line."""

from __future__ import annotations

import functools
import itertools
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .arch import Architecture, release_version
from .errors import ManifestError

__all__ = [
    "DIRECTORY",
    "MANIFEST_FILE",
    "SCHEMA",
    "SOURCE_DIRECTORY",
    "Fallback",
    "Image",
    "Manifest",
    "Module",
    "Resources",
    "ShippedFile",
    "Verbatim",
    "canonical_json",
    "canonical_lines",
    "canonical_pieces",
    "check_relative_path",
    "compact_json",
    "kernel_index",
    "manifest_pieces",
    "squeeze_name",
]

SCHEMA = 1
DIRECTORY = "_cuda_kernels"
"""Folder inside a package that holds the manifest, the images and `src/`."""
MANIFEST_FILE = "manifest.json"
SOURCE_DIRECTORY = "src"

_encode = json.JSONEncoder(sort_keys=True, ensure_ascii=False).encode
_PIECES = 4096
_MAX_BYTES = 256 * 1024 * 1024
_HEX = frozenset("0123456789abcdef")
# Not compiled here: every app that imports this package would pay for it.
_UNPRINTABLE = r"[\x00-\x1f\ud800-\udfff]"
_LITERAL_OR_SPACE = r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|\s+"
_RESERVED_STEM = r"(?i:con|prn|aux|nul|com\d|lpt\d)(\..*)?"


class Verbatim(str):
    """JSON text that stands for the value that it is the text of."""

    __slots__ = ()


def canonical_json(value: object, *, levels: int = 4) -> bytes:
    """The one way this package writes JSON that is shipped: sorted keys, UTF-8, no time stamps, for people to read.

    So many outer `levels` are indented, and what lies deeper is on one line each, as an image of a manifest: the
    library writes that many times as quickly. A list may be an iterator, of which only one element is held at a time,
    and a value may be there as its text.
    """
    return b"".join(canonical_pieces(value, levels=levels))


def canonical_pieces(value: object, *, levels: int = 4) -> Iterator[bytes]:
    """The same text, piece by piece."""
    lines = canonical_lines(value, "\n", levels)
    while texts := list(itertools.islice(lines, _PIECES)):
        yield "".join(texts).encode()
    yield b"\n"


def canonical_lines(value: object, start: str, levels: int) -> Iterator[str]:
    """The same, of a value whose last line begins as `start` does."""
    if isinstance(value, Verbatim) or not levels or not isinstance(value, (dict, list, tuple, Iterator)):
        yield value if isinstance(value, Verbatim) else _encode(value)
        return
    inner, separator = f"{start} ", ""
    brackets = "{}" if isinstance(value, dict) else "[]"
    yield brackets[0]
    for item in sorted(value) if isinstance(value, dict) else value:
        if isinstance(value, dict):
            yield f"{separator}{inner}{_encode(item)}: "
            yield from canonical_lines(value[item], inner, levels - 1)
        else:
            yield f"{separator}{inner}"
            yield from canonical_lines(item, inner, levels - 1)
        separator = ","
    yield f"{start}{brackets[1]}" if separator else brackets[1]


def compact_json(value: object) -> bytes:
    """The same for what only programs read, such as what is hashed: several times as quick to write."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def squeeze_name(name: str) -> str:
    """A kernel's name with all white space removed that C++ does not need: `k< float >` -> `k<float>`."""
    name = name.strip()
    if not any(character.isspace() for character in name):
        return name
    return re.sub(_LITERAL_OR_SPACE, lambda match: _needed_space(name, match), name)


def _needed_space(name: str, match: re.Match[str]) -> str:
    """A literal as it is; of white space what keeps two words, or two operators such as `+ +`, apart."""
    if not match[0].isspace():
        return match[0]
    before, after = name[match.start() - 1], name[match.end()]
    words = all(character == "_" or character.isalnum() for character in (before, after))
    return " " if words or (before == after and before in "+-&|<=/*:") else ""


def check_relative_path(path: str, where: str) -> str:
    """Return `path` if it is relative, stays below its folder and means the same file on every system.

    Windows drops dots and spaces at the end of a name, so that ".. " would be "..".
    """
    parts = path.split("/")
    if (
        not path
        or len(path) > 4096
        or any(not part or part.endswith((".", " ")) for part in parts)
        or "\\" in path
        or ":" in path
        or (not path.isprintable() and re.search(_UNPRINTABLE, path))
        or (os.name == "nt" and any(re.fullmatch(_RESERVED_STEM, part) for part in parts))
    ):
        raise ManifestError(f"{where}: {path!r} is not a path inside the package")
    return path


@dataclass(frozen=True, kw_only=True, slots=True)
class Resources:
    """What one kernel needs on one architecture. All in bytes, save the registers per thread."""

    registers: int
    shared_bytes: int
    local_bytes: int
    stack_bytes: int
    constant_bytes: int
    spill_bytes: int

    def to_dict(self) -> dict[str, int]:
        """As the manifest has it."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_dict(cls, value: object, where: str) -> Resources:
        """Read one entry; `where` is its path in the manifest."""
        table = _table(value, where)
        return cls(**{name: _count(table, name, where) for name in cls.__slots__})


@dataclass(frozen=True, kw_only=True)
class Image:
    """One module compiled for one architecture."""

    architecture: Architecture
    file: str
    size: int
    sha256: str
    entries: Mapping[str, Resources | None]
    """Lowered name of each kernel in this image -> its resources; None for PTX, where the driver decides them."""
    kernels: Mapping[str, str] = field(default_factory=dict)
    """Name as asked for -> lowered name, only where this image differs from its module's `kernels`."""

    def to_dict(self) -> dict[str, Any]:
        """As the manifest has it."""
        value: dict[str, Any] = {
            "architecture": str(self.architecture),
            "format": self.architecture.format,
            "file": self.file,
            "size": self.size,
            "sha256": self.sha256,
            "entries": {name: found.to_dict() if found else {} for name, found in self.entries.items()},
        }
        if self.kernels:
            value["kernels"] = dict(self.kernels)
        return value

    @classmethod
    def from_dict(cls, value: object, where: str) -> Image:
        """Read one image; `where` is its path in the manifest."""
        table = _table(value, where)
        try:
            architecture = Architecture.parse(_text(table, "architecture", where))
        except ValueError as error:
            raise ManifestError(f"{where}.architecture: {error}") from None
        if table.get("format") != architecture.format:
            raise ManifestError(f"{where}.format: {architecture} is {architecture.format}, not {table.get('format')!r}")
        file = check_relative_path(_text(table, "file", where), f"{where}.file")
        if "/" in file or file == MANIFEST_FILE:
            raise ManifestError(f"{where}.file: {file!r} is not the name of an image beside the manifest")
        size = _count(table, "size", where)
        if not 0 < size <= _MAX_BYTES * 16:
            raise ManifestError(f"{where}.size: {size} is not the size of an image")
        entries: dict[str, Resources | None] = {}
        for name, found in _table(table.get("entries"), f"{where}.entries").items():
            entries[name] = Resources.from_dict(found, f"{where}.entries.{name}") if found != {} else None
        return cls(
            architecture=architecture,
            file=file,
            size=size,
            sha256=_digest(table, where),
            entries=entries,
            kernels=_names(table.get("kernels", {}), f"{where}.kernels"),
        )


@dataclass(frozen=True, kw_only=True, order=True)
class Omission:
    """One piece of host code that a compile passed over."""

    source: str
    """Label of the file that has it."""
    line: int
    kind: str
    """Such as "function", "body", "variable", "include"; see hostcode/passing.py."""
    name: str
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """As the manifest and a cache record have it."""
        return {
            "source": self.source,
            "line": self.line,
            "kind": self.kind,
            "name": self.name,
            "reason": self.reason,
        }

    @classmethod
    def from_dict(cls, value: object, where: str) -> Omission:
        """Read one; `where` is its path in the manifest."""
        table = _table(value, where)
        return cls(
            source=_text(table, "source", where),
            line=_count(table, "line", where),
            kind=_text(table, "kind", where),
            name=_text(table, "name", where),
            reason=_text(table, "reason", where),
        )


@dataclass(frozen=True, kw_only=True)
class Module:
    """One translation unit compiled with one set of options."""

    name: str
    source: str
    options: Mapping[str, Any]
    defines: Mapping[str, str | bool]
    include_dirs: tuple[str, ...]
    toolkit_headers: str
    host_code: str
    name_expressions: tuple[str, ...]
    kernels: Mapping[str, str]
    """Name as asked for -> lowered name."""
    images: tuple[Image, ...]
    passed_over: tuple[Omission, ...] = ()
    """What was passed over for at least one of the images; empty where the source was compiled as written."""
    linked: tuple[str, ...] = ()
    """Further sources that are linked to one image with `source`."""

    def lowered(self, kernel: str, image: Image) -> str | None:
        """The symbol of `kernel` in `image`, or None where that image leaves it out."""
        symbol = image.kernels.get(kernel) or self.kernels.get(kernel)
        return symbol if symbol in image.entries else None

    def to_dict(self) -> dict[str, Any]:
        """As the manifest has it."""
        return {
            "name": self.name,
            "source": self.source,
            "options": dict(self.options),
            "defines": dict(self.defines),
            "include_dirs": list(self.include_dirs),
            "toolkit_headers": self.toolkit_headers,
            "host_code": self.host_code,
            "name_expressions": list(self.name_expressions),
            "kernels": dict(self.kernels),
            "images": [image.to_dict() for image in self.images],
            **({"linked": list(self.linked)} if self.linked else {}),
            **({"passed_over": [omission.to_dict() for omission in self.passed_over]} if self.passed_over else {}),
        }

    def to_text(self) -> Verbatim:
        """The same as text: an element of a manifest's modules."""
        return Verbatim("".join(canonical_lines(self.to_dict(), "\n  ", 2)))

    @classmethod
    def from_dict(cls, value: object, where: str) -> Module:
        """Read one module; `where` is its path in the manifest."""
        table = _table(value, where)
        images = _list(table, "images", where)
        defines = _table(table.get("defines"), f"{where}.defines")
        if not all(found is True or isinstance(found, str) for found in defines.values()):
            raise ManifestError(f"{where}.defines: values must be strings or true")
        toolkit_headers = _text(table, "toolkit_headers", where)
        if toolkit_headers not in ("auto", "bundled", "installed", "none"):
            raise ManifestError(f"{where}.toolkit_headers: unknown value {toolkit_headers!r}")
        host_code = _text(table, "host_code", where)
        if host_code not in ("skip", "error"):
            raise ManifestError(f"{where}.host_code: unknown value {host_code!r}")
        return cls(
            name=_text(table, "name", where),
            source=check_relative_path(_text(table, "source", where), f"{where}.source"),
            options=_table(table.get("options"), f"{where}.options"),
            defines=defines,
            include_dirs=tuple(
                path if path == "." else check_relative_path(path, f"{where}.include_dirs")
                for path in _strings(table, "include_dirs", where)
            ),
            toolkit_headers=toolkit_headers,
            host_code=host_code,
            name_expressions=_strings(table, "name_expressions", where),
            kernels=_names(table.get("kernels"), f"{where}.kernels"),
            images=tuple(Image.from_dict(found, f"{where}.images[{i}]") for i, found in enumerate(images)),
            linked=tuple(
                check_relative_path(path, f"{where}.linked")
                for path in (_strings(table, "linked", where) if "linked" in table else ())
            ),
            passed_over=tuple(
                Omission.from_dict(found, f"{where}.passed_over[{i}]")
                for i, found in enumerate(_list(table, "passed_over", where) if "passed_over" in table else [])
            ),
        )


@dataclass(frozen=True, kw_only=True)
class ShippedFile:
    """A source or header below `src/` that the run-time fallback may compile."""

    size: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Fallback:
    """What the run-time fallback compiles from: paths below `src/` -> size and digest."""

    files: Mapping[str, ShippedFile]


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """All modules of one package, and the compiler that made their images."""

    package: str
    release: str
    """Full NVRTC release, such as 13.5.37."""
    modules: Sequence[Module]
    fallback: Fallback | None

    @property
    def cuda_version(self) -> tuple[int, int]:
        """CUDA version (major, minor) of the compiler, which is also that of its PTX."""
        return release_version(self.release)

    @functools.cached_property
    def kernels(self) -> Mapping[str, Sequence[str]]:
        """Kernel's name without white space -> names of the modules that have it, in their order."""
        return kernel_index((module.name, module.kernels) for module in self.modules)

    def to_dict(self) -> dict[str, Any]:
        """As `manifest.json` has it."""
        frame = _frame(self.package, self.release, self.kernels, self.fallback)
        return {**frame, "modules": [module.to_dict() for module in self.modules]}

    def to_bytes(self) -> bytes:
        """The text of `manifest.json`."""
        texts = (module.to_text() for module in self.modules)
        return b"".join(manifest_pieces(self.package, self.release, self.kernels, self.fallback, texts))

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> Manifest:
        """Parse `manifest.json`; `where` names the file in errors. Raises ManifestError, and nothing else."""
        if len(data) > _MAX_BYTES:
            raise ManifestError(f"{where}: {len(data)} bytes are no manifest")
        try:
            value = json.loads(data.decode("utf-8"), parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise ManifestError(f"{where}: not JSON ({error}); reinstall the package") from None
        try:
            return cls.from_dict(value)
        except ManifestError as error:
            raise ManifestError(f"{where}: {error}") from None

    @classmethod
    def from_dict(cls, value: object) -> Manifest:
        """Read the parsed JSON; see from_bytes. Raises ManifestError with the path of what is wrong."""
        table = _table(value, "manifest")
        schema = table.get("schema")
        if type(schema) is int and schema > SCHEMA:
            raise ManifestError(f"schema {schema} is newer than this hatch-cuda-kernels reads ({SCHEMA}); upgrade it")
        if schema != SCHEMA or type(schema) is not int:
            raise ManifestError(f"schema: expected {SCHEMA}, found {schema!r}")
        compiler = _table(table.get("compiler"), "compiler")
        release = _text(compiler, "release", "compiler")
        numbers = release.split(".")
        plain = all(n.isascii() and n.isdigit() and len(n) <= most for n, most in zip(numbers, (3, 3, 6), strict=False))
        if not 2 <= len(numbers) <= 3 or not plain:
            raise ManifestError(f"compiler.release: {release!r} is no NVRTC release")
        entries = enumerate(_list(table, "modules", "manifest"))
        modules = tuple(Module.from_dict(entry, f"modules[{index}]") for index, entry in entries)
        if len({module.name for module in modules}) != len(modules):
            raise ManifestError("modules: two have the same name")
        files = [image.file for module in modules for image in module.images]
        if len({file.lower() for file in files}) != len(files):
            raise ManifestError("modules: two images have the same file")
        fallback = None
        if table.get("fallback") is not None:
            shipped: dict[str, ShippedFile] = {}
            listed = _table(_table(table["fallback"], "fallback").get("files"), "fallback.files")
            for path, found in listed.items():
                where = f"fallback.files.{path}"
                entry = _table(found, where)
                check_relative_path(path, where)
                shipped[path] = ShippedFile(size=_count(entry, "size", where), sha256=_digest(entry, where))
            fallback = Fallback(files=shipped)
        package = _text(table, "package", "manifest")
        manifest = cls(package=package, release=release, modules=modules, fallback=fallback)
        if table.get("kernels", manifest.kernels) != manifest.kernels:
            raise ManifestError("kernels: it is not the index of the modules' kernels")
        return manifest


def kernel_index(modules: Iterable[tuple[str, Iterable[str]]]) -> dict[str, list[str]]:
    """Kernel's name without white space -> names of the modules that have it; from each module's name and kernels."""
    found: dict[str, list[str]] = {}
    for name, kernels in modules:
        for kernel in dict.fromkeys(map(squeeze_name, kernels)):
            found.setdefault(kernel, []).append(name)
    return found


def manifest_pieces(
    package: str,
    release: str,
    kernels: Mapping[str, Sequence[str]],
    fallback: Fallback | None,
    modules: Iterable[Verbatim],
) -> Iterator[bytes]:
    """The text of `manifest.json`, piece by piece, from the texts of its modules (Module.to_text)."""
    return canonical_pieces({**_frame(package, release, kernels, fallback), "modules": iter(modules)})


def _frame(
    package: str, release: str, kernels: Mapping[str, Sequence[str]], fallback: Fallback | None
) -> dict[str, Any]:
    """A manifest without its modules."""
    files = None
    if fallback is not None:
        files = {path: dict(vars(found)) for path, found in fallback.files.items()}
    return {
        "schema": SCHEMA,
        "package": package,
        "compiler": {"name": "nvrtc", "release": release},
        "kernels": {kernel: list(modules) for kernel, modules in kernels.items()},
        "fallback": None if files is None else {"files": files},
    }


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not allowed")


def _table(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ManifestError(f"{where}: expected an object, found {type(value).__name__}")
    return value


def _list(table: Mapping[str, Any], key: str, where: str) -> list[Any]:
    value = table.get(key)
    if not isinstance(value, list):
        raise ManifestError(f"{where}.{key}: expected an array, found {type(value).__name__}")
    return value


def _text(table: Mapping[str, Any], key: str, where: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value or "\0" in value:
        raise ManifestError(f"{where}.{key}: expected a string, found {value!r:.80}")
    return value


def _strings(table: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    values = _list(table, key, where)
    if not all(isinstance(value, str) and value and "\0" not in value for value in values):
        raise ManifestError(f"{where}.{key}: expected strings")
    return tuple(values)


def _names(value: object, where: str) -> dict[str, str]:
    table = _table(value, where)
    if not all(isinstance(symbol, str) and symbol and "\0" not in symbol for symbol in table.values()):
        raise ManifestError(f"{where}: expected strings")
    return table


def _count(table: Mapping[str, Any], key: str, where: str) -> int:
    value = table.get(key)
    if type(value) is not int or not 0 <= value < 2**63:
        raise ManifestError(f"{where}.{key}: expected a count, found {value!r:.80}")
    return value


def _digest(table: Mapping[str, Any], where: str) -> str:
    value = _text(table, "sha256", where)
    if len(value) != 64 or not _HEX.issuperset(value):
        raise ManifestError(f"{where}.sha256: {value!r:.80} is no SHA-256 digest in hex")
    return value
