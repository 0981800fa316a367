# SPDX-License-Identifier: Apache-2.0
"""What speaks against using what a run has trained: its end, a rating, word or consent that is taken back."""

from __future__ import annotations

import json

import aiosqlite

from goodbot.api.sentences import Reason, because
from goodbot.store import distilled, ledger, words
from goodbot.store.consent import CONSENT
from goodbot.store.query import fetch, first, value
from goodbot.store.training_pool import Pool


async def objection(db: aiosqlite.Connection, pool: Pool, run: int) -> tuple[Reason, ...]:
    """Why what a run has trained must not be used; empty when nothing speaks against it."""
    rows = await fetch(
        db,
        "SELECT r.state, coalesce(a.tainted, '') FROM runs r"
        " LEFT JOIN adapters a ON a.version = r.parent WHERE r.id = ?",
        (run,),
    )
    state, tainted = first(rows) or ("", "")
    if state != "running":
        return (because("ended_before"),)
    if tainted:
        return (because("ended_parent", why=tainted),)
    if await changed(db, run):
        return (because("ended_changed"),)
    return (because("ended_consent"),) if await withdrawn(db, pool, run) else ()


async def changed_items(db: aiosqlite.Connection, run: int) -> list[str]:
    """The turns of a run of which a label that it claimed is gone or different, or a word is taken back.

    What somebody has added since takes nothing back.
    """
    rows = await fetch(db, "SELECT turn, labels, words FROM run_items WHERE run = ?", (run,))
    return [turn for turn, labels, said in rows if await lost(db, turn, labels, said)]


async def changed(db: aiosqlite.Connection, run: int) -> bool:
    """Whether something that a run has learnt from, or a note of its by, does not stand any more."""
    return bool(await changed_items(db, run)) or await distilled.lost(db, run)


async def lost(db: aiosqlite.Connection, turn: str, labels: str, said: str) -> bool:
    """Whether something of what an item of `run_items` holds of a turn, as JSON, does not stand any more."""
    return await ledger.lost(db, turn, json.loads(labels)) or await words.lost(db, turn, words.load(said))


async def withdrawn(db: aiosqlite.Connection, pool: Pool, run: int) -> bool:
    """Whether the consent for one of a run's answers is gone, or for one that its notes rest on."""
    gone = (
        "SELECT EXISTS (SELECT 1 FROM run_notes n, json_each(n.ratings) b JOIN events e ON e.seq ="  # noqa: S608
        " CAST(b.value AS INTEGER)"
        f" JOIN turns t ON t.id = e.turn WHERE n.run = :run AND NOT {CONSENT})"
    )
    return bool(await unshared(db, pool, run) or await value(db, gone, {**pool.values(), "run": run}))


async def unshared(db: aiosqlite.Connection, pool: Pool, run: int) -> list[str]:
    """The turns of a run that may not train any more, since the consent is gone."""
    query = (
        "SELECT i.turn FROM run_items i JOIN turns t ON t.id = i.turn"  # noqa: S608
        f" WHERE i.run = :run AND NOT (t.trainable AND {CONSENT})"
    )
    return [row[0] for row in await fetch(db, query, {**pool.values(), "run": run})]
