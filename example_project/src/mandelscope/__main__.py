# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0

"""The command: checks every kernel against numpy, then draws a picture."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hatch_cuda_kernels import CudaKernelsError, DriverError, explain

from mandelscope import __version__, checks, kernels, png, reference
from mandelscope.device import PACKAGE, Gpu
from mandelscope.frame import Frame
from mandelscope.tables import table

__all__ = ["main"]

CAPABILITIES = ("7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "12.0")


def _size(text: str) -> tuple[int, int]:
    width, cross, height = text.partition("x")
    if not (cross and width.isdecimal() and height.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 960x640")
    return int(width), int(height)


def _parser() -> argparse.ArgumentParser:
    usual = Frame()
    parser = argparse.ArgumentParser(
        prog="mandelscope",
        description="Draw a part of the Mandelbrot set. With a GPU, every kernel is first checked against "
        "numpy; without one, a table shows which image each kind of GPU would load.",
    )
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("mandelscope.png"), help="picture to write (%(default)s)"
    )
    parser.add_argument(
        "--size",
        type=_size,
        default=f"{usual.width}x{usual.height}",
        metavar="WIDTHxHEIGHT",
        help="size in pixels (%(default)s)",
    )
    parser.add_argument(
        "--centre",
        type=float,
        nargs=2,
        default=usual.centre,
        metavar=("RE", "IM"),
        help=f"point in the middle of the picture ({usual.centre[0]} {usual.centre[1]})",
    )
    parser.add_argument("--span", type=float, default=usual.span, help="width on the real axis (%(default)s)")
    parser.add_argument(
        "--iterations", type=int, default=usual.iterations, help="most steps of an orbit (%(default)s)"
    )
    parser.add_argument(
        "--glow", type=float, default=usual.glow, help="share of the blur, 0 to 1 (%(default)s)"
    )
    parser.add_argument(
        "--radius", type=int, default=usual.radius, help="radius of the blur in pixels (%(default)s)"
    )
    parser.add_argument(
        "--accumulator",
        choices=["float", "double"],
        default=usual.accumulator,
        help="type the blur sums in (%(default)s)",
    )
    parser.add_argument("--cpu", action="store_true", help="draw with numpy, with or without a GPU")
    parser.add_argument(
        "--driver-version",
        metavar="X.Y",
        help="driver to assume in the table that is shown without a GPU; else one as new as the compiler",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    return parser


def _choice(selection: Any) -> str:
    """What a device gets: a cubin or PTX by its architecture, or a compile of the shipped source."""
    choice = selection.choice
    if choice is None:
        return "none"
    return "jit" if choice.kind == "jit" else str(choice.arch)


def _explain_here() -> dict[str, str]:
    """What each kernel would load on the current device; `DriverError` where there is none."""
    return {kernel: _choice(explain(kernel, package=PACKAGE)) for kernel in kernels.KERNELS}


def _print_choices(driver_version: str | None) -> None:
    rows = [
        [
            kernel,
            *(
                _choice(
                    explain(
                        kernel,
                        package=PACKAGE,
                        compute_capability=capability,
                        driver_version=driver_version,
                    )
                )
                for capability in CAPABILITIES
            ),
        ]
        for kernel in kernels.KERNELS
    ]
    print("What a GPU of each compute capability would load:\n")
    print(table(["kernel", *CAPABILITIES], rows))
    print("\nsm_XY: cubin; compute_XY: PTX that the driver compiles; jit: shipped source that NVRTC compiles")


def _print_checks(gpu: Gpu, choices: dict[str, str]) -> bool:
    results = list(checks.run(gpu))
    rows = [
        [
            check.kernel,
            choices[check.kernel],
            f"{check.error:.2g}",
            f"{check.tolerance:g}",
            "ok" if check.passed else "MISMATCH",
        ]
        for check in results
    ]
    print(table(["kernel", "image", "largest error", "allowed", "result"], rows))
    return all(check.passed for check in results)


def _run(arguments: argparse.Namespace, frame: Frame) -> int:
    gpu = None
    try:
        choices = _explain_here()
    except DriverError as error:
        print(f"No GPU to draw on. {error}\n")
        _print_choices(arguments.driver_version)
        if not arguments.cpu:
            print("\nNothing drawn; --cpu draws with numpy.")
            return 0
    else:
        gpu = Gpu()
        print(f"Every kernel against numpy, on {gpu.description}:\n")
        if not _print_checks(gpu, choices):
            print("\nAt least one kernel disagrees with numpy; nothing drawn.", file=sys.stderr)
            return 1

    start = time.perf_counter()
    picture = reference.draw(frame) if gpu is None or arguments.cpu else kernels.draw(gpu, frame)
    seconds = time.perf_counter() - start
    png.write(arguments.output, picture)
    print(f"\n{arguments.output}: {frame.width}x{frame.height}, drawn in {seconds:.3f} s")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 when all is well or there is no GPU, 1 on a mismatch or error, 2 on misuse."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    width, height = arguments.size
    try:
        frame = Frame(
            width=width,
            height=height,
            centre=tuple(arguments.centre),
            span=arguments.span,
            iterations=arguments.iterations,
            glow=arguments.glow,
            radius=arguments.radius,
            accumulator=arguments.accumulator,
        )
    except ValueError as error:
        parser.error(str(error))
    try:
        return _run(arguments, frame)
    except (CudaKernelsError, OSError) as error:
        print(f"mandelscope: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
