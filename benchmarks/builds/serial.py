# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""A bare serial loop over NVRTC: project, file for the times, architectures, and options. Run by ways.py."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from cuda.bindings import nvrtc


def compile_one(source: Path, flags: list[bytes]) -> bytes:
    """One image. The source's own folder is searched for quoted includes, as by any compiler."""
    _, program = nvrtc.nvrtcCreateProgram(source.read_bytes(), str(source).encode(), 0, [], [])
    (error,) = nvrtc.nvrtcCompileProgram(program, len(flags), flags)
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = b"\0" * size
    nvrtc.nvrtcGetProgramLog(program, log)
    if error:
        raise SystemExit(f"{source}: {log.decode()}")
    _, size = nvrtc.nvrtcGetCUBINSize(program)
    data = b"\0" * size
    nvrtc.nvrtcGetCUBIN(program, data)
    nvrtc.nvrtcDestroyProgram(program)
    return data


@contextlib.contextmanager
def laid_out() -> Iterator[list[bytes]]:
    """Options for the toolkit's headers where NVRTC carries them; none for an older one."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as headers:
        if nvrtc.nvrtcVersion()[1:] < (13, 3):
            yield []
            return
        _, program = nvrtc.nvrtcCreateProgram(b"", b"headers.cu", 0, [], [])
        layout = [f"--use-bundled-headers={headers}".encode(), b"--fdevice-syntax-only"]
        nvrtc.nvrtcCompileProgram(program, len(layout), layout)
        nvrtc.nvrtcDestroyProgram(program)
        yield [f"-I{headers}".encode(), f"-I{headers}/cccl".encode()]


def main() -> None:
    """Compile every source for every architecture, one after the other."""
    project, times = Path(sys.argv[1]), Path(sys.argv[2])
    archs = [word for word in sys.argv[3:] if not word.startswith("-")]
    flags = [word.encode() for word in sys.argv[3:] if word.startswith("-")]
    with laid_out() as bundled:
        includes = [flag for flag in flags if not (bundled and flag.startswith(b"-I"))] + bundled
        seconds = []
        for source in sorted(project.glob("demo/*.cu")):
            for arch in archs:
                begin = time.perf_counter()
                data = compile_one(source, [f"-arch={arch}".encode(), b"--ptxas-options=-v", b"--no-cache", *includes])
                seconds.append(time.perf_counter() - begin)
                source.with_suffix(f".{arch}.cubin").write_bytes(data)
    times.write_text(json.dumps(seconds))


if __name__ == "__main__":
    main()
