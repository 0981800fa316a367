# SPDX-License-Identifier: Apache-2.0
"""`goodbot --help`: the eight commands that come first, and the others by group."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from typing import Any, NamedTuple, cast

from goodbot.api.commands import GROUPS, of

ALL = "all"
TOPICS = (ALL, *GROUPS)
"""What `goodbot help` explains at once, besides one command."""
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
    lines = ["first:", *(line for one in known if one.first for line in _explained(one)), "", "all commands:"]
    for group, heading in GROUPS.items():
        names = ", ".join(one.name for one in known if one.group == group)
        lines += _wrapped(f"  {heading}", names, indent=18)
    others = ", ".join(one.name for one in known if one.group not in GROUPS)
    lines += _wrapped("  Of plugins", others, indent=18) if others else []
    ends = (
        f"`goodbot help all` explains them all, `goodbot help fix` one group ({', '.join(GROUPS)}), "
        "`goodbot COMMAND --help` one command. `goodbot` alone says what comes next."
    )
    return "\n".join([*lines, "", *textwrap.wrap(ends, _width(), break_on_hyphens=False)])


def explained(topic: str, commands: argparse._SubParsersAction[Any]) -> str:
    """Each command of one group, or of all."""
    known = _entries(commands)
    headings: dict[str, str] = {**GROUPS, "": "Of plugins"}
    wanted = headings if topic == ALL else {topic: headings[topic]}
    parts: list[str] = []
    for group, heading in wanted.items():
        own = [one for one in known if (one.group if one.group in GROUPS else "") == group]
        if own:
            parts.append("\n".join([f"{heading}:", *(line for one in own for line in _explained(one))]))
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
    return _wrapped(f"  {one.name}", one.summary, indent=2 + _INDENT)


def _wrapped(begins: str, text: str, *, indent: int) -> list[str]:
    first = f"{begins:<{indent - 1}} "
    return textwrap.wrap(
        text, _width(), initial_indent=first, subsequent_indent=" " * indent, break_on_hyphens=False
    )


def _width() -> int:
    return max(40, min(_WIDEST, shutil.get_terminal_size().columns))
