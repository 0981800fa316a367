# SPDX-License-Identifier: Apache-2.0
"""A goodbot beside a fake Slack, and people who talk to it there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

from goodbot.api.events import ChannelKind, ChannelRef, MessageRef
from goodbot.testing.connector_base import eventually
from goodbot_connectors.slack.presses import EXPLAIN, SHORTCUT
from goodbot_fakes.slack import Message
from goodbot_fakes.slack.blocks import shown

from tests.connectors.slack.peer import SlackPeer, actions
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

[connectors.slack]
owners = {owners}
talkers = {talkers}
api_base = "{api_base}"
append_interval = 0.05
edit_interval = 0.2
"""


def daemon_beside(
    home: Path, peer: SlackPeer, *, ratings: int = 40, owners: Sequence[str] = ("ada",)
) -> Daemon:
    """A goodbot on that Slack, with these owners, and Carl who may only talk."""
    people = peer.slack.people
    config = CONFIG.format(
        ratings=ratings,
        owners=[people.id(name) for name in owners],
        talkers=[people.id("carl")],
        api_base=peer.slack.api_url,
    )
    return Daemon(home, config, peer.environ)


class Person:
    """Somebody in the workspace: asks, waits, rates."""

    def __init__(self, peer: SlackPeer, name: str) -> None:
        self.peer, self.name = peer, name
        self._people = peer.slack.people

    def answers(self, root: Message) -> list[Message]:
        """What the bot has posted in the thread of a message, whole."""
        found = self.peer.slack.workspace.in_channel(root.channel)
        us = self.peer.slack.app.user.id
        mine = [m for m in found if m.thread_ts == root.ts and m.user == us]
        return [m for m in mine if m.streaming != "in_progress"]

    async def ask(self, text: str, channel: str = "", *, mention: bool = False) -> Message:
        """Say something and wait for the whole answer in its thread."""
        root = self._people.say(self.name, text, channel, mention=mention)

        async def whole() -> list[Message]:
            return self.answers(root)

        return (await eventually(whole, 30))[-1]

    async def told(self, act: Callable[[], Awaitable[object]], like: str = "") -> str:
        """What this person alone is shown after they have done something; `like` is part of it.

        What they did before may be told only now, so say what is awaited where it could be that.
        """
        before = {message.ts for message in self._people.notices(self.name)}
        await act()

        async def fresh() -> list[str]:
            new = [m for m in self._people.notices(self.name) if m.ts not in before]
            return [text for m in new if like in (text := shown(m.text, m.blocks))]

        return (await eventually(fresh, 30))[-1]

    async def command(self, text: str, channel: str = "", like: str = "") -> str:
        """Type `/rl …` and read the answer."""

        async def typed() -> None:
            self._people.command(self.name, text, channel)

        return await self.told(typed, like)

    def react(self, answer: Message, emoji: str) -> None:
        self._people.react(self.name, answer.channel, answer.ts, emoji)

    def unreact(self, answer: Message, emoji: str) -> None:
        self._people.unreact(self.name, answer.channel, answer.ts, emoji)

    def ref(self, answer: Message) -> MessageRef:
        kind = ChannelKind.PRIVATE if answer.channel.startswith("D") else ChannelKind.SHARED
        channel = ChannelRef(connector="slack", account="", id=answer.channel, kind=kind)
        return MessageRef(channel=channel, id=answer.ts)

    async def press(self, answer: Message, action: str, like: str = "") -> str:
        """Press a button under an answer, or of what only this person sees of it."""
        return await self.told(lambda: self.peer.press(self.ref(answer), action, user=self.name), like)

    async def say_why(self, answer: Message, text: str, *, better: bool = False) -> None:
        """Call it bad, then fill in the modal that is offered for that."""
        await self.press(answer, "bad", "Bad.")
        [*_, notice] = self._people.notices(self.name)
        assert EXPLAIN in actions(notice)
        await self.peer.comment(self.ref(answer), text, better=better, user=self.name)

    async def rate_in_a_modal(self, answer: Message, verdict: str) -> None:
        """The message shortcut “Rate this answer”."""
        self._people.shortcut(self.name, answer, SHORTCUT)
        slack = self.peer.slack
        await slack.until(lambda: self._people.modal(self.name) is not None)
        view = self._people.modal(self.name)
        assert view is not None
        self._people.submit(self.name, view, {"verdict": verdict})
        await slack.until(lambda: self._people.modal(self.name) is None)


Way = Callable[[Message, bool], Awaitable[None]]


def ways(person: Person) -> Iterator[Way]:
    """Every way to rate on Slack, in turn, for ever. In the end the answer is rated as told."""
    people = person.peer.slack.people

    async def reaction(answer: Message, good: bool) -> None:
        person.react(answer, "+1" if good else "-1")

    async def skin_tone(answer: Message, good: bool) -> None:
        person.react(answer, f"{'+1' if good else '-1'}::skin-tone-4")

    async def changed_reaction(answer: Message, good: bool) -> None:
        first, then = ("-1", "tada") if good else ("heart", "hankey")
        person.react(answer, first)
        person.unreact(answer, first)
        person.react(answer, then)

    async def feedback_buttons(answer: Message, good: bool) -> None:
        await person.press(answer, word(good), verdict(good))

    async def second_thoughts(answer: Message, good: bool) -> None:
        await person.press(answer, word(not good), verdict(not good))
        await person.press(answer, word(good), verdict(good))

    async def slash(answer: Message, good: bool) -> None:
        await person.command(word(good), like=verdict(good))

    async def typed_in_the_thread(answer: Message, good: bool) -> None:
        async def typed() -> None:
            people.say(person.name, f"rl {word(good)}", answer.channel, mention=True, thread=answer.thread_ts)

        await person.told(typed, verdict(good))

    async def shortcut(answer: Message, good: bool) -> None:
        await person.rate_in_a_modal(answer, word(good))

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
            feedback_buttons,
            second_thoughts,
            slash,
            typed_in_the_thread,
            shortcut,
            reason,
            better,
        )
