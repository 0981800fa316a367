"""A command without a daemon: take the lock, open the store, do it, let go."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
from typing import Any

from goodbot import config
from goodbot.app import App, open_plugins
from goodbot.cli.client import Progress
from goodbot.commands import TABLE, find
from goodbot.control import execute as execute_locally


def execute(arguments: argparse.Namespace, args: list[str], progress: Progress) -> dict[str, Any]:
    """The same answer as the daemon's. Raises GoodbotError."""
    answer = asyncio.run(_execute(arguments, args, progress))
    return _at_rest(answer) if arguments.command == "status" else answer


async def _execute(
    arguments: argparse.Namespace, args: list[str], progress: Progress
) -> dict[str, Any]:
    settings = config.load(arguments.home, arguments.config)
    command = find(TABLE, arguments.command)
    assert command is not None  # noqa: S101  the parser knows only these
    async with App.open(settings, open_plugins(settings), demo_model=True, serve=False) as app:
        if command.needs_server:
            await app.start_server()
        watcher = asyncio.create_task(_watch(app, progress))
        try:
            result = await execute_locally(app, arguments.command, args)
        finally:
            watcher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watcher
    return {"ok": True, "text": result.text, "data": dict(result.data)}


async def _watch(app: App, progress: Progress) -> None:
    while True:
        await app.clock.sleep(0.2)
        if app.trainer.progress is not None:
            progress(app.trainer.progress)


def _at_rest(answer: dict[str, Any]) -> dict[str, Any]:
    """`status` of a bot that does not run: nothing is up, and nobody is starting it."""
    first, *rest = answer["text"].splitlines()
    lines = [
        "goodbot is not running: `goodbot run` starts it",
        first.removesuffix(" answers") + " would answer",
        *(line for line in rest if not line.startswith("the model is not running")),
    ]
    data = {**answer["data"], "server": "stopped", "pid": None, "uptime": None}
    return {**answer, "text": "\n".join(lines), "data": data}
