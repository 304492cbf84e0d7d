# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""What a text could make the preprocessor read: a pure function of its bytes, whatever macros there are.

What it finds is remembered between builds (scans.py), under the digest of this very file, among others: an edit here
makes every text be scanned anew.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["ASKED_INDIRECTLY", "Include", "Scan", "directives_of", "scan_text", "without_comments"]

ASKED_INDIRECTLY = "__has_include"
"""Stands among computed operands for a question that a macro asks in the text's place."""


class Include(NamedTuple):
    """One thing that a directive or `__has_include` asks for."""

    spelling: str
    quoted: bool
    every: bool = False
    """Whether all matches along the search path count (`#include_next`), not the first alone."""


@dataclass(frozen=True, kw_only=True)
class Scan:
    """What a text could make the preprocessor read, or vary with."""

    includes: tuple[Include, ...]
    computed: tuple[str, ...]
    """Operands that are not literals, such as the MACRO of `#include MACRO`."""
    objects: tuple[tuple[str, str], ...]
    """Macros that it defines, with their bodies."""
    functions: tuple[tuple[str, str, str], ...]
    """Function-like macros that it defines, with their parameters and bodies."""
    names_file: bool
    """Whether the text can embed its own path (`__FILE__`, `assert`)."""
    names_time: bool
    """Whether the text asks for the date or time of compilation."""


_SPLICE = re.compile(rb"\\[ \t]*\r?\n")
_LEXEME = re.compile(
    rb"""
    [/"'R\n.\d] (?:  # one of few characters first: what lies between them is passed over many times as fast
      (?<=/) (?P<comment> /[^\n]* | \*[^*]*(?:\*(?!/)[^*]*)*(?:\*/|\Z) )
    | (?<=") (?:\\.|[^"\\\n])*"
    | (?<=') (?:\\.|[^'\\\n])*'
    | (?<=R) (?:(?<!\wR)|(?<=(?<!\w)[uUL]R)|(?<=(?<!\w)u8R))
      "(?P<mark>[^()\\\s"]{0,16})\((?:.*?\)(?P=mark)"|.*\Z)
    | (?<=\n) [ \t]*(?:\#|%:)[ \t]*(?:include|include_next|import)[ \t]*<[^>\n]*>
    | (?<=\d) (?<!\w\d) (?:'?[\w.])*
    | (?<=\.) (?<!\w\.) \d(?:'?[\w.])*
    )
    """,
    re.DOTALL | re.VERBOSE,
)
"""What a comment can begin in front of but not inside of. A number is one for the quotes among its digits."""
_LINE = re.compile(rb"^[ \t\f\v]*(?:\#|%:)[^\n]*", re.MULTILINE)
_DIRECTIVE = re.compile(
    rb"^[ \t\f\v]*(?:\#|%:)[ \t\f\v]*(?P<name>include_next|include|import|embed)\b[ \t\f\v]*(?P<operand>[^\r\n]*)",
    re.MULTILINE,
)
_HAS_INCLUDE = re.compile(
    rb"\b__has_(?P<name>include_next|include|embed)\b[ \t\f\v]*\([ \t\f\v]*"
    rb"(?P<operand><[^>\r\n]*>|\"[^\"\r\n]*\"|[^)\r\n]*)"
)
_OBJECT_MACRO = re.compile(
    rb"^[ \t\f\v]*(?:\#|%:)[ \t\f\v]*define[ \t\f\v]+(?P<name>[A-Za-z_]\w*)(?:[ \t\f\v]+(?P<body>[^\r\n]*))?[\r]?$",
    re.MULTILINE,
)
_FUNCTION_MACRO = re.compile(
    rb"^[ \t\f\v]*(?:\#|%:)[ \t\f\v]*define[ \t\f\v]+(?P<name>[A-Za-z_]\w*)"
    rb"\((?P<parameters>[^)\r\n]*)\)(?P<body>[^\r\n]*)",
    re.MULTILINE,
)
_HAS_SOMETHING = b"__has_"
_HAS = re.compile(rb"\b__has_(?:include_next|include|embed)?\b")
_FILE_WORDS = (b"FILE__", b"assert", b"__builtin_FILE", b"source_location")
_FILE_NAMES = re.compile(rb"\b__(?:BASE_)?FILE__\b|\bassert\b|\b__builtin_FILE\b|\bsource_location\b")
_TIME_WORDS = (b"__DATE__", b"__TIME__", b"__TIMESTAMP__")
_TIME_NAMES = re.compile(rb"\b__(?:DATE|TIME|TIMESTAMP)__\b")


def without_comments(data: bytes) -> bytes:
    """A source's text with a space for each comment, and spliced lines joined."""
    text = b"\n" + _SPLICE.sub(b"", data)
    return _LEXEME.sub(lambda match: b" " if match["comment"] else match[0], text)[1:]


def blank_comments(data: bytes) -> bytes:
    """A source's text with white space for its comments; lines keep their numbers."""
    return _LEXEME.sub(lambda match: re.sub(rb"[^\n]", b" ", match[0]) if match["comment"] else match[0], b"\n" + data)[
        1:
    ]


def directives_of(code: bytes) -> bytes:
    """The directives of a source without comments, one on each line, without the code between them."""
    return b"\n".join(_LINE.findall(code))


def scan_text(data: bytes) -> Scan:
    """Find every include that some set of macros could make active. Comments and string literals are not code."""
    text = without_comments(data)
    lines = directives_of(text)
    asks = _HAS_SOMETHING in text
    includes: dict[Include, None] = {}
    computed: dict[str, None] = {}
    for match in [*_DIRECTIVE.finditer(lines), *(_HAS_INCLUDE.finditer(text) if asks else ())]:
        operand = match["operand"].strip()
        literal = re.match(rb'<([^>]+)>|"([^"]+)"', operand)
        if literal:
            name = os.fsdecode(literal[1] or literal[2])
            includes[Include(name, literal[1] is None, match["name"] == b"include_next")] = None
        elif operand:
            computed[os.fsdecode(operand)] = None
    if asks and _asks_indirectly(text):
        computed[ASKED_INDIRECTLY] = None
    return Scan(
        includes=tuple(includes),
        computed=tuple(computed),
        objects=tuple(
            (os.fsdecode(match["name"]), os.fsdecode((match["body"] or b"").strip()))
            for match in _OBJECT_MACRO.finditer(lines)
        ),
        functions=tuple(
            (os.fsdecode(match["name"]), os.fsdecode(match["parameters"].strip()), os.fsdecode(match["body"].strip()))
            for match in _FUNCTION_MACRO.finditer(lines)
        ),
        names_file=any(word in text for word in _FILE_WORDS) and bool(_FILE_NAMES.search(text)),
        names_time=any(word in text for word in _TIME_WORDS) and bool(_TIME_NAMES.search(text)),
    )


def _asks_indirectly(text: bytes) -> bool:
    """Whether `__has_include` stands elsewhere than in front of its operand: in a macro's body, or pasted together."""
    for match in _HAS.finditer(text):
        line = text[text.rfind(b"\n", 0, match.start()) + 1 : match.start()]
        if re.match(rb"[ \t\f\v]*(?:#|%:)[ \t\f\v]*define\b", line):
            return True
        tested = re.search(rb"\bdefined[ \t]*\(?[ \t]*$|\bifn?def[ \t]+$|\belifn?def[ \t]+$", line)
        if not tested and not re.match(rb"[ \t\f\v]*\(", text[match.end() : match.end() + 80]):
            return True
    return False
