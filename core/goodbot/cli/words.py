# SPDX-License-Identifier: Apache-2.0
"""The table of commands as the words of the `goodbot` program."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from goodbot.api.commands import OLD, Arg, Command, of

Commands = argparse._SubParsersAction  # noqa: SLF001  it has no public name


def add(commands: Commands[Any], word: str | None = None) -> None:
    """The command that `word` is; if it is none, all commands of the terminal in the table's order."""
    known = of("terminal", old=True)
    for command in [one for one in known if one.name == word] or known:
        _add(commands, command)


def typed(arguments: argparse.Namespace) -> list[str]:
    """The words behind the command's name, as they would be typed in a chat; options are left out."""
    words: list[str] = list(arguments.first)
    for argument in arguments.words_of:
        value: str | list[str] | None = getattr(arguments, argument)
        words += [value] if isinstance(value, str) else value or ()
    return words


def _add(commands: Commands[Any], command: Command, of: Command | None = None) -> None:
    """The command, or with `of` an action of that one."""
    listed: dict[str, Any] = {} if command in OLD else {"help": command.summary}
    parser: argparse.ArgumentParser = commands.add_parser(command.name, description=command.summary, **listed)
    if command.json:
        parser.add_argument("--json", action="store_true", help="print one JSON object")
    said = command.words("terminal")
    for argument in said:
        parser.add_argument(argument.name, **_meaning(argument))
    parser.set_defaults(
        run=f"goodbot.cli.{command.program}",
        command=of.name if of else command.name,
        first=(command.name,) if of else (),
        words_of=[argument.name for argument in said if not argument.is_option],
    )
    if command.actions:
        actions = parser.add_subparsers(metavar="ACTION", title="actions")
        for action in command.actions:
            _add(actions, action, command)


def _meaning(argument: Arg) -> dict[str, Any]:
    """How argparse is told of it."""
    meaning: dict[str, Any] = {"help": argument.help or None}
    if argument.is_option:
        if not argument.help:
            meaning["help"] = argparse.SUPPRESS
        if not argument.metavar and not argument.choices:
            return {**meaning, "action": "store_true"}
        meaning |= {"required": argument.required, "action": "append" if argument.many else "store"}
    elif argument.many or not argument.required:
        meaning["nargs"] = ("+" if argument.required else "*") if argument.many else "?"
    return meaning | {
        "metavar": argument.metavar or None,
        "choices": argument.choices or None,
        "default": argument.default,
        "type": Path if argument.path else None,
    }
