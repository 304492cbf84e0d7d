# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""`cache push`, `cache pull` and `cache info`: a project's images from place to place, and what each place did."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from projects import KERNEL, Project, make_project
from servers import odd_server

FILES = {
    "demo/a.cu": KERNEL,
    "demo/b.cu": '#include "x.h"\n' + KERNEL.replace("*=", "+="),
    "demo/x.h": "// nothing\n",
}
Command = Callable[..., tuple[int, dict[str, Any], str]]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with two modules for two architectures, not built yet."""
    return make_project(tmp_path, 'archs = ["sm_80", "compute_80"]', FILES)


@pytest.fixture
def command(project: Project) -> Command:
    """Runs `cache` in the project's root: (status, JSON, errors)."""

    def run(*arguments: str | Path, **env: str) -> tuple[int, dict[str, Any], str]:
        done = subprocess.run(
            [sys.executable, "-m", "hatch_cuda_kernels", "cache", *map(str, arguments), "--json"],
            env={**os.environ, "HATCH_CUDA_KERNELS_CACHE": str(project.cache), **env},
            capture_output=True, text=True, timeout=120, cwd=project.root,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, json.loads(done.stdout or "{}"), done.stderr

    return run


slow = pytest.mark.slow


@slow
@pytest.mark.parametrize("kind", ["folder", "sqlite", "remote"])
def test_push_and_pull(project: Project, command: Command, tmp_path: Path, kind: str) -> None:
    """What is pushed from one machine's cache is pulled into another's, whose build compiles nothing."""
    (tmp_path / "server").mkdir()
    with odd_server(tmp_path / "server") as (url, _, _):
        place = {"folder": str(tmp_path / "layer"), "sqlite": f"sqlite:{tmp_path}/layer.db", "remote": url}[kind]
        status, value, _ = command("push", place)
        assert (status, value["missing"], value["moved"]) == (1, 4, 0)
        run = project.build()
        assert run.status == 0, run.output
        status, value, _ = command("push", place)
        assert (status, value["images"], value["moved"], value["missing"]) == (0, 4, 4, 0)
        assert value["bytes"] == sum(image["bytes"] for image in (run.report or {})["images"])
        status, value, _ = command("push", place)
        assert (status, value["moved"], value["already"]) == (0, 0, 4)
        there = {"HATCH_CUDA_KERNELS_CACHE": str(tmp_path / "elsewhere")}
        status, value, _ = command("pull", place, project.root, **there)
        assert (status, value["moved"]) == (0, 4)
        again = project.build(env=there)
        assert again.report is not None
        assert (again.report["compiled"], again.report["cached"]) == (0, 4)


@slow
def test_only_this_project(project: Project, command: Command, tmp_path: Path) -> None:
    """What other projects have in the cache stays there."""
    other = Project(make_project(tmp_path / "other", 'archs = ["sm_90"]', {"demo/o.cu": KERNEL}).root, project.cache)
    assert other.build().status == 0
    assert project.build().status == 0
    assert command("push", tmp_path / "layer")[0] == 0
    entries = [path for path in (tmp_path / "layer/entries").rglob("*") if path.is_file()]
    assert len(entries) == 4 * 2
    assert not any(b"sm_90" in path.read_bytes() for path in entries)


@slow
def test_mistakes(project: Project, command: Command, tmp_path: Path) -> None:
    """A place that means nothing or takes nothing, and a folder that is no project, are told apart."""
    status, _, errors = command("push", "s4://bucket")
    assert status == 1 and "PLACE: s4:// is no place" in errors
    status, _, errors = command("push", "memory:")
    assert status == 1 and "PLACE: memory: ends with this command" in errors
    assert project.build().status == 0
    status, value, errors = command("push", "http://127.0.0.1:1/x")
    assert (status, value["failed"]) == (1, 4)
    assert "http://127.0.0.1:1/x cannot be" in errors
    status, value, _ = command("push", f"read:{project.cache}")
    assert status == 1 and value["moved"] == 0
    for text in ("", "[project]\nname = 'x'\nversion = '1'\n", "not toml"):
        folder = tmp_path / "bare"
        folder.mkdir(exist_ok=True)
        (folder / "pyproject.toml").write_text(text)
        status, _, errors = command("push", tmp_path / "layer", folder)
        assert status == 1 and f"{folder}: " in errors, errors


@slow
def test_info(project: Project, command: Command, tmp_path: Path) -> None:
    """Each place's entries, bytes, hits, misses and errors."""
    (tmp_path / "server").mkdir()
    with odd_server(tmp_path / "server") as (url, behave, _):
        places = {"HATCH_CUDA_KERNELS_CACHE": f"sqlite:{tmp_path}/c.db,read:{tmp_path}/system,{url}"}
        (tmp_path / "system").mkdir()
        for _ in range(2):
            assert project.build(env=places).status == 0
        behave("deny")
        project.write({"demo/c.cu": KERNEL.replace("*=", "-=")})
        assert project.build(env=places).status == 0
        behave("well")
        status, value, _ = command("info", **places)
        assert status == 0
        database, system, remote = value["layers"]
        assert [layer["place"] for layer in value["layers"]] == [f"sqlite:{tmp_path}/c.db", f"{tmp_path}/system", url]
        assert (value["hits"], value["misses"]) == (8, 6)
        assert (database["hits"], database["misses"], database["errors"]) == (8, 6, 0)
        assert database["entries"] == value["entries"] > 12
        assert (system["writable"], system["hits"], system["misses"], system["written"]) == (False, 0, 6, 0)
        assert (remote["entries"], remote["hits"], remote["misses"]) == (None, 0, 6)
        assert remote["errors"] > 0
        assert remote["written"] > 0
