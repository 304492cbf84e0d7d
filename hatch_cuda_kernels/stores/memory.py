# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The memory of this process: above another place, repeated look-ups touch no disk."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

from .base import Store, key_bytes, value_bytes

__all__ = ["MemoryStore"]


class MemoryStore(Store):
    """Entries of this process, the least recently used of which go first."""

    name = "memory"

    def __init__(self, *, max_size: int | None = None) -> None:
        self._max_size = max_size
        self._entries: OrderedDict[bytes, bytes] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def get(self, key: bytes | str, default: bytes | None = None) -> bytes | None:
        """The bytes under `key`, or `default`."""
        key = key_bytes(key)
        with self._lock:
            if key not in self._entries:
                return default
            self._entries.move_to_end(key)
            return self._entries[key]

    def __setitem__(self, key: bytes | str, value: Any) -> None:
        key, data = key_bytes(key), value_bytes(value)
        with self._lock:
            self._size += len(data) - len(self._entries.pop(key, b""))
            self._entries[key] = data
            while self._max_size is not None and self._size > self._max_size:
                self._size -= len(self._entries.popitem(last=False)[1])

    def __delitem__(self, key: bytes | str) -> None:
        with self._lock:
            self._size -= len(self._entries.pop(key_bytes(key)))

    def __len__(self) -> int:
        return len(self._entries)

    def usage(self) -> tuple[int, int]:
        """(entries, their bytes)."""
        return len(self._entries), self._size

    def clear(self) -> None:
        """Remove every entry."""
        with self._lock:
            self._entries.clear()
            self._size = 0
