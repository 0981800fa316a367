# SPDX-License-Identifier: Apache-2.0
"""`goodbot` without a command: where one is, and what comes next."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any

from goodbot import config
from goodbot.api import control
from goodbot.api.sentences import version
from goodbot.api.texts import commas, explained, pauses
from goodbot.api.texts.terminal import here, phrase
from goodbot.base.columns import table
from goodbot.base.printing import say
from goodbot.base.suggest import TERMINAL
from goodbot.config.file import ConfigFile

_WAYS = {"alone_demo": "demo", "alone_init": "init", "alone_browser": "--browser", "alone_help": "--help"}
"""What somebody can do who has set nothing up: the key of its words, and what is typed."""


def main(arguments: argparse.Namespace) -> int:
    """Say it in a few lines; where nothing is set up and a person is there, set it up."""
    answer = control.call(arguments.home, "status", [])
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
        lines.append(phrase("alone_later", goodbot=goodbot))
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
        say("\n".join(_ways(_program(arguments))))
        return 0
    from goodbot.cli import init, parser

    return init.main(parser.parse([*_globals(arguments), "init"]))


def _at_rest(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """What `status` says while nothing runs. Raises GoodbotError."""
    from goodbot.cli import client, offline

    arguments.command = "status"
    alone = lambda: offline.execute(arguments, [])  # noqa: E731
    return client.ask(arguments.home, "status", [], alone)


def _ways(goodbot: str) -> list[str]:
    """What comes first where nothing is set up."""
    rows = {
        explained(phrase(key), "", here()).rstrip(): f"  {goodbot} {typed}" for key, typed in _WAYS.items()
    }
    return [phrase("alone_nothing"), *table(rows)]


def _resting(found: Mapping[str, Any], start: str, goodbot: str) -> list[str]:
    """`found` is the data of `status`."""
    if not found["model"]:
        return [phrase("alone_no_model"), phrase("setup_next", what=f"`{goodbot} init`")]
    return [phrase("alone_resting"), _counter(found), phrase("setup_next", what=f"`{start}`")]


def _running(found: Mapping[str, Any], goodbot: str) -> list[str]:
    if found["server"] == "starting" or "connectors" not in found:
        return [phrase("alone_starting"), phrase("setup_next", what=phrase("alone_wait", goodbot=goodbot))]
    who = version(0 if found["off"] else found["version"], here())
    places = [name for name, state in found["connectors"].items() if state == "running" and name != TERMINAL]
    runs = "alone_runs_on" if places else "alone_runs"
    state = phrase(
        runs, who=who, model=found["model"], **({"places": commas(here(), *places)} if places else {})
    )
    return [state, _counter(found), phrase("setup_next", what=_next(found, goodbot))]


def _counter(found: Mapping[str, Any]) -> str:
    """The ratings, and what the next training waits for where they are enough or something is in the way."""
    counted = {"ratings": found["ratings"], "needed": found["needed"]}
    if found["training"]:
        return phrase("alone_learns", **counted)
    if found["condition"]["name"] == "ratings":
        return phrase("alone_more", **counted, more=found["needed"] - found["ratings"])
    return phrase("alone_waits", **counted, why=found["next"])


def _next(found: Mapping[str, Any], goodbot: str) -> str:
    """The one thing that helps most now."""
    if wrong := [name for name, state in found["connectors"].items() if state != "running"]:
        return phrase("alone_doctor", goodbot=goodbot, name=wrong[0])
    if found["off"] or found["paused"]:
        return phrase("alone_resume", goodbot=goodbot)
    if found["training"]:
        return phrase("alone_progress", goodbot=goodbot)
    if found["comparison"]:
        return phrase("alone_compare", goodbot=goodbot)
    if found["ratings"] >= found["needed"]:
        return phrase("alone_train", goodbot=goodbot)
    why = phrase("alone_why", goodbot=goodbot) if found["version"] else ""
    return pauses(here(), phrase("alone_talk", goodbot=goodbot), why)


def _globals(arguments: argparse.Namespace) -> list[str]:
    other = ["--config", str(arguments.config)] if arguments.config else []
    home = [] if arguments.home == config.default_home() else ["--home", str(arguments.home)]
    return [*home, *other]


def _program(arguments: argparse.Namespace) -> str:
    """How this goodbot is called: whoever has named a directory is not sent to another one."""
    import shlex

    return shlex.join(["goodbot", *_globals(arguments)])
