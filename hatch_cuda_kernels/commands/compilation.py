# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""`compile`: one source, or several to be linked, for one architecture, as the build compiles them.

NVRTC has no command line of its own.
"""

from __future__ import annotations

import json
import posixpath
import sys
from collections.abc import Sequence
from pathlib import Path

from ..arch import Architecture
from ..compiler import compile_job
from ..config import Config
from ..display import Ink, columns_of, format_size, print_json, printable, table
from ..errors import CompilationError
from ..installed import installed_labels
from ..jobs import make_job
from ..modules import ModuleSpec
from ..nvrtc import workspace
from ..plan import CompiledImage, CompileJob, make_unit
from ..sources import ProjectTree
from ..toolchain import probe

__all__ = ["run"]


def run(
    *,
    sources: Sequence[str],
    architecture: str,
    include_dirs: Sequence[str],
    include_packages: Sequence[str],
    defines: Sequence[str],
    options: Sequence[str],
    name_expressions: Sequence[str],
    toolkit_headers: str,
    host_code: str,
    output: str | None,
    as_json: bool,
) -> int:
    """Compile without a cache, print what came out, and write the image where that is asked for."""
    config = Config.from_table(
        {
            "archs": [architecture],
            "include-dirs": list(include_dirs),
            "include-packages": list(include_packages),
            "defines": dict(map(_define, defines)),
            "toolkit-headers": toolkit_headers,
            "host-code": host_code,
            "modules": [
                {
                    "source": list(sources) if len(sources) > 1 else sources[0],
                    "name-expressions": list(name_expressions),
                    "options": dict(map(_option, options)),
                }
            ],
        },
        where="the command line",
    )
    job = _job(config, Path.cwd())
    with workspace() as space:
        try:
            image = compile_job(job, space)
        except CompilationError as error:
            print(printable(str(error), "\n\t"), file=sys.stderr)
            return 1
    if output is not None:
        Path(output).write_bytes(image.data)
    if as_json:
        print_json({"schema": 1, "sources": list(sources), **_facts(image)})
        return 0
    for warning in image.warnings:
        print(printable(warning, "\n\t"), file=sys.stderr)
    print(f"{' '.join(sources)} for {job.architecture}: {format_size(len(image.data))} in {image.seconds:.2f} s")
    head = ["kernel", "registers", "shared", "local", "stack", "constant", "spill"]
    rows = [
        [name, *(map(str, found.to_dict().values()) if (found := image.entries[symbol]) else "------")]
        for name, symbol in image.kernels.items()
    ]
    print("\n".join(table([head, *rows], columns_of(), ink=Ink())))
    return 0


def _job(config: Config, root: Path) -> CompileJob:
    (module,) = config.modules
    source = posixpath.normpath(module.source)
    spec = ModuleSpec(
        package="",
        name=posixpath.splitext(posixpath.basename(source))[0],
        source=source,
        linked=tuple(map(posixpath.normpath, module.linked)),
        name_expressions=module.name_expressions,
        archs=config.archs,
        include_dirs=(
            *map(posixpath.normpath, config.include_dirs),
            *(label for named in config.include_packages for label in installed_labels(named)),
        ),
        defines=config.defines,
        options=module.options,
        toolkit_headers=config.toolkit_headers,
        host_code=config.host_code,
    )
    unit = make_unit(ProjectTree(root), spec.package, spec)
    return make_job(unit, Architecture.parse(config.archs[0]), probe())


def _define(text: str) -> tuple[str, str | bool]:
    name, given, value = text.partition("=")
    return name, value if given else True


def _option(text: str) -> tuple[str, object]:
    """`use-fast-math=true` and `std=c++20`: a value is JSON where it can be, else a string."""
    name, given, value = text.partition("=")
    try:
        return name, json.loads(value) if given else True
    except ValueError:
        return name, value


def _facts(image: CompiledImage) -> dict[str, object]:
    return {
        "arch": str(image.architecture),
        "nvrtc": image.release,
        "bytes": len(image.data),
        "sha256": image.sha256,
        "seconds": round(image.seconds, 6),
        "kernels": {
            name: found.to_dict() if (found := image.entries[symbol]) else {} for name, symbol in image.kernels.items()
        },
        "warnings": list(image.warnings),
    }
