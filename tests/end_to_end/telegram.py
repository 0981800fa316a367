"""A real `goodbot run` beside a local Telegram, and people who talk to it there."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sqlite3
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from goodbot.events import ChannelKind, ChannelRef, MessageRef
from goodbot.testing.connector_base import eventually
from goodbot.testing.platform import Post

from tests.connectors.telegram.peer import GROUP, USERS, TelegramPeer

T = TypeVar("T")
CONFIG = """
[serving]
max_tokens = 48
history = 0

[training]
min_ratings = {ratings}
idle_seconds = 0.0
max_load = 1.0

[connectors.telegram]
owners = [{owner}]
talkers = [{talker}]
api_base = "{api_base}"
poll_timeout = 5
edit_interval = 0.2
group_edit_interval = 0.2
"""


class Daemon:
    """`goodbot run --demo-model` in a process of its own."""

    def __init__(self, home: Path, peer: TelegramPeer, *, ratings: int = 40) -> None:
        self.home = home
        home.mkdir(mode=0o700, exist_ok=True)
        config = CONFIG.format(
            ratings=ratings,
            owner=USERS["ada"],
            talker=USERS["carl"],
            api_base=peer.settings.api_base,
        )
        (home / "config.toml").write_text(config, encoding="utf-8")
        self._environ = {**os.environ, **peer.environ}
        self._log = (home / "daemon.log").open("ab")
        self.process: asyncio.subprocess.Process | None = None

    async def start(self, seconds: float = 60.0) -> None:
        """Returns when it says that it answers."""
        size = self._log.tell()
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "goodbot", "--home", str(self.home), "run", "--demo-model",
            stdin=asyncio.subprocess.DEVNULL, stderr=self._log, env=self._environ,
        )  # fmt: skip

        async def greeted() -> bool:
            assert self.process is not None
            assert self.process.returncode is None, self.log()
            return "Ctrl-C stops." in self.log(size)

        await eventually(greeted, seconds)

    def log(self, since: int = 0) -> str:
        return (self.home / "daemon.log").read_bytes()[since:].decode()

    async def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait; the exit status."""
        assert self.process is not None
        if self.process.returncode is None:
            self.process.send_signal(how)
        return await asyncio.wait_for(self.process.wait(), 30)

    async def close(self) -> None:
        if self.process is not None and self.process.returncode is None:
            await self.end(signal.SIGKILL)
        self._log.close()

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """What the database says, read only."""
        address = f"file:{self.home / 'goodbot.db'}?mode=ro"
        with contextlib.closing(sqlite3.connect(address, uri=True)) as db:
            return db.execute(query, values).fetchall()


@contextlib.asynccontextmanager
async def running(daemon: Daemon) -> Any:
    """A started daemon, killed at the end if it has not ended by itself."""
    try:
        await daemon.start()
        yield daemon
    finally:
        await daemon.close()


class Person:
    """Somebody with a phone: asks, waits, reacts."""

    def __init__(self, peer: TelegramPeer, name: str) -> None:
        self.peer = peer
        self.name = name

    async def posts(self, room: ChannelKind = ChannelKind.PRIVATE) -> list[Post]:
        return list(await self.peer.posts(room, self.name))

    async def ask(self, text: str, room: ChannelKind = ChannelKind.PRIVATE, **say: Any) -> Post:
        """Say something and wait for the whole of what comes back."""
        return await self._after(
            room, lambda: self.peer.say(text, user=self.name, room=room, **say)
        )

    async def _after(self, room: ChannelKind, act: Callable[[], Awaitable[Any]]) -> Post:
        before = {post.id for post in await self.posts(room)}
        await act()
        seen: list[Post] = []

        async def settled() -> Post | None:
            """An answer is whole when its buttons are there, or when it grows no more."""
            new = [post for post in await self.posts(room) if post.id not in before]
            seen.append(new[-1]) if new else None
            whole = new and (new[-1].buttons or (len(seen) > 20 and seen[-20:] == [new[-1]] * 20))
            return new[-1] if whole else None

        return await eventually(settled, 30)

    async def command(self, text: str, room: ChannelKind = ChannelKind.PRIVATE, **say: Any) -> str:
        """Type `/rl …` and read the answer."""
        return (await self.ask(f"/rl {text}", room, **say)).text

    def ref(self, post: Post, room: ChannelKind = ChannelKind.PRIVATE) -> MessageRef:
        id_ = str(USERS[self.name] if room is ChannelKind.PRIVATE else GROUP)
        channel = ChannelRef(connector="telegram", account="4200001", id=id_, kind=room)
        return MessageRef(channel=channel, id=post.id)

    async def react(self, post: Post, new: str = "", old: str = "", **at: Any) -> None:
        await self.peer.react(self.ref(post, **at), new=new, old=old, user=self.name)

    async def press(self, post: Post, action: str) -> None:
        await self.peer.press(self.ref(post), action, user=self.name)


def ways(person: Person) -> Iterator[Callable[[Post, bool], Awaitable[None]]]:
    """Every way to rate on Telegram, in turn, for ever."""

    async def reaction(post: Post, good: bool) -> None:
        await person.react(post, "👍" if good else "👎")

    async def changed_reaction(post: Post, good: bool) -> None:
        first, then = ("👎", "🔥") if good else ("❤", "💩")
        await person.react(post, first)
        await person.react(post, then, old=first)

    async def button(post: Post, good: bool) -> None:
        toasts = len(await person.peer.notices(person.name))
        await person.press(post, "good" if good else "bad")

        async def toast() -> bool:
            return len(await person.peer.notices(person.name)) > toasts

        await eventually(toast)

    async def command(post: Post, good: bool) -> None:
        answer = await person.command("good" if good else "bad", reply_to=post.id)
        assert answer.startswith("Good." if good else "Bad."), answer

    async def second_thoughts(post: Post, good: bool) -> None:
        await person.press(post, "bad" if good else "good")
        await person.react(post, "👍" if good else "👎")

    while True:
        yield from (reaction, changed_reaction, button, command, second_thoughts)
