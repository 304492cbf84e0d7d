# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Declarations for a probe (see `probing`) of what no file declares and the compiler does not know: by how the files
use it, a function, a type or a value, of a type that converts to any. So that a library which is not there costs the
launches that depend on it, and not what stands beside them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from .hosttypes import ANYTHING, BRACED
from .names import HOST_NAMESPACES
from .tensortypes import METHODS

__all__ = ["Name", "expected", "introduced", "unknown"]

Name = tuple[str, ...]
"""A name with the namespaces around it."""

_MEMBER = re.compile(r'error: namespace "(?P<space>\w+(?:::\w+)*)" has no (?:actual )?member "(?P<name>\w+)"')
_PLAIN = re.compile(r'error: (?:identifier "(?P<name>\w+)" is undefined|the global scope has no "(?P<global>\w+)")')
_SPACE = re.compile(
    r'error: (?:name followed by "::" must be a class or namespace name|name must be a namespace name)\n'
    r"  (?P<line>[^\n]*)\n  (?P<caret> *)\^"
)
_CHAIN = re.compile(r"(?<![\w:])(?:::\s*)?([A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)+)")
_RUNTIME = re.compile(
    r"\b(?:cuda[A-Z]\w*|exit|abort|fprintf|fflush|perror|(?:STD_)?TORCH_\w*CHECK\w*|(?:AT|C10|STD_CUDA)_\w*CHECK|device_of)(?=\s*\()"
)
_TENSORS = (["at"], ["torch"], ["torch", "stable"])
"""Namespaces whose unknown functions give tensors."""
_CONSTANT = re.compile(r"k[A-Z0-9]\w*")
_CALL = re.compile(r"\s*(?:<(?P<given>[^;{}()]*)>\s*)?\(")
_TYPE = re.compile(r"\s*(?:(?:const\b|[*&])\s*)*[A-Za-z_]\w*|\s*[*&]+\s*[>,)]")
_HANDED = re.compile(r"\w\s*<\s*\Z")
_NEXT = re.compile(r"\s*[,>]")
"""What stands before and after the first of several arguments of a template, which is a type where a comparison would
be."""
_CASE = re.compile(r"\bcase\s+\Z")
_RESERVED = ("std", "type_info")
"""A class that only the compiler declares."""
_MOST = 400
"""Names introduced at most."""


def expected(texts: Iterable[str], known: str, spaces: Collection[str]) -> set[Name]:
    """Names that will be missing: of CUDA's runtime, and of libraries of the host, but for those in `known`.

    `spaces` are namespaces that the files open themselves.
    """
    there = set(re.findall(r"\w+", known)) - METHODS
    found: set[Name] = set()
    for text in texts:
        found |= {(name,) for name in _RUNTIME.findall(text)}
        chains = (tuple(re.split(r"\s*::\s*", match[1])) for match in _CHAIN.finditer(text))
        found |= {chain for chain in chains if chain[0] in HOST_NAMESPACES and chain[0] not in spaces}
    return {name for name in found if name[-1] not in there}


def unknown(log: str, texts: Iterable[str]) -> set[Name]:
    """The names that the compiler complains of; of a namespace, all that the texts name in it."""
    found: set[Name] = {(*match["space"].split("::"), match["name"]) for match in _MEMBER.finditer(log)}
    found |= {(match["name"] or match["global"],) for match in _PLAIN.finditer(log)}
    words = (re.match(r"\w+", match["line"][len(match["caret"]) :]) for match in _SPACE.finditer(log))
    spaces = {word[0] for word in words if word}
    for text in texts if spaces else ():
        chains = (tuple(re.split(r"\s*::\s*", match[1])) for match in _CHAIN.finditer(text))
        found |= {c for c in chains if c[0] in spaces or (c[0] in HOST_NAMESPACES and not spaces.isdisjoint(c[1:-1]))}
    return found


def introduced(names: Collection[Name], texts: Collection[str]) -> bytes:
    """Declarations of names by how the texts use them."""
    uses: dict[str, set[str]] = {name[-1]: set() for name in names}
    for text in texts:
        for match in re.finditer(r"\b[A-Za-z_]\w*", text):
            if match[0] in uses:
                before = text[max(0, match.start() - 40) : match.start()]
                handed = _HANDED.search(before) and _NEXT.match(text, match.end())
                uses[match[0]].add("type" if handed else "case" if _CASE.search(before) else _use(text, match.end()))
    around = {name[:length] for name in names for length in range(1, len(name))}
    wanted = sorted(name for name in names if name not in around and name != _RESERVED)[:_MOST]
    return "".join(f"{line}\n" for line in _lines(wanted, uses)).encode()


def _use(text: str, end: int) -> str:
    """How a name is used that ends at an offset: as a function, a template, a type, or as a value."""
    if call := _CALL.match(text, end, end + 200):
        return str(_top_commas(call["given"]) + 1) if call["given"] else "call"
    if re.compile(r"\s*<(?!<)").match(text, end):
        return "template"
    return "type" if _TYPE.match(text, end) else "value"


def _top_commas(given: str) -> int:
    """How many commas of a list of template arguments are its own."""
    inner = given
    while (shorter := re.sub(r"<[^<>]*>", "", inner)) != inner:
        inner = shorter
    return inner.count(",")


def _lines(names: Iterable[Name], uses: dict[str, set[str]]) -> Iterator[str]:
    for number, (*spaces, last) in enumerate(names):
        used = uses[last]
        own = f"struct {last} : {ANYTHING} {{ template <class... A> {last}(A &&...); }};"
        if "case" in used and not used & {"type", "template"}:
            text = f"enum {{ {last} = {number} }};"
        elif "type" not in used and _CONSTANT.fullmatch(last):
            text = f"extern {ANYTHING} {last};"
        elif "template" in used:
            text = f"template <class...> {own}"
        elif "type" in used:
            text = own
        elif "call" in used or any(map(str.isdecimal, used)):
            result = "at::Tensor" if spaces in _TENSORS else ANYTHING
            text = f"template <class... A> {result} {last}(A &&...); {result} {last}({BRACED});"
            for count in sorted(int(use) for use in used if use.isdecimal()):
                text += f" template <{'class, ' * count}class... A> {result} {last}(A &&...);"
        else:
            text = f"extern {ANYTHING} {last};"
        yield "".join(f"namespace {space} {{ " for space in spaces) + text + " }" * len(spaces)
