# SPDX-License-Identifier: Apache-2.0
"""The load on Telegram: reactions in a group, presses in private chats."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from goodbot.testing.connector_base import eventually
from goodbot_connectors.telegram import callback
from goodbot_connectors.telegram.config import TOKEN as NAME
from goodbot_fakes.telegram import TOKEN, Chat, FakeTelegram, Message, Person
from goodbot_fakes.telegram.keyboards import buttons

from tests.benchmarks.load import PRESSES, Opinion


class TelegramLoad:
    """An owner, raters, a group where the bot is administrator, and its answers there."""

    name = "telegram"
    environ = {NAME: TOKEN}  # noqa: RUF012  read only

    def __init__(self, fake: FakeTelegram, *, raters: int, answers: int, lessons: int) -> None:
        self.fake = fake
        self.owner = fake.person("Olga")
        self.raters = [fake.person(f"Rater {n}") for n in range(raters)]
        self.group = fake.group("The lab", [self.owner, *self.raters], admin=True)
        self._answers, self._lessons = answers, lessons
        self._rated: list[int] = []
        self._taught: list[int] = []
        self._private: dict[int, int] = {}

    @property
    def section(self) -> Mapping[str, Any]:
        return {
            "owners": [self.owner.id],
            "raters": [person.id for person in self.raters],
            "api_base": self.fake.api,
            "poll_timeout": 5,
            "edit_interval": 0.0,
            "group_edit_interval": 0.0,
        }

    async def prepare(self) -> None:
        self.owner.says("/rl enable", chat=self.group)
        await self._seen(self.owner, self.group, 1)
        answers: list[Message] = []
        for n in range(self._answers + self._lessons):
            self.owner.says(f"How much is {n} + {n}?", chat=self.group, mention=True)
            if n % 10 == 9 or n + 1 == self._answers + self._lessons:
                answers = await self._seen(self.owner, self.group, n + 1, "How much is")
        ids = [message.id for message in answers]
        self._rated, self._taught = ids[: self._answers], ids[self._answers :]
        for rater in self.raters:
            rater.says("Hello?")
        for rater in self.raters:
            [answer] = await self._seen(rater, rater.chat, 1)
            self._private[rater.id] = answer.id

            async def has_buttons(message: Message = answer) -> bool:
                return "reply_markup" in message.json

            await eventually(has_buttons, 60)
        await self._quiet()

    async def teach(self, count: int) -> None:
        for n, message in enumerate(self._taught[:count]):
            self.owner.reacts(message, "👎" if n % 2 else "👍", chat=self.group)
        await self._quiet()

    async def train(self) -> None:
        self.owner.says("/rl train")
        await self._quiet()

    async def rate(self, number: int) -> tuple[Any, Opinion]:
        good = bool((number // PRESSES + number) % 2)
        first = self.fake.updates.next_id
        if number % PRESSES == 0:
            rater = self.raters[number // PRESSES % len(self.raters)]
            chat, message = rater.chat, self._private[rater.id]
            data = self._data(message, chat)["good" if good else "bad"]
            rater.presses(message, data, chat=chat)
        else:
            nth = number - number // PRESSES - 1
            rater = self.raters[nth % len(self.raters)]
            chat, message = self.group, self._rated[nth // len(self.raters)]
            rater.reacts(message, "👍" if good else "👎", chat=chat)
        return first, Opinion(
            rater=str(rater.id), channel=str(chat.id), message=str(message), value=1.0 if good else -1.0
        )

    def settled(self) -> Mapping[Any, float]:
        return self.fake.updates.confirmed

    def _data(self, message: int, chat: Chat) -> dict[str, str]:
        """Callback data by action."""
        shown = [button["callback_data"] for button in buttons(chat.messages[message].json)]
        return {found.action: data for data in shown if (found := callback.read(data))}

    async def _seen(self, person: Person, chat: Chat, count: int, question: str = "") -> list[Message]:
        """The bot's messages as soon as there are so many, of those that answer such a question."""

        def answers(message: Message) -> bool:
            return question in message.json.get("reply_to_message", {}).get("text", "")

        async def enough() -> list[Message]:
            found = [message for message in person.sees(chat) if answers(message)]
            return found if len(found) >= count else []

        return await eventually(enough, 120)

    async def _quiet(self) -> None:
        async def nothing_waits() -> bool:
            return not self.fake.updates.pending

        await eventually(nothing_waits, 60)
        await asyncio.sleep(0.5)
