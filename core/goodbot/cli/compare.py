# SPDX-License-Identifier: Apache-2.0
"""`goodbot compare`: answers the open question in a terminal, or shows two versions side by side."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from goodbot.api.commands import as_typed
from goodbot.base.printing import print_answer, say
from goodbot.cli.client import ask


def main(arguments: argparse.Namespace) -> int:
    """Show what `/rl compare` shows; where a person is there, ask until nothing is open."""
    answer = _call(arguments, arguments.words or ())
    _print(answer, as_json=arguments.json)
    if arguments.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return 0
    while (question := answer["data"].get("question")) and (word := _asked(question["choices"])):
        answer = _call(arguments, [str(question["id"]), word])
        _print(answer)
    return 0


def _print(answer: Mapping[str, Any], *, as_json: bool = False) -> None:
    print_answer({**answer, "text": as_typed(answer["text"], "goodbot ")}, as_json=as_json)


def _asked(choices: Sequence[str]) -> str:
    """What the person says; empty: another time."""
    while True:
        say(f"\n{', '.join(choices)}? (Enter: later) ", end="", flush=True)
        word = sys.stdin.readline().strip().casefold()
        if not word or word in choices:
            return word


def _call(arguments: argparse.Namespace, words: Sequence[str]) -> Mapping[str, Any]:
    """Ask the daemon; without one this process does it, with the model where versions are to answer."""
    args = list(words)
    return ask(arguments.home, "compare", args, lambda: _alone(arguments, args))


def _alone(arguments: argparse.Namespace, words: list[str]) -> dict[str, Any]:
    import asyncio

    from goodbot import config
    from goodbot.cli import offline

    settings = config.load(arguments.home, arguments.config)
    return asyncio.run(offline.run(settings, "compare", words, server=len(words) > 2))
