# SPDX-License-Identifier: Apache-2.0
"""What people have asked: questions that a run answers once more, to see what it has changed.

Only of conversations that may teach, of people who consent to it.
"""

from __future__ import annotations

import json

import aiosqlite

from goodbot.api.events import Message
from goodbot.store.consent import CONSENT
from goodbot.store.query import Row, fetch
from goodbot.store.training_pool import Pool


async def earlier(db: aiosqlite.Connection, pool: Pool, run: int, limit: int) -> list[list[Message]]:
    """The conversations that runs of this base model before `run` have claimed, newest run first.

    Of people who consent still, and not those that `run` has itself.
    """
    rows = await fetch(
        db,
        "SELECT t.messages FROM turns t JOIN run_items i ON i.turn = t.id"  # noqa: S608
        " JOIN runs r ON r.id = i.run WHERE (r.scope, r.model) = (:scope, :model) AND r.id < :run"
        " AND r.state IN ('activated', 'refused')"
        " AND t.id NOT IN (SELECT turn FROM run_items WHERE run = :run)"
        f" AND {CONSENT} GROUP BY t.seq ORDER BY max(r.id) DESC, t.id LIMIT :limit",
        {**pool.values(), "run": run, "limit": limit},
    )
    return _messages(rows)


async def unrated(db: aiosqlite.Connection, pool: Pool, limit: int) -> list[list[Message]]:
    """The newest conversations of which nobody has rated the answer, whichever model gave it."""
    rows = await fetch(
        db,
        pool.asked(
            "SELECT t.messages FROM turns t INDEXED BY turns_unrated"  # noqa: S608
            f" WHERE t.rated = 0 AND t.scope = :scope AND t.trainable AND t.answered_by = '' AND {CONSENT}"
            " ORDER BY t.created_at DESC LIMIT :limit"
        ),
        {**pool.values(), "limit": limit},
    )
    return _messages(rows)


def _messages(rows: list[Row]) -> list[list[Message]]:
    return [json.loads(row[0]) for row in rows]
