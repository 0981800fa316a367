# SPDX-License-Identifier: Apache-2.0
"""The state of a Slack workspace: people, conversations, messages, views. No network, no rights.

Whatever changes is told to `Workspace.listener` as an event of the Events API, for everyone to
see; which app gets it is decided in `subscriptions`.
"""

from __future__ import annotations

import itertools
import mimetypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from goodbot.base.clock import Clock

from goodbot_fakes.slack.blocks import with_block_ids
from goodbot_fakes.slack.errors import SlackError

Json = dict[str, Any]
Kind = Literal["im", "mpim", "channel", "group"]
"""Slack's own names: direct message, group message, public channel, private channel."""
TEAM = "T0G00DB0T"


@dataclass(kw_only=True, slots=True)
class User:
    """A person or a bot; `app_id` and `bot_id` are a bot's."""

    id: str
    name: str
    app_id: str = ""
    bot_id: str = ""
    team: str = TEAM
    """Their workspace: another one where a channel is shared with its people (Slack Connect)."""
    locale: str = "en-US"


@dataclass(kw_only=True, slots=True)
class Channel:
    """A conversation and who is in it, by user id."""

    id: str
    name: str
    kind: Kind
    members: set[str]


@dataclass(kw_only=True, slots=True)
class Message:
    """One message. `text` is escaped as Slack keeps it (`&lt;`), `reactions` go by emoji name."""

    channel: str
    ts: str
    user: str
    text: str
    blocks: list[Json] = field(default_factory=list[Json])
    thread_ts: str = ""
    files: list[Json] = field(default_factory=list[Json])
    metadata: Json | None = None
    edited_ts: str = ""
    reactions: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    to: str = ""
    """Set for an ephemeral message: the one person who sees it."""
    streaming: Literal["", "in_progress", "completed"] = ""


@dataclass(kw_only=True, slots=True)
class View:
    """A modal or a home tab that a person sees; `body` is what the app sent."""

    id: str
    user: str
    hash: str
    body: Json


@dataclass(kw_only=True, slots=True)
class UserGroup:
    """People who are mentioned together, as `@handle`."""

    id: str
    handle: str
    users: list[str]


class Workspace:
    """Everything that a workspace remembers. Times come from `clock`; ids are counted."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.users: dict[str, User] = {}
        self.channels: dict[str, Channel] = {}
        self.messages: dict[tuple[str, str], Message] = {}
        self.ephemeral: dict[str, Message] = {}
        self.views: dict[str, View] = {}
        self.homes: dict[str, View] = {}
        self.usergroups: dict[str, UserGroup] = {}
        self.statuses: dict[tuple[str, str], str] = {}
        """What is shown under a thread while an agent works, by channel and thread."""
        self.listener: Callable[[Json], None] = lambda event: None
        self._numbers = itertools.count(1)
        self._last_us = 0

    def mint(self, prefix: str) -> str:
        """A new id such as `U00000007`."""
        return f"{prefix}{next(self._numbers):08d}"

    def ts(self) -> str:
        """A new timestamp, `seconds.microseconds`, later than all before it."""
        self._last_us = max(int(self.clock.now() * 1_000_000), self._last_us + 1)
        return f"{self._last_us // 1_000_000}.{self._last_us % 1_000_000:06d}"

    # -- who and where

    def add_user(self, name: str, **known: str) -> User:
        user = User(id=self.mint("U"), name=name, **known)
        self.users[user.id] = user
        return user

    def add_channel(self, name: str, members: Sequence[str], kind: Kind = "channel") -> Channel:
        prefix = {"im": "D", "mpim": "G", "channel": "C", "group": "C"}[kind]
        channel = Channel(id=self.mint(prefix), name=name, kind=kind, members=set(members))
        self.channels[channel.id] = channel
        return channel

    def add_usergroup(self, handle: str, users: Sequence[str]) -> UserGroup:
        group = UserGroup(id=self.mint("S"), handle=handle, users=list(users))
        self.usergroups[group.id] = group
        return group

    def direct(self, one: str, other: str) -> Channel:
        """The direct messages of two people, opened if need be."""
        for channel in self.channels.values():
            if channel.kind == "im" and channel.members == {one, other}:
                return channel
        return self.add_channel("", (one, other), "im")

    def user(self, user_id: str) -> User:
        if user_id not in self.users:
            raise SlackError("user_not_found")
        return self.users[user_id]

    def channel(self, channel_id: str) -> Channel:
        if channel_id not in self.channels:
            raise SlackError("channel_not_found")
        return self.channels[channel_id]

    def message(self, channel: str, ts: str) -> Message:
        if (channel, ts) not in self.messages:
            raise SlackError("message_not_found")
        return self.messages[channel, ts]

    def in_channel(self, channel: str) -> list[Message]:
        """The messages of a conversation, oldest first."""
        return sorted((m for m in self.messages.values() if m.channel == channel), key=lambda m: m.ts)

    # -- what changes

    def post(self, channel: str, user: str, text: str, **more: Any) -> Message:
        """A new message for all in the conversation."""
        message = Message(channel=channel, ts=self.ts(), user=user, text=text, **more)
        message.blocks = with_block_ids(message.blocks, self.mint)
        self.messages[channel, message.ts] = message
        self.listener(self.told(message))
        return message

    def whisper(self, channel: str, user: str, to: str, text: str, **more: Any) -> Message:
        """A message that one person sees until they look elsewhere; it is in no history."""
        message = Message(channel=channel, ts=self.ts(), user=user, to=to, text=text, **more)
        message.blocks = with_block_ids(message.blocks, self.mint)
        self.ephemeral[message.ts] = message
        return message

    def edit(self, message: Message, text: str, blocks: list[Json]) -> None:
        before = self.shape(message)
        message.text, message.blocks = text, with_block_ids(blocks, self.mint)
        message.edited_ts = self.ts()
        self.listener(self._hidden("message_changed", message, before, self.shape(message)))

    def delete(self, message: Message) -> None:
        del self.messages[message.channel, message.ts]
        event = self._hidden("message_deleted", message, self.shape(message))
        self.listener({**event, "deleted_ts": message.ts})

    def react(self, message: Message, user: str, emoji: str) -> None:
        users = message.reactions.setdefault(emoji, [])
        if user in users:
            raise SlackError("already_reacted")
        users.append(user)
        self._reacted("reaction_added", message, user, emoji)

    def unreact(self, message: Message, user: str, emoji: str) -> None:
        if user not in message.reactions.get(emoji, []):
            raise SlackError("no_reaction")
        message.reactions[emoji].remove(user)
        if not message.reactions[emoji]:
            del message.reactions[emoji]
        self._reacted("reaction_removed", message, user, emoji)

    def _reacted(self, kind: str, message: Message, user: str, emoji: str) -> None:
        item = {"type": "message", "channel": message.channel, "ts": message.ts}
        self.listener(
            {
                "type": kind,
                "user": user,
                "reaction": emoji,
                "item": item,
                "item_user": message.user,
                "event_ts": self.ts(),
            }
        )

    def _hidden(self, subtype: str, message: Message, previous: Json, now: Json | None = None) -> Json:
        event: Json = {
            "type": "message",
            "subtype": subtype,
            "hidden": True,
            "channel": message.channel,
            "channel_type": self.channels[message.channel].kind,
            "ts": self.ts(),
            "event_ts": self.ts(),
            "previous_message": previous,
        }
        return event | ({"message": now} if now else {})

    # -- how it is told

    def shape(self, message: Message) -> Json:
        """A message as Slack's Web API and its interactions show it."""
        author = self.users[message.user]
        shape: Json = {
            "type": "message",
            "user": message.user,
            "team": author.team,
            "ts": message.ts,
            "text": message.text,
            "blocks": message.blocks,
        }
        if author.bot_id:
            shape |= {"bot_id": author.bot_id, "app_id": author.app_id}
        else:
            shape["client_msg_id"] = f"00000000-0000-4000-8000-{message.ts.replace('.', '')[-12:]}"
        if message.thread_ts:
            shape["thread_ts"] = message.thread_ts
            root = self.messages.get((message.channel, message.thread_ts))
            shape |= {"parent_user_id": root.user} if root and root.ts != message.ts else {}
        if message.edited_ts:
            shape["edited"] = {"user": message.user, "ts": message.edited_ts}
        if message.metadata:
            shape["metadata"] = message.metadata
        if message.reactions:
            shape["reactions"] = [
                {"name": name, "users": list(users), "count": len(users)}
                for name, users in message.reactions.items()
            ]
        if message.files:
            shape["files"] = message.files
        return shape

    def told(self, message: Message) -> Json:
        """A new message as the Events API tells it."""
        event = self.shape(message) | {
            "channel": message.channel,
            "channel_type": self.channels[message.channel].kind,
            "event_ts": message.ts,
        }
        if message.files:
            event["subtype"] = "file_share"
        return event


def file(name: str) -> Json:
    """What a message says of a file that came with it. There is nothing to download."""
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    ending = name.rpartition(".")[2]
    address = f"https://files.slack.example/{name}"
    return {
        "id": "F00000001",
        "created": 1_800_000_000,
        "name": name,
        "title": name,
        "mimetype": kind,
        "filetype": ending,
        "pretty_type": ending.upper(),
        "size": 2048,
        "mode": "hosted",
        "editable": False,
        "username": "",
        "external_type": "",
        "is_external": False,
        "is_public": False,
        "public_url_shared": False,
        "display_as_bot": False,
        "permalink": address,
        "url_private": address,
        "channels": [],
        "groups": [],
    }
