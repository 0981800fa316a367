# SPDX-License-Identifier: Apache-2.0
"""The load on Teams: reactions in a channel, its own feedback in personal chats, each a signed request."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from goodbot.testing.connector_base import eventually
from goodbot_connectors.teams.config import APP_PASSWORD
from goodbot_fakes.teams import APP_ID, PASSWORD, FakeTeams, Message, Pace, Person, TenantConversation

from tests.benchmarks.load import PRESSES, Opinion
from tests.support import free_port

PACE = Pace(retries=(1.0, 5.0, 30.0, 60.0, 120.0))
"""What Teams does after the first minute, nobody has told; the load asks for what is stored in the end."""


class TeamsLoad:
    """An owner, raters, a channel with the bot in it, and its answers there."""

    name = "teams"
    environ: Mapping[str, str] = {APP_PASSWORD: PASSWORD}

    def __init__(self, teams: FakeTeams, *, raters: int, answers: int, lessons: int) -> None:
        self.teams = teams
        self._port = free_port()
        teams.endpoint = f"http://127.0.0.1:{self._port}/api/messages"
        self._olga = teams.person("Olga")
        self._raters = [teams.person(f"Rater{n}") for n in range(raters)]
        self.channel = teams.channel("The lab", [self._olga, *self._raters])
        self._answers, self._lessons = answers, lessons
        self._rated: list[Message] = []
        self._taught: list[Message] = []
        self._private: dict[str, Message] = {}

    @property
    def section(self) -> Mapping[str, Any]:
        return {
            "owners": [self._olga.id],
            "raters": [rater.id for rater in self._raters],
            "app_id": APP_ID,
            "tenant": self.teams.tenant.id,
            "port": self._port,
            "service_urls": [self.teams.service_url],
            "token_endpoint": self.teams.token_endpoint,
            "openid_metadata": self.teams.openid_metadata,
            "stream_interval": 0.05,
            "edit_interval": 0.1,
        }

    async def prepare(self) -> None:
        self._olga.says("/rl enable", self.channel, mention=True)
        await eventually(self._told, 60)
        found: list[Message] = []
        for n in range(self._answers + self._lessons):
            found.append(self._olga.says(f"How much is {n} + {n}?", self.channel, mention=True))
            if n % 10 == 9:
                await self._answer(self._olga, self.channel, found[-1].thread)
        answers = [await self._answer(self._olga, self.channel, root.thread) for root in found]
        self._rated, self._taught = answers[: self._answers], answers[self._answers :]
        for rater in self._raters:
            rater.says("Hello?")
        self._private = {rater.id: await self._answer(rater, rater.chat) for rater in self._raters}
        await self.teams.settled(60)

    async def teach(self, count: int) -> None:
        for n, answer in enumerate(self._taught[:count]):
            self._olga.reacts(answer, "angry" if n % 2 else "like")
        await self.teams.settled(60)

    async def train(self) -> None:
        self._olga.says("/rl train")
        await self.teams.settled(60)

    async def rate(self, number: int) -> tuple[Any, Opinion]:
        good = bool((number // PRESSES + number) % 2)
        first = len(self.teams.outbox.log)
        if number % PRESSES == 0:
            rater = self._raters[number // PRESSES % len(self._raters)]
            message = self._private[rater.id]
            rater.rates(message, good=good)
        else:
            nth = number - number // PRESSES - 1
            rater = self._raters[nth % len(self._raters)]
            message = self._rated[nth // len(self._raters)]
            rater.reacts(message, "like" if good else "angry")
        return first, Opinion(
            rater=rater.id, channel=message.conversation.id, message=message.id, value=1.0 if good else -1.0
        )

    def settled(self) -> Mapping[Any, float]:
        return {
            number: delivery.acknowledged_at if delivery.state == "acknowledged" else math.inf
            for number, delivery in enumerate(self.teams.outbox.log)
            if delivery.state != "pending"
        }

    async def _told(self) -> bool:
        return bool(self._olga.sees(self.channel) or self._olga.sees())

    async def _answer(self, person: Person, place: TenantConversation, thread: str = "") -> Message:
        """The whole answer, in a channel in the thread of a question."""

        async def whole() -> Message | None:
            for message in person.sees(place):
                labels = [e for e in message.activity.get("entities", ()) if "additionalType" in e]
                if labels and message.stream in ("", "final") and thread in ("", message.thread):
                    return message
            return None

        found = await eventually(whole, 120)
        assert found is not None
        return found
