# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What share of the `.cu` files of some folders compiles with no edit, and why the others do not.

    python benchmarks/ordinary_files.py ~/src/project ~/src/other --arch sm_80 --arch sm_90 --most 12

Each folder is taken for a project. A file counts where its text has `__global__` outside comments
and no other file includes it; `--most` takes that
many of a folder, evenly spaced. What an author's build would know is found by looking: the folders from which the
includes of a file, and of what it includes, are found in the tree become its `include-dirs`. No macro is defined and
nothing is written into the folders. The files are compiled as a build compiles them, in processes of their own.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import posixpath
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from nvcc import compile_with_nvcc, differences

from hatch_cuda_kernels.arch import Architecture
from hatch_cuda_kernels.errors import CudaKernelsError
from hatch_cuda_kernels.hostcode.names import HOST_HEADERS
from hatch_cuda_kernels.machine import available_cores
from hatch_cuda_kernels.modules import ModuleSpec
from hatch_cuda_kernels.nvrtc import workspace
from hatch_cuda_kernels.plan import CompiledImage, CompileJob, Unit, make_unit
from hatch_cuda_kernels.pool import compile_all
from hatch_cuda_kernels.sources import ProjectTree, scan_text
from hatch_cuda_kernels.standins import standins
from hatch_cuda_kernels.toolkit import installed_roots
from hatch_cuda_kernels.worker import ask_toolchain

_COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)
_HEADERS = re.compile(r"\.(?:cuh?|hh?|hpp|hxx|inl|inc|ipp|tpp|def)\Z|\A\w+\Z")
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


class Folder:
    """The files of one project, and where its includes lead."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.by_name: dict[str, list[str]] = {}
        self.sources: list[str] = []
        for folder, _, names in os.walk(root):
            for name in sorted(names):
                label = Path(folder, name).relative_to(root).as_posix()
                if not Path(folder, name).is_file():
                    continue  # a link that leads nowhere
                if _HEADERS.search(name):
                    self.by_name.setdefault(name, []).append(label)
                if name.endswith(".cu") and b"__global__" in _COMMENT.sub(b" ", Path(folder, name).read_bytes()):
                    self.sources.append(label)
        parts = self._parts()
        self.sources = sorted(label for label in self.sources if posixpath.basename(label) not in parts)

    def _parts(self) -> set[str]:
        """Names of the `.cu` files that other files include."""
        found = set()
        for labels in self.by_name.values():
            for label in labels:
                for include in scan_text(self.root.joinpath(label).read_bytes()).includes:
                    if include.spelling.endswith(".cu"):
                        found.add(posixpath.basename(include.spelling))
        return found

    def some(self, most: int | None) -> list[str]:
        """At most that many of the sources, evenly spaced."""
        count = len(self.sources)
        if most is None or count <= most:
            return self.sources
        return [self.sources[index * count // most] for index in range(most)]

    def include_dirs(self, source: str) -> list[str]:
        """The folders from which includes of a source are found; for a name found in several, the nearest."""
        found: dict[str, None] = {}
        seen, pending = {source}, [source]
        for label in pending:
            for include in scan_text(self.root.joinpath(label).read_bytes()).includes:
                target = self._target(include.spelling, include.quoted, label, found)
                if target is not None and target not in seen:
                    seen.add(target)
                    pending.append(target)
        return list(found)

    def _target(self, spelling: str, quoted: bool, label: str, dirs: dict[str, None]) -> str | None:
        if not quoted and (spelling in standins() or HOST_HEADERS.fullmatch(spelling)):
            return None  # the standard's, though the tree may have a file of that name
        known = self.by_name.get(posixpath.basename(spelling), [])
        here = [posixpath.dirname(label)] if quoted else []
        for folder in (*here, *dirs):
            if (joined := posixpath.normpath(posixpath.join(folder, spelling))) in known:
                return joined
        fits = [name for name in known if name == spelling or name.endswith(f"/{spelling}")]
        if not fits or ".." in spelling:
            return None
        nearest = max(fits, key=lambda name: (_shared(name, label), -len(name)))
        dirs[nearest[: -len(spelling)].rstrip("/") or "."] = None
        return nearest


def _shared(one: str, other: str) -> int:
    """How many leading folders two labels have in common."""
    pairs = zip(one.split("/"), other.split("/"), strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _unit(tree: ProjectTree, folder: Folder, source: str, std: str | None) -> Unit:
    spec = ModuleSpec(
        package="files",
        name=source.removesuffix(".cu").replace("/", "."),
        source=source,
        include_dirs=tuple(folder.include_dirs(source)),
        options={"std": std} if std else {},
        defines={},
        name_expressions=(),
        archs=(),
        toolkit_headers="auto",
        host_code="skip",
    )
    return make_unit(tree, "files", spec)


def measure(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One row for each file and architecture."""
    release = ask_toolchain().release
    rows: dict[CompileJob, dict[str, Any]] = {}
    roots: dict[CompileJob, Path] = {}
    for root in args.folders:
        folder = Folder(root)
        tree = ProjectTree(root)
        for source in folder.some(args.most):
            row = {"folder": root.name, "source": source}
            try:
                unit = _unit(tree, folder, source, args.std)
            except (CudaKernelsError, OSError) as error:
                yield from ({**row, "arch": arch, "cause": "not read", "message": str(error)} for arch in args.arch)
                continue
            for arch in args.arch:
                job = CompileJob(unit=unit, architecture=Architecture.parse(arch), release=release)
                rows[job], roots[job] = {**row, "arch": arch}, root
    with workspace() as space:
        results = compile_all(list(rows), space, workers=args.jobs, timeout=args.timeout)
        for count, (job, result) in enumerate(results, 1):
            print(f"\r{count}/{len(rows)}", end="", file=sys.stderr, flush=True)
            row = {**rows[job], **_outcome(result)}
            if args.nvcc:
                row["nvcc"] = _held_against(args.nvcc, roots[job], job, result)
            yield row
    print(file=sys.stderr)


def _held_against(
    nvcc: Path, root: Path, job: CompileJob, result: CompiledImage | CudaKernelsError
) -> dict[str, str] | None:
    """Kernels that nvcc makes otherwise from the same file, with the same headers; None where it cannot compile it."""
    options = ["--expt-relaxed-constexpr", *(f"-I{root / folder}" for folder in job.unit.include_dirs)]
    options += [f"-I{folder.path}" for folder in installed_roots()]
    if job.unit.options.get("std"):
        options.append(f"-std={job.unit.options['std']}")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "image.cubin")
        try:
            refused = compile_with_nvcc(nvcc, root / job.unit.source, str(job.architecture), target, options)
        except subprocess.TimeoutExpired:
            return None
        if refused is not None:
            return None
        return differences(result.data, target.read_bytes()) if isinstance(result, CompiledImage) else {}


def _outcome(result: CompiledImage | CudaKernelsError) -> dict[str, Any]:
    if isinstance(result, CompiledImage):
        return {"cause": None, "passed": len(result.passed_over), "kernels": len(result.entries)}
    message = str(result)
    cause = next((name for name, said in _CAUSES.items() if re.search(said, message)), "another error")
    return {"cause": cause, "message": message}


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The shares, by folder and by cause, as Markdown."""
    lines = ["| folder | files x architectures | compiled | share |", "|---|---|---|---|"]
    for folder in [*dict.fromkeys(row["folder"] for row in rows), None]:
        those = [row for row in rows if folder in (row["folder"], None)]
        fine = sum(row["cause"] is None for row in those)
        lines.append(f"| {folder or '**all**'} | {len(those)} | {fine} | {fine / len(those):.0%} |")
    lines += ["", "| outcome | count |", "|---|---|"]
    written = sum(row["cause"] is None and not row["passed"] for row in rows)
    lines.append(f"| compiled as written | {written} |")
    lines.append(f"| compiled with host code passed over | {sum(row['cause'] is None for row in rows) - written} |")
    causes = Counter(row["cause"] for row in rows if row["cause"] is not None)
    lines += [f"| {cause} | {count} |" for cause, count in causes.most_common()]
    taken = [row for row in rows if row.get("nvcc") is not None]
    compared = [row for row in taken if row["cause"] is None]
    if compared:
        share = len(compared) / len(taken)
        lines.append(
            f"\nOf the {len(taken)} that nvcc compiles here, {len(compared)} compile with no edit: {share:.0%}."
        )
        kinds = Counter(re.sub(r":.*", "", what) for row in compared for what in row["nvcc"].values())
        kernels = sum(row["kernels"] for row in compared)
        different = sum(count for what, count in kinds.items() if what != "only with nvcc")
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
    parser.add_argument("--std", help="language standard, such as c++20")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for one compile")
    parser.add_argument("--jobs", type=int, default=available_cores())
    parser.add_argument("--nvcc", type=Path, help="an nvcc of NVRTC's release, to hold every kernel against its own")
    parser.add_argument("-o", "--output", type=Path, help="write each file's outcome and message there, as JSON")
    args = parser.parse_args()
    args.arch = args.arch or ["sm_80"]
    args.folders = [folder.resolve() for folder in args.folders]
    rows = list(measure(args))
    if args.output:
        args.output.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print(table(rows) if rows else "no file with a kernel")


if __name__ == "__main__":
    main()
