# SPDX-License-Identifier: Apache-2.0
"""A new version on a share of the conversations first: who meets it, and when that is over.

A conversation stays on its side as long as the trial lasts. What people say of both sides decides:
the new version goes live for all once their ratings show that it is hardly worse, and is taken
back once they show that it is worse.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from goodbot.api.events import ChannelRef
from goodbot.api.sentences import Reason, because, in_words, kept, words
from goodbot.api.server import BASE
from goodbot.base.clock import Clock, Reached
from goodbot.base.errors import AdapterError, ServerError
from goodbot.base.intervals import difference
from goodbot.base.worded import said_by
from goodbot.learning.adapters.registry import AdapterRegistry
from goodbot.store import Store, acceptance, adapters, canaries, codec
from goodbot.store.acceptance import Acceptance
from goodbot.store.canaries import Trial
from goodbot.store.training_pool import Pool

logger = logging.getLogger(__name__)

_ENOUGH = 20
"""Rated answers of each version before anything is decided: this is looked at again and again."""
_MARGIN = 0.1
"""Not worse: with 95 % confidence the share of good answers has fallen by less."""
LOST = because("kept_lost_trial")
_LONGEST = 14 * 86400.0
"""Seconds; where so few rate, the gate's word stands."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialTally:
    """How both sides of a trial were rated since it began."""

    trial: Trial
    new: Acceptance
    old: Acceptance

    @property
    def interval(self) -> tuple[float, float] | None:
        """Of the new share of good answers minus the old; None while too few are rated."""
        if min(self.new.rated, self.old.rated) < _ENOUGH:
            return None
        return difference((self.new.good, self.new.rated), (self.old.good, self.old.rated))

    @property
    def figures(self) -> Reason:
        """`12 of 15 rated answers good, 30 of 40 of v6`."""
        new, old = self.new, self.old
        return because(
            "trial_figures", good=new.good, rated=new.rated, then=old.good, of=old.rated, old=old.version
        )

    def verdict(self, now: float) -> str:
        """`passed`, `lost`, or empty while it goes on."""
        if self.interval is not None:
            low, high = self.interval
            if high < 0:
                return "lost"
            if low > -_MARGIN:
                return "passed"
        return "passed" if now - self.trial.began_at > _LONGEST else ""


def tried_in(registry: AdapterRegistry, channel: ChannelRef) -> int | None:
    """The version that is tried in this conversation; None: the active one answers."""
    version = registry.canary
    return version if version != BASE and _place(channel, version) < registry.share else None


class Canary:
    """Sends conversations to the version that is tried, and ends the trial."""

    def __init__(
        self,
        *,
        store: Store,
        registry: AdapterRegistry,
        pool: Pool,
        clock: Clock,
        stop: Callable[[Reason], Awaitable[object]],
    ) -> None:
        """`stop` ends a training, for a reason: one that continues a version that has lost."""
        self._stop = stop
        self._store = store
        self._registry = registry
        self._pool = pool
        self._clock, self._reached = clock, Reached(clock)

    async def standing(self) -> TrialTally | None:
        """How the trial stands; None while nothing is tried."""
        pool = self._pool
        trial = await self._store.read(lambda db: canaries.running(db, pool.scope, pool.model))
        if trial is None:
            return None
        trial = replace(trial, began_at=self._reached.past(trial.began_at))
        found = await self._store.read(
            lambda db: acceptance.by_version(db, pool, since=trial.began_at, limit=1000)
        )
        by = {one.version: one for one in found}
        none = {v: Acceptance(version=v, good=0, rated=0) for v in (trial.version, trial.against)}
        both = {**none, **by}
        return TrialTally(trial=trial, new=both[trial.version], old=both[trial.against])

    async def look(self) -> None:
        """End the trial if it is decided. Raises ServerError, StoreError; then it goes on."""
        standing = await self.standing()
        if standing is None:
            return
        trial = standing.trial
        tainted = await self._store.read(lambda db: adapters.tainted(db, trial.version))
        verdict = "lost" if tainted else standing.verdict(self._clock.now())
        if self._registry.share == 0 and not verdict:
            verdict = "passed"  # it was switched off: the gate's word stands
        if verdict == "passed":
            await self._pass(trial)
        elif verdict or await self._registry.active() != trial.against:
            why = kept(tainted) or (standing.figures,)
            await self._end(trial, verdict or "superseded", why)

    async def _pass(self, trial: Trial) -> None:
        try:
            live = await self._registry.activate(trial.version, expected=trial.against)
        except AdapterError as error:
            logger.error("v%d does not go live: %s", trial.version, error)
            return await self._end(trial, "failed", in_words(said_by(error)))
        if live:
            logger.info("v%d has passed its trial", trial.version)
        elif await self._registry.active() != trial.against:
            await self._end(trial, "superseded", ())

    async def _end(self, trial: Trial, state: str, why: tuple[Reason, ...]) -> None:
        logger.info("v%d is tried no more (%s). %s", trial.version, state, words(*why))
        now, kept = self._clock.now(), codec.dump_reasons(why)
        closed = await self._store.write(lambda db: canaries.close(db, trial.version, state, kept, now))
        if closed and state == "lost":
            await self._stop(LOST)  # it was trained from what nobody wants
        try:
            await self._registry.refresh()
        except (AdapterError, ServerError) as error:
            logger.warning("v%d is still loaded: %s", trial.version, error)


def _place(channel: ChannelRef, version: int) -> float:
    """Where in [0, 1) a conversation lies; another version draws anew."""
    text = "\0".join((channel.connector, channel.account, channel.id, channel.thread, str(version)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64
