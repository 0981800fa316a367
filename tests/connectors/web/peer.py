# SPDX-License-Identifier: Apache-2.0
"""People at goodbot's pages, without the pages: what those send and hear, over real HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import aiohttp
from goodbot.api.events import ChannelKind, MessageRef
from goodbot.testing.connector_base import eventually
from goodbot.testing.host import RecordingHost
from goodbot.testing.platform import Post
from goodbot_connectors.web import WebSettings

from tests.support import patience

MAIN = "main"
_A_MOMENT = 0.3
Json = dict[str, Any]


class Browser:
    """One person's tab: an outbox that sends again what was not taken, and the live line."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.http = aiohttp.ClientSession(
            address, cookie_jar=aiohttp.CookieJar(unsafe=True), headers={"Origin": address}
        )
        self.frames: list[Json] = []
        self.outbox: list[Json] = []
        self.refused: list[str] = []
        self.listening = asyncio.Event()
        self.sent = asyncio.Event()
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def log_in(self, code: str) -> None:
        """Exchange a code; until the connector answers.

        Who is not heard for some seconds is hung up on: so it is where the whole machine stood still.
        """

        async def done() -> bool:
            with contextlib.suppress(aiohttp.ClientOSError, aiohttp.ServerDisconnectedError):
                async with self.http.post("/api/login", json={"code": code}) as response:
                    assert response.status in (200, 503), await response.text()
                    return response.status == 200
            return False

        await eventually(done)
        self.open()
        await asyncio.wait_for(self.listening.wait(), patience(10))

    def open(self) -> None:
        self._tasks = [asyncio.create_task(self._send()), asyncio.create_task(self._listen())]

    async def aclose(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.http.close()

    def put(self, event: Json) -> str:
        self.outbox.append(event)
        self.sent.clear()
        self._wake.set()
        return event["id"]

    async def get(self, path: str, **query: str) -> Json:
        async with self.http.get(path, params=query) as response:
            assert response.status == 200, await response.text()
            return await response.json()

    async def _send(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self.outbox:
                with contextlib.suppress(aiohttp.ClientError):
                    async with self.http.post("/api/do", json=self.outbox[0]) as response:
                        if response.status == 400:
                            self.refused.append((await response.json())["error"])
                        if response.status in (200, 400):
                            self.outbox.pop(0)
                            continue
                await asyncio.sleep(0.05)
            self.sent.set()

    async def _listen(self) -> None:
        while True:
            after = self.frames[-1]["n"] if self.frames else ""
            with contextlib.suppress(aiohttp.ClientError):
                async with self.http.ws_connect("/api/live", params={"after": after}) as line:
                    self.listening.set()
                    async for message in line:
                        self.frames.append(json.loads(message.data))
            self.listening.clear()
            await asyncio.sleep(0.05)


class WebPeer:
    """Everybody who is signed in to one goodbot. The `PlatformDriver` of the contract suite."""

    settings = WebSettings()
    environ: Mapping[str, str] = MappingProxyType({})
    wrong_environ: Mapping[str, str] = MappingProxyType({})
    rooms = frozenset({ChannelKind.PRIVATE})
    good = bad = ""

    def __init__(self) -> None:
        self.host: RecordingHost | None = None
        self.browsers: dict[str, Browser] = {}
        self._at = 0

    async def close(self) -> None:
        for browser in self.browsers.values():
            await browser.aclose()

    async def browser(self, user: str) -> Browser:
        """This person's tab, signed in."""
        if user not in self.browsers:
            assert self.host is not None
            code = secrets.token_urlsafe(16)
            self.host.codes[code] = user
            browser = self.browsers[user] = Browser(self.host.address)
            await browser.log_in(code)
        return self.browsers[user]

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
        return await self.do(user, {"say": text, "in": thread or MAIN})

    async def do(self, user: str, event: Json) -> str:
        """What a page sends, with an id and a time; its id."""
        browser = await self.browser(user)
        self._at = max(self._at + 1, int(time.time() * 1000))
        id_ = browser.put({"id": secrets.token_hex(12), "at": self._at, **event})
        with contextlib.suppress(TimeoutError):  # what is not taken by then is kept and sent again
            await asyncio.wait_for(browser.sent.wait(), _A_MOMENT)
        return id_

    async def say_as_bot(self, text: str, *, room: ChannelKind = ChannelKind.SHARED) -> None:
        """There is no other bot here, and nothing of ours comes back."""

    async def react(self, message: MessageRef, *, old: str = "", new: str = "", user: str = "ada") -> None:
        raise NotImplementedError("there are buttons here, no reactions")

    async def press(self, message: MessageRef, action: str, *, user: str = "ada") -> None:
        await self.do(user, {"press": action, **await self._about(message, user)})

    async def comment(
        self, message: MessageRef, text: str, *, better: bool = False, user: str = "ada"
    ) -> None:
        event = {"better" if better else "comment": text}
        await self.do(user, {**event, **await self._about(message, user)})

    async def _about(self, message: MessageRef, user: str) -> Json:
        place = message.channel.thread
        [entry] = [one for one in await self.entries(user, place) if one["id"] == message.id]
        return {"turn": entry["turn"], "message": message.id, "in": place}

    async def entries(self, user: str = "ada", place: str = MAIN) -> list[Json]:
        """What stands in one conversation, as a page reads it."""
        browser = await self.browser(user)
        return (await browser.get("/api/conversation", id=place))["entries"]

    async def posts(self, room: ChannelKind = ChannelKind.PRIVATE) -> Sequence[Post]:
        return [
            Post(
                id=entry["id"],
                text="\n".join(filter(None, (entry["text"], entry["note"]))),
                buttons=tuple(button["action"] for button in entry["buttons"]),
                thread=MAIN,
            )
            for entry in await self.entries()
            if entry["by"] != "you" and (entry["text"] or entry["note"])
        ]

    async def notices(self, user: str = "ada") -> Sequence[str]:
        told = [frame["receipt"] for frame in await self._receipts(user)]
        frames = self.browsers[user].frames if user in self.browsers else []
        entries = [frame["entry"] for frame in frames if "entry" in frame]
        # What comes of a press at what goodbot said unasked stays, as everything there does.
        return told + [entry["text"] for entry in entries if entry["id"].startswith("n-")]

    async def offers(self, user: str = "ada") -> Sequence[str]:
        offered = [frame["offer"] for frame in await self._receipts(user) if frame["offer"]]
        return [button["action"] for button in offered[-1]] if offered else []

    async def _receipts(self, user: str) -> list[Json]:
        await asyncio.sleep(patience(0.05))
        frames = self.browsers[user].frames if user in self.browsers else []
        return [frame for frame in frames if "receipt" in frame]

    async def unacknowledged(self) -> int:
        return sum(len(browser.outbox) for browser in self.browsers.values())
