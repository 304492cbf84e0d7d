# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What the compiler's own preprocessor makes of uses of macros, and which arms of conditionals it takes.

`expansion` puts in the text of a macro where that is certain from the files' texts. Where it is not, the front end can
be asked: it is shown the directives alone, and in the place of each use an assertion that fails with what the use
stands for, as a string. Every definition, conditional and include is then in force there as in the compile itself. In
the same way it tells the arms that it takes, by an assertion in each of them.

It shows tokens side by side that are two, `--x` for `-` and `-x`. So it is asked with white space around every word
first, and then without, for the strings that `#` makes of what is written. The third time it is asked about what it
told: a text that stands for itself in that place means the same to the compile. A use that means something else each
time (in a file that is included twice) stays, and so does whatever hangs on what nvcc and NVRTC do not have alike.
"""

from __future__ import annotations

import dataclasses
import itertools
import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .choices import as_nvcc_chooses
from .declarations import Parser, parsed
from .dependence import Arm, Dependence, arms_of
from .fragments import Includes
from .inclusions import Inclusion, defined_in, inclusions, is_left, runs, without_definitions
from .names import HOST, HOST_HEADERS, SPACES
from .spelling import merged, same_tokens, spaced, spaced_definition
from .surroundings import Surroundings
from .tokens import DIRECTIVE, INCLUDE, STRING, WORD, directive_name, tokenize

__all__ = ["NOT_TAKEN", "Inquiry"]

NOT_TAKEN = "#error hatch_cuda_kernels_is_read_after_all"
"""Stands where nothing is read: the compile says so if it comes to it after all."""

_MOST = 1500
"""Questions at most: each is an error, of which the compiler tells 2,000."""
_NAME = "hatch_cuda_kernels"
_KEPT = frozenset(
    """
    __launch_bounds__ __cluster_dims__ __maxnreg__ __block_size__ __grid_constant__ __forceinline__ __noinline__
    __inline__ __inline __restrict__ __restrict __align__ __nv_pure__ __FILE__ __BASE_FILE__ __DATE__ __TIME__
    __TIMESTAMP__ assert
    """.split()
) | {*SPACES, HOST}
"""What stays as the author wrote it: keywords that are macros to the compilers, and what tells of the place or time."""
_PLACED = frozenset({"__LINE__", "assert"})
"""What depends on the line of a use; one on several lines has no single one."""
_CODE = frozenset("{ } ; <<<".split())
_UNPRINTED = re.compile(r"[@$`\x7f-\xff]")
"""What the compiler shows as `?` in a message."""
_MADE = re.compile(r"__attribute__\s*\(\s*\(\s*(?:global|device|host|constant|shared|managed|nv_\w*)\b")
"""What became of a keyword that `##` made."""
_ESCAPED = re.compile(rf"{_NAME}_x([0-9a-f]{{2}})_")
_ASSERTED = re.compile(rf'{_NAME}_kept_assert\("((?:\\.|[^"\\])*)"\)')
_TOLD = re.compile(rf'static assertion failed with "{_NAME} (?P<number>\d+):(?P<text>.*):{_NAME}"$', re.MULTILINE)
_LAST = f"{_NAME} end"
_PRELUDE = f"""
#define {_NAME}_spelled(...) #__VA_ARGS__
#define {_NAME}_expanded(...) {_NAME}_spelled(__VA_ARGS__)
#define {_NAME}_kept_assert(...) {_NAME}_kept_assert(#__VA_ARGS__)
"""
"""An assertion shows what it is given as it is written, macros and all, and so it has to come back."""


@dataclass
class _Use:
    """A use of a macro that the compiler is asked about, or an include of a list of such uses."""

    start: int
    end: int
    text: str
    """What it is asked about: the use as it is written, then what it stands for."""
    label: str = ""
    """Of an include, the file."""


@dataclass
class _File:
    """A file and its questions, by their numbers."""

    text: str
    parser: Parser
    uses: dict[int, _Use] = field(default_factory=dict)
    arms: dict[int, Arm] = field(default_factory=dict)
    sites: dict[int, Inclusion] = field(default_factory=dict)
    """Includes of files that are told run by run; the number after each is that of its end."""
    runs: dict[int, _Use] = field(default_factory=dict)
    """What such a file has between its directives; the number after each says that it is read at all."""


class Inquiry:
    """The questions about some files, and what becomes of the files by the answers."""

    def __init__(self, files: Mapping[str, bytes], surroundings: Surroundings, own: Includes, source: str) -> None:
        self._around, self._own, self._source = surroundings, own, source
        self._kept = re.compile(rf"\b(?:{'|'.join(sorted(_KEPT - surroundings.macros.keys()))})\b")
        texts = {label: as_nvcc_chooses(data.decode("latin-1"), surroundings.macros) for label, data in files.items()}
        self._files = {label: _File(text, parsed(text, surroundings)) for label, text in texts.items()}
        self._dependence = Dependence([file.parser.tokens for file in self._files.values()])
        self._asks = any("?" in text for text in texts.values())
        self._before: list[dict[int, str]] = []
        self._unsettled: set[str] = set()
        """Files of which an include cannot be told."""
        count = self._put_questions(cutting=False)
        self.possible = 0 < (count if count <= _MOST else self._put_questions(cutting=True)) <= _MOST

    def _put_questions(self, *, cutting: bool) -> int:
        """Number all questions, about arms that cut a declaration in two alone or about all; how many these are."""
        numbers = itertools.count()
        parsers = {label: file.parser for label, file in self._files.items()}
        sites = inclusions(parsers, self._own, self._around, self._dependence)
        lists = {site.label for those in sites.values() for site in those}
        for label, file in self._files.items():
            file.sites = {2 * next(numbers): site for site in sites.get(label, ())}
            if label in lists:
                each = (_Use(start, end, file.text[start:end]) for start, end in runs(file.parser.tokens))
                file.runs = {2 * next(numbers): run for run in each}
                continue
            file.uses = {2 * next(numbers): use for use in self._uses(file.parser)}
            arms = arms_of(file.parser.tokens, self._dependence, cutting=cutting)
            file.arms = {2 * next(numbers): arm for arm in arms if _has_lines(file.text, arm)}
        return next(numbers)

    @property
    def prelude(self) -> bytes:
        """What is read before the questions."""
        return _PRELUDE.encode()

    def questions(self) -> dict[str, bytes]:
        """The files as the front end is shown them."""
        return {label: self._form(label, file).encode("latin-1") for label, file in self._files.items()}

    def heed(self, log: str) -> bool:
        """Take the answers to the questions, and put the next ones; False where nothing comes of them.

        The three logs are to be given in turn, until `is_answered`.
        """
        told = self._told(log)
        if told is None:
            return False
        self._before.append(told)
        if len(self._before) == 2:
            self._take(*self._before)
        elif len(self._before) == 3:
            self._confirm(told)
            return any(file.uses or file.arms for file in self._files.values())
        return True

    @property
    def is_answered(self) -> bool:
        """Whether nothing is left to ask."""
        return len(self._before) == 3

    def _take(self, spaced: Mapping[int, str], written: Mapping[int, str]) -> None:
        """Make what was told the next questions; of arms, those that were not read."""
        for file in self._files.values():
            sites = {n: _Use(site.start, site.end, "", site.label) for n, site in file.sites.items() if n in spaced}
            file.arms = {n: arm for n, arm in file.arms.items() if n not in spaced and n not in written}
            uses, file.uses = {**file.uses, **sites}, {}
            for number, use in uses.items():
                text = merged(spaced.get(number), written.get(number))
                if text is not None and self._is_told_whole(text := self._decoded(text)):
                    file.uses[number] = dataclasses.replace(use, text=text)
            self._unsettled |= {use.label for number, use in sites.items() if number not in file.uses}
            file.sites, file.runs = {}, {}

    def _confirm(self, told: Mapping[int, str]) -> None:
        """Keep what the compiler tells of the answers themselves as it told them before."""
        for file in self._files.values():
            uses, file.uses = file.uses, {}
            for number, use in uses.items():
                if number in told and same_tokens(self._decoded(told[number]), use.text):
                    file.uses[number] = use
                else:
                    self._unsettled.add(use.label)
            file.arms = {number: arm for number, arm in file.arms.items() if number not in told}

    def answered(self) -> dict[str, bytes]:
        """The files with what uses stand for in their place, and without the arms that are not taken."""
        lists = {use.label for file in self._files.values() for use in file.uses.values()} - self._unsettled - {""}
        while True:
            texts = {label: _edited(file, lists) for label, file in self._files.items()}
            defined = {label: defined_in(self._files[label].parser.tokens) for label in lists}
            others = [text for label, text in texts.items() if label not in lists]
            kept = {label for label in lists if not any(is_left(defined[label], text) for text in others)}
            if kept == lists:
                break
            lists = kept
        names = set().union(*defined.values())
        texts = {label: without_definitions(names, text) if names else text for label, text in texts.items()}
        return {label: text.encode("latin-1") for label, text in {**texts, **dict.fromkeys(lists, NOT_TAKEN)}.items()}

    def _told(self, log: str) -> dict[int, str] | None:
        """What a log tells of each question that it has one answer to; None where not all of the source was read.

        Of an include whose file is told run by run it is all that was read of the file, if that is known.
        """
        if _LAST not in log:
            return None
        sites = {number: site for file in self._files.values() for number, site in file.sites.items()}
        pieces = {number for file in self._files.values() for number in file.runs}
        found: dict[int, set[str | None]] = {}
        shown: list[str | None] | None = None
        for match in _TOLD.finditer(log):
            number, text = int(match["number"]), match["text"]
            if number in sites:
                shown = []
            elif number - 1 in sites:
                found.setdefault(number - 1, set()).add(_joined(shown or []))
                shown = None
            elif number - 1 in pieces and shown is None:
                return None  # an include that nothing names
            elif number - 1 in pieces:
                shown = [*(shown or []), None]
            elif number in pieces and shown:
                shown[-1] = text
            elif number not in pieces:
                found.setdefault(number, set()).add(text)
        told = {number: next(iter(texts)) if len(texts) == 1 else None for number, texts in found.items()}
        self._unsettled |= {site.label for number, site in sites.items() if told.get(number, "") is None}
        return {number: text for number, text in told.items() if text is not None}

    def _uses(self, parser: Parser) -> Iterator[_Use]:
        """The uses that could bring host code, or be taken for code of the device."""
        firsts = {made.first for made in parser.declarations}
        bodies: dict[int, bool] = {}
        for made in parser.declarations:
            if made.kind == "function" and made.body >= 0:
                head = parser.tokens[made.first : made.body]
                bodies[made.body] = any(token.text in SPACES for token in head)
        index, body_end = 0, -1
        while index < len(parser.tokens):
            if index in bodies:
                body_end = max(body_end, parser.match[index])
                if bodies[index]:
                    index = parser.match[index]
            last = self._use(parser, index, first=index in firsts, inside=index < body_end)
            if last is not None:
                start, end = parser.tokens[index].start, parser.tokens[last].end
                yield _Use(start, end, parser.text[start:end])
                index = last
            index += 1

    def _use(self, parser: Parser, index: int, *, first: bool, inside: bool) -> int | None:
        """The last token of the use that begins at one, if it is worth a question and has an answer."""
        tokens, macros = parser.tokens, self._around.macros
        if tokens[index].kind != WORD or tokens[index].text not in macros:
            return None
        last = index
        while parser.is_at(last + 1, "(") and last + 1 in parser.match:
            last = parser.match[last + 1]
        span = tokens[index : last + 1]
        definitions = self._around.definitions.get(tokens[index].text, ())
        if last == index and definitions and all(macro.parameters is not None for macro in definitions):
            return None
        words = self._around.expanded(token.text for token in span if token.kind == WORD)
        brings = not words.isdisjoint(SPACES) and (last > index or not words.isdisjoint(_CODE))
        if not (brings or (not inside and (first or not words.isdisjoint(_CODE)))):
            return None
        spread = "\n" in parser.text[span[0].start : span[-1].end]
        if any(token.kind == DIRECTIVE for token in span):
            return None
        if (spread and not words.isdisjoint(_PLACED)) or self._dependence.is_dependent(words):
            return None
        return last

    def _form(self, label: str, file: _File) -> str:
        """The directives of a file, with an assertion in the place of each use and in each arm."""
        shown: list[tuple[int, int, str]] = []
        for number, use in file.uses.items():
            shown.append((use.start, use.end, self._question(number, use.text)))
        for number, run in file.runs.items():
            shown.append((run.start, run.end, _mark(number + 1) + self._question(number, run.text)))
        for number, arm in file.arms.items():
            shown.append((arm.at, arm.at, _mark(number)))
        taken = {start for start, _, _ in shown}
        for token in file.parser.tokens:
            if token.kind == DIRECTIVE and token.start not in taken and self._counts(label, token.text):
                shown.append((token.start, token.end, self._directive(token.text)))
        sites = {site.start: number for number, site in file.sites.items()}
        pieces: list[str] = []
        position = 0
        for start, end, text in sorted(shown, key=lambda each: each[:2]):
            ends = "\n" * (file.text.count("\n", start, end) - text.count("\n"))
            if start in sites:
                line = file.text.count("\n", 0, end) + 2
                text = f"{_mark(sites[start])}\n{text}\n{_mark(sites[start] + 1)}\n#line {line}"
            pieces += [_blank(file.text[position:start]), text, ends]
            position = end
        pieces.append(_blank(file.text[position:]))
        if label == self._source:
            pieces.append(f'\nstatic_assert(false, "{_LAST}");\n')
        return "".join(pieces)

    def _question(self, number: int, text: str) -> str:
        """An assertion that fails with what a text stands for."""
        asked = self._encoded(text if self._before else spaced(text))
        return f'static_assert(false, "{_NAME} {number}:" {_NAME}_expanded({asked}) ":{_NAME}");'

    def _directive(self, text: str) -> str:
        """A directive as it is shown."""
        if directive_name(text) != "define":
            return text
        return self._encoded(text if self._before else spaced_definition(text))

    def _counts(self, label: str, directive: str) -> bool:
        """Whether a directive decides what is read, or what a macro stands for."""
        name = directive_name(directive)
        if name == "pragma":
            return bool(re.match(r"(?:#|%:)\s*pragma\s+once\b", directive))
        match = INCLUDE.match(directive)
        header = posixpath.normpath(match[1] or match[2]) if match else ""
        return header in self._own.get(label, ()) or not HOST_HEADERS.fullmatch(header)

    def _encoded(self, text: str) -> str:
        """A text in which nothing is expanded or shown otherwise that has to come back as it is."""
        kept = self._kept.sub(lambda match: f"{_NAME}_kept_{match[0]}", text)
        return _UNPRINTED.sub(lambda match: f"{_NAME}_x{ord(match[0]):02x}_", kept)

    def _decoded(self, text: str) -> str:
        """A text as it would be without that."""
        shown = _ASSERTED.sub(lambda match: "assert({})".format(re.sub(r"\\(.)", r"\1", match[1])), text)
        shown = shown.replace(f"{_NAME}_kept_", "")
        return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), shown)

    def _is_told_whole(self, text: str) -> bool:
        """Whether a text is what the compiler means: in a raw string it shows the end of a line as `\\n`."""
        if _NAME in text or "__VA_OPT__" in text or ("?" in text and not self._asks) or _MADE.search(text):
            return False
        return not any(token.kind == STRING and "R" in token.text[:3] for token in tokenize(text))


def _has_lines(text: str, arm: Arm) -> bool:
    """Whether there is a line that has no directive in it, not even the end of one."""
    return text.count("\n", arm.start, arm.at) >= 1 and text.count("\n", arm.at, arm.end) >= 1


def _mark(number: int) -> str:
    """An assertion that fails where it is read."""
    return f'static_assert(false, "{_NAME} {number}::{_NAME}");'


def _joined(shown: Sequence[str | None]) -> str | None:
    """The text of all that was read of a file; None where one piece of it was not told."""
    return None if None in shown else " ".join(text or "" for text in shown)


def _edited(file: _File, lists: Collection[str]) -> str:
    text = file.text
    edits = [(arm.start, arm.end, _error_in(text[arm.start : arm.end])) for arm in file.arms.values()]
    for use in file.uses.values():
        if same_tokens(use.text, text[use.start : use.end]) or (use.label and use.label not in lists):
            continue
        edits.append((use.start, use.end, f" {use.text} " + "\n" * text.count("\n", use.start, use.end)))
    pieces: list[str] = []
    position = 0
    for start, end, shown in sorted(edits, key=lambda edit: (edit[0], -edit[1])):
        if start >= position:
            pieces += [text[position:start], shown]
            position = end
    return "".join([*pieces, text[position:]])


def _error_in(arm: str) -> str:
    """The lines of an arm that is not taken: an error on the first that is its own."""
    lines = _blank(arm).split("\n")
    lines[1] = NOT_TAKEN
    return "\n".join(lines)


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)
