# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Which image a device gets, and why: one pure function over a manifest's images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .arch import Architecture, Capability, cubin_verdict, format_capability, ptx_verdict
from .manifest import Image

__all__ = ["Candidate", "Selection", "fallback_architecture", "select"]

_RANK = {"cubin": 2, "ptx": 1, "jit": 0}


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One way to get a kernel onto a device. `accepted`: it would run there, whether or not it was taken."""

    kind: Literal["cubin", "ptx", "jit"]
    arch: str
    accepted: bool
    reason: str
    image: Image | None = None
    """The image of the manifest; None for the run-time fallback."""

    def to_dict(self) -> dict[str, Any]:
        """As `explain --json` has it."""
        return {"kind": self.kind, "arch": self.arch, "accepted": self.accepted, "reason": self.reason}


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The choice for one kernel on one device, with every candidate, best first."""

    kernel: str
    compute_capability: str
    driver_version: str
    choice: Candidate | None
    candidates: tuple[Candidate, ...]

    def to_dict(self) -> dict[str, Any]:
        """As `explain --json` has it."""
        choice = self.choice
        return {
            "schema": 1,
            "kernel": self.kernel,
            "compute_capability": self.compute_capability,
            "driver_version": self.driver_version,
            "choice": None if choice is None else {"kind": choice.kind, "arch": choice.arch},
            "candidates": [candidate.to_dict() for candidate in self.candidates],
        }

    def __str__(self) -> str:
        taken = f"{self.choice.kind} {self.choice.arch}" if self.choice else "nothing serves"
        where = f"compute capability {self.compute_capability}, driver of CUDA {self.driver_version}"
        lines = [f"{self.kernel} on {where}: {taken}"]
        for candidate in self.candidates:
            mark = "->" if candidate is self.choice else ("ok" if candidate.accepted else "no")
            lines.append(f"  {mark} {candidate.kind:5} {candidate.arch:13} {candidate.reason}")
        return "\n".join(lines)


def fallback_architecture(images: Sequence[Image], device: Capability) -> Architecture:
    """The architecture that the run-time fallback compiles for: the device's own, with the suffix that the author
    listed for that number (`a` before `f`), because such a source may need it."""
    number = device[0] * 10 + device[1]
    listed = [image.architecture for image in images if image.architecture.number == number]
    best = max(listed, key=lambda architecture: architecture.preference, default=Architecture(number))
    return Architecture(number, best.suffix)


def select(
    *,
    kernel: str,
    images: Sequence[Image],
    device: Capability,
    driver: tuple[int, int],
    compiler: tuple[int, int],
    has_sources: bool,
    jit: Literal["allow", "forbid", "force"] = "allow",
) -> Selection:
    """Choose among `images`, all of which hold the kernel, and the run-time fallback.

    `device` is a compute capability, `driver` the newest CUDA version that the driver supports, `compiler` the CUDA
    version of the NVRTC that made the images.
    """
    candidates = [_judge(image, device, driver, compiler) for image in images]
    target = str(fallback_architecture(images, device))
    if jit == "forbid":
        candidates.append(Candidate(kind="jit", arch=target, accepted=False, reason="HATCH_CUDA_KERNELS_JIT=0"))
    elif not has_sources:
        candidates.append(Candidate(kind="jit", arch=target, accepted=False, reason="the package ships no sources"))
    else:
        reason = f"the shipped source can be compiled there, once, by an NVRTC that has {target} and suits the driver"
        if jit == "force":
            reason += "; forced by HATCH_CUDA_KERNELS_JIT=force"
        candidates.append(Candidate(kind="jit", arch=target, accepted=True, reason=reason))
    candidates.sort(key=_order, reverse=True)
    serving = [c for c in candidates if c.accepted and (jit != "force" or c.kind == "jit")]
    return Selection(
        kernel=kernel,
        compute_capability=format_capability(device),
        driver_version=format_capability(driver),
        choice=serving[0] if serving else None,
        candidates=tuple(candidates),
    )


def _order(candidate: Candidate) -> tuple[bool, int, tuple[int, int]]:
    preference = candidate.image.architecture.preference if candidate.image else (0, 0)
    return candidate.accepted, _RANK[candidate.kind], preference


def _judge(image: Image, device: Capability, driver: tuple[int, int], compiler: tuple[int, int]) -> Candidate:
    architecture = image.architecture
    made, here = format_capability(compiler), format_capability(driver)
    if architecture.virtual:
        accepted, reason = ptx_verdict(architecture, device)
        if accepted and driver < compiler:
            accepted, reason = False, f"PTX of CUDA {made} needs a driver at least as new; this one is of CUDA {here}"
    else:
        accepted, reason = cubin_verdict(architecture, device)
        if accepted and driver[0] < compiler[0]:
            accepted, reason = False, f"a cubin of CUDA {made} needs a driver of CUDA {compiler[0]}, not {here}"
    kind: Literal["cubin", "ptx"] = "ptx" if architecture.virtual else "cubin"
    return Candidate(kind=kind, arch=str(architecture), accepted=accepted, reason=reason, image=image)
