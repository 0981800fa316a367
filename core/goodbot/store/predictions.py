# SPDX-License-Identifier: Apache-2.0
"""What the reward model says of answers, and how unsure it is. No query of a training reads any of it.

All of it goes when anybody is forgotten: their ratings are in every number.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

import aiosqlite

from goodbot.api.labels import Opinion
from goodbot.api.predicted import Predicted
from goodbot.api.sentences import Reason
from goodbot.store import codec, inspection
from goodbot.store.consent import CONSENT
from goodbot.store.query import fetch, first, value
from goodbot.store.teaching import OPINIONS
from goodbot.store.training_pool import Pool

_T = TypeVar("_T", bound=Hashable)

PREDICTED = "predictions p CROSS JOIN turns t ON t.id = p.turn"
"""SQL: the answers of which it says something, found by their ids;"""
ALSO_PREDICTED = "JOIN predictions p ON p.turn = t.id"
"""SQL: the same of answers that are found otherwise;"""
UNRATED = "t.rated = 0 AND p.good IS NULL AND EXISTS (SELECT 1 FROM predicted WHERE model = :predicting)"
"""SQL: those of them that nobody has rated, where `:predicting` is the base model that says it;"""
SURENESS = "abs(p.chance - 0.5)"
"""SQL: the smaller, the less it knows how it would be rated."""
_NEW = 20
"""After so many ratings what is said is computed anew,"""
_OLD = 24 * 3600.0
"""and after a day in which there was any."""
# As a training reads them: of answers that may teach, of people who consent to it.
_MAY = f"t.scope = :scope AND t.trainable AND t.kind = 'main' AND t.response <> '' AND {CONSENT}"
_RATED = (
    f"SELECT t.id, (SELECT {OPINIONS} FROM labels l WHERE l.turn = t.id)"  # noqa: S608
    f" FROM turns t INDEXED BY turns_rated WHERE t.rated > 0 AND {_MAY}"
    " ORDER BY t.created_at DESC, t.seq DESC LIMIT :limit"
)
_UNRATED = (
    f"SELECT t.id FROM turns t INDEXED BY turns_unrated WHERE t.rated = 0 AND {_MAY}"  # noqa: S608
    " AND t.answered_by = '' ORDER BY t.created_at DESC LIMIT :limit"
)


async def rated(db: aiosqlite.Connection, pool: Pool, limit: int) -> dict[str, Mapping[str, Opinion]]:
    """What people say of the newest rated answers, by the answers' ids."""
    rows = await fetch(db, _RATED, {**pool.values(), "limit": limit})
    return {turn: json.loads(opinions) for turn, opinions in rows}


async def unrated(db: aiosqlite.Connection, pool: Pool, limit: int) -> list[str]:
    """The newest answers that nobody has rated."""
    return [turn for (turn,) in await fetch(db, _UNRATED, {**pool.values(), "limit": limit})]


async def due(db: aiosqlite.Connection, pool: Pool, now: float) -> bool:
    """Whether ratings have come since that are not in what is said."""
    row = first(await fetch(db, "SELECT at, upto FROM predicted WHERE model = ?", (pool.model,)))
    if row is None:
        return True
    at, upto = row
    count = "SELECT count(*) FROM (SELECT 1 FROM labels WHERE event_seq > ? LIMIT ?)"
    new = await value(db, count, (upto, _NEW))
    return new >= _NEW or (new > 0 and not 0 <= now - at < _OLD)


async def seen(db: aiosqlite.Connection) -> tuple[int, int]:
    """The newest rating there is, and how often somebody was forgotten."""
    newest = await value(db, "SELECT coalesce(max(event_seq), 0) FROM labels")
    return newest, await inspection.forgettings(db)


async def keep(
    db: aiosqlite.Connection, pool: Pool, said: Predicted | Reason, since: tuple[int, int], now: float
) -> None:
    """In place of what was said before; a reason says why there is nothing to say.

    Not where somebody was forgotten since it was begun (`seen`): their ratings may be in it.
    """
    newest, forgettings = since
    if await inspection.forgettings(db) != forgettings:
        return
    await forget(db)
    found, why = (said, "") if isinstance(said, Predicted) else (None, codec.dump_reasons([said]))
    figures: dict[str, Any] = {**asdict(found), "said": []} if found else {}
    await db.execute(
        "INSERT INTO predicted VALUES (?, ?, ?, ?, ?)",
        (pool.model, now, newest, codec.dump_json(figures), why),
    )
    await db.executemany(
        "INSERT OR IGNORE INTO predictions SELECT id, ?, ?, ? FROM turns WHERE id = ?",
        [(one.chance, one.good, one.odd, one.id) for one in (found.said if found else ())],
    )


async def of(db: aiosqlite.Connection, model: str) -> Predicted | Reason | None:
    """What is said of answers by a base model, or why nothing is; None: it was not tried yet."""
    row = first(await fetch(db, "SELECT at, figures, why FROM predicted WHERE model = ?", (model,)))
    if row is None:
        return None
    at, figures, why = row
    if why:
        return codec.load_reasons(why)[0]
    rows = await fetch(db, "SELECT turn, chance, good, odd FROM predictions ORDER BY turn")
    return Predicted.parse({**json.loads(figures), "said": _said(rows)}, at)


def _said(rows: Sequence[Any]) -> list[dict[str, Any]]:
    return [{"id": turn, "chance": chance, "good": good, "odd": odd} for turn, chance, good, odd in rows]


def mixed(newest: Sequence[_T], unsure: Sequence[_T], limit: int) -> list[_T]:
    """The newest, with one that it is unsure of behind each, as far as there are any; none of them twice."""
    both: list[_T] = []
    for n in range(max(len(newest), len(unsure))):
        both += (*newest[n : n + 1], *unsure[n : n + 1])
    return [*dict.fromkeys(both)][:limit]


async def forget(db: aiosqlite.Connection) -> None:
    """Part of forgetting a person, and of saying something anew."""
    await db.execute("DELETE FROM predictions")
    await db.execute("DELETE FROM predicted")
