# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Several places as one, for `Program.compile(cache=...)` of cuda.core."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from .base import Store, value_bytes
from .layers import Layer

__all__ = ["LayeredStore"]


class LayeredStore(Store):
    """Places under one another: what a lower one has is kept in those above. Failures are warnings and misses."""

    def __init__(self, layers: Sequence[Layer]) -> None:
        self.layers = tuple(layers)
        self.name = ", ".join(layer.name for layer in layers)

    def get(self, key: bytes | str, default: bytes | None = None) -> bytes | None:
        """The bytes of the first layer that has some, or `default`."""
        for number, layer in enumerate(self.layers):
            data = layer.read(key)
            layer.report()
            if data is not None:
                self._write(key, data, self.layers[:number])
                return data
        return default

    def __setitem__(self, key: bytes | str, value: Any) -> None:
        self._write(key, value_bytes(value), self.layers)

    def _write(self, key: bytes | str, data: bytes, layers: Sequence[Layer]) -> None:
        for layer in layers:
            if layer.writable:
                layer.behind(functools.partial(layer.write, key, data))

    def __delitem__(self, key: bytes | str) -> None:
        """Remove an entry from every layer that may be written; a read-only one keeps it."""
        found = False
        for layer in self.layers:
            if layer.writable:
                with layer.guarded("written"):
                    found |= layer.store.get(key) is not None
                    if found:
                        del layer.store[key]
        if not found:
            raise KeyError(key)

    def __len__(self) -> int:
        """Entries of the fullest layer."""
        return max((len(layer.store) for layer in self.layers), default=0)

    def clear(self) -> None:
        """Remove every entry from every layer that may be written. `layers[0].store.clear()` clears the first alone."""
        for layer in self.layers:
            if layer.writable:
                layer.store.clear()

    def close(self) -> None:
        """Wait until what was written behind is there, and let go of the places."""
        for layer in self.layers:
            layer.flush()
            layer.close()
