# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the CUDA driver (``libcuda.so.1``), so that the real ``cuda.core`` runs without a GPU.

``build()`` compiles it, ``environment()`` makes the environment of a subprocess that uses it. The library has
to be chosen before a process starts, so nothing here works for the running process, nor should it.

It reads images and decides as NVIDIA documents it which of them runs on the device of the current context
(without one: on any device); it executes nothing. What goes through the CUDA runtime instead of the driver,
``Device.sync()`` and ``Device.pci_bus_id`` for example, ends in an error. ``environment()`` sets the
variables that it obeys:

``FAKE_CUDA_DEVICES``
    Capabilities of the devices, ``"9.0,8.6"``. Empty: ``cuInit`` returns ``CUDA_ERROR_NO_DEVICE`` (100).
``FAKE_CUDA_DRIVER``
    The driver's CUDA version, ``"13.5"``. It decides which PTX versions, which cubins (none of a later major
    version) and which functions there are.
``FAKE_CUDA_INIT_ERROR``
    A number that ``cuInit`` returns.
``FAKE_CUDA_REFUSE``
    Errors for images of an architecture, ``"sm_90:209,compute_80:218"``: ``sm_`` for cubins, ``compute_`` for
    PTX.
``FAKE_CUDA_LAZY``
    ``1``: whether an image runs on the device is found out at its first use (attributes, launch), not when
    loading.
``FAKE_CUDA_LOAD_DELAY``
    Milliseconds that loading an image takes, to widen races.
``FAKE_CUDA_LOG``
    A file that gets a line of JSON for each call that matters; ``read_log()`` reads it.
``FAKE_CUDA_LOG_LOOKUPS``
    ``1``: the log has the look-ups of functions too.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["COMPILER", "SOURCE", "build", "environment", "fnv1a64", "read_log"]

SOURCE = Path(__file__).with_name("fake_cuda.c")
COMPILER = "gcc"
_SONAME = "libcuda.so.1"
_FLAGS = (
    "-std=c11",
    "-O1",
    "-g",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-pthread",
    f"-Wl,-soname,{_SONAME}",
)


def build(directory: Path) -> Path:
    """Compile the library below ``directory``, unless that was done, and return the folder that holds it.

    The folder is named by a digest of the source and the options. Several processes may build at once.
    """
    compiler = shutil.which(COMPILER)
    if compiler is None:
        raise FileNotFoundError(f"{COMPILER} is needed to build the fake CUDA driver")
    digest = hashlib.sha256("\0".join(_FLAGS).encode() + b"\0" + SOURCE.read_bytes()).hexdigest()
    folder = directory / f"fake-cuda-{digest[:16]}"
    library = folder / _SONAME
    if library.is_file():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        result = Path(temporary) / _SONAME
        command = [compiler, *_FLAGS, "-o", str(result), str(SOURCE)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode:
            raise RuntimeError(f"{COMPILER} failed on {SOURCE.name}:\n{done.stderr}")
        result.replace(library)
    return folder


def environment(
    directory: Path,
    *,
    capabilities: Iterable[str] = ("9.0",),
    driver: str = "13.5",
    init_error: int | None = None,
    refuse: Mapping[str, int] | None = None,
    lazy: bool = False,
    load_delay: int = 0,
    log: Path | None = None,
    base: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the whole environment for a subprocess that finds the fake driver.

    ``directory`` is what ``build()`` returned. ``refuse`` maps architectures (``"sm_90"``, ``"compute_80"``)
    to error numbers, ``load_delay`` is in milliseconds, ``base`` is what the environment starts from, else
    that of this process. Variables of the fake driver that ``base`` holds do not carry over.
    """
    start = os.environ if base is None else base
    result = {name: value for name, value in start.items() if not name.startswith("FAKE_CUDA_")}
    path = [str(directory), result.get("LD_LIBRARY_PATH", "")]
    result["LD_LIBRARY_PATH"] = os.pathsep.join(part for part in path if part)
    result["FAKE_CUDA_DEVICES"] = ",".join(capabilities)
    result["FAKE_CUDA_DRIVER"] = driver
    if init_error is not None:
        result["FAKE_CUDA_INIT_ERROR"] = str(init_error)
    if refuse:
        result["FAKE_CUDA_REFUSE"] = ",".join(f"{name}:{error}" for name, error in refuse.items())
    if lazy:
        result["FAKE_CUDA_LAZY"] = "1"
    if load_delay:
        result["FAKE_CUDA_LOAD_DELAY"] = str(load_delay)
    if log is not None:
        result["FAKE_CUDA_LOG"] = str(log)
    return result


def read_log(path: Path, call: str | None = None) -> list[dict[str, Any]]:
    """Return the entries of a log, in order, of all calls or of one kind.

    Each has ``call``, ``pid``, ``thread`` and ``result`` (0 is success). Kinds of calls and what they add:
    ``init`` (devices, driver); ``library_load`` and ``module_load`` (device, which is -1 without a current
    context; kind: cubin, ptx or invalid; arch; version; bytes; fnv1a64); ``library_unload`` and
    ``module_unload`` (fnv1a64); ``kernel_get`` and ``function_get`` (name); ``stream_create`` (device);
    ``launch`` (name, device, arch, grid, block, shared).
    """
    if not path.exists():
        return []
    entries: list[dict[str, Any]] = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [entry for entry in entries if call is None or entry["call"] == call]


def fnv1a64(data: bytes) -> str:
    """Return the hash by which the log names an image (for PTX: of the text without a final NUL)."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"
