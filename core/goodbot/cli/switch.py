# SPDX-License-Identifier: Apache-2.0
"""`goodbot model switch NAME`: another base model, taught what was rated.

See `goodbot.learning.model_switch`.

A running daemon does it while it answers, and starts again on the new model; without one this
process does it. Ctrl-C leaves everything as it was.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import sys
import time
from pathlib import Path
from typing import Any

from goodbot import config
from goodbot.api import control
from goodbot.api.progress import progress_line
from goodbot.api.texts.terminal import phrase
from goodbot.base.errors import ConfigError, GoodbotError, UsageError
from goodbot.base.printing import print_answer, say
from goodbot.cli.asking import agrees
from goodbot.cli.model import StoppedError, fetch
from goodbot.config import ModelConfig
from goodbot.inference import models

_COMES_UP_SECONDS = 900.0
_LOOK_SECONDS = 0.2


def main(arguments: argparse.Namespace) -> int:
    """Switch, and wait until the new model answers; 1 when it was not switched."""
    if not arguments.name:
        raise UsageError(phrase("switch_which"))
    reference = fetch(arguments)
    say = _quietly if arguments.json else _say
    say(phrase("switch_begins", model=reference))
    answer = _switch(arguments, "to", reference)
    if not answer["data"]["done"] and _anyway(arguments, answer["data"]["reason"]):
        answer = _switch(arguments, "bare", reference)
    if answer["data"]["done"] and answer["daemon"]:
        say(phrase("switch_starts", model=answer["data"]["model"]))
        _wait_until_up(arguments.home, answer["data"])
    print_answer(answer, as_json=arguments.json)
    return 0 if answer["data"]["done"] else 1


def _switch(arguments: argparse.Namespace, how: str, reference: str) -> dict[str, Any]:
    """Ask the daemon, or do it here; `daemon` says which."""
    args = ["wait", how, reference]
    with progress_line(quiet=arguments.json) as progress:
        try:
            answer = control.call(arguments.home, "switch", args, progress)
            if answer is not None:
                return {**answer, "daemon": True}
            answer = asyncio.run(_offline(arguments, args, progress))
            return {**answer, "daemon": False}
        except KeyboardInterrupt:
            stopped = control.call(arguments.home, "switch", ["stop"], progress)
            if stopped is not None and not stopped["data"]["stopped"]:
                raise StoppedError(phrase("switch_late")) from None
            raise StoppedError(phrase("switch_stopped")) from None


async def _offline(
    arguments: argparse.Namespace, args: list[str], progress: control.Progress
) -> dict[str, Any]:
    from goodbot.cli import offline

    settings = config.load(arguments.home, arguments.config)
    try:
        if settings.model.path:
            models.resolve(settings.model.path, {}, demo=False)
    except ConfigError:  # the old model's files are gone; what it was rated for is not
        settings = dataclasses.replace(settings, model=ModelConfig())
    return await offline.run(settings, "switch", args, progress, server=False)


def _anyway(arguments: argparse.Namespace, reason: str) -> bool:
    if arguments.anyway:
        return True
    if arguments.json:
        return False
    _say(phrase("switch_not", why=reason))
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        _say(phrase("switch_anyway"))
        return False
    return agrees(phrase("switch_ask"), yes=False)


def _wait_until_up(home: Path, switched: dict[str, Any]) -> None:
    """Until the daemon answers on the new model. Raises GoodbotError when it went back to the old."""
    began = time.monotonic()
    while time.monotonic() - began < _COMES_UP_SECONDS:
        time.sleep(_LOOK_SECONDS)
        try:
            status = control.call(home, "status", [])
        except GoodbotError:  # it ended while it was asked
            continue
        if status is None or status["data"]["started_at"] == switched["started_at"]:
            continue  # not there yet, or not yet gone
        if status["data"]["server"] == "starting":
            continue
        if status["data"]["model"] == switched["model"]:
            return
        raise GoodbotError(phrase("switch_back", model=switched["model"], other=status["data"]["model"]))
    raise GoodbotError(phrase("switch_down"))


def _say(text: str) -> None:
    say(text, file=sys.stderr, flush=True)


def _quietly(text: str) -> None:
    """For programs."""
