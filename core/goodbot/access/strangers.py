"""What somebody is told who may not do what they tried: each thing once, then nothing any more.

Whoever may talk here is no stranger: in their own private chat, where it disturbs nobody, they are told
each time, for a command or a button that does nothing looks broken.
"""

from __future__ import annotations

import aiosqlite

from goodbot.access.authorization import person
from goodbot.api.events import ChannelKind, ChannelRef, UserRef
from goodbot.store import settings


async def who_talks(db: aiosqlite.Connection, user: UserRef) -> str:
    """To a stranger in a private chat; empty when they know."""
    if not await settings.tell_once(db, person(user)):
        return ""
    return (
        "This bot answers only the people its owner has named. "
        f"To be named, give the owner your id: {user.id}"
    )


async def who_teaches(
    db: aiosqlite.Connection, user: UserRef, channel: ChannelRef, *, talks: bool = True
) -> str:
    """To whoever has rated on purpose; empty where others read, or they may not talk, and they know."""
    first = await settings.tell_once(db, f"rate {person(user)}")
    if not first and not (talks and channel.kind is ChannelKind.PRIVATE):
        return ""
    return "Only the people its owner has named teach this bot."


async def who_administers(db: aiosqlite.Connection, user: UserRef, channel: ChannelRef, command: str) -> str:
    """To somebody named who typed an owner's command; empty where others read, and they know."""
    first = await settings.tell_once(db, f"owners {person(user)}")
    if not first and channel.kind is not ChannelKind.PRIVATE:
        return ""
    return f"`{command}` is for the owners of this bot."
