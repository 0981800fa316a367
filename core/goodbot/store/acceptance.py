# SPDX-License-Identifier: Apache-2.0
"""How what each version wrote was rated."""

from __future__ import annotations

from dataclasses import dataclass

import aiosqlite

from goodbot.api.turns import CHOICE
from goodbot.store.query import fetch
from goodbot.store.training_pool import Pool

_NEWEST = 5000
"""Rated answers that are looked at."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Acceptance:
    """The rated answers of one version; ties are left out."""

    version: int
    good: int
    rated: int


async def by_version(
    db: aiosqlite.Connection,
    pool: Pool,
    *,
    since: float = 0.0,
    until: float = 1e18,
    limit: int = 3,
    newest: int = _NEWEST,
) -> list[Acceptance]:
    """The newest versions of which answers were rated, the newest first.

    An answer is good if more of its raters say so than say the opposite. Of the answers that were
    given in that span (seconds since the epoch) the `newest` count. Blind choices are told apart.
    """
    rows = await fetch(
        db,
        pool.asked(
            "SELECT version, sum(sign > 0), sum(sign <> 0) FROM ("  # noqa: S608
            " SELECT version, (SELECT sum((value > 0) - (value < 0)) FROM labels WHERE turn = t.id) AS sign"
            " FROM (SELECT id, version FROM turns t WHERE (t.scope, t.model) = (:scope, :model) AND rated > 0"
            f"  AND kind <> '{CHOICE}' AND answered_by = '' AND created_at >= :since AND created_at < :until"
            "  AND version NOT IN (SELECT version FROM adapters WHERE scope NOT IN (:scope, 'default'))"
            "  ORDER BY seq DESC LIMIT :newest) t)"
            " GROUP BY version HAVING sum(sign <> 0) > 0 ORDER BY version DESC LIMIT :limit"
        ),
        {**pool.values(), "since": since, "until": until, "newest": newest, "limit": limit},
    )
    return [Acceptance(version=row[0], good=row[1], rated=row[2]) for row in rows]


async def of(db: aiosqlite.Connection, pool: Pool, version: int) -> Acceptance:
    """Of one version; nothing where none of its answers is rated."""
    found = {one.version: one for one in await by_version(db, pool, limit=-1)}
    return found.get(version, Acceptance(version=version, good=0, rated=0))
