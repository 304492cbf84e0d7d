# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Kernels and kernel templates, found in the text of sources: no preprocessor, no types, one pass over each text."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..scanning import without_comments

__all__ = ["Kernel", "defines_kernel_macro", "find_instances", "find_kernels"]

_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE)
_KERNEL_MACRO = re.compile(rb"^[ \t]*#[ \t]*define\b[^\n]*\b__global__\b", re.MULTILINE)
_STEP = re.compile(r"\bnamespace\s+(?P<name>[\w:]*)\s*\{|(?P<open>\{)|(?P<close>\})|(?P<kernel>\b__global__\b)")
_NAME = re.compile(r"(\w+)\s*(?=[(<])")
_STOP = re.compile(r"[;{}]|\b__global__\b")
_MENTION = re.compile(r"\b(\w+)\s*<(?![<=])")
_ATTRIBUTES = frozenset("__launch_bounds__ __cluster_dims__ __block_size__ __maxnreg__ __attribute__ alignas".split())
_ARGUMENT = re.compile(
    r"(?:const )?(?:(?:unsigned|signed|long|short|int|char|float|double|bool|half2?|__half2?|__nv_bfloat162?|size_t"
    r"|u?int\d+_t|(?:float|double|int|uint|short|char)[1-4])\s*)+\*?|true|false|-?\d+[uU]?"
)
_LONGEST = 2000
"""Characters that a list of parameters or template arguments may have."""
_DEEPEST = 20
"""Brackets within brackets that such a list may have."""


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """A kernel that a text defines."""

    name: str
    """Qualified by its namespaces."""
    parameters: tuple[str, ...] | None = None
    """Those of its template; None where it is no template."""

    @property
    def own_name(self) -> str:
        """The name without its namespaces."""
        return self.name.rpartition("::")[2]

    def takes(self, arguments: Sequence[str]) -> bool:
        """Whether template arguments fit in number, and mean the same everywhere: numbers and CUDA's own types."""
        parameters = self.parameters or ()
        least = sum("=" not in parameter and "..." not in parameter for parameter in parameters)
        most = len(arguments) if any("..." in parameter for parameter in parameters) else len(parameters)
        return least <= len(arguments) <= most and all(map(_ARGUMENT.fullmatch, arguments))

    @property
    def guess(self) -> str | None:
        """An instance with `float` for types and 32 for numbers; None where a parameter is of another kind."""
        arguments = []
        for parameter in itertools.takewhile(lambda found: "=" not in found, self.parameters or ()):
            words = parameter.split()
            if "..." in parameter or words[0] == "template":
                return None
            if words[0] in ("typename", "class"):
                arguments.append("float")
            elif words[0] == "bool":
                arguments.append("true")
            elif words[0] in ("int", "unsigned", "size_t", "std::size_t", "uint32_t", "long", "short", "auto"):
                arguments.append("32")
            else:
                return None
        return f"{self.name}<{', '.join(arguments)}>" if arguments else None


def defines_kernel_macro(data: bytes) -> bool:
    """Whether a macro stands for a kernel, so that its text does not show where there is one."""
    return bool(_KERNEL_MACRO.search(without_comments(data)))


def find_kernels(data: bytes) -> Iterator[Kernel]:
    """The kernels that a text defines. Declarations, instantiations and specialisations are none."""
    text = without_comments(data).decode("utf-8", "replace")
    if "__global__" not in text:
        return
    code = _DIRECTIVE.sub("", _STRING.sub('""', text))
    opened: list[str] = []
    for step in _STEP.finditer(code):
        if step["kernel"]:
            if kernel := _kernel(code, step.start(), step.end(), [name for name in opened if name]):
                yield kernel
        elif step["close"]:
            del opened[-1:]
        else:
            opened.append(step["name"] or "")


def _kernel(code: str, start: int, end: int, scope: Sequence[str]) -> Kernel | None:
    """The kernel whose `__global__` stands there, if it is defined there."""
    stop = _STOP.search(code, end, end + _LONGEST)
    if stop is None or stop[0] != "{":
        return None
    name = next((found for found in _NAME.finditer(code, end, stop.start()) if found[1] not in _ATTRIBUTES), None)
    if name is None or code[name.end()] == "<":
        return None
    head = code[max(0, start - _LONGEST) : start]
    head = head[max(head.rfind(sign) for sign in ";{}") + 1 :]
    templates = list(re.finditer(r"\btemplate\b\s*<", head))
    parameters = _split(head[templates[0].end() :], ">")[0] if templates else None
    if parameters == []:
        return None
    qualified = "::".join([*scope, name[1]])
    return Kernel(name=qualified, parameters=None if parameters is None else tuple(parameters))


def _split(text: str, closing: str) -> tuple[list[str], int]:
    """Parts between commas up to the bracket that closes `text`, and where that is; brackets inside are skipped."""
    parts, depth, start = [], 0, 0
    for index, sign in enumerate(text):
        if depth > _DEEPEST:
            break
        if sign == closing and not depth:
            parts.append(" ".join(text[start:index].split()))
            return [part for part in parts if part], index
        if sign in "([{" or (sign == "<" and closing == ">"):
            depth += 1
        elif sign in ")]}" or (sign == ">" and closing == ">"):
            depth -= 1
        elif sign == "," and not depth:
            parts.append(" ".join(text[start:index].split()))
            start = index + 1
    return [], len(text)


def find_instances(text: str, kernels: Iterable[Kernel]) -> dict[str, set[str]]:
    """Name of each template that a text names with arguments -> the instances that mean the same everywhere.

    Instances whose arguments depend on where they stand leave an empty set.
    """
    by_name: dict[str, list[Kernel]] = {}
    for kernel in kernels:
        if kernel.parameters is not None:
            by_name.setdefault(kernel.own_name, []).append(kernel)
    found: dict[str, set[str]] = {}
    for match in _MENTION.finditer(text):
        for kernel in by_name.get(match[1], ()):
            arguments, _ = _split(text[match.end() : match.end() + _LONGEST], ">")
            instances = found.setdefault(kernel.name, set())
            if arguments and kernel.takes(arguments):
                instances.add(f"{kernel.name}<{', '.join(arguments)}>")
    return found
