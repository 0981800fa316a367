# SPDX-License-Identifier: Apache-2.0
"""Socket Mode: WebSockets that the app opened, one of which gets each envelope.

docs.slack.dev/apis/events-api/using-socket-mode: a URL from `apps.connections.open` is good once;
the first frame is `hello`; up to ten connections at a time; Slack closes one after some hours and
says so before with `disconnect`.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import uuid
from typing import Any, Literal

from aiohttp import WSMsgType, web

from goodbot_fakes.slack.app import SlackApp
from goodbot_fakes.slack.delivery import Ack, Delivery

Json = dict[str, Any]
MOST = 10


class Sockets:
    """The open connections of one app."""

    def __init__(self, app: SlackApp) -> None:
        self._app = app
        self._tickets: set[str] = set()
        self._open: dict[web.WebSocketResponse, web.Request] = {}
        self._turn = itertools.count()
        self._waiting: dict[str, asyncio.Future[Json]] = {}
        self.frames: list[Json] = []
        """Everything that was sent, oldest first."""
        self.acks: list[Json] = []
        """Everything that came back, also what came too late or names nothing."""

    def __len__(self) -> int:
        return len(self._open)

    def ticket(self) -> str:
        """What makes a URL good once."""
        ticket = uuid.uuid4().hex
        self._tickets.add(ticket)
        return ticket

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One connection, until it ends."""
        ticket = request.query.get("ticket", "")
        if ticket not in self._tickets:
            return web.Response(status=403, text="invalid ticket")
        self._tickets.discard(ticket)
        socket = web.WebSocketResponse(autoping=True)
        await socket.prepare(request)
        refusal = "too_many_websockets" if len(self._open) >= MOST else ""
        if not self._app.socket_mode:
            refusal = "link_disabled"
        if refusal:
            await self._send(socket, self._farewell(refusal))
            await socket.close()
            return socket
        self._open[socket] = request
        try:
            await self._send(socket, self._hello())
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    self._acknowledged(json.loads(message.data))
        finally:
            self._open.pop(socket, None)
        return socket

    async def attempt(self, delivery: Delivery) -> Ack:
        """Send over one of the sockets, each time the next one, and wait for its envelope id."""
        if not self._open:
            return Ack(ok=False, reason="connection_failed")
        socket = list(self._open)[next(self._turn) % len(self._open)]
        envelope: Json = {
            "envelope_id": str(uuid.uuid4()),
            "type": delivery.kind,
            "payload": delivery.payload,
            "accepts_response_payload": _takes_answer(delivery),
        }
        if delivery.kind == "events_api":
            envelope["retry_attempt"] = delivery.attempts - 1
            envelope["retry_reason"] = "timeout" if delivery.attempts > 1 else ""
        answered = asyncio.get_running_loop().create_future()
        self._waiting[envelope["envelope_id"]] = answered
        try:
            await self._send(socket, envelope)
            return Ack(ok=True, payload=await answered)
        except ConnectionError:
            return Ack(ok=False, reason="connection_failed")
        finally:
            del self._waiting[envelope["envelope_id"]]

    async def disconnect(
        self, reason: Literal["warning", "refresh_requested", "link_disabled"], *, close: bool | None = None
    ) -> None:
        """Say on every socket that it ends; all but `warning` end it, unless `close` decides."""
        for socket in list(self._open):
            await self._send(socket, self._farewell(reason))
            if close or (close is None and reason != "warning"):
                self._open.pop(socket, None)
                await socket.close()

    def drop(self) -> None:
        """End every connection without a word, as a network does."""
        for request in self._open.values():
            if request.transport is not None:
                request.transport.abort()
        self._open.clear()

    def _acknowledged(self, frame: Json) -> None:
        self.acks.append(frame)
        waiting = self._waiting.get(str(frame.get("envelope_id")))
        if waiting is not None and not waiting.done():
            waiting.set_result(frame.get("payload") or {})

    async def _send(self, socket: web.WebSocketResponse, frame: Json) -> None:
        self.frames.append(frame)
        await socket.send_str(json.dumps(frame, ensure_ascii=False))

    def _hello(self) -> Json:
        about = {"host": "applink-1", "build_number": 1, "approximate_connection_time": 18060}
        return {
            "type": "hello",
            "num_connections": len(self._open),
            "debug_info": about,
            "connection_info": {"app_id": self._app.id},
        }

    def _farewell(self, reason: str) -> Json:
        return {"type": "disconnect", "reason": reason, "debug_info": {"host": "applink-1"}}


def _takes_answer(delivery: Delivery) -> bool:
    return delivery.kind == "slash_commands" or delivery.payload.get("type") == "view_submission"
