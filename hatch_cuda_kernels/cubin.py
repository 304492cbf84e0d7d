# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Facts read out of an image: architecture, compiler release, entries and what they need.

A cubin is a little-endian 64-bit ELF file. Every offset is checked before it is used, so that any bytes at all give
either facts or ImageFormatError, in time linear in their number. What the sections and attributes mean was measured
against `cuobjdump --dump-resource-usage` (see tests/test_cubin.py).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from .arch import Architecture
from .manifest import Resources

__all__ = [
    "CubinFacts",
    "ImageFormatError",
    "PtxFacts",
    "cubin_number",
    "kernel_attributes",
    "plain_names",
    "read_cubin",
    "read_ptx",
    "spills_from_log",
]

_EM_CUDA = 190
_OSABI_CUDA13 = 0x41
_OLD_SPECIFIC = 0x800
_SHT_SYMTAB, _SHT_NOBITS = 2, 8
_STO_ENTRY = 0x10
_EIATTR_REGCOUNT, _EIATTR_FRAME_SIZE = 0x2F, 0x11
_FORMAT_SIZED = 4


class ImageFormatError(ValueError):
    """The bytes are not a cubin, or not PTX."""


@dataclass(frozen=True, kw_only=True)
class CubinFacts:
    """What a cubin says of itself. `target` carries the suffix where the file tells it ("sm_90a"), else None."""

    number: int
    target: str | None
    release: str | None
    entries: Mapping[str, Resources]

    def matches(self, architecture: Architecture) -> bool:
        """Whether this cubin was made for `architecture`; the suffix counts where the file tells it."""
        if self.number != architecture.number or architecture.virtual:
            return False
        return self.target is None or self.target == str(architecture)


@dataclass(frozen=True, kw_only=True)
class PtxFacts:
    """What PTX says of itself."""

    target: str
    release: str | None
    entries: tuple[str, ...]

    def matches(self, architecture: Architecture) -> bool:
        """Whether this PTX was made for `architecture`."""
        return architecture.virtual and self.target == f"sm_{architecture.number}{architecture.suffix}"


class _Section(NamedTuple):
    name: str
    type: int
    offset: int
    size: int
    link: int


class _Elf:
    """Sections and symbols of one ELF file, with every range checked."""

    def __init__(self, data: bytes) -> None:
        if len(data) < 64 or data[:7] != b"\x7fELF\x02\x01\x01":
            raise ImageFormatError("not a 64-bit little-endian ELF file")
        self.data = data
        self._names_left = 16 * len(data)  # names may overlap in their table, which no compiler does to this degree
        self.osabi = data[7]
        header = struct.unpack_from("<HHIQQQIHHHHHH", data, 16)
        self.machine, self.flags = header[1], header[6]
        table, size, count, names = header[5], header[10], header[11], header[12]
        if size != 64 or not count or table + size * count > len(data) or names >= count:
            raise ImageFormatError("the section table is damaged or truncated")
        raw = [struct.unpack_from("<IIQQQQIIQQ", data, table + size * i) for i in range(count)]
        strings = self._bytes(raw[names][4], raw[names][5])
        self.sections = [_Section(self._string(strings, r[0]), r[1], r[4], r[5], r[6]) for r in raw]
        self.by_name = {section.name: section for section in self.sections}

    def content(self, name: str) -> bytes:
        """Bytes of a section, or none where there is no such section."""
        section = self.by_name.get(name)
        if section is None or section.type == _SHT_NOBITS:
            return b""
        return self._bytes(section.offset, section.size)

    def size(self, name: str) -> int:
        """Size of a section in bytes, 0 where there is none."""
        section = self.by_name.get(name)
        return section.size if section else 0

    def symbols(self) -> list[tuple[str, int]]:
        """Name and `st_other` of every symbol, by index."""
        for section in self.sections:
            if section.type == _SHT_SYMTAB:
                break
        else:
            return []
        if section.link >= len(self.sections):
            raise ImageFormatError("the symbol table is damaged")
        strings = self._bytes(self.sections[section.link].offset, self.sections[section.link].size)
        table = self._bytes(section.offset, section.size)
        entries = struct.iter_unpack("<IBBHQQ", table[: len(table) // 24 * 24])
        return [(self._string(strings, entry[0]), entry[2]) for entry in entries]

    def _bytes(self, offset: int, size: int) -> bytes:
        if offset + size > len(self.data):
            raise ImageFormatError("a section reaches past the end of the file")
        return self.data[offset : offset + size]

    def _string(self, table: bytes, offset: int) -> str:
        end = table.find(b"\0", offset)
        if offset > len(table) or end < 0:
            raise ImageFormatError("a name reaches past its string table")
        self._names_left -= end - offset
        if self._names_left < 0:
            raise ImageFormatError("the names are longer than the file allows")
        return table[offset:end].decode("utf-8", "backslashreplace")


def read_cubin(data: bytes) -> CubinFacts:
    """Read a cubin. Raises ImageFormatError for anything that is not one.

    With EI_OSABI 0x41 (CUDA 13, and sm_100 and newer of CUDA 12) the architecture stands in bits 8-15 of `e_flags`,
    the suffix and the compiler's full release in the note `.note.nv.tkinfo`. Older files have the architecture in
    bits 0-7, the suffix `a` in bit 11, and do not tell the release.
    """
    elf = _Elf(data)
    if elf.machine != _EM_CUDA:
        raise ImageFormatError(f"an ELF file for machine {elf.machine}, not CUDA")
    newer = elf.osabi == _OSABI_CUDA13
    number = (elf.flags >> 8 if newer else elf.flags) & 0xFF
    note = elf.content(".note.nv.tkinfo").decode("latin-1")
    target = re.search(r"-arch\s+(sm_\d+[af]?)\b", note)
    release = re.search(r"\bV(\d+\.\d+\.\d+)\b", note)
    symbols = elf.symbols()
    registers: dict[str, int] = {}
    stack: dict[str, int] = {}
    for attribute, payload in _attributes(elf.content(".nv.info")):
        if len(payload) == 8 and attribute in (_EIATTR_REGCOUNT, _EIATTR_FRAME_SIZE):
            index, value = struct.unpack("<II", payload)
            if index < len(symbols):
                (registers if attribute == _EIATTR_REGCOUNT else stack)[symbols[index][0]] = value
    entries = {
        name: Resources(
            registers=registers.get(name, 0),
            shared_bytes=elf.size(f".nv.shared.{name}"),
            local_bytes=elf.size(f".nv.local.{name}"),
            stack_bytes=stack.get(name, 0),
            constant_bytes=elf.size(f".nv.constant0.{name}"),
            spill_bytes=0,
        )
        for name, other in symbols
        if other & _STO_ENTRY and f".text.{name}" in elf.by_name
    }
    return CubinFacts(
        number=number,
        target=target[1] if target else None if newer else f"sm_{number}{'a' if elf.flags & _OLD_SPECIFIC else ''}",
        release=release[1] if release else None,
        entries=dict(sorted(entries.items())),
    )


def cubin_number(data: bytes) -> int | None:
    """The base architecture in a cubin's file header, without reading further; None where there is none."""
    if len(data) < 64 or data[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", data, 18)[0] != _EM_CUDA:
        return None
    flags = int(struct.unpack_from("<I", data, 48)[0])
    return (flags >> 8 if data[7] == _OSABI_CUDA13 else flags) & 0xFF


def kernel_attributes(data: bytes, symbol: str) -> list[tuple[int, bytes]]:
    """(attribute, payload) pairs of one kernel of a cubin. Raises ImageFormatError, also where it is not there."""
    elf = _Elf(data)
    if f".text.{symbol}" not in elf.by_name:
        raise ImageFormatError("there is no such kernel")
    return list(_attributes(elf.content(f".nv.info.{symbol}")))


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The attribute list of a `.nv.info` section: format byte, attribute byte, then 2 bytes, or a size and payload."""
    position = 0
    while position + 4 <= len(data):
        kind, attribute = data[position], data[position + 1]
        size = struct.unpack_from("<H", data, position + 2)[0] if kind == _FORMAT_SIZED else 0
        yield attribute, data[position + 4 : position + 4 + size]
        position += 4 + size


_PTX_VERSION = re.compile(r"^[ \t]*\.version[ \t]+\d+\.\d+", re.MULTILINE)
_PTX_TARGET = re.compile(r"^[ \t]*\.target[ \t]+(sm_\d+[af]?)\b", re.MULTILINE)
_PTX_ENTRY = re.compile(r"^[ \t]*(?:\.(?:visible|weak)[ \t]+)?\.entry[ \t]+([A-Za-z_$%][\w$]*)", re.MULTILINE)


def read_ptx(data: bytes) -> PtxFacts:
    """Read PTX. Raises ImageFormatError for anything that is not PTX of NVRTC."""
    text = data.decode("latin-1")
    target = _PTX_TARGET.search(text)
    if not target or not _PTX_VERSION.search(text):
        raise ImageFormatError("no PTX: .version or .target is missing")
    release = re.search(r"\bV(\d+\.\d+\.\d+)\b", text[:2000])
    entries = tuple(sorted(set(_PTX_ENTRY.findall(text))))
    return PtxFacts(target=target[1], release=release[1] if release else None, entries=entries)


_PROPERTIES = re.compile(
    r"Function properties for (?P<name>\S+)\s*\n"
    r"[^\n]*?(?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads"
)


def spills_from_log(log: str) -> dict[str, int]:
    """Spill stores plus spill loads in bytes per function, from the report that `ptxas -v` leaves in NVRTC's log."""
    return {match["name"]: int(match["stores"]) + int(match["loads"]) for match in _PROPERTIES.finditer(log)}


def plain_names(symbols: list[str]) -> dict[str, str]:
    """Source name -> symbol, for kernels that need no name expression.

    That is every `extern "C"` name and every plain C++ function name, namespaces included. Overloaded names and
    template instances have no single source name and are left out.
    """
    found: dict[str, list[str]] = {}
    for symbol in symbols:
        name = _source_name(symbol)
        if name is not None:
            found.setdefault(name, []).append(symbol)
    return {name: where[0] for name, where in found.items() if len(where) == 1}


def _source_name(symbol: str) -> str | None:
    """The qualified name in an Itanium-mangled function name without template arguments, else None."""
    if not symbol.startswith("_Z"):
        return symbol
    rest = symbol[2:]
    nested = rest.startswith("N")
    if nested:
        rest = rest[1:]
    parts: list[str] = []
    while True:
        rest = rest.removeprefix("L")
        match = re.match(r"[1-9]\d{0,4}", rest)
        if match is None:
            break
        end = match.end() + int(match[0])
        if end > len(rest):
            return None
        part, rest = rest[match.end() : end], rest[end:]
        if not part.startswith("_GLOBAL__N_"):
            parts.append(part)
        if not nested:
            break
    if not parts or rest.startswith("I") or (nested and not rest.startswith("E")):
        return None
    return "::".join(parts)
