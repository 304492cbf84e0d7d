# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What a build says of itself: its errors, its warnings and its report."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from .advice import folders_that_hold, missing_headers, repeat_command
from .arch import Architecture, format_capability
from .errors import CompilationError, ConfigurationError, CudaKernelsError
from .plan import CompileJob, PlacedImage
from .toolchain import Toolchain

__all__ = ["Reporter", "all_errors", "build_report", "report_row", "show_warnings", "write_report"]


class Reporter(Protocol):
    """Where a build's messages go."""

    def info(self, message: str) -> None:
        """Something that was done."""

    def step(self, done: int, total: int, what: str) -> None:
        """`done` of `total` images are there, `what` last."""

    def warning(self, message: str) -> None:
        """Something that the author should read."""


def all_errors(errors: Mapping[CompileJob, CudaKernelsError], images: int, root: Path) -> CudaKernelsError:
    """One error for all that failed of so many images; of their kind, where they are of one kind."""
    alike: dict[str, list[CompileJob]] = {}
    for job, error in errors.items():
        alike.setdefault(str(error).removeprefix(f"{job}: "), []).append(job)
    texts = [_told(text, failed, errors[failed[0]], root) for text, failed in alike.items()]
    kinds = {type(error) for error in errors.values()}
    kind = kinds.pop() if len(kinds) == 1 else CompilationError
    return kind(f"{len(errors)} of {images} images failed:\n\n" + "\n\n".join(texts))


def _told(text: str, failed: Sequence[CompileJob], error: CudaKernelsError, root: Path) -> str:
    """What is said of images that failed alike, with what only the project's tree can tell."""
    lines = [f"{', '.join(map(str, failed))}: {text}"]
    for header in missing_headers(text):
        folders = folders_that_hold(header, root)
        lines += [f'hint: the project has {header} in {folder}: include-dirs = ["{folder}"]' for folder in folders[:3]]
    if isinstance(error, CompilationError):
        lines.append(f"repeat: {repeat_command(failed[0])}")
    return "\n".join(lines)


def show_warnings(
    warnings: Iterable[tuple[str, Architecture]],
    targets: Sequence[Sequence[Architecture]],
    toolchain: Toolchain,
    reporter: Reporter,
) -> None:
    """Each warning once, with the architectures that it was given for."""
    seen: dict[str, list[str]] = {}
    for text, architecture in warnings:
        seen.setdefault(text, []).append(str(architecture))
    for text, architectures in seen.items():
        reporter.warning(f"[{' '.join(architectures)}] {text}")
    kinds = {architecture.virtual for target in targets for architecture in target}
    if kinds == {True, False} and toolchain.version[1] > 0:
        major, version = toolchain.version[0], format_capability(toolchain.version)
        reporter.warning(
            f"the PTX of this build needs a driver of CUDA {version} or newer, its cubins only one of CUDA {major}.0; "
            f'for PTX that older drivers take, pin an older compiler, such as nvrtc = "{major}.0.{_FIRST_PATCH[major]}"'
        )


_FIRST_PATCH = {12: "140", 13: "88"}
"""Newest patch of each major's first release."""


def report_row(job: CompileJob, image: PlacedImage, finished: float | None) -> dict[str, Any]:
    """An image in the report; `finished` seconds after the start it was compiled, or the cache had it."""
    row = {
        "package": job.unit.package,
        "module": job.unit.module,
        "arch": str(job.architecture),
        "outcome": "cached",
        "seconds": 0.0,
        "finished": None,
        "memory": 0,
        "bytes": image.size,
        "warnings": list(image.warnings),
        "passed_over": [omission.to_dict() for omission in image.passed_over],
    }
    if finished is not None:
        row |= {"outcome": "compiled", "seconds": round(image.seconds, 6), "finished": round(finished, 6)}
        row["memory"] = image.memory
    return row


def build_report(rows: Iterable[dict[str, Any]], release: str, seconds: float) -> dict[str, Any]:
    """The report of a build that took so many seconds with NVRTC `release`."""
    images = list(rows)
    compiled = sum(row["outcome"] == "compiled" for row in images)
    return {
        "schema": 1,
        "nvrtc": release,
        "compiled": compiled,
        "cached": len(images) - compiled,
        "seconds": round(seconds, 6),
        "images": images,
    }


def write_report(path: Path, report: Mapping[str, Any]) -> None:
    """Raises ConfigurationError where it cannot be written, as to a FIFO that nobody reads."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NONBLOCK", 0), 0o666)
        with open(handle, "w", encoding="utf-8") as stream:
            if hasattr(os, "O_NONBLOCK"):
                os.set_blocking(handle, True)
            stream.write(json.dumps(report, indent=1) + "\n")
    except OSError as error:
        raise ConfigurationError(f"HATCH_CUDA_KERNELS_REPORT: {path} cannot be written ({error.strerror})") from None
