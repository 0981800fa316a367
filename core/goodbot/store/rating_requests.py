# SPDX-License-Identifier: Apache-2.0
"""Which answers ask for a rating, where not all do."""

from __future__ import annotations

import aiosqlite

from goodbot.api.events import ChannelRef
from goodbot.store.query import fetch, first

_LAST = (
    "SELECT asked FROM rating_requests WHERE (connector, account, channel) = (?, ?, ?)"
    " ORDER BY seq DESC LIMIT ?"
)


async def decide(db: aiosqlite.Connection, turn: str, channel: ChannelRef, every: int) -> None:
    """An answer asks if none of the last `every` - 1 there has. It stays so."""
    place = (channel.connector, channel.account, channel.id)
    last = await fetch(db, _LAST, (*place, every - 1))
    asks = not any(asked for (asked,) in last)
    await db.execute(
        "INSERT INTO rating_requests SELECT id, connector, account, channel, seq, ? FROM turns WHERE id = ?",
        (asks, turn),
    )


async def asks(db: aiosqlite.Connection, turn: str) -> bool:
    """Whether an answer asks; a retry as what it took the place of, and where nothing was decided, yes."""
    rows = await fetch(
        db,
        "WITH RECURSIVE line (turn) AS"
        " (SELECT ? UNION SELECT r.instead_of FROM retries r JOIN line USING (turn))"
        " SELECT a.asked FROM line JOIN rating_requests a USING (turn)",
        (turn,),
    )
    found = first(rows)
    return found is None or bool(found[0])
