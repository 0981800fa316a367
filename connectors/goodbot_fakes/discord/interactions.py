# SPDX-License-Identifier: Apache-2.0
"""Interactions: what a person started, what the bot has answered, and until when it still may.

discord.com/developers/docs/interactions/receiving-and-responding
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any, Literal

from goodbot_fakes.discord import drafts, payloads, permissions
from goodbot_fakes.discord.errors import DiscordError, unknown
from goodbot_fakes.discord.records import EPHEMERAL, LOADING, Channel, Message, User
from goodbot_fakes.discord.registry import ON_MESSAGE
from goodbot_fakes.discord.world import World

Json = dict[str, Any]

COMMAND, COMPONENT, MODAL_SUBMIT = 2, 3, 5
REPLY, DEFERRED_REPLY, DEFERRED_UPDATE, UPDATE, MODAL = 4, 5, 6, 7, 9
FIRST_ANSWER_SECONDS = 3.0
TOKEN_SECONDS = 900.0
_KINDS = {COMMAND: 20, COMPONENT: 0, MODAL_SUBMIT: 0}
_CONTEXT_COMMAND = 23


@dataclass(kw_only=True, eq=False)
class Interaction:
    """One interaction. `answers` are the messages that it got, the original one first."""

    id: str
    token: str
    kind: int
    user: User
    channel: Channel
    data: Json
    started: float
    """By the clock's monotonic seconds, as `answered_at`."""
    message: Message | None = None
    """Under which the pressed component stands."""
    opened_by: Interaction | None = None
    """Of a form that was sent: what it was opened by."""
    answer: Literal["", "reply", "deferred", "deferred update", "update", "modal"] = ""
    answered_at: float = 0.0
    original: Message | None = None
    modal: Json | None = None
    answers: list[Message] = field(default_factory=list[Message])


class Interactions:
    """All interactions with one bot, by their tokens."""

    def __init__(self, world: World) -> None:
        self.log: list[Interaction] = []
        self._world = world
        self._by_token: dict[str, Interaction] = {}

    def start(
        self,
        kind: int,
        user: User,
        channel: Channel,
        data: Json,
        message: Message | None = None,
        opened_by: Interaction | None = None,
    ) -> Interaction:
        """Somebody does something; the bot is told over the gateway."""
        world = self._world
        found = Interaction(
            id=world.ids.next(),
            token=secrets.token_urlsafe(60),
            kind=kind,
            user=user,
            channel=channel,
            data=data,
            started=world.clock.monotonic(),
            message=message,
            opened_by=opened_by,
        )
        self.log.append(found)
        self._by_token[found.token] = found
        world.listener("INTERACTION_CREATE", self._told(found), None)
        return found

    def failed(self, one: Interaction) -> bool:
        """Whether the person is told “This interaction failed”: no answer within three seconds."""
        late = self._world.clock.monotonic() - one.started > FIRST_ANSWER_SECONDS
        return not one.answer and late

    # -- what the bot answers

    def respond(self, id_: str, token: str, body: Json) -> Message | None:
        """The first answer; the message that it made or changed. Raises `DiscordError`."""
        one = self._by_token.get(token)
        if one is None or one.id != id_ or self.failed(one):
            raise unknown("Interaction")
        if one.answer:
            raise DiscordError(400, 40060, "Interaction has already been acknowledged.")
        kind: int = body["type"]
        data: Json = body.get("data") or {}
        if kind == REPLY:
            one.original = self._post(one, data)
            one.answer = "reply"
        elif kind == DEFERRED_REPLY:
            flags = LOADING | ((data.get("flags") or 0) & EPHEMERAL)
            one.original = self._place(one, flags=flags)
            one.answer = "deferred"
        elif kind in (DEFERRED_UPDATE, UPDATE) and one.message is not None:
            one.original = one.message
            if kind == UPDATE:
                drafts.change(self._world, one.message, data)
            one.answer = "update" if kind == UPDATE else "deferred update"
        elif kind == MODAL and one.kind != MODAL_SUBMIT:
            one.modal = data
            one.answer = "modal"
        else:
            raise DiscordError(400, 50035, "Invalid Form Body")
        one.answered_at = self._world.clock.monotonic()
        return one.original

    def follow_up(self, token: str, body: Json) -> Message:
        """One more message; after a deferral without any, that is the deferred one."""
        one = self._open(token)
        if one.answer == "deferred" and one.original and one.original.flags & LOADING:
            self._fill(one.original, body)
            return one.original
        return self._post(one, body)

    def message(self, token: str, message_id: str) -> Message:
        """A message of this interaction, `@original` among them. Raises `DiscordError`."""
        one = self._open(token)
        found = one.original if message_id == "@original" else None
        for message in one.answers:
            if message.id == message_id:
                found = message
        if found is None or found.id not in self._world.messages:
            raise unknown("Message")
        return found

    def edit(self, token: str, message_id: str, body: Json) -> Message:
        """Change a message of this interaction; the deferred one gets its words so."""
        found = self.message(token, message_id)
        if found.flags & LOADING:
            self._fill(found, body)
        else:
            drafts.change(self._world, found, body)
        return found

    def _open(self, token: str) -> Interaction:
        one = self._by_token.get(token)
        if one is None or not one.answer:
            raise unknown("Webhook")
        if self._world.clock.monotonic() - one.started > TOKEN_SECONDS:
            raise DiscordError(401, 50027, "Invalid Webhook Token")
        return one

    def _post(self, one: Interaction, body: Json) -> Message:
        made = drafts.draft(self._world, one.channel, body, limit=drafts.WEBHOOK_LIMIT)
        return self._place(one, **made)

    def _place(self, one: Interaction, **fields: Any) -> Message:
        world, metadata = self._world, self._metadata(one)
        kind = _CONTEXT_COMMAND if "target_message_id" in metadata else _KINDS[one.kind]
        ephemeral = fields.get("flags", 0) & EPHEMERAL
        message = world.post(
            one.channel,
            world.bot.id,
            kind=kind,
            interaction=metadata,
            webhook_id=world.bot.id,
            to=one.user.id if ephemeral else "",
            **fields,
        )
        one.answers.append(message)
        return message

    def _metadata(self, one: Interaction) -> Json:
        found: Json = {
            "id": one.id,
            "type": one.kind,
            "user": payloads.user(one.user),
            "authorizing_integration_owners": self._owners(one),
        }
        if one.opened_by is not None:
            return found | {"triggering_interaction_metadata": self._metadata(one.opened_by)}
        if one.kind == COMPONENT and one.message is not None:
            found["interacted_message_id"] = one.message.id
        if one.kind == COMMAND and one.data["type"] == ON_MESSAGE:
            found["target_message_id"] = one.data["target_id"]
        return found

    def _fill(self, message: Message, body: Json) -> None:
        channel = self._world.channels[message.channel_id]
        made = drafts.draft(self._world, channel, body, limit=drafts.WEBHOOK_LIMIT)
        made["flags"] = made["flags"] & ~EPHEMERAL | message.flags & EPHEMERAL
        self._world.edit(message, **made)
        message.edited_at = 0.0

    # -- as it is told

    def _owners(self, one: Interaction) -> Json:
        return {"0": one.channel.guild_id or "0"}

    def _told(self, one: Interaction) -> Json:
        world, channel = self._world, one.channel
        guild = world.guild_of(channel)
        found: Json = {
            "id": one.id,
            "application_id": world.bot.id,
            "type": one.kind,
            "data": one.data,
            "token": one.token,
            "version": 1,
            "locale": one.user.locale,
            "channel": world.channel_json(channel),
            "channel_id": channel.id,
            "app_permissions": str(world.rights(channel)),
            "entitlements": [],
            "attachment_size_limit": 10_485_760,
            "authorizing_integration_owners": self._owners(one),
            "context": 0 if guild else 1,
        }
        if one.message is not None:
            found["message"] = world.message_json(one.message)
        if guild is None:
            return found | {"user": payloads.user(one.user)}
        rights = str(permissions.of_member(guild, one.user.id))
        return found | {
            "guild_id": guild.id,
            "guild_locale": "en-US",
            "guild": {"id": guild.id, "locale": "en-US", "features": []},
            "member": payloads.member(one.user, guild) | {"permissions": rights},
        }
