# SPDX-License-Identifier: Apache-2.0
"""What a bot wants to say, held to Discord's limits before it becomes a message."""

from __future__ import annotations

from typing import Any

from goodbot.base.text import units

from goodbot_fakes.discord import components, permissions
from goodbot_fakes.discord.errors import DiscordError, invalid_form, too_long
from goodbot_fakes.discord.records import COMPONENTS_V2, EPHEMERAL, Channel, Message
from goodbot_fakes.discord.world import World

Json = dict[str, Any]

MESSAGE_LIMIT = WEBHOOK_LIMIT = 2000
"""Characters of a message without Nitro; the schema says 4000, the server does not."""
_SETTABLE = (1 << 2) | EPHEMERAL | (1 << 12) | COMPONENTS_V2
"""`SUPPRESS_EMBEDS`, `EPHEMERAL`, `SUPPRESS_NOTIFICATIONS`, `IS_COMPONENTS_V2`."""


def draft(world: World, channel: Channel, body: Json, *, limit: int = MESSAGE_LIMIT) -> Json:
    """The fields of a new message. Raises `DiscordError` for what Discord would not take."""
    flags = (body.get("flags") or 0) & _SETTABLE
    v2 = bool(flags & COMPONENTS_V2)
    content = _content(body.get("content"), limit)
    embeds = list(body.get("embeds") or ())
    shown = components.accept(body.get("components") or (), v2=v2)
    if v2 and (content or embeds):
        raise invalid_form(
            "content",
            "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2",
            "The 'content' field cannot be used when using MessageFlags.IS_COMPONENTS_V2",
        )
    if not (content or embeds or shown):
        raise DiscordError(400, 50006, "Cannot send an empty message")
    return {
        "content": content,
        "embeds": embeds,
        "components": shown,
        "flags": flags,
        **_mentions(world, channel, components.text(content, shown), body.get("allowed_mentions")),
    }


def change(world: World, message: Message, body: Json) -> None:
    """Edit a message: what the body does not name stays. Raises `DiscordError`."""
    flags = message.flags
    if body.get("flags") is not None:
        flags = (flags & ~_SETTABLE | body["flags"] & _SETTABLE) | (flags & EPHEMERAL)
    if message.flags & COMPONENTS_V2 and not flags & COMPONENTS_V2:
        raise invalid_form("flags", "MESSAGE_FLAGS_INVALID", "IS_COMPONENTS_V2 cannot be removed")
    v2 = bool(flags & COMPONENTS_V2)
    content, shown, embeds = message.content, message.components, message.embeds
    if "content" in body:
        content = _content(body["content"], MESSAGE_LIMIT)
    if "components" in body:
        shown = components.accept(body["components"] or (), v2=v2)
    if "embeds" in body:
        embeds = list(body["embeds"] or ())
    if v2 and content:
        raise invalid_form(
            "content",
            "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2",
            "The 'content' field cannot be used when using MessageFlags.IS_COMPONENTS_V2",
        )
    if not (content or shown or embeds or message.attachments):
        raise DiscordError(400, 50006, "Cannot send an empty message")
    changed: Json = {"content": content, "components": shown, "embeds": embeds, "flags": flags}
    channel = world.channels[message.channel_id]
    if "content" in body or "components" in body:
        words = components.text(content, shown)
        pinged = world.messages.get(message.reply_to)
        kept = [pinged.author_id] if pinged and pinged.author_id in message.mentions else []
        changed |= _mentions(world, channel, words, body.get("allowed_mentions"))
        changed["mentions"] = list(dict.fromkeys((*changed["mentions"], *kept)))
    world.edit(message, **changed)


def _content(given: str | None, limit: int) -> str:
    text = (given or "").strip()
    if units(text) > limit:
        raise too_long("content", limit)
    return text


def _mentions(world: World, channel: Channel, text: str, allowed: Json | None) -> Json:
    """Who is mentioned, of those whom `allowed_mentions` lets be; without it everybody may."""
    users, roles, everyone = world.named_in(text)
    if allowed is not None:
        parse = allowed.get("parse") or ()
        users = users if "users" in parse else [u for u in users if u in (allowed.get("users") or ())]
        roles = roles if "roles" in parse else [r for r in roles if r in (allowed.get("roles") or ())]
        everyone = everyone and "everyone" in parse
    everyone = everyone and bool(world.rights(channel) & permissions.MENTION_EVERYONE)
    return {"mentions": users, "mention_roles": roles, "mention_everyone": everyone}
