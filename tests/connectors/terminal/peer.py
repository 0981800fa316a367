# SPDX-License-Identifier: Apache-2.0
"""The far side of the terminal: a chat that keeps what is not taken, as the contract drives it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from goodbot.api.events import ChannelKind, MessageRef
from goodbot.config.lock import socket_path
from goodbot.testing.platform import Post
from goodbot_connectors.terminal import TerminalSettings

from tests.support import patience


class TerminalPeer:
    """One chat at the socket in `directory`; it reconnects, and sends again what was not taken."""

    settings = TerminalSettings()
    environ: Mapping[str, str] = MappingProxyType({})
    wrong_environ: Mapping[str, str] = MappingProxyType({})
    rooms = frozenset({ChannelKind.PRIVATE})
    good = bad = ""

    def __init__(self, directory: Path) -> None:
        self._path = socket_path(directory, "chat.sock")
        self._writer: asyncio.StreamWriter | None = None
        self._untaken: dict[str, dict[str, Any]] = {}
        self._ours: set[str] = set()
        self._posts: list[Post] = []
        self._streamed = ""
        self._receipts: list[str] = []
        self._offer: tuple[str, ...] = ()
        self._turns: dict[str, str] = {}
        self._at = 0
        self.lines: list[dict[str, Any]] = []
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

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
        return await self._send({"say": text})

    async def say_as_bot(self, text: str, *, room: ChannelKind = ChannelKind.SHARED) -> None:
        """There is no other bot at this socket, and nothing of ours comes back."""

    async def react(self, message: MessageRef, *, old: str = "", new: str = "", user: str = "ada") -> None:
        raise NotImplementedError

    async def press(self, message: MessageRef, action: str, *, user: str = "ada") -> None:
        with contextlib.suppress(TimeoutError):  # there may be none
            async with asyncio.timeout(patience(0.5)):
                while message.id not in self._turns:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        place = {"turn": self._turns.get(message.id, ""), "message": message.id}
        if action in ("good", "bad"):
            await self._send({"rate": 1 if action == "good" else -1, **place})
        else:
            await self._send({"press": action, **place})

    async def offers(self, user: str = "ada") -> Sequence[str]:
        await asyncio.sleep(patience(0.05))
        return self._offer if user == "ada" else ()

    async def comment(
        self, message: MessageRef, text: str, *, better: bool = False, user: str = "ada"
    ) -> None:
        raise NotImplementedError("words go to the control socket, as commands")

    async def posts(self, room: ChannelKind = ChannelKind.PRIVATE) -> Sequence[Post]:
        await asyncio.sleep(patience(0.05))
        return [*self._posts, *([Post(id="", text=self._streamed)] if self._streamed else [])]

    async def notices(self, user: str = "ada") -> Sequence[str]:
        await asyncio.sleep(patience(0.05))
        return list(self._receipts) if user == "ada" else []

    async def unacknowledged(self) -> int:
        return len(self._untaken)

    async def _send(self, line: dict[str, Any]) -> str:
        id_ = uuid.uuid4().hex
        self._at = max(self._at + 1, int(time.time() * 1000))
        self._ours.add(id_)
        self._untaken[id_] = {**line, "id": id_, "at": self._at}
        self._write(self._untaken[id_])
        return id_

    def _write(self, line: dict[str, Any]) -> None:
        if self._writer is not None:
            self._writer.write(json.dumps(line).encode() + b"\n")

    async def _run(self) -> None:
        while True:
            with contextlib.suppress(OSError):
                await self._attached()
            self._writer = None
            await asyncio.sleep(0.02)

    async def _attached(self) -> None:
        reader, self._writer = await asyncio.open_unix_connection(self._path, limit=2**24)
        try:
            for line in list(self._untaken.values()):
                self._write(line)
            while data := await reader.readline():
                await self._take(json.loads(data))
        finally:
            self._writer.close()

    async def _take(self, line: dict[str, Any]) -> None:
        self.lines.append(line)
        match line:
            case {"taken": id_}:
                self._untaken.pop(id_, None)
            case {"refused": _, "id": id_} if id_ in self._untaken:
                await asyncio.sleep(patience(0.05))
                self._write(self._untaken[id_])
            case {"text": text}:
                self._streamed += text
            case {"answer": text, "id": id_, "turn": turn, "buttons": buttons}:
                self._posts.append(Post(id=id_, text=text, buttons=tuple(buttons)))
                self._turns[id_] = turn
                self._streamed = ""
            case {"failed": text}:
                self._posts.append(Post(id="failed", text=text))
                self._streamed = ""
            case {"news": text, "id": id_} if id_ in self._ours:  # what follows is waited for
                self._receipts.append(text)
            case {"receipt": text, "offer": offer}:
                self._receipts.append(text)
                self._offer = tuple(offer)
            case _:
                pass
