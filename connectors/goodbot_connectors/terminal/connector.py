"""The daemon's side of `goodbot chat`: JSON lines on a 0600 Unix socket.

In: `{"say": "…"}`, `{"rate": 1, "turn": "…"}` (or -1, or 0 to take it back).
Out: `{"text": "…"}` while an answer comes, `{"answer": "…", "turn": "…"}` when it is whole,
`{"receipt": "…"}` for a rating, `{"failed": "…"}` when no answer comes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import uuid
from typing import Any

from goodbot import (
    ChannelKind,
    ChannelRef,
    Connector,
    ConnectorHost,
    Event,
    MessageEvent,
    MessageRef,
    OrderKey,
    RatingEvent,
    RatingKind,
    Receipt,
    Reply,
    ReplyStream,
    UserRef,
)
from goodbot.lock import socket_path
from goodbot_connectors.terminal import SPEC

SOCKET = "chat.sock"
_MAX_LINE = 1024 * 1024


class TerminalConnector(Connector):
    """One local person, one conversation; every attached `goodbot chat` sees it."""

    spec = SPEC

    def __init__(self, host: ConnectorHost, settings: Any) -> None:
        super().__init__(host, settings)
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.StreamWriter] = set()
        self._channel = ChannelRef(
            connector=SPEC.name, account=self.account, id="local", kind=ChannelKind.PRIVATE
        )
        self._user = UserRef(connector=SPEC.name, account=self.account, id=str(os.geteuid()))
        self._messages = 0

    @property
    def account(self) -> str:
        return "local"

    async def start(self) -> None:
        if self._server is None:
            path = socket_path(self.host.state_dir, SOCKET)
            path.unlink(missing_ok=True)
            umask = os.umask(0o177)
            try:
                self._server = await asyncio.start_unix_server(self._serve, path, limit=_MAX_LINE)
            finally:
                os.umask(umask)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
            for client in list(self._clients):
                client.close()

    async def send(self, channel: ChannelRef, reply: Reply) -> tuple[MessageRef, ...]:
        await self._tell({"answer": reply.text, "turn": reply.turn})
        return (MessageRef(channel=channel, id=reply.turn or uuid.uuid4().hex),)

    def stream(self, channel: ChannelRef, reply_to: str = "") -> ReplyStream:
        return _Stream(self, channel)

    async def acknowledge(self, event: Event, receipt: Receipt) -> None:
        await self._tell({"receipt": receipt.text, "turn": receipt.turn})

    async def _tell(self, line: dict[str, Any]) -> None:
        data = json.dumps(line, ensure_ascii=False).encode() + b"\n"
        for client in list(self._clients):
            try:
                client.write(data)
                await client.drain()
            except ConnectionError:
                self._clients.discard(client)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients.add(writer)
        with contextlib.suppress(ConnectionError, ValueError):
            while line := await reader.readline():
                if (event := self._event(json.loads(line))) is not None:
                    await self.host.submit([event])
        self._clients.discard(writer)
        writer.close()

    def _event(self, line: Any) -> Event | None:
        """The event that a client's line stands for; None for anything else."""
        self._messages += 1
        order = OrderKey(int(self.host.clock.now() * 1000), f"{self._messages:012d}")
        common: dict[str, Any] = {
            "event_id": uuid.uuid4().hex, "order": order, "user": self._user, "channel": self._channel,
        }  # fmt: skip
        match line:
            case {"say": str(text)} if text.strip():
                return MessageEvent(
                    **common, text=text.strip(), message_id=common["event_id"], addressed=True
                )
            case {"rate": (1 | -1) as value, "turn": str(turn)}:
                return RatingEvent(
                    **common, kind=RatingKind.RATE, turn=turn, source="key", value=float(value)
                )
            case {"rate": 0, "turn": str(turn)}:
                return RatingEvent(**common, kind=RatingKind.RETRACT, turn=turn)
            case _:
                return None


class _Stream(ReplyStream):
    def __init__(self, connector: TerminalConnector, channel: ChannelRef) -> None:
        self._connector = connector
        self._channel = channel

    async def append(self, text: str) -> None:
        await self._connector._tell({"text": text})  # noqa: SLF001  one class in two parts

    async def finish(self, reply: Reply) -> tuple[MessageRef, ...]:
        return await self._connector.send(self._channel, reply)

    async def cancel(self, reason: str) -> None:
        await self._connector._tell({"failed": reason})  # noqa: SLF001
