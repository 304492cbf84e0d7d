# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What a project's files tell about its kernels, before there is a hook table: all of it read, nothing run.

Everything here is a guess that an author can check, made from the text of sources and headers.
"""

from __future__ import annotations

import itertools
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

from .sources import Include, ProjectTree, join_label, walk_files, without_comments
from .standins import standins

__all__ = ["Source", "Template", "survey_sources", "tree_files"]

_SKIPPED = frozenset({"build", "dist", "site-packages", "venv"})
_NOT_SHIPPED = frozenset(
    "bench benchmark benchmarks demo demos doc docs example examples extern external script scripts submodules test "
    "testing tests third_party third-party thirdparty tools vendor".split()
)
_HEADERS = (".h", ".hh", ".hpp", ".cuh", ".inl", ".inc", ".ipp")
_TEXTS = (".py", ".cu", ".cpp", ".cc", ".cxx", ".c", *_HEADERS)
_LARGEST = 1 << 20
"""Files beyond that are data: only sources and headers that a kernel includes are read whatever their size."""


@dataclass(frozen=True, kw_only=True)
class Template:
    """A kernel template, and the instances of it that the project names."""

    name: str
    """Qualified by its namespaces."""
    instances: tuple[str, ...]
    guess: str | None
    """An instance for its parameters where the project names none; None where there is nothing to guess from."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """One `.cu` file that could be compiled."""

    label: str
    has_kernels: bool
    own: bool
    """Whether it looks like the project's own code, not like a test, an example or somebody else's."""
    plain_kernels: bool
    """Whether it has kernels that are no templates."""
    host_code: bool
    templates: tuple[Template, ...]


def tree_files(root: Path) -> list[str]:
    """Labels of the project's files: what the root's `.gitignore` names, virtual environments and builds left out."""
    try:
        ignored = GitIgnoreSpec.from_lines((root / ".gitignore").read_text("utf-8", "replace").splitlines())
    except (OSError, ValueError):
        ignored = GitIgnoreSpec([])
    found = [label for label in walk_files(root) if _encodable(label) and not ignored.match_file(label)]
    environments = {posixpath.dirname(label) for label in found if posixpath.basename(label) == "pyvenv.cfg"}
    return [
        label
        for label in found
        if not _SKIPPED & set(label.split("/")[:-1])
        and not any(label.startswith(f"{folder}/") for folder in environments if folder)
    ]


def _encodable(label: str) -> bool:
    return label.encode("utf-8", "replace").decode() == label


def survey_sources(root: Path, files: Sequence[str]) -> tuple[list[Source], list[str]]:
    """The `.cu` files among `files`, and the include dirs that their includes need, in the order of a search."""
    tree = ProjectTree(root)
    labels = [label for label in files if label.endswith(".cu")]
    kept, closures = _include_dirs(tree, labels, files)
    mentions = _Mentions(root, files)
    return [_survey_source(tree, label, closures[label], mentions) for label in labels], kept


# -- headers -----------------------------------------------------------------------------------------------------


def _include_dirs(
    tree: ProjectTree, labels: Sequence[str], files: Sequence[str]
) -> tuple[list[str], dict[str, list[str]]]:
    """Folders that make the includes of these sources find the project's headers; and what each source reads then."""
    headers: dict[str, list[str]] = {}
    for label in files:
        if label.endswith(_HEADERS) or "." not in posixpath.basename(label):
            headers.setdefault(posixpath.basename(label), []).append(label)
    folders: dict[str, None] = {}
    closures = {}
    for source in labels:
        reads, pending = {source: None}, [source]
        while pending:
            file = tree.open(label := pending.pop())
            for include in file.scan.includes if file else ():
                found = _resolve(tree, label, include, folders) or _search(label, include, headers, folders)
                if found and found not in reads:
                    reads[found] = None
                    pending.append(found)
        closures[source] = list(reads)
    return list(folders), closures


def _resolve(tree: ProjectTree, label: str, include: Include, folders: Iterable[str]) -> str | None:
    near = [posixpath.dirname(label)] if include.quoted else []
    for folder in [*near, *folders]:
        candidate = join_label(folder, include.spelling)
        if candidate and not candidate.startswith("../") and tree.open(candidate):
            return candidate
    return None


def _search(label: str, include: Include, headers: Mapping[str, list[str]], folders: dict[str, None]) -> str | None:
    """The header of the project that an include can mean; its folder joins `folders`."""
    spelling = include.spelling
    if ".." in spelling.split("/") or (not include.quoted and (spelling in standins() or "." not in spelling)):
        return None
    found = [
        candidate
        for candidate in headers.get(posixpath.basename(spelling), ())
        if candidate == spelling or candidate.endswith(f"/{spelling}")
    ]
    if not found:
        return None
    prefixes = {candidate: candidate[: -len(spelling)].rstrip("/") or "." for candidate in found}

    def likeness(candidate: str) -> tuple[bool, bool, int, str]:
        prefix = prefixes[candidate]
        named = posixpath.basename(prefix) in ("include", "inc")
        return (label.split("/")[0] != candidate.split("/")[0], not named, prefix.count("/"), candidate)

    best = min(found, key=likeness)
    folders[prefixes[best]] = None
    return best


# -- kernels -----------------------------------------------------------------------------------------------------

_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
_DIRECTIVE = re.compile(r"^[ \t]*#[^\n]*", re.MULTILINE)
_GLOBAL = re.compile(r"\b__global__\b")
_BRACES = re.compile(r"\bnamespace\s+(?P<name>[\w:]*)\s*\{|[{}]")
_NAME = re.compile(r"(\w+)\s*(?=[(<])")
_ATTRIBUTES = frozenset("__launch_bounds__ __cluster_dims__ __block_size__ __maxnreg__ __attribute__ alignas".split())
_HOST = re.compile(r"<<<|\bint\s+main\s*\(|#\s*include\s*<(?:iostream|vector|string|torch/|pybind11/)")
_ARGUMENT = re.compile(
    r"(?:const )?(?:(?:unsigned|signed|long|short|int|char|float|double|bool|half2?|__half2?|__nv_bfloat162?|size_t"
    r"|u?int\d+_t|(?:float|double|int|uint|short|char)[1-4])\s*)+\*?|true|false|-?\d+[uU]?"
)


def _code(data: bytes) -> str:
    """A source's text without comments, strings and directives."""
    return _DIRECTIVE.sub("", _STRING.sub('""', without_comments(data).decode("utf-8", "replace")))


def _survey_source(tree: ProjectTree, label: str, reads: Sequence[str], mentions: _Mentions) -> Source:
    texts = {
        name: without_comments(file.data).decode("utf-8", "replace") for name in reads if (file := tree.open(name))
    }
    plain, templates = False, []
    for name in reads:
        if file := tree.open(name):
            for kernel, parameters in _kernels(_code(file.data)):
                if parameters is None:
                    plain = True
                elif name == label or not plain:
                    instances = mentions.of(kernel, parameters)
                    templates.append(Template(name=kernel, instances=instances, guess=_guess(kernel, parameters)))
    return Source(
        label=label,
        has_kernels=any(_GLOBAL.search(text) for text in texts.values()),
        own=not _NOT_SHIPPED & set(label.split("/")[:-1]),
        plain_kernels=plain,
        host_code=bool(_HOST.search(texts.get(label, ""))),
        templates=tuple({template.name: template for template in templates}.values()),
    )


def _kernels(code: str) -> Iterator[tuple[str, list[str] | None]]:
    """Qualified name of each kernel that is defined in a text, and the parameters of its template if it is one."""
    for match in _GLOBAL.finditer(code):
        before = code[max(code.rfind(sign, 0, match.start()) for sign in ";{}") + 1 : match.start()]
        heads = list(re.finditer(r"\btemplate\b\s*(<?)", before))
        name = next((found for found in _NAME.finditer(code, match.end()) if found[1] not in _ATTRIBUTES), None)
        if name is None or ";" in code[match.end() : name.start()]:
            continue
        parameters = _split(before[heads[0].end() :])[0] if heads and heads[0][1] else None
        if heads and not parameters:
            continue  # an explicit instantiation or a specialisation
        scope = _scope(code[: match.start()])
        yield "::".join([*scope, name[1]]), parameters


def _scope(before: str) -> list[str]:
    """Names of the namespaces that are open at the end of a text."""
    opened: list[str] = []
    for match in _BRACES.finditer(before):
        if match[0] != "}":
            opened.append(match["name"] or "")
        elif opened:
            opened.pop()
    return [name for name in opened if name]


def _split(text: str) -> tuple[list[str], int]:
    """Parts between commas up to the bracket that closes `text`, and where that is; brackets inside are skipped."""
    parts, depth, start = [], 0, 0
    for index, sign in enumerate(text):
        if sign in "<([{":
            depth += 1
        elif sign in ">)]}" and depth:
            depth -= 1
        elif sign == ">" or (sign == "," and not depth):
            parts.append(" ".join(text[start:index].split()))
            start = index + 1
            if sign == ">":
                return [part for part in parts if part], index
    return [], len(text)


def _guess(kernel: str, parameters: Sequence[str]) -> str | None:
    """An instance with `float` for types and 32 for numbers; None where a parameter is of another kind."""
    arguments = []
    for parameter in itertools.takewhile(lambda found: "=" not in found, parameters):
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
    return f"{kernel}<{', '.join(arguments)}>" if arguments else None


class _Mentions:
    """Where the project's texts name instances of templates: launches, calls, lists of name expressions."""

    def __init__(self, root: Path, files: Sequence[str]) -> None:
        tree = ProjectTree(root)
        self._texts: list[str] = []
        for label in files:
            if label.endswith(_TEXTS) and 0 < (root / label).stat().st_size <= _LARGEST and (file := tree.open(label)):
                text = file.data if label.endswith(".py") else without_comments(file.data)
                self._texts.append(text.decode("utf-8", "replace"))

    def of(self, kernel: str, parameters: Sequence[str]) -> tuple[str, ...]:
        """Instances with arguments that mean the same everywhere: numbers and CUDA's own types."""
        least = sum("=" not in parameter and "..." not in parameter for parameter in parameters)
        most = 99 if any("..." in parameter for parameter in parameters) else len(parameters)
        found: dict[str, None] = {}
        for text in self._texts:
            for match in re.finditer(rf"\b{kernel.rpartition('::')[2]}\s*<(?!<)", text):
                arguments, _ = _split(text[match.end() : match.end() + 400])
                if least <= len(arguments) <= most and all(map(_ARGUMENT.fullmatch, arguments)):
                    found[f"{kernel}<{', '.join(arguments)}>"] = None
        return tuple(sorted(found))
