# SPDX-License-Identifier: Apache-2.0
"""`goodbot --help`: the eight commands that come first, and the others by group."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterable
from typing import Any, NamedTuple, cast

from goodbot.api import texts
from goodbot.api.commands import GROUPS, of
from goodbot.api.texts.terminal import here, phrase, rephrased
from goodbot.base.columns import padded, wide, wrapped

ALL = "all"
TOPICS = (ALL, *GROUPS)
"""What `goodbot help` explains at once, besides one command."""
_PLUGINS = "Of plugins"
_INDENT = 12
_WIDEST = 100


class _Entry(NamedTuple):
    name: str
    summary: str
    group: str
    first: bool


def overview(commands: argparse._SubParsersAction[Any]) -> str:
    """What fits a screen: the first commands with what they do, of the others their names."""
    known = _entries(commands)
    first = [line for one in known if one.first for line in _explained(one)]
    groups: dict[str, tuple[str, ...]] = {heading: (group,) for group, heading in GROUPS.items()}
    groups[_PLUGINS] = tuple({one.group for one in known} - {*GROUPS})
    by_heading = {
        f"  {rephrased(heading)}": [one.name for one in known if one.group in group]
        for heading, group in groups.items()
    }
    indent = max(18, *(wide(heading) + 2 for heading in by_heading))
    lines = [
        line
        for heading, names in by_heading.items()
        if names
        for line in _wrapped(heading, ", ".join(names), indent=indent)
    ]
    ends = wrapped(phrase("help_ends", groups=texts.commas(here(), *GROUPS)), _width())
    return "\n".join([_headed("help_first"), *first, "", _headed("help_commands"), *lines, "", *ends])


def explained(topic: str, commands: argparse._SubParsersAction[Any]) -> str:
    """Each command of one group, or of all."""
    known = _entries(commands)
    headings: dict[str, str] = {**GROUPS, "": _PLUGINS}
    wanted = headings if topic == ALL else {topic: headings[topic]}
    parts: list[str] = []
    for group, heading in wanted.items():
        own = [one for one in known if (one.group if one.group in GROUPS else "") == group]
        if own:
            begins = texts.explained(rephrased(heading), "", here()).rstrip()
            parts.append("\n".join([begins, *(line for one in own for line in _explained(one))]))
    return "\n\n".join(parts)


def _entries(commands: argparse._SubParsersAction[Any]) -> list[_Entry]:
    """Those of the table, and those of plugins, which say with `set_defaults` where they belong; by group."""
    table = {one.name: one for one in of("terminal")}
    listed = commands._choices_actions  # noqa: SLF001  argparse lists them nowhere else
    own = [_Entry(one.name, one.summary, one.group, "terminal" in one.first) for one in table.values()]
    for action in listed:
        if action.dest not in table:
            parser = cast("argparse.ArgumentParser", commands.choices[action.dest])
            group, first = parser.get_default("group") or "", bool(parser.get_default("first"))
            own.append(_Entry(action.dest, action.help or "", group, first))
    groups = [*GROUPS]
    return sorted(own, key=lambda one: groups.index(one.group) if one.group in groups else len(groups))


def _explained(one: _Entry) -> list[str]:
    return _wrapped(f"  {one.name}", rephrased(one.summary), indent=2 + _INDENT)


def _headed(key: str) -> str:
    return texts.explained(phrase(key), "", here()).rstrip()


def _wrapped(begins: str, text: str, *, indent: int) -> list[str]:
    return wrapped(text, _width(), begins=f"{padded(begins, indent - 1)} ", indent=" " * indent)


def _width() -> int:
    return max(40, min(_WIDEST, shutil.get_terminal_size().columns))


class Formatter(argparse.HelpFormatter):
    """The help of one command, in the language of whoever reads it."""

    def add_usage(self, usage: str | None, actions: Any, groups: Any, prefix: str | None = None) -> None:
        """As argparse does it, with its first word in the reader's language."""
        begins = f"{_headed('help_usage')} " if prefix is None else prefix
        super().add_usage(usage, actions, groups, begins)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return wrapped(" ".join(text.split()), width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(wrapped(" ".join(text.split()), width, begins=indent, indent=indent))


def put_in_words(parser: argparse.ArgumentParser) -> None:
    """Have what a command and its options mean in the reader's language, as far as the catalogue has it."""
    parser.formatter_class = Formatter
    parser.description = parser.description and rephrased(parser.description)
    for group in parser._action_groups:  # noqa: SLF001  it has no public name
        group.title = group.title and rephrased(group.title)
    for action in _actions(parser):
        action.help = action.help and rephrased(action.help)


def _actions(parser: argparse.ArgumentParser) -> Iterable[argparse.Action]:
    """A parser's options and words, and the actions that a word may be."""
    for action in parser._actions:  # noqa: SLF001
        yield action
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            yield from action._choices_actions  # noqa: SLF001  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
