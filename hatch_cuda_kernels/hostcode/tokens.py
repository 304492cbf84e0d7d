# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""A text cut into words, signs, literals and preprocessor directives."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from .names import MACRO_NAME

__all__ = [
    "COMPUTED",
    "DEAD",
    "DEFINE",
    "DEFINES_OR_UNDEFINES",
    "DIRECTIVE",
    "INCLUDE",
    "KEPT_PRAGMA",
    "NUMBER",
    "SIGN",
    "STRING",
    "UNDEF",
    "WORD",
    "Token",
    "code_of",
    "directive_name",
    "is_thrown",
    "names_member",
    "tokenize",
    "without_thrown",
]

_LEXEME = re.compile(
    r"""
    (?P<space>(?:[ \t\r\n\f\v]|\\[ \t]*\r?\n)+)
    |(?P<comment>//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z))
    |(?P<string>(?:u8|[uUL])?R"(?P<mark>[^()\\\s"]{0,16})\(.*?(?:\)(?P=mark)"|\Z)
        |(?:u8|[uUL])?"(?:\\\r\n|\\.|[^"\\\n])*"?|(?:u8|[uUL])?'(?:\\\r\n|\\.|[^'\\\n])*'?)
    |(?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
    |(?P<word>[A-Za-z_$\x80-\xff][\w$\x80-\xff]*)
    |(?P<sign>\#|%:|<%|%>|<:(?!:[^:>])|:>|::|->|<<<|\.\.\.|.)
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_DIRECTIVE_TEXT = re.compile(
    r"""(?:[^\n"'/\\]+|\\[ \t]*\r?\n|/\*.*?(?:\*/|\Z)|//(?:\\\r?\n|[^\n])*"""
    r"""|"(?:\\\r\n|\\.|[^"\\\n])*"|'(?:\\\r\n|\\.|[^'\\\n])*'|[^\n])*""",
    re.DOTALL,
)
_DIRECTIVE_NAME = re.compile(r"(?:#|%:)(?:[ \t\f\v]|\\\r?\n|/\*.*?\*/)*(\w*)", re.DOTALL)
DEFINE = re.compile(r"(?:#|%:)\s*define[\s\\]+([A-Za-z_]\w*)(\([^()]*\))?(.*)", re.DOTALL)
UNDEF = re.compile(r"(?:#|%:)\s*undef[\s\\]+([A-Za-z_]\w*)")
DEFINES_OR_UNDEFINES = re.compile(r"(?:#|%:)\s*(?:define|undef)[\s\\]+([A-Za-z_]\w*)")
INCLUDE = re.compile(r'(?:#|%:)\s*(?:include|include_next|import)\s*(?:<([^>\n]+)>|"([^"\n]+)")')
COMPUTED = re.compile(r"(?:#|%:)\s*(?:include|include_next|import)\s+([A-Za-z_]\w*)\s*(?://.*|/\*.*)?", re.DOTALL)
"""An include whose operand is a macro without arguments."""
KEPT_PRAGMA = re.compile(r"(?:#|%:)\s*pragma\s+(?:once|push_macro|pop_macro|nv_diag\w*|diag_\w*|GCC|pack|hd_\w*)")
DEAD = re.compile(r"(?:#|%:)\s*if\s+(?:0|false)\s*(?://.*|/\*.*)?\Z", re.DOTALL)

WORD, NUMBER, STRING, SIGN, DIRECTIVE = range(5)
_DIGRAPHS = {"<%": "{", "%>": "}", "<:": "[", ":>": "]"}


class Token(NamedTuple):
    kind: int
    text: str
    start: int
    end: int


def tokenize(text: str) -> list[Token]:
    """Words, signs, literals and directives. White space and comments are left out, and so is what `#if 0` hides."""
    found: list[Token] = []
    position, fresh = 0, True
    dead = 0
    """How many conditionals are open since, and with, an `#if 0`; 0 outside one."""
    size = len(text)
    kinds = {"string": STRING, "number": NUMBER, "word": WORD, "sign": SIGN}
    while position < size:
        match = _LEXEME.match(text, position)
        assert match is not None
        kind = match.lastgroup
        if kind == "mark":
            kind = "string"
        end = match.end()
        if kind == "space":
            fresh = fresh or "\n" in match[0]
        elif kind == "sign" and fresh and match[0] in ("#", "%:"):
            whole = _DIRECTIVE_TEXT.match(text, position)
            assert whole is not None
            end = max(whole.end(), end)
            shown = text[position:end].rstrip("\r")
            name = directive_name(shown)
            if dead:
                dead += (name in ("if", "ifdef", "ifndef")) - (name == "endif")
                if dead == 1 and name in ("else", "elif", "elifdef", "elifndef"):
                    dead = 0
                if not dead:
                    found.append(Token(DIRECTIVE, shown, position, position + len(shown)))
            else:
                found.append(Token(DIRECTIVE, shown, position, position + len(shown)))
                dead = int(bool(DEAD.match(shown)))
        elif kind != "comment":
            fresh = False
            if not dead:
                found.append(Token(kinds[kind or "sign"], _DIGRAPHS.get(match[0], match[0]), position, end))
        position = end
    return found


def directive_name(shown: str) -> str:
    match = _DIRECTIVE_NAME.match(shown)
    return match[1] if match else ""


_OPENS_TYPE = frozenset("const volatile noexcept mutable override final constexpr consteval".split())
"""Words between the parameters of a function and the type after its arrow."""
_FOLLOWS_MEMBER = frozenset(". -> + - / % | ? ! ^".split())
"""Signs that cannot follow the name of a type after an arrow."""


def names_member(tokens: Sequence[Token], index: int, macros: Collection[str]) -> bool:
    """Whether a word is looked up in the class of an object, by a dot or an arrow, for certain.

    After the arrow of `auto f() -> T` stands a type, and a constraint after that of `{ x } -> C`. `macros` may stand
    for what comes before an arrow.
    """
    sign = tokens[index - 1].text if index else ""
    if sign == "." or sign != "->":
        return sign == "."
    before = tokens[index - 2] if index > 1 else None
    if before is not None and before.kind == WORD:
        return before.text not in _OPENS_TYPE and before.text not in macros and not MACRO_NAME.match(before.text)
    if before is None or before.text not in (")", "]"):
        return False
    following = [token.text for token in tokens[index + 1 : index + 3]]
    if following[:1] == ["("]:
        return following[1:] not in (["*"], ["&"])  # not `-> T (*)(int)`
    return bool(following) and following[0] in _FOLLOWS_MEMBER


_THROWN = re.compile(r"\bthrow\s+(?:::\s*)?(?:\w+\s*::\s*)*\w+(?=\s*[({])")


def is_thrown(tokens: Sequence[Token], index: int) -> bool:
    """Whether a word names the class of an object that is made to be thrown, `throw app::Error(...)`, or what returns
    one. Neither compiler takes that in device code."""
    if index + 1 >= len(tokens) or tokens[index + 1].text not in ("(", "{"):
        return False
    before = [token.text for token in tokens[max(index - 12, 0) : index]]
    while len(before) > 2 and before[-1] == "::" and before[-2] != "throw":
        del before[-2:]
    return before[-2:] == ["throw", "::"] or before[-1:] == ["throw"]


def without_thrown(text: str) -> str:
    """The text of a macro without such names."""
    return _THROWN.sub("throw ", text)


_NO_CODE = re.compile(r'//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"', re.DOTALL)


def code_of(text: str) -> str:
    """A text with its comments and strings blanked; lines stay."""
    return _NO_CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
