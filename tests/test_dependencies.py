# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""No edit is missed: a fresh compile judges whether the cache was right not to compile again.

Trees of headers are made up, with every way to include one file from another; then files are edited, added and
removed one by one. After each step either the cache misses, or what it gives is what a fresh compile gives.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jobs import make_job

from hatch_cuda_kernels import CompilationError, ConfigurationError
from hatch_cuda_kernels.cache import KernelCache
from hatch_cuda_kernels.compiler import compile_job
from hatch_cuda_kernels.nvrtc import Workspace, workspace

FOLDERS = ("", "src", "src/in side", "inc", "inc/lib", "öther")
NAMES = ("a.h", "b.h", "c.inl", "d e.h", "ü.cuh")
DIRS = ("inc", "öther", "src/in side")
SOURCE = "src/k.cu"

labels = st.builds(
    lambda folder, name: f"{folder}/{name}" if folder else name, st.sampled_from(FOLDERS), st.sampled_from(NAMES)
)
spellings = st.one_of(
    st.sampled_from(NAMES),
    st.builds(
        "/".join,
        st.tuples(st.sampled_from(["lib", "in side", "..", "../inc", "../src", "nowhere/.."]), st.sampled_from(NAMES)),
    ),
)
tests_of = st.builds(lambda quote, name: f'"{name}"' if quote else f"<{name}>", st.booleans(), spellings)


@st.composite
def directives(draw: st.DrawFn) -> str:
    """Some lines that include, or ask for, a header."""
    name = draw(tests_of)
    kind = draw(
        st.sampled_from(["plain", "plain", "guarded", "question", "computed", "inactive", "arch", "pasted", "comment"])
    )
    guarded = f"#if __has_include({name})\n#include {name}\n#endif\n"
    if kind == "plain":
        return guarded if draw(st.booleans()) else f"#include {name}\n"
    if kind == "guarded":
        return guarded
    if kind == "question":
        return f"#if __has_include({name})\nR({draw(st.integers(1, 99))})\n#endif\n"
    if kind == "computed":
        return f"#if __has_include({name})\n#undef H\n#define H {name}\n#include H\n#endif\n"
    if kind == "inactive":
        return f"#if 0\n#include {name}\n#endif\n"
    if kind == "arch":
        return f"#if __CUDA_ARCH__ >= 900 && __has_include({name})\n#include {name}\n#endif\n"
    if kind == "pasted":
        return f"#ifdef PASTED\n#define Q(x) {name}\n#include Q(1)\n#endif\n"
    return f"// #include {name}\n/* #include {name} */\n"


@st.composite
def headers(draw: st.DrawFn) -> str:
    """The text of a header: it adds to the kernel's result, and includes others, up to a depth."""
    lines = draw(st.lists(directives(), max_size=3))
    number = draw(st.integers(1, 10**6))
    body = "".join(lines)
    return f"#if D < 3\nR({number})\n{_deeper(body)}#endif\n"


def _deeper(body: str) -> str:
    """Includes one level further down; the depth is counted, so that rings of includes end."""
    if not body:
        return ""
    levels = "".join(
        f"{'#elif' if level else '#if'} D == {level}\n#undef D\n#define D {level + 1}\n{body}#undef D\n"
        f"#define D {level}\n"
        for level in range(3)
    )
    return levels + "#endif\n"


trees = st.dictionaries(labels, headers(), min_size=1, max_size=8)
sources = st.lists(directives(), min_size=1, max_size=5)
steps = st.lists(
    st.tuples(st.sampled_from(["edit", "remove", "add", "link", "comment"]), labels, headers()), min_size=1, max_size=6
)
searched = st.lists(st.sampled_from(DIRS), max_size=3, unique=True)


def source_text(lines: list[str]) -> str:
    """A source whose kernel's code depends on every header that is read, in order."""
    return "#define D 0\n#define R(n) x = x * 31 + n;\n" + (
        'extern "C" __global__ void k(int* p)\n{\n    int x = *p;\n' + "".join(lines) + "    *p = x;\n}\n"
    )


@pytest.fixture(scope="module")
def space() -> Iterator[Workspace]:
    """A workspace for all compiles here."""
    with workspace() as found:
        yield found


def put(root: Path, label: str, text: str) -> None:
    """Write a file, unless a folder or a link's target is in the way."""
    path = root / label
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        path.unlink()
    path.write_text(text, encoding="utf-8")


def take(root: Path, action: str, label: str, text: str) -> None:
    """Take one step."""
    path = root / label
    if action == "remove":
        path.unlink(missing_ok=True)
    elif action == "comment":
        put(root, label, (path.read_text("utf-8") if path.is_file() else text) + "// and a word\n")
    elif action == "link":
        others = sorted(other for other in root.rglob("*.h") if other.is_file() and other != path)
        if others and os.name == "posix":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            path.symlink_to(others[len(text) % len(others)].resolve())
    else:
        put(root, label, text)


def outcome(root: Path, dirs: list[str], space: Workspace, store: KernelCache) -> bool:
    """Look up and compile anew; hold one against the other. Whether there was an image."""
    try:
        job = make_job(root, SOURCE, include_dirs=dirs)
    except ConfigurationError:
        return False  # a ring of links: there is nothing to look up
    kept = store.lookup(job)
    try:
        fresh = compile_job(job, space)
    except CompilationError:
        assert kept is None, "an image of the cache hides an error"
        return False
    if kept is not None:
        assert kept.data == fresh.data
        # after some errors NVRTC's trace is empty in this process, and a compile then counts on everything at hand
        everything = set(fresh.reads.files) == set(job.unit.closure.files)
        assert kept.reads == fresh.reads or (everything and set(kept.reads.files) < set(fresh.reads.files))
        assert kept.kernels == fresh.kernels
    store.store(job, fresh)
    assert store.lookup(job) == fresh or kept is not None
    return True


def check(
    space: Workspace, lines: list[str], tree: dict[str, str], dirs: list[str], edits: list[tuple[str, str, str]]
) -> None:
    """Build a tree, take the steps, and judge after each; then again, with a cache that has seen it all."""
    folder = Path(tempfile.mkdtemp(prefix="tree "))
    try:
        store = KernelCache.open(str(folder / "cache"))
        root = folder / "project"
        for _ in range(2):
            shutil.rmtree(root, ignore_errors=True)
            put(root, SOURCE, source_text(lines))
            for label, text in tree.items():
                put(root, label, text)
            outcome(root, dirs, space, store)
            for action, label, text in edits:
                take(root, action, label, text)
                outcome(root, dirs, space, store)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


COMMON = {
    "deadline": None,
    "database": None,
    "suppress_health_check": list(HealthCheck),
}


@settings(max_examples=6, derandomize=True, **COMMON)  # type: ignore[arg-type]
@given(lines=sources, tree=trees, dirs=searched, edits=steps)
def test_no_edit_is_missed(
    space: Workspace, lines: list[str], tree: dict[str, str], dirs: list[str], edits: list[tuple[str, str, str]]
) -> None:
    """[S7, S8] Whatever is edited, added or removed: a rebuild, or the bytes of a fresh compile."""
    check(space, lines, tree, dirs, edits)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@settings(max_examples=50 if os.environ.get("HATCH_CUDA_KERNELS_TEST_SHORT") else 500, **COMMON)  # type: ignore[arg-type]
@given(lines=sources, tree=trees, dirs=searched, edits=steps)
def test_no_edit_is_missed_long(
    space: Workspace, lines: list[str], tree: dict[str, str], dirs: list[str], edits: list[tuple[str, str, str]]
) -> None:
    """[S7, S8] The same for five hundred trees."""
    check(space, lines, tree, dirs, edits)


def test_oracle_compiles(space: Workspace, tmp_path: Path) -> None:
    """What is made up here does compile, and a header's number reaches the image: else all of it would be idle."""
    store = KernelCache.open(str(tmp_path / "cache"))
    lines = ['#include "a.h"\n', "#if __has_include(<lib/b.h>)\nR(7)\n#endif\n"]
    put(tmp_path, SOURCE, source_text(lines))
    put(tmp_path, "src/a.h", f"#if D < 3\nR(5)\n{_deeper('#include <c.inl>' + chr(10))}#endif\n")
    put(tmp_path, "inc/c.inl", "R(6)\n")
    images = []
    for label, text in [
        ("src/a.h", ""),
        ("inc/c.inl", "R(8)\n"),
        ("inc/lib/b.h", ""),
        ("src/c.inl", ""),
        ("src/in side/c.inl", "R(9)\n"),
    ]:
        assert outcome(tmp_path, ["src/in side", "inc"], space, store)
        found = store.lookup(make_job(tmp_path, SOURCE, include_dirs=["src/in side", "inc"]))
        assert found
        images.append(found.data)
        if text or label != "src/a.h":
            put(tmp_path, label, text)
    assert outcome(tmp_path, ["src/in side", "inc"], space, store)
    last = store.lookup(make_job(tmp_path, SOURCE, include_dirs=["src/in side", "inc"]))
    assert last
    images.append(last.data)
    assert len({hash(data) for data in images}) == 4
