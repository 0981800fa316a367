# SPDX-License-Identifier: Apache-2.0
"""`goodbot completion bash|zsh|fish`: prints a script that makes the shell complete our words."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import shtab

from goodbot.base.printing import say
from goodbot.cli import parser
from goodbot.cli.words import Commands


def main(arguments: argparse.Namespace) -> int:
    """Print the script; nothing is written anywhere."""
    whole = parser.whole(arguments.home, arguments.config)
    for action in _actions(whole):
        if action.type is Path:
            kind = shtab.DIRECTORY if action.dest == "home" else shtab.FILE
            action.complete = kind  # pyright: ignore[reportAttributeAccessIssue]
    say(shtab.complete(whole, arguments.shell))
    return 0


def _actions(whole: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Every option and word of the program and of its commands."""
    for action in whole._actions:  # noqa: SLF001  argparse lists them nowhere else
        yield action
        if isinstance(action, Commands):
            commands = cast("Commands[Any]", action)
            for command in commands.choices.values():
                yield from _actions(command)
