# SPDX-License-Identifier: Apache-2.0
"""A goodbot beside a local Telegram, and people who talk to it there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from goodbot.api.events import ChannelKind, ChannelRef, MessageRef
from goodbot.testing.connector_base import eventually
from goodbot.testing.platform import Post

from tests.connectors.telegram.fake import Driver
from tests.connectors.telegram.peer import GROUP, USERS, TelegramPeer
from tests.end_to_end.daemon import Daemon
from tests.end_to_end.rating import LABEL, word

Peer = Driver | TelegramPeer
"""Either Telegram; their people have the same names and ids."""
CUSTOM = "5368324170671202286"
"""A custom emoji that this owner has called good."""
CONFIG = """
[serving]
ask = "never"
max_tokens = 48
history = 0

[training]
min_ratings = {ratings}
idle_seconds = 0.0
max_load = 1.0

[connectors.telegram]
{grants}
good = ["👍", "❤", "🔥", "{custom}"]
api_base = "{api_base}"
poll_timeout = 5
edit_interval = 0.2
group_edit_interval = 0.2
"""


def daemon_beside(home: Path, peer: Peer, *, ratings: int = 40, owners: Sequence[str] = ("ada",)) -> Daemon:
    """A goodbot on that Telegram, with these owners, and Carl who may only talk."""
    grants = f"owners = {[USERS[name] for name in owners]}\ntalkers = [{USERS['carl']}]"
    config = CONFIG.format(ratings=ratings, grants=grants, api_base=peer.settings.api_base, custom=CUSTOM)
    return Daemon(home, config, peer.environ)


class Person:
    """Somebody with a phone: asks, waits, reacts."""

    def __init__(self, peer: Peer, name: str) -> None:
        self.peer = peer
        self.name = name

    async def posts(self, room: ChannelKind = ChannelKind.PRIVATE) -> list[Post]:
        """What stands there; what is still being written does not count."""
        return [post for post in await self.peer.posts(room, self.name) if post.id != "draft"]

    async def ask(self, text: str, room: ChannelKind = ChannelKind.PRIVATE, **say: Any) -> Post:
        """Say something and wait for the whole of what comes back."""
        return await self._after(room, lambda: self.peer.say(text, user=self.name, room=room, **say))

    async def ask_for_an_answer(self, text: str) -> Post:
        """Ask what the model answers, and wait for that, whatever else the bot says meanwhile."""
        before = {post.id for post in await self.posts()}
        await self.peer.say(text, user=self.name)

        async def answered() -> Post | None:
            new = [post for post in await self.posts() if post.id not in before and post.buttons]
            return new[-1] if new else None

        return await eventually(answered, 60)

    async def explain(self, post: Post, text: str, *, better: bool = False) -> None:
        """Type what was wrong with an answer, and see that it was kept."""

        async def kept() -> int:
            return sum("is kept" in text for text in await self.peer.notices(self.name))

        before = await kept()
        await self.peer.comment(self.ref(post), text, better=better, user=self.name)

        async def one_more() -> bool:
            return await kept() > before

        await eventually(one_more, 30)

    async def ask_by(self, act: Callable[[], Awaitable[Any]]) -> Post:
        """Do something else that gets an answer, and wait for the whole of it."""
        return await self._after(ChannelKind.PRIVATE, act)

    async def _after(self, room: ChannelKind, act: Callable[[], Awaitable[Any]]) -> Post:
        before = {post.id for post in await self.posts(room)}
        await act()
        seen: list[Post] = []

        async def settled() -> Post | None:
            """An answer is whole when its buttons are there, or when it grows no more."""
            new = [post for post in await self.posts(room) if post.id not in before]
            seen.append(new[-1]) if new else None
            begun = new and new[-1].text.strip() == LABEL.strip()  # its first word is still to come
            grown = len(seen) > 20 and seen[-20:] == [seen[-1]] * 20 and not begun
            whole = new and (new[-1].buttons or grown)
            return new[-1] if whole else None

        return await eventually(settled, 30)

    async def command(
        self, text: str, room: ChannelKind = ChannelKind.PRIVATE, *, like: str = "", **say: Any
    ) -> str:
        """Type `/rl …` and read the answer; `like` is part of it."""
        answer = (await self.ask(f"/rl {text}", room, **say)).text
        assert like in answer, answer
        return answer

    def ref(self, post: Post, room: ChannelKind = ChannelKind.PRIVATE) -> MessageRef:
        id_ = str(USERS[self.name] if room is ChannelKind.PRIVATE else GROUP)
        channel = ChannelRef(connector="telegram", account="4200001", id=id_, kind=room)
        return MessageRef(channel=channel, id=post.id)

    async def react(self, post: Post, new: str = "", old: str = "", **at: Any) -> None:
        await self.peer.react(self.ref(post, **at), new=new, old=old, user=self.name)

    async def press(self, post: Post, action: str) -> None:
        await self.peer.press(self.ref(post), action, user=self.name)


def ways(person: Person) -> Iterator[Callable[[Post, bool], Awaitable[None]]]:
    """Every way to rate on Telegram, in turn, for ever. In the end the answer is rated as told."""

    async def reaction(post: Post, good: bool) -> None:
        await person.react(post, "👍" if good else "👎")

    async def changed_reaction(post: Post, good: bool) -> None:
        first, then = ("👎", "🔥") if good else ("❤", "💩")
        await person.react(post, first)
        await person.react(post, then, old=first)

    async def removed_reaction(post: Post, good: bool) -> None:
        wrong = "👎" if good else "👍"
        await person.press(post, word(good))
        await person.react(post, wrong)
        await person.react(post, old=wrong)

    async def custom_emoji(post: Post, good: bool) -> None:
        await person.react(post, CUSTOM if good else "👎")

    async def button(post: Post, good: bool) -> None:
        ada = person.peer.people[person.name]
        toasts = len(ada.toasts)  # and no notices: the line under an answer goes after ten seconds
        await person.press(post, word(good))

        async def toast() -> bool:
            return len(ada.toasts) > toasts

        await eventually(toast)

    async def command(post: Post, good: bool) -> None:
        answer = await person.command(word(good), reply_to=post.id)
        assert answer.startswith("Good." if good else "Bad."), answer

    async def undo(post: Post, good: bool) -> None:
        await person.press(post, word(not good))
        await person.command("undo", reply_to=post.id)
        await person.react(post, "👍" if good else "👎")

    async def stars(post: Post, good: bool) -> None:
        await person.command(f"stars {5 if good else 1}", reply_to=post.id)

    async def reason(post: Post, good: bool) -> None:
        await person.press(post, "bad")
        await person.explain(post, "It is not how I talk.")
        await person.press(post, word(good))

    async def better(post: Post, good: bool) -> None:
        await person.press(post, "bad")
        await person.explain(post, "Sure thing! Happy to help.", better=True)
        await person.press(post, word(good))

    while True:
        yield from (
            reaction,
            changed_reaction,
            removed_reaction,
            custom_emoji,
            button,
            command,
            undo,
            stars,
            reason,
            better,
        )
