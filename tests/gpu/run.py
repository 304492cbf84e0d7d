# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The checks on a GPU, on a machine without a network.

On a machine with a network, for Python 3.12 on Linux and a driver of CUDA 13.0 or newer:

    python3.12 -m pip wheel -w wheels ./ "cuda-core>=1.2,<2" "cuda-bindings>=13,<14" "nvidia-cuda-nvrtc>=13.3,<14" \\
        "nvidia-nvjitlink>=13.3,<14" numpy pytest
    python3.12 -m pip wheel -w wheels --no-deps ./example_project    # optional: the example app; ./ makes it a folder

Then, with `wheels/` and this source tree on the machine with the GPU:

    python3.12 tests/gpu/run.py wheels -o record.json

It makes a virtual environment in a temporary folder, installs from the wheels alone, runs the tests of this folder,
measures latencies (benchmarks/latency.py), prints a summary, and writes a record as JSON: date, card, driver, versions,
the outcome of each check with what it found, and the latencies. torch and CuPy are used where they are installed on the
machine or lie among the wheels; compute-sanitizer where it is on PATH. It takes less than four minutes. The exit status
is 0 if no check failed and at least one ran on a GPU.

    --here          use the running interpreter's environment; no wheels are needed
    --fake-driver   a rehearsal without a GPU: everything but numbers (needs gcc, implies that nothing is proven)
    --no-latency    leave the measurements out
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
REQUIRED = ("hatch-cuda-kernels", "cuda-core", "cuda-bindings", "nvidia-cuda-nvrtc", "numpy", "pytest")
OPTIONAL = ("mandelscope", "torch", "cupy-cuda13x")
LIMIT = 230.0


def make_environment(folder: Path, wheels: Path) -> Path:
    """A virtual environment with the wheels; returns its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", str(folder)], check=True)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    pip = [str(python), "-m", "pip", "install", "-q", "--no-index", "--no-warn-script-location", "-f", str(wheels)]
    subprocess.run([*pip, "--force-reinstall", "--no-deps", "hatch-cuda-kernels"], check=True)
    subprocess.run([*pip, *REQUIRED], check=True)
    there = [name for name in OPTIONAL if any(wheels.glob(f"{name.replace('-', '_')}-*.whl"))]
    for name in there:
        extra = ["--no-deps"] if name == "mandelscope" else []  # its dependencies are those above
        subprocess.run([*pip, *extra, name], check=True)
    return python


def summarise(record: dict[str, Any]) -> bool:
    """Print what was found; whether that is good."""
    device = record["device"]
    print(f"\n{device.get('name', 'no device')}, capability {device.get('capability')}, driver {device.get('driver')}")
    for check in record["checks"]:
        reason = f"  ({check['reason'].splitlines()[0][:90]})" if check["reason"] else ""
        print(f"  {check['outcome']:8} {check['seconds']:7.2f} s  {check['check']}{reason}")
    outcomes = [check["outcome"] for check in record["checks"]]
    counts = {kind: outcomes.count(kind) for kind in ("passed", "failed", "skipped")}
    print("  ".join(f"{kind}: {count}" for kind, count in counts.items()))
    if device.get("fake"):
        print("FAKE DRIVER: a rehearsal; nothing was executed on a GPU")
    return bool(counts["passed"] and not counts["failed"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheels", type=Path, nargs="?", help="folder of wheels")
    parser.add_argument("-o", "--output", type=Path, default=Path("gpu-record.json"), help="record (%(default)s)")
    parser.add_argument("--here", action="store_true")
    parser.add_argument("--fake-driver", action="store_true")
    parser.add_argument("--no-latency", action="store_true")
    arguments = parser.parse_args()
    if not arguments.here and arguments.wheels is None:
        parser.error("a folder of wheels is needed, or --here")
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        python = Path(sys.executable)
        if not arguments.here:
            python = make_environment(folder / "venv", arguments.wheels.resolve())
        environment = {**os.environ, "GPU_RECORD": str(folder / "record.json")}
        if arguments.fake_driver:
            sys.path.insert(0, str(HERE.parent))
            import fake_driver

            environment = fake_driver.environment(fake_driver.build(folder), base=environment)
        tests = [str(python), "-m", "pytest", "-q", "-m", "gpu", "-o", "addopts=", "-o", "timeout=", "-o"]
        tests += ["filterwarnings=", "-p", "no:cacheprovider", "-p", "no:xdist", f"--basetemp={folder / 'tests'}"]
        try:
            subprocess.run([*tests, str(HERE)], cwd=folder, env=environment, timeout=LIMIT, check=False)
        except subprocess.TimeoutExpired:
            print(f"the checks took longer than {LIMIT:.0f} s", file=sys.stderr)
            return 1
        path = folder / "record.json"
        if not path.is_file():
            return 1
        record = json.loads(path.read_text("utf-8"))
        left = LIMIT - (time.monotonic() - start)
        if not arguments.no_latency and left > 30:
            command = [
                str(python),
                str(ROOT / "benchmarks/latency.py"),
                "--runs",
                "5",
                "-o",
                str(folder / "latency.json"),
            ]
            if arguments.fake_driver:
                command.append("--fake-driver")
            try:
                subprocess.run(command, env={**os.environ}, timeout=left, check=False)
                record["latency"] = json.loads((folder / "latency.json").read_text("utf-8"))["results"]
            except (subprocess.TimeoutExpired, OSError) as error:
                record["latency"] = f"not measured ({type(error).__name__})"
        record["seconds"] = round(time.monotonic() - start, 1)
        good = summarise(record)
        arguments.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"{record['seconds']} s; record: {arguments.output}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
