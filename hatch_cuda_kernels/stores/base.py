# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What every place of the cache can do, in the words of cuda.core's `ProgramCacheResource`: bytes in, bytes out."""

from __future__ import annotations

import abc
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["MAX_ENTRY", "Store", "key_bytes", "key_digest", "value_bytes"]

MAX_ENTRY = 1 << 30
"""No entry is larger; what claims to be is not read."""


def key_bytes(key: bytes | str) -> bytes:
    """A key as bytes: text is its UTF-8. Raises TypeError."""
    if isinstance(key, str):
        return key.encode()
    if isinstance(key, (bytes, bytearray)):
        return bytes(key)
    raise TypeError(f"keys of a cache are bytes or str, not {type(key).__name__}")


def key_digest(key: bytes | str) -> str:
    """Under which name a key's entry is kept."""
    return hashlib.sha256(key_bytes(key)).hexdigest()


def value_bytes(value: Any) -> bytes:
    """What is stored of a value: an `ObjectCode` gives its code, read from its file now where it has one."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    code = getattr(value, "code", None)
    if isinstance(code, str):
        return Path(code).read_bytes()
    if isinstance(code, (bytes, bytearray, memoryview)):
        return bytes(code)
    raise TypeError(f"values of a cache are bytes or an ObjectCode, not {type(value).__name__}")


class Store(abc.ABC):
    """Bytes by key. Its methods raise what goes wrong; a Layer (layers.py) turns that into warnings.

    There is no `__contains__`, on purpose: only `get` tells, since others may write or remove at any moment.
    """

    name: str
    """Where it is, for people: without a password."""
    remote = False
    """Whether reading and writing wait for another machine."""

    @abc.abstractmethod
    def get(self, key: bytes | str, default: bytes | None = None) -> bytes | None:
        """The bytes under `key`, or `default`."""

    @abc.abstractmethod
    def __setitem__(self, key: bytes | str, value: Any) -> None: ...

    @abc.abstractmethod
    def __delitem__(self, key: bytes | str) -> None: ...

    @abc.abstractmethod
    def __len__(self) -> int: ...

    @abc.abstractmethod
    def clear(self) -> None:
        """Remove every entry."""

    def usage(self) -> tuple[int, int] | None:
        """(entries, their bytes); None where asking would take long."""
        return None

    def __getitem__(self, key: bytes | str) -> bytes:
        data = self.get(key)
        if data is None:
            raise KeyError(key)
        return data

    def update(self, items: Mapping[Any, Any] | Iterable[tuple[bytes | str, Any]], /) -> None:
        """Store several; a failure on the way leaves the earlier ones stored."""
        for key, value in items.items() if isinstance(items, Mapping) else items:
            self[key] = value

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Let go of what is held open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
