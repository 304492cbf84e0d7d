# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The command line: what each command takes. What it does is in the module that its function imports.

Exit status: 0 fine, 1 found a fault, 2 misuse.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from ._version import __version__
from .arch import Architecture, Capability, parse_version
from .commands.target import TargetError
from .display import printable
from .errors import CudaKernelsError, CudaKernelsWarning

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a kernel's name may have letters that the console lacks
    options = vars(_parser().parse_args(argv))
    run = options.pop("run")
    warnings.showwarning = _show_warning
    try:
        status = int(run(**options))
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (CudaKernelsError, OSError) as error:
        print(printable(f"hatch-cuda-kernels: {error}", "\n\t"), file=sys.stderr)
        return 2 if isinstance(error, TargetError) else 1
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
    target.add_argument("--package", metavar="NAME", help="of several packages in the target, only this one")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", dest="as_json", help="print JSON instead of text")
    devices = argparse.ArgumentParser(add_help=False)
    devices.add_argument(
        "--compute-capability", type=_capability, metavar="X.Y", action="append", default=[], dest="capabilities",
        help="repeatable; default: this machine's",
    )  # fmt: skip
    devices.add_argument("--driver", type=_version, metavar="X.Y", help="newest CUDA version of the driver")

    command = commands.add_parser("init", parents=[common], help="write the hook table for the .cu files of a project")
    command.add_argument("folder", metavar="FOLDER", nargs="?", default=".", help="the project's root; default: here")
    command.add_argument("--dry-run", action="store_true", help="print it and write nothing")
    command.set_defaults(run=_init)

    command = commands.add_parser("inspect", parents=[target, common], help="show modules, images and resources")
    command.add_argument("--sources", action="store_true", help="show what was passed over in the sources, and why")
    command.add_argument("--all", action="store_true", dest="everything", help="every kernel, however many there are")
    command.set_defaults(run=_inspect)

    command = commands.add_parser("explain", parents=[target, devices, common], help="say which image a device gets")
    command.add_argument("kernel", metavar="KERNEL", help="a kernel's name, or module:kernel")
    command.set_defaults(run=_explain)

    command = commands.add_parser("verify", parents=[target, common], help="check digests, images and paths")
    command.add_argument("--jit", action="store_true", help="compile the shipped sources on their own, too")
    command.add_argument(
        "--require", type=_capability, metavar="X.Y", nargs="+", action="extend", default=[],
        help="compute capabilities for which every kernel must have an image",
    )  # fmt: skip
    command.add_argument("--allow-jit", action="store_true", help="let the run-time fallback count for --require")
    command.add_argument("--driver", type=_version, metavar="X.Y", help="driver for --require; default: the compiler's")
    command.set_defaults(run=_verify)

    command = commands.add_parser("coverage", parents=[target, common], help="show what serves each kernel where")
    command.add_argument(
        "--compute-capability", type=_capability, metavar="X.Y", nargs="+", action="extend", default=[],
        dest="capabilities", help="default: all that CUDA serves",
    )  # fmt: skip
    command.add_argument(
        "--driver", type=_version, metavar="X.Y", nargs="+", action="extend", default=[], dest="drivers",
        help="newest CUDA version of a driver; default: those where the answer changes",
    )  # fmt: skip
    command.set_defaults(run=_coverage)

    command = commands.add_parser("diff", parents=[common], help="show what changed from one build to another")
    command.add_argument("old", metavar="OLD", help="a wheel, a folder, or an importable package")
    command.add_argument("new", metavar="NEW", help="another of them")
    command.add_argument("--package", metavar="NAME", help="of several packages, only this one")
    command.add_argument("--exit-code", action="store_true", help="end with status 1 where something changed")
    command.add_argument("--format", choices=["text", "markdown", "json"], default="text", dest="form")
    command.set_defaults(run=_diff)

    command = commands.add_parser("report", parents=[target, common], help="write a page that a reviewer opens")
    command.add_argument("-o", "--output", metavar="FILE", help="where to write it; default: standard output")
    command.add_argument(
        "--format", choices=["html", "markdown", "json"], dest="form", help="default: html; markdown for a FILE.md"
    )
    command.add_argument("--against", metavar="OLD", help="an older build of it, to show what changed")
    command.add_argument("--build-report", metavar="FILE", help="what HATCH_CUDA_KERNELS_REPORT wrote, for a timeline")
    command.set_defaults(run=_report)

    command = commands.add_parser("warm", parents=[target, devices, common], help="fill the run-time cache in advance")
    command.set_defaults(run=_warm)

    command = commands.add_parser("compile", parents=[common], help="compile one source for one architecture, alone")
    sources = "a .cu file, from the current folder; several are linked"
    command.add_argument("sources", metavar="SOURCE", nargs="+", help=sources)
    command.add_argument("--arch", required=True, type=_architecture, metavar="ARCH", dest="architecture")
    for flag, name, text in (
        ("-I", "include_dirs", "a folder searched for headers"),
        ("--include-package", "include_packages", "a folder of an installed package searched for headers"),
        ("-D", "defines", "a macro, NAME or NAME=VALUE"),
        ("--option", "options", "NAME=VALUE of the table `options`"),
        ("--name-expression", "name_expressions", "a template instance"),
    ):
        command.add_argument(flag, dest=name, action="append", default=[], metavar="X", help=f"{text}; repeatable")
    command.add_argument("--toolkit-headers", default="auto", metavar="FROM", help="as the key of the hook table")
    command.add_argument("--host-code", default="skip", metavar="WAY", help="as the key of the hook table")
    command.add_argument("-o", "--output", metavar="FILE", help="where to write the cubin or PTX")
    command.set_defaults(run=_compile)

    command = commands.add_parser("stubs", parents=[target, common], help="print a .pyi with a package's kernel names")
    command.set_defaults(run=_stubs)

    cache = commands.add_parser("cache", help="look at, check, empty, copy the compile cache")
    actions = cache.add_subparsers(required=True, metavar="ACTION", dest="action")
    for name, text in (
        ("info", "where it is, how full, hits and misses"),
        ("verify", "list entries that fail their digest"),
        ("clear", "empty it, safely while builds run"),
    ):
        actions.add_parser(name, parents=[common], help=text).set_defaults(run=_cache)
    for name, text in (
        ("push", "copy a project's images from its cache to another place"),
        ("pull", "copy a project's images from another place to its cache"),
    ):
        action = actions.add_parser(name, parents=[common], help=text)
        action.add_argument("place", metavar="PLACE", help="a folder, sqlite:FILE or a URL, as in the option `cache`")
        action.add_argument("project", metavar="PROJECT", nargs="?", default=".", help="its root; default: here")
        action.set_defaults(run=_transfer)
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


def _architecture(text: str) -> str:
    try:
        return str(Architecture.parse(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _init(**options: Any) -> int:
    from .setup.init import run

    return run(**options)


def _inspect(**options: Any) -> int:
    from .commands.inspection import run

    return run(**options)


def _explain(**options: Any) -> int:
    from .commands.explanation import run

    return run(**options)


def _verify(**options: Any) -> int:
    from .commands.verify import run

    return run(**options)


def _coverage(**options: Any) -> int:
    from .commands.coverage import run

    return run(**options)


def _diff(**options: Any) -> int:
    from .commands.diff import run

    return run(**options)


def _report(**options: Any) -> int:
    from .commands.report import run

    return run(**options)


def _warm(**options: Any) -> int:
    from .commands.warm import run

    return run(**options)


def _compile(**options: Any) -> int:
    from .commands.compilation import run

    return run(**options)


def _stubs(**options: Any) -> int:
    from .commands.stubs import run

    return run(**options)


def _transfer(*, action: str, **options: Any) -> int:
    from .commands.transfer import run

    return run(direction=action, **options)


def _cache(**options: Any) -> int:
    from .commands.housekeeping import run

    return run(**options)
