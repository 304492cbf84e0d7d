# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What changed from one build of a package to another."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..display import Ink, columns_of, format_size, markdown_table, markdown_text, print_json, printable, table
from ..manifest import Manifest, Module, ShippedFile
from .target import open_packages

__all__ = ["Difference", "Move", "compare", "headline", "markdown_lines", "run", "sections"]

_SETTINGS = "source linked options defines include_dirs name_expressions toolkit_headers host_code".split()


@dataclass(frozen=True, kw_only=True)
class Move:
    """One value that is another now; None where there was nothing, or is nothing any more."""

    where: str
    """A module, a kernel as `module:kernel`, or a file."""
    what: str
    old: Any
    new: Any
    arch: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As `diff --json` has it."""
        return dict(vars(self))


@dataclass(frozen=True, kw_only=True)
class Difference:
    """All that changed in one package, in the order in which a reader wants it."""

    package: str
    status: str
    """"same", "changed", "new" or "gone"."""
    compiler: tuple[str, str]
    size: tuple[int, int]
    kernels: tuple[Move, ...]
    """Kernels that are gone or new, by `module:kernel`."""
    architectures: tuple[Move, ...]
    """Images that are gone or new, by module."""
    resources: tuple[Move, ...]
    """Registers, spills and the like that moved, by `module:kernel` and architecture."""
    images: tuple[Move, ...]
    """Images with other bytes, and their sizes, by module."""
    settings: tuple[Move, ...]
    """How modules are compiled."""
    sources: tuple[Move, ...]
    """What the fallback ships: digests."""

    def to_dict(self) -> dict[str, Any]:
        """As `diff --json` has it."""
        value: dict[str, Any] = dict(vars(self))
        for name, found in value.items():
            if isinstance(found, tuple):
                value[name] = [item.to_dict() if isinstance(item, Move) else item for item in found]
        return value


def run(*, old: str, new: str, package: str | None, exit_code: bool, form: str, as_json: bool) -> int:
    """Print what changed; with `exit_code`, return 1 where something did."""
    found = compare(
        [one.manifest for one in open_packages(old, package)], [one.manifest for one in open_packages(new, package)]
    )
    if as_json or form == "json":
        print_json({"schema": 1, "packages": [difference.to_dict() for difference in found]})
    elif form == "markdown":
        print("\n".join(line for difference in found for line in markdown_lines(difference)))
    else:
        print("\n\n".join("\n".join(_text(difference, columns_of(), Ink())) for difference in found))
    return 1 if exit_code and any(difference.status != "same" for difference in found) else 0


def compare(old: Iterable[Manifest], new: Iterable[Manifest]) -> list[Difference]:
    """The difference of every package, by name."""
    before, after = ({manifest.package: manifest for manifest in found} for found in (old, new))
    return [_compare(name, before.get(name), after.get(name)) for name in sorted({*before, *after})]


def _compare(name: str, old: Manifest | None, new: Manifest | None) -> Difference:
    pairs = list(_pairs(_modules(old), _modules(new)))
    found = {
        "kernels": _kernels(pairs),
        "architectures": _architectures(pairs),
        "resources": _resources(pairs),
        "images": _images(pairs),
        "settings": _settings(pairs),
        "sources": _sources(old, new),
    }
    parts = {key: tuple(moves) for key, moves in found.items()}
    compiler = (old.release if old else "", new.release if new else "")
    changed = any(parts.values()) or compiler[0] != compiler[1]
    status = "new" if old is None else "gone" if new is None else "changed" if changed else "same"
    return Difference(package=name, status=status, compiler=compiler, size=(_size(old), _size(new)), **parts)


_Pair = tuple[str, Module | None, Module | None]


def _modules(manifest: Manifest | None) -> dict[str, Module]:
    return {module.name: module for module in manifest.modules} if manifest else {}


def _pairs(old: Mapping[str, Module], new: Mapping[str, Module]) -> Iterator[_Pair]:
    for name in sorted({*old, *new}):
        yield name, old.get(name), new.get(name)


def _size(manifest: Manifest | None) -> int:
    return sum(image.size for module in manifest.modules for image in module.images) if manifest else 0


def _kernels(pairs: Sequence[_Pair]) -> Iterator[Move]:
    for name, old, new in pairs:
        before, after = (set(module.kernels) if module else set() for module in (old, new))
        for kernel in sorted(before ^ after):
            state = ("there", None) if kernel in before else (None, "there")
            yield Move(where=f"{name}:{kernel}", what="kernel", old=state[0], new=state[1])


def _architectures(pairs: Sequence[_Pair]) -> Iterator[Move]:
    for name, old, new in pairs:
        before, after = (_by_architecture(module) for module in (old, new))
        for architecture in sorted(before.keys() ^ after.keys()):
            sizes = [found[architecture].size if architecture in found else None for found in (before, after)]
            yield Move(where=name, arch=architecture, what="bytes", old=sizes[0], new=sizes[1])


def _by_architecture(module: Module | None) -> dict[str, Any]:
    return {str(image.architecture): image for image in module.images} if module else {}


def _images(pairs: Sequence[_Pair]) -> Iterator[Move]:
    for name, old, new in pairs:
        before, after = (_by_architecture(module) for module in (old, new))
        for architecture in sorted(before.keys() & after.keys()):
            was, is_now = before[architecture], after[architecture]
            if was.sha256 != is_now.sha256:
                yield Move(where=name, arch=architecture, what="bytes", old=was.size, new=is_now.size)


def _resources(pairs: Sequence[_Pair]) -> Iterator[Move]:
    for name, old, new in pairs:
        if old is None or new is None:
            continue
        before, after = _by_architecture(old), _by_architecture(new)
        for kernel in sorted(old.kernels.keys() & new.kernels.keys()):
            for architecture in sorted(before.keys() & after.keys()):
                was, is_now = before[architecture], after[architecture]
                first = was.entries.get(old.lowered(kernel, was) or "")
                second = is_now.entries.get(new.lowered(kernel, is_now) or "")
                if first is None or second is None:
                    continue
                for field, value in first.to_dict().items():
                    if value != (now := second.to_dict()[field]):
                        where = f"{name}:{kernel}"
                        yield Move(where=where, arch=architecture, what=field, old=value, new=now)


def _settings(pairs: Sequence[_Pair]) -> Iterator[Move]:
    for name, old, new in pairs:
        for setting in _SETTINGS if old and new else ():
            was, is_now = getattr(old, setting), getattr(new, setting)
            if not isinstance(was, Mapping):
                if was != is_now:
                    yield Move(where=name, what=setting, old=was, new=is_now)
                continue
            for key in sorted({*was, *is_now}):
                if was.get(key) != is_now.get(key):
                    yield Move(where=name, what=f"{setting}.{key}", old=was.get(key), new=is_now.get(key))


def _sources(old: Manifest | None, new: Manifest | None) -> Iterator[Move]:
    before, after = (_shipped(manifest) for manifest in (old, new))
    for path in sorted({*before, *after}):
        was, is_now = before.get(path), after.get(path)
        if was != is_now:
            yield Move(where=path, what="sha256", old=was and was.sha256, new=is_now and is_now.sha256)


def _shipped(manifest: Manifest | None) -> Mapping[str, ShippedFile]:
    return manifest.fallback.files if manifest and manifest.fallback else {}


# -- as people read it -------------------------------------------------------------------------------------------

_FEW = 40
"""Rows of each part; what moved most comes first where numbers moved."""


def headline(found: Difference) -> str:
    """What changed, in a line."""
    package = printable(found.package)
    if found.status == "same":
        return f"{package}: nothing changed"
    if found.status in ("new", "gone"):
        return f"{package}: the package is {found.status}"
    old, new = found.size
    change = f", {new - old:+d} bytes" if old != new else ""
    text = f"{package}: images {format_size(old)} -> {format_size(new)}{change}"
    if found.compiler[0] != found.compiler[1]:
        text += f"; compiler NVRTC {found.compiler[0]} -> {found.compiler[1]}"
    return text


def sections(found: Difference) -> Iterator[tuple[str, list[list[str]]]]:
    """Title and rows, head included, of each part in which something changed."""
    yield "Kernels", [["kernel", ""], *([m.where, "gone" if m.new is None else "new"] for m in found.kernels)]
    rows = [[m.where, m.arch or "", _bytes(m.old), _bytes(m.new)] for m in found.architectures]
    yield "Images gone or new", [["module", "architecture", "before", "after"], *rows]
    rows = [
        [m.where, m.arch or "", m.what.replace("_bytes", ""), str(m.old), str(m.new), f"{m.new - m.old:+d}"]
        for m in found.resources
    ]
    yield "Resources", [["kernel", "architecture", "resource", "before", "after", "change"], *rows]
    rows = [[m.where, m.arch or "", _bytes(m.old), _bytes(m.new), f"{m.new - m.old:+d}"] for m in found.images]
    yield "Images with other bytes", [["module", "architecture", "before", "after", "change"], *rows]
    rows = [[m.where, m.what, _value(m.old), _value(m.new)] for m in found.settings]
    yield "Settings", [["module", "setting", "before", "after"], *rows]
    rows = [[m.where, "gone" if m.new is None else "new" if m.old is None else "edited"] for m in found.sources]
    yield "Sources of the fallback", [["file", ""], *rows]


def _bytes(size: int | None) -> str:
    return "-" if size is None else format_size(size)


def _value(value: object) -> str:
    return "-" if value is None else value if isinstance(value, str) else json.dumps(value)


def _text(found: Difference, width: int | None, ink: Ink) -> Iterator[str]:
    yield ink("bold", headline(found))
    if found.status == "changed":
        for title, rows in sections(found):
            if len(rows) > 1:
                yield f"\n{title}"
                yield from table(rows[: _FEW + 1], width, left=2, ink=ink, styles={"gone": "red", "new": "green"})
                if len(rows) > _FEW + 1:
                    yield f"... and {len(rows) - _FEW - 1} more; --json has all"


def markdown_lines(found: Difference) -> Iterator[str]:
    """The same for a comment on a pull request; long tables are cut, and say so."""
    yield f"**{markdown_text(headline(found))}**"
    yield ""
    if found.status == "changed":
        for title, rows in sections(found):
            if len(rows) > 1:
                yield from [f"{title}:", "", *markdown_table(rows[: _FEW + 1], 2)]
                if len(rows) > _FEW + 1:
                    yield f"\n... and {len(rows) - _FEW - 1} more"
                yield ""
