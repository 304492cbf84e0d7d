# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The command line. Exit status: 0 fine, 1 found a fault, 2 misuse."""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from ._version import __version__
from .arch import Capability, parse_version
from .catalog import Live, source_of
from .errors import CudaKernelsError, CudaKernelsWarning, KernelNotFoundError
from .manifest import Image, Manifest, Module
from .package import InstalledPackage
from .selection import Selection
from .target import TargetError, open_packages, places

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    arguments = _parser().parse_args(argv)
    warnings.showwarning = _show_warning
    try:
        return int(arguments.run(arguments))
    except TargetError as error:
        print(f"hatch-cuda-kernels: {error}", file=sys.stderr)
        return 2
    except (CudaKernelsError, OSError) as error:
        print(f"hatch-cuda-kernels: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    kind = "warning" if issubclass(category, CudaKernelsWarning) else category.__name__
    print(f"hatch-cuda-kernels: {kind}: {message}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hatch-cuda-kernels", description="Look at, check and warm packages that carry CUDA kernels."
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    target = argparse.ArgumentParser(add_help=False)
    target.add_argument("target", metavar="TARGET", help="a wheel, a folder, or an importable package")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="print JSON instead of text")

    command = commands.add_parser("init", parents=[common], help="write the hook table for the .cu files of a project")
    command.add_argument("folder", metavar="FOLDER", nargs="?", default=".", help="the project's root; default: here")
    command.add_argument("--dry-run", action="store_true", help="print it and write nothing")
    command.set_defaults(run=_init)

    command = commands.add_parser("inspect", parents=[target, common], help="show modules, images and resources")
    command.add_argument("--sources", action="store_true", help="show what was passed over in the sources, and why")
    command.set_defaults(run=_inspect)

    command = commands.add_parser("explain", parents=[target, common], help="say which image a device would get")
    command.add_argument("kernel", metavar="KERNEL", help="a kernel's name, or module:kernel")
    command.add_argument("--compute-capability", type=_capability, metavar="X.Y", help="default: this machine's")
    command.add_argument("--driver", type=_version, metavar="X.Y", help="newest CUDA version of the driver")
    command.set_defaults(run=_explain)

    command = commands.add_parser("verify", parents=[target, common], help="check digests, images and paths")
    command.add_argument("--jit", action="store_true", help="compile the shipped sources on their own, too")
    command.set_defaults(run=_verify)

    command = commands.add_parser("warm", parents=[target, common], help="fill the run-time cache ahead of time")
    command.add_argument(
        "--compute-capability", type=_capability, metavar="X.Y", action="append", help="default: this machine's"
    )
    command.add_argument("--driver", type=_version, metavar="X.Y", help="newest CUDA version of the driver")
    command.set_defaults(run=_warm)

    command = commands.add_parser("stubs", parents=[target], help="print a .pyi with a package's kernel names")
    command.set_defaults(run=_stubs)

    cache = commands.add_parser("cache", help="look at, check or empty the compile cache")
    actions = cache.add_subparsers(required=True, metavar="ACTION")
    for name, run, text in (
        ("info", _cache_info, "where it is, how full, hits and misses"),
        ("verify", _cache_verify, "list entries that fail their digest"),
        ("clear", _cache_clear, "empty it, safely while builds run"),
    ):
        actions.add_parser(name, parents=[common], help=text).set_defaults(run=run)
    return parser


def _capability(text: str) -> Capability:
    try:
        return parse_version(text, "a compute capability")
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _version(text: str) -> tuple[int, int]:
    try:
        return parse_version(text, "a CUDA version")
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=1, sort_keys=True))


# -- init --------------------------------------------------------------------------------------------------------


def _init(arguments: argparse.Namespace) -> int:
    from .init import propose

    proposal = propose(arguments.folder)
    if not arguments.dry_run:
        proposal.write()
    if arguments.json:
        value = {"file": str(proposal.file.path), "written": not arguments.dry_run, "addition": proposal.addition}
        _print_json({"schema": 1, **value, "notes": list(proposal.notes)})
        return 0
    print(proposal.addition if arguments.dry_run else f"{proposal.file.path}: wrote\n\n{proposal.addition}")
    for note in proposal.notes:
        print(f"To do: {note}", file=sys.stderr)
    return 0


# -- inspect -----------------------------------------------------------------------------------------------------


def _inspect(arguments: argparse.Namespace) -> int:
    packages = open_packages(arguments.target)
    if arguments.json:
        _print_json({"schema": 1, "packages": [package.manifest.to_dict() for package in packages]})
        return 0
    print("\n\n".join(_describe(package.manifest) for package in packages))
    if arguments.sources:
        print("\n" + "\n".join(line for package in packages for line in _passed_over(package.manifest)))
    return 0


def _passed_over(manifest: Manifest) -> Iterator[str]:
    for module in manifest.modules:
        yield f"{module.name}: " + ("host code passed over" if module.passed_over else "compiled as written")
        for omission in module.passed_over:
            yield f"  {omission.source}({omission.line}): {omission.kind} {omission.name}: {omission.reason}"


def _describe(manifest: Manifest) -> str:
    images = [image for module in manifest.modules for image in module.images]
    total = _size(sum(image.size for image in images))
    counts = f"{len(manifest.modules)} modules, {len(images)} images, {total}"
    lines = [f"{manifest.package}: {counts}, NVRTC {manifest.release}"]
    columns = sorted({image.architecture for image in images}, key=lambda found: (found.virtual, found))
    rows = [["module", *map(str, columns)]]
    for module in manifest.modules:
        sizes = {image.architecture: _size(image.size) for image in module.images}
        rows.append([module.name, *(sizes.get(column, "-") for column in columns)])
    lines += ["", *_table(rows)]
    rows = [["kernel", "image", "registers", "shared", "local", "stack", "constant", "spill"]]
    for module in manifest.modules:
        for kernel in module.kernels:
            rows.extend(_resources(module, kernel, image) for image in module.images if module.lowered(kernel, image))
    lines += ["", *_table(rows), ""]
    if manifest.fallback is None:
        lines.append("run-time fallback: none (jit = false)")
    else:
        sources = manifest.fallback.files
        total = _size(sum(file.size for file in sources.values()))
        lines.append(f"run-time fallback: {len(sources)} source files, {total}")
    return "\n".join(lines)


def _resources(module: Module, kernel: str, image: Image) -> list[str]:
    found = image.entries[module.lowered(kernel, image) or ""]
    row = [f"{module.name}:{kernel}", str(image.architecture)]
    if found is None:
        return [*row, *["-"] * 6]
    return row + [
        str(number)
        for number in (
            found.registers,
            found.shared_bytes,
            found.local_bytes,
            found.stack_bytes,
            found.constant_bytes,
            found.spill_bytes,
        )
    ]


def _table(rows: list[list[str]]) -> list[str]:
    """Columns in line: the first to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if index == 0 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _size(size: int) -> str:
    return f"{size} B" if size < 1000 else f"{size / 1e3:.1f} kB" if size < 1e6 else f"{size / 1e6:.1f} MB"


# -- explain -----------------------------------------------------------------------------------------------------


def _explain(arguments: argparse.Namespace) -> int:
    packages = _kernel_sources(arguments.target)
    capabilities = [arguments.compute_capability] if arguments.compute_capability else _own_capabilities()
    selections = [_selection(packages, arguments.kernel, found, arguments.driver) for found in capabilities]
    if not arguments.json:
        print("\n\n".join(map(str, selections)))
    elif len(selections) == 1:
        _print_json(selections[0].to_dict())
    else:
        devices = [selection.to_dict() for selection in selections]
        _print_json({"schema": 1, "kernel": arguments.kernel, "devices": devices})
    return 0 if all(selection.choice for selection in selections) else 1


def _kernel_sources(target: str) -> Sequence[InstalledPackage | Live]:
    """The packages of a target, and also an editable install, whose kernels are compiled when they are loaded."""
    if target.isidentifier() and not os.path.exists(target):
        source = source_of(target)
        if isinstance(source, Live):
            return [source]
    return open_packages(target)


def _own_capabilities() -> list[Capability]:
    from .driver import device_capabilities

    return list(dict.fromkeys(device_capabilities()))


def _selection(
    packages: Sequence[InstalledPackage | Live], kernel: str, capability: Capability, driver: tuple[int, int] | None
) -> Selection:
    from .loader import explain_installed

    errors: list[KernelNotFoundError] = []
    for package in packages:
        try:
            return explain_installed(package, kernel, capability, driver)
        except KernelNotFoundError as error:
            errors.append(error)
    raise KernelNotFoundError("\n".join(map(str, errors)))


# -- verify ------------------------------------------------------------------------------------------------------


def _verify(arguments: argparse.Namespace) -> int:
    from .verify import Problem, verify_fallback, verify_place

    problems: list[Problem] = []
    lacking = []
    images = 0
    for place in places(arguments.target):
        package, found = verify_place(place)
        problems += found
        if package is None:
            continue
        images += sum(len(module.images) for module in package.manifest.modules)
        if arguments.jit:
            found, missing = verify_fallback(package, lambda text: print(text, file=sys.stderr))
            problems += found
            lacking += missing
    if arguments.json:
        value: dict[str, Any] = {"schema": 1, "ok": not problems, "problems": [vars(found) for found in problems]}
        if arguments.jit:
            value["no_fallback"] = [vars(found) for found in lacking]
        _print_json(value)
    else:
        for problem in problems:
            print(f"{problem.path}: {problem.problem}")
        for missing_one in lacking:
            print(f"no fallback for {missing_one.arch}: {missing_one.package} {missing_one.module}")
        print(f"{images} images: {'fine' if not problems else f'{len(problems)} problems'}")
    return 1 if problems else 0


# -- warm --------------------------------------------------------------------------------------------------------


def _warm(arguments: argparse.Namespace) -> int:
    from .warm import warm

    capabilities = arguments.compute_capability or _own_capabilities()
    rows = warm(arguments.target, capabilities, arguments.driver, lambda text: print(text, file=sys.stderr))
    compiled = sum(row["outcome"] == "compiled" for row in rows)
    cached = sum(row["outcome"] == "cached" for row in rows)
    if arguments.json:
        _print_json({"schema": 1, "compiled": compiled, "cached": cached, "modules": rows})
    else:
        for row in rows:
            took = f" in {row['seconds']:.2f} s" if row["outcome"] == "compiled" else ""
            print(f"{row['module']} for {row['compute_capability']}: {row['outcome']} ({row['arch']}){took}")
        served = sum(row["outcome"] == "image" for row in rows)
        print(f"{compiled} compiled, {cached} cached, {served} served by an image")
    return 1 if any(row["outcome"] == "nothing" for row in rows) else 0


# -- stubs -------------------------------------------------------------------------------------------------------


def _stubs(arguments: argparse.Namespace) -> int:
    from .stubs import stub_for

    print("\n".join(stub_for(package.manifest) for package in open_packages(arguments.target)), end="")
    return 0


# -- cache -------------------------------------------------------------------------------------------------------


def _cache_info(arguments: argparse.Namespace) -> int:
    from .cache import KernelCache

    cache = KernelCache.from_environment()
    sizes = [size for _, size in cache.entries()]
    hits, misses = cache.totals()
    location = None if cache.directory is None else str(cache.directory)
    if arguments.json:
        value = {"location": location, "entries": len(sizes), "bytes": sum(sizes), "hits": hits, "misses": misses}
        _print_json({"schema": 1, **value})
    elif location is None:
        print("the compile cache is off")
    else:
        print(f"{location}\n{len(sizes)} entries, {_size(sum(sizes))}, {hits} hits, {misses} misses")
    return 0


def _cache_verify(arguments: argparse.Namespace) -> int:
    from .cache import KernelCache

    problems = [{"path": str(path), "problem": text} for path, text in KernelCache.from_environment().verify()]
    if arguments.json:
        _print_json({"schema": 1, "ok": not problems, "problems": problems})
    else:
        for problem in problems:
            print(f"{problem['path']}: {problem['problem']}")
        print(f"{len(problems)} entries fail; they count as misses and are written anew" if problems else "all fine")
    return 1 if problems else 0


def _cache_clear(arguments: argparse.Namespace) -> int:
    from .cache import KernelCache

    cache = KernelCache.from_environment()
    before = [size for _, size in cache.entries()]
    cache.clear()
    left = sum(1 for _ in cache.entries())
    removed = max(0, len(before) - left)
    if arguments.json:
        _print_json({"schema": 1, "removed": removed, "bytes": sum(before), "left": left})
    else:
        print(f"removed {removed} entries, {_size(sum(before))}")
    return 0
