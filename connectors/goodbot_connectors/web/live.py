# SPDX-License-Identifier: Apache-2.0
"""What open pages are told while they are open: frames by WebSocket, each with a number.

A page that was away for a moment says which frame it saw last and gets what it missed; where that is
not remembered any more (or by another process), it is told to read its state anew.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import Any

from aiohttp import WSCloseCode
from goodbot.api.connector import ConnectorHost

_LOOK_SECONDS = 1.0
_REMEMBERED = 2000
"""Frames of one person that a page may have missed …"""
_MOST_REMEMBERED = 1_000_000
"""… of so many characters together."""
_BEHIND = 5000
"""Frames that a page may leave unread before it is let go; it comes back and reads anew …"""
_MOST_BEHIND = 2_500_000
"""… and their characters."""
FORGOTTEN = 4001
"""The code with which the line of somebody ends who is forgotten; from 4000 on they are ours to name."""
_MOST_PAGES = 100
"""Open pages of one person."""


class Page:
    """One open page, as the hub sees it: iterate over the frames to send, as text."""

    code: int = WSCloseCode.OK
    """Why it ends, as the browser is told."""

    def __init__(self, session: str) -> None:
        self.session = session
        self._queue: asyncio.Queue[str | None] = asyncio.Queue(_BEHIND)
        self._unread = 0

    def give(self, frame: str) -> None:
        """Queue a frame; one that has hung for too long is let go."""
        self._unread += len(frame)
        if self._queue.full() or self._unread > _MOST_BEHIND:
            self.close()
        else:
            self._queue.put_nowait(frame)

    def close(self) -> None:
        """No more frames; what was queued is dropped."""
        while not self._queue.empty():
            self._queue.get_nowait()
        self._queue.put_nowait(None)

    async def __aiter__(self) -> AsyncIterator[str]:
        while (frame := await self._queue.get()) is not None:
            self._unread -= len(frame)
            yield frame


class Live:
    """The open pages of everybody."""

    def __init__(self) -> None:
        self._epoch = secrets.token_hex(4)
        self._last: dict[str, int] = {}
        self._frames: dict[str, deque[tuple[int, str]]] = {}
        self._characters: dict[str, int] = {}
        self._pages: dict[str, list[Page]] = {}
        self._standing: dict[str, Any] = {}

    def last(self, user: str) -> str:
        """The name of the newest frame of a person; a state that is read now holds all up to it."""
        return f"{self._epoch}-{self._last.get(user, 0)}"

    def tell(self, user: str, frame: Mapping[str, Any]) -> None:
        """Send a frame to every page of a person. Never waits: one that hangs must not hold up all."""
        number = self._last[user] = self._last.get(user, 0) + 1
        text = json.dumps({"n": f"{self._epoch}-{number}", **frame})
        self._remember(user, number, text)
        for page in self._pages.get(user, ()):
            page.give(text)

    async def follow(self, host: ConnectorHost) -> None:
        """Show on every page what a training does, while it goes on; until cancelled."""
        while True:
            self.stand(learning=host.learning())
            await host.clock.sleep(_LOOK_SECONDS)

    def stand(self, **now: Any) -> None:
        """What every page shows until it is said otherwise, also one that opens later."""
        if now != self._standing:
            self._standing = now
            for user, pages in self._pages.items():
                for page in pages:
                    page.give(self._stands(user))

    def stale(self, user: str) -> None:
        """What a person's open pages show may have changed in more than can be told: read it anew."""
        for page in self._pages.get(user, ()):
            page.give(self._stale(user))

    def attach(self, user: str, session: str, after: str = "") -> Page:
        """A page opens, or comes back and has seen the frames up to `after`."""
        page = Page(session)
        missed = self._since(user, after)
        if missed is None:
            page.give(self._stale(user))
        for frame in missed or ():
            page.give(frame)
        if self._standing:
            page.give(self._stands(user))
        pages = self._pages.setdefault(user, [])
        pages.append(page)
        if len(pages) > _MOST_PAGES:
            pages.pop(0).close()
        return page

    def detach(self, user: str, page: Page) -> None:
        """A page is gone."""
        pages = self._pages.get(user, [])
        if page in pages:
            pages.remove(page)
        if not pages:
            self._pages.pop(user, None)

    def is_open(self, session: str) -> bool:
        """Whether a page of that session is open."""
        return any(page.session == session for pages in self._pages.values() for page in pages)

    def close(self, *, session: str = "", user: str = "") -> None:
        """Let go the pages of one session or of one person; without either all of them."""
        for who, pages in self._pages.items():
            for page in pages:
                if session in ("", page.session) and user in ("", who):
                    page.close()

    def forget(self, user: str) -> None:
        """Keep no frame of a person; their pages are told why they end."""
        for page in self._pages.get(user, ()):
            page.code = FORGOTTEN
        self.close(user=user)
        self._frames.pop(user, None)
        self._characters.pop(user, None)

    def _stale(self, user: str) -> str:
        return json.dumps({"n": self.last(user), "stale": True})

    def _stands(self, user: str) -> str:
        return json.dumps({"n": self.last(user), **self._standing})

    def _remember(self, user: str, number: int, text: str) -> None:
        frames = self._frames.setdefault(user, deque())
        frames.append((number, text))
        characters = self._characters.get(user, 0) + len(text)
        while len(frames) > _REMEMBERED or (characters > _MOST_REMEMBERED and frames):
            characters -= len(frames.popleft()[1])
        self._characters[user] = characters

    def _since(self, user: str, after: str) -> list[str] | None:
        """The frames after that one; None where it cannot be told which those are."""
        epoch, _, number = after.partition("-")
        if epoch != self._epoch or not number.isdecimal() or len(number) > 15:
            return None
        seen, last = int(number), self._last.get(user, 0)
        frames = self._frames.get(user, ())
        remembered = frames[0][0] - 1 if frames else last
        if not remembered <= seen <= last:
            return None
        return [text for at, text in frames if at > seen]
