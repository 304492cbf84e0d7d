# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The macros and namespaces of all files that go into a compile."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from .names import HOST, SPACES
from .tokens import DEFINE, DIRECTIVE, tokenize

__all__ = ["Surroundings"]


@dataclass(frozen=True)
class Surroundings:
    """The macros of a source and of all project headers that it could include."""

    macros: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Name of a macro -> words and braces in all of its definitions."""
    namespaces: frozenset[str] = frozenset()
    """Namespaces that the files open themselves; what is in them is not taken for a library of the host."""

    @classmethod
    def of(cls, files: Iterable[bytes], defines: Mapping[str, str | bool] | None = None) -> Surroundings:
        """Gather from the texts of files, and from macros of the command line."""
        macros: dict[str, set[str]] = {}
        for name, value in (defines or {}).items():
            macros.setdefault(name, set()).update(re.findall(r"\w+|[{}]", "" if value is True else str(value)))
        namespaces: set[str] = set()
        for data in files:
            if b"define" not in data and b"namespace" not in data:
                continue
            tokens = tokenize(data.decode("latin-1"))
            for index, token in enumerate(tokens):
                if token.text == "namespace" and [t.text for t in tokens[index + 2 : index + 3]] in (["{"], ["::"]):
                    namespaces.add(tokens[index + 1].text)
                if token.kind == DIRECTIVE and (match := DEFINE.match(token.text)):
                    body = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', " ", match[3], flags=re.DOTALL)
                    macros.setdefault(match[1], set()).update(re.findall(r"<<<|\w+|[{}]", body))
        return cls({name: frozenset(words) for name, words in macros.items()}, frozenset(namespaces))

    @cached_property
    def spaces(self) -> frozenset[str]:
        """Words that put a declaration on the device: the keywords, and macros that can stand for one."""
        return frozenset(self._reaching(SPACES))

    @cached_property
    def hosts(self) -> frozenset[str]:
        """`__host__` and macros that stand for it and for nothing of the device."""
        return frozenset(self._reaching({HOST}) - self.spaces)

    def _reaching(self, goals: Collection[str]) -> set[str]:
        users: dict[str, list[str]] = {}
        for name, words in self.macros.items():
            for word in words:
                users.setdefault(word, []).append(name)
        found = set(goals)
        pending = list(goals)
        while pending:
            for user in users.get(pending.pop(), ()):
                if user not in found:
                    found.add(user)
                    pending.append(user)
        return found

    def expanded(self, words: Iterable[str]) -> set[str]:
        """`words` with all that macros among them can bring."""
        found = set(words)
        pending = list(found)
        while pending:
            for word in self.macros.get(pending.pop(), ()):
                if word not in found:
                    found.add(word)
                    pending.append(word)
        return found
