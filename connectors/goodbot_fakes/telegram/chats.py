# SPDX-License-Identifier: Apache-2.0
"""Chats, who is in them, and the messages that they hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from goodbot_fakes.telegram.errors import Json, bad_request

PRIVATE, GROUP, SUPERGROUP = "private", "group", "supergroup"
HERE = ("creator", "administrator", "member")
_RIGHTS = (
    "can_manage_chat",
    "can_delete_messages",
    "can_manage_video_chats",
    "can_restrict_members",
    "can_promote_members",
    "can_change_info",
    "can_invite_users",
    "can_post_stories",
    "can_edit_stories",
    "can_delete_stories",
)


@dataclass(kw_only=True)
class Message:
    """One message. `json` is the `Message` that the Bot API would show now."""

    json: Json
    reactions: dict[int, list[Json]] = field(default_factory=dict[int, list[Json]])
    """By the user's id; also the bot's own."""
    force_reply: bool = False
    silent: bool = False

    @property
    def id(self) -> int:
        return self.json["message_id"]

    @property
    def author(self) -> int:
        return self.json["from"]["id"]


@dataclass(kw_only=True)
class Chat:
    """A chat as Telegram keeps it."""

    id: int
    kind: str
    title: str = ""
    """A group's title, or the first name of the person in a private chat."""
    forum: bool = False
    members: dict[int, str] = field(default_factory=dict[int, str])
    """Statuses by user id, the bot's among them: creator, administrator, member, left, kicked."""
    topics: dict[int, str] = field(default_factory=dict[int, str])
    messages: dict[int, Message] = field(default_factory=dict[int, Message])
    started: bool = True
    """Whether the person in a private chat has ever written to the bot."""
    blocked: bool = False
    moved_to: int = 0
    """The supergroup that this group has become."""

    @property
    def private(self) -> bool:
        return self.kind == PRIVATE

    @property
    def json(self) -> Json:
        """The `Chat` of the Bot API."""
        name = "first_name" if self.private else "title"
        found: Json = {"id": self.id, "type": self.kind, name: self.title}
        return found | {"is_forum": True} if self.forum else found

    def message(self, message_id: int, what: str) -> Message:
        """Raises `BotApiError`: message to `what` not found."""
        if not message_id:
            raise bad_request("message identifier is not specified")
        if (found := self.messages.get(message_id)) is None:
            raise bad_request(f"message to {what} not found")
        return found


def member(user: Json, status: str) -> Json:
    """The `ChatMember` of the Bot API."""
    found: Json = {"status": status, "user": user}
    if status == "creator":
        return found | {"is_anonymous": False}
    if status == "administrator":
        rights = dict.fromkeys(_RIGHTS, False) | {"can_manage_chat": True}
        return found | {"can_be_edited": False, "is_anonymous": False} | rights
    return found | {"until_date": 0} if status == "kicked" else found


class MessageIds:
    """Supergroups count their own messages; all other chats of an account share one count."""

    def __init__(self) -> None:
        self._shared = 0

    def next(self, chat: Chat) -> int:
        """The id of the next message in `chat`."""
        if chat.kind == SUPERGROUP:
            return max(chat.messages, default=0) + 1
        self._shared += 1
        return self._shared


def as_reply(message: Json) -> Json:
    """A message as another one's `reply_to_message`, which goes one step back only."""
    return {name: value for name, value in message.items() if name != "reply_to_message"}


def text_of(message: Json) -> str:
    """What can be read of a message."""
    found: Any = message.get("text") or message.get("caption") or ""
    return found
