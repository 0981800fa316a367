# SPDX-License-Identifier: Apache-2.0
"""People on a fake Discord who know what our buttons mean; the `PlatformDriver` of our connector."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from goodbot.api.actions import rating
from goodbot.api.events import ChannelKind, ChannelRef, MessageRef
from goodbot.testing.connector_base import eventually
from goodbot.testing.host import RecordingHost
from goodbot_connectors.discord import presses
from goodbot_connectors.discord.config import TOKEN as NAME
from goodbot_connectors.discord.config import DiscordSettings
from goodbot_fakes.discord import (
    TOKEN,
    WRONG_TOKEN,
    Channel,
    DiscordDriver,
    FakeDiscord,
    Interaction,
    Message,
)

ENVIRON = {NAME: TOKEN}
_SILENT = 1 << 12


def settings(discord: FakeDiscord, **fields: Any) -> DiscordSettings:
    """Settings that lead to the fake, and do not keep a test waiting."""
    quick = {"edit_interval": 0.05}
    return DiscordSettings(api_base=discord.api, gateway=discord.gateway_url, **{**quick, **fields})


class DiscordPeer(DiscordDriver):
    """Ada, Bob and Carl."""

    def __init__(self, discord: FakeDiscord, **fields: Any) -> None:
        super().__init__(
            discord, settings=settings(discord, **fields), environ=ENVIRON, wrong_environ={NAME: WRONG_TOKEN}
        )
        self.host: RecordingHost | None = None
        """Knows what the keys in long buttons stand for."""
        self._kept: dict[str, str] = {}

    def action(self, custom_id: str) -> str:
        return presses.read(custom_id, self._kept)[0]

    async def press(self, message: MessageRef, action: str, *, user: str = "ada") -> None:
        await self._look_up()
        person = self.people[user]
        under = self.discord.world.messages[message.id]
        for place in (under, *reversed(self.shown(user))):
            if action in self.actions(place):
                person.presses(place, lambda one: self.action(one["custom_id"]) == action)
                return
        raise AssertionError(f"{user} sees no button {action}")

    async def offers(self, user: str = "ada") -> Sequence[str]:
        await self._look_up()
        for notice in reversed(self.shown(user)):
            found = [a for a in self.actions(notice) if not rating(a)]
            if found:
                return [action for action in found if action != presses.EXPLAIN]
        return []

    async def notices(self, user: str = "ada") -> Sequence[str]:
        """Ephemeral messages, and direct ones that came without a sound."""
        return [self.people[user].read(message) for message in self.shown(user)]

    async def comment(
        self, message: MessageRef, text: str, *, better: bool = False, user: str = "ada"
    ) -> None:
        """Press what asks for words, and fill in the form that it opens."""

        async def offered() -> bool:
            return any(presses.EXPLAIN in self.actions(one) for one in self.shown(user))

        await eventually(offered)
        await self.press(message, presses.EXPLAIN, user=user)
        await self.fill_in(user, **{"better" if better else "reason": text})

    async def fill_in(self, user: str, **values: str) -> Interaction:
        """Wait for a form, and send it."""
        person = self.people[user]
        await self.discord.until(lambda: person.form is not None)
        form = person.form
        assert form is not None
        return person.submits(form, **values)

    def shown(self, user: str) -> list[Message]:
        """What only this person is shown, in the order in which it came."""
        person = self.people[user]
        silent = [one for one in self.discord.said(person.dm) if one.flags & _SILENT]
        return sorted((*person.notices, *silent), key=lambda one: int(one.id))

    def ref(self, message: Message) -> MessageRef:
        """A message as the connector calls it."""
        world = self.discord.world
        place = world.channels[message.channel_id]
        parent = place.parent_id if place.parent_id in world.channels else ""
        kind = ChannelKind.PRIVATE if place.private else ChannelKind.SHARED
        channel = ChannelRef(
            connector="discord",
            account=world.bot.id,
            id=parent or place.id,
            kind=kind,
            thread=place.id if parent else "",
        )
        return MessageRef(channel=channel, id=message.id)

    def room(self, room: ChannelKind = ChannelKind.PRIVATE, user: str = "ada") -> ChannelRef:
        """A room as the connector calls it."""
        place: Channel = self.place(room, user)
        bot = self.discord.world.bot.id
        return ChannelRef(connector="discord", account=bot, id=place.id, kind=room)

    def command(self, user: str, line: str, channel: Channel | None = None) -> Interaction:
        """`/rl LINE`; what has no subcommand of its own goes by `/rl do`."""
        try:
            return self.people[user].command(f"rl {line}", channel)
        except LookupError:
            return self.people[user].command(f"rl do {line}", channel)

    async def _look_up(self) -> None:
        if self.host is not None:
            self._kept = json.loads(await self.host.get("actions") or "{}")
