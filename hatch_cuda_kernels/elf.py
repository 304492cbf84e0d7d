# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Sections and symbols of a cubin, a little-endian 64-bit ELF file. Every offset is checked before it is used."""

from __future__ import annotations

import struct
from typing import NamedTuple

__all__ = ["EM_CUDA", "OSABI_CUDA13", "Elf", "ImageFormatError", "cubin_number"]

EM_CUDA = 190
OSABI_CUDA13 = 0x41
_SHT_SYMTAB, _SHT_NOBITS = 2, 8
_STB_GLOBAL = 1


class ImageFormatError(ValueError):
    """The bytes are not a cubin, or not PTX."""


class _Section(NamedTuple):
    name: str
    type: int
    offset: int
    size: int
    link: int


class Elf:
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
        return [(name, other) for name, _, other, _ in self._symbols()]

    def definitions(self) -> set[str]:
        """Names that this file defines for others too, and that no other may define."""
        return {name for name, info, _, section in self._symbols() if info >> 4 == _STB_GLOBAL and section}

    def _symbols(self) -> list[tuple[str, int, int, int]]:
        """Name, `st_info`, `st_other` and section of every symbol."""
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
        return [(self._string(strings, entry[0]), *entry[1:4]) for entry in entries]

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


def cubin_number(data: bytes) -> int | None:
    """The base architecture in a cubin's file header, without reading further; None where there is none."""
    if len(data) < 64 or data[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", data, 18)[0] != EM_CUDA:
        return None
    flags = int(struct.unpack_from("<I", data, 48)[0])
    return (flags >> 8 if data[7] == OSABI_CUDA13 else flags) & 0xFF
