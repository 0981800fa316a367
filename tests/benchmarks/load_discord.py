# SPDX-License-Identifier: Apache-2.0
"""The load on Discord: reactions in a channel, presses in direct messages, over the gateway."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from goodbot.testing.connector_base import eventually
from goodbot_connectors.discord import presses
from goodbot_connectors.discord.config import TOKEN as NAME
from goodbot_fakes.discord import TOKEN, Channel, FakeDiscord, Interaction, Message

from tests.benchmarks.load import PRESSES, Opinion

BEAT = 0.05
"""Seconds between heartbeats, by which Discord learns how far the bot has stored."""
_SILENT = 1 << 12


class DiscordLoad:
    """An owner, raters, a channel with the bot in it, and its answers there.

    A press is acknowledged by its first answer. A reaction has no acknowledgement but the number in the next
    heartbeat, up to which a RESUME tells nothing again: what is measured is late by half a beat.
    """

    name = "discord"
    environ = {NAME: TOKEN}  # noqa: RUF012  read only

    def __init__(self, discord: FakeDiscord, *, raters: int, answers: int, lessons: int) -> None:
        self.discord = discord
        self.owner = discord.person("olga")
        self.raters = [discord.person(f"rater{n}") for n in range(raters)]
        guild = discord.guild("The lab", [self.owner, *self.raters])
        self.channel = discord.channel("lab", guild)
        self._answers, self._lessons = answers, lessons
        self._rated: list[Message] = []
        self._taught: list[Message] = []
        self._private: dict[str, Message] = {}
        self._due: dict[Any, Interaction | int] = {}
        self._settled: dict[Any, float] = {}
        discord.gateway.beats.append(self._beat)

    @property
    def section(self) -> Mapping[str, Any]:
        return {
            "owners": [self.owner.id],
            "raters": [person.id for person in self.raters],
            "api_base": self.discord.api,
            "gateway": self.discord.gateway_url,
            "edit_interval": 0.0,
            "mark": "",
        }

    async def prepare(self) -> None:
        await eventually(self._offered, 60)
        enabled = self.owner.command("rl do enable", self.channel)
        await self.discord.until(lambda: bool(enabled.answers), 60)
        asked: list[Message] = []
        for n in range(self._answers + self._lessons):
            asked.append(self.owner.says(f"How much is {n} + {n}?", self.channel, mention=True))
            if n % 10 == 9:
                await self._answer(self.channel, asked[-1])
        found = [await self._answer(self.channel, question) for question in asked]
        self._rated, self._taught = found[: self._answers], found[self._answers :]
        for rater in self.raters:
            rater.says("Hello?")
        for rater in self.raters:
            self._private[rater.id] = await self._answer(rater.dm)
        await self._quiet()

    async def teach(self, count: int) -> None:
        for n, answer in enumerate(self._taught[:count]):
            self.owner.reacts(answer, "👎" if n % 2 else "👍")
        await self._quiet()

    async def train(self) -> None:
        told = self.owner.command("rl train")
        await self.discord.until(lambda: bool(told.answers), 60)
        await self._quiet()

    async def rate(self, number: int) -> tuple[Any, Opinion]:
        good = bool((number // PRESSES + number) % 2)
        if number % PRESSES == 0:
            rater = self.raters[number // PRESSES % len(self.raters)]
            message, wanted = self._private[rater.id], "good" if good else "bad"
            self._due[number] = rater.presses(
                message, lambda one: presses.read(one["custom_id"])[0] == wanted
            )
        else:
            nth = number - number // PRESSES - 1
            rater = self.raters[nth % len(self.raters)]
            message = self._rated[nth // len(self.raters)]
            rater.reacts(message, "👍" if good else "👎")
            self._due[number] = max(one.sequence for one in self.discord.gateway.live)
        return number, Opinion(
            rater=rater.id,
            channel=self.channel.id if number % PRESSES else rater.dm.id,
            message=message.id,
            value=1.0 if good else -1.0,
        )

    def settled(self) -> Mapping[Any, float]:
        interactions = self.discord.interactions
        for number, due in list(self._due.items()):
            if isinstance(due, Interaction) and due.answer:
                self._settled[number] = due.answered_at
                del self._due[number]
            elif isinstance(due, Interaction) and interactions.failed(due):
                self._settled[number] = math.inf
        return self._settled

    def _beat(self, stored: int) -> None:
        """All reactions up to this number are stored."""
        now = self.discord.clock.monotonic()
        for number, due in list(self._due.items()):
            if isinstance(due, int):
                if due > stored:
                    break
                self._settled[number] = now
                del self._due[number]

    async def _offered(self) -> bool:
        return "rl" in self.owner.commands()

    async def _answer(self, place: Channel, question: Message | None = None) -> Message:
        """The whole answer to a question in the channel, or the first one in a private chat."""

        async def whole() -> Message | None:
            for one in self.discord.said(place):
                mine = question is None or one.reply_to == question.id
                if mine and (question is not None or one.components) and not one.flags & _SILENT:
                    return one
            return None

        found = await eventually(whole, 120)
        assert found is not None
        return found

    async def _quiet(self) -> None:
        """Until the bot says that all is stored, and has answered every interaction."""

        async def nothing_waits() -> bool:
            log = self.discord.interactions.log
            stored = all(
                one.socket.heartbeats and (one.socket.heartbeats[-1] or 0) >= one.sequence
                for one in self.discord.gateway.live
            )
            return stored and all(one.answer for one in log)

        await eventually(nothing_waits, 120)
