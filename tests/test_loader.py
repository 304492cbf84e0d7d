# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The loader, seen from an app: which image it gets, what it survives, what it says.

The real cuda.core runs against the fake driver, in subprocesses with a time limit: some calls of cuda.core hang for
ever without a driver, and what a process has loaded cannot be undone.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest
from fake_driver import COMPILER, environment, read_log
from support import ARCHS, Result, Site, build_demo, edit_manifest, install_editable, run_python

if shutil.which(COMPILER) is None:
    pytest.skip(f"{COMPILER} is not there", allow_module_level=True)
try:
    version("cuda-core")
    version("nvidia-cuda-nvrtc")
except PackageNotFoundError as missing:
    pytest.skip(f"{missing.name} is not installed", allow_module_level=True)

SOURCE_HERE = Path(__file__).resolve().parents[1]


class Machine:
    """A machine to run code on: a fake driver, a cache of its own, and a log of what the driver was asked."""

    def __init__(self, library: Path, folder: Path) -> None:
        self.library, self.folder = library, folder
        self.log = folder / "driver.log"
        self.cache = folder / "cache"

    def variables(self, *, jit: str | None = None, cache: str | None = None, **driver: Any) -> dict[str, str]:
        found = environment(self.library, log=self.log, **driver)
        found["HATCH_CUDA_KERNELS_CACHE"] = str(self.cache) if cache is None else cache
        found["CUDA_PYTHON_DISABLE_MAJOR_VERSION_WARNING"] = "1"  # of cuda-bindings, where the driver is older
        found.pop("HATCH_CUDA_KERNELS_JIT", None)
        if jit is not None:
            found["HATCH_CUDA_KERNELS_JIT"] = jit
        return found

    def run(self, code: str, *path: Path | str, **options: Any) -> Result:
        names = ("options", "arguments", "timeout", "check", "cwd")
        given = {name: options.pop(name) for name in names if name in options}
        return run_python(code, self.variables(**options), *path, **given)

    def loads(self, result: int | None = 0) -> list[str]:
        """Architectures of the images that the driver was given, in order: taken (0), refused, or all (None)."""
        entries = [entry for entry in read_log(self.log) if entry["call"] in ("library_load", "module_load")]
        return [entry["arch"] for entry in entries if result is None or entry["result"] == result]


@pytest.fixture
def machine(fake_library: Path, tmp_path: Path) -> Machine:
    return Machine(fake_library, tmp_path)


@pytest.fixture
def broken(demo: Site, tmp_path: Path) -> Site:
    """A copy of the package, to be damaged."""
    return demo.copy(tmp_path / "broken")


LOAD = """
from hatch_cuda_kernels import load_kernel
report([attempt(load_kernel, sys.argv[1], package="demo"), caught])
"""


def load(machine: Machine, site: Site, name: str = "saxpy", **options: Any) -> tuple[str, list[str]]:
    """("ok" or the error, warnings) of loading one kernel of the package."""
    outcome, warnings = machine.run(LOAD, site.root, arguments=[name], **options).value
    return outcome, warnings


# -- which image -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("capability", "driver", "kernel", "arch"),
    [
        pytest.param("8.0", "13.5", "saxpy", "sm_80", id="exact"),
        pytest.param("8.6", "13.5", "saxpy", "sm_80", id="lower-minor"),
        pytest.param("9.0", "13.5", "saxpy", "sm_90a", id="a-before-plain"),
        pytest.param("9.0", "13.0", "saxpy", "sm_90a", id="older-minor-of-driver"),
        pytest.param("12.0", "13.5", "saxpy", "compute_80", id="ptx"),
        pytest.param("8.7", "13.5", "saxpy", "compute_80", id="tegra-takes-ptx"),
        pytest.param("12.0", "14.1", "saxpy", "compute_80", id="newer-major-of-driver"),
        pytest.param("9.0", "13.5", "hopper", "sm_90a", id="kernel-of-some-images"),
        pytest.param("9.0", "13.5", "axpby<double>", "sm_90a", id="template"),
        pytest.param("9.0", "13.5", "demo::scale", "sm_90a", id="namespace"),
        pytest.param("9.0", "13.5", "two:which", "sm_90a", id="module-and-kernel"),
    ],
)
def test_a_shipped_image(machine: Machine, demo: Site, capability: str, driver: str, kernel: str, arch: str) -> None:
    """The best image that the device and its driver can run is the one that is loaded, once, without any doubt."""
    assert load(machine, demo, kernel, capabilities=(capability,), driver=driver, jit="0") == ("ok", [])
    assert machine.loads(None) == [arch]


@pytest.mark.slow
def test_nearest_lower_minor(machine: Machine, tmp_path: Path, build_cache: Path) -> None:
    """Among cubins of the same major the nearest one below the device wins."""
    site = build_demo(tmp_path / "minors", archs=("sm_80", "sm_86", "sm_90"), cache=build_cache)
    assert load(machine, site, capabilities=("8.9",), jit="0") == ("ok", [])
    assert machine.loads(None) == ["sm_86"]


@pytest.mark.parametrize(
    ("capability", "driver", "reason"),
    [
        pytest.param("12.0", "13.0", "PTX of CUDA 13.5 needs a driver at least as new; this one is of CUDA 13.0"),
        pytest.param("9.0", "12.9", "a cubin of CUDA 13.5 needs a driver of CUDA 13, not 12.9"),
    ],
    ids=["ptx-of-a-newer-minor", "cubin-of-a-newer-major"],
)
def test_a_driver_that_is_too_old(machine: Machine, demo: Site, capability: str, driver: str, reason: str) -> None:
    """What an older driver cannot run is never handed to it, and the error shows why, candidate by candidate."""
    outcome, warnings = load(machine, demo, capabilities=(capability,), driver=driver, jit="0")
    assert outcome.startswith("NoCompatibleImageError: demo has nothing for this device")
    assert reason in outcome and "HATCH_CUDA_KERNELS_JIT=0" in outcome
    assert all(arch in outcome for arch in ARCHS)
    assert (machine.loads(None), warnings) == ([], [])


def test_an_image_without_the_kernel_is_no_candidate(machine: Machine, demo: Site) -> None:
    """A kernel that some architectures leave out is not looked for in their images."""
    outcome, _ = load(machine, demo, "hopper", capabilities=("8.0",), jit="0")
    assert outcome.startswith("NoCompatibleImageError") and "sm_80 " not in outcome.replace("jit   sm_80", "")
    assert machine.loads(None) == []


# -- the run-time fallback -----------------------------------------------------------------------------------------

COMPILES = """
import hatch_cuda_kernels.compiler as compiler
compiled = []
original = compiler.compile_job
def counting(job, space):
    compiled.append(str(job))
    return original(job, space)
compiler.compile_job = counting
from hatch_cuda_kernels import load_kernel, load_module
outcome = attempt(load_kernel, sys.argv[1], package="demo")
report([outcome, compiled, caught])
"""


def test_fallback_cold_then_warm(machine: Machine, demo: Site) -> None:
    """What no image serves is compiled from the shipped source, once: the next process finds it in the cache."""
    for wanted in (["vector for sm_120"], []):
        found = machine.run(COMPILES, demo.root, arguments=["axpby<float>"], capabilities=("12.0",), driver="13.0")
        assert found.value == ["ok", wanted, []]
    assert machine.loads() == ["sm_120", "sm_120"]


def test_forced_fallback(machine: Machine, demo: Site) -> None:
    """HATCH_CUDA_KERNELS_JIT=force ignores the images, and compiles with the suffix that the author listed."""
    found = machine.run(COMPILES, demo.root, arguments=["saxpy"], jit="force")
    assert found.value == ["ok", ["vector for sm_90a"], []]
    assert machine.loads(None) == ["sm_90a"]


def test_forbidden_fallback(machine: Machine, demo: Site) -> None:
    """HATCH_CUDA_KERNELS_JIT=0 never compiles; the error tells what was there instead."""
    outcome, _ = load(machine, demo, capabilities=("7.5",), jit="0")
    assert outcome.startswith("NoCompatibleImageError")
    for part in ("no cubin sm_80", "no ptx   compute_80", "no jit   sm_75", "HATCH_CUDA_KERNELS_JIT=0"):
        assert part in outcome
    assert not machine.cache.exists()


def test_an_unknown_policy(machine: Machine, demo: Site) -> None:
    """A value of HATCH_CUDA_KERNELS_JIT that means nothing is an error that lists those that do."""
    outcome, _ = load(machine, demo, jit="never")
    assert outcome.startswith("ConfigurationError: HATCH_CUDA_KERNELS_JIT='never'") and "force" in outcome


def test_a_kernel_that_the_source_leaves_out(machine: Machine, demo: Site) -> None:
    """When the fallback compiles and the kernel is not in the result, the error says for which architecture."""
    outcome, _ = load(machine, demo, "hopper", capabilities=("8.0",))
    assert outcome.startswith("KernelNotFoundError: the source leaves 'hopper' out when it is compiled for sm_80")


def test_a_package_without_sources(machine: Machine, tmp_path: Path, build_cache: Path) -> None:
    """Without shipped sources the trace says that there are none, and nothing is compiled."""
    site = build_demo(tmp_path / "bare", archs=("sm_80",), extra={"jit": False}, cache=build_cache)
    outcome, _ = load(machine, site, capabilities=("9.0",))
    assert outcome.startswith("NoCompatibleImageError") and "the package ships no sources" in outcome


@pytest.mark.slow
def test_a_device_that_nvrtc_does_not_know(machine: Machine, demo: Site) -> None:
    """A device newer than NVRTC gets PTX of the fallback, if its driver is new enough to compile that."""
    found = machine.run(COMPILES, demo.root, arguments=["saxpy"], capabilities=("13.0",), jit="force", driver="14.0")
    assert found.value[:2] == ["ok", ["vector for compute_121"]]
    outcome, _ = load(machine, demo, capabilities=("7.0",), driver="13.0")
    assert outcome.startswith("NoCompatibleImageError") and "cannot compile for compute capability 7.0" in outcome
    assert "no cubin sm_80" in outcome  # the trace


# -- damage ------------------------------------------------------------------------------------------------------


def _truncate(site: Site) -> None:
    path = site.image("vector", "sm_90a")
    path.write_bytes(path.read_bytes()[:-100])


def _flip(site: Site) -> None:
    path = site.image("vector", "sm_90a")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _swap(site: Site) -> None:
    one, other = site.image("vector", "sm_90a"), site.image("vector", "sm_90")
    data = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(data)


def _wrong_architecture(site: Site) -> None:
    """As if the manifest were wrong too: the digest fits, the file is for another architecture."""
    site.image("vector", "sm_90a").write_bytes(site.image("vector", "sm_80").read_bytes())
    edit_manifest(site, lambda manifest: None)


def _directory(site: Site) -> None:
    site.image("vector", "sm_90a").unlink()
    site.image("vector", "sm_90a").mkdir()


DAMAGES = {
    "missing": lambda site: site.image("vector", "sm_90a").unlink(),
    "truncated": _truncate,
    "empty": lambda site: site.image("vector", "sm_90a").write_bytes(b""),
    "flipped": _flip,
    "other-architecture": _wrong_architecture,
    "directory": _directory,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_image_is_passed_over(machine: Machine, broken: Site, damage: Any) -> None:
    """A file that is not the one that was built is refused with one warning, and the next candidate serves."""
    damage(broken)
    outcome, warnings = load(machine, broken, jit="0")
    assert outcome == "ok"
    (warning,) = warnings
    assert warning.startswith("CudaKernelsWarning: demo: _cuda_kernels/vector.sm_90a.cubin")
    assert "reinstall" in warning and "trying what comes next" in warning
    assert machine.loads(None) == ["sm_90"]


def test_swapped_images(machine: Machine, broken: Site) -> None:
    """Two images that were swapped are both refused; what is left is compiled from the source."""
    _swap(broken)
    outcome, warnings = load(machine, broken)
    assert outcome == "ok" and len(warnings) == 2
    assert machine.loads(None) == ["compute_80"]


def test_damage_is_warned_of_once(machine: Machine, broken: Site) -> None:
    """One damaged image is one warning in a process, however many of its kernels are loaded."""
    _flip(broken)
    code = """
from hatch_cuda_kernels import load_kernel
names = ["saxpy", "demo::scale", "axpby<float>", "saxpy"]
report([[attempt(load_kernel, name, package="demo") for name in names], len(caught)])
"""
    assert machine.run(code, broken.root).value == [["ok"] * 4, 1]
    assert machine.loads(None) == ["sm_90"]


def test_the_fallback_serves_when_all_images_are_damaged(machine: Machine, broken: Site) -> None:
    """With every image damaged the shipped source serves, as its own digests hold."""
    for arch in ARCHS:
        broken.image("vector", arch).write_bytes(b"no image")
    outcome, warnings = load(machine, broken)
    assert outcome == "ok" and len(warnings) == 3  # sm_80 does not run here
    assert machine.loads(None) == ["sm_90a"]


@pytest.mark.parametrize("file", ["demo/vector.cu", "include/demo/gain.cuh"])
@pytest.mark.parametrize("change", ["flipped", "missing"])
def test_damaged_sources(machine: Machine, broken: Site, file: str, change: str) -> None:
    """Sources that are not those that were built are not compiled: IntegrityError when nothing else is left."""
    for arch in ARCHS:
        broken.image("vector", arch).unlink()
    path = broken.kernels / "src" / file
    if change == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes().replace(b"e", b"f", 1))
    outcome, _ = load(machine, broken)
    assert outcome.startswith("IntegrityError: demo: every candidate for 'saxpy' failed")
    assert f"src/{file}" in outcome and "vector.sm_90a.cubin" in outcome and "reinstall" in outcome
    assert machine.loads(None) == []


def test_damage_and_no_compiler(machine: Machine, broken: Site) -> None:
    """When images are damaged and the fallback fails for another reason, the error is still about the damage."""
    for arch in ARCHS:
        broken.image("vector", arch).unlink()
    outcome, _ = machine.run(NO_NVRTC + LOAD, broken.root, arguments=["saxpy"]).value
    assert outcome.startswith("IntegrityError: demo: every candidate for 'saxpy' failed")
    assert "vector.sm_90a.cubin" in outcome and "NVRTC cannot be loaded" in outcome and "reinstall" in outcome


def test_damage_without_a_way_out(machine: Machine, broken: Site) -> None:
    """When the only candidate is damaged and compiling is forbidden, the error is about the damage."""
    _flip(broken)
    broken.image("vector", "sm_90").unlink()
    broken.image("vector", "compute_80").unlink()
    outcome, _ = load(machine, broken, jit="0")
    assert outcome.startswith("IntegrityError") and "its digest differs" in outcome


@pytest.mark.parametrize("error", [209, 218, 222])
@pytest.mark.parametrize("refused", ["sm_90a", "compute_80"])
def test_a_refusal_at_load(machine: Machine, demo: Site, refused: str, error: int) -> None:
    """An image that the driver refuses when it is loaded makes way for the next candidate, with one warning."""
    capability = "9.0" if refused == "sm_90a" else "12.0"
    outcome, warnings = load(machine, demo, capabilities=(capability,), refuse={refused: error})
    assert outcome == "ok" and len(warnings) == 1
    assert f"the driver refuses demo: vector.{refused}" in warnings[0] and "CUDA_ERROR_" in warnings[0]
    assert machine.loads() == ["sm_90" if refused == "sm_90a" else "sm_120"]


def test_a_refusal_at_first_use(machine: Machine, broken: Site) -> None:
    """A driver that loads lazily is asked at once whether it takes an image: a refusal is met before any launch."""
    edit_manifest(broken, lambda manifest: manifest["compiler"].update(release="12.9.86"))
    outcome, warnings = load(machine, broken, driver="12.9", lazy=True, jit="0")
    assert outcome.startswith("DriverError: demo: every candidate for 'saxpy' failed")
    assert outcome.count("the driver refuses demo: vector.") == 3
    assert [warning.split(" (")[0].rpartition(".sm_")[2] for warning in warnings[:2]] == ["90a.cubin", "90.cubin"]


def test_a_lazy_refusal_makes_way(machine: Machine, broken: Site) -> None:
    """After a refusal at first use the next candidate is loaded, and that one is what the app gets."""
    # To this manifest the file for 8.0 is one for 9.0, and only the driver knows better.
    broken.image("vector", "sm_90a").write_bytes(broken.image("vector", "sm_80").read_bytes())

    def claim(manifest: Any) -> None:
        (vector,) = (module for module in manifest["modules"] if module["name"] == "vector")
        by_arch = {image["architecture"]: image for image in vector["images"]}
        by_arch["sm_90a"]["entries"] = by_arch["sm_80"]["entries"]

    edit_manifest(broken, claim)
    code = """
import hatch_cuda_kernels.package as reader
reader.cubin_number = lambda data: 90
from hatch_cuda_kernels import load_kernel
kernel = load_kernel("saxpy", package="demo")
report([kernel.attributes.num_regs > 0, caught])
"""
    usable, warnings = machine.run(code, broken.root, lazy=True, jit="0").value
    assert usable and len(warnings) == 1 and "vector.sm_90a.cubin (CUDA_ERROR_NO_BINARY_FOR_GPU)" in warnings[0]
    assert machine.loads() == ["sm_80", "sm_90"]  # what it pretends to be, and what came next


def test_refused_everywhere(machine: Machine, demo: Site) -> None:
    """When the driver refuses every candidate, DriverError shows each refusal; a second try says the same at once."""
    code = """
from hatch_cuda_kernels import load_kernel
report([attempt(load_kernel, "saxpy", package="demo") for _ in range(2)])
"""
    refuse = {"sm_90": 209, "sm_90a": 209, "compute_80": 222}
    first, second = machine.run(code, demo.root, refuse=refuse).value
    assert first.startswith("DriverError: demo: every candidate for 'saxpy' failed:\n  1. ")
    for part in ("vector.sm_90a.cubin (CUDA_ERROR_NO_BINARY", "CUDA_ERROR_UNSUPPORTED_PTX", "compiled for sm_90a"):
        assert part in first
    assert second == first
    assert len(machine.loads(None)) == 4  # an image that was refused is not offered again


def test_memory_that_runs_out_is_no_refusal(machine: Machine, demo: Site) -> None:
    """An error that is not about the image ends the load: nothing is compiled, and a later try may succeed."""
    code = """
from hatch_cuda_kernels import load_kernel
first = attempt(load_kernel, "saxpy", package="demo")
os.environ["FAKE_CUDA_REFUSE"] = ""
import ctypes
ctypes.CDLL(None).unsetenv(b"FAKE_CUDA_REFUSE")
report([first, attempt(load_kernel, "saxpy", package="demo"), caught])
"""
    first, second, warnings = machine.run(code, demo.root, refuse={"sm_90a": 2}).value
    assert first.startswith("DriverError: the driver cannot load demo: vector.sm_90a.cubin (CUDA_ERROR_OUT_OF_MEMORY")
    assert (second, warnings) == ("ok", [])
    assert not machine.cache.exists()


# -- manifests ---------------------------------------------------------------------------------------------------


def _text(change: Any) -> Any:
    def damage(site: Site) -> None:
        path = site.kernels / "manifest.json"
        path.write_bytes(change(path.read_bytes()))

    return damage


def _value(change: Any) -> Any:
    def damage(site: Site) -> None:
        value = site.manifest()
        change(value)
        (site.kernels / "manifest.json").write_text(json.dumps(value))

    return damage


def _image(**changes: Any) -> Any:
    return _value(lambda manifest: manifest["modules"][2]["images"][0].update(changes))


MANIFESTS = {
    "missing": (lambda site: (site.kernels / "manifest.json").unlink(), "has no _cuda_kernels/manifest.json"),
    "truncated": (_text(lambda data: data[:-50]), "not JSON"),
    "empty": (_text(lambda data: b""), "not JSON"),
    "binary": (_text(lambda data: b"\xff\xfe" + data), "not JSON"),
    "deep": (_text(lambda data: b"[" * 100_000), "not JSON"),
    "array": (_text(lambda data: b"[]"), "expected an object"),
    "later": (_value(lambda manifest: manifest.update(schema=2)), "schema 2 is newer"),
    "parent": (_image(file="../../../etc/passwd"), "not a path inside"),
    "absolute": (_image(file="/etc/passwd"), "not a path inside"),
    "huge": (_image(size=1 << 80), "expected a count"),
    "negative": (_image(size=-1), "expected a count"),
    "not-a-number": (_text(lambda data: data.replace(b'"size": ', b'"size": NaN, "x": ', 1)), "not JSON"),
    "source-outside": (
        _value(lambda manifest: manifest["modules"][0].update(source="../x.cu")),
        "not a path inside",
    ),
}


@pytest.mark.parametrize(("damage", "message"), MANIFESTS.values(), ids=MANIFESTS)
def test_a_damaged_manifest(machine: Machine, broken: Site, damage: Any, message: str) -> None:
    """A manifest that cannot be read as one is a ManifestError that names it, before any driver is asked."""
    damage(broken)
    outcome, _ = load(machine, broken)
    assert outcome.startswith("ManifestError: demo") and message in outcome
    assert read_log(machine.log) == []


# -- where packages are --------------------------------------------------------------------------------------------


def test_a_package_in_a_zip_file(machine: Machine, demo: Site, tmp_path: Path) -> None:
    """A package that is imported from a zip file loads, images and fallback alike."""
    archive = tmp_path / "site.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted(demo.root.rglob("*")):
            file.write(path, path.relative_to(demo.root))
    for jit, kernel in (("0", "saxpy"), ("force", "axpby<float>")):
        code = LOAD + "\nimport demo\nassert '.zip' in demo.__file__"
        found = machine.run(code, archive, arguments=[kernel], jit=jit)
        assert found.value == ["ok", []]
    empty = tmp_path / "empty.zip"
    with zipfile.ZipFile(empty, "w") as file:
        file.writestr("demo/__init__.py", "")
    assert machine.run(LOAD, empty, arguments=["saxpy"]).value[0].startswith("ManifestError: demo has no")


@pytest.mark.slow
def test_moved_site_packages(machine: Machine, demo: Site, tmp_path: Path) -> None:
    """An installed package can be moved, also to a path with white space and letters beyond ASCII."""
    moved = demo.copy(tmp_path / "an öther pläce")
    assert load(machine, moved, jit="0") == ("ok", [])
    assert load(machine, moved, capabilities=("12.1",), jit="force") == ("ok", [])


@pytest.mark.parametrize("module", ["demo", "demo.module", "demo.sub.deep"])
def test_the_callers_package(machine: Machine, demo: Site, module: str) -> None:
    """Without `package` the kernels are those of the calling module's package, or of the nearest one above it."""
    code = "import importlib\nreport(attempt(importlib.import_module(sys.argv[1]).load, 'saxpy'))"
    assert machine.run(code, demo.root, arguments=[module]).value == "ok"
    assert machine.loads() == ["sm_90a"]


@pytest.mark.slow
def test_a_package_that_is_run(machine: Machine, demo: Site) -> None:
    """`python -m demo` has a package as well."""
    code = "import runpy\nrunpy.run_module('demo', run_name='__main__', alter_sys=True)\nreport(True)"
    assert "ran" in machine.run(code, demo.root).output
    done = subprocess.run(
        [sys.executable, "-m", "demo"],
        env={**machine.variables(), "PYTHONPATH": str(demo.root)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr


def test_a_caller_in_no_package(machine: Machine, demo: Site) -> None:
    """A script has no package: the error says how to name one, for each of the three functions."""
    code = """
from hatch_cuda_kernels import explain, load_kernel, load_module
report([attempt(function, "saxpy") for function in (load_kernel, load_module, explain)])
"""
    for outcome in machine.run(code, demo.root).value:
        assert outcome.startswith("ConfigurationError: __main__ is in no package") and "package=..." in outcome


def test_a_package_without_kernels(machine: Machine, demo: Site) -> None:
    """A package that has no manifest, or is not there, is a ManifestError with both likely reasons."""
    code = """
from hatch_cuda_kernels import load_kernel
report([attempt(load_kernel, "saxpy", package=name) for name in ("json", "nowhere", "nowhere.at.all", "sys", "")])
"""
    for outcome in machine.run(code, demo.root).value:
        assert outcome.startswith("ManifestError") and "is it installed" in outcome


def test_two_packages_in_one_process(machine: Machine, demo: Site, tmp_path: Path) -> None:
    """Kernels of one name in two packages are two kernels."""
    shutil.copytree(demo.root / "demo", tmp_path / "other" / "second")
    code = """
from hatch_cuda_kernels import load_kernel
first, second, third, fourth = [load_kernel("saxpy", package=name) for name in ("demo", "second") * 2]
report([first is second, first is third, second is fourth])
"""
    assert machine.run(code, demo.root, tmp_path / "other").value == [False, True, True]


# -- names -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["axpby<float>", "axpby< float >", " axpby <float> ", "vector:axpby<float>", "vector : axpby< float>"]
)
def test_white_space_in_names(machine: Machine, demo: Site, name: str) -> None:
    """White space in a name counts where C++ needs it, and nowhere else."""
    assert load(machine, demo, name, jit="0") == ("ok", [])


@pytest.mark.parametrize(
    ("name", "hints"),
    [
        ("saxpi", ["'saxpy'"]),
        ("scale", ["'demo::scale'"]),
        ("axpby<int>", ["'axpby<float>'"]),
        ("which", ['"one:which"', '"two:which"']),
        ("three:which", ["'two:which'", "'one:which'"]),
        ("nothing at all like it", ["it has: axpby<double>", "saxpy"]),
        ("", ["it has: "]),
    ],
)
def test_a_name_that_is_not_there(machine: Machine, demo: Site, name: str, hints: Sequence[str]) -> None:
    """KernelNotFoundError lists near names; it comes before any driver is asked, and from all three functions."""
    code = """
from hatch_cuda_kernels import explain, load_kernel
try:
    load_kernel(sys.argv[1], package="demo")
except LookupError as error:
    found = [f"{type(error).__name__}: {error}"]
found.append(attempt(explain, sys.argv[1], package="demo"))
found.append(attempt(explain, sys.argv[1], package="demo", compute_capability="9.0"))
report([found, "cuda" in sys.modules])
"""
    found, asked = machine.run(code, demo.root, arguments=[name], init_error=999).value
    assert len(set(found)) == 1 and found[0].startswith("KernelNotFoundError: demo has ") and not asked
    assert all(hint in found[0] for hint in hints)
    assert read_log(machine.log) == []


def test_a_module_that_is_not_there(machine: Machine, demo: Site) -> None:
    """load_module calls what it cannot find a module, and lists near ones."""
    code = "from hatch_cuda_kernels import load_module\nreport(attempt(load_module, 'stat', package='demo'))"
    outcome = machine.run(code, demo.root).value
    assert outcome == "KernelNotFoundError: demo has no module 'stat'; did you mean 'state'?"


@pytest.mark.slow
def test_whole_modules(machine: Machine, demo: Site) -> None:
    """load_module gives the image with its variables, takes source names, and shares the image with load_kernel."""
    code = """
from cuda.bindings import driver
from cuda.core import Device
from hatch_cuda_kernels import load_kernel, load_module
Device().set_current()
state = load_module("state", package="demo")
library = driver.CUlibrary(int(state.handle))
sizes = {name: int(driver.cuLibraryGetGlobal(library, name.encode())[2]) for name in ("coefficients", "counter")}
kernels = [state.get_kernel("polynomial"), load_kernel("polynomial", package="demo")]
vector = load_module("vector", package="demo")
names = ("saxpy", "demo::scale", "axpby<float>", "axpby<double>", "hopper")
again = load_module("state", package="demo") is state
report([sizes, len({int(kernel.handle) for kernel in kernels}), again,
        [attempt(vector.get_kernel, name) for name in names]])
"""
    for jit in ("0", "force"):
        found = machine.run(code, demo.root, jit=jit).value
        assert found == [{"coefficients": 16, "counter": 4}, 1, True, ["ok"] * 5]
    assert machine.loads(None) == ["sm_90a"] * 4  # two images in each process


# -- devices and threads -------------------------------------------------------------------------------------------

PAIR = ("9.0", "8.6")


def test_devices_of_two_kinds(machine: Machine, demo: Site) -> None:
    """Each device gets its own image; without `device` it is the calling thread's current one that counts."""
    code = """
from cuda.core import Device
from hatch_cuda_kernels import load_kernel
get = lambda **options: int(load_kernel("saxpy", package="demo", **options).handle)
found = {"before": get(), "zero": get(device=0), "one": get(device=1), "object": get(device=Device(1))}
Device(1).set_current()
found["current one"] = get()
found["zero while one"] = get(device=0)
found["still one"] = [Device().device_id, get()]
Device(0).set_current()
found["current zero"] = get()
report(found)
"""
    found = machine.run(code, demo.root, capabilities=PAIR, jit="0").value
    zero, one = found["zero"], found["one"]
    assert zero != one
    assert found == {
        "before": zero,
        "zero": zero,
        "one": one,
        "object": one,
        "current one": one,
        "zero while one": zero,
        "still one": [1, one],
        "current zero": zero,
    }
    assert machine.loads(None) == ["sm_90a", "sm_80"]


def test_another_device_than_the_current_one(machine: Machine, demo: Site) -> None:
    """`device` need not be the current one, and stays what it was: the image is offered to the one that is meant."""
    code = """
from cuda.core import Device, LaunchConfig, launch
from hatch_cuda_kernels import load_kernel
Device(0).set_current()
kernel = load_kernel("saxpy", package="demo", device=1)
here = Device().device_id
Device(1).set_current()
launch(Device(1).create_stream(), LaunchConfig(grid=1, block=32), kernel, 0, 0, 0, 0)
report([here, caught])
"""
    assert machine.run(code, demo.root, capabilities=PAIR, jit="0").value == [0, []]
    assert machine.loads(None) == ["sm_80"]
    assert [entry["result"] for entry in read_log(machine.log, "launch")] == [0]


def test_devices_of_one_kind_share_images(machine: Machine, demo: Site) -> None:
    """Images do not belong to a device: two of one kind share what was loaded."""
    code = """
from cuda.core import Device
from hatch_cuda_kernels import load_kernel
kernels = [load_kernel("saxpy", package="demo", device=device) for device in (None, 0, 1, Device(1), None)]
Device(1).set_current()
kernels.append(load_kernel("saxpy", package="demo"))
report(len({int(kernel.handle) for kernel in kernels}))
"""
    assert machine.run(code, demo.root, capabilities=("9.0", "9.0")).value == 1
    assert machine.loads(None) == ["sm_90a"]


@pytest.mark.parametrize("device", ["7", "-1", "'cuda:0'"])
def test_a_device_that_is_not_there(machine: Machine, demo: Site, device: str) -> None:
    """A device that does not exist is a DriverError that names it, also when kernels were loaded before."""
    code = f"""
from hatch_cuda_kernels import load_kernel
report([attempt(load_kernel, "saxpy", package="demo", device=device) for device in ({device}, None, {device})])
"""
    first, second, third = machine.run(code, demo.root).value
    assert (first, second) == (third, "ok")
    assert first.startswith(f"DriverError: no usable NVIDIA device {device}")


def test_sixteen_threads(machine: Machine, demo: Site) -> None:
    """Sixteen threads on two kinds of devices get the right kernels, and each image is loaded exactly once."""
    code = """
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from cuda.core import Device
from hatch_cuda_kernels import load_kernel, load_module
barrier = Barrier(16)
names = ["saxpy", "polynomial", "one:which", "two:which", "axpby<float>"]
def work(number):
    Device(number % 2).set_current()
    barrier.wait()
    found = {name: int(load_kernel(name, package="demo").handle) for name in names[number % 5:] + names[:number % 5]}
    load_module("state", package="demo")
    return number % 2, found
with ThreadPoolExecutor(16) as threads:
    found = list(threads.map(work, range(16)))
report([len({tuple(sorted(kernels.items())) for device, kernels in found if device == which}) for which in (0, 1)])
"""
    assert machine.run(code, demo.root, capabilities=PAIR, load_delay=20, jit="0").value == [1, 1]
    assert sorted(machine.loads(None)) == ["sm_80"] * 4 + ["sm_90a"] * 4


@pytest.mark.slow
def test_sixteen_threads_and_a_cold_fallback(machine: Machine, demo: Site) -> None:
    """Threads that need one image from the fallback compile it once, with a cache or without."""
    code = COMPILES.replace(
        'outcome = attempt(load_kernel, sys.argv[1], package="demo")',
        """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(16) as threads:
    outcome = sorted(set(threads.map(lambda _: attempt(load_kernel, "saxpy", package="demo"), range(16))))
""",
    )
    for cache in (None, "0"):
        found = machine.run(code, demo.root, jit="force", cache=cache).value
        assert found == [["ok"], ["vector for sm_90a"], []]
    assert machine.loads(None) == ["sm_90a"] * 2


@pytest.mark.slow
def test_a_fork_before_the_first_use(machine: Machine, demo: Site) -> None:
    """A child that was forked before anything was loaded loads by itself, even when a thread held the lock."""
    code = """
import threading
import hatch_cuda_kernels.loader as loader
from hatch_cuda_kernels import load_kernel
held = threading.Event()
def hold():
    with loader.lock():
        held.set()
        time.sleep(2)
threading.Thread(target=hold, daemon=True).start()
held.wait()
if not (child := os.fork()):
    outcome = attempt(load_kernel, "saxpy", package="demo")
    os._exit(0 if outcome == "ok" else 1)
_, status = os.waitpid(child, 0)
report([os.waitstatus_to_exitcode(status), attempt(load_kernel, "saxpy", package="demo")])
"""
    assert machine.run(code, demo.root).value == [0, "ok"]
    assert machine.loads(None) == ["sm_90a"] * 2


def test_a_fork_after_the_first_use(machine: Machine, demo: Site) -> None:
    """CUDA ends with a fork: the child is told so, kernels of the parent are not handed out, the parent goes on."""
    code = """
from hatch_cuda_kernels import load_kernel
load_kernel("saxpy", package="demo")
reader, writer = os.pipe()
if not os.fork():
    found = [attempt(load_kernel, name, package="demo") for name in ("saxpy", "polynomial")]
    os.write(writer, json.dumps(found).encode())
    os._exit(0)
os.wait()
report([json.loads(os.read(reader, 10000)), attempt(load_kernel, "polynomial", package="demo")])
"""
    child, parent = machine.run(code, demo.root).value
    assert parent == "ok"
    for outcome in child:
        assert outcome.startswith("DriverError") and "forked" in outcome and "spawn" in outcome


# -- without a driver ----------------------------------------------------------------------------------------------

TWICE = """
from hatch_cuda_kernels import explain, load_kernel, load_module
import cuda.core
found, start = [], time.monotonic()
for _ in range(2):
    found.append(attempt(load_kernel, "saxpy", package="demo"))
    found.append(attempt(load_module, "state", package="demo"))
    found.append(attempt(explain, "saxpy", package="demo"))
    found.append(attempt(load_kernel, "saxpy", package="demo", device=0))
known = str(explain("saxpy", package="demo", compute_capability="8.6"))
report([found, time.monotonic() - start, known])
"""


@pytest.mark.parametrize(
    "driver",
    [{"capabilities": ()}, {"init_error": 100}, {"init_error": 999}, {"init_error": 803}, {"init_error": 804}, None],
    ids=["no-device", "init-100", "init-999", "init-803", "init-804", "no-driver"],
)
def test_no_usable_driver(machine: Machine, demo: Site, driver: dict[str, Any] | None) -> None:
    """Without a driver or a device, DriverError comes in under a second, the second time too, and says what to do."""
    variables = machine.variables(**driver) if driver is not None else _without_driver(machine)
    found, seconds, known = run_python(TWICE, variables, demo.root).value
    assert len(found) == 8
    for outcome in found:
        assert outcome.startswith("DriverError: no usable NVIDIA device") and "install the NVIDIA driver" in outcome
    assert seconds < 1
    assert "cubin sm_80" in known.splitlines()[0]


def _without_driver(machine: Machine) -> dict[str, str]:
    return {name: value for name, value in machine.variables().items() if name != "LD_LIBRARY_PATH"}


BLOCKED = """
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "cuda":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocked())
"""


def test_without_cuda_core(machine: Machine, demo: Site) -> None:
    """Without cuda-core, ToolchainError names the extras; an explanation for a given capability needs none."""
    code = BLOCKED + (
        """
from hatch_cuda_kernels import explain, load_kernel
found = [attempt(load_kernel, "saxpy", package="demo") for _ in range(2)]
found.append(attempt(explain, "saxpy", package="demo"))
selection = explain("saxpy", package="demo", compute_capability="9.0")
newer = explain("saxpy", package="demo", compute_capability=(12, 0), driver_version="13.0")
report([found, selection.choice.arch, selection.driver_version, newer.choice.kind])
"""
    )
    found, arch, driver, newer = machine.run(code, demo.root).value
    for outcome in found:
        assert outcome.startswith("ToolchainError: cuda-core cannot be imported") and "[cu13]" in outcome
    assert (arch, driver, newer) == ("sm_90a", ".".join(version("nvidia-cuda-nvrtc").split(".")[:2]), "jit")


NO_NVRTC = """
import hatch_cuda_kernels.toolchain as toolchain
def missing():
    raise toolchain.ToolchainError(f"NVRTC cannot be loaded (no such library); {toolchain.INSTALL_HINT}")
toolchain.import_nvrtc, toolchain.installed_release = missing, lambda: None
"""


def test_without_nvrtc(machine: Machine, demo: Site) -> None:
    """When the fallback is needed and NVRTC is missing, the error names the extra and shows why it was needed."""
    outcome, _ = machine.run(NO_NVRTC + LOAD, demo.root, arguments=["saxpy"], capabilities=("7.5",)).value
    assert outcome.startswith("ToolchainError: NVRTC cannot be loaded") and "[cu13]" in outcome
    assert "no cubin sm_80" in outcome


# -- what a hit costs ----------------------------------------------------------------------------------------------


def test_importing_imports_little(machine: Machine) -> None:
    """Importing the package imports neither CUDA nor numpy nor hatchling, nor what only a build needs."""
    code = """
import hatch_cuda_kernels
heavy = ("cuda", "numpy", "hatchling", "pathspec", "filelock", "platformdirs", "tempfile", "asyncio")
report([name for name in heavy if name in sys.modules])
"""
    assert machine.run(code, SOURCE_HERE).value == []


HIT = """
import socket
def refuse(*arguments, **options):
    raise AssertionError("network")
socket.socket.connect = socket.create_connection = refuse
from hatch_cuda_kernels import load_kernel, load_module
outcome = [attempt(load_kernel, name, package="demo") for name in ("saxpy", "axpby<float>")]
outcome.append(attempt(load_module, "state", package="demo"))
with open("/proc/self/maps") as stream:
    maps = stream.read()
mine = sorted(name for name in sys.modules if name.startswith("hatch_cuda_kernels."))
report([outcome, "libnvrtc" in maps, mine, caught])
"""


def test_a_hit_needs_no_compiler_cache_or_network(machine: Machine, demo: Site) -> None:
    """A shipped image is loaded without NVRTC, without a cache directory and without the network."""
    outcome, nvrtc, modules, warnings = machine.run(HIT, demo.root).value
    assert (outcome, nvrtc, warnings) == (["ok"] * 3, False, [])
    compiling = {f"hatch_cuda_kernels.{name}" for name in ("nvrtc", "cache", "plan", "sources", "toolkit")}
    assert not compiling & set(modules)
    assert not machine.cache.exists()


def test_a_hit_on_a_read_only_disk(machine: Machine, demo: Site, tmp_path: Path) -> None:
    """A shipped image loads where nothing can be written: no home, no temporary folder, no cache."""
    nowhere = {"HOME": "/proc/nowhere", "TMPDIR": "/proc/nowhere", "XDG_CACHE_HOME": "/proc/nowhere"}
    variables = {**machine.variables(), **nowhere, "HATCH_CUDA_KERNELS_CACHE": "/proc/nowhere"}
    code = (
        """
real = os.open
def refuse_writes(path, flags, *rest, **options):
    assert path == os.devnull or not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT), path
    return real(path, flags, *rest, **options)
os.open = refuse_writes
def no_folder(path, *rest, **options):
    raise AssertionError(path)
os.mkdir = os.makedirs = no_folder
"""
        + HIT
    )
    outcome, _, _, warnings = run_python(code, variables, demo.root).value
    assert (outcome, warnings) == (["ok"] * 3, [])


def test_a_repeated_call_asks_nobody(machine: Machine, demo: Site) -> None:
    """The second load of a kernel is a look-up; where devices differ, the driver is asked which one is current."""
    code = """
from hatch_cuda_kernels import load_kernel
first = load_kernel("saxpy", package="demo")
import builtins, hatch_cuda_kernels.package, hatch_cuda_kernels.driver as driver
def refuse(*arguments, **options):
    raise AssertionError("not again")
driver.device_facts = hatch_cuda_kernels.package.find_files = refuse
if len(sys.argv) > 1:
    import hatch_cuda_kernels.loader as loader
    loader._load_for = refuse
report(all(load_kernel("saxpy", package="demo") is first for _ in range(3)))
"""
    for capabilities, arguments in ((("9.0",), ["look-up"]), (("9.0", "9.0"), ["look-up"]), (PAIR, [])):
        assert machine.run(code, demo.root, capabilities=capabilities, arguments=arguments).value is True


# -- editable installs -----------------------------------------------------------------------------------------------


def _seen(machine: Machine, root: Path, site: Path, name: str = "demo::scale", **options: Any) -> Any:
    return machine.run(COMPILES, site, root, arguments=[name], **options).value


def test_live_edits(machine: Machine, tmp_path: Path) -> None:
    """In an editable install the next process sees an edited source or header; without an edit it hits the cache."""
    root, site = install_editable(tmp_path)
    fresh = ["ok", ["vector for sm_90a"], []]
    assert _seen(machine, root, site) == fresh
    assert _seen(machine, root, site) == ["ok", [], []]
    header = root / "include/demo/gain.cuh"
    header.write_text(header.read_text().replace("2.0f", "3.0f"))
    assert _seen(machine, root, site) == fresh
    source = root / "demo/vector.cu"
    source.write_text(source.read_text().replace("saxpy", "saxpy2"))
    assert _seen(machine, root, site, "saxpy2")[0] == "ok"
    assert _seen(machine, root, site, "saxpy")[0].startswith("KernelNotFoundError: demo has no kernel 'saxpy'")
    assert len({entry["fnv1a64"] for entry in read_log(machine.log, "library_load")}) == 3


@pytest.mark.slow
def test_a_live_source_that_does_not_compile(machine: Machine, tmp_path: Path) -> None:
    """A mistake in a live source is the compiler's error, every time, and never the kernel of before."""
    root, site = install_editable(tmp_path)
    assert _seen(machine, root, site)[0] == "ok"
    source = root / "demo/vector.cu"
    good = source.read_text()
    source.write_text(good.replace("x[i] *= GAIN;", "x[i] *= GAIN"))
    for _ in range(2):
        outcome = _seen(machine, root, site)[0]
        assert outcome.startswith("CompilationError") and "demo/vector.cu(" in outcome and 'expected a ";"' in outcome
    source.write_text(good)
    assert _seen(machine, root, site) == ["ok", [], []]


@pytest.mark.slow
def test_an_edited_hook_table(machine: Machine, tmp_path: Path) -> None:
    """An edit of the hook table is named as needing a reinstall; an edit elsewhere in the file is not."""
    root, site = install_editable(tmp_path)
    path = root / "pyproject.toml"
    path.write_text(path.read_text() + "\n[tool.other]\nkey = 1\n")
    assert _seen(machine, root, site)[0] == "ok"
    path.write_text(path.read_text().replace("sm_80", "sm_86"))
    outcome = _seen(machine, root, site)[0]
    assert outcome.startswith("ConfigurationError: the hook table of") and "reinstall" in outcome


@pytest.mark.slow
def test_a_new_source_in_an_editable_install(machine: Machine, tmp_path: Path) -> None:
    """A source that appeared since the install is named, as it needs a reinstall to be declared."""
    root, site = install_editable(tmp_path)
    (root / "demo/three.cu").write_text('extern "C" __global__ void third(int *x) { *x = 3; }\n')
    outcome = _seen(machine, root, site, "third")[0]
    assert outcome.startswith("KernelNotFoundError") and "demo/three.cu" in outcome and "reinstall" in outcome


@pytest.mark.slow
def test_an_editable_install_in_full(machine: Machine, tmp_path: Path) -> None:
    """Names, modules, explanations and the policy work in an editable install as in any other."""
    root, site = install_editable(tmp_path)
    code = """
from hatch_cuda_kernels import explain, load_kernel, load_module
names = ["saxpy", "axpby< double >", "one:which", "which", "saxpi", "hopper"]
found = [attempt(load_kernel, name, package="demo") for name in names]
state = load_module("state", package="demo")
report([found, attempt(state.get_kernel, "polynomial"), explain("saxpy", package="demo").choice.kind,
        attempt(explain, "saxpi", package="demo", compute_capability="8.6"),
        attempt(load_module, "stat", package="demo"),
        explain("saxpy", package="demo.sub", compute_capability="8.6").choice.arch])
"""
    found, polynomial, kind, missing, module, arch = machine.run(code, site, root).value
    assert found[:3] == ["ok"] * 3 and found[5] == "ok"
    assert '"one:which", "two:which"' in found[3] and "'saxpy'" in found[4]
    assert (polynomial, kind, arch) == ("ok", "jit", "sm_86")
    assert missing.startswith("KernelNotFoundError") and "no module 'stat'" in module
    outcome, compiled, _ = _seen(machine, root, site, jit="0")
    assert outcome.startswith("NoCompatibleImageError: demo is installed as editable") and compiled == []


@pytest.mark.slow
def test_an_editable_install_without_a_driver(machine: Machine, tmp_path: Path) -> None:
    """Without a driver a name that is not there is told first; for one that is there it is a DriverError."""
    root, site = install_editable(tmp_path)
    for name, kind in (("saxpi", "KernelNotFoundError"), ("saxpy", "DriverError")):
        assert _seen(machine, root, site, name, init_error=100)[0].startswith(kind)


def test_an_editable_install_compiles_once(machine: Machine, tmp_path: Path) -> None:
    """Without a cache too, a live module is compiled once in a process, whatever is loaded from it."""
    root, site = install_editable(tmp_path)
    more = "load_kernel('saxpy', package='demo'), load_module('vector', package='demo')\n"
    code = COMPILES.replace("report(", more + "report(")
    found = machine.run(code, site, root, arguments=["axpby<float>"], cache="0").value
    assert found == ["ok", ["vector for sm_90a"], []]
    assert machine.loads(None) == ["sm_90a"]
