# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Architectures: their spellings, their order, and the table of what runs where.

The rules are those of the CUDA C++ programming guide ("Compute capabilities", "Binary compatibility",
"PTX compatibility", "Family-specific and architecture-specific features"); the table below is their only copy.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

__all__ = [
    "CAPABILITIES",
    "FAMILIES",
    "TEGRA",
    "Architecture",
    "Capability",
    "cubin_verdict",
    "expand_architectures",
    "format_capability",
    "parse_version",
    "ptx_verdict",
    "release_version",
    "split_list",
    "unsupported_reason",
]

Capability = tuple[int, int]
"""Compute capability of a device: (major, minor)."""

CAPABILITIES: tuple[Capability, ...] = (
    *((7, 5), (8, 0), (8, 6), (8, 7), (8, 8), (8, 9), (9, 0)),
    *((10, 0), (10, 3), (10, 7), (11, 0), (12, 0), (12, 1)),
)
"""Capabilities of the devices that CUDA 13 serves: the columns of every table."""

TEGRA: frozenset[Capability] = frozenset({(5, 3), (6, 2), (7, 2), (8, 7), (10, 1), (11, 0)})
"""Capabilities of integrated (Tegra) parts: their cubins run on exactly that capability, and no other's do."""

FAMILIES: dict[int, frozenset[Capability]] = {
    100: frozenset({(10, 0), (10, 3), (10, 7)}),
    101: frozenset({(10, 1)}),
    103: frozenset({(10, 3)}),
    107: frozenset({(10, 7)}),
    110: frozenset({(11, 0)}),
    120: frozenset({(12, 0), (12, 1)}),
    121: frozenset({(12, 1)}),
}
"""Architecture number of an `f` target -> the capabilities of its family that it runs on."""

_FIRST_WITH_SUFFIX = {"": 0, "a": 90, "f": 100}
_SUFFIX_RANK = {"a": 2, "f": 1, "": 0}

_TORCH = r"(?a:(?P<major>[1-9]\d?)\.(?P<minor>\d)(?P<suffix>[af]?)(?P<ptx>\+PTX)?)"
_CMAKE = r"(?a:(?P<number>[1-9]\d{1,2})(?P<suffix>[af]?)(?:-(?P<kind>real|virtual))?)"
_KEYWORDS = ("all", "all-major", "native")


@dataclass(frozen=True, order=True)
class Architecture:
    """One compile target as NVRTC spells it: `sm_90a` (makes a cubin) or `compute_90` (makes PTX)."""

    number: int
    suffix: str = ""
    virtual: bool = False

    def __str__(self) -> str:
        return f"{'compute' if self.virtual else 'sm'}_{self.number}{self.suffix}"

    @property
    def capability(self) -> Capability:
        """The compute capability that it is named for."""
        return divmod(self.number, 10)

    @property
    def format(self) -> str:
        """`"cubin"` or `"ptx"`, which is also the suffix of the image's file."""
        return "ptx" if self.virtual else "cubin"

    @property
    def preference(self) -> tuple[int, int]:
        """Among images that run on one device the greatest wins: nearest capability, then `a`, `f`, plain."""
        return (self.number, _SUFFIX_RANK[self.suffix])

    @classmethod
    def parse(cls, name: str) -> Architecture:
        """Parse NVRTC's own spelling. Raises ValueError for anything else."""
        kind, _, target = name.partition("_")
        suffix = target[-1:] if target.endswith(("a", "f")) else ""
        number = target.removesuffix(suffix)
        plain = number.isascii() and number.isdigit() and len(number) in (2, 3) and number[0] != "0"
        if kind not in ("sm", "compute") or not plain:
            raise ValueError(f"{name!r} is no architecture as NVRTC spells it, such as sm_90a or compute_90")
        return cls(int(number), suffix, kind == "compute")


def format_capability(capability: Capability) -> str:
    """`(9, 0)` -> `"9.0"`."""
    return f"{capability[0]}.{capability[1]}"


def parse_version(value: str | Sequence[int], what: str) -> tuple[int, int]:
    """A compute capability or CUDA version given as `"9.0"` or `(9, 0)`. Raises ValueError."""
    if isinstance(value, str):
        match = re.fullmatch(r"(\d{1,3})\.(\d{1,2})", value, re.ASCII)
        if match:
            return int(match[1]), int(match[2])
    elif isinstance(value, (tuple, list)) and len(value) == 2 and all(type(p) is int and p >= 0 for p in value):
        return int(value[0]), int(value[1])
    raise ValueError(f"{what} must look like '9.0' or (9, 0), not {value!r}")


def release_version(release: str) -> tuple[int, int]:
    """`"13.5.37"` -> `(13, 5)`."""
    major, minor = release.split(".")[:2]
    return int(major), int(minor)


def split_list(text: str) -> list[str]:
    """Split a pasted list on commas, semicolons and white space, as TORCH_CUDA_ARCH_LIST and CUDAARCHS have them."""
    return [part for part in re.split(r"[,;\s]+", text) if part]


def cubin_verdict(architecture: Architecture, device: Capability) -> tuple[bool, str]:
    """Whether a cubin for `architecture` runs on `device`, and the rule that says so."""
    target, here = format_capability(architecture.capability), format_capability(device)
    if architecture.suffix == "a":
        if architecture.capability == device:
            return True, f"made for exactly {here}"
        return False, f"{architecture} is architecture-specific: it runs on {target} only"
    if architecture.suffix == "f":
        family = FAMILIES.get(architecture.number, frozenset({architecture.capability}))
        if device in family:
            return True, f"{here} belongs to the family of {architecture}"
        return False, f"{here} is not in the family of {architecture}"
    if architecture.capability == device:
        return True, f"made for exactly {here}"
    if architecture.capability in TEGRA or device in TEGRA:
        part = target if architecture.capability in TEGRA else here
        return False, f"{part} is a Tegra part: cubins do not cross between it and others"
    if architecture.capability[0] != device[0]:
        return False, f"cubins do not cross the major compute capability ({target} to {here})"
    if architecture.capability > device:
        return False, f"made for {target}, newer than {here}"
    return True, f"{target} runs on {here}: same major, minor not lower"


def ptx_verdict(architecture: Architecture, device: Capability) -> tuple[bool, str]:
    """Whether PTX for `architecture` can be compiled by a driver for `device`, the PTX version left aside."""
    if architecture.suffix:
        return cubin_verdict(architecture, device)
    target, here = format_capability(architecture.capability), format_capability(device)
    if architecture.capability > device:
        return False, f"PTX for {target} needs a capability of at least that, not {here}"
    return True, f"PTX for {target} can be compiled for {here}"


def unsupported_reason(architecture: Architecture, supported: Sequence[int], release: str) -> str | None:
    """Why NVRTC `release`, which has the base architectures `supported`, cannot compile `architecture`; or None.

    `a` exists from 9.0 on, `f` from 10.0 on (CUDA 12.9 and newer).
    """
    if architecture.number not in supported:
        has = " ".join(f"sm_{number}" for number in supported)
        hint = " (sm_101 is called sm_110 since CUDA 13)" if architecture.number == 101 else ""
        return f"{architecture} is not supported by NVRTC {release}{hint}; it has: {has}"
    first = _FIRST_WITH_SUFFIX[architecture.suffix]
    if architecture.number < first:
        kind = "sm" if not architecture.virtual else "compute"
        return (
            f"{architecture} does not exist: the suffix {architecture.suffix!r} begins with {kind}_{first}"
            f"{architecture.suffix}; write {kind}_{architecture.number}"
        )
    if architecture.suffix == "f" and [int(part) for part in release.split(".")[:2]] < [12, 9]:
        return f"{architecture} needs CUDA 12.9 or newer, which brought the suffix 'f'; NVRTC here is {release}"
    return None


def expand_architectures(
    spellings: Iterable[str],
    *,
    supported: Callable[[], Sequence[int]] | None = None,
    native: Callable[[], Sequence[Capability]] | None = None,
) -> tuple[list[Architecture], list[str]]:
    """Turn spellings (see the reference of `archs`) into architectures without duplicates, in order.

    `supported` gives the compiler's base architectures for `all` and `all-major`, `native` the capabilities of the
    devices of this machine; without them those keywords are checked but expand to nothing.
    Returns the architectures and the problems found, one sentence each.
    """
    found: dict[Architecture, None] = {}
    problems: list[str] = []
    for spelling in spellings:
        if spelling == "native":
            for capability in native() if native else ():
                found[Architecture(capability[0] * 10 + capability[1])] = None
        elif spelling in ("all", "all-major"):
            numbers = sorted(supported()) if supported else []
            if spelling == "all-major":
                numbers = [min(n for n in numbers if n // 10 == major) for major in sorted({n // 10 for n in numbers})]
            for number in numbers:
                found[Architecture(number)] = None
            if numbers:
                found[Architecture(numbers[-1], virtual=True)] = None
        elif parsed := _parse_spelling(spelling):
            found.update(dict.fromkeys(parsed))
        else:
            problems.append(_unknown_spelling(spelling))
    return list(found), problems


def _parse_spelling(spelling: str) -> list[Architecture]:
    with contextlib.suppress(ValueError):
        return [Architecture.parse(spelling)]
    if match := re.fullmatch(_TORCH, spelling):
        number = int(match["major"]) * 10 + int(match["minor"])
        real = Architecture(number, match["suffix"])
        return [real, Architecture(number, match["suffix"], True)] if match["ptx"] else [real]
    if match := re.fullmatch(_CMAKE, spelling):
        kinds = {"real": [False], "virtual": [True], None: [False, True]}[match["kind"]]
        return [Architecture(int(match["number"]), match["suffix"], virtual) for virtual in kinds]
    return []


def _unknown_spelling(spelling: str) -> str:
    message = (
        f"{spelling!r} is no architecture; write sm_90, sm_90a, compute_90, 9.0, 9.0+PTX, 90-real, 90-virtual, 90, "
        "all, all-major or native"
    )
    cleaned = re.sub(r"[\s_]+", "_", spelling.strip().lower()).replace("sm-", "sm_")
    for guess in (cleaned, f"sm_{cleaned.removeprefix('sm').strip('_')}"):
        if _parse_spelling(guess) or guess in _KEYWORDS:
            return f"{message}. Did you mean {guess!r}?"
    import difflib

    near = difflib.get_close_matches(cleaned, _KEYWORDS, n=1)
    return f"{message}. Did you mean {near[0]!r}?" if near else message
