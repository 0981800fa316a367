# SPDX-License-Identifier: Apache-2.0
"""What a claim is computed from, beside the answers, and which of it has changed since."""

from __future__ import annotations

import json
from collections.abc import Collection

import aiosqlite

from goodbot.api.labels import Opinion
from goodbot.store import codec, judgements, ledger, training_pool
from goodbot.store.query import fetch, value
from goodbot.store.training_pool import Pool

_LOOKED_AT = 4
"""So many times as many answers are looked at: what was taken back since counts for nothing."""
_SAID = ("json_extract(value, '$[0]')", "json_extract(value, '$[1]')")
_NUMBERS = ("json_extract(value, '$[2]')", "json_extract(value, '$[3]')")
_PAST = (
    "SELECT i.turn, i.labels FROM run_items i JOIN runs r ON r.id = i.run"
    " WHERE (r.scope, r.model) = (:scope, :model) AND r.state IN ('activated', 'refused')"
    " AND i.split = 'train' AND NOT i.replayed ORDER BY i.run DESC, i.turn LIMIT :limit"
)


async def last_event(db: aiosqlite.Connection) -> int:
    """The number of the newest event."""
    return await value(db, "SELECT coalesce(max(seq), 0) FROM events")


async def past_labels(db: aiosqlite.Connection, pool: Pool, limit: int) -> list[dict[str, Opinion]]:
    """The labels of the last rated answers that runs of this base model have used, oldest first.

    Without those of which something does not stand any more: a run that was refused has used them, too, and
    nothing else follows it when they are undone.
    """
    found: list[dict[str, Opinion]] = []
    for turn, column in await fetch(db, _PAST, {**pool.values(), "limit": _LOOKED_AT * limit}):
        labels = json.loads(column)
        if not judgements.is_judged(labels) and not await ledger.lost(db, turn, labels):
            found.append(labels)
        if len(found) == limit:
            break
    return found[::-1]


async def changed(
    db: aiosqlite.Connection, pool: Pool, then: str, repeated: Collection[str], *, replay: bool, anew: bool
) -> set[str]:
    """Of rows that `training_pool.chosen` has given, as JSON, the turns of those that are other ones now.

    A rating has changed or has come, or the answer is not to be claimed any more. SQLite compares: of
    thousands that stand nothing is read here.
    """
    which = training_pool.fresh(replay)
    if repeated:
        which = f"{which} UNION ALL {training_pool.AGAIN}"
    was = ", ".join((*_SAID, *(f"CAST({one} AS INTEGER)" for one in _NUMBERS)))
    query = (
        f"SELECT * FROM (SELECT {was} FROM json_each(:then)"  # noqa: S608
        f" EXCEPT SELECT * FROM ({training_pool.CLAIMABLE.format(which)}))"
    )
    rows = await fetch(
        db,
        pool.asked(query),
        {**pool.values(anew=anew), "then": then, "turns": codec.dump_json(sorted(repeated))},
    )
    return {row[0] for row in rows}
