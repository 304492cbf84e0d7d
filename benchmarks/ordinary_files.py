# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What share of the `.cu` files of some folders compiles with no edit, and why the others do not.

    python benchmarks/ordinary_files.py ~/src/project ~/src/other --arch sm_80 --arch sm_90 --most 12

Each folder is taken for a project. A file counts where its text has `__global__` outside comments and no other file
includes it; `--most` takes that many of a folder, evenly spaced. What an author's build would know is found by
looking: the folders from which the includes of a file, and of what it includes, are found in the tree become its
`include-dirs`. What is not to be found, such as macros, `--settings` tells (see ordinary_folders.py). With `--nvcc`, a
file of which nvcc makes no kernel under the same conditions is counted apart: for what CUDA no longer has, and headers
that are not installed. Nothing is written into the folders. The files are compiled as a build compiles them, in
processes of their own.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from nvcc import compile_with_nvcc, differences, kernel_code
from ordinary_folders import Folder, Settings, read_settings

from hatch_cuda_kernels.arch import Architecture
from hatch_cuda_kernels.errors import CudaKernelsError
from hatch_cuda_kernels.installed import find_installed
from hatch_cuda_kernels.machine import available_cores
from hatch_cuda_kernels.nvrtc import workspace
from hatch_cuda_kernels.plan import CompiledImage, CompileJob, make_unit
from hatch_cuda_kernels.pool import compile_all
from hatch_cuda_kernels.sources import ProjectTree
from hatch_cuda_kernels.toolkit import installed_roots
from hatch_cuda_kernels.worker import ask_toolchain

_CAUSES = {
    "no kernel: only templates that nobody instantiates": r"compiles to no kernel",
    "too slow": r"took longer than compile-timeout",
    "the compiler crashed": r"the compiler ended its process",
    "another architecture: an instruction that this one lacks": r"(?:requires|not supported on) \.target",
    "refused: device code has the same names as host code": r"cannot be passed over safely",
    "a header that is not there": r"(?:cannot|could not) open source file",
    "an error in what is left": r"error",
}
"""Cause -> what its messages say; the first that fits counts."""


def measure(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One row for each file and architecture."""
    release = ask_toolchain().release
    rows: dict[CompileJob, dict[str, Any]] = {}
    roots: dict[CompileJob, Path] = {}
    settings = read_settings(args.settings)
    again = {(row["folder"], row["source"]) for row in args.again or () if row["cause"] is not None}
    for root in args.folders:
        folder = Folder(root, settings.get(root.name, Settings()))
        tree = ProjectTree(root)
        for source in folder.some(args.most):
            if args.again and (root.name, source) not in again:
                continue
            row = {"folder": root.name, "source": source, "style": folder.settings.style}
            spec = folder.spec(source, args.std)
            archs = spec.archs or args.arch
            try:
                unit = make_unit(tree, "files", spec)
            except (CudaKernelsError, OSError) as error:
                yield from ({**row, "arch": arch, "cause": "not read", "message": str(error)} for arch in archs)
                continue
            for arch in archs:
                job = CompileJob(unit=unit, architecture=Architecture.parse(arch), release=release)
                rows[job], roots[job] = {**row, "arch": arch}, root
    made: dict[CompileJob, CompiledImage | CudaKernelsError] = {}
    with workspace() as space:
        for job, result in compile_all(list(rows), space, workers=args.jobs, timeout=args.timeout):
            made[job] = result
            print(f"\r{len(made)}/{len(rows)}", end="", file=sys.stderr, flush=True)
    if args.nvcc:
        with ThreadPoolExecutor(args.jobs) as threads:
            taken = threads.map(lambda job: _by_nvcc(args, roots[job], job), rows)
            for count, (job, cubin) in enumerate(zip(rows, taken, strict=True), 1):
                print(f"\rnvcc: {count}/{len(rows)}", end="", file=sys.stderr, flush=True)
                result = made[job]
                if isinstance(cubin, str):
                    rows[job]["nvcc refuses"] = cubin
                elif isinstance(result, CompiledImage):
                    _keep_ours(args, job, result)
                    rows[job]["nvcc"] = _held_against(args, roots[job], job, result.data, cubin)
                elif kernel_code(cubin):
                    rows[job]["nvcc"] = {}
                else:
                    rows[job]["nvcc refuses"] = "compiles to no kernel"
    print(file=sys.stderr)
    yield from ({**row, **_outcome(made[job])} for job, row in rows.items())


def _held_against(args: argparse.Namespace, root: Path, job: CompileJob, ours: bytes, theirs: bytes) -> dict[str, str]:
    """What kernels differ in, as nvcc makes them by itself, and with the option that our compiles have for the list of
    headers, which has the optimiser choose otherwise at times."""
    found = differences(ours, theirs, longs_alike=True)
    still = found
    if any(what.startswith("machine code") for what in found.values()):
        traced = _by_nvcc(args, root, job, ["--fdevice-time-trace", str(args.keep / f"{_file_name(job)}.trace")])
        still = differences(ours, traced, longs_alike=True) if isinstance(traced, bytes) else found
    for name, what in found.items():
        if what.startswith("machine code") and not still.get(name, "").startswith("machine code"):
            found[name] = "machine code, which is the same with nvcc --fdevice-time-trace"
    return found


def _by_nvcc(args: argparse.Namespace, root: Path, job: CompileJob, more: Sequence[str] = ()) -> bytes | str:
    """What nvcc makes of the same file, with the same headers, or what it says where it cannot compile it.

    It reads NVCC_APPEND_FLAGS, where folders of headers that only host code needs can stand.
    """
    unit = job.unit
    options = ["--expt-relaxed-constexpr", "--extended-lambda", *more]
    options += [f"-I{find_installed(label, root)}" for label in unit.include_dirs]
    options += [f"-D{name}" if value is True else f"-D{name}={value}" for name, value in unit.defines.items()]
    given = unit.options.get("pre-include", [])
    options += [f"-include={name}" for name in ([given] if isinstance(given, str) else given)]
    options += [f"-I{folder.path}" for folder in installed_roots()] + [f"-I{sysconfig.get_path('include')}"]
    options += _options_of_nvcc(unit.options)
    known = [str(args.nvcc), os.environ.get("NVCC_APPEND_FLAGS"), str(job.architecture), *options]
    content = repr([*known, *(file.sha256 for file in unit.closure.files.values())]).encode()
    target = args.keep / f"{_file_name(job)}.{hashlib.sha256(content).hexdigest()[:16]}.nvcc.cubin"
    said = target.with_suffix(".log")
    if not target.exists() and not said.exists():
        partial = target.with_suffix(".part")
        try:
            refused = compile_with_nvcc(args.nvcc, root / unit.source, str(job.architecture), partial, options)
        except subprocess.TimeoutExpired:
            refused = "took too long"
        if refused is not None:
            partial.write_text(refused, encoding="utf-8")
        partial.rename(target if refused is None else said)
    return target.read_bytes() if target.exists() else said.read_text(encoding="utf-8")


_SWITCHES = {"use-fast-math": "--use_fast_math", "restrict": "--restrict", "debug": "--device-debug"}
_VALUES = {
    "std": "-std",
    "fma": "--fmad",
    "ftz": "--ftz",
    "prec-div": "--prec-div",
    "prec-sqrt": "--prec-sqrt",
    "max-register-count": "--maxrregcount",
}


def _options_of_nvcc(given: Mapping[str, Any]) -> list[str]:
    """Options of a module that decide what code comes out, as nvcc spells them."""
    found = [spelling for name, spelling in _SWITCHES.items() if given.get(name)]
    return found + [f"{spelling}={str(given[name]).lower()}" for name, spelling in _VALUES.items() if name in given]


def _keep_ours(args: argparse.Namespace, job: CompileJob, image: CompiledImage) -> None:
    """Leave an image beside what nvcc makes, for a closer look."""
    (args.keep / f"{_file_name(job)}.ours.cubin").write_bytes(image.data)


def _file_name(job: CompileJob) -> str:
    return re.sub(r"\W", "_", f"{job.unit.source}.{job.architecture}")


def _outcome(result: CompiledImage | CudaKernelsError) -> dict[str, Any]:
    if isinstance(result, CompiledImage):
        counts = {"passed": len(result.passed_over), "kernels": len(result.entries)}
        return {"cause": None, **counts, "warnings": list(result.warnings)}
    message = str(result)
    cause = next((name for name, said in _CAUSES.items() if re.search(said, message)), "another error")
    return {"cause": cause, "message": message}


_COMPILED = ("compiled as written", "compiled with host code passed over")
_NOBODY = "nvcc makes no kernel of it either: {}"


def _outcome_name(row: dict[str, Any]) -> str:
    if row["cause"] is None:
        return _COMPILED[bool(row["passed"])]
    return _NOBODY.format(row["cause"]) if "nvcc refuses" in row else row["cause"]


def _share(rows: Sequence[dict[str, Any]]) -> str:
    return f"{sum(row['cause'] is None for row in rows) / len(rows):.0%}"


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The shares, by folder and by cause, as Markdown."""
    lines = ["| folder | files x architectures | compiled | share |", "|---|---|---|---|"]
    for folder in [*dict.fromkeys(row["folder"] for row in rows), None]:
        those = [row for row in rows if folder in (row["folder"], None)]
        fine = sum(row["cause"] is None for row in those)
        lines.append(f"| {folder or '**all**'} | {len(those)} | {fine} | {_share(those)} |")
    styles = list(dict.fromkeys(row["style"] for row in rows))
    lines += ["", f"| outcome | {' | '.join(style or 'count' for style in styles)} |", f"|---|{'---|' * len(styles)}"]
    counts = Counter((_outcome_name(row), row["style"]) for row in rows)
    names = Counter(_outcome_name(row) for row in rows)
    for name in (*_COMPILED, *(name for name, _ in names.most_common() if name not in _COMPILED)):
        lines.append(f"| {name} | {' | '.join(str(counts[name, style]) for style in styles)} |")
    shares = (_share([row for row in rows if row["style"] == style]) for style in styles)
    lines.append(f"| share that compiles | {' | '.join(shares)} |")
    refused = [row for row in rows if "nvcc refuses" in row]
    if refused:
        fine = sum(row["cause"] is None for row in refused)
        lines.append(f"\nnvcc makes no kernel of {len(refused)} of them; {fine} of these compile here all the same.")
    taken = [row for row in rows if row.get("nvcc") is not None]
    compared = [row for row in taken if row["cause"] is None]
    if compared:
        share = len(compared) / len(taken)
        lines.append(
            f"\nOf the {len(taken)} that nvcc compiles here, {len(compared)} compile with no edit: {share:.0%}."
        )
        kinds = Counter(re.sub(r": \d.*", "", what) for row in compared for what in row["nvcc"].values())
        kernels = sum(row["kernels"] for row in compared)
        different = sum(count for what, count in kinds.items() if not what.startswith("only with nvcc"))
        lines += ["", "| held against nvcc | kernels |", "|---|---|"]
        lines.append(f"| the same machine code, parameters and constants | {kernels - different} |")
        lines += [f"| {what} | {count} |" for what, count in kinds.most_common()]
    return "\n".join(lines)


def main() -> None:
    """Measure, print the table, and write every row if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--arch", action="append", help="sm_80 unless given; several times for several")
    parser.add_argument("--most", type=int, help="files of one folder at most")
    parser.add_argument("--settings", type=Path, help="what builds of the folders say of their files, as TOML")
    parser.add_argument("--again", type=Path, help="an --output of before: only the files that failed there")
    parser.add_argument("--std", help="language standard, such as c++20")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for one compile")
    parser.add_argument("--jobs", type=int, default=available_cores())
    parser.add_argument("--nvcc", type=Path, help="an nvcc of NVRTC's release, to hold every kernel against its own")
    parser.add_argument("--keep", type=Path, help="folder for what nvcc makes, so that it need not the next time")
    parser.add_argument("-o", "--output", type=Path, help="write each file's outcome and message there, as JSON")
    args = parser.parse_args()
    args.arch = args.arch or ["sm_80"]
    args.again = json.loads(args.again.read_text(encoding="utf-8")) if args.again else None
    args.folders = [folder.resolve() for folder in args.folders]
    with tempfile.TemporaryDirectory() as folder:
        args.keep = args.keep or Path(folder)
        rows = list(measure(args))
    if args.output:
        args.output.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print(table(rows) if rows else "no file with a kernel to compile")


if __name__ == "__main__":
    main()
