# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""A file of TOML that gets more tables at its end, and keeps all that it has as it is."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ConfigurationError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["TomlFile", "sub_table"]


@dataclass(frozen=True, kw_only=True)
class TomlFile:
    """A file of TOML with its text as it is on disk; empty where there is none."""

    path: Path
    text: str
    values: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> TomlFile:
        try:
            text = path.read_bytes().decode("utf-8")
            return cls(path=path, text=text, values=tomllib.loads(text.replace("\r\n", "\n")))
        except FileNotFoundError:
            return cls(path=path, text="", values={})
        except UnicodeDecodeError as error:
            raise ConfigurationError(f"{path}: not UTF-8, which TOML has to be (offset {error.start})") from None
        except tomllib.TOMLDecodeError as error:
            raise ConfigurationError(f"{path}: no valid TOML ({error}); mend it first") from None

    def with_addition(self, addition: str) -> str:
        """The text with more tables at its end, and nothing else changed. Raises where that cannot be written."""
        try:
            wanted = _merged(self.values, tomllib.loads(addition))
            text = addition if not self.text.strip() else f"{self.text.rstrip()}\n\n{addition}"
            fits = tomllib.loads(text.replace("\r\n", "\n")) == wanted
        except tomllib.TOMLDecodeError:
            fits = False
        if not fits:
            raise ConfigurationError(
                f"{self.path}: nothing can be added at its end, since it has an inline table or dotted keys where the "
                f"hook table belongs; put this in by hand:\n\n{addition}"
            )
        if "\r\n" in self.text:
            text = re.sub(r"\r?\n", "\r\n", text)
        return text

    def write(self, text: str) -> None:
        """Replace the file's text, whole or not at all."""
        path = self.path.resolve()
        handle, staged = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
                stream.write(text)
            os.chmod(staged, path.stat().st_mode & 0o777 if path.exists() else 0o644)
            os.replace(staged, path)
        except BaseException:
            os.unlink(staged)
            raise


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(old)
    for key, value in new.items():
        both = isinstance(value, dict) and isinstance(old.get(key), dict)
        merged[key] = _merged(old[key], value) if both else value
    return merged


def sub_table(values: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The table at a key path, or an empty one."""
    found: Any = values
    for key in path.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}
