# SPDX-License-Identifier: Apache-2.0
"""What the tests on the fake Telegram share: a driver for our connector, and Telegram's types."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from goodbot.api.events import ChannelKind, ChannelRef, MessageRef
from goodbot.testing.connector_base import build, eventually
from goodbot.testing.host import RecordingHost
from goodbot_connectors.telegram import SPEC, callback
from goodbot_connectors.telegram.config import TOKEN as NAME
from goodbot_connectors.telegram.config import TelegramSettings
from goodbot_fakes.telegram import TOKEN, WRONG_TOKEN, FakeTelegram, TelegramDriver
from goodbot_fakes.telegram.keyboards import buttons

from tests.connectors.telegram.schema import check_call, check_result, check_type, specified

if TYPE_CHECKING:
    from goodbot_connectors.telegram.connector import TelegramConnector

ENVIRON = {NAME: TOKEN}


def settings(fake: FakeTelegram, **fields: Any) -> TelegramSettings:
    """Settings that lead to the fake, and do not keep a test waiting."""
    quick = {"poll_timeout": 5, "edit_interval": 0.2, "group_edit_interval": 0.2}
    return TelegramSettings(api_base=fake.api, **{**quick, **fields})


class Driver(TelegramDriver):
    """Ada, Bob and Carl, who know what our buttons mean."""

    def __init__(self, fake: FakeTelegram, **fields: Any) -> None:
        super().__init__(
            fake, settings=settings(fake, **fields), environ=ENVIRON, wrong_environ={NAME: WRONG_TOKEN}
        )
        self.host: RecordingHost | None = None
        """Knows what the keys in long buttons stand for."""
        self._kept: dict[str, str] = {}

    def action(self, data: str) -> str:
        found = callback.read(data, self._kept)
        return found.action if found and found.action not in callback.TYPED else ""

    async def press(self, message: MessageRef, action: str, *, user: str = "ada") -> None:
        await self._look_up()
        await super().press(message, action, user=user)

    async def offers(self, user: str = "ada") -> Sequence[str]:
        await self._look_up()
        return await super().offers(user)

    async def notices(self, user: str = "ada") -> Sequence[str]:
        """Toasts, what stands for some seconds where a button would, and silent private messages."""
        seen = self.people[user].sees()
        notes = [
            button["text"]
            for message in seen
            for button in buttons(message.json)
            if button["callback_data"].startswith(callback.NOTE)
        ]
        silent = [message.json["text"] for message in seen if message.silent]
        return [*await super().notices(user), *notes, *silent]

    async def comment(
        self, message: MessageRef, text: str, *, better: bool = False, user: str = "ada"
    ) -> None:
        """Press what asks for words, and type them into the reply that it opens."""
        wanted, person = "better" if better else "reason", self.people[user]
        chat, found = self.find(message)

        async def offered() -> str:
            shown = [button["callback_data"] for button in buttons(found.json)]
            return next((data for data in shown if data.startswith(f"{wanted}:")), "")

        before = {one.id for one in person.sees() if one.force_reply}
        person.presses(found.id, await eventually(offered), chat=chat)

        async def asked() -> bool:
            return any(one.force_reply and one.id not in before for one in person.sees())

        await eventually(asked)
        person.answers(text)

    async def _look_up(self) -> None:
        if self.host is not None:
            self._kept = json.loads(await self.host.get("data") or "{}")


@contextlib.asynccontextmanager
async def connected(driver: Driver, host: RecordingHost) -> AsyncIterator[TelegramConnector]:
    """Our connector on the fake, started, until the end of the block."""
    connector: Any = build(SPEC, host, driver)
    await connector.start()
    try:
        yield connector
    finally:
        await connector.stop()


def channel(driver: Driver, room: ChannelKind = ChannelKind.PRIVATE, user: str = "ada") -> ChannelRef:
    """A room as the connector calls it."""
    id_, account = driver.chat(room, user).id, str(driver.telegram.account.id)
    return ChannelRef(connector="telegram", account=account, id=str(id_), kind=room)


def check_conversation(fake: FakeTelegram) -> None:
    """Fail unless all that went to and fro has the shapes of the Bot API; nothing without its schema."""
    if not specified():
        return
    for call in fake.seen.calls:
        check_call(call.method, call.params)
        if call.result is not None:
            check_result(call.method, call.result)
    for update in fake.updates.pending:
        check_type("Update", update.json)
    for chat in fake.account.chats.values():
        for message in chat.messages.values():
            check_type("Message", message.json)
