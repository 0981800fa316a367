# SPDX-License-Identifier: Apache-2.0
"""What somebody may do in a channel: discord.com/developers/docs/topics/permissions."""

from __future__ import annotations

from goodbot_fakes.discord.errors import missing_access, missing_permissions
from goodbot_fakes.discord.records import THREAD, Channel, Guild

ADD_REACTIONS = 1 << 6
VIEW_CHANNEL = 1 << 10
SEND_MESSAGES = 1 << 11
MANAGE_MESSAGES = 1 << 13
EMBED_LINKS = 1 << 14
READ_MESSAGE_HISTORY = 1 << 16
MENTION_EVERYONE = 1 << 17
CREATE_PUBLIC_THREADS = 1 << 35
SEND_MESSAGES_IN_THREADS = 1 << 38
ADMINISTRATOR = 1 << 3
ALL = (1 << 53) - 1
EVERYBODY = (
    VIEW_CHANNEL
    | SEND_MESSAGES
    | ADD_REACTIONS
    | READ_MESSAGE_HISTORY
    | EMBED_LINKS
    | CREATE_PUBLIC_THREADS
    | SEND_MESSAGES_IN_THREADS
    | (1 << 31)
)
"""What a new server lets everybody do, `USE_APPLICATION_COMMANDS` among it."""


def of_member(guild: Guild, user_id: str) -> int:
    """Permissions in the server at large."""
    if user_id == guild.owner_id:
        return ALL
    found = guild.roles[guild.id].permissions
    for role in guild.members.get(user_id, ()):
        found |= guild.roles[role].permissions
    return ALL if found & ADMINISTRATOR else found


def in_channel(guild: Guild | None, channel: Channel, parent: Channel | None, user_id: str) -> int:
    """Permissions in one channel; a thread has its parent's. In a DM there is nothing to deny."""
    if guild is None:
        return ALL
    if user_id not in guild.members:
        return 0
    found = of_member(guild, user_id)
    if found == ALL:
        return found
    place = parent if channel.kind == THREAD and parent is not None else channel
    for who in (guild.id, *guild.members[user_id], user_id):
        found &= ~place.denied.get(who, 0)
    return found if found & VIEW_CHANNEL else 0


def require(permissions: int, *needed: int) -> None:
    """Raises `DiscordError` 50001 where the channel is not seen, 50013 where a right is missing."""
    if not permissions & VIEW_CHANNEL:
        raise missing_access()
    if any(not permissions & one for one in needed):
        raise missing_permissions()


def to_send(channel: Channel) -> int:
    """The right that a message needs there."""
    return SEND_MESSAGES_IN_THREADS if channel.kind == THREAD else SEND_MESSAGES
