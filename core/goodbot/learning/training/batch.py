# SPDX-License-Identifier: Apache-2.0
"""What the next round takes out of the store, by the config."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import aiosqlite

from goodbot.api.hindsight import OBJECTIVES
from goodbot.api.rewards import RewardPolicy
from goodbot.api.sentences import Reason
from goodbot.base.errors import TrainingError
from goodbot.config import JudgeConfig, TrainingConfig
from goodbot.learning.core import Core
from goodbot.learning.rating_quality import contradictions
from goodbot.learning.training import claims, distilling
from goodbot.learning.training.distilling import NoteLines
from goodbot.learning.training.filtering import Screening
from goodbot.store import codec, judgements, runs, training_pool, words
from goodbot.store.runs import RunItem
from goodbot.store.training_pool import Candidate, Pool
from goodbot.store.words import Word

_T = TypeVar("_T")
_Said = Mapping[str, Sequence[Word]]
"""Answer → what was said of it."""
_Hear = Callable[[aiosqlite.Connection, Sequence[str]], Awaitable[_Said]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Taking:
    """Where a run takes ratings from, and by which rules."""

    pool: Pool
    policy: RewardPolicy
    config: TrainingConfig
    parent: int
    """The version that it continues."""
    replay: bool = False
    """It takes the answers of other base models, too."""
    of: Mapping[str, bool] | None = None
    """It takes no others; see `training_pool.candidates`."""
    share: float = 1.0
    """Of all, the part whose ratings have stood the longest."""
    with_words: bool = False
    """What raters said beside their ratings is claimed, too."""
    judge: JudgeConfig | None = None
    """Whose judgements of answers that nobody rated are claimed beside; those are not counted."""
    screening: Screening | None = None
    """What it leaves out is neither taken nor counted."""


def usual(core: Core, screening: Screening, *, parent: int) -> Taking:
    """All that can be taken, by the config and the objective in use."""
    return Taking(
        pool=core.pool,
        policy=core.policy,
        config=core.config.training,
        parent=parent,
        with_words=takes_words(core),
        judge=core.config.judge,
        screening=screening,
    )


async def take(db: aiosqlite.Connection, taking: Taking) -> tuple[int, tuple[RunItem, ...]]:
    """How many rated answers are there, and what of them a run claims.

    Part of the transaction that opens the run; see `claims.claim`.
    """
    pool, policy, config, screening = taking.pool, taking.policy, taking.config, taking.screening
    hear = taking.with_words
    known: dict[str, Any] = {"anew": True, "sizes": screening.sizes} if screening else {}
    found = await training_pool.candidates(
        db,
        pool,
        parent=taking.parent,
        replay=taking.replay,
        replay_share=config.replay_share,
        of=taking.of,
        at_least=config.min_ratings,
        **known,
    )
    found, said = await _heard(db, found, screening, words.said if hear else None)
    found = _oldest(found, taking.share)
    unheard = set[str]()
    if config.on_alarm == "leave_out":
        unheard = {alarm.rater for alarm in await contradictions.alarmed(db, pool.scope)}
        found = without(found, unheard)
    spared = await training_pool.owners(db, pool) if config.outvoted == "leave_out" else None
    past = await training_pool.past_labels(db, pool, claims.MEMORY) if policy.rescale else ()
    items = await asyncio.to_thread(  # thousands of long answers take seconds
        claims.claim,
        found,
        policy,
        held_out_share=config.held_out / config.min_ratings,
        rater_share=config.rater_share,
        duplicate_limit=config.duplicate_limit,
        age_half_life=config.age_half_life,
        round_size=config.min_ratings - config.held_out,
        past=[labels for labels in past if not judgements.is_judged(labels)],
        spared=spared,
        said=said,
    )
    judge = taking.judge
    if judge and judge.by:
        unheard |= await asyncio.to_thread(claims.unheard_of, found, policy, spared)
        judged = await judgements.candidates(
            db, pool, parent=taking.parent, of=taking.of, unheard=unheard, **known
        )
        judged, said = await _heard(db, judged, screening, words.corrections if hear else None)
        told = _oldest(judged, taking.share)
        items += tuple(claims.judged(told, policy, items, weight=judge.weight, share=judge.share, said=said))
    return sum(not candidate.replayed for candidate in found), items


async def _heard(
    db: aiosqlite.Connection, found: list[Candidate], screening: Screening | None, hear: _Hear | None
) -> tuple[list[Candidate], _Said]:
    """What filters let through, and what was said of it."""
    said: _Said = await hear(db, [one.turn.id for one in found]) if hear else {}
    return (await screening.passed(db, found, said) if screening else found), said


async def looked_at(
    core: Core, *, parent: int, replay: bool, own: Sequence[RunItem] = (), free: bool = True
) -> Screening:
    """Ask the filters about what a run from `parent` would claim now. Raises TrainingError.

    While it claims, whoever rates waits for it: then none is asked but about what has come since, and no
    answer's length is read again. Of a run that starts over they are asked about its `own` items, and about
    all that is `free` where it takes that.
    """
    screening, pool, heard = Screening(core.filtering), core.pool, takes_words(core)
    known: dict[str, Any] = {"anew": True, "sizes": screening.sizes}

    async def look(db: aiosqlite.Connection) -> None:
        for judged, hear in ((False, words.said), (True, words.corrections)):
            mine = [one for one in own if judgements.is_judged(one.labels) is judged]
            labels = [(one.turn, codec.dump_json(one.labels), 0, 0) for one in mine]
            built = await training_pool.build(db, pool, parent, labels)
            await _heard(db, built, screening, hear if heard else None)
        if free:
            await look_at_free(db)

    async def look_at_free(db: aiosqlite.Connection) -> None:
        share, n = core.config.training.replay_share, core.config.training.min_ratings
        found = await training_pool.candidates(
            db, pool, parent=parent, replay=replay, replay_share=share, at_least=n, **known
        )
        await _heard(db, found, screening, words.said if heard else None)
        if core.config.judge.by:
            judged = await judgements.candidates(db, pool, parent=parent, **known)
            await _heard(db, judged, screening, words.corrections if heard else None)

    if core.filtering:
        await core.store.read(look)
    return screening


async def claim(
    db: aiosqlite.Connection,
    core: Core,
    screening: Screening,
    lines: NoteLines | None = None,
    *,
    parent: int,
    cause: Sequence[Reason],
    at_least: int,
    replay: bool,
) -> tuple[int, tuple[RunItem, ...]]:
    """Open a run from `parent` on what can be taken, `at_least` so many answers: its number, and those.

    It teaches notes of `lines`. Part of the caller's transaction. Raises TrainingError where there is too
    little.
    """
    available, items = await take(db, replace(usual(core, screening, parent=parent), replay=replay))
    but = f"; filters have left {len(screening.left_out)} out" if screening.left_out else ""
    fresh = [item for item in items if not (item.replayed or judgements.is_judged(item.labels))]
    if not any(item.split == "train" for item in fresh):
        raise TrainingError(f"there is nothing to train on yet: rate some answers first{but}", kind="data")
    if len(fresh) < at_least:
        raise TrainingError(
            f"{len(fresh)} of {available} rated answers can train, the others are ties: "
            f"{at_least} are needed{but}",
            kind="data",
        )
    run = await runs.start(
        db,
        pool=core.pool,
        parent=parent,
        cause=cause,
        backend=core.backend.name,
        settings=settings_of(core),
        items=items,
        now=core.clock.now(),
    )
    return run, await with_notes(db, core, lines, run, items)


async def kept(
    core: Core, screening: Screening, operation: Callable[[aiosqlite.Connection], Awaitable[_T]]
) -> _T:
    """Write what claims answers, and what filters have left out of it: also where too little was left."""
    try:
        return await core.store.write(operation)
    finally:
        await screening.keep(core.store, core.pool, settings_of(core), core.clock.now())


async def with_notes(
    db: aiosqlite.Connection, core: Core, lines: NoteLines | None, run: int, items: tuple[RunItem, ...]
) -> tuple[RunItem, ...]:
    """What a run has claimed, with the notes that it teaches."""
    return await distilling.claim(db, core, lines, run, items) if lines and takes_notes(core) else items


def takes_notes(core: Core) -> bool:
    """Whether the objective in use teaches notes, and that weighs anything."""
    return takes_words(core) and bool(core.settings.get("note_weight"))


def takes_words(core: Core) -> bool:
    """Whether the objective in use takes what raters say beside their ratings, and that weighs anything."""
    used = core.settings.get("objective")
    takes = used in OBJECTIVES or any(
        spec.hindsight and spec.factory == used for spec in core.plugins.objectives().values()
    )
    return takes and bool(core.settings.get("hindsight_weight", 1.0))


def settings_of(core: Core) -> dict[str, Any]:
    """All that decides what a run on the same answers comes to, as it is stored with it."""
    own = {**core.settings, "reward": core.policy.name, "seed": core.config.serving.seed}
    return {**own, "filters": core.filtering.about} if core.filtering else own


def _oldest(candidates: Sequence[Candidate], share: float) -> list[Candidate]:
    """The first of the fresh ones, and of those that are repeated, in their order; one at least."""
    left: set[str] = set()
    for replayed in (False, True):
        ids = [one.turn.id for one in candidates if one.replayed is replayed]
        left.update(ids[: max(1, int(share * len(ids)))])
    return [one for one in candidates if one.turn.id in left]


def without(candidates: Sequence[Candidate], raters: Collection[str]) -> list[Candidate]:
    """The candidates without what these raters say; those of which nothing is left are missing."""
    left = [claims.without(candidate, raters) for candidate in candidates]
    return [candidate for candidate in left if candidate.labels]
