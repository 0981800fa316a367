# SPDX-License-Identifier: Apache-2.0
"""The bot's account: all that Telegram knows of one bot and the chats that it is in."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any

from goodbot.base.clock import Clock

from goodbot_fakes.telegram import chats, texts
from goodbot_fakes.telegram.chats import HERE, Chat, Message, MessageIds
from goodbot_fakes.telegram.errors import BotApiError, Json, bad_request, forbidden
from goodbot_fakes.telegram.flood import FloodControl, FloodLimits
from goodbot_fakes.telegram.menus import Menus
from goodbot_fakes.telegram.updates import UpdateQueue
from goodbot_fakes.telegram.webhook import Webhook

_SERVICE = (
    "new_chat_members",
    "left_chat_member",
    "new_chat_title",
    "forum_topic_created",
    "migrate_to_chat_id",
    "migrate_from_chat_id",
    "pinned_message",
)


@dataclass(kw_only=True)
class ApiCall:
    """A call of a Bot API method, with its parameters as JSON, and what it got."""

    method: str
    params: Json
    result: Any = None
    error: str = ""
    """Telegram's description, if it was refused."""


@dataclass(frozen=True, kw_only=True)
class Toast:
    """What one person alone was shown after a press."""

    user: int
    text: str
    alert: bool = False


@dataclass(frozen=True, kw_only=True)
class MessageDraft:
    """A message that is being written; clients show it until `until`, in monotonic seconds."""

    text: str
    until: float


@dataclass(kw_only=True)
class Failure:
    """A call that is to fail."""

    method: str
    error: BotApiError
    times: int = 1


@dataclass(kw_only=True)
class BotActivity:
    """What the bot has done that is no message."""

    calls: list[ApiCall] = field(default_factory=list[ApiCall])
    toasts: list[Toast] = field(default_factory=list[Toast])
    actions: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """Chat and action of each sendChatAction."""
    drafts: dict[int, MessageDraft] = field(default_factory=dict[int, "MessageDraft"])
    """What is being written now, by private chat."""


class BotAccount:
    """One bot."""

    def __init__(self, *, token: str, username: str, clock: Clock, limits: FloodLimits | None = None) -> None:
        self.token = token
        self.clock = clock
        self.user: Json = {
            "id": int(token.partition(":")[0]),
            "is_bot": True,
            "first_name": "Good Bot",
            "username": username,
        }
        self.reads_groups = False
        """Whether privacy mode is off (@BotFather, /setprivacy)."""
        self.users: dict[int, Json] = {self.id: self.user}
        self.chats: dict[int, Chat] = {}
        self.ids = MessageIds()
        self.updates = UpdateQueue(clock)
        self.flood = FloodControl(clock, limits)
        self.menus = Menus()
        self.webhook = Webhook(self.updates, clock)
        self.seen = BotActivity()
        self.failures: list[Failure] = []
        self.queries: dict[str, tuple[int, float]] = {}
        """Who pressed and when, by the callback query's id, until it is answered."""

    @property
    def id(self) -> int:
        return self.user["id"]

    def chat(self, chat_id: int | str) -> Chat:
        """A chat that the bot may write to. Raises `BotApiError`."""
        if not chat_id:
            raise bad_request("chat_id is empty")
        found = self.chats.get(chat_id) if isinstance(chat_id, int) else None
        if found is None:
            raise bad_request("chat not found")
        if found.moved_to:
            raise bad_request(
                "group chat was upgraded to a supergroup chat", migrate_to_chat_id=found.moved_to
            )
        if found.blocked:
            raise forbidden("bot was blocked by the user")
        if not found.started:
            raise forbidden("bot can't initiate conversation with a user")
        if not found.private and found.members.get(self.id) not in HERE:
            gone = "kicked from" if found.members.get(self.id) == "kicked" else "not a member of"
            raise forbidden(f"bot {'was' if 'kicked' in gone else 'is'} {gone} the {found.kind} chat")
        return found

    def own(self, chat_id: int | str, message_id: int, what: str) -> tuple[Chat, Message]:
        """A message of the bot's own, to do `what` with. Raises `BotApiError`."""
        chat = self.chat(chat_id)
        message = chat.message(message_id, what)
        if message.author != self.id or (what == "edit" and message.force_reply):
            raise bad_request(f"message can't be {'edited' if what == 'edit' else 'deleted'}")
        return chat, message

    def is_admin(self, chat: Chat) -> bool:
        return chat.members.get(self.id) in ("creator", "administrator")

    def seconds(self) -> int:
        """Now, as the Bot API has it."""
        return int(self.clock.now())

    def post(self, chat: Chat, author: Json, *, thread: int = 0, **fields: Any) -> Message:
        """Put a message into a chat."""
        json: Json = {
            "message_id": self.ids.next(chat),
            "date": self.seconds(),
            "chat": chat.json,
            "from": author,
            **fields,
        }
        if thread:
            json |= {"message_thread_id": thread, "is_topic_message": True}
        message = Message(json=json)
        chat.messages[message.id] = message
        return message

    def tell(self, chat: Chat, message: Json, kind: str = "message") -> int | None:
        """Let the bot know of a person's message, if it may; privacy mode hides idle talk."""
        meant = chat.private or self.is_admin(chat) or self.reads_groups or self._is_meant(message)
        here = chat.private or chat.members.get(self.id) in HERE
        return self.updates.put(kind, message) if meant and here else None

    def _is_meant(self, message: Json) -> bool:
        """core.telegram.org/bots/features#privacy-mode."""
        if message.get("reply_to_message", {}).get("from", {}).get("id") == self.id:
            return True
        text, at_us = chats.text_of(message), f"@{self.user['username']}".casefold()
        for entity in message.get("entities", []):
            words = texts.cut(text, entity).casefold()
            if entity["type"] == "bot_command" and (words.endswith(at_us) or "@" not in words):
                return True
            if entity["type"] == "mention" and words == at_us:
                return True
            if entity["type"] == "text_mention" and entity["user"]["id"] == self.id:
                return True
        return any(name in message for name in _SERVICE)

    def query(self, user: int) -> str:
        """The id of a new callback query."""
        id_ = str(secrets.randbits(62))
        self.queries[id_] = (user, self.clock.monotonic())
        return id_
