"""Joining two accounts of one person, and what that does to what they have rated."""

from __future__ import annotations

from collections.abc import Sequence

import aiosqlite

from goodbot.store import adapters, ledger, people

_CHANGED = "a rating that it was trained on counts otherwise since two accounts are one person's"


async def join(
    db: aiosqlite.Connection, scope: str, first: str, second: str, now: float
) -> Sequence[str]:
    """Two accounts (`connector:id`) are one person from now on; returns all accounts of theirs."""
    if second in await people.accounts(db, first):
        return await people.accounts(db, first)
    together = await people.link(db, first, second, now)
    await refold(db, scope, together)
    return together


async def refold(db: aiosqlite.Connection, scope: str, persons: Sequence[str]) -> None:
    """What they rated counts anew; an adapter that learnt it otherwise is not to be used."""
    for turn in await ledger.refold_people(db, persons):
        await adapters.taint(db, scope, turn, _CHANGED)
