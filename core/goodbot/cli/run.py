# SPDX-License-Identifier: Apache-2.0
"""`goodbot run`: the daemon in the foreground, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from goodbot import config
from goodbot.api.sentences import version, words
from goodbot.api.texts import ENGLISH, commas, explained, reworded
from goodbot.api.texts.terminal import here, phrase, sentences, speaking
from goodbot.base import cage, log
from goodbot.base.clock import SystemClock
from goodbot.base.descriptors import raise_limit
from goodbot.base.errors import BusyError, GoodbotError, UsageError
from goodbot.base.printing import say
from goodbot.cli.service.supervision import Supervision
from goodbot.config.file import ConfigFile
from goodbot.config.lock import CONTROL_SOCKET, HomeLock, prepare_home, socket_path
from goodbot.config.secrets import SecretStore
from goodbot.conversation.connectors import CONNECTING
from goodbot.conversation.notifications import progress
from goodbot.daemon.app import App, open_plugins
from goodbot.daemon.control import ControlSocket
from goodbot.daemon.wiring import choose
from goodbot.inference.models.directory import DEMO
from goodbot.learning.idle import read_machine

logger = logging.getLogger(__name__)

_T = TypeVar("_T")
_LAST_WORDS_SECONDS = 2.0
_MOMENT_SECONDS = 10.0
_CONNECT_SECONDS = 5.0
_STEP = 0.1
_LOCAL = "teams"
"""The connector that `--insecure-local` is for."""


def main(arguments: argparse.Namespace) -> int:
    """Run until told to stop; everything acknowledged is durable when this returns."""
    os.umask(0o077)
    cage.keep_to_itself()
    raise_limit()
    log.to_stderr()
    asyncio.run(_run(arguments))
    return 0


class _NeverUpError(Exception):
    """The App could not start at all."""

    def __init__(self, why: GoodbotError) -> None:
        self.why = why


async def _run(arguments: argparse.Namespace) -> None:
    settings = load(arguments)
    if arguments.demo_model and settings.model.path not in ("", DEMO):
        raise UsageError(phrase("run_demo", model=settings.model.path))
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    http = settings.http
    supervision = Supervision(http, home=settings.home)
    lock = HomeLock(settings.home)  # held from life to life: no other process gets in between
    before: config.Config | None = None
    written = contextlib.ExitStack()  # puts the file back as it was before the model was set in it
    try:
        prepare_home(settings.home)
        await _take(lock, settings.home, stop)  # before the port: who is second is told whose it is
        await supervision.start()
        while True:
            settings = replace(settings, http=http)  # the one server's, from life to life
            demo = arguments.demo_model and not settings.model.path
            try:
                again = await _live(settings, demo, lock, stop, supervision)
            except _NeverUpError as never:
                if before is None:
                    raise never.why from None
                if settings.model.path == before.model.path:
                    logger.error("back to the settings before; with these it does not run: %s", never.why)
                    settings, before = before, None
                    with contextlib.suppress(GoodbotError):  # not over what was written meanwhile
                        written.close()  # the model was not at fault
                else:  # where more was changed, the next try may go back to all of it
                    logger.error("back to the model before; this one does not run: %s", never.why)
                    settings = _as_asked(arguments, _set_model(settings, before.model.path, written))
                continue
            if not again:
                return
            written.pop_all()
            before, settings = settings, _anew(arguments, settings)
    finally:
        await supervision.stop()
        lock.release()


async def _take(lock: HomeLock, home: Path, stop: asyncio.Event) -> None:
    """Get the directory, also where a command (`goodbot status`) has it for a moment. Raises BusyError."""
    clock, waits = SystemClock(), False
    end = clock.monotonic() + _MOMENT_SECONDS
    while True:
        try:
            return lock.acquire()
        except BusyError as busy:
            if stop.is_set() or clock.monotonic() > end or _takes_commands(home):
                raise
            if not waits:
                logger.info("waiting: %s", busy)
            waits = True
        await clock.sleep(_STEP)


def _takes_commands(home: Path) -> bool:
    """Whether whoever has the directory is a goodbot that runs."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
        return asked.connect_ex(str(socket_path(home, CONTROL_SOCKET))) == 0


def load(arguments: argparse.Namespace) -> config.Config:
    """The config, with what holds for this run alone. Raises ConfigError, UsageError."""
    return _as_asked(arguments, config.load(arguments.home, arguments.config))


def _anew(arguments: argparse.Namespace, before: config.Config) -> config.Config:
    """What the file says now; where it is wrong, what it said before: who asked for it is far away."""
    try:
        return load(arguments)
    except GoodbotError as error:
        logger.error("the settings stay as they were: %s", error)
        return before


def _as_asked(arguments: argparse.Namespace, settings: config.Config) -> config.Config:
    if not arguments.insecure_local:
        return settings
    if _LOCAL not in settings.connectors:
        raise UsageError(phrase("run_insecure", name=_LOCAL))
    section = {**settings.connectors[_LOCAL], "insecure_local": True}
    return replace(settings, connectors={**settings.connectors, _LOCAL: section})


async def _live(
    settings: config.Config, demo: bool, lock: HomeLock, stop: asyncio.Event, supervision: Supervision
) -> bool:
    """Be one App until it is to stop; True when another is to take over with the config as it is then."""
    control = ControlSocket(settings.home)
    await control.start()  # at once, so that whoever asks is told that it starts
    try:
        return await _life(settings, demo, lock, stop, supervision, control)
    finally:
        await control.stop()


async def _life(
    settings: config.Config,
    demo: bool,
    lock: HomeLock,
    stop: asyncio.Event,
    supervision: Supervision,
    control: ControlSocket,
) -> bool:
    try:
        plugins = open_plugins(settings)
        names = [name for spec in plugins.connectors().values() for name in spec.secrets]
        environ = SecretStore(settings.home).environment(names)
        log.to_stderr(settings.log.level, settings.log.format, [environ.get(name, "") for name in names])
        chosen = choose(settings, plugins, demo_model=demo)
    except GoodbotError as error:
        raise _NeverUpError(error) from error
    control.model = chosen.model.name
    app: App | None = None
    async with contextlib.AsyncExitStack() as life:
        try:
            try:
                making = App.made(chosen, lock=lock, machine=read_machine(), http=supervision.http)
                control.app = app = await _unless(stop, life.enter_async_context(making))
                if app is not None and not stop.is_set():
                    await _unless(stop, app.serve(behind=True))
                if app is not None and not stop.is_set():
                    control.ready()
                    supervision.begun(app)
                    await _unless(stop, _up(app))
            except GoodbotError as error:
                raise _NeverUpError(error) from error
            if app is not None and not stop.is_set():
                # What was imported and set up stays: no collection of garbage holds everybody up for it.
                gc.unfreeze()  # what the App before this one has left
                gc.collect()
                gc.freeze()
                supervision.up(app, await _greet(app))
                await _either(stop, app.restart)
        finally:
            switches = app is not None and app.restart.is_set()
            if switches and not stop.is_set():
                supervision.restarting()
            else:
                supervision.stopping()
            # Whoever asked for the switch is still told what came of it.
            await control.stop(grace=_LAST_WORDS_SECONDS if switches else 0.0)
    return switches and not stop.is_set()


async def _either(*events: asyncio.Event) -> None:
    """Until one of them is set."""
    waits = [asyncio.create_task(event.wait()) for event in events]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()


def _set_model(settings: config.Config, path: str, written: contextlib.ExitStack) -> config.Config:
    """The config with the model that it had before, in the file too, until `written` is closed."""
    file = ConfigFile(settings.home, settings.path)
    written.callback(file.restore, file.before)
    if path:
        file.set("model.path", path)
    else:
        file.remove("model.path")
    return file.save()


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, _T]) -> _T | None:
    """Start, but let a signal interrupt it, which makes it None: loading a model can take minutes."""
    starting = asyncio.create_task(work)
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait({starting, stopped}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not starting.done():
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await starting
        return None
    return await starting


async def _up(app: App) -> None:
    """Until the model answers; platforms get a moment more, so that the greeting names them.

    Raises ServerError where the model does not come up.
    """
    await app.loaded()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_CONNECT_SECONDS):
            await app.connected()


async def _greet(app: App) -> str:
    """Say who answers where; a log of JSON lines gets it as lines of its own. Returns it."""
    active = await app.registry.active()
    standing = await app.scheduler.standing()
    waits = progress(standing.available, await app.scheduler.needed())
    machines = app.config.log.format == "json"
    with speaking(ENGLISH) if machines else contextlib.nullcontext():
        greeting, *more = _greeting(app, active, words(waits, language=here()))
        lines = [sentences(greeting, phrase("run_ends")), *more]
    for line in lines:
        if machines:
            logger.info("%s", line)
        else:
            say(line, file=sys.stderr, flush=True)
    return greeting


def _greeting(app: App, active: int, waits: str) -> list[str]:
    """Who answers where, then what does not."""
    names = sorted(set(app.connectors.running) - set(app.connectors.problems))
    language = here()
    greeting = phrase(
        "run_answers",
        model=app.model.name,
        places=commas(language, *names),
        backend=app.backend.name,
        version=version(active, language),
        more=waits,
    )
    wrong = [
        explained(name, error, language)
        if error == CONNECTING or "." in name
        else phrase("run_not_running", name=name, why=error)
        for name, error in app.connectors.problems.items()
    ]
    trouble = reworded(app.server.trouble(), language)
    return [greeting, *wrong, *([trouble] if trouble else [])]
