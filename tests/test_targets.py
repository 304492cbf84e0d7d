# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Every command that looks at a target, on targets that are none, are damaged, or lie; and on honest ones."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from projects import KERNEL, make_project
from test_cli import MANIFEST, changed
from test_cubin import find_cuobjdump

from hatch_cuda_kernels.cli import main

COMMANDS = {
    "inspect": [],
    "explain": ["scale", "--compute-capability", "8.0"],
    "verify": [],
    "coverage": [],
    "report": [],
    "stubs": [],
    "warm": ["--compute-capability", "8.0"],
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel with one module for two architectures."""
    source = KERNEL + (
        'extern "C" __global__ void shared(int *x) { __shared__ int s[300]; s[threadIdx.x] = *x; __syncthreads(); '
        "*x = s[299 - threadIdx.x]; }\n"
    )
    project = make_project(tmp_path_factory.mktemp("target"), 'archs = ["sm_80", "sm_90a"]', {"demo/scale.cu": source})
    run = project.build()
    assert run.status == 0, run.output
    return project.wheel()


def steers(good: Path, bad: Path) -> None:
    """A package whose name would be code in a stub, and steer a terminal."""
    name = rb'"package": "demo\nimport os\u001b[2J"'
    changed(good, bad, lambda f: f.update({MANIFEST: f[MANIFEST].replace(b'"package": "demo"', name)}))


def no_zip(good: Path, bad: Path) -> None:
    """A file of another kind."""
    bad.write_text("not a zip file")


def empty(good: Path, bad: Path) -> None:
    """No bytes at all."""
    bad.write_bytes(b"")


def truncated(good: Path, bad: Path) -> None:
    """A download that broke off."""
    data = good.read_bytes()
    bad.write_bytes(data[: len(data) // 2])


def flipped(good: Path, bad: Path) -> None:
    """One bit of the compressed manifest is another."""
    data = bytearray(good.read_bytes())
    with zipfile.ZipFile(good) as archive:
        entry = archive.getinfo(MANIFEST)
    data[entry.header_offset + 30 + len(MANIFEST) + entry.compress_size // 2] ^= 0x10
    bad.write_bytes(data)


def without_kernels(good: Path, bad: Path) -> None:
    """A wheel of another project."""
    with zipfile.ZipFile(bad, "w") as archive:
        archive.writestr("plain/__init__.py", "")


def later_schema(good: Path, bad: Path) -> None:
    """A wheel of a later hatch-cuda-kernels."""
    changed(good, bad, lambda f: f.update({MANIFEST: f[MANIFEST].replace(b'"schema": 1', b'"schema": 2')}))


def claims_much(good: Path, bad: Path) -> None:
    """A manifest that claims gigabytes, out of a few compressed bytes."""
    with zipfile.ZipFile(bad, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MANIFEST, "{}")
        archive.filelist[0].file_size = 2 << 30  # what the directory at the end of the file will say


def climbs(good: Path, bad: Path) -> None:
    """An image that lies outside of the package."""
    changed(good, bad, lambda f: f.update({MANIFEST: f[MANIFEST].replace(b'"scale.sm_80.cubin"', b'"../../x.cubin"')}))


BAD: dict[Callable[[Path, Path], None], str] = {
    no_zip: "is no wheel",
    empty: "is no wheel",
    truncated: "is no wheel",
    flipped: "manifest.json",
    without_kernels: "was it built with the hook",
    later_schema: "schema 2 is newer than this hatch-cuda-kernels reads",
    claims_much: "which no such file has",
    climbs: "is not a path inside the package",
    steers: "its manifest is that of demo",
}


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.__name__)
def test_bad_wheels(
    wheel: Path, tmp_path: Path, bad: Callable[[Path, Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each command names what is wrong in a line, and ends with status 1."""
    path = tmp_path / "bad-1.0-py3-none-any.whl"
    bad(wheel, path)
    for name, arguments in COMMANDS.items():
        for more in ([], ["--json"]):
            assert main([name, str(path), *arguments, *more]) == 1, name
            captured = capsys.readouterr()
            assert BAD[bad] in captured.err + captured.out, name
            assert "\x1b" not in captured.err + captured.out
            assert len((captured.err + captured.out).splitlines()) < 12, name
    assert main(["diff", str(wheel), str(path)]) == main(["report", str(wheel), "--against", str(path)]) == 1


def test_names_that_steer(wheel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A package, a module and files with control characters in their names are shown, never obeyed."""
    nasty = "de\x1b[2Jmo"

    def rename(files: dict[str, bytes]) -> None:
        text = files.pop(MANIFEST).decode().replace('"package": "demo"', f'"package": {json.dumps(nasty)}')
        text = text.replace('"scale"', json.dumps("scale\x1b[0m"))
        files[MANIFEST.replace("demo", nasty)] = text.encode()
        for name in [name for name in files if name.startswith("demo/_cuda_kernels/")]:
            files[name.replace("demo", nasty, 1)] = files.pop(name)

    bad = changed(wheel, tmp_path / "bad.whl", rename)
    for name, arguments in {**COMMANDS, "explain": ["shared", "--compute-capability", "8.0"]}.items():
        main([name, str(bad), *arguments])
        captured = capsys.readouterr()
        assert "\\x1b" in captured.out + captured.err or name in ("explain", "verify"), name
        assert "\x1b" not in captured.out + captured.err, name
    main(["diff", str(bad), str(wheel)])
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize("target", ["no/such.whl", "no-such.whl", "/dev/null", ".", "\0", "", "a" * 5000])
def test_no_targets(target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no file, no folder with kernels and no package is one message, whatever it looks like."""
    monkeypatch.chdir(tmp_path)
    for name, arguments in COMMANDS.items():
        assert main([name, target, *arguments]) in (1, 2), name


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_no_target_blocks(tmp_path: Path) -> None:
    """A named pipe is not waited for, as a target or inside of one."""
    os.mkfifo(tmp_path / "pipe.whl")
    folder = tmp_path / "site/demo/_cuda_kernels"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "manifest.json")
    (tmp_path / "site/loop").symlink_to(tmp_path / "site")
    for target in ("pipe.whl", "site"):
        command = [sys.executable, "-m", "hatch_cuda_kernels", "inspect", str(tmp_path / target)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode in (1, 2)
        assert "Traceback" not in done.stderr


def test_every_command_on_a_good_wheel(wheel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Status 0, something to read, and with --json one JSON value of schema 1, whose keys are documented."""
    documented = (Path(__file__).parent.parent / "docs/reference/commands.md").read_text("utf-8").split("## JSON")[1]
    for name, arguments in COMMANDS.items():
        assert main([name, str(wheel), *arguments]) == 0, name
        assert capsys.readouterr().out.strip()
        assert main([name, str(wheel), *arguments, "--json"]) == 0, name
        value = json.loads(capsys.readouterr().out)
        assert value["schema"] == 1
        (row,) = re.findall(rf"^\| `{name}` \|.*$", documented, re.MULTILINE)
        assert [key for key in value if f'"{key}"' not in row] == [], name


def test_inspect_equals_cuobjdump(
    wheel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The figures of `inspect`, in text and as JSON, are those that NVIDIA's tool reads out of the wheel's cubins."""
    tool = find_cuobjdump()
    if tool is None:
        pytest.skip("cuobjdump (nvidia-cuda-cuobjdump) is not installed")
    assert main(["inspect", str(wheel), "--json"]) == 0
    (module,) = json.loads(capsys.readouterr().out)["packages"][0]["modules"]
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["inspect", str(wheel)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    compared = 0
    for image in module["images"]:
        with zipfile.ZipFile(wheel) as archive:
            path = archive.extract(f"demo/_cuda_kernels/{image['file']}", tmp_path)
        command = [tool, "--dump-resource-usage", path]
        text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
        pattern = r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+) CONSTANT\[0\]:(\d+)"
        for kernel, registers, stack, shared, local, constant in re.findall(pattern, text):
            found = image["entries"][kernel]
            named = ("registers", "shared_bytes", "local_bytes", "stack_bytes", "constant_bytes")
            assert [str(found[name]) for name in named] == [registers, shared, local, stack, constant]
            (row,) = [r for r in rows if r[:1] == [f"scale:{kernel}"] and image["architecture"] in r]
            assert row[-6:] == [registers, shared, local, stack, constant, str(found["spill_bytes"])]
            compared += 1
    assert compared == 4
