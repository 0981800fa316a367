# SPDX-License-Identifier: Apache-2.0
"""The state of a Discord around one bot: who is where, what was said. No network.

What changes is told to `World.listener` with its channel; `sessions` decides what of it the bot gets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from goodbot.base.clock import Clock

from goodbot_fakes.discord import payloads, permissions
from goodbot_fakes.discord.errors import unknown
from goodbot_fakes.discord.records import (
    DM,
    FORUM,
    TEXT,
    THREAD,
    Channel,
    Guild,
    Message,
    Role,
    Snowflakes,
    User,
)

Json = dict[str, Any]
_REPLY = 19
_MENTION = re.compile(r"<@!?(\d{1,20})>")
_ROLE_MENTION = re.compile(r"<@&(\d{1,20})>")


class World:
    """Everything that Discord remembers; `bot` is the one under test."""

    def __init__(self, clock: Clock, bot: str, bot_id: str = "") -> None:
        self.clock = clock
        self.ids = Snowflakes(clock)
        self.users: dict[str, User] = {}
        self.guilds: dict[str, Guild] = {}
        self.channels: dict[str, Channel] = {}
        self.messages: dict[str, Message] = {}
        self.listener: Callable[[str, Json, Channel | None], None] = _nobody
        self.tells_author = True
        """Whether an added reaction names the author of the message; Discord does not promise to."""
        self.bot = self.add_user(bot, bot=True, id_=bot_id)

    # -- who and where

    def add_user(self, name: str, *, bot: bool = False, id_: str = "") -> User:
        user = User(id=id_ or self.ids.next(), name=name, bot=bot)
        self.users[user.id] = user
        return user

    def add_guild(self, name: str, members: Sequence[str], rights: int) -> Guild:
        """A server with the bot in it, who has `rights` by a role of its own; the first one owns it."""
        id_, role = self.ids.next(), self.ids.next()
        everybody = Role(id=id_, name="@everyone", permissions=permissions.EVERYBODY)
        managed = Role(id=role, name=self.bot.name, permissions=rights, bot_id=self.bot.id)
        guild = Guild(
            id=id_,
            name=name,
            owner_id=members[0],
            roles={id_: everybody, role: managed},
            members={who: [] for who in members} | {self.bot.id: [role]},
            joined_at=self.clock.now(),
        )
        self.guilds[id_] = guild
        self.listener("GUILD_CREATE", self.whole_guild(guild), None)
        return guild

    def add_channel(self, name: str, guild: Guild, kind: int = TEXT) -> Channel:
        channel = Channel(id=self.ids.next(), kind=kind, name=name, guild_id=guild.id)
        self.channels[channel.id] = channel
        self.listener("CHANNEL_CREATE", self.channel_json(channel), channel)
        return channel

    def add_thread(self, name: str, parent: Channel, owner: str, id_: str = "") -> Channel:
        """A public thread, of a message (whose id it then has), on its own, or a forum's post."""
        thread = Channel(
            id=id_ or self.ids.next(),
            kind=THREAD,
            name=name,
            guild_id=parent.guild_id,
            parent_id=parent.id,
            owner_id=owner,
            created=self.clock.now(),
        )
        self.channels[thread.id] = thread
        self.listener("THREAD_CREATE", self.channel_json(thread) | {"newly_created": True}, thread)
        return thread

    def direct(self, user_id: str) -> Channel:
        """The DM of a person with the bot, opened if need be."""
        for channel in self.channels.values():
            if channel.kind == DM and user_id in channel.recipients:
                return channel
        channel = Channel(id=self.ids.next(), kind=DM, recipients=(user_id, self.bot.id))
        self.channels[channel.id] = channel
        return channel

    def channel(self, channel_id: str) -> Channel:
        if channel_id not in self.channels:
            raise unknown("Channel")
        return self.channels[channel_id]

    def message(self, channel_id: str, message_id: str) -> Message:
        found = self.messages.get(message_id)
        if found is None or found.channel_id != channel_id or found.to:
            raise unknown("Message")
        return found

    def in_channel(self, channel_id: str) -> list[Message]:
        """The messages of a channel that all in it can see, oldest first."""
        return [m for m in self.messages.values() if m.channel_id == channel_id and not m.to]

    def guild_of(self, channel: Channel) -> Guild | None:
        return self.guilds.get(channel.guild_id)

    def rights(self, channel: Channel, user_id: str = "") -> int:
        """What somebody may do there, the bot if nobody is named."""
        parent = self.channels.get(channel.parent_id)
        guild = self.guild_of(channel)
        return permissions.in_channel(guild, channel, parent, user_id or self.bot.id)

    # -- what changes

    def post(
        self, channel: Channel, author: str, content: str = "", *, silent_reply: bool = False, **more: Any
    ) -> Message:
        """A new message for all in the channel, or with `to` for one person."""
        message = Message(
            id=more.pop("id", "") or self.ids.next(),
            channel_id=channel.id,
            author_id=author,
            content=content,
            sent_at=self.clock.now(),
            **more,
        )
        if message.reply_to:
            message.kind = _REPLY
            answered = self.messages.get(message.reply_to)
            if answered is not None and not silent_reply and answered.author_id != author:
                message.mentions.append(answered.author_id)
        self.messages[message.id] = message
        channel.archived = False
        if not message.to:
            self.listener("MESSAGE_CREATE", self.told(message), channel)
        return message

    def edit(self, message: Message, **changed: Any) -> None:
        for name, value in changed.items():
            setattr(message, name, value)
        message.edited_at = self.clock.now()
        if not message.to:
            channel = self.channels[message.channel_id]
            self.listener("MESSAGE_UPDATE", self.told(message), channel)

    def delete(self, message: Message) -> None:
        del self.messages[message.id]
        channel = self.channels[message.channel_id]
        if not message.to:
            event = {"id": message.id, "channel_id": channel.id} | _where(channel)
            self.listener("MESSAGE_DELETE", event, channel)

    def react(self, message: Message, user_id: str, emoji: str) -> bool:
        """Add a reaction; False if it is there already."""
        users = message.reactions.setdefault(emoji, [])
        if user_id in users:
            return False
        users.append(user_id)
        self._reacted("MESSAGE_REACTION_ADD", message, user_id, emoji)
        return True

    def unreact(self, message: Message, user_id: str, emoji: str) -> None:
        """Take a reaction away; nothing happens if it is not there."""
        users = message.reactions.get(emoji, [])
        if user_id not in users:
            return
        users.remove(user_id)
        if not users:
            del message.reactions[emoji]
        self._reacted("MESSAGE_REACTION_REMOVE", message, user_id, emoji)

    def _reacted(self, event: str, message: Message, user_id: str, emoji: str) -> None:
        channel = self.channels[message.channel_id]
        payload: Json = {
            "user_id": user_id,
            "channel_id": channel.id,
            "message_id": message.id,
            "emoji": payloads.emoji(emoji),
            "type": 0,
            "burst": False,
            **_where(channel),
        }
        if event == "MESSAGE_REACTION_ADD":
            if (guild := self.guild_of(channel)) is not None:
                payload["member"] = payloads.member(self.users[user_id], guild)
            if self.tells_author:
                payload["message_author_id"] = message.author_id
        self.listener(event, payload, channel)

    def named_in(self, content: str) -> tuple[list[str], list[str], bool]:
        """Users, roles and whether everybody is mentioned by a text."""
        users = [who for who in dict.fromkeys(_MENTION.findall(content)) if who in self.users]
        roles = list(dict.fromkeys(_ROLE_MENTION.findall(content)))
        return users, roles, "@everyone" in content or "@here" in content

    # -- as it is told

    def channel_json(self, channel: Channel) -> Json:
        last = [message.id for message in self.in_channel(channel.id)]
        found = payloads.channel(channel, self.users, reader=self.bot.id)
        return found | {"last_message_id": last[-1] if last else None}

    def whole_guild(self, guild: Guild) -> Json:
        """A server as `GUILD_CREATE` has it, with all that the bot may see."""
        mine = [one for one in self.channels.values() if one.guild_id == guild.id]
        return payloads.guild(guild) | {
            "joined_at": payloads.timestamp(guild.joined_at),
            "large": False,
            "unavailable": False,
            "member_count": len(guild.members),
            "members": [payloads.member(self.bot, guild)],
            "channels": [self.channel_json(one) for one in mine if one.kind in (TEXT, FORUM)],
            "threads": [self.channel_json(one) for one in mine if one.kind == THREAD],
            **{name: [] for name in payloads.EMPTY},
        }

    def message_json(self, message: Message, *, deep: bool = True) -> Json:
        """A message as REST shows it, with all its words."""
        found: Json = {
            "type": message.kind,
            "content": message.content,
            "id": message.id,
            "channel_id": message.channel_id,
            "author": payloads.user(self.users[message.author_id]),
            "mentions": [payloads.user(self.users[who]) for who in dict.fromkeys(message.mentions)],
            "mention_roles": message.mention_roles,
            "mention_everyone": message.mention_everyone,
            "attachments": message.attachments,
            "embeds": message.embeds,
            "timestamp": payloads.timestamp(message.sent_at),
            "flags": message.flags,
            "edited_timestamp": payloads.timestamp(message.edited_at) if message.edited_at else None,
            "components": message.components,
            "pinned": False,
            "tts": False,
        }
        if deep and (reactions := payloads.reactions(message, self.bot)):
            found["reactions"] = reactions
        told = {
            "webhook_id": message.webhook_id,
            "application_id": message.webhook_id,
            "interaction_metadata": message.interaction,
            "nonce": message.nonce,
        }
        found |= {name: value for name, value in told.items() if value}
        if message.reply_to:
            where = self.channels[message.channel_id].guild_id
            found["message_reference"] = {
                "type": 0,
                "channel_id": message.channel_id,
                "message_id": message.reply_to,
                **({"guild_id": where} if where else {}),
            }
            answered = self.messages.get(message.reply_to)
            if deep:
                found["referenced_message"] = self.message_json(answered, deep=False) if answered else None
        if message.id in self.channels:
            found["thread"] = self.channel_json(self.channels[message.id])
        return found

    def told(self, message: Message) -> Json:
        """A message as the gateway tells of it."""
        channel = self.channels[message.channel_id]
        guild = self.guild_of(channel)
        found = self.message_json(message) | _where(channel) | {"channel_type": channel.kind}
        if guild is not None and message.author_id in guild.members:
            author = self.users[message.author_id]
            found["member"] = payloads.member(author, guild, whole=False)
        return found

    def guild_channels(self, guild: Guild) -> Iterator[Channel]:
        """What the bot sees of a server's channels, without threads."""
        for channel in self.channels.values():
            visible = self.rights(channel) & permissions.VIEW_CHANNEL
            if channel.guild_id == guild.id and channel.kind != THREAD and visible:
                yield channel


def _where(channel: Channel) -> Json:
    return {"guild_id": channel.guild_id} if channel.guild_id else {}


def _nobody(event: str, payload: Json, channel: Channel | None) -> None:
    """Listens until the gateway does."""
