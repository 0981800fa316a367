# SPDX-License-Identifier: Apache-2.0
"""What people typed at an answer: reasons and better answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import aiosqlite

from goodbot.api.events import RatingEvent, RatingKind
from goodbot.store import codec, rollback_window
from goodbot.store.query import fetch, value


@dataclass(frozen=True, kw_only=True, slots=True)
class Remark:
    """A reason (COMMENT) or a better answer (BETTER) that somebody typed. `at`: seconds since the epoch.

    `counts`: it is not left out.
    """

    turn: str
    kind: RatingKind
    rater: str
    text: str
    at: float
    counts: bool = True


async def remarks(db: aiosqlite.Connection, turns: Sequence[str], *, left_out: bool = False) -> list[Remark]:
    """What stands of what was typed at these answers, oldest first; and what is `left_out` of it."""
    rows = await fetch(
        db,
        f"SELECT e.turn, e.kind, e.rater, e.text, e.received_at, NOT {rollback_window.WITHIN} AS counts"  # noqa: S608
        " FROM events e WHERE e.turn IN (SELECT value FROM json_each(:turns))"
        f" AND e.kind IN ('comment', 'better') AND {rollback_window.KEPT} AND (:left_out OR NOT"
        f" {rollback_window.WITHIN})"
        " ORDER BY e.time_ms, e.tiebreak, e.seq",
        {"turns": codec.dump_json(list(turns)), "left_out": left_out},
    )
    return [
        Remark(turn=turn, kind=RatingKind(kind), rater=rater, text=text, at=at, counts=bool(counts))
        for turn, kind, rater, text, at, counts in rows
    ]


async def stands(db: aiosqlite.Connection, event: RatingEvent) -> bool:
    """Whether words that were just stored stand: by a platform's clock they may be older than an undo."""
    user = event.user
    query = (
        f"SELECT {rollback_window.STANDS} FROM events e"  # noqa: S608
        " WHERE (e.connector, e.account, e.event_id) = (?, ?, ?)"
    )
    return bool(await value(db, query, (user.connector, user.account, event.event_id)))
