# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Editable installs: a note in the `.dist-info` leads the loader to the live sources.

The note holds the modules as declared when the project was installed, and a digest of the hook table they came from:
sources and headers are read anew by every process, and a hook table that was edited since is named.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .config import HOOK, Config
from .errors import ConfigurationError, ManifestError
from .manifest import canonical_json
from .modules import ModuleSpec, ShippedPackage

__all__ = ["EDITABLE_FILE", "Editable", "describe_editable", "find_editable", "hook_table"]

EDITABLE_FILE = "hatch-cuda-kernels/editable.json"
"""Below `extra_metadata/` in the `.dist-info`."""

_SCHEMA = 1


@dataclass(frozen=True, kw_only=True)
class Editable:
    """The note of one editable install."""

    distribution: str
    root: Path
    table_digest: str
    specs: tuple[ModuleSpec, ...]

    def check_table(self) -> None:
        """Raise ConfigurationError where the hook table is not the one that was installed."""
        if _table_digest(self.root) != self.table_digest:
            raise ConfigurationError(
                f"the hook table of {self.root} was edited since {self.distribution} was installed; reinstall it "
                f"(`pip install -e {self.root}`), so that the loader sees the new one"
            )

    def config(self) -> Config:
        """The hook table as it is now, with this environment."""
        tables = list(_hook_tables(self.root).values())
        environ = {name: value for name, value in os.environ.items() if name != "HATCH_CUDA_KERNELS_REPORT"}
        return Config.from_table(hook_table(tables[-1] if tables else {}), environ=environ)

    def undeclared_sources(self, package: str) -> list[str]:
        """`.cu` files beside the declared ones that appeared since the install, for messages."""
        declared = {label for spec in self.specs for label in (spec.source, *spec.linked)}
        folders = {str(Path(spec.source).parent) for spec in self.specs if spec.package == package}
        found = [path for folder in folders for path in sorted((self.root / folder).glob("*.cu"))]
        labels = [path.relative_to(self.root).as_posix() for path in found]
        return [label for label in labels if label not in declared]


def hook_table(config: Mapping[str, Any]) -> dict[str, Any]:
    """hatchling's configuration of the hook as plain values (tomlkit gives subclasses)."""
    value = json.loads(json.dumps(dict(config), default=_refuse))
    assert isinstance(value, dict)
    return value


def _refuse(value: object) -> str:
    return f"{type(value).__name__} {value}"  # a date, say: no key takes one, and the message shows it


def describe_editable(
    root: Path,
    packages: Sequence[ShippedPackage],
    specs: Sequence[ModuleSpec],
) -> bytes:
    """The note for an editable wheel."""
    return canonical_json(
        {
            "schema": _SCHEMA,
            "root": str(root.resolve()),
            "table_digest": _table_digest(root),
            "packages": [package.name for package in packages],
            "modules": [dataclasses.asdict(spec) for spec in specs],
        }
    )


def _table_digest(root: Path) -> str:
    """Digest of what pyproject.toml and hatch.toml say of the hook, and of nothing else in them."""
    return hashlib.sha256(json.dumps(_hook_tables(root), sort_keys=True, default=str).encode()).hexdigest()


def _hook_tables(root: Path) -> dict[str, Any]:
    """The hook's tables of pyproject.toml and hatch.toml; what comes later wins over what comes before."""
    found: dict[str, Any] = {}
    for name, path in (("pyproject.toml", ("tool", "hatch")), ("hatch.toml", ())):
        try:
            value = _load_toml(root / name)
        except FileNotFoundError:
            continue
        for key in (*path, "build"):
            value = value.get(key, {}) if isinstance(value, dict) else {}
        for where, table in (("global", value), ("wheel", value.get("targets", {}).get("wheel", {}))):
            hook = table.get("hooks", {}).get(HOOK)
            if hook is not None:
                found[f"{name} {where}"] = hook
    return found


def _load_toml(path: Path) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read ({error})") from None


def find_editable(package: str) -> Editable | None:
    """The editable install that provides an import package, or None."""
    for distribution in importlib.metadata.distributions():
        text = distribution.read_text(f"extra_metadata/{EDITABLE_FILE}")
        if text is None:
            continue
        try:
            value = json.loads(text)
            if package not in value["packages"]:
                continue
            if value["schema"] != _SCHEMA:
                raise ManifestError(f"{distribution.name}: made by another hatch-cuda-kernels; reinstall it")
            return Editable(
                distribution=distribution.name,
                root=Path(value["root"]),
                table_digest=value["table_digest"],
                specs=tuple(_spec(entry) for entry in value["modules"]),
            )
        except (ValueError, KeyError, TypeError):
            raise ManifestError(
                f"{distribution.name}: the note of its editable install is damaged; reinstall it"
            ) from None
    return None


def _spec(entry: Mapping[str, Any]) -> ModuleSpec:
    return ModuleSpec(
        package=entry["package"],
        name=entry["name"],
        source=entry["source"],
        linked=tuple(entry["linked"]),
        name_expressions=tuple(entry["name_expressions"]),
        archs=tuple(entry["archs"]),
        include_dirs=tuple(entry["include_dirs"]),
        defines=dict(entry["defines"]),
        options=dict(entry["options"]),
        toolkit_headers=entry["toolkit_headers"],
        host_code=entry["host_code"],
    )
