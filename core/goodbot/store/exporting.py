"""What is exported: the answers that somebody rated or said something of, with all of it."""

from __future__ import annotations

from typing import Any

import aiosqlite

from goodbot.store import feedback, ledger, retries, turns
from goodbot.store.query import fetch


async def rated(db: aiosqlite.Connection) -> list[dict[str, Any]]:
    """One mapping an answer, oldest first, as JSON takes it.

    `ratings` is by rater (`connector:id`), in [-1, 1], or `[thumb, stars]`; `instead_of` is the answer
    that a retry was to replace.
    """
    rows = await fetch(
        db,
        "SELECT id FROM turns WHERE rated > 0 OR EXISTS (SELECT 1 FROM events"
        " WHERE events.turn = turns.id AND kind IN ('comment', 'better')) ORDER BY seq",
    )
    ids = [row[0] for row in rows]
    stored = await turns.some(db, ids)
    said: dict[str, list[dict[str, str]]] = {id_: [] for id_ in ids}
    for remark in await feedback.remarks(db, ids):
        about = {"kind": remark.kind.value, "rater": remark.rater, "text": remark.text}
        said[remark.turn].append(about)
    found: list[dict[str, Any]] = []
    for id_ in ids:
        turn = stored[id_]
        line = await retries.line(db, id_)
        found.append({
            "id": id_, "at": turn.created_at, "connector": turn.channel.connector,
            "channel": turn.channel.kind.value, "model": turn.model, "version": turn.version,
            "messages": list(turn.messages), "answer": turn.response,
            "instead_of": line[0].instead_of if line else None,
            "ratings": await ledger.labels(db, id_), "remarks": said[id_],
        })  # fmt: skip
    return found
