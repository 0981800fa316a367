# SPDX-License-Identifier: Apache-2.0
"""What the alarm on contradicting ratings looks at."""

from __future__ import annotations

from dataclasses import dataclass

import aiosqlite

from goodbot.store import rollback_window
from goodbot.store.query import fetch
from goodbot.store.training_pool import Pool

_LAST = 5000
"""Ratings that are looked at, the newest: what somebody said long ago is no news."""

_LABELS = (
    "SELECT l.turn, l.rater, l.value, e.received_at, e.seq FROM events e"  # from the newest on
    " CROSS JOIN labels l ON l.turn = e.turn AND l.event_seq = e.seq JOIN turns t ON t.id = l.turn"
    " WHERE t.scope = :scope AND l.value <> 0 ORDER BY e.seq DESC LIMIT :last"
)
_HISTORY = (
    "SELECT e.turn, coalesce(k.identity, e.rater), e.value, e.received_at, e.seq FROM events e"  # noqa: S608
    " JOIN turns t ON t.id = e.turn LEFT JOIN links k ON k.person = e.rater"
    " WHERE t.scope = :scope AND e.kind = 'rate' AND e.value <> 0"
    f" AND NOT ({rollback_window.COVERED}) ORDER BY e.seq DESC LIMIT :last"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Vote:
    """One rating. `time` is in seconds since the epoch, `seq` the number of its event."""

    turn: str
    rater: str
    good: bool
    time: float
    seq: int


async def votes(db: aiosqlite.Connection, scope: str) -> tuple[list[Vote], list[Vote]]:
    """The newest labels, and the newest ratings of any time, by `seq`.

    What was quarantined or taken back is not among them.
    """
    pool = Pool(scope=scope, model="", owners=())
    labels, history = [
        [
            Vote(turn=turn, rater=rater, good=value > 0, time=time, seq=seq)
            for turn, rater, value, time, seq in reversed(
                await fetch(db, pool.asked(query), {"scope": scope, "last": _LAST})
            )
        ]
        for query in (_LABELS, _HISTORY)
    ]
    return labels, history


async def newest(db: aiosqlite.Connection) -> tuple[int, int]:
    """Changes with whatever may change the alarms: the last event, and the last quarantine."""
    query = (
        "SELECT coalesce((SELECT max(seq) FROM events), 0), coalesce((SELECT sum(id) FROM quarantines), 0)"
    )
    ((event, quarantined),) = await fetch(db, query)
    return event, quarantined
