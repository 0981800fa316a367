# SPDX-License-Identifier: Apache-2.0
"""Two scopes in one database: what is asked of one is answered by nothing of the other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import Outcome, Receipt
from goodbot.api.feature import HappenedWanted
from goodbot.api.sentences import in_words
from goodbot.api.server import Generated
from goodbot.base.sampling import UNFILTERED
from goodbot.store import (
    Store,
    acceptance,
    adapters,
    asked,
    basis,
    canaries,
    comparisons,
    distilled,
    happened,
    judgements,
    ledger,
    news,
    notes,
    predictions,
    progress,
    quarantined,
    raters,
    reporting,
    runs,
    scopes,
    settings,
    training_pool,
    turns,
    verdicts,
    vote_history,
)
from goodbot.store.adapters import AdapterRow
from goodbot.store.pools import SHARED, Pool
from goodbot.store.query import fetch
from goodbot.store.review_queue import Viewer
from goodbot.store.runs import RunItem

from tests.core.made import CHANNEL, OWNER, rate, turn

ME = f"{OWNER.connector}:{OWNER.id}"
FIRST = Pool(scope=SHARED, model="m", owners=(ME,))
SECOND = replace(FIRST, scope="person loopback:ada")
LEARNT = tuple(range(8))
"""Of the answers those that a run has learnt from;"""
FRESH = (8, 9, 10, 11)
"""those that none has;"""
OTHER = 12
"""one of another model, which can be replayed;"""
GUEST = 13
"""one in private with somebody who has not consented;"""
JUDGED, UNRATED = 14, 15
"""and two that nobody has rated."""
_BAD = 2
"""The number in the ledger of the first scope's first bad rating, on which the one note rests."""
_WANTED = HappenedWanted(kinds=("rating", "training", "version"), private_chats=True)


class _Filled:
    """The same rows in either scope, each under names of its own."""

    def __init__(self, db: Any, pool: Pool, prefix: str) -> None:
        self.db, self.pool, self.prefix = db, pool, prefix

    def id(self, number: int) -> str:
        return f"{self.prefix}{number}"

    async def all(self, first: int) -> None:
        """`first`: the number of the first of its versions."""
        for number in range(16):
            await self._answer(number, first)
        run = await self._trained([*LEARNT], "activated", 1.0)
        await self._version(first, run)
        await self._version(first + 1, None, tainted=adapters.FORGOTTEN)
        await self._version(first + 2, await self._trained([], "refused", 2.0))
        await adapters.move_pointer(self.db, self.pool.scope, "m", 0, first, 3.0)
        await canaries.begin(self.db, self.pool.scope, "m", first + 2, first, 4.0)
        for held in (False, True):
            await self._asked(run, first, held)
        await self._aside(9)
        await self._judged()
        if self.pool is SECOND:
            await self._in_the_way(first)
        else:
            await self._trained([8], "", 9.0)

    async def _answer(self, number: int, version: int) -> None:
        user = replace(OWNER, id="guest") if number == GUEST else OWNER
        made_of = self.id(number)
        made = turn(
            made_of,
            talker=user,
            channel=replace(CHANNEL, id=f"{user.id} {self.prefix}"),
            messages=[{"role": "user", "content": f"Question {made_of}?"}],
            version=version,
            model="n" if number == OTHER else "m",
            scope=self.pool.scope,
            own="" if self.pool is FIRST else self.pool.scope,
            created_at=1e9 + number,
        )
        await turns.insert(self.db, made, trainable=True)
        if number in (JUDGED, UNRATED):
            return
        # In the first scope the owner's last ratings are not all bad; in the second they are.
        value = 1.0 if number == 0 or (self.pool is FIRST and number % 3 == 0) else -1.0
        event = rate(f"e-{made.id}", number, value, made.id)
        receipt = Receipt(event_id=event.event_id, outcome=Outcome.ACCEPTED, turn=made.id)
        who = "loopback:ada" if self.pool is SECOND and number == 1 else ME
        await ledger.insert(self.db, event, made.id, who, receipt, 1e9 + number)

    async def _trained(self, numbers: list[int], state: str, now: float) -> int:
        return await self._run([self._item(self.id(number)) for number in numbers], state, now)

    def _item(self, id_: str, split: str = "train") -> RunItem:
        return RunItem(turn=id_, split=split, reward=1.0, labels={ME: 1.0})

    async def _run(self, items: list[RunItem], state: str, now: float) -> int:
        run = await runs.start(
            self.db,
            pool=self.pool,
            parent=0,
            cause=in_words("a test"),
            backend="fake",
            settings={},
            items=items,
            now=now,
            last_event=0 if self.pool is FIRST else None,
        )
        if state:
            found = {"metrics": {"held_out": 2, "xx": 1.0, "xy": 0.5, "yy": 1.0}}
            took = 0.5 if self.pool is FIRST else 0.25
            await runs.finish(self.db, run, state, in_words(f"{self.prefix} {state}"), found, now + took)
        return run

    async def _version(self, version: int, run: int | None, *, tainted: str = "") -> None:
        row = AdapterRow(
            version=version,
            parent=0,
            run=run,
            directory=f"v{version}",
            sha256=f"{version:064}",
            model="m",
            tainted="",
            baseline={},
            metrics={},
            created_at=float(version),
        )
        await adapters.add(self.db, row, self.pool.scope)
        await self.db.execute("UPDATE adapters SET tainted = ? WHERE version = ?", (tainted, version))

    async def _asked(self, run: int, version: int, held: bool) -> None:
        await comparisons.open_(self.db, self.pool, run=run, old=0, new=version, held=held, now=5.0 + held)
        [found] = [await comparisons.current(self.db, self.pool)]
        assert found is not None
        said = Generated(text=f"{self.prefix} answers", version=version, finish="stop")
        asked_of = await turns.get(self.db, self.id(int(held)))
        assert asked_of is not None
        await comparisons.add(
            self.db, found.id, ME, asked_of, old=said, new=said, temperature=1.0, filters=UNFILTERED, seed=1
        )
        await comparisons.ask(self.db, found.id, 6.0)
        [pair] = await comparisons.pairs(self.db, found, [ME])
        await comparisons.choose(self.db, pair, "new", ME, 7.0)
        if not held:
            await comparisons.close(self.db, found, "lost", 8.0)

    async def _aside(self, number: int) -> None:
        run = await self._trained([number], "failed", 6.0)
        await quarantined.add(self.db, run, "nan", {self.id(number): f"{self.prefix} is odd"}, 6.0)

    async def _judged(self) -> None:
        id_ = self.id(JUDGED)
        await judgements.begin(self.db, id_, now=1e9, again=1e9)
        await judgements.settle(self.db, id_, "careful", said_at=1e9, value=1.0)

    async def _in_the_way(self, first: int) -> None:
        """What only a second scope has: a run of its own on answers of the first, and a withdrawn version."""
        borrowed = [self._item("a10", "held_out"), self._item(f"a{OTHER}")]
        await self._version(first + 3, await self._run(borrowed, "activated", 8.0))
        # One that is under way, whose version has a number below those of the first scope.
        await self._version(5, await self._run([], "", 9.0))
        [(learnt,)] = await fetch(self.db, "SELECT run FROM adapters WHERE version = ?", (first,))
        await distilled.claim(self.db, learnt, {1: [_BAD]})
        await distilled.retire(self.db, learnt, [1])
        await adapters.mark(self.db, self.pool.scope, {learnt}, "a test")


async def _retrains(db: Any, pool: Pool) -> tuple[str]:
    return (await settings.switch(db, adapters.retrain_switch(pool.scope, pool.model)),)


async def _chosen(db: Any, pool: Pool) -> Any:
    rows, repeated = await training_pool.chosen(db, pool, replay=True, replay_share=0.4)
    return rows, sorted(repeated)


async def _worse(db: Any, pool: Pool) -> list[int]:
    return sorted(await verdicts.worse(db, pool))


async def _known(db: Any, pool: Pool) -> Any:
    known = await raters.known(db, pool.scope)
    return sorted(known.seen)


async def _twins(db: Any, pool: Pool) -> Any:
    return [await adapters.withdrawn_twin(db, pool.scope, f"{version:064}") for version in (11, 21)]


READERS: dict[str, Callable[[Any, Pool], Awaitable[Any]]] = {
    "available": lambda db, pool: training_pool.available(db, pool, 100),
    "some": lambda db, pool: training_pool.some(db, pool, 100),
    "standing": training_pool.standing,
    "has_learnt": training_pool.has_learnt,
    "candidates": lambda db, pool: training_pool.candidates(db, pool, parent=10),
    "chosen": _chosen,
    "replayable": training_pool.replayable,
    "last_runs": lambda db, pool: runs.last_runs(db, pool.scope, 10),
    "labels_since": lambda db, pool: runs.labels_since(db, pool, 1, 100),
    "underway": lambda db, pool: progress.underway(db, pool.scope),
    "pointer": lambda db, pool: adapters.pointer(db, pool.scope, pool.model),
    "versions": lambda db, pool: adapters.all_of(db, pool.scope),
    "twins": _twins,
    "retrains": _retrains,
    "canary": lambda db, pool: canaries.running(db, pool.scope, pool.model),
    "last_canary": lambda db, pool: canaries.last(db, pool.scope, pool.model),
    "comparison": comparisons.current,
    "sums": comparisons.sums,
    "prompts": lambda db, pool: comparisons.prompts(db, pool, [ME], 1, 100),
    "refused": verdicts.refused,
    "judged": lambda db, pool: verdicts.judged(db, pool, 1 << 30),
    "worse": _worse,
    "by_base": lambda db, pool: verdicts.by_base(db, pool.scope),
    "answered": lambda db, pool: verdicts.answered(db, pool, 0, 10, [ME], 10),
    "acceptance": acceptance.by_version,
    "past_labels": lambda db, pool: basis.past_labels(db, pool, 100),
    "earlier": lambda db, pool: asked.earlier(db, pool, 1 << 30, 100),
    "unrated": lambda db, pool: asked.unrated(db, pool, 100),
    "level": lambda db, pool: news.level(db, pool, ME, 100),
    "streak_since": lambda db, pool: news.streak_since(db, pool.scope, ME),
    "raters": lambda db, pool: news.raters(db, pool.scope),
    "last_seconds": lambda db, pool: news.last_seconds(db, pool.scope),
    "known": _known,
    "taught": raters.taught,
    "votes": lambda db, pool: vote_history.votes(db, pool.scope),
    "set_aside": quarantined.listed,
    "sent": lambda db, pool: quarantined.sent(db, pool.scope, pool.model, 0.0),
    "judgements": judgements.counts,
    "judged_answers": judgements.chosen,
    "to_judge": lambda db, pool: judgements.due(db, pool, since=0.0, now=2e9, again=2e9, limit=100),
    "asked_by": lambda db, pool: distilled.asked_by(db, pool, 1, [ME], 100),
    "notes": lambda db, pool: notes.standing(db, pool, [notes.EVERYBODY]),
    "predicted_from": lambda db, pool: predictions.rated(db, pool, 100),
    "to_predict": lambda db, pool: predictions.unrated(db, pool, 100),
    "report": lambda db, pool: reporting.page(db, pool, Viewer(person=ME, accounts=(ME,), owner=True), [1]),
    "happened": lambda db, pool: happened.waiting(
        db, pool, _WANTED, json.dumps({kind: [0] for kind in _WANTED.kinds})
    ),
}
"""What is asked of one scope."""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str, str]]:
    """By reader: what it says of the first scope alone, and then of the first and of the second."""
    return asyncio.run(_told(tmp_path_factory.mktemp("scopes") / "goodbot.db"))


async def _told(path: Path) -> dict[str, tuple[str, str, str]]:
    store = await Store.open(path)

    async def look(pool: Pool) -> dict[str, str]:
        async def operation(db: Any) -> dict[str, str]:
            return {name: repr(await reader(db, pool)) for name, reader in READERS.items()}

        return await store.read(operation)

    async def fill(pool: Pool, prefix: str, first: int) -> None:
        async def operation(db: Any) -> None:
            await _Filled(db, pool, prefix).all(first)
            if pool is FIRST:
                await notes.add(db, notes.EVERYBODY, "", "Be brief.", _BAD, 1.0)

        await store.write(operation)

    try:
        await fill(FIRST, "a", 10)
        alone = await look(FIRST)
        await fill(SECOND, "b", 20)
        beside, second = await look(FIRST), await look(SECOND)
    finally:
        await store.close()
    return {name: (alone[name], beside[name], second[name]) for name in READERS}


@pytest.mark.parametrize("reader", READERS)
def test_a_second_scope_changes_nothing_that_is_said_of_the_first(
    reader: str, told: dict[str, tuple[str, str, str]]
) -> None:
    alone, beside, _ = told[reader]
    assert beside == alone


@pytest.mark.parametrize("reader", READERS)
def test_each_scope_has_an_answer_of_its_own(reader: str, told: dict[str, tuple[str, str, str]]) -> None:
    """Of rows that are there: a reader that finds nothing in either could not fail above."""
    _, first, second = told[reader]
    counts = {"available", "has_learnt", "replayable", "labels_since", "last_seconds", "happened", "standing"}
    if reader in counts | {"judged", "judgements", "by_base", "past_labels"}:
        assert first not in ("0", "None", "False", "[]", "{}")
    else:
        assert first != second


async def test_what_waits_and_what_is_behind_is_of_the_kind_that_is_set(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "goodbot.db")
    keys = ("person loopback:ada", "channel den", "team slack T1")

    async def fill(db: Any) -> None:
        await _Filled(db, FIRST, "s")._version(1, None)
        await adapters.move_pointer(db, SHARED, "m", 0, 1, 1.0)
        for number, key in enumerate(keys, 2):
            filled = _Filled(db, replace(SECOND, scope=key), key)
            await filled._version(number, await filled._run([], "", 2.0))
            await db.execute("UPDATE adapters SET metrics = '{\"shared\": 0}' WHERE version = ?", (number,))
            await adapters.move_pointer(db, key, "m", 0, number, float(number))

    try:
        await store.write(fill)
        kinds: tuple[Any, ...] = ("person", "channel", "team")
        for number, (kind, key) in enumerate(zip(kinds, keys, strict=True), 2):
            behind = await store.read(lambda db, kind=kind: scopes.behind(db, "m", kind))
            assert behind == [(key, number, 1)]
            assert await store.read(lambda db, kind=kind: scopes.waiting(db, "m", kind, 8)) == [key]
    finally:
        await store.close()


@pytest.mark.parametrize("what", ["asked", "waits"])
async def test_what_has_a_question_or_a_version_that_waits_is_not_behind(tmp_path: Path, what: str) -> None:
    store = await Store.open(tmp_path / "goodbot.db")

    async def fill(db: Any) -> None:
        await _Filled(db, FIRST, "s")._version(1, None)
        await adapters.move_pointer(db, SHARED, "m", 0, 1, 1.0)
        filled = _Filled(db, SECOND, "p")
        for number in (2, 3):
            await filled._version(number, await filled._run([], "activated", 2.0))
        await db.execute("UPDATE adapters SET metrics = '{\"shared\": 0}' WHERE version > 1")
        await adapters.move_pointer(db, SECOND.scope, "m", 0, 2, 2.0)

    async def begin(db: Any) -> None:
        if what == "asked":
            await comparisons.open_(db, SECOND, run=1, old=0, new=2, held=False, now=5.0)
        else:
            await adapters.hold(db, 3, adapters.UNSERVED)

    async def end(db: Any) -> None:
        if what == "asked":
            found = await comparisons.current(db, SECOND)
            assert found is not None
            await comparisons.close(db, found, "passed", 6.0)
        else:
            await adapters.mark(db, SECOND.scope, {2}, "a test")

    try:
        for change, late in ((fill, 1), (begin, 0), (end, 1)):
            await store.write(change)
            assert len(await store.read(lambda db: scopes.behind(db, "m", "person"))) == late, change
    finally:
        await store.close()
