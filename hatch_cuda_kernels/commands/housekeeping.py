# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""`cache info`, `cache verify` and `cache clear`."""

from __future__ import annotations

from typing import Any

from ..cache import KernelCache
from ..display import Ink, columns_of, format_size, print_json, table
from ..stores.state import Counts

__all__ = ["run"]


def run(*, action: str, as_json: bool) -> int:
    """Run one of the actions on the cache that the environment names."""
    cache = KernelCache.from_environment()
    try:
        return {"info": _info, "verify": _verify, "clear": _clear}[action](cache, as_json)
    finally:
        for layer in cache.layers:
            layer.close()


def _info(cache: KernelCache, as_json: bool) -> int:
    totals = cache.layer_totals()
    layers: list[dict[str, Any]] = []
    for layer in cache.layers:
        counts, usage = totals.get(layer.name, Counts()), layer.usage()
        layers.append(
            {
                "place": layer.name,
                "writable": layer.writable,
                "entries": None if usage is None else usage[0],
                "bytes": None if usage is None else usage[1],
                "hits": counts.hits,
                "misses": counts.misses,
                "read": counts.bytes_read,
                "written": counts.bytes_written,
                "errors": counts.errors,
            }
        )
    entries, size = (sum(layer[what] or 0 for layer in layers) for what in ("entries", "bytes"))
    hits, misses = cache.totals()
    if as_json:
        location = layers[0]["place"] if layers else None
        value = {"location": location, "entries": entries, "bytes": size, "hits": hits, "misses": misses}
        print_json({"schema": 1, **value, "layers": layers})
    elif not layers:
        print("the compile cache is off")
    else:
        print(f"{entries} entries, {format_size(size)}, {hits} hits, {misses} misses")
        head = ["place", "entries", "size", "hits", "misses", "read", "written", "errors"]
        print("\n".join(table([head, *map(_row, layers)], columns_of(), ink=Ink())))
    return 0


def _row(layer: dict[str, Any]) -> list[str]:
    numbers = [
        "-" if layer["entries"] is None else str(layer["entries"]),
        "-" if layer["bytes"] is None else format_size(layer["bytes"]),
        str(layer["hits"]),
        str(layer["misses"]),
        format_size(layer["read"]),
        format_size(layer["written"]),
        str(layer["errors"]),
    ]
    return [layer["place"] if layer["writable"] else f"read:{layer['place']}", *numbers]


def _verify(cache: KernelCache, as_json: bool) -> int:
    problems = [{"path": path, "problem": text} for path, text in cache.verify()]
    if as_json:
        print_json({"schema": 1, "ok": not problems, "problems": problems})
    else:
        for problem in problems:
            print(f"{problem['path']}: {problem['problem']}")
        print(f"{len(problems)} entries fail; they count as misses and are written anew" if problems else "all fine")
    return 1 if problems else 0


def _clear(cache: KernelCache, as_json: bool) -> int:
    before, size = cache.usage()
    cache.clear()
    left, _ = cache.usage()
    removed = max(0, before - left)
    if as_json:
        print_json({"schema": 1, "removed": removed, "bytes": size, "left": left})
    else:
        print(f"removed {removed} entries, {format_size(size)}")
    return 0
