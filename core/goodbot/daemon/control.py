# SPDX-License-Identifier: Apache-2.0
"""The daemon's control socket: one command a connection, JSON lines, on a 0600 Unix socket.

Request: `{"command": "status", "args": ["…"], "language": "de"}`, or an empty language. Answers:
`{"progress": {…}}` while a training that was asked for with `wait` runs, then one
`{"ok": true, "text": "…", "data": {…}}` or `{"ok": false, "error": "…", "exit_code": 1}`. Whoever can open
the socket is an owner. It listens from when the daemon has the directory: while that still starts, `status`
says so and the rest waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from goodbot.api.control import FEATURE
from goodbot.api.events import ChannelKind, ChannelRef, CommandEvent, OrderKey, UserRef
from goodbot.api.texts import language_of, reworded
from goodbot.base.clock import Clock, SystemClock
from goodbot.base.descriptors import ONE_A_TURN, queue
from goodbot.base.errors import BusyError, GoodbotError, UsageError, unexpected
from goodbot.base.suggest import TERMINAL
from goodbot.base.tasks import end_tasks
from goodbot.base.text import clean
from goodbot.commands.base import Result
from goodbot.config.lock import CONTROL_SOCKET, socket_path
from goodbot.conversation import sanitize
from goodbot.daemon.app import App

logger = logging.getLogger(__name__)

_MAX_LINE = 1024 * 1024
_READ_SECONDS = 10.0
_STARTS_SECONDS = 60.0
"""How long a command waits for a goodbot that starts; the command line gives up after 120."""


def local_channel(account: str = "local") -> ChannelRef:
    """The terminal's one conversation."""
    return ChannelRef(connector=TERMINAL, account=account, id="local", kind=ChannelKind.PRIVATE)


def local_user(language: str = "") -> UserRef:
    """The person at the terminal."""
    return UserRef(connector=TERMINAL, account="local", id=str(os.geteuid()), language=language)


async def execute(app: App, command: str, args: Sequence[str], language: str = "") -> Result:
    """Run one command as the local owner; `feature NAME …` is one's own. Raises GoodbotError.

    The answer is in that language, or in that of `[serving] language`.
    """
    if command == FEATURE and args:
        return await app.manager.features.asked(*args)
    event = sanitize.storable(
        CommandEvent(
            event_id=f"cli-{uuid.uuid4().hex}",
            order=OrderKey(int(app.clock.now() * 1000), ours=True),
            user=local_user(language),
            channel=local_channel(),
            name=command,
            args=" ".join(args),
        )
    )
    event = sanitize.read_by(event, app.config.serving.language)
    result = await app.commands.execute(event, direct=True)
    while result.later is not None:
        result = await result.later()
    return result


class ControlSocket:
    """Serves the command line; until `ready` it answers for a goodbot that starts."""

    def __init__(self, home: Path, *, clock: Clock | None = None, patience: float = _STARTS_SECONDS) -> None:
        self._home = home
        self._clock = clock or SystemClock()
        self._patience = patience
        self._began = self._clock.now()
        self._ready = asyncio.Event()
        self.model: str | None = None
        """The base model of the goodbot that starts, as soon as that is known."""
        self.app: App | None = None
        """The goodbot behind it, as soon as there is one."""
        self._path: Path = socket_path(home, CONTROL_SOCKET)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen. A socket file left by a killed daemon is ours to replace: we hold the lock."""
        self._path.unlink(missing_ok=True)
        umask = os.umask(0o177)
        try:
            self._server = await asyncio.start_unix_server(
                self._accept, self._path, limit=_MAX_LINE, backlog=ONE_A_TURN
            )
            queue(self._server)
        finally:
            os.umask(umask)

    def ready(self) -> None:
        """The App has started: it takes commands from now on, and those that waited."""
        self._ready.set()

    async def stop(self, *, grace: float = 0.0) -> None:
        """Stop listening; hang up after `grace` seconds on who is still being answered. Idempotent."""
        if self._server is not None:
            self._server.close()
            self._server = None
            self._path.unlink(missing_ok=True)
        if self._tasks and grace:
            await asyncio.wait(self._tasks, timeout=grace)
        await end_tasks(*self._tasks)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """The tasks are ours, not the stream's, so that a cancelled one is no error to it."""
        task = asyncio.create_task(self._serve(reader, writer), name="a command")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: writer.close())

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            try:
                async with asyncio.timeout(_READ_SECONDS):
                    request = json.loads(await reader.readline())
                answer = await self._answer(request, writer)
            except (TimeoutError, ValueError, RecursionError):
                answer = _failed(UsageError("that is no request of this protocol"))
            await _send(writer, answer)

    async def _answer(self, request: Any, writer: asyncio.StreamWriter) -> dict[str, Any]:
        language = ""
        try:
            command, args, language = _parse(request)
            if command == "status" and not self._ready.is_set():
                return {"ok": True, **self._starting()}
            app = await self._started()
            language = language or app.config.serving.language
            async with _progress(app, writer, wanted="wait" in args):
                result = await execute(app, command, args, language)
        except GoodbotError as error:
            return _failed(error, language)
        except Exception as error:
            logger.exception("a command failed")
            return _failed(GoodbotError(unexpected(error)))
        return {"ok": True, "text": result.text, "data": result.data}

    def _starting(self) -> dict[str, Any]:
        """What `status` says of a goodbot that does not take commands yet."""
        seconds = self._clock.now() - self._began
        starting = f"starting: {_doing(self.app)}, {seconds:.0f} s"
        data = {
            "server": "starting",
            "starting": starting,
            "pid": os.getpid(),
            "home": str(self._home),
            "model": self.model,
            "started_at": self._began,
            "uptime": seconds,
        }
        return {"text": starting, "data": data}

    async def _started(self) -> App:
        """The App, once it takes commands. Raises BusyError when that takes too long."""
        try:
            async with asyncio.timeout(self._patience):
                await self._ready.wait()
        except TimeoutError:
            raise BusyError(
                f"goodbot is still starting ({_doing(self.app)}): try again when `goodbot status` "
                "says that it answers",
                pid=os.getpid(),
            ) from None
        assert self.app is not None  # noqa: S101  set before `ready`
        return self.app


def _doing(app: App | None) -> str:
    """What a goodbot that starts is at."""
    return "opening the data" if app is None else "getting ready"


def _failed(error: GoodbotError, language: str = "") -> dict[str, Any]:
    return {"ok": False, "error": reworded(error, language), "exit_code": error.exit_code}


def _parse(request: Any) -> tuple[str, list[str], str]:
    match request:
        case {"command": str(command)}:
            args: Any = request.get("args", [])
            language = language_of(str(request.get("language", "")))
            if isinstance(args, list) and all(isinstance(word, str) for word in args):  # pyright: ignore[reportUnknownVariableType]
                return clean(command), [clean(str(word)) for word in args], language  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case _:
            pass
    raise UsageError("a request names a command and its args")


@contextlib.asynccontextmanager
async def _progress(app: App, writer: asyncio.StreamWriter, *, wanted: bool):
    """While the body runs, pass on what the trainer says."""

    async def report() -> None:
        shown: Any = None
        while True:
            await app.clock.sleep(0.2)
            if app.scheduler.progress is not None and app.scheduler.progress != shown:
                shown = app.scheduler.progress
                await _send(writer, {"progress": dict(shown)})

    task = asyncio.create_task(report(), name="progress") if wanted else None
    try:
        yield
    finally:
        await end_tasks(task)


async def _send(writer: asyncio.StreamWriter, line: dict[str, Any]) -> None:
    writer.write(json.dumps(line, default=str).encode() + b"\n")
    await writer.drain()
