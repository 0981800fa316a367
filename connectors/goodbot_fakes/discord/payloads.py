# SPDX-License-Identifier: Apache-2.0
"""The shapes in which Discord tells of what it knows; checked against its OpenAPI document."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from goodbot_fakes.discord.records import FORUM, THREAD, Channel, Guild, Message, Role, User

Json = dict[str, Any]


def timestamp(seconds: float) -> str:
    """ISO 8601, as in every field that ends in `_timestamp` or `_at`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def user(who: User) -> Json:
    found: Json = {
        "id": who.id,
        "username": who.name,
        "global_name": None if who.bot else who.name.title(),
        "avatar": None,
        "discriminator": "0000" if who.bot else "0",
        "public_flags": 0,
        "flags": 0,
        "primary_guild": None,
        "avatar_decoration_data": None,
        "collectibles": None,
    }
    return found | {"bot": True} if who.bot else found


def member(who: User, guild: Guild, *, whole: bool = True) -> Json:
    """A member of a server; events about a user have one without the user."""
    found: Json = {
        "avatar": None,
        "banner": None,
        "communication_disabled_until": None,
        "flags": 0,
        "joined_at": timestamp(guild.joined_at),
        "nick": None,
        "pending": False,
        "premium_since": None,
        "roles": list(guild.members.get(who.id, ())),
        "mute": False,
        "deaf": False,
    }
    return found | {"user": user(who)} if whole else found


def role(one: Role, position: int) -> Json:
    found: Json = {
        "id": one.id,
        "name": one.name,
        "permissions": str(one.permissions),
        "position": position,
        "color": 0,
        "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None},
        "hoist": False,
        "managed": bool(one.bot_id),
        "mentionable": False,
        "icon": None,
        "unicode_emoji": None,
        "flags": 0,
    }
    return found | {"tags": {"bot_id": one.bot_id}} if one.bot_id else found


def emoji(name: str) -> Json:
    """The emoji of a reaction: `👍`, or `name:id`."""
    word, _, id_ = name.partition(":")
    return {"id": id_ or None, "name": word}


def reactions(message: Message, me: User) -> list[Json]:
    """All on a message, an entry for each emoji."""
    return [_reaction(message, name, me) for name in {**message.reactions, **message.supers}]


def _reaction(message: Message, name: str, me: User) -> Json:
    users, supers = message.reactions.get(name, []), message.supers.get(name, [])
    return {
        "emoji": emoji(name),
        "count": len(users) + len(supers),
        "count_details": {"burst": len(supers), "normal": len(users)},
        "burst_colors": [],
        "me_burst": me.id in supers,
        "me": me.id in users,
    }


EMPTY = ("voice_states", "presences", "stage_instances", "guild_scheduled_events", "soundboard_sounds")
"""Of a server as the gateway tells of it: lists in which there is nothing here."""


def guild(one: Guild) -> Json:
    """A server, as REST shows it."""
    return {
        "id": one.id,
        "name": one.name,
        "icon": None,
        "description": None,
        "home_header": None,
        "splash": None,
        "discovery_splash": None,
        "features": [],
        "banner": None,
        "owner_id": one.owner_id,
        "application_id": None,
        "region": "deprecated",
        "afk_channel_id": None,
        "afk_timeout": 300,
        "system_channel_id": None,
        "system_channel_flags": 0,
        "widget_enabled": False,
        "widget_channel_id": None,
        "verification_level": 0,
        "default_message_notifications": 0,
        "mfa_level": 0,
        "explicit_content_filter": 0,
        "max_presences": None,
        "max_members": 500_000,
        "max_stage_video_channel_users": 50,
        "max_video_channel_users": 25,
        "vanity_url_code": None,
        "premium_tier": 0,
        "premium_subscription_count": 0,
        "preferred_locale": "en-US",
        "rules_channel_id": None,
        "safety_alerts_channel_id": None,
        "public_updates_channel_id": None,
        "premium_progress_bar_enabled": False,
        "nsfw": False,
        "nsfw_level": 0,
        "stickers": [],
        "incidents_data": None,
        "roles": [role(found, n) for n, found in enumerate(one.roles.values())],
        "emojis": [
            {
                "id": id_,
                "name": name,
                "roles": [],
                "require_colons": True,
                "managed": False,
                "animated": False,
                "available": True,
            }
            for id_, name in one.emojis.items()
        ],
    }


def channel(one: Channel, users: dict[str, User], *, reader: str, position: int = 0) -> Json:
    """A channel. In a DM, `recipients` has whoever is not the reader."""
    found: Json = {"id": one.id, "type": one.kind, "flags": 0, "last_message_id": None}
    if one.private:
        others = [user(users[who]) for who in one.recipients if who != reader]
        return found | {"recipients": others}
    found |= {
        "guild_id": one.guild_id,
        "name": one.name,
        "parent_id": one.parent_id or None,
        "rate_limit_per_user": 0,
    }
    if one.kind == THREAD:
        return found | {
            "owner_id": one.owner_id,
            "message_count": 0,
            "member_count": 1,
            "total_message_sent": 0,
            "thread_metadata": {
                "archived": one.archived,
                "archive_timestamp": timestamp(one.created),
                "auto_archive_duration": 1440,
                "locked": False,
                "create_timestamp": timestamp(one.created),
            },
        }
    found |= {
        "position": position,
        "nsfw": False,
        "topic": None,
        "permission_overwrites": [
            {"id": who, "type": 1 if who in users else 0, "allow": "0", "deny": str(bits)}
            for who, bits in one.denied.items()
        ],
    }
    return found | {"available_tags": []} if one.kind == FORUM else found
