# SPDX-License-Identifier: Apache-2.0
"""Which events a bot is told: discord.com/developers/docs/events/gateway#gateway-intents."""

from __future__ import annotations

GUILDS = 1 << 0
GUILD_MEMBERS = 1 << 1
GUILD_PRESENCES = 1 << 8
GUILD_MESSAGES = 1 << 9
GUILD_MESSAGE_REACTIONS = 1 << 10
DIRECT_MESSAGES = 1 << 12
DIRECT_MESSAGE_REACTIONS = 1 << 13
MESSAGE_CONTENT = 1 << 15

PRIVILEGED = {GUILD_PRESENCES: 1 << 13, GUILD_MEMBERS: 1 << 15, MESSAGE_CONTENT: 1 << 19}
"""Intents that must be switched on in the developer portal; the application flag of each."""
KNOWN = (1 << 22) - 1 | 1 << 24 | 1 << 25

_IN_GUILDS = {
    "MESSAGE_CREATE": GUILD_MESSAGES,
    "MESSAGE_UPDATE": GUILD_MESSAGES,
    "MESSAGE_DELETE": GUILD_MESSAGES,
    "MESSAGE_REACTION_ADD": GUILD_MESSAGE_REACTIONS,
    "MESSAGE_REACTION_REMOVE": GUILD_MESSAGE_REACTIONS,
    "GUILD_CREATE": GUILDS,
    "GUILD_DELETE": GUILDS,
    "CHANNEL_CREATE": GUILDS,
    "CHANNEL_UPDATE": GUILDS,
    "CHANNEL_DELETE": GUILDS,
    "THREAD_CREATE": GUILDS,
    "THREAD_UPDATE": GUILDS,
    "GUILD_MEMBER_UPDATE": GUILD_MEMBERS,
    "GUILD_ROLE_UPDATE": GUILDS,
}
_IN_PRIVATE = {
    "MESSAGE_CREATE": DIRECT_MESSAGES,
    "MESSAGE_UPDATE": DIRECT_MESSAGES,
    "MESSAGE_DELETE": DIRECT_MESSAGES,
    "MESSAGE_REACTION_ADD": DIRECT_MESSAGE_REACTIONS,
    "MESSAGE_REACTION_REMOVE": DIRECT_MESSAGE_REACTIONS,
}


def needed(event: str, *, private: bool) -> int:
    """The intent without which an event is not told; 0 for one that everybody is told."""
    return (_IN_PRIVATE if private else _IN_GUILDS).get(event, 0)
