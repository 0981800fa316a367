# SPDX-License-Identifier: Apache-2.0
"""What became of trainings and versions: refused, found worse, liked less; and what two have answered."""

from __future__ import annotations

import json
from collections.abc import Sequence

import aiosqlite

from goodbot.api.learnt import AnsweredTwice
from goodbot.api.sentences import Reason, words
from goodbot.store import codec
from goodbot.store.comparisons import Tally
from goodbot.store.query import fetch, records
from goodbot.store.training_pool import Pool

_JUDGED = 50
"""Runs that the gate looks back on."""


async def refused(db: aiosqlite.Connection, pool: Pool) -> dict[int, tuple[int, tuple[Reason, ...], float]]:
    """By the version that they continued: how many runs were refused, why the last one was, and when."""
    rows = await fetch(
        db,
        "SELECT parent, (SELECT count(*) FROM runs o WHERE (o.scope, o.model, o.state, o.parent)"
        " = (r.scope, r.model, r.state, r.parent)), reason, finished_at FROM runs r"
        " WHERE (scope, model, state) = (?, ?, 'refused') AND NOT EXISTS (SELECT 1 FROM runs o WHERE"
        " (o.scope, o.model, o.state, o.parent) = (r.scope, r.model, r.state, r.parent)"
        " AND (o.finished_at, o.id) > (r.finished_at, r.id)) ORDER BY parent",
        (pool.scope, pool.model),
    )
    return {parent: (count, codec.load_reasons(kept), at) for parent, count, kept, at in rows}


async def judged(db: aiosqlite.Connection, pool: Pool, run: int) -> list[dict[str, float]]:
    """What the gate found on held-out ratings in the runs of the pool's base model before `run`.

    Of the runs that count still, passed or refused: the four sums `n`, `xx`, `xy`, `yy` of each (see
    docs/worker-protocol.md), the newest first. A rating is held out once, so none is there twice.
    """
    rows = await fetch(
        db,
        "SELECT json_extract(r.metrics, '$.metrics') FROM runs r"
        " WHERE (r.scope, r.model) = (?, ?) AND r.id < ?"
        " AND r.state IN ('activated', 'refused') AND CAST(json_extract(r.metrics, '$.metrics.xx')"
        " AS REAL) > 0"
        " ORDER BY r.id DESC LIMIT ?",
        (pool.scope, pool.model, run, _JUDGED),
    )
    found = [json.loads(row[0]) for row in rows]
    return [
        {"n": int(one["held_out"]), **{name: float(one[name]) for name in ("xx", "xy", "yy")}}
        for one in found
    ]


async def worse(db: aiosqlite.Connection, pool: Pool) -> set[int]:
    """The versions that owners, asked blind, have found worse than the one before."""
    query = "SELECT new FROM comparisons WHERE (scope, model, state) = (?, ?, 'lost')"
    return {row[0] for row in await fetch(db, query, (pool.scope, pool.model))}


async def by_base(db: aiosqlite.Connection, scope: str) -> dict[str, Tally]:
    """By base model, what was chosen between its own answers (`old`) and those of versions of it (`new`)."""
    rows = await fetch(
        db,
        "SELECT c.model, sum(p.choice = 'new'), sum(p.choice = 'old'), sum(p.choice = 'same')"
        " FROM comparisons c JOIN pairs p ON p.comparison = c.id"
        " WHERE (c.scope, c.old) = (?, 0) AND c.closed_at IS NOT NULL AND p.choice IS NOT NULL"
        " GROUP BY c.model",
        (scope,),
    )
    return {model: Tally(new=new, old=old, same=same) for model, new, old, same in rows}


async def less_liked(db: aiosqlite.Connection, pool: Pool, language: str = "") -> dict[int, str]:
    """The versions that have lost their trial, and the figures in words."""
    query = "SELECT version, reason FROM canaries WHERE (scope, model, state) = (?, ?, 'lost')"
    rows = await fetch(db, query, (pool.scope, pool.model))
    return {version: words(*codec.load_reasons(kept), language=language) for version, kept in rows}


async def answered(
    db: aiosqlite.Connection, pool: Pool, old: int, new: int, accounts: Sequence[str], limit: int
) -> list[AnsweredTwice]:
    """A person's own questions (`connector:id`) that both have answered to be chosen between.

    The newest first; none of a comparison that is still open.
    """
    rows = await fetch(
        db,
        "SELECT json_extract(t.messages, '$[#-1].content'), p.old_answer, p.new_answer FROM comparisons c"
        " JOIN pairs p ON p.comparison = c.id JOIN turns t ON t.id = p.turn"
        " WHERE (c.scope, c.model, c.old, c.new) = (?, ?, ?, ?) AND c.closed_at IS NOT NULL"
        " AND p.owner IN (SELECT value FROM json_each(?)) ORDER BY p.id DESC LIMIT ?",
        (pool.scope, pool.model, old, new, codec.dump_json(accounts), limit),
    )
    return records(AnsweredTwice, rows)
