"""`goodbot run`: the daemon in the foreground, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sys

from goodbot import config, log
from goodbot.app import App, open_plugins
from goodbot.control import ControlSocket
from goodbot.dispatcher import progress
from goodbot.secrets import SecretStore


def main(arguments: argparse.Namespace) -> int:
    """Run until told to stop; everything acknowledged is durable when this returns."""
    os.umask(0o077)
    log.to_stderr()
    asyncio.run(_run(arguments))
    return 0


async def _run(arguments: argparse.Namespace) -> None:
    settings = config.load(arguments.home, arguments.config)
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    plugins = open_plugins(settings)
    names = [name for spec in plugins.connectors().values() for name in spec.secrets]
    environ = SecretStore(settings.home).environment(names)
    log.to_stderr(secrets=[environ.get(name, "") for name in names])
    app = App(settings, plugins, demo_model=arguments.demo_model)
    control = ControlSocket(app)
    try:
        await _unless(stop, app)
        if not stop.is_set():
            await control.start()
            await _greet(app)
            await stop.wait()
    finally:
        await control.stop()
        await app.stop()


async def _unless(stop: asyncio.Event, app: App) -> None:
    """Start, but let a signal interrupt it: loading a model can take minutes."""
    starting = asyncio.create_task(app.start())
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait({starting, stopped}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not starting.done():
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await starting
    elif starting.exception() is not None:
        await starting


async def _greet(app: App) -> None:
    active = await app.registry.active()
    standing = await app.scheduler.standing()
    names = sorted(set(app.connectors.running) - set(app.connectors.errors))
    print(
        f"{app.model.name} answers on {', '.join(names)} ({app.backend.name}, "
        f"{f'v{active}' if active else 'base model'}); "
        f"{progress(standing.available, app.config.training.min_ratings)} Ctrl-C stops.",
        file=sys.stderr,
        flush=True,
    )
    for name, error in app.connectors.errors.items():
        print(f"{name} is not running: {error}", file=sys.stderr, flush=True)
