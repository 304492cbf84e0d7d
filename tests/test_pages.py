# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Every block of code in the documentation is built, or held against what it speaks of."""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from projects import Project
from support import Quiet, nowhere

import hatch_cuda_kernels
from hatch_cuda_kernels.build import build_packages
from hatch_cuda_kernels.cli import _parser, main
from hatch_cuda_kernels.config import _FIELDS, Config
from hatch_cuda_kernels.editable import hook_table
from hatch_cuda_kernels.modules import ShippedPackage, find_modules
from hatch_cuda_kernels.setup.init import propose

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPOSITORY = Path(__file__).parent.parent
DOCS = REPOSITORY / "docs"
PAGES = sorted(
    path
    for path in [*REPOSITORY.glob("*.md"), *DOCS.rglob("*.md"), *REPOSITORY.glob("*/README.md")]
    if not {"_build", "projects"} & set(path.parts)
)
HOOK = "cuda-kernels"
WHERE = f"tool.hatch.build.hooks.{HOOK}"

_FENCE = re.compile(
    r"(?:^`(?P<file>[^`\n]+)`:\n\n)?^(?P<indent> *)(?P<ticks>```+)(?P<language>[^\n`]*)\n(?P<body>.*?)"
    r"^(?P=indent)(?P=ticks)$",
    re.MULTILINE | re.DOTALL,
)
_DIRECTIVES = ("{toctree}", "{raw}", "{include}", "{literalinclude}", "{eval-rst}", "{command-help}")
_OTHERS = frozenset({"cmake", "yaml", "dockerfile", "ini", "nginx", "sh"})
"""Languages of blocks that configure other programs."""


@dataclass(frozen=True)
class Block:
    """One block of code."""

    page: Path
    language: str
    text: str
    file: str | None
    """The file that it is said to be."""
    heading: str
    """The heading of second level that it stands below."""

    def __str__(self) -> str:
        return f"{self.page.relative_to(REPOSITORY)}: {self.text[:60]!r}"


def blocks_of(page: Path) -> Iterator[Block]:
    """All blocks of a page, in order."""
    text = page.read_text("utf-8")
    for match in _FENCE.finditer(text):
        heading = re.findall(r"^## (.*)$", text[: match.start()], re.MULTILINE)
        body = re.sub(rf"^{match['indent']}", "", match["body"], flags=re.MULTILINE)
        yield Block(page, match["language"].strip(), body, match["file"], heading[-1] if heading else "")


BLOCKS = [block for page in PAGES for block in blocks_of(page)]


def blocks(language: str) -> list[Block]:
    """All blocks in a language."""
    return [block for block in BLOCKS if block.language == language]


def test_every_block_is_seen() -> None:
    """No fence is missed by the pattern, and each has a language that some test here knows."""
    known = {"toml", "python", "console", "cuda", "json", "text", *_OTHERS}
    for page in PAGES:
        fences = len(re.findall(r"^ *```", page.read_text("utf-8"), re.MULTILINE))
        assert fences == 2 * sum(block.page == page for block in BLOCKS), page
    for block in BLOCKS:
        assert block.language in known or block.language.startswith(_DIRECTIVES), block
    assert len(blocks("toml")) > 5 < len(blocks("cuda"))


@pytest.mark.parametrize("block", blocks("toml"), ids=str)
def test_toml(block: Block) -> None:
    """TOML is TOML, and what it says to the hook is what the hook accepts."""
    values = tomllib.loads(block.text)
    build = (values if "build" in values else values.get("tool", {}).get("hatch", {})).get("build", {})
    tables = [build.get("hooks", {}), *(target.get("hooks", {}) for target in build.get("targets", {}).values())]
    found = [hooks[HOOK] for hooks in tables if HOOK in hooks]
    if not found and set(values) <= set(_FIELDS):
        found = [values]  # keys alone, of the hook table
    for table in found:
        Config.from_table({"archs": ["sm_80"], **hook_table(table)})
    for requirement in values.get("build-system", {}).get("requires", []):
        assert re.match(r"[a-z][a-z-]+", requirement), block


def test_json() -> None:
    """JSON is JSON."""
    for block in blocks("json"):
        json.loads(block.text)


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_python(block: Block) -> None:
    """Python compiles; of this package it imports what there is, and calls it with arguments that exist."""
    tree = ast.parse(block.text)
    ours = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "hatch_cuda_kernels":
            for alias in node.names:
                assert alias.name in hatch_cuda_kernels.__all__, block
                ours[alias.asname or alias.name] = getattr(hatch_cuda_kernels, alias.name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ours:
            parameters = inspect.signature(ours[node.func.id]).parameters
            assert {keyword.arg for keyword in node.keywords} <= set(parameters), block


def test_names_of_cuda_core() -> None:
    """What the pages import from cuda.core and cuda.bindings is there."""
    wanted = set()
    for block in blocks("python"):
        for node in ast.walk(ast.parse(block.text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cuda."):
                wanted |= {(node.module, alias.name) for alias in node.names}
    script = (
        "import importlib, sys\n"
        "for line in sys.stdin:\n"
        "    module, name = line.split()\n"
        "    if not hasattr(importlib.import_module(module), name):\n"
        "        importlib.import_module(f'{module}.{name}')\n"
    )
    lines = "".join(f"{module} {name}\n" for module, name in sorted(wanted))
    done = subprocess.run([sys.executable, "-c", script], input=lines, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert wanted


_PROGRAMS = frozenset(
    ". apt-get build cd conda cp dask docker env export git hatch mkdir mypy nginx pip pre-commit pytest python "
    "python3 redis-server ruff sed sphinx-build uv".split()
)
_ENVIRONMENT = re.compile(r"HATCH_CUDA_KERNELS_\w+")


@pytest.mark.parametrize("block", blocks("console"), ids=str)
def test_console(block: Block) -> None:
    """Our commands take the arguments that are shown; variables exist; other programs are known ones."""
    reference = (DOCS / "reference/options.md").read_text("utf-8")
    for name in _ENVIRONMENT.findall(block.text):
        assert f"`{name}`" in reference, f"{block}: {name}"
    commands = re.findall(r"^\$ ((?:.*\\\n)*.*)$", block.text, re.MULTILINE)
    assert commands, block
    for line in commands:
        for command in re.split(r"&&|\|", re.sub(r"'[^']*'", lambda quoted: quoted[0].replace("|", " "), line)):
            words = [word for word in shlex.split(command, comments=True) if not re.match(r"[A-Z_]+=", word)]
            program = words[0].rpartition("/")[2] if words[0] != "." else "."
            if program in ("python", "python3") and words[1:3] == ["-m", "hatch_cuda_kernels"]:
                program, words = "hatch-cuda-kernels", words[2:]
            if program == "hatch-cuda-kernels":
                assert isinstance(_parser().parse_args(words[1:]), argparse.Namespace), block
            else:
                assert program in _PROGRAMS, f"{block}: {program}"


@pytest.mark.isolated
def test_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Commands of ours that are about the app of the README, or about no project, run as they are shown."""
    readme = {block.language: block.text for block in reversed([*blocks_of(REPOSITORY / "README.md")])}
    project = Project(tmp_path / "my-app", tmp_path / "cache")
    project.write({"my_app/__init__.py": readme["python"], "my_app/saxpy.cu": readme["cuda"]})
    for version in ("1.0", "1.1"):
        project.write({"pyproject.toml": readme["toml"].replace('version = "1.0"', f'version = "{version}"')})
        run = project.build(out=project.root / "dist")
        assert run.status == 0, run.output
    (project.root / "build.json").write_text(json.dumps(run.report))
    monkeypatch.chdir(project.root)
    monkeypatch.setenv("HATCH_CUDA_KERNELS_CACHE", str(tmp_path / "cache"))
    done = []
    for page in (REPOSITORY / "README.md", *sorted((DOCS / "how-to").glob("*.md"))):
        for block in blocks_of(page):
            for line in re.findall(r"^\$ hatch-cuda-kernels (.*)$", block.text, re.MULTILINE):
                words = shlex.split(line)
                if words[0] == "init":  # the app has a table already: the page says that nothing is touched then
                    assert main(words) == 1
                elif any("dist/my_app-" in word for word in words):
                    assert main(words) == 0, f"{block}: {capsys.readouterr().err}"
                    done.append(words[0])
    assert {"inspect", "explain", "verify", "coverage", "diff", "report"} <= set(done)
    assert (project.root / "report.html").stat().st_size > 10_000


def test_cuda(tmp_path: Path) -> None:
    """CUDA compiles, by the hook table that `init` writes for it. Files of projects are compiled there."""
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo/__init__.py").touch()
    named: dict[str, Block] = {}
    python = "\n".join(block.text for block in BLOCKS if block.language in ("python", "toml"))
    (tmp_path / "demo/mentions.py").write_text(python)
    for index, block in enumerate(blocks("cuda")):
        if project_of(block.page) is None:
            named[f"block_{index}"] = block
            (tmp_path / f"demo/block_{index}.cu").write_text(block.text)
    proposal = propose(tmp_path, {})
    values = tomllib.loads(proposal.file.with_addition(proposal.addition))
    table = {**hook_table(values["tool"]["hatch"]["build"]["hooks"][HOOK]), "archs": ["sm_90"], "cache": False}
    specs = find_modules(Config.from_table(table), tmp_path, [ShippedPackage(name="demo", folder="demo")], where=WHERE)
    assert {spec.name for spec in specs} == set(named)
    build_packages(Config.from_table(table), tmp_path, specs, where=WHERE, reporter=Quiet(), put=nowhere).close()


def project_of(page: Path) -> Path | None:
    """The folder of the project that a page shows, if it shows one."""
    match = re.search(r"`(docs/projects/[\w-]+)/`", page.read_text("utf-8"))
    return REPOSITORY / match[1] if match and page.name != "index.md" else None


@pytest.mark.parametrize("page", [page for page in PAGES if project_of(page)], ids=lambda page: page.name)
def test_projects(page: Path) -> None:
    """A page that shows a project shows its files as they are, and every file after."""
    project = project_of(page)
    assert project is not None
    shown: dict[str, set[str]] = {"Before": set(), "After": set()}
    for block in blocks_of(page):
        if block.file and block.heading in shown:
            assert block.text == (project / block.heading.lower() / block.file).read_text("utf-8"), block
            shown[block.heading].add(block.file)
    new = {
        path.relative_to(project / "after").as_posix()
        for path in (project / "after").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    old = {name for name in new if (project / "before" / name).is_file()}
    same = {name for name in old if (project / "before" / name).read_text() == (project / "after" / name).read_text()}
    assert shown["After"] == new - same


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub and MyST make it."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_anchors(page: Path) -> None:
    """Every link within the documentation leads to a file and, with an anchor, to a heading of it."""
    text = _FENCE.sub("", page.read_text("utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, anchor = target.partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", _FENCE.sub("", path.read_text("utf-8")), re.MULTILINE)
            assert anchor in {slug(heading) for heading in headings}, target


def test_every_page_is_reached() -> None:
    """Each page of the site is listed in the index of its folder."""
    for folder in ("how-to", "reference", "explanation"):
        index = (DOCS / folder / "index.md").read_text("utf-8")
        for page in (DOCS / folder).glob("*.md"):
            assert page.name == "index.md" or f"({page.name})" in index, page
