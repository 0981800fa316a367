# SPDX-License-Identifier: Apache-2.0
"""The connection to Discord's gateway: discord.py's WebSocket, and our own loop around it.

discord.py's `Client.connect` keeps a session in memory only, resumes after what it has received rather
than stored, tries for ever with a token that is refused by a proxy, and falls over its own feet when the
first handshake fails (it reads the number of a WebSocket that it never had).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable
from enum import Enum
from typing import Any, ClassVar

import discord
from discord.gateway import DiscordWebSocket, ReconnectWebSocket
from goodbot.api.connector import ConnectorHost
from goodbot.base.clock import growing
from goodbot.base.errors import FatalConnectorError, RetriableError
from yarl import URL

from goodbot_connectors.discord.api import Api
from goodbot_connectors.discord.config import TOKEN
from goodbot_connectors.discord.progress import Cursor, Progress
from goodbot_connectors.discord.room import HeldDispatches
from goodbot_connectors.kit.backoff import spread

logger = logging.getLogger(__name__)

Handler = Callable[[str, Any, Progress], None]
"""Takes a dispatch: its name, its data, and the session's progress, whose last number is its own."""

_CONNECT = 20.0
_RESUMABLE = 4000
"""The code with which we close: after 1000 Discord ends the session, and a restart would begin anew."""
_FAREWELL = 3.0
"""Seconds for the other side to close, too: on a dead network nobody does, and a stop must not wait."""
_LONGEST_PAUSE = 120.0
"""Seconds between two attempts: an account has 1,000 sessions a day."""
_LASTED = 60.0
"""A connection that held for so many seconds was a good one."""
_FORGOTTEN = (4003, 4007, 4009)
_PORTAL = "discord.com/developers/applications"
_FATAL = {
    4004: f"Discord does not take the token ({TOKEN}): reset it at {_PORTAL}, Bot",
    4010: "Discord refuses the connection (4010): please report it",
    4011: "the bot is on too many servers for one connection: remove it from some",
    4012: "this Discord library is too old for Discord: upgrade goodbot",
    4013: "Discord refuses the intents that were asked for (4013): please report it",
    4014: (
        f"the Message Content intent is off: switch it on at {_PORTAL}, Bot, Privileged Gateway "
        "Intents, or set message_content = false in [connectors.discord]"
    ),
}
"""Closes after which no reconnect helps."""


class _End(Enum):
    """How a connection ended, and the shortest pause before the next one, in seconds; it doubles."""

    DROPPED = 0.5
    """Discord wants another connection, or we have no room; the first one at once."""
    DOWN = 1.0
    OVER = 3.0
    """The session is gone; Discord wants one to five seconds before the next IDENTIFY."""


class _Socket(DiscordWebSocket):
    """discord.py's; its sequence number is what we have stored, for the heartbeat and for a RESUME."""

    progress: ClassVar[Progress]
    made: ClassVar[Callable[[DiscordWebSocket], None]]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        type(self).made(self)

    @property
    def sequence(self) -> int | None:
        return self.progress.stored or None

    @sequence.setter
    def sequence(self, value: int | None) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        self.progress.current = value or self.progress.current


class _Client(discord.Client):
    """What discord.py's WebSocket wants to know of a client. It caches nothing and asks nothing."""

    def __init__(self, api: Api, intents: int, parsers: dict[str, Callable[[Any], None]]) -> None:
        wanted = discord.Intents.none()
        wanted.value = intents
        super().__init__(intents=wanted, max_messages=None)
        self.loop = asyncio.get_running_loop()
        self.http = api.http
        self._connection.parsers = parsers

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """No pause: the loop has made one."""


class Gateway:
    """Keeps one session going and hands its dispatches on."""

    def __init__(
        self,
        host: ConnectorHost,
        api: Api,
        *,
        address: str,
        intents: int,
        handle: Handler,
        up: Callable[[bool], None],
        room: HeldDispatches,
    ) -> None:
        """`up` is told that dispatches flow, and whether the session began anew; `room` is for what came."""
        self._host, self._api, self._handle, self._up, self._room = host, api, handle, up, room
        self._default = URL(address) if address else DiscordWebSocket.DEFAULT_GATEWAY
        self.intents = intents
        self.progress = Progress()
        self.url = ""
        self._socket: DiscordWebSocket | None = None
        self._task: asyncio.Task[None] | None = None
        self._flows = False

    async def start(self, cursor: Cursor) -> None:
        """Connect, and go on with the session of `cursor`, if it names one; returns once events flow.

        Raises FatalConnectorError where a person must act, else RetriableError.
        """
        if cursor.session:
            self.progress, self.url = Progress(cursor.session, cursor.number), cursor.url
        first = asyncio.get_running_loop().create_future()
        self._task = self._host.spawn(self._run(first), "discord gateway")
        try:
            await asyncio.shield(first)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Disconnect, so that the session can be resumed; idempotent."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    async def _run(self, first: asyncio.Future[None]) -> None:
        ends: Counter[_End] = Counter()
        try:
            while True:
                await self._until_there_is_room()
                began = self._host.clock.monotonic()
                # The address of a session may be gone for good: every other time it is the common one.
                resuming, odd = bool(self.progress.session), ends[_End.DOWN] % 2
                end = await self._once(first, "" if odd else self.url)
                if self._host.clock.monotonic() - began > _LASTED:
                    ends.clear()
                elif end is not _End.DOWN:
                    del ends[_End.DOWN]  # Discord has answered: it is there
                if not first.done() and (ends or not resuming):
                    raise RetriableError("Discord's gateway cannot be reached")
                pause = 0.0
                if ends[end] or end.value >= 1:
                    pause = growing(ends[end], first=end.value, most=_LONGEST_PAUSE)
                ends[end] += 1
                if pause:  # every few hours Discord wants another connection, which is no trouble
                    self._host.trouble("the connection to Discord is down; it is tried again")
                await self._host.clock.sleep(spread(pause))
        except Exception as error:
            if first.done():
                raise
            first.set_exception(error)
            first.exception()  # whoever waits may be gone

    async def _until_there_is_room(self) -> None:
        """While much waits to be stored, Discord keeps for us what comes: a connection fills our memory."""
        if self._room.full:
            self._host.trouble("nothing can be stored; Discord is listened to again once that works")
            await self._room.wait()

    async def _once(self, first: asyncio.Future[None], url: str) -> _End:
        """One connection, to its end."""
        self._flows = False
        try:
            async with asyncio.timeout(_CONNECT):
                await self._connect(url)
            socket = self._socket
            assert socket is not None  # noqa: S101  it has just been made
            return await self._listen(socket, first)
        except ReconnectWebSocket as again:
            code = self._socket.socket.close_code if self._socket is not None else None
            if again.resume and code not in _FORGOTTEN:
                return _End.DROPPED
            self._forget()
            return _End.OVER
        except discord.ConnectionClosed as closed:
            if closed.code in _FATAL:
                raise FatalConnectorError(_FATAL[closed.code]) from None
            self._forget()
            return _End.OVER
        except FatalConnectorError:  # a proxy that cannot be used
            raise
        except Exception as error:  # no network, a proxy's page, bytes that are no zlib
            logger.info("discord: the gateway: %s", type(error).__name__)
            return _End.DOWN
        finally:
            await self._close()

    async def _listen(self, socket: DiscordWebSocket, first: asyncio.Future[None]) -> _End:
        """Until there is no room for more; raises how else it ends."""
        while not self._room.full:
            if self._flows:
                await socket.poll_event()
            else:
                async with asyncio.timeout(_CONNECT):
                    await socket.poll_event()
            if self._flows and not first.done():
                first.set_result(None)
        if not first.done():  # it is there: it has told more than we can store
            first.set_result(None)
        return _End.DROPPED

    async def _connect(self, url: str) -> None:
        """Open the WebSocket and send RESUME or IDENTIFY."""
        resume = bool(self.progress.session)
        if not resume:
            self.progress = Progress()
        progress = self.progress
        parts = {"progress": progress, "made": staticmethod(self._made)}
        parsers = _Parsers(lambda name, data: self._dispatch(name, data, progress))
        await type("Socket", (_Socket,), parts).from_client(
            _Client(self._api, self.intents, parsers),
            initial=True,
            session=progress.session or None,
            gateway=URL(url) if resume and url else self._default,
            resume=resume,
        )

    def _made(self, socket: DiscordWebSocket) -> None:
        """From now on it is to be closed, also if it never says hello."""
        self._socket = socket

    def _dispatch(self, name: str, data: Any, progress: Progress) -> None:
        if name == "READY":
            assert self._socket is not None  # noqa: S101
            progress.session = self._socket.session_id or ""
            self.url = str(self._socket.gateway)
        if name in ("READY", "RESUMED"):
            self._flows = True
            self._host.trouble("")
            logger.info("discord: %s", "connected" if name == "READY" else "connected again")
            self._up(name == "READY")
        try:
            self._handle(name, data, progress)
        except Exception:
            logger.exception("discord: a dispatch could not be taken in")
        progress.settle()

    def _forget(self) -> None:
        """The session is gone: what came in it and is not stored yet goes on being worked on."""
        self.progress, self.url = Progress(), ""

    async def _close(self) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_FAREWELL):
                    await socket.close(_RESUMABLE)


class _Parsers(dict[str, Callable[[Any], None]]):
    """discord.py looks a dispatch's name up among its parsers: every name leads to us."""

    def __init__(self, take: Callable[[str, Any], None]) -> None:
        super().__init__()
        self._take = take

    def __missing__(self, name: str) -> Callable[[Any], None]:
        return lambda data: self._take(name, data)
