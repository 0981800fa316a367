# SPDX-License-Identifier: Apache-2.0
"""A goodbot beside a fake Discord, and people who talk to it there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

from goodbot.testing.connector_base import eventually
from goodbot_fakes.discord import Channel, Message

from tests.connectors.discord.peer import DiscordPeer
from tests.end_to_end.daemon import Daemon
from tests.end_to_end.rating import verdict, word

CONFIG = """
[serving]
ask = "never"
max_tokens = 48
history = 0

[training]
min_ratings = {ratings}
idle_seconds = 0.0
max_load = 1.0

[connectors.discord]
owners = {owners}
talkers = {talkers}
api_base = "{api_base}"
gateway = "{gateway}"
edit_interval = 0.2
"""
MENU = {"good": "Good answer", "bad": "Bad answer"}
FORM = "Rate this answer…"


def daemon_beside(
    home: Path, peer: DiscordPeer, *, ratings: int = 40, owners: Sequence[str] = ("ada",)
) -> Daemon:
    """A goodbot on that Discord, with these owners, and Carl who may only talk."""
    config = CONFIG.format(
        ratings=ratings,
        owners=[peer.people[name].id for name in owners],
        talkers=[peer.people["carl"].id],
        api_base=peer.discord.api,
        gateway=peer.discord.gateway_url,
    )
    return Daemon(home, config, peer.environ)


class Person:
    """Somebody with the app: asks, waits, rates."""

    def __init__(self, peer: DiscordPeer, name: str) -> None:
        self.peer, self.name, self.person = peer, name, peer.people[name]

    def answers(self, place: Channel) -> list[Message]:
        """What the bot has said there for all to see; whispers come without a sound."""
        whispers = {message.id for message in self.peer.shown(self.name)}
        return [one for one in self.peer.discord.said(place) if one.id not in whispers]

    async def ask(self, text: str, place: Channel | None = None, *, mention: bool = False) -> Message:
        """Say something and wait for the beginning of what is said to it."""
        place = place or self.person.dm
        before = {message.id for message in self.answers(place)}
        self.person.says(text, place, mention=mention)

        async def fresh() -> list[Message]:
            return [one for one in self.answers(place) if one.id not in before]

        return (await eventually(fresh, 30))[0]

    async def told(self, act: Callable[[], object], like: str = "") -> str:
        """What this person alone is shown after they have done something; `like` is part of it."""
        before = {message.id: self.person.read(message) for message in self.peer.shown(self.name)}
        act()

        async def fresh() -> list[str]:
            shown = [(one.id, self.person.read(one)) for one in self.peer.shown(self.name)]
            return [text for id_, text in shown if like in text and before.get(id_) != text and text]

        return (await eventually(fresh, 30))[-1]

    async def command(self, line: str, place: Channel | None = None, like: str = "") -> str:
        """Type `/rl …` and read the answer."""
        return await self.told(lambda: self.peer.command(self.name, line, place), like)

    async def press(self, answer: Message, action: str, like: str = "") -> str:
        """Press a button under an answer, or of what only this person sees of it."""

        def act() -> None:
            for place in (answer, *reversed(self.peer.shown(self.name))):
                if action in self.peer.actions(place):
                    self.person.presses(place, lambda one: self.peer.action(one["custom_id"]) == action)
                    return
            raise AssertionError(f"{self.name} sees no button {action}")

        return await self.told(act, like)

    async def say_why(self, answer: Message, text: str, *, better: bool = False) -> None:
        """Call it bad, then fill in the form that is offered for that."""
        await self.press(answer, "bad", "Bad.")
        await self.peer.comment(self.peer.ref(answer), text, better=better, user=self.name)

    async def rate_in_a_form(self, answer: Message, verdict: str, like: str) -> None:
        """An entry of the message's context menu opens it."""
        self.person.menu(FORM, answer)
        await self.peer.discord.until(lambda: self.person.form is not None)
        form = self.person.form
        assert form is not None
        await self.told(lambda: self.person.submits(form, verdict=verdict), like)


Way = Callable[[Message, bool], Awaitable[None]]


def ways(person: Person) -> Iterator[Way]:
    """Every way to rate on Discord, in turn, for ever. In the end the answer is rated as told."""
    ada = person.person

    async def reaction(answer: Message, good: bool) -> None:
        ada.reacts(answer, "👍" if good else "👎")

    async def skin_tone(answer: Message, good: bool) -> None:
        ada.reacts(answer, "👍🏽" if good else "👎🏽")

    async def changed_reaction(answer: Message, good: bool) -> None:
        first, then = ("👎", "🎉") if good else ("❤️", "💩")
        ada.reacts(answer, first)
        ada.unreacts(answer, first)
        ada.reacts(answer, then)

    async def buttons(answer: Message, good: bool) -> None:
        await person.press(answer, word(good), verdict(good))

    async def second_thoughts(answer: Message, good: bool) -> None:
        await person.press(answer, word(not good), verdict(not good))
        await person.press(answer, word(good), verdict(good))

    async def slash(answer: Message, good: bool) -> None:
        await person.command(word(good), like=verdict(good))

    async def context_menu(answer: Message, good: bool) -> None:
        await person.told(lambda: ada.menu(MENU[word(good)], answer), verdict(good))

    async def form(answer: Message, good: bool) -> None:
        await person.rate_in_a_form(answer, word(good), verdict(good))

    async def reason(answer: Message, good: bool) -> None:
        await person.say_why(answer, "It is not how I talk.")
        await person.press(answer, word(good), verdict(good))

    async def better(answer: Message, good: bool) -> None:
        await person.say_why(answer, "Sure thing! Happy to help.", better=True)
        await person.press(answer, word(good), verdict(good))

    while True:
        yield from (
            reaction,
            skin_tone,
            changed_reaction,
            buttons,
            second_thoughts,
            slash,
            context_menu,
            form,
            reason,
            better,
        )
