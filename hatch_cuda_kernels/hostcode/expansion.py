# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""Macros that stand for declarations, expanded in place: what one brings is then decided about like any other code.

A macro of the files that makes a structure with a function of the host in it, or a kernel and what launches it, is no
unit that could stay or go. Its text takes the place of its use, on the same line, where that is certain to be what the
preprocessor makes of it: every definition in the files is the same, and no argument means another thing for having
been put in early. Any other use stays as it is, and the compiler judges it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from .brackets import Brackets
from .declarations import Declaration, Parser, parsed
from .definitions import Definitions
from .surroundings import Macro, Surroundings
from .tokens import DIRECTIVE, STRING, WORD, Token, tokenize

__all__ = ["expanded", "expansions"]

_DEEPEST = 8
"""Macros in macros at most."""
_LONGEST = 1 << 22
"""Characters that a file may grow to."""
_POSITION = re.compile(r"__LINE__|__COUNTER__|assert")
"""What depends on the place of a use; a use on several lines has no single one."""
_ATTRIBUTES = frozenset({"__attribute__", "__attribute", "__declspec"})
_MAY_BE_A_MACRO = re.compile(r"_+\w+|[A-Z][A-Z0-9_]+")


def expanded(text: str, surroundings: Surroundings) -> Parser:
    """The declarations of a file, those that its macros bring among them."""
    parser = parsed(text, surroundings)
    for _ in range(_DEEPEST):
        pieces: list[str] = []
        position = 0
        for start, end, shown in expansions(parser):
            if start >= position:
                pieces += [text[position:start], f" {shown} ", "\n" * text.count("\n", start, end)]
                position = end
        grown = "".join([*pieces, text[position:]])
        if not pieces or len(grown) > max(_LONGEST, len(text)):
            break
        text = grown
        parser = Parser(text, surroundings)
    return parser


def expansions(parser: Parser) -> Iterator[tuple[int, int, str]]:
    """Start and end of each use that is expanded, and what takes its place."""
    definitions = Definitions(parser.tokens, parser.surroundings)
    for made in parser.declarations:
        found = _expansion_of(parser, made, partial(definitions.at, made.first), _DEEPEST)
        if found is not None:
            yield parser.tokens[made.first].start, parser.tokens[found[1]].end, found[0]


_Meaning = Callable[[str], Sequence[Macro]]
"""What the name of a macro may stand for at the place of a use."""


def _expansion_of(parser: Parser, made: Declaration, meaning: _Meaning, deepest: int) -> tuple[str, int] | None:
    """What a declaration stands for that begins with a macro, and the last token of the use, where that is certain and
    brings something that may have to go."""
    token = parser.tokens[made.first]
    macros = meaning(token.text) if token.kind == WORD else ()
    if not macros or (made.kind != "macro" and not all(m.text.rstrip().endswith((";", "}")) for m in macros)):
        return None
    found = _one_expansion(parser, made.first, macros)
    if found is None or _leads_on(found[0], parser.surroundings):
        return None
    inner = Parser(f"{found[0]};", parser.surroundings)
    brings = made.body >= 0 or any(
        _may_go(each) or (deepest > 0 and _expansion_of(inner, each, meaning, deepest - 1) is not None)
        for each in inner.declarations
    )
    return found if brings else None  # what is for the device alone stays in its macro


def _one_expansion(parser: Parser, index: int, macros: Sequence[Macro]) -> tuple[str, int] | None:
    """What a use stands for by each of the definitions, as far as it matters."""
    found = [shown for macro in macros if (shown := _expansion(parser, index, macro)) is not None]
    if len(found) < len(macros):
        return None
    first, *others = sorted(found, key=lambda shown: len(shown[0]))
    if not others:
        return first
    bare = _without_attributes(first[0])
    same = all(_without_attributes(shown) == bare for shown, _ in others)
    made = Parser(f"{first[0]};", parser.surroundings).declarations
    return first if same and made and all(d.kind == "function" and not d.device for d in made) else None


def _leads_on(shown: str, surroundings: Surroundings) -> bool:
    """Whether what a macro stands for uses one whose result is used in turn: `GET(a, b, c)(d)`."""
    text = Brackets(shown)
    return any(
        token.text in surroundings.macros and text.tokens[closed + 1].text == "("
        for opened, closed in text.match.items()
        for token in text.tokens[max(0, opened - 1) : opened]
        if closed + 1 < len(text.tokens)
    )


def _without_attributes(text: str) -> list[str]:
    """The tokens of a text that are in no attribute, in the spelling of GNU or of Microsoft."""
    found: list[str] = []
    depth = 0
    inside = False
    for token in tokenize(text):
        inside = inside or token.text in _ATTRIBUTES
        depth += inside * ((token.text == "(") - (token.text == ")"))
        if not inside:
            found.append(token.text)
        inside = inside and (depth > 0 or token.text != ")")
    return found


def _may_go(made: Declaration) -> bool:
    return made.kind in ("function", "variable", "macro", "class", "alias") and not made.device


def _expansion(parser: Parser, index: int, macro: Macro) -> tuple[str, int] | None:
    """What a use of a macro stands for, and its last token; None where only a preprocessor knows."""
    name = parser.tokens[index].text
    text = tokenize(macro.text)
    words = {token.text for token in text if token.kind == WORD}
    if name in parser.surroundings.expanded(words) or any(token.kind == DIRECTIVE for token in text):
        return None
    if macro.parameters is None:
        shown = _substituted(text, {}, macro.text)
        return None if shown is None else (shown, index)
    closed = parser.match.get(index + 1) if parser.is_at(index + 1, "(") else None
    if closed is None:
        return None
    inside = parser.tokens[index + 2 : closed]
    parts = _split(inside)
    parameters = [*macro.parameters]
    if parameters[-1:] == ["..."]:
        parameters[-1] = "__VA_ARGS__"
        kept = len(parameters) - 1
        cut = parser.text[parts[kept][0].start : inside[-1].end] if len(parts) > kept and parts[kept] else ""
        parts, rest = parts[:kept], cut
    if not parameters and not inside:
        parts = []
    written = _used_plainly(text)
    named = itertools.zip_longest(parameters, _split(inside))
    early = any(_is_early(part or (), parser) for name, part in named if name is None or name in written) and any(
        token.text in parser.surroundings.macros or _POSITION.fullmatch(token.text)
        for token, following in itertools.pairwise(text)
        if following.text == "("
    )
    spread = "\n" in parser.text[parser.tokens[index].start : parser.tokens[closed].end]
    if early or (spread and any(map(_POSITION.fullmatch, words))):
        return None
    given = dict(zip(parameters, (_spelled(part, parser.text) for part in parts), strict=False))
    if parameters[-1:] == ["__VA_ARGS__"]:
        given["__VA_ARGS__"] = rest
    if len(given) != len(parameters) or len(parts) > len(parameters) or name in {token.text for token in inside}:
        return None
    shown = _substituted(text, given, macro.text)
    return None if shown is None else (shown, closed)


def _split(inside: Sequence[Token]) -> list[list[Token]]:
    """Arguments as the preprocessor tells them: only parentheses keep a comma."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in inside:
        depth += (token.text == "(") - (token.text == ")")
        if token.text == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _used_plainly(text: Sequence[Token]) -> set[str]:
    """The words of a macro's text that `#` and `##` do not work on: arguments are expanded before they stand there."""
    found: set[str] = set()
    for index, token in enumerate(text):
        around = [text[at].text for at in (index - 1, index + 1) if 0 <= at < len(text)]
        if token.kind == WORD and "#" not in around:
            found.add(token.text)
    return found


def _is_early(inside: Sequence[Token], parser: Parser) -> bool:
    """Whether an argument may be a macro, which the preprocessor expands before another macro is given it."""
    around = parser.surroundings
    for index, token in enumerate(inside):
        if token.kind != WORD:
            continue
        called = index + 1 < len(inside) and inside[index + 1].text == "("
        macros = around.definitions.get(token.text)
        if macros and not called and all(macro.parameters is not None for macro in macros):
            continue  # the name of one with parameters alone is no use of it
        if token.text in around.macros or (_MAY_BE_A_MACRO.fullmatch(token.text) and token.text not in around.spaces):
            return True
    return False


def _spelled(part: Sequence[Token], text: str) -> str:
    """Tokens as they are written, with one space where there is white space or a comment."""
    pieces = [token.text if token.start == before else f" {token.text}" for token, before in _with_ends(part)]
    return "".join(pieces)


def _with_ends(part: Sequence[Token]) -> Iterator[tuple[Token, int]]:
    before = part[0].start if part else 0
    for token in part:
        yield token, before
        before = token.end


_GLUED = re.compile(
    r"""\w\n[\w"'] | \.\n[\d.*] | \+\n[+=] | -\n[-=>] | <\n[<=:%] | >\n= | &\n[&=] | \|\n[|=] | [*!^=]\n= | /\n[*/=]
        | %\n[=:>] | :\n[:>] """,
    re.VERBOSE,
)
"""What would be one token where the end of one stands beside the beginning of another: `-e` with `-x` for `e`."""


def _substituted(text: Sequence[Token], given: dict[str, str], written: str) -> str | None:
    """The text of a macro with its arguments put in; None for what the standard leaves to the compiler."""
    shown = ""
    index, end = 0, 0
    pasting = False
    while index < len(text):
        token = text[index]
        if token.text == "__VA_OPT__" or token.text == "%:":
            return None
        gap = token.start != end and index > 0
        end = token.end
        if token.text == "#" and index + 1 < len(text) and text[index + 1].text == "#":
            end, index, pasting = text[index + 1].end, index + 2, True
            if not shown or index >= len(text) or text[index].text == "__VA_ARGS__":
                return None
            shown = shown.rstrip()
            continue
        if token.text == "#":
            following = text[index + 1].text if index + 1 < len(text) else ""
            if following not in given:
                return None
            word, end, index = _quoted(given[following]), text[index + 1].end, index + 1
        else:
            word = given.get(token.text, token.text) if token.kind == WORD else token.text
        beside = token.text in given or text[index - 1].text in given
        if beside and not (pasting or gap) and _GLUED.search(f"{shown[-1:]}\n{word[:1]}"):
            return None
        shown += word if pasting or not gap else f" {word}"
        pasting = False
        index += 1
    return shown


def _quoted(argument: str) -> str:
    """An argument as the operator `#` makes it."""
    pieces = [
        re.sub(r'(["\\])', r"\\\1", token.text) if token.kind == STRING else token.text for token in tokenize(argument)
    ]
    spaced = [f" {piece}" if gap else piece for piece, gap in zip(pieces, _gaps(argument), strict=True)]
    return '"' + "".join(spaced) + '"'


def _gaps(argument: str) -> list[bool]:
    tokens = tokenize(argument)
    return [index > 0 and tokens[index - 1].end != token.start for index, token in enumerate(tokens)]
