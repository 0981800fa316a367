# SPDX-License-Identifier: Apache-2.0
"""What owners are told of trainings and of contradicting ratings: privately, wherever it runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Container, Sequence

from goodbot.access.direct_message import Courier
from goodbot.api.hookspecs import hookimpl
from goodbot.api.notice import Notice
from goodbot.api.texts import say
from goodbot.base.clock import Clock, woken
from goodbot.base.errors import boundary
from goodbot.conversation.notifications import changed, serving, trainings
from goodbot.conversation.notifications.alarms import advised
from goodbot.conversation.notifications.raters import asks_to_share
from goodbot.learning.adapters.registry import AdapterRegistry
from goodbot.learning.rating_quality import contradictions
from goodbot.learning.training.readiness import Readiness
from goodbot.store import (
    Store,
    adapters,
    canaries,
    comparisons,
    distilled,
    news,
    quarantined,
    runs,
    settings,
    vote_history,
)
from goodbot.store.adapters import PINNED, AdapterRow
from goodbot.store.training_pool import Pool

logger = logging.getLogger(__name__)

_LOOK_SECONDS = 60.0
_RUNS = 10
_OLD_SECONDS = 86400.0


class OwnerNews:
    """Looks at the last runs and ratings and tells what no owner has heard yet.

    It decides by the store alone, not by events: what ended just before a crash is told at the
    next start, and an owner whose terminal was closed hears of it when it opens, for a day.
    """

    def __init__(
        self,
        *,
        store: Store,
        registry: AdapterRegistry,
        courier: Courier,
        clock: Clock,
        owners: Callable[[], Sequence[str]],
        readiness: Callable[[], Awaitable[Readiness]],
        pool: Pool,
    ) -> None:
        self._store, self._registry = store, registry
        self._courier, self._clock = courier, clock
        self._reads = courier.readers.language
        self._owners = owners
        self._readiness = readiness
        self._pool = pool
        self._all_know = False
        """Nobody is left who is to hear that their private chats teach."""
        self.soon = asyncio.Event()
        """Set where there may be news, or where somebody may be reached who could not be before."""
        self._looked_at: tuple[int, int] | None = None

    @hookimpl
    def on_training_finished(self) -> None:
        """Look soon."""
        self.soon.set()

    on_adapter_activated = on_training_finished

    async def loop(self) -> None:
        """Until cancelled."""
        while True:
            self.soon.clear()
            with boundary(logger, "telling the owners"):
                await self.look()
            await woken(self.soon, self._clock, _LOOK_SECONDS)

    async def look(self) -> None:
        """Tell every owner what they have not heard yet, the oldest first."""
        await self._look_at_runs()
        await self._look_at_what_is_left_out()
        await self._look_at_serving()
        await self._look_at_ratings()
        await self._look_at_consent()
        await self._look_at_what_waits()
        await self._look_at_notes()

    async def _look_at_runs(self) -> None:
        last = await self._store.read(lambda db: runs.last_runs(db, self._registry.scope, _RUNS))
        found = [run for run in last if run.finished_at is not None]
        rows = {row.run: row for row in await self._registry.rows()}
        active = await self._registry.active()
        for number, run in reversed(list(enumerate(found))):
            row = rows.get(run.id)
            for owner in self._owners():
                if owner in self._courier.watching:
                    continue
                key = news_key(run.id, owner)
                if run.state == "released" and row is not None and row.version != active:
                    if await self._store.read(lambda db, k=key: news.told(db, k)):
                        text = trainings.withdrawn(row, await self._registry.wanted(), self._reads(owner))
                        await self._tell(f"withdrawn {key}", owner, text)
                elif text := await self._verdict(found, number, row, active, self._reads(owner)):
                    if row is not None:
                        text += await changed.example(
                            self._store, run.id, row.version, owner, self._reads(owner)
                        )
                    await self._tell(key, owner, text)

    async def _look_at_what_is_left_out(self) -> None:
        """Name once who sent what a round had to go without."""
        since = self._clock.now() - _OLD_SECONDS
        scope, model = self._registry.scope, self._registry.model
        for one in await self._store.read(lambda db: quarantined.sent(db, scope, model, since)):
            for owner in self._owners():
                text = trainings.without(one, self._reads(owner))
                await self._tell(f"aside {one.run} {one.sender} {owner}", owner, text)

    async def _look_at_serving(self) -> None:
        rows, active = await self._registry.rows(), await self._registry.active()
        scope, model = self._registry.scope, self._registry.model
        trial = await self._store.read(lambda db: canaries.last(db, scope, model))
        now_so = dict(serving.unserved(rows, active))
        await self._ended("unserved", now_so)
        for subject, said in (*now_so.items(), *serving.ended(trial, self._clock.now())):
            for owner in self._owners():
                await self._tell(f"{subject} {owner}", owner, said(self._reads(owner)))

    async def _look_at_ratings(self) -> None:
        """Tell once of ratings that have begun to contradict; looks only when there are new ones.

        Which rating has set an alarm off changes while it is on, so the key does not name it.
        """
        newest = await self._store.read(vote_history.newest)
        if newest == self._looked_at:
            return
        found = await self._store.read(lambda db: contradictions.alarmed(db, self._registry.scope))
        on = {f"alarm {alarm.against} {alarm.rater}": alarm for alarm in found}
        await self._ended("alarm", on)
        for subject, alarm in on.items():
            for owner in self._owners():
                await self._tell(f"{subject} {owner}", owner, advised(alarm, self._reads(owner)))
        self._looked_at = newest if not found else None

    async def _look_at_consent(self) -> None:
        """Tell those once whose private ratings waited in an older goodbot, and count now."""
        if self._all_know:
            return
        since = str(self._clock.now())
        if not await self._store.read(lambda db: settings.switch(db, news.TEACHING_SINCE)):
            await self._store.write(lambda db: settings.set_switch(db, news.TEACHING_SINCE, since))
        keys = {
            f"teaching {owner}": owner
            for owner in await self._store.read(lambda db: news.waited(db, self._pool))
        }
        for key, owner in keys.items():
            await self._tell(key, owner, say("teaches", self._reads(owner)))
        heard = [await self._store.read(lambda db, k=key: news.told(db, k)) for key in keys]
        self._all_know = all(heard)

    async def _look_at_what_waits(self) -> None:
        """Tell owners whom nobody has paired that their private ratings wait now that others talk."""
        for owner in await self._store.read(lambda db: news.stopped(db, self._pool)):
            await self._courier.tell(asks_to_share(owner, self._reads(owner)))

    async def _look_at_notes(self) -> None:
        """Tell whose notes they are, owners of what others share, which no prompt has any more."""
        for one in await self._store.read(lambda db: distilled.retired(db, self._pool)):
            key = "noted_refuted" if one.refuted else "noted_learnt"
            for person in (one.person,) if one.person else self._owners():
                text = say(key, self._reads(person), number=one.note, note=one.text)
                await self._tell(f"retired {one.run} {one.note} {person}", person, text)

    async def _ended(self, kind: str, now_so: Container[str]) -> None:
        """Tell owners that what they were told is over: it is told again, should it happen again."""
        for key in await self._store.read(lambda db: news.told_of(db, kind)):
            subject, _, owner = key.rpartition(" ")
            if subject not in now_so:
                who, language = subject.split(" ")[-1], self._reads(owner)
                alarm = kind == "alarm"
                text = (
                    say("alarm_over", language, rater=who)
                    if alarm
                    else say("unserved_over", language, version=who)
                )
                await self._courier.ended(Notice(key=key, person=owner, text=text))

    async def _tell(self, key: str, owner: str, text: str) -> None:
        await self._courier.tell(Notice(key=key, person=owner, text=text))

    async def text(self, run: int, language: str) -> str:
        """What an owner is told of a run that has just ended; empty for nothing. Raises StoreError."""
        last = await self._store.read(lambda db: runs.last_runs(db, self._registry.scope, _RUNS))
        found = [one for one in last if one.finished_at is not None]
        rows = {row.run: row for row in await self._registry.rows()}
        active = await self._registry.active()
        for number, one in enumerate(found):
            if one.id == run:
                return await self._verdict(found, number, rows.get(run), active, language)
        return ""

    async def _verdict(
        self, found: Sequence[runs.Run], number: int, row: AdapterRow | None, active: int, language: str
    ) -> str:
        """What to say of a run, empty for nothing: its owner stopped it, or it is an old story."""
        run = found[number]
        since = self._clock.now() - _OLD_SECONDS
        if run.finished_at is None:
            return ""
        if run.finished_at < since and not (row and await self._has_waited(row.version, since)):
            return ""
        if run.state == "activated" and row is not None and row.version == active:
            made_of = await self._store.read(lambda db: news.material(db, [run.id]))
            told = await changed.said(self._store, run, language)
            return trainings.live(row.version, made_of, run.ending, told, language)
        if run.state == "activated" and row is not None and row.waits == PINNED:
            return trainings.waits(row.version, active, language)
        if run.state == "activated" and row is not None and row.waits == adapters.CANARY:
            told = await changed.said(self._store, run, language)
            return trainings.tried(row.version, run.ending, told, language)
        if number == 0 and run.state in ("refused", "failed"):
            readiness = await self._readiness()
            again = run.state == "failed" and [r.state for r in found[1:2]] == ["failed"]
            if again and readiness.due:
                return ""  # the first of several tries was told, and the last will be
            return trainings.in_vain(run, active, readiness, language)
        return ""

    async def _has_waited(self, version: int, since: float) -> bool:
        """Whether it went live after `since` because its owners had not found it worse."""
        pool = Pool(scope=self._registry.scope, model=self._registry.model, owners=())
        last = await self._store.read(lambda db: comparisons.last(db, pool, since))
        return last is not None and (last.new, last.held, last.state) == (version, True, "passed")


def news_key(run: int, owner: str) -> str:
    """Under which it is kept that an owner has heard of a run."""
    return f"news run {run} {owner}"
