# SPDX-License-Identifier: Apache-2.0
"""A run of which a rating has changed meanwhile starts over without it: one answer is lost, not a round."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

import aiosqlite

from goodbot.api.sentences import Reason
from goodbot.learning.adapters import retention
from goodbot.learning.adapters.registry import AdapterRegistry
from goodbot.learning.core import Core
from goodbot.learning.training import batch, opening
from goodbot.learning.training.distilling import NoteLines
from goodbot.learning.training.folders import RunFolders
from goodbot.store import adapters, distilled, judgements, objections, progress, runs
from goodbot.store.runs import RunItem

logger = logging.getLogger(__name__)

SHARES = (1.0, 0.5, 0.5, 0.5)
"""The parts of what stands that a run goes on with, each time that a rating has changed meanwhile.

So the first change costs one answer, and each further one half of what stands, which waits for the next run.
With half of the answers it takes half as long, so that a quarter as many changes meet it: wherever people
change their minds, one of these comes to its end, and all of them take less than three times as long. Where
7 of 100 ratings change meanwhile, forty answers never stand still for as long as they train.
"""
_MENDED = ("ended_changed", "ended_consent", "ended_parent")
"""What it starts over without, or from an earlier version; whatever else speaks against a run ends it."""


async def objection(core: Core, registry: AdapterRegistry, found: progress.Underway) -> tuple[Reason, ...]:
    """What speaks against going on with an interrupted run."""
    parent = await registry.usable_ancestor(await registry.head())
    settings, pool = batch.settings_of(core), core.pool
    return await core.store.read(
        lambda db: progress.objection(db, found, pool, parent=parent, settings=settings)
    )


def mends(objection: Sequence[Reason], so_far: progress.RunProgress) -> bool:
    """Whether a run that has come so far can start over where this speaks against it."""
    return so_far.over < len(SHARES) and all(reason.code in _MENDED for reason in objection)


async def start_over(
    core: Core,
    registry: AdapterRegistry,
    lines: NoteLines | None,
    folders: RunFolders,
    run: int,
    parent: int,
    items: Sequence[runs.RunItem],
    *,
    replay: bool,
) -> tuple[int, tuple[runs.RunItem, ...]]:
    """Let go of what has changed of a run's `items`; from which version it trains now, and on what.

    Of what stands it keeps one of `SHARES`, of those whose ratings have stood the longest. Where the version
    that it continued is not to be used any more, it takes all that is free. Without items it cannot start
    over: it was ended, nothing of it has changed, or it has started over too often.
    """
    # First: weights that have learnt from what is let go must not be gone on with after a crash.
    await asyncio.to_thread(folders.remove, run)
    async with registry.still() as used:  # who is forgotten would not be found by it any more
        for row in await registry.rows():
            if row.run == run and row.erased_at is None and row.version not in used:
                await retention.erase(core.store, registry.root, row, core.clock.now())
    clean = await registry.usable_ancestor(await registry.head())
    looked = await opening.looked_at(core, parent=clean, replay=replay, own=items, free=clean != parent)

    async def operation(db: aiosqlite.Connection) -> tuple[runs.RunItem, ...]:
        changed = {*await objections.changed_items(db, run), *await objections.unshared(db, core.pool, run)}
        notes = await distilled.lost(db, run) or await objections.withdrawn(db, core.pool, run)
        lost = changed or notes or await adapters.tainted(db, parent)
        over = (await progress.of(db, run)).over
        if not await runs.running(db, run) or not lost or over == len(SHARES):
            return ()
        stand = {item.turn: item.replayed for item in items if item.turn not in changed}
        await runs.claim_again(db, run, clean, ())
        taking = batch.usual(core, looked, parent=clean)
        of = stand if clean == parent else None
        _, left = await batch.take(db, replace(taking, replay=replay, of=of, share=SHARES[over]))
        if not any(_rated(item) for item in left):
            return ()
        await runs.claim_again(db, run, clean, left)
        await progress.starts_over(db, run)
        return await opening.with_notes(db, core, lines, run, left)

    left = await core.store.write(operation)
    if left:
        logger.info("run %d starts over with %d answers", run, len(left), extra={"run": run})
    return clean, left


def _rated(item: RunItem) -> bool:
    """Whether a person's rating of it trains for the first time."""
    return item.split == "train" and not item.replayed and not judgements.is_judged(item.labels)
