# SPDX-License-Identifier: Apache-2.0
"""The audit trail, read: some of it from the newest on, and whether its chain of hashes is whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import aiosqlite

from goodbot.store import codec
from goodbot.store.query import Row, fetch, records, value
from goodbot.store.settings import AuditEntry, chain

PAGE = 50
_SEARCHED = 20_000
"""So many entries are looked through at a time: whoever reads beside it waits."""
_PIECE = 5000
"""So many are checked at a time."""
_ALL = "SELECT seq, at, actor, action, detail, hash FROM audit"
_HERE = f"{_ALL} WHERE seq < :before AND seq >= :least AND {{0}} ORDER BY seq DESC LIMIT :limit"
_DETAIL = "CASE WHEN json_valid(detail) THEN json_extract(detail, '$.{0}') END"
"""Who has changed an entry may have written anything there."""
_TERMS = {
    "since": "at >= :since",
    "until": "at < :until",
    "action": "action = :action",
    # Owners stand there under their ids, others under an alias; who was both, under both.
    "person": " OR ".join(
        f"actor = {one} OR instr(' ' || {_DETAIL.format('args')} || ' ', ' ' || {one} || ' ')"
        f" OR {_DETAIL.format('of')} = {one}"
        for one in (":person", ":alias")
    ),
    "result": f"CASE WHEN {_DETAIL.format('refused')} IS NOT NULL THEN 'refused'"
    f" WHEN CAST({_DETAIL.format('asked')} AS INTEGER) THEN 'asked' ELSE 'done' END = :result",
}


async def page(
    db: aiosqlite.Connection, wanted: Mapping[str, object], before: int
) -> tuple[Sequence[AuditEntry], int]:
    """The newest entries before a place (0: of all), and the place where to go on; 0: that is all.

    `wanted` has the names of `_TERMS`, those alone that shall decide; with a `person` their `alias`.
    """
    terms = " AND ".join(f"({_TERMS[name]})" for name in wanted if name in _TERMS) or "1"
    before = min(before or 1 << 62, await value(db, "SELECT max(seq) + 1 FROM audit") or 1)
    least = before - _SEARCHED
    values = {**wanted, "before": before, "least": least, "limit": PAGE}
    rows = await fetch(db, _HERE.format(terms), values)
    if len(rows) == PAGE:
        return records(AuditEntry, rows), rows[-1][0]
    more = await fetch(db, "SELECT 1 FROM audit WHERE seq < ? LIMIT 1", (least,))
    return records(AuditEntry, rows), least if more else 0


async def actions(db: aiosqlite.Connection) -> list[str]:
    """Everything that the trail has ever called an act."""
    return [row[0] for row in await fetch(db, "SELECT DISTINCT action FROM audit ORDER BY 1")]


async def known(db: aiosqlite.Connection, names: Iterable[str]) -> dict[str, str]:
    """Of these names of people in the trail, whose they are; who was forgotten is not there."""
    query = "SELECT alias, person FROM aliases WHERE alias IN (SELECT value FROM json_each(?))"
    return {row[0]: row[1] for row in await fetch(db, query, (codec.dump_json(sorted(set(names))),))}


async def called(db: aiosqlite.Connection, person: str) -> str:
    """What the trail calls this person, as far as it has had reason to."""
    return await value(db, "SELECT alias FROM aliases WHERE person = ?", (person,), default=person)


async def piece(db: aiosqlite.Connection, after: int) -> list[Row]:
    """The next entries to be checked."""
    return await fetch(db, f"{_ALL} WHERE seq > ? ORDER BY seq LIMIT {_PIECE}", (after,))


async def count(db: aiosqlite.Connection) -> int:
    """How many entries there are."""
    return await value(db, "SELECT count(*) FROM audit")


async def newest(db: aiosqlite.Connection) -> int:
    """The number of the last entry that was ever written; SQLite counts apart from the entries."""
    return await value(db, "SELECT seq FROM sqlite_sequence WHERE name = 'audit'", default=0)


async def done_after(
    db: aiosqlite.Connection, seq: int, actions: Iterable[str]
) -> list[tuple[int, str, str]]:
    """Of these acts those that were done after an entry: its number, and what was typed behind each.

    `forget` is recorded by what it does, and only once it is done.
    """
    query = (
        f"SELECT seq, action, coalesce({_DETAIL.format('args')}, '') FROM audit WHERE seq > :seq"  # noqa: S608
        " AND action IN (SELECT value FROM json_each(:actions))"
        f" AND (action = 'forget' OR CAST({_DETAIL.format('done')} AS INTEGER)) ORDER BY seq"
    )
    rows = await fetch(db, query, {"seq": seq, "actions": codec.dump_json(sorted(actions))})
    return [(number, action, args) for number, action, args in rows]


def first_changed(rows: Iterable[Row], last: int, before: str) -> int:
    """The first of these that does not fit the number and the hash before it; 0: all fit.

    Numbers are given one by one and none is ever given again: who cuts the newest off leaves a gap.
    """
    for seq, at, actor, action, detail, hash_ in rows:
        if seq != last + 1 or hash_ != chain(before, at, actor, action, detail):
            return seq
        last, before = seq, hash_
    return 0
