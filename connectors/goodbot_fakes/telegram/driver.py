# SPDX-License-Identifier: Apache-2.0
"""`TelegramDriver`: the people of `ConnectorContract` on a `FakeTelegram`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from goodbot.api.actions import rating
from goodbot.api.events import ChannelKind, MessageRef
from goodbot.testing.platform import Post

from goodbot_fakes.telegram import keyboards
from goodbot_fakes.telegram.chats import Chat, Message
from goodbot_fakes.telegram.errors import Json
from goodbot_fakes.telegram.people import Person
from goodbot_fakes.telegram.server import FakeTelegram

_PHOTO: Json = {"file_id": "AgACAgIA", "file_unique_id": "AQADAgAT", "width": 90, "height": 67}
_FILE: Json = {"file_id": "BQACAgIA", "file_unique_id": "AgADBAAD"}


class TelegramDriver:
    """Ada, Bob and Carl, each in private with the bot, and one forum of which it is administrator.

    What a connector writes into its buttons is its own affair: override `action`, and `comment` if
    people can type reasons.
    """

    good, bad = "👍", "👎"
    rooms = frozenset({ChannelKind.PRIVATE, ChannelKind.SHARED})

    def __init__(
        self,
        telegram: FakeTelegram,
        *,
        settings: Any,
        environ: Mapping[str, str],
        wrong_environ: Mapping[str, str],
    ) -> None:
        self.telegram = telegram
        self.settings = settings
        self.environ, self.wrong_environ = environ, wrong_environ
        self.people = {name: telegram.person(name.title()) for name in ("ada", "bob", "carl")}
        members = list(self.people.values())
        self.group = telegram.group("The lab", members, admin=True, topics=["elsewhere"])
        self._threads: dict[str, int] = {}

    def action(self, data: str) -> str:
        """What the connector meant by a button's `callback_data`; empty for none of the core's."""
        return data

    async def comment(
        self, message: MessageRef, text: str, *, better: bool = False, user: str = "ada"
    ) -> None:
        """A reason, or a better answer, in the connector's own way."""
        raise NotImplementedError("override `comment`: this connector declares COMMENTS")

    def chat(self, room: ChannelKind, user: str = "ada") -> Chat:
        """The chat that a room of the suite is."""
        return self.people[user].chat if room is ChannelKind.PRIVATE else self.group

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
        chat = self.chat(room, user)
        if thread and thread not in self._threads:
            self._threads[thread] = self.telegram.topic(chat, thread)
        fields: Json = {}
        for name in attachments:
            fields |= _attached(name)
        sent = self.people[user].says(
            text,
            chat=chat,
            mention=mention,
            reply_to=int(reply_to or 0),
            thread=self._threads.get(thread, 0),
            **fields,
        )
        return str(sent)

    async def say_as_bot(self, text: str, *, room: ChannelKind = ChannelKind.SHARED) -> None:
        """Other bots are seen where both have that switched on; our own messages never come back."""
        account = self.telegram.account
        echo: Json = {"id": 5_500_001, "is_bot": True, "first_name": "Echo", "username": "echo_bot"}
        for author in (echo, account.user):
            Person(account, author).says(text, chat=self.chat(room), mention=True)

    async def react(self, message: MessageRef, *, old: str = "", new: str = "", user: str = "ada") -> None:
        chat, found = self.find(message)
        self.people[user].reacts(found.id, *([new] if new else []), chat=chat)

    async def press(self, message: MessageRef, action: str, *, user: str = "ada") -> None:
        chat, found = self.find(message)
        shown = {self.action(data): data for data in _data(found)}
        self.people[user].presses(found.id, shown[action], chat=chat)

    async def posts(self, room: ChannelKind = ChannelKind.PRIVATE, user: str = "ada") -> Sequence[Post]:
        """The messages, and last what is being written."""
        person, topics = self.people[user], {n: name for name, n in self._threads.items()}
        posts = [
            Post(
                id=str(message.id),
                text=message.json["text"],
                buttons=tuple(found for found in self._actions(message) if rating(found)),
                thread=topics.get(message.json.get("message_thread_id", 0), ""),
            )
            for message in person.sees(self.chat(room, user))
        ]
        drafted = room is ChannelKind.PRIVATE and person.draft
        return [*posts, Post(id="draft", text=drafted)] if drafted else posts

    async def offers(self, user: str = "ada") -> Sequence[str]:
        """What stands under the newest message that has more than ratings under it."""
        for message in reversed(self.people[user].sees()):
            if found := [action for action in self._actions(message) if not rating(action)]:
                return found
        return []

    async def notices(self, user: str = "ada") -> Sequence[str]:
        return [toast.text for toast in self.people[user].toasts]

    async def unacknowledged(self) -> int:
        return len(self.telegram.updates.pending)

    def find(self, message: MessageRef) -> tuple[Chat, Message]:
        """A message, and the chat where it stands."""
        chat = self.telegram.account.chats[int(message.channel.id)]
        return chat, chat.messages[int(message.id)]

    def _actions(self, message: Message) -> list[str]:
        return [action for data in _data(message) if (action := self.action(data))]


def _data(message: Message) -> list[str]:
    return [button["callback_data"] for button in keyboards.buttons(message.json)]


def _attached(name: str) -> Json:
    kind, _, file = name.partition(" ")
    return {"photo": [_PHOTO]} if kind == "image" else {"document": _FILE | {"file_name": file}}
