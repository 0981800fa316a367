# SPDX-License-Identifier: Apache-2.0
"""`goodbot` without a command: where one is, and what comes next."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any

from goodbot import config
from goodbot.api import control
from goodbot.base.printing import say
from goodbot.base.suggest import TERMINAL
from goodbot.config.file import ConfigFile

_NOTHING = """\
goodbot is not set up here yet.
Watch the tiny model learn:  {goodbot} demo
Set up a bot of your own:    {goodbot} init
The same in a browser:       {goodbot} --browser
All commands:                {goodbot} --help"""


def main(arguments: argparse.Namespace) -> int:
    """Say it in a few lines; where nothing is set up and a person is there, set it up."""
    answer = control.call(arguments.home, "status", [], _silent)
    if answer is None and not _set_up(arguments):
        return _begin(arguments)
    goodbot = _program(arguments)
    if answer is not None and arguments.browser:
        from goodbot.cli.browser import command

        return command.pages(_globals(arguments))
    if answer is not None:
        lines = _running(answer["data"], goodbot)
    else:
        places = set(config.load(arguments.home, arguments.config).connectors) - {TERMINAL}
        lines = _resting(_at_rest(arguments)["data"], f"{goodbot} {'run' if places else 'chat'}", goodbot)
    if arguments.browser:
        lines.append(f"Once it runs, `{goodbot} --browser` opens its pages.")
    say("\n".join(lines))
    return 2 if arguments.browser else 0


def _set_up(arguments: argparse.Namespace) -> bool:
    """Whether there is a config; whoever asks for the page of the setup needs one with a model. Raises
    ConfigError."""
    if not ConfigFile(arguments.home, arguments.config).exists:
        return False
    return not arguments.browser or bool(config.load(arguments.home, arguments.config).model.path)


def _begin(arguments: argparse.Namespace) -> int:
    if arguments.browser:
        from goodbot.cli.browser import command

        return command.main(_globals(arguments))
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        say(_NOTHING.format(goodbot=_program(arguments)))
        return 0
    from goodbot.cli import init, parser

    return init.main(parser.parse([*_globals(arguments), "init"]))


def _at_rest(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """What `status` says while nothing runs. Raises GoodbotError."""
    from goodbot.cli import client, offline

    arguments.command = "status"
    alone = lambda: offline.execute(arguments, [], _silent)  # noqa: E731
    return client.ask(arguments.home, "status", [], _silent, alone)


def _resting(found: Mapping[str, Any], start: str, goodbot: str) -> list[str]:
    """`found` is the data of `status`."""
    if not found["model"]:
        return ["goodbot has no model to answer with yet.", f"Next: `{goodbot} init`"]
    return ["goodbot is set up here, and is not running.", _counter(found), f"Next: `{start}`"]


def _running(found: Mapping[str, Any], goodbot: str) -> list[str]:
    if found["server"] == "starting" or "connectors" not in found:
        return ["goodbot is starting.", f"Next: `{goodbot} status` says once it answers"]
    who = f"v{found['version']}" if found["version"] and not found["off"] else "the base model"
    places = [name for name, state in found["connectors"].items() if state == "running" and name != TERMINAL]
    where = f" on {', '.join(places)}" if places else ""
    state = f"goodbot runs: {who} answers{where} ({found['model']})."
    return [state, _counter(found), f"Next: {_next(found, goodbot)}"]


def _counter(found: Mapping[str, Any]) -> str:
    """The ratings, and what the next training waits for where they are enough or something is in the way."""
    counted = f"Ratings: {found['ratings']} of {found['needed']}"
    if found["training"]:
        return f"{counted}; it learns right now."
    by_count = found["condition"]["name"] == "ratings"
    more = found["needed"] - found["ratings"]
    return f"{counted}, {more} more until the next training." if by_count else f"{counted}; {found['next']}."


def _next(found: Mapping[str, Any], goodbot: str) -> str:
    """The one thing that helps most now."""
    if wrong := [name for name, state in found["connectors"].items() if state != "running"]:
        return f"`{goodbot} doctor` says what is wrong with {wrong[0]}"
    if found["off"] or found["paused"]:
        return f"`{goodbot} resume` lets it learn again"
    if found["training"]:
        return f"`{goodbot} status` shows how far it is"
    if found["comparison"]:
        return f"`{goodbot} compare` asks which answers you like better"
    if found["ratings"] >= found["needed"]:
        return f"`{goodbot} train` trains now, without waiting"
    more = f"; `{goodbot} why` shows what it has learnt" if found["version"] else ""
    return f"talk to it and rate its answers: `{goodbot} chat`{more}"


def _globals(arguments: argparse.Namespace) -> list[str]:
    other = ["--config", str(arguments.config)] if arguments.config else []
    home = [] if arguments.home == config.default_home() else ["--home", str(arguments.home)]
    return [*home, *other]


def _program(arguments: argparse.Namespace) -> str:
    """How this goodbot is called: whoever has named a directory is not sent to another one."""
    import shlex

    return shlex.join(["goodbot", *_globals(arguments)])


def _silent(progress: Mapping[str, Any]) -> None:
    """Nothing trains for it."""
