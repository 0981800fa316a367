# SPDX-License-Identifier: Apache-2.0
"""A goodbot beside a fake Teams, and people who talk to it there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

from goodbot.api.events import ChannelKind, ChannelRef, MessageRef
from goodbot.testing.connector_base import eventually
from goodbot_fakes.teams import Message, TenantConversation, cards

from tests.connectors.teams.peer import TeamsPeer
from tests.end_to_end.daemon import Daemon
from tests.end_to_end.rating import verdict, word

_CONFIRMED = 1.0
"""Seconds: of ten ratings in one, no more are confirmed, and the tiny model answers faster than that."""

CONFIG = """
[serving]
ask = "never"
max_tokens = 48
history = 0

[training]
min_ratings = {ratings}
idle_seconds = 0.0
max_load = 1.0

[connectors.teams]
owners = {owners}
talkers = {talkers}
app_id = "{settings.app_id}"
tenant = "{settings.tenant}"
port = {settings.port}
service_urls = {urls}
openid_metadata = "{settings.openid_metadata}"
token_endpoint = "{settings.token_endpoint}"
stream_interval = 0.05
edit_interval = 0.1
"""


def daemon_beside(
    home: Path, peer: TeamsPeer, *, ratings: int = 40, owners: Sequence[str] = ("ada",)
) -> Daemon:
    """A goodbot on that Teams, with these owners, and Carl who may only talk."""
    config = CONFIG.format(
        ratings=ratings,
        owners=json.dumps([peer.people[name].id for name in owners]),
        talkers=json.dumps([peer.people["carl"].id]),
        settings=peer.settings,
        urls=json.dumps(peer.settings.service_urls),
    )
    return Daemon(home, config, peer.environ)


class Person:
    """Somebody in the tenant: asks, waits, rates."""

    def __init__(self, peer: TeamsPeer, name: str) -> None:
        self.peer, self.name = peer, name
        self.client = peer.people[name]

    async def ask(
        self, text: str, place: TenantConversation | None = None, *, mention: bool = False
    ) -> Message:
        """Say something and wait for the whole answer, which has the label of an AI."""
        before = {message.id for message in self.client.sees(place)}
        self.client.says(text, place, mention=mention)

        async def answered() -> Message | None:
            new = [m for m in self.client.sees(place) if m.id not in before and is_answer(m)]
            return new[-1] if new else None

        return await eventually(answered, 60)  # pyright: ignore[reportReturnType]

    async def told(self, act: Callable[[], object], like: str = "") -> str:
        """What this person alone reads after they have done something; `like` is part of it."""
        if like in ("Good.", "Bad."):
            await asyncio.sleep(_CONFIRMED)
        before = list(await self.peer.notices(self.name))
        act()

        async def fresh() -> list[str]:
            left, new = before.copy(), list[str]()
            for text in await self.peer.notices(self.name):
                left.remove(text) if text in left else new.append(text)
            return [text for text in new if like in text]

        return (await eventually(fresh, 30))[-1]

    async def command(
        self,
        text: str,
        place: TenantConversation | None = None,
        *,
        about: Message | None = None,
        like: str = "",
    ) -> str:
        """Type `/rl …`, in a channel with the bot's name before it, and read the answer."""
        return await self.told(
            lambda: self.client.says(
                f"/rl {text}",
                place,
                mention=place is not None,
                quote=about,
                thread=about.thread if about else "",
            ),
            like,
        )

    def ref(self, answer: Message) -> MessageRef:
        """The message as the suite's driver takes it."""
        channel = ChannelRef(
            connector="teams", account="", id=answer.conversation.id, kind=ChannelKind.PRIVATE
        )
        return MessageRef(channel=channel, id=answer.id)

    async def offered(self, action: str) -> str:
        """Wait until this person can press an action that begins so; the whole of it."""

        async def there() -> list[str]:
            return [one for one in await self.peer.offers(self.name) if one.startswith(action)]

        return (await eventually(there, 30))[0]

    async def explain(self, answer: Message, text: str, *, better: bool = False) -> None:
        """Call it bad, then fill in the form that is offered for that, and see that it was kept."""
        await self.told(lambda: self.client.rates(answer, good=False), "Bad.")
        dialog = await self.peer.form(self.ref(answer), self.name)
        [send] = cards.actions(dialog.card)
        given = {"better" if better else "reason": text}
        await self.told(lambda: self.client.submits(dialog, send, given), "is kept")


def is_answer(message: Message) -> bool:
    """Whether a message is a whole answer of the model."""
    labels = [e for e in message.activity.get("entities", ()) if "additionalType" in e]
    return bool(labels) and message.stream in ("", "final")


Way = Callable[[Message, bool], Awaitable[None]]


def ways(person: Person) -> Iterator[Way]:
    """Every way to rate on Teams, in turn, for ever. In the end the answer is rated as told."""
    client = person.client

    async def reaction(answer: Message, good: bool) -> None:
        client.reacts(answer, "like" if good else "angry")

    async def skin_tone(answer: Message, good: bool) -> None:
        client.reacts(answer, f"{'1f44d_thumbsup' if good else '1f44e_thumbsdown'}-tone3")

    async def changed_reaction(answer: Message, good: bool) -> None:
        first, then = ("angry", "heart") if good else ("heart", "angry")
        client.reacts(answer, first)
        client.reacts(answer, then, instead_of=[first])

    async def removed_reaction(answer: Message, good: bool) -> None:
        wrong = "angry" if good else "like"
        client.rates(answer, good=good)
        client.reacts(answer, wrong)
        client.unreacts(answer, wrong)

    async def feedback(answer: Message, good: bool) -> None:
        await person.told(lambda: client.rates(answer, good=good), verdict(good))

    async def feedback_with_words(answer: Message, good: bool) -> None:
        client.rates(answer, good=good, text="That is how I see it.")

    async def command(answer: Message, good: bool) -> None:
        await person.command(word(good), about=answer, like=verdict(good))

    async def stars(answer: Message, good: bool) -> None:
        await person.command(f"stars {5 if good else 1}", about=answer)

    async def undo(answer: Message, good: bool) -> None:
        await person.told(lambda: client.rates(answer, good=not good), verdict(not good))
        await person.command("undo", about=answer, like="aken back")
        client.reacts(answer, "like" if good else "angry")

    async def better(answer: Message, good: bool) -> None:
        await person.explain(answer, "Sure thing! Happy to help.", better=True)
        await person.told(lambda: client.rates(answer, good=good), verdict(good))

    while True:
        yield from (
            reaction,
            skin_tone,
            changed_reaction,
            removed_reaction,
            feedback,
            feedback_with_words,
            command,
            stars,
            undo,
            better,
        )
