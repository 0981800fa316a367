# SPDX-License-Identifier: Apache-2.0
"""What the bot may in a channel, as Discord computes it: roles first, then the channel's overwrites.

discord.com/developers/docs/topics/permissions#permission-overwrites
"""

from __future__ import annotations

from goodbot.base.errors import ConnectorError

from goodbot_connectors.discord.api import Api
from goodbot_connectors.discord.permissions import ADMINISTRATOR, BITS
from goodbot_connectors.discord.places import THREADS
from goodbot_connectors.discord.snowflake import identifier
from goodbot_connectors.kit.fields import Json, items, string, strings

_CHANNEL = "/channels/{channel_id}"
_EVERYTHING = sum(BITS.values()) | ADMINISTRATOR


async def granted(api: Api, user: str, channel: str) -> int:
    """The permissions of `user` in a channel. Raises ConnectorError where it cannot be seen."""
    place = await api.call("GET", _CHANNEL, channel_id=channel)
    if place.get("type") in THREADS:
        place = await api.call("GET", _CHANNEL, channel_id=identifier(place.get("parent_id")))
    server = identifier(place.get("guild_id"))
    if not server:
        raise ConnectorError("that channel is on no server")
    guild = await api.call("GET", "/guilds/{guild_id}", guild_id=server)
    member = await api.call("GET", "/guilds/{guild_id}/members/{user_id}", guild_id=server, user_id=user)
    roles = frozenset(strings(member, "roles"))
    return computed(guild, place, user=user, roles=roles)


def computed(guild: Json, channel: Json, *, user: str, roles: frozenset[str]) -> int:
    """The same of what was asked for."""
    if identifier(guild.get("owner_id")) == user:
        return _EVERYTHING
    everyone = identifier(guild.get("id"))  # the role that everybody has bears the server's id
    has = 0
    for role in items(guild, "roles"):
        if identifier(role.get("id")) in (everyone, *roles):
            has |= _number(role, "permissions")
    if has & ADMINISTRATOR:
        return _EVERYTHING
    overwrites = {identifier(one.get("id")): one for one in items(channel, "permission_overwrites")}
    mine = [overwrites[role] for role in roles if role in overwrites]
    for several in ([overwrites.get(everyone, {})], mine, [overwrites.get(user, {})]):
        denied = allowed = 0
        for one in several:
            denied |= _number(one, "deny")
            allowed |= _number(one, "allow")
        has = (has & ~denied) | allowed
    return has


def _number(json: Json, name: str) -> int:
    text = string(json, name)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 30 else 0
