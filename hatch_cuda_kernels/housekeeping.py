# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""`cache info`, `cache verify` and `cache clear`."""

from __future__ import annotations

from .cache import KernelCache
from .display import format_size, print_json

__all__ = ["run"]


def run(*, action: str, as_json: bool) -> int:
    """Run one of the actions on the cache that the environment names."""
    cache = KernelCache.from_environment()
    return {"info": _info, "verify": _verify, "clear": _clear}[action](cache, as_json)


def _info(cache: KernelCache, as_json: bool) -> int:
    sizes = [size for _, size in cache.entries()]
    hits, misses = cache.totals()
    location = None if cache.directory is None else str(cache.directory)
    if as_json:
        value = {"location": location, "entries": len(sizes), "bytes": sum(sizes), "hits": hits, "misses": misses}
        print_json({"schema": 1, **value})
    elif location is None:
        print("the compile cache is off")
    else:
        print(f"{location}\n{len(sizes)} entries, {format_size(sum(sizes))}, {hits} hits, {misses} misses")
    return 0


def _verify(cache: KernelCache, as_json: bool) -> int:
    problems = [{"path": str(path), "problem": text} for path, text in cache.verify()]
    if as_json:
        print_json({"schema": 1, "ok": not problems, "problems": problems})
    else:
        for problem in problems:
            print(f"{problem['path']}: {problem['problem']}")
        print(f"{len(problems)} entries fail; they count as misses and are written anew" if problems else "all fine")
    return 1 if problems else 0


def _clear(cache: KernelCache, as_json: bool) -> int:
    before = [size for _, size in cache.entries()]
    cache.clear()
    left = sum(1 for _ in cache.entries())
    removed = max(0, len(before) - left)
    if as_json:
        print_json({"schema": 1, "removed": removed, "bytes": sum(before), "left": left})
    else:
        print(f"removed {removed} entries, {format_size(sum(before))}")
    return 0
