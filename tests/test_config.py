# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The hook table: one class for each option, the environment, and all mistakes at once with their key paths."""

from __future__ import annotations

import dataclasses
import datetime
import re
from typing import Any

import pytest

from hatch_cuda_kernels import ConfigurationError
from hatch_cuda_kernels.config import (
    _FIELDS,
    _MODULE_FIELDS,
    Config,
    ModuleConfig,
    check_module_name,
    parse_size,
)
from hatch_cuda_kernels.stores.location import Location

WHERE = "tool.hatch.build.hooks.cuda-kernels"
KEYS = (
    "archs sources include-dirs include-packages toolkit-headers host-code defines options headers jit package cuda "
    "nvrtc cache cache-max-size jobs executor compile-timeout max-wheel-bytes max-registers max-spill-bytes "
    "over-budget modules"
).split()
MODULE_KEYS = "source name name-expressions archs include-dirs include-packages defines options variants".split()


def config(environ: dict[str, str] | None = None, /, **table: Any) -> Config:
    """A table without mistakes, read; underscores stand for hyphens and `archs` is given."""
    written = {"archs": ["sm_90"], **{key.replace("_", "-"): value for key, value in table.items()}}
    return Config.from_table(written, environ=environ)


def module(**entry: Any) -> ModuleConfig:
    """The one `[[modules]]` entry of a table without mistakes."""
    (found,) = config(modules=[{"source": "a.cu", **{key.replace("_", "-"): v for key, v in entry.items()}}]).modules
    return found


def mistakes(table: dict[str, Any], environ: dict[str, str] | None = None) -> list[str]:
    """The mistakes of a table, without the path of the table itself."""
    with pytest.raises(ConfigurationError) as caught:
        Config.from_table(table, environ=environ)
    headline, *bullets = str(caught.value).splitlines()
    assert headline == "the hook table has mistakes:"
    assert all(bullet.startswith("  - ") for bullet in bullets)
    return [bullet[4:].removeprefix(f"{WHERE}.") for bullet in bullets]


def mistake(key: str, value: Any) -> str:
    """The one mistake of a table with one bad value, which is told at its key."""
    (told,) = mistakes({"archs": ["sm_90"], key: value})
    assert told.startswith((f"{key}: ", f"{key}."))
    return told


def module_mistake(key: str, value: Any) -> str:
    """The one mistake of a `[[modules]]` entry with one bad value, which is told at its key."""
    (told,) = mistakes({"archs": ["sm_90"], "modules": [{"source": "a.cu"}, {"source": "b.cu", key: value}]})
    assert told.startswith((f"modules[1].{key}: ", f"modules[1].{key}."))
    return told


NO_STRINGS: list[Any] = ["sm_90", ["a", 1], [""], ["a\0b"], {"a": 1}, True, [["a"]]]


def test_the_table_of_keys() -> None:
    """The checked keys are the documented ones, and each is a field with the same name."""
    assert list(_FIELDS) == KEYS
    assert list(_MODULE_FIELDS) == MODULE_KEYS
    fields = {field.name.replace("_", "-") for field in dataclasses.fields(Config)}
    assert fields == {*KEYS, "cuda-given", "report"}
    fields = {field.name.replace("_", "-") for field in dataclasses.fields(ModuleConfig)}
    assert fields == {*MODULE_KEYS, "linked"}


def test_the_smallest_table() -> None:
    """`archs` is all that has to be written; everything else has the documented default."""
    assert Config.from_table({"archs": ["sm_80", "sm_90"]}) == Config(archs=("sm_80", "sm_90"))
    assert dataclasses.asdict(config()) == {
        "archs": ("sm_90",),
        "sources": None,
        "include_dirs": (),
        "include_packages": (),
        "toolkit_headers": "auto",
        "host_code": "skip",
        "defines": {},
        "options": {},
        "headers": (),
        "jit": True,
        "package": None,
        "cuda": "13",
        "cuda_given": False,
        "nvrtc": None,
        "cache": True,
        "cache_max_size": None,
        "jobs": 0,
        "executor": "processes",
        "compile_timeout": None,
        "max_wheel_bytes": None,
        "max_registers": {},
        "max_spill_bytes": {},
        "over_budget": "error",
        "modules": (),
        "report": None,
    }


class TestArchs:
    def test_good(self) -> None:
        """`archs` takes every accepted spelling, as written."""
        spellings = ["sm_90a", "compute_90", "8.0", "9.0+PTX", "90-real", "90", "all", "native"]
        assert config(archs=spellings).archs == tuple(spellings)

    @pytest.mark.parametrize("value", NO_STRINGS)
    def test_bad(self, value: Any) -> None:
        """`archs` is a list of strings."""
        assert "expected a list of strings, found" in mistake("archs", value)

    @pytest.mark.parametrize("value", [[], "", 0])
    def test_empty(self, value: Any) -> None:
        """A list without an architecture is told."""
        assert mistake("archs", value) == "archs: names no architecture"

    def test_misspelt(self) -> None:
        """Each misspelt architecture is told at the key, with the near spelling."""
        first, second = mistakes({"archs": ["SM_80", "sm_90", "80 "]})
        assert first.startswith("archs: 'SM_80' is no architecture; ")
        assert first.endswith("Did you mean 'sm_80'?")
        assert second.endswith("Did you mean '80'?")

    def test_missing(self) -> None:
        """Without `archs` anywhere the build says so: no device is asked."""
        (told,) = mistakes({})
        assert told.startswith("archs: missing; ")
        assert "HATCH_CUDA_KERNELS_ARCHS" in told
        assert mistakes({"modules": [{"source": "a.cu", "archs": ["80"]}, {"source": "b.cu"}]}) == [told]

    def test_modules_can_bring_it(self) -> None:
        """Where every module has its own list, the table needs none."""
        found = Config.from_table({"modules": [{"source": "a.cu", "archs": ["80"]}]})
        assert found.archs == ()
        assert found.modules[0].archs == ("80",)

    @pytest.mark.parametrize(
        ("text", "archs"), [("8.0;9.0+PTX", ("8.0", "9.0+PTX")), ("80-real, 90", ("80-real", "90")), ("all", ("all",))]
    )
    def test_environment(self, text: str, archs: tuple[str, ...]) -> None:
        """HATCH_CUDA_KERNELS_ARCHS wins over the table and over every module."""
        environ = {"HATCH_CUDA_KERNELS_ARCHS": text}
        found = config(environ, modules=[{"source": "a.cu", "archs": ["80"]}])
        assert (found.archs, found.modules[0].archs) == (archs, None)
        assert Config.from_table({}, environ=environ).archs == archs

    @pytest.mark.parametrize(
        ("text", "told"), [("sm_80 SM_90", "'SM_90' is no arch"), (" ; ", "names no architecture")]
    )
    def test_environment_bad(self, text: str, told: str) -> None:
        """A mistake in the variable is told at the variable, once."""
        (found,) = mistakes({}, {"HATCH_CUDA_KERNELS_ARCHS": text})
        assert found.startswith(f"HATCH_CUDA_KERNELS_ARCHS: {told}")


class TestSources:
    def test_good(self) -> None:
        """`sources` is a list of patterns."""
        assert config(sources=["src/*.cu", "!src/old.cu"]).sources == ("src/*.cu", "!src/old.cu")

    @pytest.mark.parametrize("value", NO_STRINGS)
    def test_bad(self, value: Any) -> None:
        """`sources` is nothing but a list of strings."""
        assert "expected a list of strings, found" in mistake("sources", value)

    def test_empty(self) -> None:
        """An empty list would compile nothing, and is told so."""
        assert "leave the key out" in mistake("sources", [])


class TestIncludeDirs:
    def test_good(self) -> None:
        """`include-dirs` keeps its order; a folder above the root may be named."""
        assert config(include_dirs=["b", "a", "../common"]).include_dirs == ("b", "a", "../common")
        assert config(include_dirs=[]).include_dirs == ()

    @pytest.mark.parametrize("value", NO_STRINGS)
    def test_bad(self, value: Any) -> None:
        """`include-dirs` is nothing but a list of strings."""
        assert "expected a list of strings, found" in mistake("include-dirs", value)

    @pytest.mark.parametrize("path", ["/usr/include", "C:/include", "C:\\include", "\\\\server\\include"])
    def test_absolute(self, path: str) -> None:
        """A path of one machine is refused: paths start at the project's root."""
        assert "is an absolute path" in mistake("include-dirs", ["include", path])


class TestIncludePackages:
    def test_good(self) -> None:
        """`include-packages` names packages, or folders inside them; a module's own replace the table's."""
        folders = ("some_library", "some_library/source/include")
        assert config(include_packages=list(folders)).include_packages == folders
        assert module(include_packages=["x"]).include_packages == ("x",)
        assert module().include_packages is None

    @pytest.mark.parametrize("value", NO_STRINGS)
    def test_no_strings(self, value: Any) -> None:
        """Anything but a list of strings is refused."""
        assert "expected a list of strings" in mistake("include-packages", value)

    @pytest.mark.parametrize(
        "value", ["some.library", "../x", "x/../../y", "x//y", "/x", "some-library", "x:y", "x\\y"]
    )
    def test_bad(self, value: str) -> None:
        """A distribution's name, a dotted one or a path that leads out of the package is refused."""
        assert "expected an import package, or a folder inside one" in mistake("include-packages", [value])

    @pytest.mark.parametrize(
        "value", ["nvidia/cu13/include", "nvidia/cu13/include/cccl/", "nvidia/cuda_runtime/include"]
    )
    def test_the_toolkit(self, value: str) -> None:
        """CUDA's own headers are not shipped, so they are not named here."""
        assert "the key toolkit-headers is about those" in mistake("include-packages", [value])


class TestToolkitHeaders:
    @pytest.mark.parametrize("value", ["auto", "bundled", "installed", "none"])
    def test_good(self, value: str) -> None:
        """`toolkit-headers` takes its four words."""
        assert config(toolkit_headers=value).toolkit_headers == value

    @pytest.mark.parametrize("value", ["bundle", "AUTO", "", True, ["auto"], {}])
    def test_bad(self, value: Any) -> None:
        """Anything else is refused with the four words."""
        told = mistake("toolkit-headers", value)
        assert f"expected one of 'auto', 'bundled', 'installed', 'none', found {value!r}" in told
        assert told.endswith("did you mean 'bundled'?") == (value == "bundle")


class TestHostCode:
    @pytest.mark.parametrize("value", ["skip", "error"])
    def test_good(self, value: str) -> None:
        """`host-code` takes its two words."""
        assert config(host_code=value).host_code == value

    @pytest.mark.parametrize("value", ["errors", "refuse", False])
    def test_bad(self, value: Any) -> None:
        """Anything else is refused with the two words."""
        assert f"expected one of 'skip', 'error', found {value!r}" in mistake("host-code", value)


class TestDefines:
    def test_good(self) -> None:
        """A value is text for the compiler; `true` is a bare definition."""
        table = {"BARE": True, "TEXT": "x + 1", "NUMBER": 3, "ZERO": 0, "REAL": 0.5, "EMPTY": "", "HEADER": '"a.h"'}
        assert config(defines=table).defines == {
            **table,
            "NUMBER": "3",
            "ZERO": "0",
            "REAL": "0.5",
        }

    @pytest.mark.parametrize(
        ("value", "told"),
        [
            (["A=1"], "defines: expected a table of macros, found list"),
            ({"A": False}, "defines.A: false defines nothing"),
            ({"A": ["1"]}, "defines.A: expected a string, a number or true"),
            ({"A": 1 << 64}, "defines.A: no integer of C++ has more than 64 bits"),
            ({"A": -(1 << 63) - 1}, "defines.A: no integer of C++ has more than 64 bits"),
            ({"A": datetime.date(1979, 5, 27)}, "defines.A: expected a string, a number or true"),
            ({"A": datetime.datetime(1979, 5, 27, 7, 32)}, "defines.A: expected a string, a number or true"),
            ({"A": "x\ny"}, "defines.A: a macro's value is one line"),
            ({"A": "x\0y"}, "defines.A: a macro's value is one line"),
            ({"A": float("nan")}, "defines.A: nan is no number in C++"),
            ({"A": float("inf")}, "defines.A: inf is no number in C++"),
            ({"1A": True}, "defines.1A: '1A' is no macro name"),
            ({"A B": True}, "defines.A B: 'A B' is no macro name"),
            ({"F(x)": "x"}, "defines.F(x): 'F(x)' is no macro name"),
            ({"": True}, "defines.: '' is no macro name"),
        ],
    )
    def test_bad(self, value: Any, told: str) -> None:
        """What cannot be a macro is refused at its own name."""
        assert mistake("defines", value).startswith(told)
        assert module_mistake("defines", value).startswith(f"modules[1].{told}")


class TestOptions:
    def test_good(self) -> None:
        """`options` takes fields of cuda.core.ProgramOptions."""
        table = {"use-fast-math": True, "std": "c++20", "max-register-count": 64}
        assert config(options=table).options == table

    @pytest.mark.parametrize(
        ("value", "told"),
        [
            ({"use_fast_math": True}, "options.use_fast_math: unknown option; did you mean use-fast-math?"),
            ({"arch": "sm_90"}, "options.arch: cannot be set; use the key archs"),
            ({"fma": 1}, "options.fma: expected true or false, found 1"),
            ("-O3", "options: expected a table of options, found str"),
        ],
    )
    def test_bad(self, value: Any, told: str) -> None:
        """An option that does not exist, cannot work or has a wrong value is refused at its own key."""
        assert mistake("options", value) == told
        assert module_mistake("options", value) == f"modules[1].{told}"


class TestHeaders:
    def test_good(self) -> None:
        """`headers` is a list of patterns, and may be empty."""
        assert config(headers=["include/**/*.cuh"]).headers == ("include/**/*.cuh",)
        assert config(headers=[]).headers == ()

    @pytest.mark.parametrize("value", NO_STRINGS)
    def test_bad(self, value: Any) -> None:
        """`headers` is nothing but a list of strings."""
        assert "expected a list of strings, found" in mistake("headers", value)


class TestJit:
    @pytest.mark.parametrize("value", [True, False])
    def test_good(self, value: bool) -> None:
        """`jit` is on or off."""
        assert config(jit=value).jit is value

    @pytest.mark.parametrize("value", ["true", 1, None, []])
    def test_bad(self, value: Any) -> None:
        """Anything else is refused."""
        assert mistake("jit", value) == f"jit: expected true or false, found {value!r}"


class TestPackage:
    @pytest.mark.parametrize("value", ["pkg", "ns.pkg", "_private"])
    def test_good(self, value: str) -> None:
        """`package` names an import package."""
        assert config(package=value).package == value

    @pytest.mark.parametrize("value", ["", "my-package", "src/pkg", ".pkg", "pkg.", "1st", "../pkg", 1, ["pkg"]])
    def test_bad(self, value: Any) -> None:
        """What cannot be imported is refused."""
        assert "expected an import package such as 'my_package'" in mistake("package", value)


class TestCuda:
    @pytest.mark.parametrize("value", ["12", "13"])
    def test_good(self, value: str) -> None:
        """`cuda` is a major version; a written one is remembered as such."""
        found = config(cuda=value)
        assert (found.cuda, found.cuda_given) == (value, True)

    @pytest.mark.parametrize("value", [13, "13.0", "11", "", None])
    def test_bad(self, value: Any) -> None:
        """Anything else is refused with the majors there are."""
        assert f"expected one of '12', '13', found {value!r}" in mistake("cuda", value)


class TestNvrtc:
    def test_good(self) -> None:
        """`nvrtc` is an exact release, and decides the major version by itself."""
        found = config(nvrtc="12.9.86")
        assert (found.nvrtc, found.cuda, found.cuda_given) == ("12.9.86", "12", False)
        assert config(nvrtc="13.0.88", cuda="13").cuda_given

    @pytest.mark.parametrize(
        "value", ["13.0", "13", "13.0.88.1", ">=13.0", "11.8.89", "13.0.8\u0668", "13.0.88 ", 13.0]
    )
    def test_bad(self, value: Any) -> None:
        """What is no exact release is refused."""
        assert f"expected an exact NVRTC release such as '13.0.88', found {value!r}" in mistake("nvrtc", value)

    def test_contradicts_cuda(self) -> None:
        """A release of another major than `cuda` is refused, both keys named."""
        (told,) = mistakes({"archs": ["90"], "cuda": "13", "nvrtc": "12.9.86"})
        assert told == f"nvrtc: 12.9.86 is not of CUDA 13, which {WHERE}.cuda names"


class TestCache:
    @pytest.mark.parametrize("value", [True, False, "/var/cache/kernels", "~/kernels", "build/cache"])
    def test_good(self, value: bool | str) -> None:
        """`cache` is on, off or a location."""
        assert config(cache=value).cache == (value if isinstance(value, bool) else (Location("directory", value),))

    @pytest.mark.parametrize("value", ["", "a\0b", 0, 1, None, [1], {"url": "s3://b"}])
    def test_bad(self, value: Any) -> None:
        """Anything else is refused."""
        assert mistake("cache", value) == f"cache: expected true, false or a location, found {value!r}"

    def test_list(self) -> None:
        """Several locations are asked one after another; each may be one to read only."""
        assert config(cache=["~/a", "read:s3://b/c"]).cache == (
            Location("directory", "~/a"),
            Location("s3", "s3://b/c", writable=False),
        )

    @pytest.mark.parametrize(
        ("value", "told"),
        [
            ("s4://bucket", "s4:// is no place for a cache; expected a folder, sqlite:FILE"),
            (["x", "redis://"], "redis:// names no host"),
            ([], "expected a folder"),
        ],
    )
    def test_location(self, value: Any, told: str) -> None:
        """A location that means nothing is named with its key, or with the variable."""
        assert mistake("cache", value).startswith(f"cache: {told}")
        if isinstance(value, str):
            with pytest.raises(ConfigurationError, match=f"HATCH_CUDA_KERNELS_CACHE: {re.escape(told)}"):
                config({"HATCH_CUDA_KERNELS_CACHE": value})

    @pytest.mark.parametrize(("text", "value"), [("0", False), ("1", True), ("/x/y", "/x/y"), ("", "from the table")])
    def test_environment(self, text: str, value: bool | str) -> None:
        """HATCH_CUDA_KERNELS_CACHE wins: `0` is off, else a location; an empty one counts as unset."""
        expected = value if isinstance(value, bool) else (Location("directory", value),)
        assert config({"HATCH_CUDA_KERNELS_CACHE": text}, cache="from the table").cache == expected


class TestCacheMaxSize:
    @pytest.mark.parametrize(
        ("value", "size"),
        [
            ("2GB", 2 * 10**9),
            ("512MiB", 512 * 2**20),
            ("1.5 kb", 1500),
            ("1k", 1000),
            ("1Ki", 1024),
            ("3t", 3 * 10**12),
            ("100", 100),
            (" 7 B ", 7),
            (4096, 4096),
        ],
    )
    def test_good(self, value: str | int, size: int) -> None:
        """`cache-max-size` is a size with a decimal or binary unit, or a number of bytes."""
        assert config(cache_max_size=value).cache_max_size == parse_size(value) == size

    @pytest.mark.parametrize(
        "value",
        ["", "GB", "-1GB", "2 GBs", "1e3", "0", "0.1B", 0, -5, True, 2.5, None, "9" * 400 + "TB", 10**30, "\u0662GB"],
    )
    def test_bad(self, value: Any) -> None:
        """What is no size above zero is refused."""
        assert mistake("cache-max-size", value).startswith("cache-max-size: expected a size ")


class TestJobs:
    @pytest.mark.parametrize("value", [0, 1, 64])
    def test_good(self, value: int) -> None:
        """`jobs` is a number; 0 chooses."""
        assert config(jobs=value).jobs == value

    @pytest.mark.parametrize("value", [-1, True, 1.0, "4", 10**9, None])
    def test_bad(self, value: Any) -> None:
        """Anything else is refused."""
        assert mistake("jobs", value).startswith("jobs: expected a number of parallel compiles")

    @pytest.mark.parametrize(("text", "jobs"), [("8", 8), ("0", 0), ("", 3)])
    def test_environment(self, text: str, jobs: int) -> None:
        """HATCH_CUDA_KERNELS_JOBS wins; an empty one counts as unset."""
        assert config({"HATCH_CUDA_KERNELS_JOBS": text}, jobs=3).jobs == jobs

    @pytest.mark.parametrize("text", ["-1", "four", "\u0664", "1.5"])
    def test_environment_bad(self, text: str) -> None:
        """A mistake in the variable is told at the variable."""
        (told,) = mistakes({"archs": ["90"]}, {"HATCH_CUDA_KERNELS_JOBS": text})
        assert told.startswith("HATCH_CUDA_KERNELS_JOBS: expected a number of parallel compiles")


class TestExecutor:
    @pytest.mark.parametrize(
        "value", ["processes", "dask:tcp://host:8786", "dask:tls://[::1]:8786", "module:factory", "a.b_c:Make2"]
    )
    def test_good(self, value: str) -> None:
        """`executor` is one of the three ways."""
        assert config(executor=value).executor == value

    @pytest.mark.parametrize(
        "value",
        ["", "threads", "dask", "dask:", "dask:host", "dask:tcp://", "a.b", ":f", "a:", "a:b.c", "a b:c", 1, None],
    )
    def test_bad(self, value: Any) -> None:
        """Anything else is refused, with what each looks like."""
        assert mistake("executor", value).startswith("executor: expected 'processes', 'dask:ADDRESS'")

    def test_environment(self) -> None:
        """HATCH_CUDA_KERNELS_EXECUTOR wins."""
        variable = "HATCH_CUDA_KERNELS_EXECUTOR"
        assert config({variable: "dask:tcp://host:1"}, executor="a:b").executor == "dask:tcp://host:1"
        with pytest.raises(ConfigurationError, match=f"{variable}: expected 'processes'"):
            config({variable: "threads"})


class TestCompileTimeout:
    @pytest.mark.parametrize("value", [1, 0.5, 3600])
    def test_good(self, value: float) -> None:
        """`compile-timeout` is a number of seconds."""
        assert config(compile_timeout=value).compile_timeout == value

    @pytest.mark.parametrize("value", [0, -1, True, "60", float("nan"), float("inf"), 10**400, None])
    def test_bad(self, value: Any) -> None:
        """Anything else is refused."""
        assert mistake("compile-timeout", value).startswith("compile-timeout: expected a number of seconds above zero")

    def test_environment(self) -> None:
        """HATCH_CUDA_KERNELS_COMPILE_TIMEOUT wins."""
        assert config({"HATCH_CUDA_KERNELS_COMPILE_TIMEOUT": "2.5"}, compile_timeout=9).compile_timeout == 2.5

    @pytest.mark.parametrize("text", ["0", "nan", "inf", "1min"])
    def test_environment_bad(self, text: str) -> None:
        """A mistake in the variable is told at the variable."""
        (told,) = mistakes({"archs": ["90"]}, {"HATCH_CUDA_KERNELS_COMPILE_TIMEOUT": text})
        assert told.startswith("HATCH_CUDA_KERNELS_COMPILE_TIMEOUT: expected a number of seconds above zero")


class TestMaxWheelBytes:
    @pytest.mark.parametrize(("value", "size"), [(1000, 1000), ("100MB", 10**8), ("1MiB", 2**20)])
    def test_good(self, value: Any, size: int) -> None:
        """`max-wheel-bytes` is a size."""
        assert config(max_wheel_bytes=value).max_wheel_bytes == size

    @pytest.mark.parametrize("value", [0, -1, "much", True, None])
    def test_bad(self, value: Any) -> None:
        """Anything else is refused."""
        assert "expected a size" in mistake("max-wheel-bytes", value)


class TestMaxRegisters:
    def test_good(self) -> None:
        """`max-registers` is a number for every kernel, or a table; white space in names does not count."""
        assert config(max_registers=64).max_registers == {"*": 64}
        table = {"*": 64, "gemm:k< float >": 255}
        assert config(max_registers=table).max_registers == {"*": 64, "gemm:k<float>": 255}

    @pytest.mark.parametrize("value", ["64", -1, True, None, 1.5, [64]])
    def test_bad(self, value: Any) -> None:
        """Anything else is refused, in a table at its key."""
        assert "expected a number" in mistake("max-registers", value)
        assert mistake("max-registers", {"gemm": value}).startswith("max-registers.gemm: expected a number")


class TestMaxSpillBytes:
    def test_good(self) -> None:
        """`max-spill-bytes` is written like `max-registers`; 0 allows none."""
        assert config(max_spill_bytes=0).max_spill_bytes == {"*": 0}
        assert config(max_spill_bytes={"gemm": 128}).max_spill_bytes == {"gemm": 128}

    @pytest.mark.parametrize("value", ["0", -1, False])
    def test_bad(self, value: Any) -> None:
        """Anything else is refused."""
        assert "expected a number" in mistake("max-spill-bytes", value)


class TestOverBudget:
    @pytest.mark.parametrize("value", ["error", "warn"])
    def test_good(self, value: str) -> None:
        """`over-budget` is one of two words."""
        assert config(over_budget=value).over_budget == value

    def test_bad(self) -> None:
        """A near word is suggested."""
        assert mistake("over-budget", "warning").endswith("did you mean 'warn'?")


def test_report_is_a_matter_of_the_environment() -> None:
    """HATCH_CUDA_KERNELS_REPORT names the report's place; no key of the table does."""
    assert config({"HATCH_CUDA_KERNELS_REPORT": "out.json"}).report == "out.json"
    assert "unknown key" in mistake("report", "out.json")


class TestModules:
    def test_good(self) -> None:
        """Each entry is a module; one source may appear in several."""
        found = config(modules=[{"source": "a.cu", "name": "one"}, {"source": "a.cu", "defines": {"N": 2}}]).modules
        assert found == (
            ModuleConfig(source="a.cu", name="one"),
            ModuleConfig(source="a.cu", defines={"N": "2"}),
        )

    @pytest.mark.parametrize("value", [{"source": "a.cu"}, "a.cu", None])
    def test_bad(self, value: Any) -> None:
        """`modules` is an array of tables."""
        assert mistake("modules", value).startswith("modules: expected an array of tables, found ")

    def test_an_entry_that_is_no_table(self) -> None:
        """An entry that is no table is told by its index."""
        assert mistakes({"archs": ["90"], "modules": [{"source": "a.cu"}, "b.cu"]}) == [
            "modules[1]: expected a table, found str"
        ]

    def test_unknown_key(self) -> None:
        """An unknown key of an entry suggests the near one; the hook's own keys are none of an entry's."""
        assert module_mistake("sources", ["a.cu"]) == "modules[1].sources: unknown key; did you mean source?"
        assert module_mistake("jit", True).startswith("modules[1].jit: unknown key; known keys: archs, defines")
        assert "unknown key" in module_mistake("dependencies", [])


class TestModuleSource:
    def test_good(self) -> None:
        """`source` is a path from the root; a backslash is a slash."""
        assert module(source="src/pkg/a.cu").source == "src/pkg/a.cu"
        assert module(source="src\\pkg\\a.cu").source == "src/pkg/a.cu"

    @pytest.mark.parametrize("value", ["", 1, ["a.cu"], "a\0.cu", None])
    def test_bad(self, value: Any) -> None:
        """Anything else is refused."""
        assert module_mistake("source", value).startswith("modules[1].source: expected the path of a .cu file")

    @pytest.mark.parametrize("value", ["/src/a.cu", "C:/a.cu", "C:\\a.cu"])
    def test_absolute(self, value: str) -> None:
        """A path of one machine is refused: paths start at the project's root."""
        assert "is an absolute path" in module_mistake("source", value)

    def test_several(self) -> None:
        """A list is linked: the first is the module's source, the others follow in their order."""
        found = module(source=["pkg\\b.cu", "lib/a.cu", "pkg/c.cu"])
        assert (found.source, found.linked) == ("pkg/b.cu", ("lib/a.cu", "pkg/c.cu"))
        assert module(source="a.cu").linked == ()

    @pytest.mark.parametrize(
        ("value", "told"),
        [
            ([], "expected the path of a .cu file, or a list of several to link"),
            (["a.cu", 1], "expected the path of a .cu file, or a list of several to link"),
            (["a.cu", ""], "expected the path of a .cu file, or a list of several to link"),
            (["a.cu", "/b.cu"], "is an absolute path"),
            (["a.cu", "b.cu", "./a.cu"], "has ./a.cu twice"),
        ],
    )
    def test_several_bad(self, value: Any, told: str) -> None:
        """Every path of a list is checked like a single one, and is there once."""
        assert told in module_mistake("source", value)

    def test_optimization_needs_several(self) -> None:
        """`link-time-optimization` belongs to a module that is linked: not to the table, nor to one of one source."""
        options = {"link-time-optimization": True}
        assert module(source=["a.cu", "b.cu"], options=options).options == options
        assert "a [[modules]] entry whose source is a list" in module_mistake("options", options)
        assert "a [[modules]] entry whose source is a list" in mistake("options", options)

    def test_missing(self) -> None:
        """`source` has to be there."""
        (told,) = mistakes({"archs": ["90"], "modules": [{"name": "x"}]})
        assert told.startswith("modules[0].source: missing; ")


class TestModuleName:
    @pytest.mark.parametrize("name", ["saxpy", "kernels.gemm", "a-b_c.1", "_x", "Console", "com10", "x" * 150])
    def test_good(self, name: str) -> None:
        """A name is letters, digits, `_`, `-` and single dots."""
        assert module(name=name).name == name

    @pytest.mark.parametrize(
        "name",
        [
            "",
            ".",
            "a..b",
            "a.",
            ".a",
            "-a",
            "a/b",
            "a\\b",
            "../x",
            "a b",
            "a\0",
            "a\n",
            "n\u00e4",
            "a:b",
            "x" * 151,
            "x" * 300,
            "con",
            "CON",
            "a.con",
            "nul.x",
            "aux",
            "prn",
            "com1",
            "LPT9",
            "con.a",
        ],
    )
    def test_bad(self, name: str) -> None:
        """A name that is no file's name on every system is refused."""
        assert check_module_name(name) is not None
        assert module_mistake("name", name) == f"modules[1].name: {check_module_name(name)}"

    @pytest.mark.parametrize("name", [1, None, ["a"]])
    def test_no_string(self, name: Any) -> None:
        """A name is a string."""
        assert module_mistake("name", name) == f"modules[1].name: expected a string, found {name!r}"


class TestModuleNameExpressions:
    def test_good(self) -> None:
        """`name-expressions` are kept as written."""
        assert module(name_expressions=["k<float>", "k< 3 >"]).name_expressions == ("k<float>", "k< 3 >")

    @pytest.mark.parametrize("value", NO_STRINGS)
    def test_bad(self, value: Any) -> None:
        """Anything but a list of strings is refused."""
        assert "expected a list of strings" in module_mistake("name-expressions", value)


class TestModuleArchs:
    def test_good(self) -> None:
        """A module's `archs` is its own; without it the table's counts."""
        assert module(archs=["sm_100f"]).archs == ("sm_100f",)
        assert module().archs is None

    def test_bad(self) -> None:
        """A mistake is told at the module's key."""
        assert "Did you mean 'sm_80'?" in module_mistake("archs", ["SM_80"])
        assert "names no architecture" in module_mistake("archs", [])


class TestModuleIncludeDirs:
    def test_good(self) -> None:
        """A module's `include-dirs` is its own, an empty one too."""
        assert module(include_dirs=["x"]).include_dirs == ("x",)
        assert module(include_dirs=[]).include_dirs == ()
        assert module().include_dirs is None

    def test_bad(self) -> None:
        """A mistake is told at the module's key."""
        assert "expected a list of strings" in module_mistake("include-dirs", "x")
        assert "is an absolute path" in module_mistake("include-dirs", ["/x"])


class TestModuleDefinesAndOptions:
    def test_good(self) -> None:
        """A module's tables are read like the hook's; their mistakes are tested with those."""
        assert module(defines={"N": 3, "B": True}).defines == {"N": "3", "B": True}
        assert module(options={"ftz": True}).options == {"ftz": True}


class TestModuleVariants:
    def test_good(self) -> None:
        """`variants` have macros with a list of values each; numbers become text, `true` and `false` stay."""
        found = module(variants={"TILE": [16, 32], "T": ["float", "std::pair<int*>"], "FAST": [True, False]}).variants
        assert found == {"TILE": ("16", "32"), "T": ("float", "std::pair<int*>"), "FAST": (True, False)}

    @pytest.mark.parametrize(
        ("value", "told"),
        [
            (["TILE"], "variants: expected a table of macros with a list of values each"),
            ({}, "variants: expected a table"),
            ({"TILE": 16}, "variants.TILE: expected a list of values, found 16"),
            ({"TILE": []}, "variants.TILE: expected a list of values"),
            ({"TILE": [[16]]}, "variants.TILE: expected a string, a number or true"),
            ({"1": [1]}, "variants.1: '1' is no macro name"),
            ({"T": ["a,b"]}, "variants.T: 'a,b' cannot be part of a module's name"),
            ({"T": ["a[1]"]}, "variants.T: 'a[1]' cannot be part"),
            ({"T": ["x?1:0"]}, "variants.T: 'x?1:0' cannot be part"),
            ({"T": ['"s"']}, "cannot be part of a module's name"),
            ({"T": ["n\u00e4"]}, "cannot be part of a module's name"),
            ({"T": [""]}, "variants.T: '' cannot be part"),
            ({"T": ["a\nb"]}, "variants.T: a macro's value is one line"),
            ({"T": [1, "1"]}, "variants.T: has '1' twice"),
            ({"T": ["u  v", "u v"]}, "variants.T: has 'u v' twice"),
            ({"A": list(range(33)), "B": list(range(32))}, "variants: more than 1024 combinations"),
        ],
    )
    def test_bad(self, value: Any, told: str) -> None:
        """What gives no modules with names of their own is refused."""
        assert told in module_mistake("variants", value)

    def test_a_macro_in_both_tables(self) -> None:
        """A macro cannot have one value and several in one entry."""
        entry = {"source": "a.cu", "defines": {"N": 1}, "variants": {"N": [1, 2]}}
        (told,) = mistakes({"archs": ["90"], "modules": [entry]})
        assert told == "modules[0].variants.N: is in defines of the same entry as well; keep one of them"


class TestMistakesTogether:
    def test_every_mistake_with_its_path(self) -> None:
        """All mistakes of a table and of the environment come in one error, each with its full key path."""
        table = {
            "archs": ["SM_80"],
            "arch": ["sm_80"],
            "jobs": -1,
            "options": {"wat": 1, "fma": 1},
            "defines": {"1": True},
            "modules": [{"name": "con"}, {"source": "a.cu", "archs": ["x"], "options": {"pch": True}}],
        }
        told = mistakes(table, {"HATCH_CUDA_KERNELS_COMPILE_TIMEOUT": "never"})
        assert [text.split(": ")[0] for text in told] == [
            "archs",
            "arch",
            "jobs",
            "options.wat",
            "options.fma",
            "defines.1",
            "modules[0].name",
            "modules[0].source",
            "modules[1].archs",
            "modules[1].options.pch",
            "HATCH_CUDA_KERNELS_COMPILE_TIMEOUT",
        ]

    def test_the_path_is_the_one_that_the_author_wrote(self) -> None:
        """A table that stands elsewhere is named by its own path."""
        with pytest.raises(ConfigurationError, match=r"  - build\.hooks\.cuda-kernels\.jit: expected true or false"):
            Config.from_table({"archs": ["90"], "jit": 1}, where="build.hooks.cuda-kernels")

    @pytest.mark.parametrize(
        ("key", "near"),
        [
            ("arch", "archs"),
            ("include_dirs", "include-dirs"),
            ("Sources", "sources"),
            ("include-dir", "include-dirs"),
            ("compile_timeout", "compile-timeout"),
            ("define", "defines"),
        ],
    )
    def test_an_unknown_key_suggests_the_near_one(self, key: str, near: str) -> None:
        """A misspelt key names the one that was meant."""
        assert mistake(key, 1) == f"{key}: unknown key; did you mean {near}?"

    def test_an_unknown_key_far_from_all_lists_all(self) -> None:
        """A key that is near to none is answered with all of them."""
        assert mistake("zzz", 1) == f"zzz: unknown key; known keys: {', '.join(sorted(KEYS))}"


@pytest.mark.parametrize(
    "key", ["dependencies", "require-runtime-dependencies", "require-runtime-features", "enable-by-default"]
)
def test_keys_of_hatchling_are_left_alone(key: str) -> None:
    """hatchling's own keys of a hook table are neither checked nor refused."""
    assert Config.from_table({"archs": ["90"], key: object()}) == Config(archs=("90",))


def test_the_table_is_not_changed() -> None:
    """Reading a table leaves it as it was: hatchling goes on using it."""
    table: dict[str, Any] = {"archs": ["90"], "defines": {"A": 1}, "modules": [{"source": "a\\b.cu"}]}
    Config.from_table(table, environ={"HATCH_CUDA_KERNELS_ARCHS": "80"})
    assert table == {"archs": ["90"], "defines": {"A": 1}, "modules": [{"source": "a\\b.cu"}]}
