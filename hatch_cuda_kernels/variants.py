# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Variants of a module: one source compiled for every combination of some macros' values, and what each is called.

`gemm[TILE=16,T=float]` is the module `gemm` with these two macros. The order of the macros and white space do not
count when a module is asked for.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

from .manifest import squeeze_name

__all__ = ["combinations", "image_stem", "module_key", "value_text", "variant_name"]

_PORTABLE = r"[A-Za-z0-9_.\-]+"
_LONGEST_STEM = 100


def value_text(value: str | bool) -> str:
    """A macro's value as a variant's name has it. `true` is a bare macro, `false` one that is not defined."""
    return squeeze_name(value) if isinstance(value, str) else str(value).lower()


def combinations(variants: Mapping[str, Sequence[str | bool]]) -> Iterator[dict[str, str | bool]]:
    """Every choice of one value for each macro; one empty choice where there are no variants."""
    return (dict(zip(variants, chosen, strict=True)) for chosen in itertools.product(*variants.values()))


def variant_name(name: str, chosen: Mapping[str, str | bool]) -> str:
    """`gemm` and a choice -> `gemm[TILE=16]`."""
    values = ",".join(f"{macro}={value_text(value)}" for macro, value in chosen.items())
    return f"{name}[{values}]" if values else name


def module_key(name: str) -> str:
    """What is the same for all spellings of one module's name."""
    base, bracket, values = name.strip().partition("[")
    if not bracket or not values.endswith("]"):
        return name.strip()
    return f"{base.rstrip()}[{','.join(sorted(map(squeeze_name, values[:-1].split(','))))}]"


def image_stem(name: str) -> str:
    """How the files of a module's images start: a variant's name is made one that every system takes."""
    if re.fullmatch(_PORTABLE, name):
        return name
    key = module_key(name)
    stem = re.sub(r"[^A-Za-z0-9_.\-]+", "-", key).strip("-")[:_LONGEST_STEM]
    return f"{stem}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"
