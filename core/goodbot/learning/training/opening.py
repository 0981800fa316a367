# SPDX-License-Identifier: Apache-2.0
"""How a run opens. What it claims is computed before the transaction that opens it: ratings wait for that."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import aiosqlite

from goodbot.api.sentences import Reason
from goodbot.base.errors import TrainingError
from goodbot.base.worded import Worded
from goodbot.learning.core import Core
from goodbot.learning.rating_quality import near_duplicates
from goodbot.learning.training import batch, distilling
from goodbot.learning.training.batch import ClaimDraft
from goodbot.learning.training.distilling import NoteLines
from goodbot.learning.training.filtering import Screening
from goodbot.store import basis, codec, judgements, ledger, runs, training_pool, words
from goodbot.store.runs import RunItem
from goodbot.store.training_pool import Candidate

TRIES = 3
"""So often it is computed ahead. Where people change their minds each time, the transaction computes it."""


class Ahead:
    """What a new run would claim, computed while nobody waits for it.

    The last time without the answers of which something has changed during each time before: they wait for
    the next run.
    """

    def __init__(self, core: Core, *, parent: int, replay: bool) -> None:
        self.screening = Screening(core.filtering)
        self.parent = parent
        self._store = core.store
        self._taking = replace(batch.usual(core, self.screening, parent=parent), replay=replay)
        self._found: ClaimDraft | None = None
        self._tries = 0
        self._restless = set[str]()

    async def look(self) -> None:
        """Compute it, once more where that was not `taken`. Raises TrainingError, StoreError."""
        self._tries += 1
        left_out = frozenset(self._restless) if self._tries == TRIES else frozenset[str]()
        self._taking = replace(self._taking, but=left_out)
        ahead = self._tries <= TRIES
        store, take = self._store, self._take
        self._found = await self.screening.through(lambda: store.snapshot(take)) if ahead else None

    @property
    def whole(self) -> bool:
        """Whether it has left out nothing that could be claimed."""
        return not self._taking.but

    async def taken(self, db: aiosqlite.Connection) -> ClaimDraft | None:
        """What a run claims now, in the transaction that opens it; None: what was computed does not hold."""
        if self._found is None:
            return await self._take(db)
        changed = await batch.changed(db, self._taking, self._found)
        self._restless |= changed or set()
        return self._found if changed is None else None

    async def _take(self, db: aiosqlite.Connection) -> ClaimDraft:
        return await batch.taken(db, self._taking)


async def opened(
    core: Core, ahead: Ahead, lines: NoteLines | None = None, *, cause: Sequence[Reason], at_least: int
) -> tuple[int, tuple[RunItem, ...]] | None:
    """Open a run on what can be taken, `at_least` so many answers: its number, and those.

    It teaches notes of `lines`. None: nothing is done, and `ahead` is to look again. What filters have left
    out is kept, also where too little was left. Raises TrainingError where there is too little, StoreError.
    """
    try:
        return await core.store.write(lambda db: _claim(db, core, ahead, lines, cause, at_least))
    finally:
        await ahead.screening.keep(core.store, core.pool, batch.settings_of(core), core.clock.now())


async def _claim(
    db: aiosqlite.Connection,
    core: Core,
    ahead: Ahead,
    lines: NoteLines | None,
    cause: Sequence[Reason],
    at_least: int,
) -> tuple[int, tuple[RunItem, ...]] | None:
    if (found := await ahead.taken(db)) is None:
        return None
    if too_little := _too_little(found, at_least):
        if not ahead.whole or await basis.last_event(db) != found.last_event:
            return None  # there may be enough by now
        left_out = ahead.screening.left_out
        but = Worded("filters have left {answers} out", answers=len(left_out)) if left_out else ""
        said = Worded("{what}; {why}", what=too_little, why=but) if but else too_little
        raise TrainingError(said, kind="data")
    run = await runs.start(
        db,
        pool=core.pool,
        parent=ahead.parent,
        cause=cause,
        backend=core.backend.name,
        settings=batch.settings_of(core),
        items=found.items,
        last_event=found.last_event,
        now=core.clock.now(),
    )
    return run, await with_notes(db, core, lines, run, found.items)


def _too_little(found: ClaimDraft, at_least: int) -> str:
    """What is missing, as a sentence's beginning; empty: nothing."""
    fresh = [item for item in found.items if not (item.replayed or judgements.is_judged(item.labels))]
    if not any(item.split == "train" for item in fresh):
        return Worded("there is nothing to train on yet: rate some answers first")
    if len(fresh) >= at_least:
        return ""
    few = "{answers} of {available} rated answers can train, the others are ties: {needed} are needed"
    return Worded(few, answers=len(fresh), available=found.available, needed=at_least)


async def with_notes(
    db: aiosqlite.Connection, core: Core, lines: NoteLines | None, run: int, items: tuple[RunItem, ...]
) -> tuple[RunItem, ...]:
    """What a run has claimed, with the notes that it teaches."""
    return await distilling.claim(db, core, lines, run, items) if lines and batch.takes_notes(core) else items


async def looked_at(
    core: Core, *, parent: int, replay: bool, own: Sequence[RunItem] = (), free: bool = True
) -> Screening:
    """Look at what a run from `parent` that starts over may claim: its `own` items, and all that is `free`
    where it takes that. Raises TrainingError.

    While it claims, whoever rates waits for it: then filters are not asked, what has come since waits for the
    next run, no answer's length is read again, and none is prepared again for being compared with others.
    """
    screening, pool, training = Screening(core.filtering), core.pool, core.config.training
    taking = replace(batch.usual(core, screening, parent=parent), replay=replay)

    async def prepare(db: aiosqlite.Connection, found: list[Candidate], judged: bool) -> None:
        hear = words.corrections if judged else words.said
        await batch.let_through(db, found, screening, hear if taking.with_words else None)
        if training.duplicate_limit and not judged:
            compared = [near_duplicates.exchange(one.turn) for one in found]
            await asyncio.to_thread(near_duplicates.sketched, compared, screening.sketches)

    async def look(db: aiosqlite.Connection) -> None:
        # As it will be claimed: what somebody else has said since is looked at, too, and what was judged
        # is taken as rated once a person has rated it.
        said = {one.turn: await ledger.labels(db, one.turn) for one in own}
        for judged in (False, True):
            mine = [one for one in own if (judgements.is_judged(one.labels) and not said[one.turn]) is judged]
            now = {one.turn: one.labels if judged else said[one.turn] for one in mine}
            rows = [(turn, codec.dump_json(labels), 0, 0) for turn, labels in now.items()]
            await prepare(db, await training_pool.build(db, pool, parent, rows), judged)
        if not free:
            return
        share, n = training.replay_share, training.min_ratings
        rows, repeated = await training_pool.chosen(
            db, pool, replay=replay, replay_share=share, at_least=n, **taking.known
        )
        await prepare(db, await training_pool.build(db, pool, parent, rows, repeated), False)
        if core.config.judge.by:
            rows = await judgements.chosen(db, pool, **taking.known)
            await prepare(db, await training_pool.build(db, pool, parent, rows), True)

    if core.filtering or training.duplicate_limit:
        await screening.through(lambda: core.store.snapshot(look))
    return screening
