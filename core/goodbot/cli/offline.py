# SPDX-License-Identifier: Apache-2.0
"""A command without a daemon: take the lock, open the store, do it, let go."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from goodbot import config
from goodbot.api.commands import find
from goodbot.api.control import Progress, unheard
from goodbot.api.plugins import PluginHost, PluginInfo
from goodbot.api.texts.terminal import phrase, told_here
from goodbot.base.errors import ConfigError, MissingExtraError, UsageError
from goodbot.commands.state import STOPPED
from goodbot.commands.status import plugged_in
from goodbot.config.layout import DATABASE
from goodbot.daemon.app import App, open_plugins
from goodbot.daemon.control import execute as execute_locally
from goodbot.learning.idle import read_machine

_WITHOUT_MODEL = {"--dry-run", "few", "stop", "retry"}
"""Words behind `train` that look, or change what is stored."""


def execute(arguments: argparse.Namespace, args: list[str], progress: Progress = unheard) -> dict[str, Any]:
    """The same answer as the daemon's. Raises GoodbotError."""
    if arguments.command == "plugins":
        return _plugins(arguments, progress)
    if arguments.command == "status":
        settings = config.load(arguments.home, arguments.config)
        there = settings.store.url or (settings.home / DATABASE).exists()
        if not settings.model.path and not there:  # nothing is made
            data = {"model": None, "server": STOPPED, "pid": None, "home": str(settings.home)}
            return {"ok": True, "text": phrase("status_no_model"), "data": data}
    return asyncio.run(_execute(arguments, args, progress))


async def _execute(arguments: argparse.Namespace, args: list[str], progress: Progress) -> dict[str, Any]:
    settings = config.load(arguments.home, arguments.config)
    command = find(arguments.command)
    assert command is not None  # noqa: S101  the parser knows only these
    server = command.needs_server and not _WITHOUT_MODEL.intersection(args)
    return await run(settings, arguments.command, args, progress, server=server)


async def run(
    settings: config.Config, command: str, args: list[str], progress: Progress = unheard, *, server: bool
) -> dict[str, Any]:
    """One command on a goodbot that answers nobody; with `server` the model is up."""
    async with App.open(
        settings, open_plugins(settings), demo_model=True, serve=False, machine=read_machine()
    ) as app:
        if server:
            await app.start_server()
        watcher = asyncio.create_task(_watch(app, progress))
        try:
            result = await execute_locally(app, command, args, told_here())
        finally:
            watcher.cancel()
            await asyncio.gather(watcher, return_exceptions=True)
    return {"ok": True, "text": result.text, "data": dict(result.data)}


async def _watch(app: App, progress: Progress) -> None:
    while True:
        await app.clock.sleep(0.2)
        if app.scheduler.progress is not None:
            progress(app.scheduler.progress)


def _plugins(arguments: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    """What is plugged in, also where the config is wrong: who asks may be looking for just that."""
    try:
        return asyncio.run(_execute(arguments, [], progress))
    except (ConfigError, MissingExtraError) as error:
        found = plugged_in(_found(arguments.home, arguments.config))
        text = f"{found.text}\n\n{phrase('no_start', why=error)}"
        return {"ok": True, "text": text, "data": {**found.data, "config_error": str(error)}}


def _found(home: Path, path: Path | None) -> Sequence[PluginInfo]:
    """The plugins as far as the config can be read."""
    plugins = PluginHost()
    with contextlib.suppress(ConfigError):  # its names are looked at last: what was found is known
        plugins.load_entry_points(_readable(home, path).plugins.enable)
    return plugins.infos()


def _readable(home: Path, path: Path | None) -> config.Config:
    try:
        return config.load(home, path)
    except ConfigError:
        return config.Config(home=home)


def open_anyway(home: Path, path: Path | None = None) -> tuple[config.Config | None, PluginHost]:
    """The config, None where it cannot be read, and the plugins: then only goodbot's own."""
    try:
        settings = config.load(home, path)
        return settings, open_plugins(settings)
    except ConfigError:
        return None, open_plugins(config.Config(home=home))


def require_file(home: Path, path: Path | None = None) -> None:
    """Refuse what can only be done with a file, where a server has the data. Raises UsageError."""
    if _readable(home, path).store.url:
        raise UsageError(phrase("backup_server"))
