# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""A hook table in TOML, made of what a survey found, with comments that say what was guessed from what."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..config import HOOK, check_module_name
from ..libraries import LIBRARIES
from ..modules import ShippedPackage
from .hints import Hints
from .layout import Layout
from .survey import Source
from .tomlfile import sub_table

__all__ = ["HookTable", "comment", "quote"]

_DEFAULT_ARCHS = ("sm_80", "sm_90", "sm_100", "sm_120", "compute_80")
_DEFAULT_REASON = "one cubin for each generation since Ampere, and PTX for devices that none of them runs on"


def quote(value: object) -> str:
    """A value as TOML writes it."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)


def _list(values: Iterable[str]) -> str:
    shown = [quote(value) for value in values]
    line = f"[{', '.join(shown)}]"
    return line if len(line) < 90 else "[\n" + "".join(f"    {value},\n" for value in shown) + "]"


def comment(text: str) -> str:
    return "".join(f"# {line}\n" for line in re.sub(r"[\x00-\x09\x0b-\x1f\x7f]", "?", text).splitlines())


def _pattern(label: str) -> str:
    """A gitignore-style pattern of exactly that file."""
    return "/" + re.sub(r"([\\*?\[])", r"\\\1", label)


@dataclass(frozen=True)
class HookTable:
    """Writes the hook table below the key path `build`, for a project that has `values` there."""

    build: str
    layout: Layout
    values: Mapping[str, Any]
    sources: Sequence[Source]

    @property
    def chosen(self) -> list[Source]:
        """Sources to compile: in the packages, and outside them what looks like the project's own."""
        kept = [source for source in self.sources if source.has_kernels and (self._owner(source) or source.own)]
        return sorted(kept, key=lambda source: self._owner(source) is None)

    @property
    def libraries(self) -> dict[str, list[str]]:
        """Package of each library whose headers device code needs -> the sources that do."""
        found: dict[str, list[str]] = {}
        for source in self.chosen:
            for package in source.libraries:
                found.setdefault(package, []).append(source.label)
        return found

    def _owner(self, source: Source) -> ShippedPackage | None:
        return next((p for p in self.layout.packages if source.label.startswith(f"{p.folder}/")), None)

    def render(self, include_dirs: Sequence[str], hints: Hints) -> str:
        """The tables, as TOML with comments that say what was guessed from what."""
        chosen = self.chosen
        text = ""
        if self.layout.to_name and not sub_table(self.values, "targets.wheel"):
            text += comment("No folder is called as the project is; hatchling ships these.")
            text += f"[{self.build}.targets.wheel]\npackages = {_list(self.layout.to_name)}\n\n"
        hook = f"{self.build}.hooks.{HOOK}"
        text += f"[{hook}]\n{_archs(hints)}"
        text += self._sources(chosen)
        if include_dirs:
            text += comment("Where the includes of these sources find the project's headers.")
            text += f"include-dirs = {_list(include_dirs)}\n"
        if libraries := self.libraries:
            for package, labels in libraries.items():
                text += comment(f"Device code of {', '.join(labels)} needs headers of the installed package {package}.")
            text += f"include-packages = {_list(libraries)}\n"
        if host := [source.label for source in chosen if source.host_code]:
            text += comment(f'{", ".join(host)}: host code is passed over; host-code = "error" would refuse it.')
        if hints.options:
            text += f"\n[{hook}.options]\n"
            for option, value in hints.options.items():
                text += comment(f"From {hints.options_from[option]}.") + f"{option} = {quote(value)}\n"
        known = {name: package for package in libraries for name in LIBRARIES[package].defines}
        if macros := {name: package for name, package in known.items() if name not in hints.undefines}:
            text += f"\n[{hook}.defines]\n"
            text += comment(f"As the builds of {', '.join(dict.fromkeys(macros.values()))} define them for extensions.")
            text += "".join(f"{name} = true\n" for name in macros)
        if hints.defines:
            named = ", ".join(f"{macro} ({label})" for macro, label in sorted(hints.defines.items()))
            text += "\n" + comment(f"Macros that some compiler was given so far: {named}. If kernels need them:")
            text += "" if macros else comment(f"[{hook}.defines]")
        for source in chosen:
            text += self._module(source, hook)
        return text

    def _sources(self, chosen: Sequence[Source]) -> str:
        """`sources` and `package`, where the defaults do not say the same."""
        text = ""
        kept = {source.label for source in chosen}
        inside = [source for source in self.sources if self._owner(source)]
        outside = [source for source in chosen if not self._owner(source)]
        left = [source for source in self.sources if source.label not in kept]
        if left:
            empty = [source.label for source in left if not source.has_kernels]
            foreign = [source.label for source in left if source.has_kernels]
            if empty:
                text += comment(f"Without a kernel, and not compiled: {', '.join(empty)}.")
            if foreign:
                text += comment(f"Not compiled, since they look like tests or examples: {', '.join(foreign)}.")
        if outside or any(source.label not in kept for source in inside):
            patterns = [_pattern(source.label) for source in chosen]
            text += f"sources = {_list(patterns)}\n"
        if outside:
            package = self.layout.packages[0].name
            others = ", ".join(package.name for package in self.layout.packages[1:])
            text += comment(
                "The package that gets the kernels of sources that lie in none."
                + (f" Others: {others}." if others else "")
            )
            text += f"package = {quote(package)}\n"
        return text

    def _module(self, source: Source, hook: str) -> str:
        """A `[[modules]]` table, where a source needs one."""
        body = ""
        name = self._name(source)
        if name is not None:
            body += f"name = {quote(name)}\n"
        named = [instance for template in source.templates for instance in template.instances]
        unknown = [template for template in source.templates if not template.instances and not template.used]
        guesses = [template.guess for template in unknown if template.guess]
        if named:
            body += comment("Instances that the project names; others that you launch have to be listed too.")
            body += f"name-expressions = {_list(named)}\n"
        elif guesses and not source.plain_kernels and len(unknown) == len(source.templates):
            body += comment("Guessed: nothing names an instance of these templates. List those that you launch.")
            body += f"name-expressions = {_list(guesses)}\n"
        elif source.templates:
            body += comment("The build finds what host code here launches. List what else is launched, such as")
            examples = guesses or [template.guess or f"{template.name}<...>" for template in source.templates]
            body += comment(f"name-expressions = {_list(examples[:1])}")
        return f"\n[[{hook}.modules]]\nsource = {quote(source.label)}\n{body}" if body else ""

    def _name(self, source: Source) -> str | None:
        """A module's name, where the one made from its path would be refused."""
        owner = self._owner(source)
        inside = source.label[len(owner.folder) + 1 :] if owner else source.label
        name = posixpath.splitext(inside)[0].replace("/", ".")
        if check_module_name(name) is None:
            return None
        plain = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:120] or "kernels"
        return plain if check_module_name(plain) is None else f"{plain}_"


def _archs(hints: Hints) -> str:
    text = ""
    if hints.archs:
        text += comment(f"From {hints.archs_from}.")
    else:
        text += comment(f"Guessed: {_DEFAULT_REASON}.")
    if hints.too_old:
        text += comment(f'Left out, since CUDA 13 has them no more: {", ".join(hints.too_old)} (cuda = "12" has some).')
    return f"{text}archs = {_list(hints.archs or _DEFAULT_ARCHS)}\n"
