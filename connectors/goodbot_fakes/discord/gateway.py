# SPDX-License-Identifier: Apache-2.0
"""The gateway: WebSockets with HELLO, IDENTIFY, heartbeats, RESUME, and what goes wrong with them.

discord.com/developers/docs/events/gateway
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Callable
from typing import Any

from aiohttp import WSMsgType, web
from goodbot.testing.patience import patience

from goodbot_fakes.discord import intents
from goodbot_fakes.discord.application import Application
from goodbot_fakes.discord.sessions import GatewaySession, GatewaySessions

Json = dict[str, Any]

HEARTBEAT, IDENTIFY, PRESENCE, VOICE, RESUME, RECONNECT = 1, 2, 3, 4, 6, 7
REQUEST_MEMBERS, INVALID_SESSION, HELLO, HEARTBEAT_ACK = 8, 9, 10, 11
NOT_AUTHENTICATED, AUTHENTICATION_FAILED, ALREADY_AUTHENTICATED = 4003, 4004, 4005
UNKNOWN_OPCODE, DECODE_ERROR, TIMED_OUT = 4001, 4002, 4009
INVALID_INTENTS, DISALLOWED_INTENTS = 4013, 4014
_UNRESUMABLE = (1000, 1001, TIMED_OUT)


class GatewaySocket:
    """One connection. Frames go out in the order in which they were put."""

    def __init__(self, request: web.Request, ws: web.WebSocketResponse, compress: str) -> None:
        self.ws = ws
        self._request = request
        self.session: GatewaySession | None = None
        self.code = 0
        """The code with which we have closed it."""
        self.heartbeats: list[int | None] = []
        """The sequence numbers that came with heartbeats: what the bot has received."""
        self._zlib = zlib.compressobj() if compress == "zlib-stream" else None
        self._queue = asyncio.Queue[Json | None]()

    def put(self, frame: Json) -> None:
        self._queue.put_nowait(json.loads(json.dumps(frame)))  # as it is now: payloads change

    async def send(self) -> None:
        """Send what is put, until the connection is gone."""
        while (frame := await self._queue.get()) is not None:
            text = json.dumps(frame, ensure_ascii=False)
            try:
                if self._zlib is None:
                    await self.ws.send_str(text)
                else:
                    packed = self._zlib.compress(text.encode())
                    await self.ws.send_bytes(packed + self._zlib.flush(zlib.Z_SYNC_FLUSH))
            except (ConnectionError, RuntimeError):
                return

    async def flushed(self) -> None:
        """Wait until all that was put is on its way."""
        while not self._queue.empty() and not self.ws.closed:
            await asyncio.sleep(0.001)

    def drop(self) -> None:
        """Break the connection off without a word."""
        if self._request.transport is not None:
            self._request.transport.abort()


class Gateway:
    """All connections. `url` is set once the server listens."""

    def __init__(self, application: Application, sessions: GatewaySessions, heartbeat: float) -> None:
        self.url = ""
        self.sockets: list[GatewaySocket] = []
        self.connections: list[str] = []
        """How each connection went on: `identify`, `resume`, `invalid`, or a close code."""
        self.beats: list[Callable[[int], None]] = []
        """Told of every heartbeat with a number: as far as the bot counts."""
        self.refuses = 0
        """An HTTP status that the next handshakes get in place of a WebSocket; 0 for none."""
        self._application, self._sessions = application, sessions
        self._heartbeat_ms = int(heartbeat * 1000)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """A connection, from its handshake to its end."""
        if self.refuses:
            return web.Response(status=self.refuses, text="error code: 1020")
        compress = request.query.get("compress", "")
        if request.query.get("v") != "10" or request.query.get("encoding") != "json":
            return web.Response(status=400)
        ws = web.WebSocketResponse(max_msg_size=4096 * 4)
        await ws.prepare(request)
        socket = GatewaySocket(request, ws, compress)
        self.sockets.append(socket)
        sender = asyncio.create_task(socket.send(), name="fake discord gateway")
        socket.put(
            {"op": HELLO, "s": None, "t": None, "d": {"heartbeat_interval": self._heartbeat_ms, "_trace": []}}
        )
        try:
            async for message in ws:
                if message.type is not WSMsgType.TEXT:
                    await self._close(socket, DECODE_ERROR)
                    break
                await self._received(socket, message.data)
        finally:
            sender.cancel()
            self.sockets.remove(socket)
            if socket.session is not None and socket.session.socket is socket:
                self._sessions.lost(socket.session)
                if (socket.code or ws.close_code) in _UNRESUMABLE:  # by either side
                    self._sessions.forget(socket.session)
        return ws

    async def _received(self, socket: GatewaySocket, text: str) -> None:
        try:
            frame = json.loads(text)
            op, data = frame["op"], frame.get("d")
        except (ValueError, KeyError, TypeError):
            return await self._close(socket, DECODE_ERROR)
        if op == HEARTBEAT:
            socket.heartbeats.append(data)
            for beat in self.beats if isinstance(data, int) else ():
                beat(data)
            return socket.put({"op": HEARTBEAT_ACK, "s": None, "t": None, "d": None})
        if op == IDENTIFY:
            return await self._identify(socket, data)
        if op == RESUME:
            return await self._resume(socket, data)
        if socket.session is None:
            return await self._close(socket, NOT_AUTHENTICATED)
        if op not in (PRESENCE, VOICE, REQUEST_MEMBERS):
            await self._close(socket, UNKNOWN_OPCODE)
        return None

    async def _identify(self, socket: GatewaySocket, data: Json) -> None:
        wanted = data.get("intents", 0)
        if socket.session is not None:
            return await self._close(socket, ALREADY_AUTHENTICATED)
        if data.get("token") != self._application.token:
            return await self._close(socket, AUTHENTICATION_FAILED)
        if wanted & ~intents.KNOWN or not data.get("properties"):
            return await self._close(socket, INVALID_INTENTS)
        if any(wanted & one and one not in self._application.privileged for one in intents.PRIVILEGED):
            return await self._close(socket, DISALLOWED_INTENTS)
        self.connections.append("identify")
        socket.session = session = self._sessions.open(wanted)
        session.socket = socket
        return self._sessions.greet(session, self.url)

    async def _resume(self, socket: GatewaySocket, data: Json) -> None:
        if data.get("token") != self._application.token:
            return await self._close(socket, AUTHENTICATION_FAILED)
        found = self._sessions.resume(data.get("session_id") or "", data.get("seq") or 0)
        if found is None:
            self.connections.append("invalid")
            return socket.put({"op": INVALID_SESSION, "s": None, "t": None, "d": False})
        session, missed = found
        if session.socket is not None and session.socket is not socket:
            session.socket.session = None
            session.socket.drop()
        self.connections.append("resume")
        socket.session, session.socket = session, socket
        for frame in missed:
            socket.put(frame)
        session.dispatch("RESUMED", {"_trace": []})
        return None

    async def _close(self, socket: GatewaySocket, code: int) -> None:
        self.connections.append(str(code))
        socket.code = code
        await socket.flushed()
        await socket.ws.close(code=code)

    # -- what goes wrong

    async def reconnect(self) -> None:
        """Ask all to come back, as Discord does before it restarts a server."""
        for socket in list(self.sockets):
            socket.put({"op": RECONNECT, "s": None, "t": None, "d": None})

    async def invalidate(self, *, resumable: bool = False) -> None:
        """Tell all that their session is no more, or (`resumable`) that they should resume it."""
        for socket in list(self.sockets):
            if socket.session is not None and not resumable:
                self._sessions.forget(socket.session)
                socket.session = None
            socket.put({"op": INVALID_SESSION, "s": None, "t": None, "d": resumable})

    async def close(self, code: int) -> None:
        """Close all connections with a code, `TIMED_OUT` for example."""
        for socket in list(self.sockets):
            await self._close(socket, code)

    def drop(self) -> None:
        """Break all connections off."""
        for socket in list(self.sockets):
            socket.drop()

    @property
    def live(self) -> list[GatewaySession]:
        """Sessions with a connection."""
        return [session for session in self._sessions.all if session.socket is not None]

    async def settled(self, seconds: float = 10.0) -> None:
        """Wait until every dispatch is on its way to whoever is connected."""
        async with asyncio.timeout(patience(seconds)):
            for socket in list(self.sockets):
                await socket.flushed()
