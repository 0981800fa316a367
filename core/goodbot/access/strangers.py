# SPDX-License-Identifier: Apache-2.0
"""What somebody is told who may not do what they tried: each thing once, then nothing any more.

Whoever may talk here is no stranger: in their own private chat, where it disturbs nobody, they are told
each time, for a command or a button that does nothing looks broken.
"""

from __future__ import annotations

import aiosqlite

from goodbot.access.authorization import person
from goodbot.access.requests import called
from goodbot.api.events import ChannelKind, ChannelRef, UserRef
from goodbot.api.sentences import Reason, because
from goodbot.store import joining, settings


async def who_talks(db: aiosqlite.Connection, user: UserRef, now: float) -> Reason | None:
    """To a stranger in a private chat, who asks to join by that; None when they know."""
    if not await settings.tell_stranger(db, person(user)):
        return None
    await joining.ask(db, person(user), called(user), now)
    return because("private", person=person(user))


async def who_teaches(
    db: aiosqlite.Connection, user: UserRef, channel: ChannelRef, *, talks: bool = True
) -> Reason | None:
    """To whoever has rated on purpose; None where others read, or they may not talk, and they know."""
    first = await settings.tell_stranger(db, f"rate {person(user)}")
    if not first and not (talks and channel.kind is ChannelKind.PRIVATE):
        return None
    return because("no_rater")


async def who_administers(
    db: aiosqlite.Connection, user: UserRef, channel: ChannelRef, command: str
) -> Reason | None:
    """To somebody named who typed an owner's command; None where others read, and they know."""
    first = await settings.tell_stranger(db, f"owners {person(user)}")
    if not first and channel.kind is not ChannelKind.PRIVATE:
        return None
    return because("no_owner", command=command)
