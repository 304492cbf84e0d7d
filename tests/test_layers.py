# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The shape of the package: which module may import which, and what is imported when."""

from __future__ import annotations

import ast
import re
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
    "absence": "plan sources",
    "account": "advice arch errors plan toolchain",
    "advice": "arch installed libraries plan sources toolkit",
    "arch": "",
    "arguments": "catalog errors",
    "assembly": "arch config documents errors manifest modules plan sbom sources variants",
    "budgets": "config display errors manifest",
    "build": "absence account arch assembly budgets bundles cache config costs display documents errors gathering "
    "jobs machine manifest modules nvrtc plan pool scans sources toolchain",
    "bundles": "_version arch assembly cache documents gathering manifest records sbom toolkit",
    "cache": "errors plan records stores.directory stores.layers stores.location stores.opening stores.state toolkit",
    "catalog": "arch errors manifest package selection variants",
    "cli": "_version arch commands.target display errors",
    "commands": "",
    "commands.compilation": "..arch ..compiler ..config ..display ..errors ..installed ..jobs ..modules "
    "..nvrtc ..plan ..sources ..toolchain",
    "commands.coverage": "..arch ..catalog ..display ..manifest ..selection target",
    "commands.diff": "..display ..manifest target",
    "commands.explanation": "..arch ..catalog ..display ..errors ..loader ..package ..selection target",
    "commands.housekeeping": "..cache ..display ..stores.state",
    "commands.inspection": "..display ..manifest target",
    "commands.record": "",
    "commands.report": "...display markdown page summary",
    "commands.report.markdown": "...arch ...display ..coverage ..diff ..inspection summary",
    "commands.report.markup": "...display",
    "commands.report.page": "..._version ...occupancy markup sections style summary timeline",
    "commands.report.parts": "markup",
    "commands.report.sections": "...arch ...display ...manifest ...occupancy ...selection ..coverage ..diff "
    "..inspection markup parts style summary treemap",
    "commands.report.style": "",
    "commands.report.summary": "...arch ...manifest ...occupancy ..coverage ..diff ..inspection ..target",
    "commands.report.timeline": "...display markup parts",
    "commands.report.treemap": "",
    "commands.stubs": "..display ..manifest target",
    "commands.target": "..catalog ..errors ..manifest ..package",
    "commands.transfer": "..arch ..build ..cache ..config ..display ..errors ..jobs ..modules ..plan ..stores.layers "
    "..stores.location ..stores.opening ..toolchain ..worker",
    "commands.verify": "..arch ..cache ..costs ..cubin ..display ..elf ..errors ..jobs ..machine "
    "..manifest ..nvrtc ..package ..plan ..pool ..toolchain coverage record target",
    "commands.warm": "..arch ..catalog ..display ..fallback ..loader ..manifest ..package ..plan ..selection target",
    "caveats": "errors installed plan scanning",
    "compiler": "caveats errors nvrtc outcome plan",
    "config": "arch errors manifest options stores.location toolkit variants",
    "costs": "plan toolchain",
    "cubin": "arch elf manifest",
    "deduction": "hostcode installed instances nvrtc plan standins",
    "display": "",
    "documents": "ledger manifest sbom",
    "driver": "arch errors",
    "editable": "config errors manifest modules",
    "elf": "",
    "errors": "",
    "excerpt": "",
    "executor": "_version errors plan records toolkit",
    "fallback": "arch cache errors jobs plan toolchain",
    "gathering": "absence account arch assembly documents jobs manifest modules plan toolchain",
    "headerlist": "",
    "hooks": "plugin",
    "hostcode": "asking choices complaints declarations dependence fragments hidden launches lists mentions names "
    "passing prelude probing settling standard surroundings tokens uncovering",
    "hostcode.asking": "choices declarations dependence fragments inclusions names spelling surroundings tokens",
    "hostcode.brackets": "tokens",
    "hostcode.calls": "declarations names tokens",
    "hostcode.choices": "names tokens",
    "hostcode.complaints": "",
    "hostcode.declarations": "brackets names surroundings tokens",
    "hostcode.dependence": "choices tokens",
    "hostcode.editing": "brackets tokens",
    "hostcode.conditionals": "declarations tokens",
    "hostcode.demands": "calls declarations tokens",
    "hostcode.definitions": "surroundings tokens",
    "hostcode.expansion": "brackets declarations definitions surroundings tokens",
    "hostcode.fragments": "choices declarations surroundings tokens",
    "hostcode.hidden": "declarations mentions surroundings tokens",
    "hostcode.hosttypes": "tensortypes",
    "hostcode.inclusions": "declarations dependence fragments surroundings tokens",
    "hostcode.instantiating": "declarations tokens",
    "hostcode.launches": "declarations tokens",
    "hostcode.lists": "declarations expansion fragments surroundings tokens",
    "hostcode.meanings": "declarations sites surroundings tokens",
    "hostcode.mentions": "declarations launches meanings sites surroundings tokens",
    "hostcode.names": "",
    "hostcode.passing": "calls choices declarations demands editing expansion launches names shells surroundings "
    "throwing tokens verdicts",
    "hostcode.prelude": "passing tokens",
    "hostcode.parts": "calls declarations demands names tokens verdicts",
    "hostcode.pasting": "surroundings tokens",
    "hostcode.probing": "choices declarations editing hosttypes mentions passing sites strangers surroundings tokens",
    "hostcode.reach": "calls names pasting shells surroundings units verdicts",
    "hostcode.settling": "complaints conditionals declarations names passing reach surroundings tokens",
    "hostcode.sites": "declarations surroundings tokens",
    "hostcode.shells": "parts surroundings units",
    "hostcode.spelling": "tokens",
    "hostcode.throwing": "declarations tokens",
    "hostcode.standard": "tokens",
    "hostcode.strangers": "hosttypes names tensortypes",
    "hostcode.surroundings": "names tokens",
    "hostcode.tensortypes": "",
    "hostcode.tokens": "names",
    "hostcode.uncovering": "calls declarations demands passing pasting surroundings tokens",
    "hostcode.units": "calls declarations instantiating parts tokens verdicts",
    "hostcode.verdicts": "declarations names tokens",
    "installed": "libraries",
    "ledger": "staging",
    "libraries": "",
    "instances": "advice errors hostcode manifest plan",
    "jobs": "arch plan toolchain",
    "linker": "advice arch elf errors jobs options outcome plan toolchain",
    "loader": "arch catalog errors manifest package selection",
    "machine": "",
    "manifest": "arch errors",
    "modules": "config errors installed manifest options sources variants",
    "narrowing": "hostcode nvrtc plan sources",
    "nvrtc": "advice arch errors headerlist machine options outcome plan scanning scratch sources standins texts "
    "toolchain toolkit",
    "occupancy": "arch manifest",
    "options": "",
    "outcome": "cubin elf errors manifest plan",
    "package": "arch elf errors excerpt manifest variants",
    "plan": "_version arch manifest sources standins",
    "plugin": "budgets build config editable errors installed manifest modules progress sbom sources staging "
    "toolchain worker",
    "pool": "costs errors machine nvrtc plan prefix schedule toolchain worker",
    "precompiled": "errors headerlist nvrtc plan prefix sources toolchain",
    "preprocessing": "hostcode nvrtc plan",
    "prefix": "costs manifest plan scanning sources",
    "progress": "",
    "records": "errors manifest plan toolkit",
    "reduction": "advice caveats deduction errors hostcode installed instances libraries manifest narrowing nvrtc "
    "outcome plan preprocessing refusals scanning sources standins",
    "refusals": "errors hostcode plan",
    "sbom": "_version manifest",
    "schedule": "costs plan",
    "scratch": "",
    "selection": "arch manifest",
    "setup": "",
    "setup.hints": "..arch",
    "setup.hooktable": "..config ..libraries ..modules hints layout survey tomlfile",
    "setup.init": "..config ..display ..errors hints hooktable layout survey tomlfile",
    "setup.layout": "..modules tomlfile",
    "setup.survey": "..errors ..libraries ..scanning ..sources ..standins templates",
    "setup.templates": "..scanning",
    "setup.tomlfile": "..errors",
    "scanning": "",
    "scans": "_version manifest scanning sources toolchain",
    "sources": "errors installed scanning",
    "staging": "errors machine scratch",
    "standins": "",
    "stores": "",
    "stores.base": "",
    "stores.database": "..errors base files sealing",
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
    "texts": "sources",
    "toolchain": "arch errors",
    "toolkit": "errors",
    "variants": "manifest",
    "worker": "compiler errors machine nvrtc plan precompiled prefix toolchain",
}
"""Module -> what it may import of its folder when it is itself imported."""

LATE = {
    "arguments": "cubin elf",
    "build": "executor",
    "cache": "config stores.database",
    "catalog": "cache editable fallback installed plan scans sources",
    "cli": "commands.compilation commands.coverage commands.diff commands.explanation "
    "commands.housekeeping commands.inspection commands.report commands.stubs "
    "commands.transfer commands.verify commands.warm setup.init",
    "commands.explanation": "..driver",
    "commands.target": "..build",
    "commands.transfer": "..plugin",
    "commands.warm": "..driver",
    "caveats": "hostcode",
    "compiler": "linker reduction",
    "driver": "toolchain",
    "executor": "nvrtc pool",
    "fallback": "pool",
    "loader": "driver fallback",
    "package": "cache plan scans sources",
    "setup.survey": "..hostcode",
    "stores": "base layered layers location opening",
    "stores.opening": "database memory remote",
    "toolchain": "cubin",
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
    knows = re.compile(r"^\s*(?:from|import) hatchling\b", re.MULTILINE)
    users = {module_name(path) for path in PACKAGE.rglob("*.py") if knows.search(path.read_text("utf-8"))}
    assert users == {"hooks", "plugin"}


def test_import_is_light() -> None:
    """`import hatch_cuda_kernels` imports neither CUDA nor hatchling nor numpy, and none of the build's side."""
    script = "import sys, hatch_cuda_kernels; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-Ic", script], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(done.stdout.split())
    assert not {name.split(".")[0] for name in loaded} & {"cuda", "hatchling", "numpy", "pathspec", "filelock"}
    assert not {f"hatch_cuda_kernels.{name}" for name in ("build", "nvrtc", "config", "plugin", "cache")} & loaded
