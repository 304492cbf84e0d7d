# SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
# SPDX-License-Identifier: Apache-2.0
"""The directive `command-help`: what each command says of itself, taken from the parser that reads its arguments."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from hatch_cuda_kernels.cli import _parser

__all__ = ["CommandHelp", "commands", "setup"]


def commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """Each command that has no commands of its own, and its help."""
    inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not inner:
        yield parser.prog, parser.format_help()
    for action in inner:
        for name in dict.fromkeys(action.choices):
            yield from commands(action.choices[name])


class CommandHelp(Directive):
    """One section for each command."""

    def run(self) -> list[nodes.Node]:
        """See Directive."""
        os.environ["COLUMNS"], os.environ["NO_COLOR"] = "90", "1"
        sections: list[nodes.Node] = []
        for name, text in commands(_parser()):
            section = nodes.section(ids=[nodes.make_id(name)])
            section += nodes.title("", "", nodes.literal("", name))
            section += nodes.literal_block(text, text, language="text")
            self.state.document.note_implicit_target(section, section)
            sections.append(section)
        return sections


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls."""
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True}
