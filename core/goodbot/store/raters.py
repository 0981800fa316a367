# SPDX-License-Identifier: Apache-2.0
"""Everybody whom the bot knows: who asks to talk, who has talked and rated, and what they have taught."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import aiosqlite

from goodbot.store import codec, rollback_window
from goodbot.store.query import fetch
from goodbot.store.settings import BEFORE
from goodbot.store.training_pool import Pool

REFUSED = "refused "
"""How the notes in `told` begin that name whom an owner has refused, or taken the grant from."""
_NEWEST = 20_000
"""Answers that trained: so many of the newest are looked at."""

_ASKED = (
    "SELECT t.person FROM (SELECT person FROM told UNION"  # noqa: S608
    f" SELECT substr(person, {len(BEFORE) + 1}) FROM told"
    f" WHERE substr(person, 1, {len(BEFORE)}) = '{BEFORE}') t"
    " WHERE instr(t.person, ' ') = 0 AND instr(t.person, ':') > 1"
    " AND NOT EXISTS (SELECT 1 FROM told n WHERE n.person = :refused || t.person)"
)
_KNOWN = (
    "SELECT person FROM talkers WHERE scope = :scope UNION SELECT person FROM links"
    " UNION SELECT DISTINCT l.rater FROM labels l JOIN turns t ON t.id = l.turn WHERE t.scope = :scope"
)
_COUNTED = "SELECT rater, count(*) FROM labels WHERE rater IN (SELECT value FROM json_each(?)) GROUP BY rater"
_LEFT_OUT = (
    "SELECT e.rater, count(DISTINCT e.turn) FROM quarantines q JOIN events e ON e.rater = q.rater"
    " AND e.seq <= q.last_event_seq WHERE e.rater IN (SELECT value FROM json_each(?)) GROUP BY 1"
)
_TAUGHT = (
    "SELECT l.key, sum(i.weight / i.raters) FROM (SELECT i.weight, i.labels,"
    " (SELECT count(*) FROM json_each(i.labels)) AS raters"
    " FROM run_items i JOIN runs r ON r.id = i.run JOIN adapters a ON a.run = r.id"
    " WHERE (r.scope, r.model, r.state) = (:scope, :model, 'activated') AND a.tainted = ''"
    " AND i.split = 'train' AND i.weight > 0 AND NOT i.replayed"
    " ORDER BY i.run DESC LIMIT :newest) i, json_each(i.labels) l GROUP BY 1"
)
_RATED = (
    "SELECT DISTINCT e.turn FROM events e WHERE e.rater IN (SELECT value FROM json_each(?))"  # noqa: S608
    " AND e.turn IS NOT NULL AND e.kind IN ('rate', 'comment', 'better', 'outcome')"
    f" AND {rollback_window.KEPT}"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownPeople:
    """All of them, as `connector:id`."""

    asked: Sequence[str]
    """Who has asked to talk, and was not refused."""
    seen: Sequence[str]
    """Who was answered, linked, or has rated."""
    identities: dict[str, str]
    """Of linked accounts: the one under which their one vote is kept."""


async def known(db: aiosqlite.Connection, scope: str) -> KnownPeople:
    """Everybody of whom something is stored."""
    return KnownPeople(
        asked=[row[0] for row in await fetch(db, _ASKED, {"refused": REFUSED})],
        seen=[row[0] for row in await fetch(db, _KNOWN, {"scope": scope})],
        identities=dict(await fetch(db, "SELECT person, identity FROM links")),
    )


async def counted(db: aiosqlite.Connection, identities: Sequence[str]) -> dict[str, int]:
    """How many ratings of each of these count."""
    return dict(await fetch(db, _COUNTED, (codec.dump_json(list(identities)),)))


async def left_out(db: aiosqlite.Connection, accounts: Sequence[str]) -> dict[str, int]:
    """Of how many answers what each of these accounts has said is left out, since it was they who said it."""
    return dict(await fetch(db, _LEFT_OUT, (codec.dump_json(list(accounts)),)))


async def taught(db: aiosqlite.Connection, pool: Pool) -> dict[str, float]:
    """What each account has of the weight that this model was trained with, an answer's in equal parts."""
    values = {"scope": pool.scope, "model": pool.model, "newest": _NEWEST}
    return dict(await fetch(db, _TAUGHT, values))


async def rated(db: aiosqlite.Connection, accounts: Sequence[str]) -> list[str]:
    """The answers of which one of these accounts has said anything, and has not taken it back."""
    return [row[0] for row in await fetch(db, _RATED, (codec.dump_json(list(accounts)),))]
