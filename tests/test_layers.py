# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The shape of the package: which module may import which, and what is imported when."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import hatch_cuda_kernels

PACKAGE = Path(hatch_cuda_kernels.__file__).parent

ARROWS = {
    "__init__": "_version arguments errors loader selection",
    "__main__": "cli",
    "_version": "",
    "account": "advice arch config errors plan toolchain",
    "advice": "arch installed plan sources toolkit",
    "arch": "",
    "arguments": "catalog errors",
    "assembly": "config errors manifest modules plan sbom sources toolchain variants",
    "budgets": "config display errors manifest",
    "build": "account arch assembly budgets cache config costs display "
    "errors jobs machine manifest modules nvrtc plan pool sbom sources toolchain",
    "cache": "errors plan records stores.directory stores.layers stores.location stores.opening stores.state",
    "catalog": "arch errors manifest package selection variants",
    "cli": "_version arch display errors target",
    "compilation": "arch compiler config display errors installed jobs modules nvrtc plan sources toolchain",
    "compiler": "advice errors hostcode instances linker manifest nvrtc outcome plan precompiled sources",
    "config": "arch errors manifest options stores.location toolkit variants",
    "costs": "plan toolchain",
    "coverage": "arch catalog display manifest selection target",
    "cubin": "arch elf manifest",
    "diff": "display manifest target",
    "display": "",
    "driver": "arch errors",
    "editable": "config errors manifest modules",
    "elf": "",
    "errors": "",
    "excerpt": "",
    "executor": "_version errors plan records",
    "explanation": "arch catalog display errors loader package selection target",
    "fallback": "arch cache errors jobs plan toolchain",
    "hints": "arch",
    "hooks": "plugin",
    "hooktable": "config hints layout modules survey tomlfile",
    "hostcode": "launches mentions passing prelude settling surroundings uncovering",
    "hostcode.brackets": "tokens",
    "hostcode.declarations": "brackets names surroundings tokens",
    "hostcode.editing": "brackets tokens",
    "hostcode.launches": "declarations tokens",
    "hostcode.meanings": "declarations sites surroundings tokens",
    "hostcode.mentions": "declarations meanings sites surroundings tokens",
    "hostcode.names": "",
    "hostcode.passing": "declarations editing launches names surroundings tokens",
    "hostcode.prelude": "passing",
    "hostcode.settling": "declarations names passing surroundings tokens",
    "hostcode.sites": "declarations surroundings tokens",
    "hostcode.surroundings": "names tokens",
    "hostcode.tokens": "",
    "hostcode.uncovering": "declarations passing surroundings tokens",
    "housekeeping": "cache display stores.state",
    "init": "config display errors hints hooktable layout survey tomlfile",
    "inspection": "display manifest target",
    "installed": "",
    "instances": "errors hostcode manifest plan",
    "jobs": "arch plan toolchain",
    "layout": "modules tomlfile",
    "linker": "advice arch elf errors jobs options outcome plan toolchain",
    "loader": "arch catalog errors manifest package selection",
    "machine": "",
    "manifest": "arch errors",
    "modules": "config errors installed manifest options sources variants",
    "nvrtc": "advice arch errors options outcome plan sources standins toolchain toolkit",
    "occupancy": "arch manifest",
    "options": "",
    "outcome": "cubin elf errors manifest plan",
    "package": "arch elf errors excerpt manifest variants",
    "plan": "_version arch manifest sources standins",
    "plugin": "budgets build config editable errors installed manifest modules progress sbom sources toolchain",
    "pool": "costs errors machine nvrtc plan prefix schedule toolchain worker",
    "precompiled": "errors nvrtc plan prefix sources toolchain",
    "prefix": "manifest plan sources",
    "progress": "",
    "records": "arch errors manifest plan toolkit",
    "report": "..display markdown page summary",
    "report.markdown": "..arch ..coverage ..diff ..display ..inspection summary",
    "report.markup": "..display",
    "report.page": ".._version ..occupancy markup sections style summary timeline",
    "report.parts": "markup",
    "report.sections": "..arch ..coverage ..diff ..display ..inspection ..manifest ..occupancy ..selection "
    "markup parts style summary treemap",
    "report.style": "",
    "report.summary": "..arch ..coverage ..diff ..inspection ..manifest ..occupancy ..target",
    "report.timeline": "..display markup parts",
    "report.treemap": "",
    "sbom": "_version manifest",
    "schedule": "costs plan",
    "selection": "arch manifest",
    "sources": "errors installed",
    "standins": "",
    "stores": "",
    "stores.base": "",
    "stores.database": "base files sealing",
    "stores.directory": "base files",
    "stores.files": "base",
    "stores.layered": "base layers",
    "stores.layers": "..errors base sealing state",
    "stores.location": "",
    "stores.memory": "base",
    "stores.opening": "..errors base directory files layers location sealing state",
    "stores.remote": "..errors base location sealing",
    "stores.sealing": "",
    "stores.state": "files",
    "stubs": "display manifest target",
    "survey": "errors sources standins templates",
    "target": "catalog errors manifest package",
    "templates": "sources",
    "tomlfile": "errors",
    "toolchain": "arch errors",
    "toolkit": "errors",
    "transfer": "arch build cache config display errors jobs modules "
    "plan stores.location stores.opening toolchain worker",
    "variants": "manifest",
    "verify": "arch cache costs coverage cubin display elf errors "
    "jobs machine manifest nvrtc package plan pool target toolchain",
    "warm": "arch catalog display fallback loader manifest package plan selection target",
    "worker": "compiler errors machine nvrtc plan precompiled toolchain",
}
"""Module -> what it may import of its folder when it is itself imported."""

LATE = {
    "arguments": "cubin elf",
    "build": "executor",
    "cache": "config stores.database",
    "catalog": "editable fallback installed plan sources",
    "cli": "compilation coverage diff explanation housekeeping init inspection report stubs transfer verify warm",
    "driver": "toolchain",
    "executor": "nvrtc pool",
    "explanation": "driver",
    "fallback": "compiler nvrtc pool",
    "loader": "driver fallback",
    "package": "plan sources",
    "stores": "base layered layers location opening",
    "stores.opening": "database memory remote",
    "survey": "hostcode",
    "target": "build",
    "toolchain": "cubin",
    "transfer": "plugin",
    "warm": "driver",
}
"""Module -> what it may import besides, inside a function."""


def module_name(path: Path) -> str:
    """Dotted name of a file below the package; a folder is a module by its `__init__`."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)


def imports(tree: ast.AST, *, late: bool) -> Iterator[str]:
    """Names of sibling modules imported at module level, or inside functions; type checking aside."""
    for node in ast.iter_child_nodes(tree):
        inside = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom) and node.level > 1:
            yield f"{'.' * node.level}{node.module}"
        if isinstance(node, ast.ImportFrom) and node.level == 1 and not late:
            yield from [node.module] if node.module else [alias.name for alias in node.names]
        if inside and late:
            yield from imports(node, late=False)
        if not inside:
            yield from imports(node, late=late)


def test_arrows() -> None:
    """Imports among the modules are exactly those of the table: data flows one way."""
    assert {module_name(path) for path in PACKAGE.rglob("*.py")} == set(ARROWS)
    for path in sorted(PACKAGE.rglob("*.py")):
        tree, name = ast.parse(path.read_text("utf-8")), module_name(path)
        assert set(imports(tree, late=False)) == set(ARROWS[name].split()), name
        assert set(imports(tree, late=True)) <= {*LATE.get(name, "").split(), *ARROWS[name].split()}, name


def test_cuda_only_inside_functions() -> None:
    """No module imports CUDA at module level: a hook is instantiated before its dependencies are there."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
            assert not [name for name in names if name.split(".")[0] == "cuda"], path.stem


def test_only_plugin_knows_hatchling() -> None:
    """hatchling is imported by the plugin alone."""
    users = {
        path.stem for path in PACKAGE.rglob("*.py") if "hatchling" in path.read_text("utf-8").split("import ", 1)[-1]
    }
    assert {name for name in users if "from hatchling" in (PACKAGE / f"{name}.py").read_text("utf-8")} == {
        "hooks",
        "plugin",
    }


def test_import_is_light() -> None:
    """`import hatch_cuda_kernels` imports neither CUDA nor hatchling nor numpy, and none of the build's side."""
    script = "import sys, hatch_cuda_kernels; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-Ic", script], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(done.stdout.split())
    assert not {name.split(".")[0] for name in loaded} & {"cuda", "hatchling", "numpy", "pathspec", "filelock"}
    assert not {f"hatch_cuda_kernels.{name}" for name in ("build", "nvrtc", "config", "plugin", "cache")} & loaded
