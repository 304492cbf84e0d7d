# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""How a place of the cache is spelled: a folder, `sqlite:FILE`, `memory:SIZE` or a URL, each after `read:` perhaps."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

__all__ = ["REMOTES", "Location", "parse_location", "parse_locations", "parse_size"]

REMOTES: Mapping[str, tuple[str, frozenset[str]]] = {
    "s3": ("s3", frozenset({"endpoint", "region"})),
    "gs": ("gcs", frozenset({"endpoint"})),
    "az": ("azure", frozenset({"account", "endpoint"})),
    "http": ("webdav", frozenset()),
    "https": ("webdav", frozenset()),
    "redis": ("redis", frozenset()),
    "rediss": ("redis", frozenset()),
}
"""Scheme of a URL -> (the extra that brings its library, what may follow `?`)."""

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE | re.ASCII)
_WITH_LOGIN = frozenset({"http", "https", "redis", "rediss"})
_MEMORY = "256MB"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)://")
_MISTYPED = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:|\$\w*|(?:0|1|false|true)$", re.IGNORECASE)
"""What begins like another kind of place, a variable that nothing expands, or what switches the cache on or off."""
_SPELLINGS = f"a folder, sqlite:FILE, memory:SIZE, or a URL ({', '.join(f'{scheme}://' for scheme in REMOTES)})"


def parse_size(value: str | int) -> int:
    """`"2GB"`, `"512MiB"` or a number of bytes -> bytes. Raises ValueError."""
    if isinstance(value, int) and not isinstance(value, bool):
        size: float = value
    else:
        match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
        if match is None:
            raise ValueError(f"expected a size such as '2GB', found {value!r}")
        power = " kmgt".index(match[2].lower() or " ")
        size = float(match[1]) * (1024 if match[3] else 1000) ** power
    if not 1 <= size < 2**62:
        raise ValueError(f"expected a size above zero, found {value!r}")
    return int(size)


@dataclass(frozen=True)
class Location:
    """One place of the cache."""

    kind: str
    """directory, sqlite, memory, or the scheme of a URL."""
    value: str
    """The path, the size or the whole URL."""
    writable: bool = True

    @property
    def remote(self) -> bool:
        """Whether it is on another machine."""
        return self.kind in REMOTES

    @property
    def extra(self) -> str:
        """The extra of this package that brings the library of a URL."""
        return REMOTES[self.kind][0]

    @property
    def size(self) -> int:
        """What a place in memory may hold, in bytes."""
        return parse_size(self.value or _MEMORY)

    def at(self, root: Path) -> Location:
        """The same, with a path that starts at `root`."""
        if self.kind not in ("directory", "sqlite"):
            return self
        path = os.path.expanduser(self.value)
        return self if path.startswith("~") else replace(self, value=str(root / path))

    def __str__(self) -> str:
        """For people: a URL without its password."""
        text = re.sub(r"(?<=://)\S*@", "", self.value) if self.kind in _WITH_LOGIN else self.value
        return text if self.remote or self.kind == "directory" else f"{self.kind}:{text}"


def parse_location(text: str) -> Location:
    """Read one spelling. Raises ValueError."""
    text = text.strip()
    writable = not text.startswith("read:")
    rest = text if writable else text[len("read:") :].strip()
    if rest.startswith("read:"):
        raise ValueError(f"{text!r} has read: twice")
    if not rest or "\0" in rest:
        raise ValueError(f"expected {_SPELLINGS}; found {text!r}")
    for kind in ("sqlite", "memory"):
        if rest.startswith(f"{kind}:"):
            value = rest[len(kind) + 1 :]
            if kind == "sqlite" and not value.strip("/"):
                raise ValueError(f"{text!r} names no file; write sqlite:FILE")
            if kind == "memory" and value:
                parse_size(value)
            return Location(kind, value, writable)
    if not (match := _SCHEME.match(rest)):
        if wrong := _MISTYPED.match(rest):
            raise ValueError(
                f"{wrong[0]} is no place for a cache; expected {_SPELLINGS}; a folder of that name is ./{rest}"
            )
        return Location("directory", rest, writable)
    scheme = match[1].lower()
    location = Location(scheme, rest, writable)
    if scheme not in REMOTES:
        raise ValueError(f"{scheme}:// is no place for a cache; expected {_SPELLINGS}")
    try:
        url = urlsplit(rest)
        unknown = {name for name, _ in parse_qsl(url.query, keep_blank_values=True)} - REMOTES[scheme][1]
        missing, _ = not url.hostname, url.port
    except ValueError as error:
        raise ValueError(f"{location}: {error}") from None
    if missing:
        raise ValueError(f"{location} names no {'host' if location.extra in ('redis', 'webdav') else 'bucket'}")
    if location.extra == "redis" and not re.fullmatch(r"/?\d*", url.path, re.ASCII):
        raise ValueError(f"{location}: what follows redis://HOST/ is the number of a database")
    if unknown or url.fragment:
        known = ", ".join(sorted(REMOTES[scheme][1])) or "nothing"
        raise ValueError(f"{location}: unknown {', '.join(sorted(unknown)) or 'fragment'}; {known} may follow the ?")
    return location


def parse_locations(places: str | Iterable[str | Location]) -> tuple[Location, ...]:
    """Several places, first to last: a list, or a text with commas. Raises ValueError."""
    found = [part for part in places.split(",") if part.strip()] if isinstance(places, str) else list(places)
    if not found:
        raise ValueError(f"expected {_SPELLINGS}; found nothing")
    return tuple(place if isinstance(place, Location) else parse_location(place) for place in found)
