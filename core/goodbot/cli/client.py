# SPDX-License-Identifier: Apache-2.0
"""Commands that the daemon runs.

With no daemon running, this process takes the state directory's lock and does it itself.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from goodbot.api.commands import find
from goodbot.api.control import Progress, call, unheard
from goodbot.api.progress import progress_line
from goodbot.api.texts.terminal import phrase, sentences
from goodbot.base.errors import BusyError, ConfigError, GoodbotError
from goodbot.base.printing import print_answer, say
from goodbot.cli.asking import agrees, somebody
from goodbot.cli.words import typed

_BETWEEN_SECONDS = 20.0
"""How long a goodbot that has the directory may take no commands: it comes up, or ends."""
_STEP = 0.25


def main(arguments: argparse.Namespace) -> int:
    """Run the command and print its answer."""
    command: str = arguments.command
    args = typed(arguments)
    if question := _question(arguments, args):
        if not agrees(question, yes=arguments.yes):
            say(phrase("not_deleted" if command == "forget" else "not_changed"))
            return 1
        args.append("yes")
    trains = command == "train" and not args
    args += _options(arguments)
    dry = trains and arguments.dry_run
    waits = trains and not (arguments.no_wait or dry)
    if trains and not dry and not _wants_it(arguments):
        say(phrase("not_trained"))
        return 1
    if dry:
        args.append("--dry-run")
    if waits or dry:
        args.append("wait")
    with progress_line(quiet=arguments.json, figures="--details" in args) as progress:
        try:
            answer = ask(arguments.home, command, args, lambda: _alone(arguments, args, progress), progress)
        except KeyboardInterrupt:
            if waits:
                raise StillTrainingError from None
            raise
    print_answer(answer, as_json=arguments.json)
    if dry and not answer["data"]["trains"]:
        return 2
    if "config_error" in answer["data"]:
        return ConfigError.exit_code
    failed = waits and answer["data"].get("state", "activated") != "activated"
    return 1 if failed else 0


def _alone(arguments: argparse.Namespace, args: list[str], progress: Progress = unheard) -> dict[str, Any]:
    from goodbot.cli.offline import execute

    return execute(arguments, args, progress)


def _options(arguments: argparse.Namespace) -> list[str]:
    """Those that the daemon is told of."""
    if arguments.command == "export":
        return _as_typed(arguments)
    since, details = getattr(arguments, "since", None), getattr(arguments, "details", False)
    return [*(["since", since] if since else []), *(["--details"] if details else [])]


def _as_typed(arguments: argparse.Namespace) -> list[str]:
    """All options of a command, as they were typed."""
    command = find(arguments.command)
    words: list[str] = []
    for one in command.words("terminal") if command else ():
        said: str | bool | None = getattr(arguments, one.name.lstrip("-"))
        words += [one.name, said] if isinstance(said, str) else [one.name] if said else []
    return words


def _question(arguments: argparse.Namespace, args: Sequence[str]) -> str:
    """What is asked before the command is done; empty: nothing."""
    if arguments.command == "forget":
        from goodbot.config.layout import beside

        copies = ", ".join(map(str, beside(arguments.home)))
        also = phrase("forget_copies", paths=copies) if copies else ""
        return sentences(phrase("forget_sure", person=arguments.person), also)
    if arguments.command == "reset" or (arguments.command, *args) == ("rollback", "all"):
        return phrase("reset_sure")
    return ""


def _wants_it(arguments: argparse.Namespace) -> bool:
    """Whether a person in a terminal means it, who has few ratings; who is no person does."""
    if arguments.yes or arguments.json or not somebody():
        return True
    words = ["few"]
    answer = ask(arguments.home, "train", words, lambda: _alone(arguments, words))
    return not answer["data"].get("asked") or agrees(answer["text"], yes=False)


class StillTrainingError(GoodbotError):
    """Ctrl-C ended the waiting, not the training."""

    exit_code = 130

    def __init__(self) -> None:
        super().__init__(phrase("still_training"))


def ask(
    home: Path,
    command: str,
    args: list[str],
    alone: Callable[[], dict[str, Any]],
    progress: Progress = unheard,
) -> dict[str, Any]:
    """The daemon's answer, or what `alone` does while none runs. Raises GoodbotError.

    Between its lock and its socket a goodbot can be asked by nobody: it is waited for.
    """
    end = time.monotonic() + _BETWEEN_SECONDS
    while True:
        if (answer := call(home, command, args, progress)) is not None:
            return answer
        try:
            return alone()
        except BusyError as error:
            if time.monotonic() > end:
                said = {"pid": error.pid} if error.pid else {}
                busy = phrase("busy_pid" if error.pid else "busy_other", home=home, **said)
                raise BusyError(busy, pid=error.pid) from None
        time.sleep(_STEP)
