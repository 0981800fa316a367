# SPDX-License-Identifier: Apache-2.0
"""The load on Slack: reactions in a channel, feedback buttons in direct messages, over Socket Mode."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from goodbot.testing.connector_base import eventually
from goodbot_connectors.slack.config import APP_TOKEN, BOT_TOKEN, SIGNING_SECRET
from goodbot_fakes.slack import FakeSlack, Message

from tests.benchmarks.load import PRESSES, Opinion
from tests.connectors.slack.peer import action_of


class SlackLoad:
    """An owner, raters, a channel with the bot in it, and its answers there."""

    name = "slack"

    def __init__(self, slack: FakeSlack, *, raters: int, answers: int, lessons: int) -> None:
        self.slack, self._people = slack, slack.people
        self.raters = [f"rater{n}" for n in range(raters)]
        self._ids = {name: self._people.id(name) for name in ("olga", *self.raters)}
        self.channel = slack.workspace.add_channel("lab", [*self._ids.values(), slack.app.user.id])
        self._answers, self._lessons = answers, lessons
        self._rated: list[Message] = []
        self._taught: list[Message] = []
        self._private: dict[str, Message] = {}

    @property
    def environ(self) -> Mapping[str, str]:
        app = self.slack.app
        return {BOT_TOKEN: app.bot_token, APP_TOKEN: app.app_token, SIGNING_SECRET: app.signing_secret}

    @property
    def section(self) -> Mapping[str, Any]:
        return {
            "owners": [self._ids["olga"]],
            "raters": [self._ids[name] for name in self.raters],
            "api_base": self.slack.api_url,
            "append_interval": 0.05,
            "edit_interval": 0.1,
        }

    async def prepare(self) -> None:
        self._people.command("olga", "enable", self.channel.id)
        await eventually(self._told, 60)
        roots: list[Message] = []
        for n in range(self._answers + self._lessons):
            text = f"How much is {n} + {n}?"
            roots.append(self._people.say("olga", text, self.channel.id, mention=True))
            if n % 10 == 9:
                await self._answer(roots[-1])
        found = [await self._answer(root) for root in roots]
        self._rated, self._taught = found[: self._answers], found[self._answers :]
        asked = {name: self._people.say(name, "Hello?") for name in self.raters}
        self._private = {name: await self._answer(root) for name, root in asked.items()}
        await self.slack.settled(60)

    async def teach(self, count: int) -> None:
        for n, answer in enumerate(self._taught[:count]):
            self._people.react("olga", answer.channel, answer.ts, "-1" if n % 2 else "+1")
        await self.slack.settled(60)

    async def train(self) -> None:
        self._people.command("olga", "train")
        await self.slack.settled(60)

    async def rate(self, number: int) -> tuple[Any, Opinion]:
        good = bool((number // PRESSES + number) % 2)
        first = len(self.slack.outbox.log)
        if number % PRESSES == 0:
            rater = self.raters[number // PRESSES % len(self.raters)]
            message, wanted = self._private[rater], "good" if good else "bad"
            self._people.press(rater, message, lambda found: action_of(found) == wanted)
        else:
            nth = number - number // PRESSES - 1
            rater = self.raters[nth % len(self.raters)]
            message = self._rated[nth // len(self.raters)]
            self._people.react(rater, message.channel, message.ts, "+1" if good else "-1")
        return first, Opinion(
            rater=self._ids[rater], channel=message.channel, message=message.ts, value=1.0 if good else -1.0
        )

    def settled(self) -> Mapping[Any, float]:
        return {
            number: delivery.acknowledged_at if delivery.state == "acknowledged" else math.inf
            for number, delivery in enumerate(self.slack.outbox.log)
            if delivery.state != "pending"
        }

    async def _told(self) -> bool:
        return bool(self._people.notices("olga"))

    async def _answer(self, root: Message) -> Message:
        """The whole answer in the thread of a question."""

        async def whole() -> Message | None:
            us = self.slack.app.user.id
            found = [
                message
                for message in self.slack.workspace.in_channel(root.channel)
                if message.thread_ts == root.ts and message.user == us and not message.to
            ]
            whole = bool(found) and found[0].streaming != "in_progress"
            return found[0] if whole else None

        return await eventually(whole, 120)
