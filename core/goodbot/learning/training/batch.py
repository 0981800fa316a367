# SPDX-License-Identifier: Apache-2.0
"""What the next round takes out of the store, by the config."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import aiosqlite

from goodbot.api.hindsight import OBJECTIVES
from goodbot.api.labels import Opinion
from goodbot.api.rewards import RewardPolicy
from goodbot.config import JudgeConfig, TrainingConfig
from goodbot.learning.core import Core
from goodbot.learning.rating_quality import contradictions
from goodbot.learning.training import claims
from goodbot.learning.training.filtering import Screening
from goodbot.store import basis, codec, judgements, training_pool, words
from goodbot.store.runs import RunItem
from goodbot.store.training_pool import Candidate, Pool
from goodbot.store.words import Word

_Row = tuple[Any, ...]
"""As the store gives it."""
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
    """It takes no others; see `training_pool.chosen`."""
    but: frozenset[str] = frozenset()
    """It takes none of these."""
    share: float = 1.0
    """Of all, the part whose ratings have stood the longest."""
    with_words: bool = False
    """What raters said beside their ratings is claimed, too."""
    judge: JudgeConfig | None = None
    """Whose judgements of answers that nobody rated are claimed beside; those are not counted."""
    screening: Screening | None = None
    """What it leaves out is neither taken nor counted."""

    @property
    def known(self) -> dict[str, Any]:
        """What both kinds of answers are chosen with."""
        return {"anew": True, "sizes": self.screening.sizes} if self.screening else {}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Beside:
    """What a claim is computed from beside its answers."""

    line: Sequence[tuple[int, float]]
    alarmed: frozenset[str]
    spared: frozenset[str] | None
    past: Sequence[Mapping[str, Opinion]]


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimDraft:
    """What a run claims of one state of the store, and what it was computed from."""

    available: int
    """So many rated answers there were."""
    items: tuple[RunItem, ...]
    last_event: int
    """Of that state."""
    rows: Sequence[_Row]
    """Of `training_pool.chosen`."""
    then: str
    """The same as JSON."""
    repeated: frozenset[str]
    beside: _Beside
    said: _Said
    unheard: frozenset[str]
    judged: Sequence[_Row] = ()
    corrected: _Said = field(default_factory=dict[str, Sequence[Word]])


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
    """How many rated answers are there, and what of them a run claims; see `claims.claim`."""
    found = await taken(db, taking)
    return found.available, found.items


async def taken(db: aiosqlite.Connection, taking: Taking) -> ClaimDraft:
    """What a run claims, and what that is computed from; of thousands of answers it takes seconds."""
    pool, config, screening = taking.pool, taking.config, taking.screening
    rows, repeated = await training_pool.chosen(
        db,
        pool,
        replay=taking.replay,
        replay_share=config.replay_share,
        of=taking.of,
        but=taking.but,
        at_least=config.min_ratings,
        **taking.known,
    )
    found = await training_pool.build(db, pool, taking.parent, rows, repeated)
    found, said = await let_through(db, found, screening, words.said if taking.with_words else None)
    beside = await _beside(db, taking)
    found = without(_oldest(found, taking.share), beside.alarmed)
    items = await asyncio.to_thread(
        claims.claim,
        found,
        taking.policy,
        held_out_share=config.held_out / config.min_ratings,
        rater_share=config.rater_share,
        duplicate_limit=config.duplicate_limit,
        age_half_life=config.age_half_life,
        round_size=config.min_ratings - config.held_out,
        past=beside.past,
        spared=beside.spared,
        said=said,
        sketches=screening.sketches if screening else None,
    )
    of = ClaimDraft(
        available=sum(not candidate.replayed for candidate in found),
        items=items,
        last_event=await basis.last_event(db),
        rows=rows,
        then=await asyncio.to_thread(codec.dump_json, rows),
        repeated=frozenset(repeated),
        beside=beside,
        said=said,
        unheard=beside.alarmed,
    )
    return await _judged(db, taking, taking.judge, found, of) if taking.judge and taking.judge.by else of


async def _judged(
    db: aiosqlite.Connection, taking: Taking, judge: JudgeConfig, found: Sequence[Candidate], of: ClaimDraft
) -> ClaimDraft:
    """The same with what only judges rated."""
    outvoted = await asyncio.to_thread(claims.unheard_of, found, taking.policy, of.beside.spared)
    unheard = of.unheard | outvoted
    rows = await judgements.chosen(db, taking.pool, of=taking.of, unheard=unheard, **taking.known)
    rows = [row for row in rows if row[0] not in taking.but]
    built = await training_pool.build(db, taking.pool, taking.parent, rows)
    hear = words.corrections if taking.with_words else None
    built, said = await let_through(db, built, taking.screening, hear)
    told = _oldest(built, taking.share)
    items = claims.judged(told, taking.policy, of.items, weight=judge.weight, share=judge.share, said=said)
    return replace(of, items=(*of.items, *items), unheard=unheard, judged=rows, corrected=said)


async def _beside(db: aiosqlite.Connection, taking: Taking) -> _Beside:
    pool, config = taking.pool, taking.config
    alarmed = await contradictions.alarmed(db, pool.scope) if config.on_alarm == "leave_out" else []
    spared = await training_pool.owners(db, pool) if config.outvoted == "leave_out" else None
    return _Beside(
        line=await training_pool.lineage(db, taking.parent),
        alarmed=frozenset(alarm.rater for alarm in alarmed),
        spared=None if spared is None else frozenset(spared),
        past=await basis.past_labels(db, pool, claims.MEMORY) if taking.policy.rescale else (),
    )


async def changed(db: aiosqlite.Connection, taking: Taking, found: ClaimDraft) -> set[str] | None:
    """Which answers are not any more what `found` was computed from; None: all of that stands.

    Then a claim of now comes to the same of these answers. What has come since waits for the next run: who
    rates in the meantime finds it as if the run had begun before.
    """
    pool, anew = taking.pool, taking.screening is not None
    other = await basis.changed(db, pool, found.then, found.repeated, replay=taking.replay, anew=anew)
    heard = [(found.rows, found.said, words.said)]
    if taking.judge and taking.judge.by:
        now = await judgements.chosen(db, pool, of=taking.of, unheard=found.unheard, **taking.known)
        other |= {row[0] for row in {*found.judged}.difference(now)}
        heard.append((found.judged, found.corrected, words.corrections))
    for rows, then, hear in heard if taking.with_words else ():
        said = await hear(db, [row[0] for row in rows])
        other |= {row[0] for row in rows if said.get(row[0], []) != then.get(row[0], [])}
    return other if other or await _beside(db, taking) != found.beside else None


async def let_through(
    db: aiosqlite.Connection, found: list[Candidate], screening: Screening | None, hear: _Hear | None
) -> tuple[list[Candidate], _Said]:
    """What filters let through, and what was said of it."""
    said: _Said = await hear(db, [one.turn.id for one in found]) if hear else {}
    return (await screening.passed(db, found, said) if screening else found), said


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
