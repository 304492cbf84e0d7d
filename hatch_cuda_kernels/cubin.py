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

from .arch import Architecture
from .elf import EM_CUDA, OSABI_CUDA13, Elf, ImageFormatError
from .manifest import Resources

__all__ = [
    "CubinFacts",
    "PtxFacts",
    "kernel_attributes",
    "plain_names",
    "read_cubin",
    "read_ptx",
    "spills_from_log",
]

_OLD_SPECIFIC = 0x800
_STO_ENTRY = 0x10
_EIATTR_REGCOUNT, _EIATTR_FRAME_SIZE = 0x2F, 0x11
_FORMAT_SIZED = 4


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


def read_cubin(data: bytes) -> CubinFacts:
    """Read a cubin. Raises ImageFormatError for anything that is not one.

    With EI_OSABI 0x41 (CUDA 13, and sm_100 and newer of CUDA 12) the architecture stands in bits 8-15 of `e_flags`,
    the suffix and the compiler's full release in the note `.note.nv.tkinfo`. Older files have the architecture in
    bits 0-7, the suffix `a` in bit 11, and do not tell the release.
    """
    elf = Elf(data)
    if elf.machine != EM_CUDA:
        raise ImageFormatError(f"an ELF file for machine {elf.machine}, not CUDA")
    newer = elf.osabi == OSABI_CUDA13
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


def kernel_attributes(data: bytes, symbol: str) -> list[tuple[int, bytes]]:
    """(attribute, payload) pairs of one kernel of a cubin. Raises ImageFormatError, also where it is not there."""
    elf = Elf(data)
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
