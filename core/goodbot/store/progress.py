# SPDX-License-Identifier: Apache-2.0
"""How far the run under way has come, and what is needed to go on with it after an interruption.

A run stays `running` from its claim to its verdict, also while nothing trains: paused, or because
goodbot was stopped or killed. At most one of a scope is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import aiosqlite

from goodbot.api import sentences
from goodbot.api.sentences import Reason, because
from goodbot.store import adapters, codec, objections, runs, training_pool, words
from goodbot.store.query import fetch, first


@dataclass(frozen=True, kw_only=True, slots=True)
class RunProgress:
    """Of one run. `step` of `steps` is where it would go on; 0 of 0 before anything is safe."""

    step: int = 0
    steps: int = 0
    starts: int = 0
    """Children that have begun since it last got on and were not stopped on purpose."""
    memory: int = 0
    """How often the memory did not suffice."""
    over: int = 0
    """How often it has started over without a rating that had changed."""
    endless: int = 0
    """How often its child was ended since it did not end by itself."""

    @property
    def where(self) -> str:
        """` at step 12 of 32`; empty before anything is safe."""
        return sentences.at(self.step, self.steps)


@dataclass(frozen=True, kw_only=True, slots=True)
class Underway:
    """A run without a verdict."""

    run: int
    model: str
    parent: int
    settings: Mapping[str, Any]
    items: int
    progress: RunProgress
    published: bool
    """Its adapter is recorded, and did not go live."""


async def underway(db: aiosqlite.Connection, scope: str) -> Underway | None:
    """The run of a scope that has no verdict yet."""
    rows = await fetch(
        db,
        "SELECT id, model, parent, settings, (SELECT count(*) FROM run_items WHERE run = r.id),"
        " progress, EXISTS (SELECT 1 FROM adapters WHERE run = r.id AND tainted = '')"
        " FROM runs r WHERE scope = ? AND state = 'running'",
        (scope,),
    )
    row = first(rows)
    if row is None:
        return None
    return Underway(
        run=row[0],
        model=row[1],
        parent=row[2],
        settings=json.loads(row[3]),
        items=row[4],
        progress=RunProgress(**json.loads(row[5])),
        published=bool(row[6]),
    )


async def weigh(db: aiosqlite.Connection, run: int, items: Sequence[runs.RunItem]) -> None:
    """A run that has just claimed its items teaches with these weights, and these notes."""
    await db.executemany(
        "UPDATE run_items SET (weight, words, notes, note_weight) = (?, ?, ?, ?) WHERE (run, turn) = (?, ?)",
        [
            (one.weight, words.dump(one.words), codec.dump_json(one.notes), one.note_weight, run, one.turn)
            for one in items
        ],
    )


async def items(db: aiosqlite.Connection, run: int) -> tuple[runs.RunItem, ...]:
    """What a run has claimed, in the order in which it did."""
    rows = await fetch(
        db,
        "SELECT turn, split, reward, labels, weight, replayed, words, notes, note_weight"
        " FROM run_items WHERE run = ? ORDER BY position",
        (run,),
    )
    return tuple(
        runs.RunItem(
            turn=r[0],
            split=r[1],
            reward=r[2],
            labels=json.loads(r[3]),
            weight=r[4],
            replayed=bool(r[5]),
            words=words.load(r[6]),
            notes=tuple(json.loads(r[7])),
            note_weight=r[8],
        )
        for r in rows
    )


async def objection(
    db: aiosqlite.Connection,
    found: Underway,
    pool: training_pool.Pool,
    *,
    parent: int,
    settings: Mapping[str, Any],
) -> tuple[Reason, ...]:
    """Why an interrupted run cannot go on; empty if it can. The others are what a new one would have."""
    if found.model != pool.model:
        return (because("ended_model", model=found.model),)
    if found.published:
        return (because("ended_live"),)
    if found.settings != json.loads(codec.dump_json(settings)):
        return (because("ended_settings"),)
    if found.parent != parent and not await adapters.tainted(db, found.parent):
        return (because("ended_version"),)
    return await objections.objection(db, pool, found.run)


async def begins(db: aiosqlite.Connection, run: int) -> RunProgress:
    """A child is about to start."""
    now = await of(db, run)
    return await _set(db, run, replace(now, starts=now.starts + 1))


async def stops(db: aiosqlite.Connection, run: int) -> RunProgress:
    """The child was stopped on purpose: that start does not count."""
    now = await of(db, run)
    return await _set(db, run, replace(now, starts=max(0, now.starts - 1)))


async def gets_on(db: aiosqlite.Connection, run: int, step: int, steps: int) -> RunProgress:
    """So many of so many steps are safe."""
    now = await of(db, run)
    further = step > now.step or steps != now.steps
    return await _set(db, run, replace(now, step=step, steps=steps, starts=0 if further else now.starts))


async def runs_out(db: aiosqlite.Connection, run: int) -> RunProgress:
    """The memory did not suffice: the next plan is a smaller one."""
    now = await of(db, run)
    return await _set(db, run, replace(now, memory=now.memory + 1, starts=0))


async def overruns(db: aiosqlite.Connection, run: int) -> RunProgress:
    """The child had to be ended: it had computed for longer than it may, or said nothing any more."""
    now = await of(db, run)
    return await _set(db, run, replace(now, endless=now.endless + 1))


async def starts_over(db: aiosqlite.Connection, run: int) -> RunProgress:
    """Nothing of what was trained is safe any more; what was learnt of the memory holds."""
    now = await of(db, run)
    return await _set(db, run, RunProgress(memory=now.memory, over=now.over + 1))


async def of(db: aiosqlite.Connection, run: int) -> RunProgress:
    """How far a run has come."""
    row = first(await fetch(db, "SELECT progress FROM runs WHERE id = ?", (run,)))
    return RunProgress(**json.loads(row[0])) if row else RunProgress()


async def _set(db: aiosqlite.Connection, run: int, progress: RunProgress) -> RunProgress:
    await db.execute(
        "UPDATE runs SET progress = ? WHERE id = ? AND state = 'running'",
        (codec.dump_json(asdict(progress)), run),
    )
    return progress
