# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The command line on real wheels: what it prints, what it returns, what it refuses."""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

import pytest
from projects import KERNEL, make_project
from support import Site, install_editable

from hatch_cuda_kernels.cli import main

SOURCES = {
    "demo/scale.cu": '#include "value.cuh"\n' + KERNEL,
    "demo/value.cuh": "// a header\n",
    "demo/twice.cu": KERNEL + 'extern "C" __global__ void only_here(int *x) { *x = 1; }\n',
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel with two modules for sm_80, sm_90a and compute_80."""
    project = make_project(tmp_path_factory.mktemp("cli"), 'archs = ["sm_80", "sm_90a", "compute_80"]', SOURCES)
    run = project.build()
    assert run.status == 0, run.output
    return project.wheel()


@pytest.fixture
def command(tmp_path: Path) -> Callable[..., tuple[int, str, str]]:
    """Runs the command line in a process of its own: (status, output, errors)."""

    def run(*arguments: str | Path, **env: str) -> tuple[int, str, str]:
        variables = {"HATCH_CUDA_KERNELS_CACHE": str(tmp_path / "cache"), **env}
        done = subprocess.run(
            [sys.executable, "-m", "hatch_cuda_kernels", *map(str, arguments)],
            env={**os.environ, **variables}, capture_output=True, text=True, timeout=120, cwd=tmp_path,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.fixture
def quick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """The same in this process, for what reads a wheel and neither compiles nor asks a driver."""

    def run(*arguments: str | Path, **env: str) -> tuple[int, str, str]:
        with monkeypatch.context() as changed:
            changed.chdir(tmp_path)
            for name, value in {"HATCH_CUDA_KERNELS_CACHE": str(tmp_path / "cache"), **env}.items():
                changed.setenv(name, value)
            try:
                status = main([*map(str, arguments)])
            except SystemExit as end:
                status = int(end.code or 0)
        found = capsys.readouterr()
        return status, found.out, found.err

    return run


Command = Callable[..., tuple[int, str, str]]


def changed(wheel: Path, target: Path, change: Callable[[dict[str, bytes]], None], *, record: bool = True) -> Path:
    """A copy of a wheel whose files were changed, and its RECORD with them unless that is to be kept."""
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    change(files)
    if record:
        lines = [f"{name},{digest_in_record(data)},{len(data)}" for name, data in files.items() if name != RECORD]
        files[RECORD] = "\n".join([*lines, f"{RECORD},,", ""]).encode()
    with zipfile.ZipFile(target, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return target


def digest_in_record(data: bytes) -> str:
    """A file's digest as RECORD has it."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


MANIFEST = "demo/_cuda_kernels/manifest.json"
RECORD = "demo-1.0.dist-info/RECORD"


class TestInspect:
    @pytest.mark.slow
    def test_text(self, wheel: Path, command: Command) -> None:
        """Modules x architectures, resources per kernel, the compiler and the fallback are shown."""
        status, output, _ = command("inspect", wheel)
        assert status == 0
        for text in ("2 modules, 6 images", "NVRTC 1", "sm_90a", "twice:only_here", "3 source files", "registers"):
            assert text in output

    def test_json_is_the_manifest(self, wheel: Path, command: Command) -> None:
        """--json gives the manifests as they are in the wheel, from a wheel and from a folder alike."""
        _, output, _ = command("inspect", wheel, "--json")
        with zipfile.ZipFile(wheel) as archive:
            assert json.loads(output) == {"schema": 1, "packages": [json.loads(archive.read(MANIFEST))]}
            archive.extractall(wheel.parent / "folder")
        assert command("inspect", wheel.parent / "folder", "--json")[:2] == (0, output)
        assert command("inspect", wheel.parent / "folder" / "demo", "--json")[:2] == (0, output)

    def test_importable_package(self, wheel: Path, command: Command, tmp_path: Path) -> None:
        """An importable package is a target, from a folder or from a zip file on the path."""
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(tmp_path / "site")
        shutil.copy(wheel, tmp_path / "demo.zip")
        for path in ("site", "demo.zip"):
            status, output, errors = command("verify", "demo", PYTHONPATH=str(tmp_path / path))
            assert (status, output) == (0, "6 images: fine\n"), errors

    @pytest.mark.parametrize("name", ["nothing-here.whl", "no/such/folder", "not_a_package"])
    def test_no_target(self, command: Command, name: str) -> None:
        """What is no target is one message."""
        status, output, errors = command("inspect", name)
        assert status in (1, 2)
        assert not output
        assert name in errors

    def test_wheel_without_kernels(self, command: Command, tmp_path: Path) -> None:
        """A wheel without a manifest, and a file that is no wheel, are named as such."""
        with zipfile.ZipFile(tmp_path / "plain.whl", "w") as archive:
            archive.writestr("plain/__init__.py", "")
        (tmp_path / "text.whl").write_text("not a zip file")
        assert "was it built with the hook" in command("inspect", tmp_path / "plain.whl")[2]
        status, _, errors = command("inspect", tmp_path / "text.whl")
        assert (status, "no wheel" in errors) == (1, True)

    def test_fits_a_terminal(self, wheel: Path, command: Command) -> None:
        """No line is wider than the terminal; without one there are no colours and no folds."""
        _, wide, _ = command("inspect", wheel, COLUMNS="")
        _, narrow, _ = command("inspect", wheel, COLUMNS="50")
        assert max(map(len, narrow.splitlines())) <= 68  # the line of counts is a sentence, and not folded
        assert all(len(line) <= 50 for line in narrow.splitlines() if "  " in line)
        assert len(narrow.splitlines()) > len(wide.splitlines())
        assert "\x1b" not in wide

    def test_all(self, wheel: Path, command: Command) -> None:
        """--all names the files of the fallback, too."""
        assert "demo/value.cuh" not in command("inspect", wheel)[1]
        assert "  demo/value.cuh  12 B" in command("inspect", wheel, "--all")[1]

    def test_narrow_encoding(self, wheel: Path, command: Command) -> None:
        """A console that cannot show a letter shows its code."""
        status, output, _ = command("inspect", wheel, COLUMNS="40", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
        assert (status, "\\u2026" in output) == (0, True)

    def test_strange_names(self, wheel: Path, command: Command, tmp_path: Path) -> None:
        """What would steer a terminal is shown, not obeyed."""

        def rename(files: dict[str, bytes]) -> None:
            files[MANIFEST] = files[MANIFEST].replace(b'"twice"', b'"a\\u001b[2Jb\\n\\u202e"')

        status, output, _ = command("inspect", changed(wheel, tmp_path / wheel.name, rename), COLUMNS="200")
        assert status == 0
        assert "a\\x1b[2Jb\\n\\u202e:only_here" in output
        assert "\x1b" not in output

    def test_closed_pipe(self, wheel: Path, tmp_path: Path) -> None:
        """A reader that has seen enough, such as `head`, makes no noise."""
        line = f"{shlex.quote(sys.executable)} -m hatch_cuda_kernels inspect {shlex.quote(str(wheel))} --json | true"
        done = subprocess.run(line, shell=True, capture_output=True, text=True, timeout=60, cwd=tmp_path)
        assert done.stderr == ""


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel with two packages that both have the kernel `scale`, and one of them `only_here`."""
    files = {"demo/scale.cu": KERNEL, "more/__init__.py": "", "more/twice.cu": SOURCES["demo/twice.cu"]}
    extra = '[tool.hatch.build.targets.wheel]\npackages = ["demo", "more"]\n'
    project = make_project(tmp_path_factory.mktemp("two"), files=files, extra=extra)
    run = project.build()
    assert run.status == 0, run.output
    return project.wheel()


class TestPackages:
    def test_kernel_in_both(self, two: Path, command: Command) -> None:
        """A kernel of two packages is never taken from the first silently."""
        arguments = ("explain", two, "scale", "--compute-capability", "8.0")
        status, _, errors = command(*arguments)
        assert (status, "--package demo or --package more" in errors) == (1, True)
        assert command(*arguments, "--package", "more")[0] == 0
        assert command("explain", two, "only_here", "--compute-capability", "8.0")[0] == 0
        assert "'only_here'" in command("explain", two, "only_her", "--compute-capability", "8.0")[2]

    def test_one_of_them(self, two: Path, command: Command) -> None:
        """--package chooses; one that is not there is misuse; a stub is for one package."""
        packages = json.loads(command("inspect", two, "--json", "--package", "more")[1])["packages"]
        assert [found["package"] for found in packages] == ["more"]
        status, _, errors = command("inspect", two, "--package", "other")
        assert (status, "it has: demo, more" in errors) == (2, True)
        assert command("stubs", two)[0] == 2
        assert "only_here" in command("stubs", two, "--package", "more")[1]
        rows = json.loads(
            command("warm", two, "--package", "demo", "--compute-capability", "8.0", "--json")[1]
        )["modules"]  # fmt: skip
        assert [row["package"] for row in rows] == ["demo"]


@pytest.mark.slow
def test_editable_install(command: Command, tmp_path: Path) -> None:
    """Every command speaks of an editable install: of the wheel that its sources would give now."""
    root, site = install_editable(tmp_path / "live", archs=["sm_80"])
    env = {"PYTHONPATH": str(site)}
    status, output, errors = command("inspect", "demo", "--json", **env)
    assert status == 0, errors
    (manifest,) = json.loads(output)["packages"]
    kernels = {name for module in manifest["modules"] for name in module["kernels"]}
    assert {"saxpy", "demo::scale", "axpby<float>", "polynomial", "which"} <= kernels
    assert command("verify", "demo", **env)[:2] == (0, "4 images: fine\n")
    assert '"axpby<double>"' in command("stubs", "demo", **env)[1].replace("'", '"')
    arguments = ("warm", "demo", "--compute-capability", "9.0", "--json")
    first, second = (json.loads(command(*arguments, **env)[1]) for _ in range(2))
    assert (first["compiled"], second["compiled"], second["cached"]) == (4, 0, 4)
    (root / "demo/state.cu").write_text('extern "C" __global__ void renamed(int *x) { *x = 1; }\n')
    assert "renamed" in command("inspect", "demo", **env)[1]
    (root / "demo/state.cu").write_text("__global__ void broken(")
    status, _, errors = command("inspect", "demo", **env)
    assert (status, "state for sm_80" in errors) == (1, True)


class TestExplain:
    @pytest.mark.parametrize(
        ("capability", "driver", "kind", "arch"),
        [
            ("8.6", "13.5", "cubin", "sm_80"),
            ("9.0", "13.5", "cubin", "sm_90a"),
            ("12.0", "13.5", "ptx", "compute_80"),
            ("12.0", "13.0", "jit", "sm_120"),
            ("7.5", "13.5", "jit", "sm_75"),
        ],
    )  # fmt: skip
    def test_choice(self, wheel: Path, quick: Command, capability: str, driver: str, kind: str, arch: str) -> None:
        """The choice for a capability and a driver, in text and as JSON."""
        arguments = ("explain", wheel, "scale:scale", "--compute-capability", capability, "--driver", driver)
        status, output, _ = quick(*arguments, "--json")
        value = json.loads(output)
        assert (status, value["choice"]) == (0, {"kind": kind, "arch": arch})
        assert {"schema", "kernel", "compute_capability", "choice", "candidates"} <= set(value)
        assert all(set(found) == {"kind", "arch", "accepted", "reason"} for found in value["candidates"])
        status, output, _ = quick(*arguments)
        assert f"{kind} {arch}" in output.splitlines()[0]

    def test_nothing_serves(self, wheel: Path, quick: Command) -> None:
        """Status 1 and a null choice where nothing serves."""
        arguments = ("explain", wheel, "only_here", "--compute-capability", "7.5", "--json")
        status, output, _ = quick(*arguments, HATCH_CUDA_KERNELS_JIT="0")
        assert (status, json.loads(output)["choice"]) == (1, None)

    def test_unknown_and_ambiguous_kernels(self, wheel: Path, quick: Command) -> None:
        """Near names and the module:kernel choices are listed; one line, status 1."""
        status, _, errors = quick("explain", wheel, "only_her", "--compute-capability", "8.0")
        assert (status, "'only_here'" in errors) == (1, True)
        status, _, errors = quick("explain", wheel, "scale", "--compute-capability", "8.0")
        assert (status, '"scale:scale", "twice:scale"' in errors) == (1, True)

    def test_misuse(self, wheel: Path, quick: Command) -> None:
        """A capability that cannot be read is misuse."""
        assert quick("explain", wheel, "scale", "--compute-capability", "nine")[0] == 2

    def test_without_device(self, wheel: Path, command: Command) -> None:
        """Without a capability and without a device it says so, in a moment."""
        status, _, errors = command("explain", wheel, "only_here")
        assert (status, "NVIDIA" in errors) == (1, True)


class TestVerify:
    def test_fine(self, wheel: Path, command: Command) -> None:
        """A wheel as built has no problem, its sources compile on their own, and nothing lacks a fallback."""
        status, output, _ = command("verify", wheel, "--jit", "--json")
        assert (status, json.loads(output)) == (0, {"schema": 1, "ok": True, "problems": [], "no_fallback": []})

    @pytest.mark.parametrize(
        ("change", "path", "problem"),
        [
            (lambda f: f.update({"demo/_cuda_kernels/scale.sm_80.cubin": b"\x7fELF"}), "scale.sm_80.cubin", "bytes"),
            (lambda f: f.pop("demo/_cuda_kernels/scale.sm_80.cubin"), "scale.sm_80.cubin", "cannot be read"),
            (lambda f: f.update({"demo/_cuda_kernels/stray.cubin": b"x"}), "stray.cubin", "not listed"),
            (lambda f: f.pop("demo/_cuda_kernels/src/demo/value.cuh"), "src/demo/value.cuh", "cannot be read"),
            (lambda f: f.update({MANIFEST: f[MANIFEST][:-20]}), "manifest.json", "not JSON"),
            (lambda f: f.update({MANIFEST: f[MANIFEST].replace(b'"schema": 1', b'"schema": 9')}), "manifest.json", "9"),
            (
                lambda f: f.update({MANIFEST: f[MANIFEST].replace(b'"registers": ', b'"registers": 1')}),
                "sm_80.cubin",
                "other resources",
            ),
            (lambda f: f.update({MANIFEST: f[MANIFEST].replace(b'"sm_90a"', b'"sm_90"')}), "sm_90a.cubin", "not for"),
        ],
        ids="truncated missing stray no-header manifest schema resources architecture".split(),
    )
    def test_fault(
        self, wheel: Path, quick: Command, tmp_path: Path, change: Callable[[dict[str, bytes]], None],
        path: str, problem: str,
    ) -> None:  # fmt: skip
        """Each fault is found, in the file that has it."""
        damaged = changed(wheel, tmp_path / wheel.name, change)
        status, output, _ = quick("verify", damaged, "--json")
        value = json.loads(output)
        assert (status, value["ok"]) == (1, False)
        assert any(path in found["path"] and problem in found["problem"] for found in value["problems"]), value
        assert path in quick("verify", damaged)[1]

    @pytest.mark.parametrize(
        ("change", "path", "problem"),
        [
            (lambda f: f.pop(RECORD), "RECORD", "a wheel has one, and this has none"),
            (lambda f: f.update({"other-1.dist-info/RECORD": b""}), "RECORD", "a wheel has one, and this has 2"),
            (lambda f: f.update({RECORD: b"\xff\n"}), RECORD, "cannot be read"),
            (lambda f: f.update({RECORD: f[RECORD] + b"a,b,c,d\n"}), RECORD, "not three fields"),
            (lambda f: f.update({RECORD: f[RECORD] + b'"a\n'}), RECORD, "not three fields"),
            (lambda f: f.update({"demo/new.py": b""}), "demo/new.py", "is not listed in RECORD"),
            (lambda f: f.pop("demo/__init__.py"), "demo/__init__.py", "is listed in RECORD, and is not there"),
            (lambda f: f.update({"demo/__init__.py": b"import os\n"}), "demo/__init__.py", "bytes, and 0 in RECORD"),
            (lambda f: f.update({"demo/scale.cu": f["demo/scale.cu"][::-1]}), "demo/scale.cu", "another digest"),
            (
                lambda f: f.update({RECORD: f[RECORD].replace(b"sha256=", b"md5=", 1)}),
                "",
                "no digest of it that counts",
            ),
        ],
        ids="none two text fields quote unlisted gone size digest algorithm".split(),
    )
    def test_record(
        self, wheel: Path, quick: Command, tmp_path: Path, change: Callable[[dict[str, bytes]], None],
        path: str, problem: str,
    ) -> None:  # fmt: skip
        """A wheel that does not fit its RECORD is not fine, whatever its kernels are."""
        damaged = changed(wheel, tmp_path / wheel.name, change, record=False)
        status, output, _ = quick("verify", damaged, "--json")
        assert status == 1
        problems = json.loads(output)["problems"]
        assert any(path in found["path"] and problem in found["problem"] for found in problems), problems

    def test_record_signed(self, wheel: Path, quick: Command, tmp_path: Path) -> None:
        """Signatures of RECORD are not listed in it."""
        signed = changed(wheel, tmp_path / wheel.name, lambda f: f.update({f"{RECORD}.jws": b"{}"}), record=False)
        assert quick("verify", signed)[0] == 0

    @pytest.mark.slow
    def test_jit_finds_a_missing_header(self, wheel: Path, command: Command, tmp_path: Path) -> None:
        """--jit finds a header that the sources need and the wheel does not list."""

        def drop(files: dict[str, bytes]) -> None:
            manifest = json.loads(files[MANIFEST])
            del manifest["fallback"]["files"]["demo/value.cuh"]
            files[MANIFEST] = json.dumps(manifest).encode()
            del files["demo/_cuda_kernels/src/demo/value.cuh"]

        damaged = changed(wheel, tmp_path / wheel.name, drop)
        assert command("verify", damaged)[0] == 0
        status, output, _ = command("verify", damaged, "--jit")
        assert (status, "value.cuh" in output) == (1, True)

    @pytest.mark.slow
    def test_no_fallback_for(self, command: Command, tmp_path: Path) -> None:
        """A foreign architecture that the sources do not compile for is listed, and is no fault."""
        source = "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800\n#error too old\n#endif\n" + KERNEL
        project = make_project(tmp_path / "p", files={"demo/k.cu": source})
        assert project.build().status == 0
        status, output, _ = command("verify", project.wheel(), "--jit", "--json")
        value = json.loads(output)
        assert (status, value["ok"]) == (0, True)
        assert [found["arch"] for found in value["no_fallback"]] == ["sm_75"]


class TestStubs:
    def test_names(self, wheel: Path, quick: Command) -> None:
        """The stub is valid Python and lists every name that load_kernel takes."""
        status, output, _ = quick("stubs", wheel)
        assert status == 0
        names: dict[str, Any] = {}
        literals: list[ast.stmt] = [node for node in ast.parse(output).body if isinstance(node, ast.Assign)]
        exec(compile(ast.Module(literals, []), "stub", "exec"), {"Literal": Literal}, names)
        assert set(get_args(names["KernelName"])) == {"only_here", "scale:scale", "twice:scale", "twice:only_here"}
        assert set(get_args(names["ModuleName"])) == {"scale", "twice"}


class TestCache:
    @pytest.mark.slow
    def test_warm_info_verify_clear(self, wheel: Path, command: Command, tmp_path: Path) -> None:
        """warm fills the cache; info counts; verify finds a flipped byte; clear empties it."""

        def values(*arguments: str | Path, status: int = 0) -> dict[str, Any]:
            found, output, errors = command(*arguments, "--json")
            assert found == status, errors
            value = json.loads(output)
            assert value["schema"] == 1
            return dict(value)

        assert values("cache", "info")["entries"] == 0
        first = values("warm", wheel, "--compute-capability", "12.0", "--compute-capability", "8.6")
        assert (first["compiled"], first["cached"]) == (2, 0)
        assert {row["outcome"] for row in first["modules"]} == {"compiled", "image"}
        assert values("warm", wheel, "--compute-capability", "12.0")["cached"] == 2
        assert values("warm", wheel, "--compute-capability", "12.0", "--driver", "13.9")["cached"] == 0
        info = values("cache", "info")
        assert (info["hits"], info["misses"], info["location"]) == (2, 2, str(tmp_path / "cache"))
        assert info["entries"] > 0 and info["bytes"] > 0
        assert values("cache", "verify")["ok"]
        entry = max((tmp_path / "cache" / "entries").rglob("*"), key=lambda path: path.stat().st_size)
        data = bytearray(entry.read_bytes())
        data[len(data) // 2] ^= 1
        entry.write_bytes(data)
        assert [found["path"] for found in values("cache", "verify", status=1)["problems"]] == [str(entry)]
        assert values("cache", "clear")["left"] == 0
        assert values("cache", "info")["entries"] == 0

    def test_off(self, command: Command) -> None:
        """With the cache off, its commands say so."""
        assert command("cache", "info", HATCH_CUDA_KERNELS_CACHE="0")[:2] == (0, "the compile cache is off\n")


class TestFolderOfSources:
    """In a project's root its sources lie in a folder that is called as the installed package is."""

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        """A project's root, as the current folder of `command`."""
        (tmp_path / "demo").mkdir()
        (tmp_path / "demo/__init__.py").touch()
        (tmp_path / "pyproject.toml").touch()
        return tmp_path

    @pytest.mark.slow
    def test_the_installed_package_is_meant(self, root: Path, demo: Site) -> None:
        """The command, which does not have the current folder on its path, takes what is installed."""
        script = (
            "import sys; del sys.path[0]; from hatch_cuda_kernels.cli import main; sys.exit(main(['verify', 'demo']))"
        )
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONPATH": str(demo.root)}, capture_output=True, text=True, timeout=60, cwd=root,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        assert "images: fine" in done.stdout

    def test_what_hides_it_is_named(self, root: Path, command: Command) -> None:
        """With `python -m` the current folder comes first: the message says where the package was found."""
        status, _, errors = command("verify", "demo")
        assert status == 1
        assert f"{root / 'demo'}, a project's own folder: run elsewhere" in errors

    def test_a_folder_of_wheels_contents_is_that_folder(self, root: Path, demo: Site, command: Command) -> None:
        """A folder with images is looked at itself, whatever it is called."""
        shutil.copytree(demo.root, root / "unpacked")
        status, output, _ = command("verify", "unpacked")
        assert status == 0
        assert "images: fine" in output
