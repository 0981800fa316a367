# SPDX-License-Identifier: Apache-2.0
"""`DiscordDriver`: the people of `ConnectorContract` on a `FakeDiscord`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from goodbot.api.actions import rating
from goodbot.api.events import ChannelKind, MessageRef
from goodbot.testing.platform import Post

from goodbot_fakes.discord import components
from goodbot_fakes.discord.people import Person
from goodbot_fakes.discord.records import THREAD, Channel, Message
from goodbot_fakes.discord.server import FakeDiscord


class DiscordDriver:
    """Ada, Bob and Carl, each in direct messages with the bot, and one channel of a server.

    What a connector writes into its buttons is its own affair: override `action`, and `comment` if
    people can type reasons.
    """

    good, bad = "👍", "👎"
    rooms = frozenset({ChannelKind.PRIVATE, ChannelKind.SHARED})

    def __init__(
        self,
        discord: FakeDiscord,
        *,
        settings: Any,
        environ: Mapping[str, str],
        wrong_environ: Mapping[str, str],
    ) -> None:
        self.discord = discord
        self.settings = settings
        self.environ, self.wrong_environ = environ, wrong_environ
        self.people = {name: discord.person(name) for name in ("ada", "bob", "carl")}
        self.guild = discord.guild("The lab", list(self.people.values()))
        self.lab = discord.channel("lab", self.guild)
        echo = discord.world.add_user("echo", bot=True)
        self.guild.members[echo.id] = []
        self.echo = Person(discord.state, echo)
        self._threads: dict[str, Channel] = {}

    def action(self, custom_id: str) -> str:
        """What the connector meant by a button's `custom_id`; empty for none of the core's."""
        return custom_id

    async def comment(
        self, message: MessageRef, text: str, *, better: bool = False, user: str = "ada"
    ) -> None:
        """A reason, or a better answer, in the connector's own way."""
        raise NotImplementedError("override `comment`: this connector declares COMMENTS")

    async def unacknowledged(self) -> int:
        """Dispatches beyond the number that the bot's last heartbeat said.

        Discord has no other acknowledgement: from its own number on it is told again at a RESUME. So
        this needs `FakeDiscord(heartbeat=…)` with a short time, and a bot that counts what it has stored.
        """
        live = [one for one in self.discord.gateway.live if one.socket.heartbeats]
        return sum(one.sequence - (one.socket.heartbeats[-1] or 0) for one in live)

    def place(self, room: ChannelKind, user: str = "ada") -> Channel:
        """The channel that a room of the suite is."""
        return self.lab if room is ChannelKind.SHARED else self.people[user].dm

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
        place, person = self.place(room, user), self.people[user]
        if thread:
            if thread not in self._threads:
                self._threads[thread] = person.opens_thread(thread, place)
            place = self._threads[thread]
        answered = self.discord.world.messages[reply_to] if reply_to else None
        files = ["photo.png" if n == "image" else n.removeprefix("file ") for n in attachments]
        message = person.says(text, place, mention=mention, reply_to=answered, files=files)
        return message.id

    async def say_as_bot(self, text: str, *, room: ChannelKind = ChannelKind.SHARED) -> None:
        """Another bot mentions ours; and our own message comes back, as all do on Discord."""
        world = self.discord.world
        for author in (self.echo.id, world.bot.id):
            words = f"<@{world.bot.id}> {text}"
            world.post(self.place(room), author, words, mentions=[world.bot.id])

    async def react(self, message: MessageRef, *, old: str = "", new: str = "", user: str = "ada") -> None:
        found = self.discord.world.messages[message.id]
        if old:
            self.people[user].unreacts(found, old)
        if new:
            self.people[user].reacts(found, new)

    async def press(self, message: MessageRef, action: str, *, user: str = "ada") -> None:
        person = self.people[user]
        for place in (self.discord.world.messages[message.id], *reversed(person.notices)):
            if action in self.actions(place):
                person.presses(place, lambda one: self.action(one["custom_id"]) == action)
                return
        raise AssertionError(f"{user} sees no button {action}")

    async def offers(self, user: str = "ada") -> Sequence[str]:
        for notice in reversed(self.people[user].notices):
            if found := self.actions(notice):
                return found
        return []

    async def posts(self, room: ChannelKind = ChannelKind.PRIVATE, user: str = "ada") -> Sequence[Post]:
        """What stands in the channel and in its threads."""
        place = self.place(room, user)
        names = {channel.id: name for name, channel in self._threads.items()}
        places = [place, *(c for c in self.discord.world.channels.values() if _in(c, place))]
        return [
            Post(
                id=message.id,
                text=components.text(message.content, message.components),
                buttons=tuple(a for a in self.actions(message) if rating(a)),
                thread=names.get(message.channel_id, ""),
            )
            for message in sorted(
                (one for channel in places for one in self.discord.said(channel)), key=lambda one: int(one.id)
            )
        ]

    async def notices(self, user: str = "ada") -> Sequence[str]:
        person = self.people[user]
        return [person.read(message) for message in person.notices]

    def actions(self, message: Message) -> list[str]:
        """The actions of the buttons of a message."""
        found = [self.action(one["custom_id"]) for one in components.buttons(message.components)]
        return [action for action in found if action]


def _in(channel: Channel, parent: Channel) -> bool:
    return channel.kind == THREAD and channel.parent_id == parent.id
