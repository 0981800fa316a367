# SPDX-License-Identifier: Apache-2.0
"""Write docs/reference.md: every command, and every setting of a training, as the code has them.

`python docs/tools/reference.py`, in an environment that has goodbot.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from goodbot.api.commands import TABLE, Arg, Command, Grant, Where
from goodbot.api.commands.entry import GROUPS
from goodbot_training.job.settings import TrainingSettings

PAGE = Path(__file__).parents[1] / "reference.md"
PLACES: tuple[Where, ...] = ("chat", "terminal")
WHO = {
    Grant.NONE: "everybody",
    Grant.TALK: "whoever may talk",
    Grant.RATE: "raters",
    Grant.ADMINISTER: "owners",
}
HEAD = """\
# Reference

This page is made from the code, by `docs/tools/reference.py`. [Commands](commands.md) explains what needs it,
and [Settings](config.md) lists all other settings.

## Every command

In a chat type `/rl` before it, in a terminal `goodbot`. A word in `[ ]` can be left out. Options such as
`--yes` are for the terminal. *Who* counts in chats: whoever has the terminal is an owner.
"""
SETTINGS = """\
## Every setting of a training

They stand under `[training.settings]`. What is set there wins over the [preset](training.md#how-boldly).
A default of `None` means that goodbot chooses. The words are those of the [glossary](glossary.md).

| key | default | what |
|---|---|---|
"""


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *_commands(), SETTINGS + "\n".join(_settings()), ""])


def _commands() -> Iterator[str]:
    for group, heading in GROUPS.items():
        yield f"### {heading}\n\n| command | where | who | what |\n|---|---|---|---|"
        for command in TABLE:
            if command.group == group:
                yield _row(command.name, command, command.grant)
                for action in command.actions:
                    yield _row(f"{command.name} {action.name}", action, command.grant)
        yield ""


def _row(name: str, command: Command, grant: Grant) -> str:
    places: list[Where] = [one for one in PLACES if one in command.where]
    words = {place: " ".join(one.usage for one in _words(command, place)) for place in places}
    usages = dict.fromkeys(f"`{name} {said}`".replace(" `", "`") for said in words.values())
    options = [_option(one) for one in command.arguments if one.is_option and one.help]
    what = "; ".join([command.summary, *options])
    cells = (" or ".join(usages), ", ".join(places), WHO[grant], what)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _words(command: Command, place: Where) -> list[Arg]:
    return [one for one in command.words(place) if not one.is_option]


def _option(one: Arg) -> str:
    return f"`{f'{one.name} {one.metavar}'.strip()}`: {one.help}"


def _settings() -> Iterator[str]:
    told = _docstrings(TrainingSettings)
    for field in dataclasses.fields(TrainingSettings):
        default = "true" if field.default is True else str(field.default)
        yield f"| `{field.name}` | `{default}` | {told[field.name]} |"


def _docstrings(of: type[Any]) -> dict[str, str]:
    """What stands below each attribute of a class, on one line."""
    [body] = ast.parse(inspect.getsource(of)).body
    lines = body.body if isinstance(body, ast.ClassDef) else []
    told: dict[str, str] = {}
    for before, after in pairwise(lines):
        match before, after:
            case (ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text)))):
                told[name] = " ".join(text.split())
            case _:
                pass
    return told


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
