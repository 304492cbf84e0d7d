# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Compile jobs made from a few files, for tests of the compile and of the cache, and in processes that they start."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hatch_cuda_kernels.arch import Architecture
from hatch_cuda_kernels.compiler import compile_job
from hatch_cuda_kernels.modules import ModuleSpec
from hatch_cuda_kernels.nvrtc import Workspace, workspace
from hatch_cuda_kernels.plan import CompiledImage, CompileJob, Unit, make_unit
from hatch_cuda_kernels.sources import ProjectTree
from hatch_cuda_kernels.toolchain import probe

__all__ = [
    "KERNEL",
    "SLOW",
    "TESTS",
    "can_mount",
    "compile_alone",
    "compile_files",
    "in_mounts",
    "make_job",
    "one_unit",
    "write",
]

TESTS = Path(__file__).parent
KERNEL = 'extern "C" __global__ void k(int* p) { *p = 1; }\n'

SLOW = "template <int N> struct S {\n"
SLOW += "  static __device__ int f(int x) { return S<N - 1>::f(x * N + 1) ^ S<N - 2>::f(x); } };\n"
SLOW += "template <> struct S<0> { static __device__ int f(int x) { return x; } };\n"
SLOW += "template <> struct S<1> { static __device__ int f(int x) { return x + 1; } };\n"
SLOW += 'extern "C" __global__ void k(int* p) { *p = S<27>::f(*p); }\n'
"""A source that takes minutes to compile."""


def write(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files, by label, below a root."""
    for label, content in files.items():
        path = root / label
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def one_unit(root: Path, source: str = "k.cu", **options: Any) -> Unit:
    """The unit of one source of a project at `root`."""
    values: dict[str, Any] = {
        "package": "demo",
        "name": "m",
        "include_dirs": (),
        "options": {},
        "defines": {},
        "name_expressions": (),
        "archs": (),
        "toolkit_headers": "none",
        "host_code": "skip",
        **options,
    }
    values |= {name: tuple(values[name]) for name in ("include_dirs", "name_expressions")}
    return make_unit(ProjectTree(root), "demo", ModuleSpec(source=source, **values))


def make_job(root: Path, source: str = "k.cu", arch: str = "sm_80", **options: Any) -> CompileJob:
    """The job of one source for one architecture, by the NVRTC at hand."""
    unit = one_unit(root, source, **options)
    return CompileJob(unit=unit, architecture=Architecture.parse(arch), release=probe().release)


def compile_alone(job: CompileJob) -> CompiledImage:
    """Compile a job in a workspace of its own, without a cache."""
    with workspace() as space:
        return compile_job(job, space)


def compile_files(root: Path, files: Mapping[str, str | bytes], space: Workspace, **options: Any) -> CompiledImage:
    """Write files and compile `k.cu`, or the `source` given."""
    return compile_job(make_job(write(root, files), **options), space)


def can_mount() -> bool:
    """Whether this user may mount file systems in a namespace of its own."""
    unshare = shutil.which("unshare")
    return (
        unshare is not None
        and hasattr(os, "geteuid")
        and os.geteuid() == 0
        and (
            subprocess.run([unshare, "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False)
        ).returncode
        == 0
    )


def in_mounts(mounts: str, command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command where the shell line `mounts` was run before, in a mount namespace of its own."""
    line = f'{mounts} && exec "$@"'
    arguments = ["unshare", "-m", "sh", "-ec", line, "sh", *command]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False, **options)
