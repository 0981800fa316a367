# SPDX-License-Identifier: Apache-2.0
"""The daemon's side of `goodbot chat`: JSON lines on a 0600 Unix socket.

In, each with an `id` of the client's own, the time `at` in milliseconds and the `language` that its reader
reads, all optional:

- `{"say": "…"}` is answered;
- `{"rate": 1, "turn": "…"}` is good, -1 bad, 0 takes it back; `message` may name the answer's id;
- `{"press": "star:4", "turn": "…"}` gives stars; `again:HINT`, with its `message`, asks for another
  answer in its place; any other action of a button goes the same way;
- `{"stop": "ID"}` ends the answer to the message ID half way.

Out: `{"hello": 1, "chats": N}` at first and when a chat comes or goes; `{"taken": "ID"}` once a
line is stored, or `{"refused": "…", "id": "ID"}`; `{"said": "…"}` for what another chat said;
`{"late": "…", "to": "ID"}` says why an answer is late, `{"text": "…", "to"}` while it comes;
`{"answer": "…", "id", "turn", "to", "buttons"}` when it is whole; `{"failed": "…", "to"}` when none
comes; `{"receipt": "…", "id", "turn", "value", "source", "offer"}` for a rating, and for what a press
came to; `{"news": "…", "id"}` for what nobody has asked for.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from goodbot import (
    ChannelKind,
    ChannelRef,
    Connector,
    ConnectorHost,
    Event,
    GoodbotError,
    MessageEvent,
    MessageRef,
    OrderKey,
    Outcome,
    PressEvent,
    RatingEvent,
    RatingKind,
    Receipt,
    Reply,
    ReplyStream,
    UserRef,
)
from goodbot.api.actions import hint, rating
from goodbot.api.reply_stream import CancelledReplyError
from goodbot.api.texts import say
from goodbot.base.descriptors import ONE_A_TURN, queue
from goodbot.base.tasks import end_tasks
from goodbot.base.text import clean, split
from goodbot.config.lock import socket_path

from goodbot_connectors.terminal import SPEC

logger = logging.getLogger(__name__)

SOCKET = "chat.sock"
_MAX_LINE = 1024 * 1024
_MAX_BEHIND = 8 * 1024 * 1024
"""Bytes that a chat may leave unread (somebody pressed Ctrl-Z) before it is let go."""
_MAX_PRESSED = 1000
_CLOCK_MS = 60_000
"""A client's `at` further off than this is not believed."""
_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")


class TerminalConnector(Connector):
    """One local person, one conversation; every attached `goodbot chat` sees it."""

    spec = SPEC

    def __init__(self, host: ConnectorHost, settings: Any) -> None:
        super().__init__(host, settings)
        self._server: asyncio.Server | None = None
        self._clients: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}
        self._channel = ChannelRef(
            connector=SPEC.name, account=self.account, id="local", kind=ChannelKind.PRIVATE
        )
        self._user = UserRef(connector=SPEC.name, account=self.account, id=str(os.geteuid()))
        self._last = 0
        self._pressed: dict[str, str] = {}
        """By message, the press that asked for another answer in its place."""
        self.stopped: set[str] = set()
        """Messages whose answer the person does not want any more."""

    @property
    def account(self) -> str:
        return "local"

    async def start(self) -> None:
        if self._server is None:
            path = socket_path(self.host.state_dir, SOCKET)
            path.unlink(missing_ok=True)
            umask = os.umask(0o177)
            try:
                self._server = await asyncio.start_unix_server(
                    self._attach, path, limit=_MAX_LINE, backlog=ONE_A_TURN
                )
                queue(self._server)
            finally:
                os.umask(umask)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
            socket_path(self.host.state_dir, SOCKET).unlink(missing_ok=True)
            tasks = list(self._clients.values())
            await end_tasks(*tasks)
            for writer in self._clients:  # of tasks that were cancelled before they began
                writer.close()
            self._clients.clear()

    async def send(self, channel: ChannelRef, reply: Reply) -> tuple[MessageRef, ...]:
        id_ = uuid.uuid4().hex
        if reply.silent:
            self.tell({"news": reply.text, "id": id_})
            return (MessageRef(channel=channel, id=id_),)
        buttons = [button.action for button in reply.buttons]
        self.tell(
            {"answer": reply.text, "id": id_, "turn": reply.turn, "to": reply.reply_to, "buttons": buttons}
        )
        return (MessageRef(channel=channel, id=id_),)

    def stream(self, channel: ChannelRef, reply_to: str = "") -> ReplyStream:
        return _Stream(self, channel, reply_to)

    def replace(self, messages: Sequence[MessageRef], channel: ChannelRef) -> ReplyStream:
        """What scrolled by stays: the other answer follows, as the one to the press."""
        return _Stream(self, channel, self._pressed.pop(messages[-1].id, ""))

    async def acknowledge(self, event: Event, receipt: Receipt) -> None:
        if isinstance(event, PressEvent) and receipt.outcome is Outcome.ACCEPTED:
            if hint(event.action):  # the other answer follows, and is waited for
                return self.tell({"news": receipt.text, "id": event.event_id}) if receipt.text else None
            if not receipt.text:
                return  # what it comes to follows
        value, source = (event.value, event.source) if isinstance(event, RatingEvent) else (None, "")
        self.tell(
            {
                "receipt": receipt.text,
                "id": event.event_id,
                "turn": receipt.turn,
                "value": value,
                "source": source,
                "offer": [button.action for button in receipt.offer],
            }
        )

    async def private(self, user: str) -> ChannelRef | None:
        """The one conversation, while somebody is there."""
        return self._channel if self._clients and user == self._user.id else None

    def tell(self, line: dict[str, Any], *, but: asyncio.StreamWriter | None = None) -> None:
        """Send a line to every attached chat. Never waits: one that hangs must not hold up all."""
        data = _encode(line)
        for client in list(self._clients):
            if client is but:
                continue
            if client.transport.get_write_buffer_size() > _MAX_BEHIND:
                client.transport.abort()
            else:
                client.write(data)

    def _attach(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients[writer] = self.host.spawn(self._serve(reader, writer), "a chat")
        self._greet()

    def _greet(self) -> None:
        self.tell({"hello": 1, "chats": len(self._clients)})

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take one chat's lines until it leaves. Its mistakes are its own: nothing is raised."""
        try:
            while data := await reader.readline():
                await self._take(data, writer)
        except ConnectionError:
            pass
        except ValueError:  # readline's word for a line without an end
            writer.write(_encode({"refused": f"a line has at most {_MAX_LINE} bytes", "id": ""}))
        except Exception:
            logger.exception("a chat was ended")
        finally:
            self._clients.pop(writer, None)
            writer.close()
            self._greet()

    async def _take(self, data: bytes, writer: asyncio.StreamWriter) -> None:
        line = _decode(data)
        if stopped := _id(line.get("stop")):
            self.stopped.add(stopped)
            return
        event = self._event(line)
        if event is None:
            refused = {"refused": "that is no line of this protocol", "id": _id(line.get("id"))}
            writer.write(_encode(refused))
            return
        try:
            [receipt] = await self.host.submit([event])
        except GoodbotError as error:
            writer.write(_encode({"refused": str(error), "id": event.event_id}))
            return
        writer.write(_encode({"taken": event.event_id}))
        if isinstance(event, MessageEvent) and not receipt.duplicate:
            self.tell({"said": event.text, "id": event.event_id}, but=writer)

    def _event(self, line: dict[str, Any]) -> Event | None:
        """The event that a client's line stands for; None for anything else."""
        event_id = _id(line.get("id")) or uuid.uuid4().hex
        order = OrderKey(self._time(line.get("at")), event_id, ours=True)
        common: dict[str, Any] = {
            "event_id": event_id,
            "order": order,
            "user": replace(self._user, language=clean(str(line.get("language", "")))),
            "channel": self._channel,
        }
        match line:
            case {"say": str(text)} if text.strip():
                return MessageEvent(**common, text=clean(text.strip()), message_id=event_id, addressed=True)
            case {"rate": int(value), "turn": str(turn)} if value in (-1, 0, 1):
                common |= {"turn": clean(turn), "message_id": _id(line.get("message"))}
                if value == 0:
                    return RatingEvent(**common, kind=RatingKind.RETRACT)
                return RatingEvent(**common, kind=RatingKind.RATE, source="button", value=float(value))
            case {"press": str(action), "turn": str(turn)}:
                message = _id(line.get("message"))
                if turn and (pressed := rating(action)):
                    common |= {"turn": clean(turn), "message_id": message, **pressed._asdict()}
                    return RatingEvent(**common, kind=RatingKind.RATE)
                if len(self._pressed) >= _MAX_PRESSED:  # presses that came to nothing
                    self._pressed.clear()
                self._pressed[message] = event_id
                return PressEvent(**common, action=clean(action), turn=clean(turn), message_id=message)
            case _:
                return None

    def _time(self, at: object) -> int:
        """When it happened; by the client's clock, so that a line sent again is the same event."""
        now = int(self.host.clock.now() * 1000)
        if type(at) is int and abs(at - now) <= _CLOCK_MS:
            return at
        self._last = max(self._last + 1, now)
        return self._last


class _Stream(ReplyStream):
    def __init__(self, connector: TerminalConnector, channel: ChannelRef, to: str) -> None:
        self._connector = connector
        self._channel = channel
        self._to = to

    async def append(self, text: str) -> None:
        if self._to in self._connector.stopped:
            raise CancelledReplyError("the person who asked has stopped it")
        self._connector.tell({"text": text, "to": self._to})

    async def note(self, text: str) -> None:
        self._connector.tell({"late": text, "to": self._to})

    async def finish(self, reply: Reply) -> tuple[MessageRef, ...]:
        self._connector.stopped.discard(self._to)
        *first, last = split(reply.text, SPEC.message_limit) or ("",)
        whole = Reply(text=last, turn=reply.turn, reply_to=self._to, buttons=reply.buttons)
        for part in (*[Reply(text=text) for text in first], whole):
            for message in await self._connector.send(self._channel, part):
                await self.created(message)
        return self.messages

    async def cancel(self, reason: str) -> None:
        stopped = self._to in self._connector.stopped
        self._connector.stopped.discard(self._to)
        why = say("was_stopped", self.language) if stopped else reason
        self._connector.tell({"failed": why, "to": self._to})


def _id(value: object) -> str:
    """`value` if it can be an id, else nothing."""
    return value if isinstance(value, str) and _ID.fullmatch(value) else ""


def _decode(data: bytes) -> dict[str, Any]:
    """A client's line; empty for anything that is no JSON object."""
    try:
        line = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", line) if isinstance(line, dict) else {}


def _encode(line: dict[str, Any]) -> bytes:
    """Plain ASCII, so that not even a lone surrogate can spoil it."""
    return json.dumps(line).encode() + b"\n"
