# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Which conditionals, and which macros, hang on what nvcc and NVRTC do not have alike (see choices.py)."""

from __future__ import annotations

import bisect
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .choices import differing, knows_nvrtc
from .tokens import DEFINES_OR_UNDEFINES, DIRECTIVE, SIGN, Token, directive_name, tokenize

__all__ = ["Arm", "Dependence", "arms_of", "derived_macros", "is_alike"]


class Arm(NamedTuple):
    """An arm of a conditional that has code of its own."""

    start: int
    end: int
    """Offsets of its text, between the directives."""
    at: int
    """Offset of the first code that is in no other conditional."""


_PUT_ASIDE = re.compile(r'p(?:ush|op)_macro\s*\(\s*"(\w+)')
"""What NVRTC does not know: there the definition stays as it is."""


_ENDS = ("", ";", "}", ":", ",")


@dataclass
class _Chain:
    """A conditional, as far as it is read."""

    knows: bool
    asked: list[str] = field(default_factory=list)
    defined: set[str] = field(default_factory=set)
    """What its arms define or undefine, those of conditionals inside it among them."""
    arms: list[Arm] = field(default_factory=list)
    start: int = 0
    at: int = -1


class Dependence:
    """The macros that may be defined in another way for nvcc, because a conditional asks for such a difference."""

    def __init__(self, files: Collection[Sequence[Token]], *, as_written: bool = False) -> None:
        directives = (token.text for tokens in files for token in tokens if token.kind == DIRECTIVE)
        self.names = {name for text in directives for name in _PUT_ASIDE.findall(text)}
        """These macros."""
        chains = [chain for tokens in files for chain in _chains(tokens) if not chain.knows]
        pending = [chain for chain in chains if any(differing(text, as_written=as_written) for text in chain.asked)]
        while pending:
            self.names |= {name for chain in pending for name in chain.defined}
            chains = [chain for chain in chains if chain not in pending]
            pending = [chain for chain in chains if self.is_dependent(_words(chain.asked))]

    def is_dependent(self, words: Collection[str]) -> bool:
        """Whether one of the words is such a macro."""
        return not self.names.isdisjoint(words)

    def of(self, asked: Collection[str]) -> bool:
        """Whether a conditional with these directives is decided by such a difference."""
        return any(map(differing, asked)) or self.is_dependent(_words(asked))


def derived_macros(texts: Iterable[bytes], *, as_written: bool = False) -> Collection[str]:
    """The macros of files that hang on such differences."""
    lines = [b"\n".join(_LINE.findall(text)).decode("latin-1") for text in texts]
    if not any(differing(text, as_written=as_written) for text in lines):
        return ()
    return Dependence([tokenize(text) for text in lines], as_written=as_written).names


_LINE = re.compile(rb"^[ \t]*(?:#|%:)(?:\\\r?\n|[^\n])*", re.MULTILINE)


def arms_of(tokens: Sequence[Token], dependence: Dependence, *, cutting: bool) -> Iterator[Arm]:
    """The arms with code of conditionals that both compilers decide alike, or that ask for NVRTC; where they are to be
    `cutting`, of those of which one cuts a declaration in two."""
    starts = [token.start for token in tokens]
    for chain in _chains(tokens):
        if (chain.knows or not dependence.of(chain.asked)) and (
            not cutting
            or any(
                _cuts(tokens[bisect.bisect(starts, arm.start) : bisect.bisect_left(starts, arm.end)])
                for arm in chain.arms
            )
        ):
            yield from chain.arms


def _cuts(tokens: Sequence[Token]) -> bool:
    """Whether the tokens of an arm open or close what they do not close or open, or end in the midst of something."""
    depth = 0
    last = ""
    for token in tokens:
        depth += token.kind == SIGN and (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
        if depth < 0:
            return True
        last = last if token.kind == DIRECTIVE else token.text
    return depth > 0 or last not in _ENDS


def is_alike(tokens: Sequence[Token], dependence: Dependence) -> bool:
    """Whether all conditionals of a file are such ones."""
    return all(chain.knows or not dependence.of(chain.asked) for chain in _chains(tokens))


def _words(directives: Iterable[str]) -> set[str]:
    return {word for text in directives for word in re.findall(r"\w+", text)}


def _chains(tokens: Sequence[Token]) -> Iterator[_Chain]:
    """All conditionals of a file."""
    stack: list[_Chain] = []
    for token in tokens:
        name = directive_name(token.text) if token.kind == DIRECTIVE else None
        if name in ("if", "ifdef", "ifndef"):
            stack.append(_Chain(knows=bool(stack) and stack[-1].knows))
        elif name in ("elif", "elifdef", "elifndef", "else", "endif") and stack:
            chain = stack[-1]
            if chain.at >= 0:
                chain.arms.append(Arm(chain.start, token.start, chain.at))
        elif name is None and stack and stack[-1].at < 0:
            stack[-1].at = token.start
        elif name and stack and (match := DEFINES_OR_UNDEFINES.match(token.text)):
            stack[-1].defined.add(match[1])
        if name in ("if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else") and stack:
            stack[-1].asked.append(token.text)
            stack[-1].knows |= knows_nvrtc(token.text)
            stack[-1].start, stack[-1].at = token.end, -1
        elif name == "endif" and stack:
            closed = stack.pop()
            if stack:
                stack[-1].defined |= closed.defined
            yield closed
