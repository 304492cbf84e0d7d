# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""From a hook table and a tree of files to modules: which sources, under which names, in which packages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hatch_cuda_kernels import ConfigurationError
from hatch_cuda_kernels.config import Config
from hatch_cuda_kernels.modules import ModuleSpec, ShippedPackage, find_modules, match_patterns

FLAT = ShippedPackage(name="pkg", folder="pkg")
SRC = ShippedPackage(name="pkg", folder="src/pkg")


def make(root: Path, files: str) -> Path:
    """A tree with these files, each empty."""
    for name in files.split():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return root


def find(
    root: Path, *packages: ShippedPackage, ships: Callable[[str], bool] = lambda folder: True, **table: Any
) -> list[ModuleSpec]:
    """The modules of a tree; underscores stand for hyphens and `archs` is given."""
    written = {"archs": ["sm_90"], **{key.replace("_", "-"): value for key, value in table.items()}}
    config = Config.from_table(written, where="hook")
    return find_modules(config, root, packages or (FLAT,), where="hook", ships_folder=ships)


def named(specs: list[ModuleSpec]) -> list[str]:
    """Modules as `package:name=source`."""
    return [f"{spec.package}:{spec.name}={spec.source}" for spec in specs]


def mistakes(root: Path, *packages: ShippedPackage, **table: Any) -> list[str]:
    """The mistakes that a table makes with a tree."""
    with pytest.raises(ConfigurationError) as caught:
        find(root, *packages, **table)
    headline, *bullets = str(caught.value).splitlines()
    assert headline == "the hook table does not fit the project:"
    return [bullet.removeprefix("  - ") for bullet in bullets]


class TestDiscovery:
    def test_flat_layout(self, tmp_path: Path) -> None:
        """Every `.cu` inside the package is a module, named by its path in it; nothing outside is one."""
        make(tmp_path, "pkg/saxpy.cu pkg/kernels/gemm.cu pkg/kernels/gemm.cuh pkg/x.c tests/t.cu top.cu pkg2/y.cu")
        assert named(find(tmp_path)) == ["pkg:kernels.gemm=pkg/kernels/gemm.cu", "pkg:saxpy=pkg/saxpy.cu"]

    def test_src_layout(self, tmp_path: Path) -> None:
        """The folder above the package is no part of a name."""
        make(tmp_path, "src/pkg/deep/er/a.cu src/b.cu")
        assert named(find(tmp_path, SRC)) == ["pkg:deep.er.a=src/pkg/deep/er/a.cu"]

    def test_several_packages(self, tmp_path: Path) -> None:
        """Each package gets its own modules; one name may stand in two of them."""
        make(tmp_path, "one/a.cu lib/two/a.cu lib/two/b.cu lib/onetwo/c.cu")
        packages = ShippedPackage(name="two", folder="lib/two"), ShippedPackage(name="one", folder="one")
        assert named(find(tmp_path, *packages)) == ["one:a=one/a.cu", "two:a=lib/two/a.cu", "two:b=lib/two/b.cu"]

    def test_nested_packages(self, tmp_path: Path) -> None:
        """A source belongs to the innermost package, once."""
        make(tmp_path, "ns/a.cu ns/sub/b.cu")
        packages = ShippedPackage(name="ns", folder="ns"), ShippedPackage(name="ns.sub", folder="ns/sub")
        assert named(find(tmp_path, *packages)) == ["ns:a=ns/a.cu", "ns.sub:b=ns/sub/b.cu"]

    def test_what_the_wheel_leaves_out(self, tmp_path: Path) -> None:
        """A folder that the wheel leaves out, hidden folders and caches are not searched."""
        make(tmp_path, "pkg/a.cu pkg/old/b.cu pkg/.hidden/c.cu pkg/__pycache__/d.cu")
        assert named(find(tmp_path, ships=lambda folder: folder != "pkg/old")) == ["pkg:a=pkg/a.cu"]

    def test_links_to_folders_are_not_entered(self, tmp_path: Path) -> None:
        """A link that leads back up ends the search instead of never ending it."""
        make(tmp_path, "pkg/a.cu")
        (tmp_path / "pkg/loop").symlink_to("..", target_is_directory=True)
        assert named(find(tmp_path)) == ["pkg:a=pkg/a.cu"]

    def test_nothing_to_compile(self, tmp_path: Path) -> None:
        """A build without any module is an error that says where it looked."""
        make(tmp_path, "pkg/a.cuh other/b.cu")
        (told,) = mistakes(tmp_path)
        assert told.startswith("hook: nothing to compile; there is no .cu file inside what the wheel ships (pkg). ")

    def test_values_of_the_table(self, tmp_path: Path) -> None:
        """A discovered module has the values of the table."""
        make(tmp_path, "pkg/a.cu include/x.cuh")
        table: dict[str, Any] = {
            "include_dirs": ["./include/", "pkg\\."],
            "defines": {"A": 1},
            "options": {"ftz": True},
        }
        (spec,) = find(tmp_path, **table)
        assert spec == ModuleSpec(
            package="pkg",
            name="a",
            source="pkg/a.cu",
            name_expressions=(),
            archs=("sm_90",),
            include_dirs=("include", "pkg"),
            defines={"A": "1"},
            options={"ftz": True},
            toolkit_headers="auto",
            host_code="skip",
        )


class TestPatterns:
    @pytest.mark.parametrize(
        ("patterns", "labels"),
        [
            (["pkg/a.cu"], "pkg/a.cu"),
            (["*.cu"], "other/z.cu pkg/a.cu pkg/sub/b.cu pkg/sub/c.cu"),
            (["/pkg/*.cu"], "pkg/a.cu"),
            (["pkg/"], "pkg/a.cu pkg/sub/b.cu pkg/sub/c.cu"),
            (["pkg/**/*.cu", "!b.cu"], "pkg/a.cu pkg/sub/c.cu"),
            (["pkg/", "!sub/"], "pkg/a.cu"),
            (["pkg/", "!pkg/sub/h.cuh"], "pkg/a.cu pkg/sub/b.cu pkg/sub/c.cu"),
            (["!pkg/sub/b.cu", "pkg/sub/*.cu"], "pkg/sub/b.cu pkg/sub/c.cu"),
            (["pkg/sub/d.cpp"], "pkg/sub/d.cpp"),
            (["pkg/sub/*"], "pkg/sub/b.cu pkg/sub/c.cu"),
        ],
    )
    def test_select(self, tmp_path: Path, patterns: list[str], labels: str) -> None:
        """Patterns mean what they mean in a .gitignore; only what is named by its ending is compiled beside `.cu`."""
        make(
            tmp_path,
            "pkg/a.cu pkg/sub/b.cu pkg/sub/c.cu pkg/sub/d.cpp pkg/sub/h.cuh pkg/sub/i.cuh pkg/README other/z.cu",
        )
        assert sorted(spec.source for spec in find(tmp_path, sources=patterns, package="pkg")) == labels.split()

    @pytest.mark.parametrize("pattern", ["kernels/*.cu", "a.cu/", "A.cu", "../pkg/a.cu", "# a.cu", "docs/", ".hidden/"])
    def test_that_matches_nothing(self, tmp_path: Path, pattern: str) -> None:
        """A written pattern that selects nothing is an error, also beside one that does."""
        make(tmp_path, "pkg/a.cu docs/index.md .hidden/a.cu")
        (told,) = mistakes(tmp_path, sources=["pkg/a.cu", pattern])
        assert told == f"hook.sources: {pattern!r} matches no file to compile; patterns start at the project's root"

    def test_each_is_told(self, tmp_path: Path) -> None:
        """Every pattern without a match is told; a negative one needs none."""
        make(tmp_path, "pkg/a.cu")
        told = mistakes(tmp_path, sources=["x.cu", "pkg/a.cu", "!gone.cu", "y.cu"])
        assert [text.split("'")[1] for text in told] == ["x.cu", "y.cu"]

    def test_only_negative(self, tmp_path: Path) -> None:
        """Patterns that only take away leave nothing to compile."""
        make(tmp_path, "pkg/a.cu")
        assert mistakes(tmp_path, sources=["!pkg/a.cu"])[0].startswith("hook: nothing to compile")

    def test_of_headers(self, tmp_path: Path) -> None:
        """Without an ending to look for, every file that matches is selected."""
        make(tmp_path, "inc/a.cuh inc/b.txt")
        problems: list[str] = []
        assert match_patterns(["inc/", "gone"], tmp_path, "hook.headers", problems) == ["inc/a.cuh", "inc/b.txt"]
        assert problems == ["hook.headers: 'gone' matches no file; patterns start at the project's root"]


class TestPackage:
    def test_outside_every_package(self, tmp_path: Path) -> None:
        """A source outside every package needs the key, and the error names the choice."""
        make(tmp_path, "csrc/a.cu pkg/b.cu")
        (told,) = mistakes(tmp_path, sources=["csrc/*.cu"])
        assert told == (
            "hook.package: csrc/a.cu lies in no package of the wheel; name the one that gets its kernels ('pkg')"
        )

    def test_chosen(self, tmp_path: Path) -> None:
        """With the key every module goes to that package; a name outside it is the path from the root."""
        make(tmp_path, "csrc/a.cu pkg/b.cu two/c.cu")
        two = ShippedPackage(name="two", folder="two")
        found = find(tmp_path, FLAT, two, sources=["*.cu"], package="pkg")
        assert named(found) == ["pkg:b=pkg/b.cu", "pkg:csrc.a=csrc/a.cu", "pkg:two.c=two/c.cu"]

    def test_unknown(self, tmp_path: Path) -> None:
        """A package that the wheel does not ship is refused with those that it ships."""
        make(tmp_path, "pkg/a.cu")
        assert mistakes(tmp_path, package="pkgs") == ["hook.package: the wheel ships no package 'pkgs'; it ships: pkg"]

    def test_none_is_shipped(self, tmp_path: Path) -> None:
        """A wheel without a package says so."""
        make(tmp_path, "a.cu")
        config = Config.from_table({"archs": ["sm_90"], "sources": ["a.cu"]}, where="hook")
        with pytest.raises(ConfigurationError, match=r"a\.cu lies in no package of the wheel; .* \(none is shipped\)"):
            find_modules(config, tmp_path, [], where="hook")


class TestSpelledOut:
    def test_is_compiled_only_as_written(self, tmp_path: Path) -> None:
        """A source that is spelled out is not discovered as well, however its path is written; others still are."""
        make(tmp_path, "pkg/a.cu pkg/b.cu")
        found = find(tmp_path, modules=[{"source": "./pkg//a.cu", "name": "x"}])
        assert named(found) == ["pkg:b=pkg/b.cu", "pkg:x=pkg/a.cu"]
        found = find(tmp_path, sources=["*.cu"], modules=[{"source": "pkg\\a.cu", "name": "x"}])
        assert named(found) == ["pkg:b=pkg/b.cu", "pkg:x=pkg/a.cu"]

    def test_one_source_in_several(self, tmp_path: Path) -> None:
        """One source may be several modules, each with a name and macros of its own."""
        make(tmp_path, "pkg/a.cu")
        entries = [{"source": "pkg/a.cu"}, {"source": "pkg/a.cu", "name": "b", "defines": {"N": 2}}]
        found = find(tmp_path, defines={"N": 1, "M": True}, modules=entries)
        assert [(spec.name, dict(spec.defines)) for spec in found] == [
            ("a", {"N": "1", "M": True}),
            ("b", {"N": "2", "M": True}),
        ]

    def test_lists_replace_and_tables_extend(self, tmp_path: Path) -> None:
        """A module's lists replace those of the table, its tables extend them."""
        make(tmp_path, "pkg/a.cu inc/x own/x")
        table: dict[str, Any] = {"include_dirs": ["inc"], "options": {"ftz": True, "fma": True}}
        entry = {"source": "pkg/a.cu", "archs": ["80"], "include-dirs": ["own"], "options": {"fma": False}}
        (spec,) = find(tmp_path, **table, modules=[entry])
        assert (spec.archs, spec.include_dirs, spec.options) == (("80",), ("own",), {"ftz": True, "fma": False})
        (spec,) = find(tmp_path, **table, modules=[{**entry, "include-dirs": []}])
        assert spec.include_dirs == ()

    def test_name_expressions(self, tmp_path: Path) -> None:
        """White space does not make two name expressions of one."""
        make(tmp_path, "pkg/a.cu")
        entry = {"source": "pkg/a.cu", "name-expressions": ["k< float >", "k<float>", "k<unsigned int>"]}
        assert find(tmp_path, modules=[entry])[0].name_expressions == ("k<float>", "k<unsigned int>")

    def test_a_missing_source(self, tmp_path: Path) -> None:
        """A source that is not there is told at its key, with the near one; a folder is no source."""
        make(tmp_path, "pkg/saxpy.cu pkg/kernels/x.cu")
        modules = [{"source": "pkg/saxpi.cu"}, {"source": "pkg/kernels"}, {"source": "q"}]
        near, folder, far = mistakes(tmp_path, modules=modules)
        assert near == "hook.modules[0].source: there is no file pkg/saxpi.cu; did you mean pkg/saxpy.cu?"
        assert folder.startswith("hook.modules[1].source: there is no file pkg/kernels")
        assert far == "hook.modules[2].source: there is no file q; paths start at the project's root"


class TestNames:
    @pytest.mark.parametrize(
        "path", ["my dir/a.cu", "con.cu", "sub/NUL.cu", "com1/a.cu", "x..y.cu", "-a.cu", "\u00e4.cu"]
    )
    def test_a_path_that_gives_none(self, tmp_path: Path, path: str) -> None:
        """A path that gives no name for every system is refused, with the key that gives another."""
        source = tmp_path / "pkg" / path
        source.parent.mkdir(parents=True)
        source.touch()
        (told,) = mistakes(tmp_path)
        assert told.startswith(f"hook.sources: pkg/{path}: ")
        assert told.endswith("; give it a name in [[modules]]")
        assert named(find(tmp_path, modules=[{"source": f"pkg/{path}", "name": "fine"}])) == [f"pkg:fine=pkg/{path}"]

    def test_a_path_that_is_too_long(self, tmp_path: Path) -> None:
        """A name of more than 150 characters is refused."""
        make(tmp_path, f"pkg/{'d' * 100}/{'f' * 60}.cu")
        (told,) = mistakes(tmp_path)
        assert "is longer than 150 characters; give it a name in [[modules]]" in told

    @pytest.mark.parametrize(
        ("files", "modules"),
        [
            ("pkg/a.cu pkg/A.cu", []),
            ("pkg/a.cu pkg/b.cu", [{"source": "pkg/b.cu", "name": "A"}]),
            ("pkg/a.cu", [{"source": "pkg/a.cu"}, {"source": "pkg/a.cu"}]),
            ("pkg/a/b.cu pkg/a.b.cu", []),
        ],
    )
    def test_that_would_be_one_file(self, tmp_path: Path, files: str, modules: list[dict[str, str]]) -> None:
        """Two modules of one name, letter case aside, are refused, both named."""
        make(tmp_path, files)
        if len(list((tmp_path / "pkg").rglob("*.cu"))) < len(files.split()):
            pytest.skip("this file system does not tell letter case")
        (told,) = mistakes(tmp_path, modules=modules)
        assert told.startswith("hook.modules: pkg/")
        assert "(case does not count); give one of them a name in [[modules]]" in told
        assert all(f"(hook.modules[{index}].name)" in told for index in range(len(modules)))
        assert [name for name in files.split() if name not in told] == []


class TestIncludeDirs:
    def test_missing(self, tmp_path: Path) -> None:
        """A folder that is not there is told at the key that names it; a file is none."""
        make(tmp_path, "pkg/a.cu pkg/b.cu inc/x.cuh")
        modules = [{"source": "pkg/a.cu"}, {"source": "pkg/b.cu", "include-dirs": ["inc", "gone"]}]
        assert mistakes(tmp_path, include_dirs=["inc", "../gone", "inc/x.cuh"], modules=modules) == [
            "hook.include-dirs: there is no folder ../gone; paths start at the project's root",
            "hook.include-dirs: there is no folder inc/x.cuh; paths start at the project's root",
            "hook.modules[1].include-dirs: there is no folder gone; paths start at the project's root",
        ]

    @pytest.mark.parametrize("name", ["a b", "it's", 'q"q', "a,b;c=d", "\u00e4\u4e2d", "-x", "d" * 200])
    def test_odd_names(self, tmp_path: Path, name: str) -> None:
        """A folder may be called anything."""
        make(tmp_path, "pkg/a.cu")
        (tmp_path / name).mkdir()
        assert find(tmp_path, include_dirs=[name])[0].include_dirs == (name,)

    def test_above_the_root(self, tmp_path: Path) -> None:
        """A folder above the root can be named from it."""
        make(tmp_path, "project/pkg/a.cu common/x.cuh")
        assert find(tmp_path / "project", include_dirs=["../common"])[0].include_dirs == ("../common",)


def test_all_mistakes_at_once(tmp_path: Path) -> None:
    """What does not fit is told together, each at its key."""
    make(tmp_path, "pkg/a.cu pkg/con.cu")
    told = mistakes(
        tmp_path,
        package="other",
        sources=["pkg/", "gone/*.cu"],
        include_dirs=["gone"],
        modules=[{"source": "gone.cu", "archs": ["80"]}],
    )
    keys = [text.split(": ")[0] for text in told]
    assert keys == ["hook.package", "hook.modules[0].source", "hook.sources", "hook.sources", "hook.include-dirs"]
