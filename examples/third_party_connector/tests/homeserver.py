# SPDX-License-Identifier: Apache-2.0
"""A homeserver in this process, on a real socket: what the tests need of one, and the people on it.

`Homeserver` is a `goodbot.testing.PlatformDriver`.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import time
from collections.abc import AsyncGenerator, Sequence
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from goodbot import ChannelKind, MessageRef
from goodbot.testing import Post

from goodbot_matrixlike import TOKEN, MatrixlikeSettings

BOT = "@goodbot:test"
RIGHT_TOKEN = "syt_right_token"  # noqa: S105
ROOM = {ChannelKind.SHARED: "!shared:test", ChannelKind.ENCRYPTED: "!encrypted:test"}

Json = dict[str, Any]


class Homeserver:
    """One bot account, people who come as they are named, a room of each kind."""

    good = "👍"
    bad = "👎"
    rooms = frozenset(ChannelKind)

    def __init__(self) -> None:
        self.settings = MatrixlikeSettings(poll_seconds=5.0)
        self.environ = {TOKEN: RIGHT_TOKEN}
        self.wrong_environ = {TOKEN: "syt_wrong_token"}
        self.events: list[Json] = []
        self.down = False
        """Answer everything with 503."""
        self._acknowledged = 0
        self._clock = itertools.count(int(time.time() * 1000))
        self._ids = itertools.count(1)
        self._news = asyncio.Event()

    # People.

    async def say(
        self,
        text: str,
        *,
        user: str = "ada",
        room: ChannelKind = ChannelKind.PRIVATE,
        mention: bool = False,
        reply_to: str = "",
        thread: str = "",
        attachments: Sequence[str] = (),
    ) -> str:
        content: Json = {"msgtype": "m.text", "body": f"goodbot: {text}" if mention else text}
        if mention or reply_to:
            content["m.mentions"] = {"user_ids": [BOT]}
        if reply_to:
            content["m.relates_to"] = {"m.in_reply_to": {"event_id": reply_to}}
        kind = "m.room.message"
        if room is ChannelKind.ENCRYPTED:
            kind, content = "m.room.encrypted", {"algorithm": "m.megolm.v1", "ciphertext": "…"}
        return self.add(self._room(room, user), self.person(user), kind, content)

    async def say_as_bot(self, text: str, *, room: ChannelKind = ChannelKind.SHARED) -> None:
        content = {"msgtype": "m.notice", "body": text, "m.mentions": {"user_ids": [BOT]}}
        self.add(self._room(room, "ada"), "@otherbot:test", "m.room.message", content)

    async def react(
        self, message: MessageRef, *, old: str = "", new: str = "", user: str = "ada"
    ) -> None:
        room, who = message.channel.id, self.person(user)
        if old:
            [there] = [raw for raw in self.reactions(message.id) if _key(raw) == (who, old)]
            self.redact(room, who, there["event_id"])
        if new:
            relation = {"rel_type": "m.annotation", "event_id": message.id, "key": new}
            self.add(room, who, "m.reaction", {"m.relates_to": relation})

    async def press(self, message: MessageRef, action: str, *, user: str = "ada") -> None:
        raise NotImplementedError("there are no buttons here")

    async def offers(self, user: str = "ada") -> Sequence[str]:
        return []

    async def comment(
        self, message: MessageRef, text: str, *, better: bool = False, user: str = "ada"
    ) -> None:
        raise NotImplementedError("reasons are typed as a command here")

    async def posts(self, room: ChannelKind = ChannelKind.PRIVATE) -> Sequence[Post]:
        return [
            Post(id=raw["event_id"], text=raw["content"]["body"])
            for raw in self.events
            if raw["room_id"] == self._room(room, "ada") and raw["sender"] == BOT
        ]

    async def notices(self, user: str = "ada") -> Sequence[str]:
        return []

    async def unacknowledged(self) -> int:
        return sum(raw["sender"] != BOT for raw in self.events[self._acknowledged :])

    @staticmethod
    def person(name: str) -> str:
        return f"@{name}:test"

    @staticmethod
    def _room(kind: ChannelKind, user: str) -> str:
        return ROOM.get(kind, f"!dm-{user}:test")

    # What the server keeps.

    def add(self, room: str, sender: str, kind: str, content: Json, **more: Any) -> str:
        event: Json = {
            "type": kind,
            "room_id": room,
            "sender": sender,
            "content": content,
            "event_id": f"${next(self._ids)}",
            "origin_server_ts": next(self._clock),
            **more,
        }
        self.events.append(event)
        self._news.set()
        return event["event_id"]

    def redact(self, room: str, sender: str, event_id: str, *, quietly: bool = False) -> None:
        """Blank an event; `quietly`: the redaction falls into a gap of the next sync."""
        for event in self.events:
            if event["event_id"] == event_id:
                event["content"] = {}
        if not quietly:
            self.add(room, sender, "m.room.redaction", {}, redacts=event_id)

    def reactions(self, message: str) -> list[Json]:
        return [
            raw
            for raw in self.events
            if raw["type"] == "m.reaction"
            and raw["content"].get("m.relates_to", {}).get("event_id") == message
        ]

    # The HTTP API.

    async def answer(self, method: str, target: str, token: str, body: bytes) -> tuple[int, Json]:
        url = urlsplit(target)
        query = dict(parse_qsl(url.query))
        path = [unquote(part) for part in url.path.removeprefix("/_matrix/client/").split("/")]
        if self.down:
            return 503, {}
        if token != RIGHT_TOKEN:
            return 401, {"errcode": "M_UNKNOWN_TOKEN"}
        match path:
            case ["v3", "account", "whoami"]:
                return 200, {"user_id": BOT}
            case ["v3", "joined_rooms"]:
                return 200, {"joined_rooms": list(ROOM.values())}
            case ["v3", "sync"]:
                return 200, await self._sync(query.get("since", ""), float(query["timeout"]) / 1000)
            case ["v3", "rooms", room, "send", kind, _]:
                return 200, {"event_id": self.add(room, BOT, kind, json.loads(body))}
            case ["v3", "rooms", room, "state", "m.room.encryption"]:
                encrypted = room == ROOM[ChannelKind.ENCRYPTED]
                return (200, {"algorithm": "m.megolm.v1"}) if encrypted else (404, {})
            case ["v3", "rooms", room, "joined_members"]:
                others = ("ada", "bob") if room in ROOM.values() else ("ada",)
                return 200, {"joined": {BOT: {}, **{self.person(name): {} for name in others}}}
            case ["v1", "rooms", _, "relations", message, "m.annotation", "m.reaction"]:
                return 200, {"chunk": self.reactions(message)}
            case _:
                return 404, {"errcode": "M_UNRECOGNIZED"}

    async def _sync(self, since: str, seconds: float) -> Json:
        start = int(since[1:]) if since else 0
        self._acknowledged = max(self._acknowledged, start)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while len(self.events) <= start:
                    self._news.clear()
                    await self._news.wait()
        join: Json = {}
        for event in self.events[start:]:
            if event["content"] or event["type"] == "m.room.redaction":
                room = join.setdefault(event["room_id"], {"timeline": {"events": []}})
                room["timeline"]["events"].append(event)
        return {"next_batch": f"s{len(self.events)}", "rooms": {"join": join}}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of HTTP/1.1."""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while line := await reader.readline():
                method, target, _ = line.decode().split()
                headers: dict[str, str] = {}
                while line := (await reader.readline()).decode().strip():
                    name, _, value = line.partition(":")
                    headers[name.lower()] = value.strip()
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                token = headers.get("authorization", "").removeprefix("Bearer ")
                status, content = await self.answer(method, target, token, body)
                data = json.dumps(content).encode()
                head = f"HTTP/1.1 {status} .\r\nContent-Length: {len(data)}\r\n\r\n"
                writer.write(head.encode() + data)
                await writer.drain()
        writer.close()


def _key(raw: Json) -> tuple[str, str]:
    return raw["sender"], raw["content"]["m.relates_to"]["key"]


@contextlib.asynccontextmanager
async def running() -> AsyncGenerator[Homeserver]:
    """A homeserver that listens."""
    homeserver = Homeserver()
    connections: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        with contextlib.suppress(asyncio.CancelledError):
            await homeserver.serve(reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    homeserver.settings = MatrixlikeSettings(
        homeserver=f"http://127.0.0.1:{port}", poll_seconds=5.0
    )
    try:
        yield homeserver
    finally:
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
