# SPDX-License-Identifier: Apache-2.0
"""Which answer an unknown message is another copy of. Telegram tells a message only to who changes it.

A bot can change the buttons of its own messages alone, of any age and wherever they stand, and
nobody is told: no sound, no "edited". So a button comes, the words are told, and it goes again.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from goodbot.api.connector import SentAnswer
from goodbot.api.events import Button, ChannelKind, ChannelRef, MessageRef, Reply

from goodbot_connectors.kit.copies import FirstCopies
from goodbot_connectors.kit.lru import Recent, forget
from goodbot_connectors.telegram import callback, render
from goodbot_connectors.telegram.api import Api
from goodbot_connectors.telegram.keyboards import Keyboards


class CopyReader:
    """Of one account."""

    def __init__(self, api: Api, keyboards: Keyboards, *, group_buttons: bool) -> None:
        self._api, self._keyboards, self._group_buttons = api, keyboards, group_buttons
        self._first = FirstCopies(when=int)
        self._others = Recent[tuple[str, str], None]()

    def no_answer(self, messages: Sequence[MessageRef]) -> None:
        """These say something else, and keep their buttons."""
        for one in messages:
            self._others[one.channel.id, one.id] = None

    def forget(self, chat: str) -> None:
        """Know no message of a chat any more, and of none what was read there."""
        forget(chat, self._others)
        self._first.forget()

    async def of(self, message: MessageRef, answers: Sequence[SentAnswer]) -> str:
        """As `Connector.copied`."""
        chat, id_ = message.channel.id, message.id
        if (chat, id_) in self._others or self._keyboards.offered(chat) == id_:
            return ""

        def parts(text: str) -> list[str]:
            return [part["text"] for part in render.messages(message.channel, Reply(text=text))]

        async def words(around: Sequence[SentAnswer]) -> str:
            # Never that of another time: what is there already would be refused, and not be told.
            sign = Button(action=callback.NOTE, label="…")
            keyboard = render.keyboard(secrets.token_hex(8), [sign])
            found = await self._api.touched(int(chat), int(id_), keyboard)
            if found is None:
                return ""
            last = [one for one in around for end in parts(one.text)[-1:] if end.strip() == found.strip()]
            keyboard = self._keyboard(message.channel, last[0]) if len(last) == 1 else None
            await self._api.edit_keyboard(int(chat), int(id_), keyboard)
            return found

        return await self._first.of(message, answers, words=words, parts=parts)

    def _keyboard(self, channel: ChannelRef, answer: SentAnswer) -> dict[str, object] | None:
        """What stands under the end of the last copy."""
        if channel.kind is not ChannelKind.PRIVATE and not self._group_buttons:
            return None
        end = max(answer.messages, key=lambda ref: int(ref.id))
        return render.keyboard(answer.turn, self._keyboards.row(channel.id, end.id))
