# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The instances of template kernels that a job compiles because its files ask for them, and what is told of others."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .advice import macros_of_libraries
from .errors import numbered
from .hostcode import NAME_MAP, Mention, Probe, Surroundings, complaints, has_made_kernels, may_define, mentions
from .manifest import squeeze_name
from .plan import CompileJob, Unit

__all__ = ["Instances"]

_EXPRESSION = re.compile(
    rf"^{NAME_MAP}\(\d+\): error[^\n:]*: (?P<text>[^\n]*)\n\s*#pragma nv_mangled_name (?P<expression>[^\n]*)",
    re.MULTILINE,
)
_INSTANTIATION = re.compile(
    r'instantiation of "(?:[^"(]*[ *&])?(?P<name>[\w:]+)(?:<[^"(]*>)?\([^"]*\[with (?P<given>[^\]"]*)\]"'
)
_GIVEN = re.compile(r"(?:^|(?<=,))(?:\w+|<unnamed>|<auto-\d+>)=|(?<=\d)[UL]+\b")
"""What stands around the value of a parameter."""
_UNKNOWN = re.compile(r'is undefined|name followed by "::"|has no member')
_SHOWN = 12


@dataclass
class Instances:
    """The instances of template kernels that the files of a job ask for."""

    mentions: list[Mention]
    taken: list[str]
    """Name expressions to compile."""
    listed: bool = False
    """Whether the author lists instances, so that none is taken."""
    made: bool = False
    """Whether macros make template kernels, whose names the text does not tell."""
    told_only: frozenset[str] = frozenset()
    """Those of `taken` that the compiler spells, and no text."""
    complete: bool = False
    """Whether the compiler told all of them, and so none that it knows nothing of is asked for."""
    vague: frozenset[tuple[str, int, str]] = frozenset()
    """Places that ask for instances which the compiler does not tell, as with types that only a library has."""
    refused: dict[str, str] = field(default_factory=dict)
    """Expression -> what the compiler said of it."""

    @classmethod
    def asked(cls, unit: Unit, around: Surroundings) -> Instances:
        """All of them; none is taken where the author lists some."""
        texts = {label: file.data for label, file in unit.closure.files.items()}
        found = mentions(texts, around)
        taken = {squeeze_name(text): None for mention in found for text in mention.expressions}
        listed = bool(unit.name_expressions)
        return cls(found, [] if listed else list(taken), listed, has_made_kernels(texts, around))

    @property
    def unknown(self) -> bool:
        """Whether the text may not tell all that is asked for, and no instance is listed."""
        told = all(mention.certain and mention.literal for mention in self.mentions)
        return not self.listed and (self.made or not told)

    def told(self, probe: Probe) -> Instances:
        """With what the compiler tells of places where the text may not tell it all.

        It tells an instance once, at the first place that asks for it.
        """
        asked = {mention.place for mention in self.mentions if not mention.certain}
        kernels = {each.kernel for each in probe.instances}
        found: dict[tuple[str, int, str], dict[str, None]] = {}
        for each in probe.instances:
            places = (each.place, (each.label, each.line, ""))
            place = next((place for place in places if place in asked), ("", 0, each.kernel))
            found.setdefault(place, {})[each.expression] = None
        mentions = []
        for mention in self.mentions:
            if not mention.certain:
                here = found.get(mention.place) or found.get(("", 0, mention.kernel), {})
                text = () if here and probe.complete else mention.expressions
                mention = mention._replace(
                    expressions=tuple(dict.fromkeys([*text, *here])),
                    certain=probe.understood(mention)
                    and not probe.asks_in_vain(mention)
                    and (probe.complete or mention.loose or mention.kernel in kernels),
                )
            mentions.append(mention)
        known = {mention.kernel for mention in mentions}
        mentions += [
            Mention(each.label, each.line, each.kernel, each.kernel, (each.expression,))
            for each in probe.instances
            if each.kernel not in known
        ]
        every = [text for mention in mentions for text in mention.expressions]
        every += [text for those in found.values() for text in those]
        taken = list(dict.fromkeys(map(squeeze_name, every)))
        written = {squeeze_name(text) for mention in self.mentions for text in mention.expressions}
        vague = frozenset(mention.place for mention in mentions if not mention.certain and probe.asks_in_vain(mention))
        return dataclasses.replace(
            self,
            mentions=mentions,
            taken=taken,
            vague=vague,
            told_only=frozenset(taken) - written,
            complete=probe.complete,
        )

    def without_twins(self, kernels: Mapping[str, str]) -> dict[str, str]:
        """Kernels by their names, each with its symbol, without what the compiler calls otherwise than the files do."""
        written = {symbol for name, symbol in kernels.items() if name not in self.told_only}
        return {name: symbol for name, symbol in kernels.items() if name not in self.told_only or symbol not in written}

    def refuse(self, log: str, *, others: bool = False) -> bool:
        """Let go of the expressions that the compiler complains of; whether there were any.

        With `others`, also of those whose kernels it cannot instantiate; of none where it complains of something else,
        which would stay.
        """
        if not others and any(complaint.file != NAME_MAP for complaint in complaints(log)):
            return False
        taken = {text.replace(" ", ""): text for text in self.taken}
        refused: dict[str, str] = {}
        for match in _EXPRESSION.finditer(log):
            if (text := taken.get(match["expression"].replace(" ", ""))) is not None:
                refused.setdefault(text, match["text"])
        if others:
            failed = self._failed(log)
            if failed is None:
                return False
            refused |= failed
        self.refused.update(refused)
        self.taken = [text for text in self.taken if text not in refused]
        return bool(refused)

    def drop(self, expressions: Collection[str], texts: Iterable[bytes]) -> bool:
        """Let go of instances of templates that other files of a program define; whether host code asked for all, and
        none of these texts may define one of the templates, be it for nvcc alone."""
        gone = set(expressions)
        names = {_template(text) for text in gone}
        if self.made or not gone <= set(self.taken) or any(may_define(text, names) for text in texts):
            return False
        self.taken = [text for text in self.taken if text not in gone]
        self.mentions = [
            mention
            for mention in self.mentions
            if not (mention.expressions and gone.issuperset(map(squeeze_name, mention.expressions)))
        ]
        return True

    def _failed(self, log: str) -> dict[str, str] | None:
        """Expressions whose kernels do not compile: those of the very arguments, else all of a kernel's. None where an
        error is of no kernel's instance."""
        failed: dict[str, str] = {}
        expressions = sorted(self.taken, key=str.encode)  # as NVRTC asks for them, from the second line on
        for complaint in complaints(log):
            if complaint.file == NAME_MAP:
                continue
            found = [text for match in _INSTANTIATION.finditer(complaint.whole) for text in self._instantiated(match)]
            if complaint.asked_at is not None:
                found = expressions[complaint.asked_at - 2 : complaint.asked_at - 1]
            if not found:
                return None
            for text in found:
                failed.setdefault(text, complaint.text)
        return failed

    def _instantiated(self, match: re.Match[str]) -> list[str]:
        """The expressions that an instantiation may be of, as the compiler shows it."""
        name = match["name"].rpartition("::")[2]
        given = _GIVEN.sub("", match["given"].replace(" ", "").replace("__nv_bool", "bool")).split(",")
        those = [text for text in self.taken if _template(text) == name]
        return [text for text in those if _stands_for(text, given)] or those

    def left_open(self, job: CompileJob, read: Collection[str]) -> list[str]:
        """A warning of the launches that not every instance is compiled for, in the source and in the headers `read`.

        Of a header, those in templates count only where it is known that an instance is asked for: it may have many
        that this source has no use for.
        """
        if job.unit.name_expressions:
            return []
        lines: dict[str, None] = {}
        for mention in self.mentions:
            asked = [squeeze_name(text) for text in mention.expressions]
            missing = [text for text in asked if text not in self.taken and not self._is_nowhere(text)]
            here, vague = mention.label == job.unit.source, mention.place in self.vague
            unknown = vague or not (asked or mention.certain)
            known = here or vague or mention.function != (0, 0)
            if (here or mention.label in read) and (missing or (unknown and known)):
                cause = self._causes(missing) or "neither the text nor the compiler tells the arguments"
                lines[f"{mention.label}({mention.line}): {mention.text} ({cause})"] = None
        if not lines:
            return []
        headline = f"{job}: instances of kernels that host code asks for and that are not compiled; list in "
        headline += "name-expressions those that are loaded:"
        return [numbered(headline, lines, _SHOWN) + self._macros(job.unit)]

    def _is_nowhere(self, text: str) -> bool:
        """Whether an instance has a name that is unknown, though the compiler understood all: it stands in code that
        is left out."""
        return self.complete and bool(_UNKNOWN.search(self.refused.get(text, "")))

    def _causes(self, missing: Sequence[str]) -> str:
        """What the compiler says of expressions that it refuses, each cause once."""
        causes: dict[str, list[str]] = {}
        for text in missing:
            if text in self.refused:
                causes.setdefault(self.refused[text], []).append(text)
        return "; ".join(
            f"{', '.join(texts[:3])}{f' and {len(texts) - 3} more' if len(texts) > 3 else ''}: {said}"
            for said, texts in causes.items()
        )

    def _macros(self, unit: Unit) -> str:
        hint = macros_of_libraries(unit, "\n".join(self.refused.values()))
        return f"\n{hint}" if hint else ""

    def how_to_list(self, unit: Unit) -> str:
        """What an author writes to get kernels out of templates; empty where nothing asks for an instance."""
        lines = [f"{mention.label}({mention.line}): {mention.text}" for mention in self.mentions]
        lines += [f"{text} is refused: {said}" for text, said in self.refused.items()]
        if not lines:
            return ""
        examples = list(dict.fromkeys(_example(mention) for mention in self.mentions))[:_SHOWN]
        table = "[[tool.hatch.build.hooks.cuda-kernels.modules]]"
        shown = ", ".join(f'"{example}"' for example in examples)
        return (
            numbered("\nthe files ask for these instances:", dict.fromkeys(lines), _SHOWN)
            + f'\nto be listed as, with the arguments filled in:\n{table}\nsource = "{unit.source}"\n'
            + f"name-expressions = [{shown}]"
            + self._macros(unit)
        )


def _example(mention: Mention) -> str:
    return mention.expressions[0] if mention.expressions else f"{mention.kernel or 'kernel'}<...>"


def _template(expression: str) -> str:
    """The template that an expression is an instance of, without its namespaces."""
    return expression.partition("<")[0].rpartition("::")[2]


def _stands_for(expression: str, given: list[str]) -> bool:
    """Whether an expression may be the instance with these arguments, as the compiler spells them."""
    arguments = expression.replace(" ", "").partition("<")[2][:-1].split(",")
    same = [one == other or other.startswith("(") for one, other in zip(arguments, given, strict=False)]
    return len(arguments) <= len(given) and all(same)
