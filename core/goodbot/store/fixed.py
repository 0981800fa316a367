# SPDX-License-Identifier: Apache-2.0
"""What each version says to questions that are always the same (`goodbot.commands.fixed_questions`).

A version may say what it has learnt of somebody: its answers go with it, and all of them when anybody is
forgotten.
"""

from __future__ import annotations

import aiosqlite

from goodbot.store.query import fetch

_KEEP = (
    "INSERT OR REPLACE INTO fixed_answers SELECT :model, :version, :question, :answer, :now"
    " WHERE :version = 0 OR EXISTS (SELECT 1 FROM adapters WHERE version = :version AND tainted = '')"
)


async def keep(
    db: aiosqlite.Connection, model: str, version: int, question: str, answer: str, now: float
) -> None:
    """What a version says, in place of what it said before; nothing of one that was withdrawn meanwhile."""
    said = {"model": model, "version": version, "question": question, "answer": answer, "now": now}
    await db.execute(_KEEP, said)


async def of(db: aiosqlite.Connection, model: str) -> dict[int, dict[str, str]]:
    """By version, its answer to each question."""
    found: dict[int, dict[str, str]] = {}
    rows = await fetch(
        db, "SELECT version, question, answer FROM fixed_answers WHERE model = ? ORDER BY version", (model,)
    )
    for version, question, answer in rows:
        found.setdefault(version, {})[question] = answer
    return found


async def drop(db: aiosqlite.Connection, version: int) -> None:
    """Nobody is to read what a version says that is withdrawn."""
    await db.execute("DELETE FROM fixed_answers WHERE version = ?", (version,))


async def forget(db: aiosqlite.Connection) -> None:
    """Part of forgetting a person: any answer may repeat their words."""
    await db.execute("DELETE FROM fixed_answers WHERE version <> 0")
